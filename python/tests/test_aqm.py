"""Algorithms in Python: the decisions of ours, errors that say where, keys with the code."""

from __future__ import annotations

import math
import pickle
import tomllib
from pathlib import Path
from typing import Any, ClassVar

import pytest
from conftest import Cli

import bluewater
from bluewater.aqm import (
    ADMIT,
    ARRIVING,
    DROP,
    HEAD,
    NEVER,
    SIGNAL,
    Aqm,
    duration,
    integer,
    number,
)
from bluewater.aqm import random as uniform
from bluewater.errors import InputError
from bluewater.own import entry
from bluewater.plots.run import stem
from bluewater.study.scenarios.scenario import Scenario

pytestmark = pytest.mark.core

LEAST = 0.0


class Blue(Aqm):
    """BLUE (Feng02 Fig. 3)."""

    freeze_time = duration("100ms", "Least time between two changes of p_m.")
    increment = number(0.02, "What p_m rises by.", low=0, high=1)
    decrement = number(0.002, "What p_m falls by.", low=0, high=1)
    signals: ClassVar = {"p_m": ("0 … 1", "marking probability")}

    def start(self, now: int, queue: Any) -> None:
        self.p_m = LEAST
        self.last = now - self.freeze_time - 1

    def on_arrival(self, now: int, packet: Any, queue: Any) -> float:
        return self.p_m if queue.fits else ADMIT

    def on_overflow(self, now: int, packet: Any, queue: Any) -> float:
        if now - self.last > self.freeze_time:
            self.p_m, self.last = min(self.p_m + self.increment, 1.0), now
        return ARRIVING

    def on_idle(self, now: int, queue: Any) -> None:
        if now - self.last > self.freeze_time:
            self.p_m, self.last = max(self.p_m - self.decrement, LEAST), now


class Codel(Aqm):
    """CoDel (RFC 8289 §5), by departures and their delay."""

    target = duration("5ms", "Delay that is allowed.")
    interval = duration("100ms", "How long it may be more.")

    def start(self, now: int, queue: Any) -> None:
        self.above = 0
        self.dropping = False
        self.count = self.last_count = 0
        self.next = 0

    def ok(self, now: int, packet: Any, queue: Any) -> bool:
        if now - packet.arrived < self.target or queue.bytes <= 1500:
            self.above = 0
        elif self.above == 0:
            self.above = now + self.interval
        elif now >= self.above:
            return True
        return False

    def on_departure(self, now: int, packet: Any, queue: Any) -> float:
        ok = self.ok(now, packet, queue)
        if self.dropping:
            if not ok:
                self.dropping = False
            elif now >= self.next:
                self.count += 1
                self.next += int(self.interval / math.sqrt(self.count))
                return SIGNAL
        elif ok:
            self.dropping = True
            delta = self.count - self.last_count
            recent = now - self.next < 16 * self.interval
            self.count = delta if delta > 1 and recent else 1
            self.next = now + int(self.interval / math.sqrt(self.count))
            self.last_count = self.count
            return SIGNAL
        return ADMIT


class Clock(Aqm):
    """A controller that moves by a timer, PI alike; counts what it saw."""

    period = duration("20ms", "Time between two updates.", low="1ms", high="1s")
    reference = integer(20, "Packets that it wants queued.", low=0)
    signals: ClassVar = {"p": ("0 … 1", "probability"), "updates": ("", "updates so far")}

    def start(self, now: int, queue: Any) -> None:
        self.p, self.updates = 0.0, 0
        self.timer = now + self.period

    def on_timer(self, now: int, queue: Any) -> None:
        assert now == self.timer
        self.p = min(max(self.p + 1e-4 * (queue.packets - self.reference), 0.0), 1.0)
        self.updates += 1
        self.timer = now + self.period

    def on_arrival(self, now: int, packet: Any, queue: Any) -> float:
        return DROP if uniform() < self.p else ADMIT


class Front(Aqm):
    """Drop-front."""

    def on_overflow(self, now: int, packet: Any, queue: Any) -> float:
        return HEAD


