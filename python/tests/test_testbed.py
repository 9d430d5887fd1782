from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bluewater import _core, programs
from bluewater.errors import InputError
from bluewater.kinds import KINDS, testbed
from bluewater.results.result import schema
from bluewater.results.store import Store
from bluewater.study.experiments import experiment
from bluewater.study.experiments.experiment import parse
from bluewater.study.experiments.reproduce import Plan, reproduce

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
        {"queue": "up", "aqm": "blue", "arrivals": 100, "drops": 3, "decision_hash": "0123"}
        | {"measured_s": 2.0},
        {"queue": "down", "aqm": "droptail", "arrivals": 90, "drops": 0, "decision_hash": "4567"},
    ],
    "flows": [
        {"flow": 0, "transport": "tcp", "goodput_bps": 3e6},
        {"flow": 1, "transport": "tcp", "goodput_bps": 1e6},
    ],
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
    assert tables.table("flows")["transport"].to_list() == ["newreno", "newreno"]
    assert tables.table("series")["p_m"].to_list() == [0.5]
    store = Store(tmp_path / "s")
    assert store.read(tables.entries[0].key).decision_hash == "0123"
    words = asked.read_text().split()
    assert {"--rate=8mbit", "--delay=5ms", "--aqm=blue", "--flows=2", "--sack=false"} < {*words}
    assert {"--param=ecn=false", "--param=increment=0.01", "--seed=7"} < {*words}
    assert "--ecn" not in words


def test_a_gateway_that_fails_without_a_word_is_named(
    program: Callable[[str], Path], tmp_path: Path
) -> None:
    program("false")
    loaded = parse(SCENARIO, "f", "x")
    (outcome,) = reproduce(Plan.of([(loaded, loaded.size("full"))]), Store(tmp_path / "s"), 1)
    (failure,) = outcome.failures
    assert failure.skipped
    assert failure.reason == f"{tmp_path / 'gateway'} failed with code 1 and said nothing"


CBR = """
[[traffic]]
name = "deaf"
flows = 2
transport = "cbr"
rate = "1mbit"
packet = "1500B"
"""
SECOND = """
[[traffic]]
flows = 1
transport = "sack"
packet = "1500B"
"""
MEASURE = '[measure]\ninterval = "1s"\n'
DATAGRAMS = [
    {"flow": 2, "transport": "cbr", "goodput_bps": 2e6}
    | {"sent": 200, "received": 150, "marked": 0},
    {"flow": 3, "transport": "cbr", "goodput_bps": 2e6}
    | {"sent": 200, "received": 203, "marked": 7},
]


def test_datagrams_go_beside_tcp(
    program: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MEASURED, "flows", MEASURED["flows"] + DATAGRAMS)
    asked = program("true")
    capable = CBR.replace("deaf", "hears").replace("flows = 2", "flows = 1") + "ecn = true\n"
    text = SCENARIO.replace("[[traffic]]", CBR.replace("= 2", "= 1") + "[[traffic]]", 1) + capable
    loaded = parse(text, "f", "x")
    (outcome,) = reproduce(Plan.of([(loaded, loaded.size("full"))]), Store(tmp_path / "s"), 2)
    assert outcome.failures == []
    assert [w for w in asked.read_text().split() if "udp" in w] == [
        "--udp=1mbit",
        "--udp=1mbit,ect",
    ]
    assert "--flows=2" in asked.read_text()
    # In the order of the scenario, with the simulator's columns; the window is of 2 s.
    flows = outcome.tables.table("flows")
    assert schema("flows").items() <= flows.schema.items()
    assert flows["timeouts"].null_count() == 4
    assert flows["flow"].to_list() == [0, 1, 2, 3]
    assert flows["group"].to_list() == ["deaf", "flows", "flows", "hears"]
    assert flows["transport"].to_list() == ["cbr", "newreno", "newreno", "cbr"]
    assert flows["goodput_bps"].to_list() == [2e6, 3e6, 1e6, 2e6]
    assert flows["throughput_bps"].to_list() == [900e3, None, None, 1218e3]
    assert flows["arrivals"].to_list() == [200, None, None, 200]
    assert flows["drops"].to_list() == [50, None, None, 0]
    assert flows["loss"].to_list() == [0.25, None, None, 0.0]
    assert flows["marks"].to_list() == [0, None, None, 7]
    assert outcome.tables.runs["flows"].to_list() == [4]
    # Of the two connections; datagrams have the rates that they were given.
    assert outcome.tables.runs["jain"].to_list() == [pytest.approx(0.8)]


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
        ("[[queue]]", '[[queue]]\nprefilter = "red-pd"', "queue.0.prefilter"),
        ("[[queue]]", MEASURE + "groups = true\n[[queue]]", "measure.groups"),
        ("[[queue]]", MEASURE + "flows = true\n[[queue]]", "measure.flows"),
        ("[[queue]]", MEASURE + "delays = true\n[[queue]]", "measure.delays"),
        ('"newreno"', '"cubic"', "traffic.0.transport"),
        ('"newreno"', '"newreno"\ndscp = "EF"', "traffic.0.dscp"),
        ('"1500B"', '"1000B"', "traffic.0.packet"),
        ("[[traffic]]", SECOND + "[[traffic]]", "traffic"),
        *(
            ("[[traffic]]", CBR + line + "\n[[traffic]]", f"traffic.0.{line.split()[0]}")
            for line in (
                'app = "periodic"\non = "1s"\noff = "1s"',
                'rates = [["1s", "2mbit"]]',
                'start = "0s..1s"',
                'stop = "2s"',
                'gaps = "poisson"',
                'identity = "one"',
                'rekey = "1s"',
            )
        ),
        ('"testbed"', '"moon"', "place"),
    ],
)
def test_what_it_cannot_do_is_refused(old: str, new: str, key: str) -> None:
    loaded = parse(SCENARIO.replace(old, new), "f", "x")
    with pytest.raises(InputError) as caught:
        loaded.plan(loaded.size("full"))
    assert caught.value.key == key


def test_what_it_takes_is_there() -> None:
    schema = json.loads(_core.schema())["$defs"]
    keys = {name: schema[name]["properties"].keys() for name in ("TrafficSpec", "cbr", "QueueSpec")}
    assert keys["TrafficSpec"] > testbed._UP_TO_TCP
    assert keys["TrafficSpec"] | keys["cbr"] > testbed._TAKEN | testbed._WITH_CBR
    assert keys["QueueSpec"] > testbed._QUEUE
    names = {each["name"] for each in _core.catalog()["transports"]}
    assert names > {*testbed._SACK, "cbr"}


def test_runs_on_the_testbed_are_made_alone() -> None:
    loaded = experiment.load("beyond/testbed")
    alone = [KINDS[task.kind].alone for task, _ in loaded.plan(loaded.size("quick"))]
    assert alone.count(True) == alone.count(False) > 0
