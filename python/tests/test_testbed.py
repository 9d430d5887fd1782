from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bluewater import experiment, programs, testbed
from bluewater.errors import InputError
from bluewater.experiment import parse
from bluewater.reproduce import Plan, reproduce
from bluewater.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCENARIO = """
place = "testbed"
duration = "3s"
warmup = "1s"
seed = 7
[network]
preset = "dumbbell"
rate = "8mbit"
delay = "5ms"
[[queue]]
aqm = "blue"
buffer = "40kB"
params = { ecn = false, increment = 0.01 }
[[traffic]]
flows = 2
transport = "newreno"
packet = "1500B"
"""
MEASURED: dict[str, Any] = {
    "queues": [
        {"queue": "up", "aqm": "blue", "arrivals": 100, "drops": 3, "decision_hash": "0123"},
        {"queue": "down", "aqm": "droptail", "arrivals": 90, "drops": 0, "decision_hash": "4567"},
    ],
    "flows": [{"flow": 0, "goodput_bps": 3e6}, {"flow": 1, "goodput_bps": 1e6}],
    "series": [{"time_s": 0.5, "queue": "up", "p_m": 0.5}],
    "connected": 2,
}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Puts a script in the gateway's place; gives the file where it writes how it was called."""
    asked = tmp_path / "asked"

    def clear() -> None:
        programs.find.cache_clear()
        testbed.missing.cache_clear()

    def place(probe: str) -> Path:
        script = tmp_path / "gateway"
        script.write_text(
            f"#!/bin/sh\n[ $1 = shell ] && {{ {probe}; exit; }}\n"
            f"echo \"$@\" >> {asked}\necho '{json.dumps(MEASURED)}'\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("BLUEWATER_GATEWAY", str(script))
        clear()
        return asked

    yield place
    clear()


def test_a_run_has_the_simulator_s_tables(program: Callable[[str], Path], tmp_path: Path) -> None:
    asked = program("true")
    loaded = parse(SCENARIO, "f", "x")
    (outcome,) = reproduce(Plan.of([(loaded, loaded.size("full"))]), Store(tmp_path / "s"), 2)
    assert outcome.failures == []
    tables = outcome.tables
    (run,) = tables.runs.to_dicts()
    assert (run["queue"], run["drops"], run["connected"]) == ("A->B", 3, 2)
    # (3 + 1)² / (2 · (3² + 1²))
    assert run["jain"] == pytest.approx(0.8)
    assert tables.flows["transport"].to_list() == ["newreno", "newreno"]
    assert tables.series["p_m"].to_list() == [0.5]
    store = Store(tmp_path / "s")
    assert store.read(tables.entries[0].key).decision_hash == "0123"
    words = asked.read_text().split()
    assert {"--rate=8mbit", "--delay=5ms", "--aqm=blue", "--flows=2", "--sack=false"} < {*words}
    assert {"--param=ecn=false", "--param=increment=0.01", "--seed=7"} < {*words}
    assert "--ecn" not in words


def test_where_it_is_not_allowed_runs_are_skipped_with_the_reason(
    program: Callable[[str], Path], tmp_path: Path
) -> None:
    program("echo error: no user namespace >&2; exit 2")
    both = '\n[sweep.place]\nhere = { place = "simulator" }\nthere = { place = "testbed" }\n'
    loaded = parse(SCENARIO.replace('place = "testbed"', "") + both, "f", "x")
    (outcome,) = reproduce(Plan.of([(loaded, loaded.size("full"))]), Store(tmp_path), 1)
    assert [(f.skipped, f.reason) for f in outcome.failures] == [(True, "no user namespace")]
    assert outcome.tables.runs["place"].to_list() == ["here"]


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('preset = "dumbbell"', 'preset = "feng"', "network.preset"),
        ('delay = "5ms"', 'delay = "5ms"\naccess_delay = "1ms"', "network"),
        ('"newreno"', '"cbr"\nrate = "1mbit"', "traffic.0.transport"),
        ('"1500B"', '"1000B"', "traffic.0.packet"),
        ('"testbed"', '"moon"', "place"),
    ],
)
def test_what_it_cannot_do_is_refused(old: str, new: str, key: str) -> None:
    loaded = parse(SCENARIO.replace(old, new), "f", "x")
    with pytest.raises(InputError) as caught:
        loaded.plan(loaded.size("full"))
    assert caught.value.key == key


def test_runs_on_the_testbed_are_made_alone() -> None:
    loaded = experiment.load("beyond/testbed")
    alone = [task.alone for task, _ in loaded.plan(loaded.size("quick"))]
    assert alone.count(True) == alone.count(False) > 0