def table(aqm: Any, **keys: Any) -> dict[str, Any]:
    flows, ecn, params = keys.pop("flows", 40), keys.pop("ecn", True), keys.pop("params", {})
    return {
        "duration": "8s",
        "warmup": "2s",
        "network": {"preset": "dumbbell", "rate": "10mbit", "delay": "20ms"},
        "queue": [{"aqm": aqm, "buffer": "60p", "params": params}],
        "traffic": [{"flows": flows, "transport": "sack", "start": "0s..1s", "ecn": ecn}],
        "measure": {"interval": "100ms"},
        **keys,
    }


@pytest.mark.parametrize("flows", [3, 40, 150])
@pytest.mark.parametrize("ecn", [True, False])
def test_blue_decides_as_ours(flows: int, ecn: bool) -> None:
    ours = bluewater.run(table("blue", flows=flows, ecn=ecn, seed=flows))
    own = bluewater.run(table(Blue, flows=flows, ecn=ecn, seed=flows))
    assert own.decision_hash == ours.decision_hash
    assert own.series["p_m"].to_list() == ours.series["p_m"].to_list()
    assert max(ours.series["p_m"].to_list()) > 0


def test_parameters_are_those_of_the_class() -> None:
    params = {"freeze_time": "20ms", "increment": 0.05}
    own = Scenario(table(Blue, params=params))
    assert (
        bluewater.run(own).decision_hash
        == bluewater.run(table("blue", params=params)).decision_hash
    )
    assert tomllib.loads(own.canonical)["queue"][0]["params"] == {**params, "decrement": 0.002}
    assert own != Scenario(table(Blue))


def test_drop_front_decides_as_ours() -> None:
    ours = bluewater.run(table("drop-front", ecn=False))
    assert bluewater.run(table(Front, ecn=False)).decision_hash == ours.decision_hash


def test_departures_and_their_delay_hold_the_queue_down() -> None:
    own, none = bluewater.run(table(Codel)), bluewater.run(table("droptail"))
    assert own.summary["mark_rate"] > 0
    assert own.summary["delay_mean_s"] < 0.7 * none.summary["delay_mean_s"]


def test_the_timer_comes_when_it_was_wanted() -> None:
    result = bluewater.run(table(Clock, ecn=False))
    updates = result.series.select("time_s", "updates").rows()
    assert all(abs(n - math.floor(t / 0.02 + 1e-9)) <= 1 for t, n in updates)
    assert result.summary["loss"] > 0


def test_runs_are_alike_and_begin_afresh() -> None:
    first, second = (bluewater.run(table(Clock, ecn=False)) for _ in range(2))
    assert first.decision_hash == second.decision_hash
    assert bluewater.run(table(Clock, ecn=False, seed=2)).decision_hash != first.decision_hash


LEAKS = """
from bluewater.aqm import *

seen = []

class Leaks(Aqm):
    lengths = []

    def on_arrival(self, now, packet, queue):
        seen.append(1)
        self.lengths.append(queue.packets)
        return 0.2 if len(seen) + len(self.lengths) < 3000 else 0.0
"""


def test_what_a_class_keeps_does_not_go_into_the_next_run(tmp_path: Path) -> None:
    (tmp_path / "leaks.py").write_text(LEAKS, "utf-8")
    own = table(f"python:{tmp_path / 'leaks.py'}:Leaks")
    first, second = (bluewater.run(own) for _ in range(2))
    assert first.decision_hash == second.decision_hash


class Idle(Aqm):
    """Looks at the queue when the link finds it empty."""

    signals: ClassVar = {"most": ("packets", "most that was queued then"), "idle": ("", "times")}

    def start(self, now: int, queue: Any) -> None:
        self.most = self.idle = 0

    def on_arrival(self, now: int, packet: Any, queue: Any) -> None:
        assert queue.packets >= 0

    def on_idle(self, now: int, queue: Any) -> None:
        self.idle += 1
        self.most = max(self.most, queue.packets, queue.bytes)


def test_an_idle_link_has_found_nothing_queued() -> None:
    last = bluewater.run(table(Idle, flows=3)).series.row(-1, named=True)
    assert last["idle"] > 0
    assert last["most"] == 0


FILE = '''
from bluewater.aqm import *

STEP = {step}

class Coin(Aqm):
    """Signals with one probability."""

    p = number({p}, "The probability.", low=0, high=1)
    signals = {{"p": ("0 … 1", "the probability")}}

    def on_arrival(self, now, packet, queue):
        return {answer}
'''


