"""Algorithms in Python that Numba compiles: the decisions of the plain ones, and their errors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from test_aqm import Blue, Clock, Codel, table

import bluewater
from bluewater.aqm import ADMIT, DROP, HEAD, Aqm, choice, integer, number
from bluewater.aqm import random as uniform
from bluewater.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

np = pytest.importorskip("numpy")
pytest.importorskip("numba")
pytestmark = pytest.mark.core


def clamp(p: float, most: float = 1.0) -> float:
    return min(max(p, 0.0), most)


class Bins(Aqm):
    """Everything that compiled state can be: numbers, an array, a truth value, a word."""

    levels = integer(8, "How many bins.", low=1)
    gain = number(0.02, "How fast a bin moves.", low=0, high=1)
    sign = choice("ecn", "What a full bin does.", ("ecn", "drop"))
    signals: ClassVar = {"top": ("0 … 1", "the fullest bin"), "calls": ("", ""), "busy": ("", "")}
    HALF = 0.5

    def start(self, now: int, queue: Any) -> None:
        self.bins = np.zeros(self.levels)
        self.top, self.calls, self.busy = 0.0, 0, False
        self.timer = now + 1_000_000

    def moved(self, bin_: int, by: float) -> float:
        self.bins[bin_] = clamp(self.bins[bin_] + by)
        return self.bins[bin_]  # type: ignore[no-any-return]

    def on_arrival(self, now: int, packet: Any, queue: Any) -> float | None:
        self.calls += 1
        p = self.moved(packet.flow % self.levels, self.gain if queue.packets > 20 else -self.gain)
        if self.sign == "drop" and uniform() < p:
            return DROP
        return None if p < self.HALF else p - self.HALF

    def on_overflow(self, now: int, packet: Any, queue: Any) -> float:
        return HEAD if packet.arrived == now and packet.len > 100 else ADMIT

    def on_idle(self, now: int, queue: Any) -> None:
        self.busy = False

    def on_timer(self, now: int, queue: Any) -> None:
        (self.top, self.busy), self.timer = (self.bins.max(), queue.packets > 0), now + 1_000_000


class FastBlue(Blue):
    compiled = True


class FastCodel(Codel):
    compiled = True


class FastClock(Clock):
    compiled = True


class FastBins(Bins):
    compiled = True


@pytest.mark.parametrize(
    ("plain", "fast", "keys"),
    [
        (Blue, FastBlue, {}),
        (Blue, FastBlue, {"ecn": False, "flows": 150, "seed": 3}),
        (Codel, FastCodel, {}),
        (Clock, FastClock, {"ecn": False}),
        (Bins, FastBins, {}),
        (Bins, FastBins, {"ecn": False, "params": {"sign": "drop", "levels": 3}}),
    ],
)
def test_compiled_it_decides_as_it_does_plain(
    plain: type[Aqm], fast: type[Aqm], keys: dict[str, Any]
) -> None:
    of_plain, of_fast = (bluewater.run(table(each, **keys)) for each in (plain, fast))
    assert of_fast.decision_hash == of_plain.decision_hash
    assert of_fast.summary["mark_rate"] + of_fast.summary["loss"] > 0
    for name in plain.signals:
        assert of_fast.series[name].to_list() == of_plain.series[name].to_list()
        assert of_fast.series[name].n_unique() > 1


def test_blue_compiled_decides_as_ours() -> None:
    ours, own = (bluewater.run(table(each)) for each in ("blue", FastBlue))
    assert own.decision_hash == ours.decision_hash


FILE = """
import numpy as np
from bluewater.aqm import Aqm, number

class Own(Aqm):
    compiled = True
    p = number(0.1, "The probability.")
    signals = {{"seen": ("", "packets")}}

    def start(self, now, queue):
        self.seen = 0
        self.timer = {timer}
        {start}

    def on_timer(self, now, queue):
        self.timer = {next}

    def on_arrival(self, now, packet, queue):
        self.seen += 1
        {body}
        return {answer}
"""


def own(
    folder: Path,
    body: str = "",
    answer: str = "self.p",
    start: str = "",
    timer: str = "10**6",
    again: str = "now + 10**6",
) -> str:
    path = folder / "own.py"
    text = FILE.format(body=body, answer=answer, start=start, timer=timer, next=again)
    path.write_text(text, "utf-8")
    return f"python:{path}:Own"


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"answer": "1.5"}, "Own.on_arrival at .* it gave 1.5; allowed: a probability"),
        ({"answer": "self.p / (self.seen - 50)"}, "it gave -"),
        ({"answer": "self.p if self.seen < 50 else float('nan')"}, "it gave NaN"),
        (
            {"body": "x = 1 // (self.seen - 50)"},
            r"own\.py:20: Own.on_arrival at 0\.\d{9} s: ZeroDivisionError",
        ),
        (
            {"body": "if self.seen == 9: raise ValueError('nine')"},
            r"own\.py:20: Own.on_arrival at .* s: ValueError: nine",
        ),
        ({"body": "self.bins[self.seen] = 1", "start": "self.bins = np.zeros(9)"}, "IndexError"),
        ({"again": "now"}, r"Own.on_timer at .*timer = 1000000 at 1000000; allowed: a time after"),
    ],
)
def test_what_a_compiled_method_does_wrong_ends_the_run(
    tmp_path: Path, keys: dict[str, str], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        bluewater.run(table(own(tmp_path, **keys)))
    assert bluewater.run(table(own(tmp_path))).summary["mark_rate"] > 0


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (
            {"body": "self.seen += 0.5"},
            r"own\.py:20: an attribute that start\(\) made int64 becomes float64",
        ),
        ({"start": "self.names = {}", "body": "self.names[0] = 1"}, r"self\.names is dict"),
        ({"body": "self.late = 1"}, r"self\.late is not there"),
        ({"body": "open('x')"}, r"own\.py:20: Untyped global name 'open'"),
        (
            {"body": "self.bins = self.bins + 1", "start": "self.bins = np.zeros(3)"},
            r"own\.py:20: an array keeps its shape",
        ),
        ({"answer": "'yes'"}, r"gives .*, but must give a number"),
    ],
)
def test_what_cannot_be_compiled_is_an_error_before_the_run(
    tmp_path: Path, keys: dict[str, str], told: str
) -> None:
    with pytest.raises(bluewater.ScenarioError, match=told):
        bluewater.Scenario(table(own(tmp_path, **keys)))


def test_without_numba_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(bluewater.ScenarioError, match="compiled = True needs Numba") as error:
        bluewater.run(table(own(tmp_path)))
    assert "pip install 'bluewater[numba]'" in str(error.value.hint)
