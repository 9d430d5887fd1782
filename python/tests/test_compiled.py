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


@pytest.mark.slow
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
            r"own\.py:20: self\.seen, which start\(\) made int64, becomes float64",
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


FORMS = """
import functools
import numpy as np
from bluewater.control import Controller

LIMIT = np.array([4])
STARTS = []

def shrink(c):
    c.n = c.n * 0.75

def doubled(method):
    @functools.wraps(method)
    def both(self, a):
        method(self, a)
        method(self, a)
    return both

class Own(Controller):
    compiled = True
    signals = {{"n": ("packets", "its window")}}

    def start(self, s):
        self.mtu, self.cwnd, self.n, self.__gain = s.mtu, float(s.initial_window), 10, 0.5
        STARTS.append(1)
        {start}

    @property
    def packets(self):
        return self.cwnd / self.mtu

    def on_ack(self, a):
        self.n += 1
        self.cwnd = float(self.n * self.mtu)

    {extra}

    {before}
    def on_congestion(self, c):
        self.n = int(self.n * self.__gain) + LIMIT[0]
        {body}
        self.cwnd = float(self.n * self.mtu)
"""


def formed(start: str = "", extra: str = "", before: str = "", body: str = "") -> dict[str, Any]:
    code = FORMS.format(start=start, extra=extra, before=before, body=body)
    network = {"preset": "dumbbell", "rate": "10mbit"}
    traffic = {"transport": "python:own.py:Own", "code": code, "flows": 2}
    queue = {"aqm": "droptail", "buffer": "20p"}
    return {"duration": "2s", "network": network, "queue": [queue], "traffic": [traffic]}


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"body": "self.cwnd = self.packets"}, r"own\.py:28: packets is a property; allowed: a"),
        ({"before": "@doubled"}, r"own\.py:38: the decorator @doubled; allowed: a method without"),
        ({"body": "shrink(self)"}, r"own\.py:10: self\.n, which start\(\) made int64, becomes"),
        ({"body": "me = self; me.n = 0.5"}, r"own\.py:41: self\.n, which .* becomes float64"),
        ({"body": "for self.n in (1.5, 2.5): pass"}, r"own\.py:41: self\.n, which .* float64"),
        ({"body": "c.lost = 5"}, r"own\.py:41: lost is a field of an argument"),
        ({"start": "self.n = np.zeros(1)"}, r"self\.n is an array; allowed: one number"),
        ({"start": "self.n = 'many'"}, r"self\.n is a text; allowed: one number"),
        ({"extra": "on_lost = lambda self, l: None"}, r"own\.py:36: a lambda cannot be compiled"),
        ({"start": "LIMIT[0] = 9"}, r"start\(\) changes LIMIT, which its methods read"),
    ],
)
def test_what_would_decide_otherwise_is_refused(keys: dict[str, str], told: str) -> None:
    with pytest.raises(bluewater.ScenarioError, match=told):
        bluewater.Scenario(formed(**keys))


def test_state_of_a_module_does_not_go_into_the_next_run() -> None:
    scenario = formed(start="self.n += 5 * len(STARTS)")
    plain = {**scenario, "traffic": [dict(scenario["traffic"][0])]}
    plain["traffic"][0]["code"] = plain["traffic"][0]["code"].replace("True", "False", 1)
    hashes = {bluewater.run(each).decision_hash for each in (scenario, scenario, plain)}
    assert len(hashes) == 1


def test_modules_with_globals_of_one_name_keep_their_own(tmp_path: Path) -> None:
    base = "from bluewater.control import Controller\nGAIN = 0.25\ndef grown(x): return x * GAIN\n"
    base += "class Base(Controller):\n    compiled = {compiled}\n"
    base += (
        "    def start(self, s):\n        self.mtu, self.cwnd = s.mtu, float(s.initial_window)\n"
    )
    base += "    def on_ack(self, a):\n        self.cwnd += grown(self.mtu * a.acked / self.cwnd)\n"
    own = "from base import Base, grown\nGAIN = 0.9\nclass Own(Base):\n"
    own += "    def on_congestion(self, c):\n"
    own += "        self.cwnd = max(self.cwnd * GAIN, grown(8.0 * self.mtu))\n"
    (tmp_path / "own.py").write_text(own, "utf-8")
    hashes = set()
    for compiled in (True, False):
        (tmp_path / "base.py").write_text(base.format(compiled=compiled), "utf-8")
        scenario = formed()
        del scenario["traffic"][0]["code"]
        scenario["traffic"][0]["transport"] = f"python:{tmp_path / 'own.py'}:Own"
        hashes.add(bluewater.run(scenario).decision_hash)
    assert len(hashes) == 1