def file(folder: Path, p: str = "0.1", step: str = "1", answer: str = "self.p") -> Path:
    path = folder / "coin.py"
    path.write_text(FILE.format(p=p, step=step, answer=answer), "utf-8")
    return path


def test_a_file_is_found_from_its_scenario_and_becomes_part_of_it(tmp_path: Path) -> None:
    file(tmp_path)
    path = tmp_path / "own.toml"
    path.write_text(_toml(table("python:coin.py:Coin")), "utf-8")
    scenario = Scenario.load(path)
    assert "def on_arrival" in scenario.canonical
    assert str(tmp_path) not in scenario.canonical
    again = pickle.loads(pickle.dumps(scenario))
    hash_ = bluewater.run(path).decision_hash
    assert bluewater.run(table("bernoulli", params={"p": 0.1, "ecn": True})).decision_hash == hash_
    file(tmp_path).unlink()
    assert bluewater.run(again.canonical).decision_hash == hash_


def _toml(table: dict[str, Any]) -> str:
    import tomli_w  # noqa: PLC0415

    return tomli_w.dumps(table)


def test_other_code_is_another_run_and_the_same_is_none(tmp_path: Path) -> None:
    def made(**change: str) -> Scenario:
        return Scenario(table(f"python:{file(tmp_path, **change)}:Coin"))

    first = made()
    assert first == made()
    assert len({first, made(p="0.2"), made(step="2"), made(answer="self.p / 2")}) == 4


def test_a_sweep_makes_them_in_processes_of_its_own(tmp_path: Path) -> None:
    found = bluewater.compare(
        ["blue", Blue, f"python:{file(tmp_path)}:Coin"],
        bluewater.Setup(rate="5mbit", flows=20, duration="4s", warmup="1s"),
        seeds=[1, 2],
        jobs=2,
        out=tmp_path / "out",
        progress=False,
    )
    assert not found.failures
    hashes = {(str(at["aqm"]), at["seed"]): run.decision_hash for at, run in found.results()}
    for seed in (1, 2):
        assert hashes["blue", seed] == hashes["Blue", seed]
    assert len(hashes) == 6
    assert len(set(hashes.values())) == 4


def test_classes_are_points_of_a_sweep(tmp_path: Path) -> None:
    for place, base in enumerate(("droptail", Blue)):
        made = bluewater.sweep(
            Scenario(table(base, duration="4s", warmup="1s")),
            {"queue.0.aqm": ["blue", Blue, Clock]},
            seeds=[1, 2],
            jobs=2,
            out=tmp_path / str(place),
            progress=False,
        )
        assert not made.failures
        hashes = {(at["queue.0.aqm"], at["seed"]): r.decision_hash for at, r in made.results()}
        assert len(hashes) == 6
        for seed in (1, 2):
            assert hashes["Blue", seed] == hashes["blue", seed] != hashes["Clock", seed]


def test_parts_of_a_sweep_by_a_file_find_the_class(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "far").mkdir()
    name = f"python:{file(tmp_path / 'far').name}:Coin"
    path = tmp_path / "far" / "sweep.toml"
    axes = {"sweep": {"queue.0.params.p": [0.1, 0.2]}}
    path.write_text(_toml({**table(name, duration="4s", warmup="1s"), **axes}), "utf-8")
    for part in ("1/2", "2/2"):
        assert cli("sweep", str(path), "--jobs", "2", "--shard", part).exit_code == 0
    file(tmp_path / "far", answer="self.p / 2")
    assert len(list((cli.out / "runs").glob("??/*"))) == 2
    assert cli("sweep", str(path), "--jobs", "2").exit_code == 0
    assert len(list((cli.out / "runs").glob("??/*"))) == 4


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("1 / 0", r"coin\.py:13: Coin\.on_arrival at 0\.\d{9} s: ZeroDivisionError"),
        (
            "float('nan')",
            r"coin\.py:12: Coin\.on_arrival at .* it gave NaN; allowed: a probability of 0 … 1",
        ),
        ("1.5", "it gave 1.5; allowed"),
        ("-0.1", "it gave -0.1; allowed"),
        ("'yes'", "it gave 'yes'; allowed: a probability of 0 … 1"),
        ("packet.colour", r"coin\.py:13: .*no attribute 'colour'"),
    ],
)
def test_what_a_method_does_wrong_ends_the_run_and_says_where(
    tmp_path: Path, answer: str, told: str
) -> None:
    with pytest.raises(InputError, match=told):
        bluewater.run(table(f"python:{file(tmp_path, answer=answer)}:Coin"))
    # The next run is not touched by it.
    assert bluewater.run(table(f"python:{file(tmp_path)}:Coin")).summary["mark_rate"] > 0


