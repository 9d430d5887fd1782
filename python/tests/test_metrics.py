from __future__ import annotations

import os
import subprocess
from urllib.request import urlopen

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import bluewater
from bluewater import programs


def test_the_gateway_s_metrics_are_open_metrics() -> None:
    """The format's reference parser accepts all of a scrape."""
    gateway = programs.find("bluewater-gateway")
    command = [gateway, "shell", "--quiet", "--metrics", "0", "--rate", "8mbit", "--", "cat"]
    with subprocess.Popen(command, stdin=-1, stderr=-1, text=True) as shell:
        assert shell.stdin
        assert shell.stderr
        first = shell.stderr.readline()
        if not first.startswith("metrics: "):
            assert "CI" not in os.environ, first
            pytest.skip(first)
        with urlopen(first.removeprefix("metrics: ").strip(), timeout=10) as answer:
            text = answer.read().decode()
            kind = answer.headers["Content-Type"]
        shell.stdin.close()
    assert shell.returncode == 0
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    read = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    families = {family.name: family for family in read}
    times = families["bluewater_sojourn_seconds"]
    assert times.type == "histogram"
    assert {sample.labels["queue"] for sample in times.samples} == {"up", "down"}
    assert families["bluewater_drops"].type == "counter"


def test_nothing_is_shared_where_everything_is_lost() -> None:
    lost = bluewater.run(
        {
            "duration": "3s",
            "network": {"preset": "dumbbell", "rate": "1mbit"},
            "queue": [{"aqm": "bernoulli", "buffer": "50p", "params": {"p": 1.0, "ecn": False}}],
            "traffic": [{"flows": 3, "transport": "sack", "start": "0s"}],
        }
    )
    assert lost.summary["loss"] == 1
    assert lost.summary["jain"] is None
