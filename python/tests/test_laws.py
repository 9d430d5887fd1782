"""The laws, tried on classes that keep them and on one for each law that breaks it."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from test_aqm import Blue, Clock, Codel, Front

import bluewater
from bluewater import _core, laws
from bluewater.aqm import DROP, Aqm, number
from bluewater.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.core


@pytest.mark.slow
@pytest.mark.parametrize("cls", [Blue, Clock, Codel, Front])
def test_all_laws_hold(cls: type[Aqm]) -> None:
    assert bluewater.check(cls) == ()


class Raises(Aqm):
    gain = number(1.0, "What it divides by.", low=0, high=2)

    def on_arrival(self, now: int, packet: Any, queue: Any) -> float:
        return min(0.001 / self.gain, 1.0) if queue.packets > 1 else 0.0


class Infinite(Aqm):
    signals: ClassVar = {"p": ("", "probability")}

    def start(self, now: int, queue: Any) -> None:
        self.p = 1.0

    def on_idle(self, now: int, queue: Any) -> None:
        self.p = self.p * 1e300


class Above(Aqm):
    signals: ClassVar = {"p": ("0 … 1", "probability")}

    def start(self, now: int, queue: Any) -> None:
        self.p = 0.0

    def on_overflow(self, now: int, packet: Any, queue: Any) -> None:
        self.p += 0.4


class Dice(Aqm):
    def on_departure(self, now: int, packet: Any, queue: Any) -> float | None:
        return DROP if queue.packets and random.random() < 0.1 else None


class Shared(Aqm):
    seen: ClassVar[list[int]] = []

    def on_arrival(self, now: int, packet: Any, queue: Any) -> float | None:
        self.seen.append(packet.len)
        return DROP if queue.packets and len(self.seen) % 997 < 100 else None


class Calendar(Aqm):
    def on_arrival(self, now: int, packet: Any, queue: Any) -> float | None:
        return DROP if now > 10**12 and queue.packets > 3 else None


class Twins(Aqm):
    def start(self, now: int, queue: Any) -> None:
        self.seen = 0

    def __deepcopy__(self, memo: Any) -> Twins:
        return self

    def on_arrival(self, now: int, packet: Any, queue: Any) -> float | None:
        self.seen += 1
        return DROP if queue.packets and self.seen % 7 == 0 else None


class Coin(Aqm):
    def on_arrival(self, now: int, packet: Any, queue: Any) -> float:
        return 0.05


@pytest.mark.parametrize(
    ("cls", "law", "said"),
    [
        (Raises, "works", r"Raises\.on_arrival .* ZeroDivisionError"),
        (Infinite, "signals", "p = inf at "),
        (Above, "signals", r"p = 1\.2000.* at "),
        (Dice, "determinism", r"operation \d+: .*drops and marks \[.*\] first, \[.*\] then"),
        (Shared, "copy", "operation "),
        (Calendar, "start", "operation "),
        (Twins, "copy", "operation "),
        (Coin, "calm", r"packet \d+ was dropped"),
    ],
)
def test_a_class_that_breaks_a_law_is_told_so(cls: type[Aqm], law: str, said: str) -> None:
    (finding,) = bluewater.check(cls)
    assert finding.law == law
    assert re.search(said, finding.said)
    assert str(finding).startswith(f"{law} ({laws.LAWS[law]})")
    assert bluewater.check(cls, but=[law]) == ()


def test_the_finding_names_the_end_of_the_range() -> None:
    (finding,) = bluewater.check(Raises)
    assert finding.case.startswith("gain = 0; traffic ")


DRIVEN = _core.Driven


class Leaky:
    """The queue of the library, but with one wrong answer."""

    def __init__(self, *args: Any) -> None:
        self.queue = DRIVEN(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.queue, name)


class Lost(Leaky):
    def books(self) -> list[tuple[int, int]]:
        arrived, departed, dropped, (packets, size) = self.queue.books()
        return [arrived, departed, dropped, (max(packets - 1, 0), size)]


class Twice(Leaky):
    def depart(self, now: int) -> tuple[int | None, list[tuple[str, int]]]:
        sent, events = self.queue.depart(now)
        return (None if sent is None else 0), events


@pytest.mark.parametrize(("queue", "said"), [(Lost, "queued"), (Twice, "leaves twice")])
def test_a_queue_that_loses_count_is_found(
    queue: type[Leaky], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "Driven", queue)
    (finding,) = bluewater.check(Front)
    assert finding.law == "books"
    assert said in finding.said


@pytest.mark.slow
def test_compiled_methods_that_decide_otherwise_are_found(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    path = tmp_path / "big.py"
    path.write_text(
        "from bluewater.aqm import *\n"
        "class Big(Aqm):\n"
        "    compiled = True\n"
        "    def start(self, now, queue):\n"
        "        self.x = 1\n"
        "    def on_arrival(self, now, packet, queue):\n"
        "        self.x = self.x * 3\n"
        "        return DROP if queue.packets and self.x < 0 else None\n"
    )
    (finding,) = bluewater.check(f"python:{path}:Big")
    assert finding.law == "compiled"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: bluewater.check(Blue, but=["clam"]), "unknown law 'clam'"),
        (lambda: bluewater.check(Blue, {"increment": 2}), "not allowed"),
        (lambda: bluewater.check("python:nowhere.py:Blue"), "cannot read the file"),
    ],
)
def test_what_cannot_be_tried_is_an_error(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        call()