def test_a_start_that_fails_says_where(tmp_path: Path) -> None:
    path = tmp_path / "start.py"
    path.write_text(
        "from bluewater.aqm import Aqm\n"
        "class Start(Aqm):\n"
        "    def start(self, now, queue): self.x = queue.colour\n"
    )
    with pytest.raises(bluewater.ScenarioError, match=r"start\.py:3: Start\.start at 0\.0* s"):
        Scenario(table(f"python:{path}:Start"))


def test_a_timer_in_the_past_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "stuck.py"
    path.write_text(
        "from bluewater.aqm import Aqm\n"
        "class Stuck(Aqm):\n"
        "    def start(self, now, queue): self.timer = 1000\n"
        "    def on_timer(self, now, queue): self.timer = now\n"
    )
    with pytest.raises(InputError, match="timer = 1000 at 1000; allowed: a time after"):
        bluewater.run(table(f"python:{path}:Stuck"))
    assert NEVER == 2**63 - 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("class Coin(:", r"coin\.py:1: "),
        ("raise RuntimeError('no')", r"coin\.py:1: RuntimeError: no"),
        ("class Other: pass", "unknown subclass"),
        (
            "from bluewater.aqm import Aqm\nclass Coin(Aqm):\n    def on_arival(self, *_): pass",
            r"method at coin\.py:3: 'on_arival'.*on_arrival",
        ),
        (
            "from bluewater.aqm import Aqm\nclass Coin(Aqm):\n    def start(self, now, queue):\n"
            "        self.timer = now + 1",
            r"coin\.py:3: start sets timer, but there is no on_timer",
        ),
    ],
)
def test_a_file_that_has_no_such_class_is_an_error(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "coin.py").write_text(text, "utf-8")
    with pytest.raises(bluewater.ScenarioError, match=told):
        bluewater.run(table(f"python:{tmp_path / 'coin.py'}:Coin"))


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"p": 2}, "allowed: 0 … 1"),
        ({"p": "many"}, "allowed: 0 … 1"),
        ({"q": 1}, "did you mean 'p'|allowed: p"),
    ],
)
def test_wrong_parameters_are_errors(tmp_path: Path, params: dict[str, Any], told: str) -> None:
    with pytest.raises(bluewater.ScenarioError, match=told):
        Scenario(table(f"python:{file(tmp_path)}:Coin", params=params))


def test_a_file_that_is_not_there_and_code_for_nothing_are_errors() -> None:
    with pytest.raises(bluewater.ScenarioError, match=r"nowhere\.py"):
        Scenario(table("python:nowhere.py:Coin"))
    with pytest.raises(bluewater.ScenarioError, match="only with an aqm"):
        Scenario({**table("red"), "queue": [{"aqm": "red", "buffer": "9p", "code": "x"}]})


def test_random_numbers_are_a_method_s_alone() -> None:
    with pytest.raises(ValueError, match="only in a method"):
        uniform()


def test_a_class_without_a_text_is_an_error() -> None:
    names: dict[str, Any] = {}
    exec("from bluewater.aqm import Aqm\nclass Typed(Aqm): pass", names)
    with pytest.raises(InputError, match="the source text of the class Typed cannot be found"):
        Scenario(table(names["Typed"]))


def test_a_picture_s_name_is_no_path() -> None:
    assert stem(["red", "python:/tmp/own.py:Blue"]) == "compare-red-own.py-Blue"


def test_explain_tells_what_the_class_declares(tmp_path: Path) -> None:
    told = entry(f"python:{file(tmp_path)}:Coin")
    assert told["summary"] == "Signals with one probability."
    assert [(each["name"], each["allowed"]) for each in told["parameters"]] == [("p", "0 … 1")]
    assert told["signals"] == [{"name": "p", "unit": "0 … 1", "doc": "the probability"}]
