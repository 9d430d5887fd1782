from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from bluewater.cli import app
from bluewater.cli.gateway import gateway
from bluewater.cli.view import picture
from bluewater.errors import InputError


def _queue(way: str, packets: int) -> dict[str, Any]:
    return {
        "queue": way,
        "rate": "10mbit",
        "delay": "5ms",
        "buffer": "50000B",
        "aqm": "blue",
        "departures_bytes": 1000 * packets,
        "backlog_packets": 7,
        "delay_s": 0.0123,
        "drops": {"overflow": packets // 50, "early": 0},
        "marks": {"early": packets // 10},
        "signals": {"p_m": 0.25},
        "flows": [
            {
                "source": "10.0.0.1",
                "destination": "fd00::2",
                "protocol": 6,
                "ports": [443, 5001],
                "bytes": 250_000,
                "drops": 3,
                "marks": 4,
            }
        ],
    }


def test_the_view_shows_rates_between_two_answers() -> None:
    before, now = (
        {"time_s": time, "queues": [_queue("up", packets), _queue("down", 0)]}
        for time, packets in [(1.0, 500), (1.5, 1000)]
    )
    console = Console(width=140)
    with console.capture() as shown:
        console.print(picture(before, now))
    up = next(line for line in shown.get().splitlines() if line.startswith(" up"))
    # 500 packets of 1000 bytes, 10 drops and 50 marks in half a second.
    assert up.split()[1:] == [
        *("10mbit", "5ms", "50000B", "blue", "8.00", "7p", "12.3", "ms"),
        *("overflow", "20", "early", "100", "p_m=0.25"),
    ]
    assert "tcp 10.0.0.1:443 > fd00::2:5001  2.00" in " ".join(shown.get().split("\n"))


def test_the_view_says_what_it_takes() -> None:
    """An option is not taken for a gateway's name: `view --help` prints help."""
    for option in ("--help", "-h"):
        told = CliRunner().invoke(app, ["gateway", "view", option])
        assert told.exit_code == 0, told.output
        assert told.output.startswith("Usage: bluewater gateway view NAME")
    for words in (["--no-such"], [], ["one", "two"]):
        with pytest.raises(InputError, match="gateway view"):
            gateway(["view", *words])


@pytest.mark.parametrize(
    ("command", "task"),
    [
        ("gateway", "run"),
        ("gateway ctl", "ctl"),
        ("shell", "shell"),
        ("testbed", "testbed"),
        ("replay", "replay"),
    ],
)
def test_real_packets_are_the_gateway_s_task(command: str, task: str, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 7\n')
    program.chmod(0o755)
    given = ["--rate", "10mbit", "--quiet", "--", "ls", "--help", "-l"]
    done = subprocess.run(
        [sys.executable, "-m", "bluewater", *command.split(), *given],
        env={**os.environ, "BLUEWATER_GATEWAY": str(program)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()) == (7, [task, *given])
