"""Your own autorate algorithm: a class that sets the rates of shapers by what it measures.

```python
from bluewater.autorate import Autorate, number

class Halve(Autorate):
    \"\"\"Halves the rate down while probes take 50 ms longer than the fastest one.\"\"\"

    def start(self, s):
        self.base = float("inf")

    def step(self, now, measured):
        self.base = min([self.base, *measured.down.delays])
        slow = any(delay > self.base + 50_000_000 for delay in measured.down.delays)
        return (measured.down.rate / 2 if slow else measured.down.base), None
```

The algorithms that come with Bluewater are the files of the folder ``autorates`` beside this one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite
from types import SimpleNamespace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from bluewater.errors import InputError
from bluewater.own import (
    Own,
    OwnError,
    choice,
    duration,
    flag,
    integer,
    number,
    random,
    rate,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "Autorate",
    "Measured",
    "OwnError",
    "PerWay",
    "Probe",
    "Way",
    "choice",
    "duration",
    "flag",
    "inf",
    "integer",
    "number",
    "random",
    "rate",
]


class Probe(NamedTuple):
    """A probe that came back. All times are whole nanoseconds.

    Attributes:
        sent: When it was sent.
        up: How long it took on the way up.
        down: How long it took on the way down.
    """

    sent: int
    up: int
    down: int

    @property
    def round_trip(self) -> int:
        """How long it took in all."""
        return self.up + self.down


@dataclass
class Way:
    """A shaper and its way.

    Attributes:
        base: The base rate, with which the run began, bit/s.
        least: The lowest rate, bit/s.
        most: The highest rate, bit/s.
        rate: The rate since the last step, bit/s.
        sent: Bytes that left the shaper since the last step.
        arrived: Bytes that came to it since then.
        backlog: Bytes that wait in it.
        achieved: What left it, bit/s.
        load: What left it as a share of its rate.
        delays: One-way delays on this way of the probes that came back, in nanoseconds.
    """

    base: int
    least: int
    most: int
    rate: int = 0
    sent: int = 0
    arrived: int = 0
    backlog: int = 0
    achieved: float = 0.0
    load: float = 0.0
    delays: list[int] = field(default_factory=list)


@dataclass
class Measured:
    """What was measured since the last step, or before the first one.

    Attributes:
        period: Time between two steps, ns.
        down: The shaper of the way down, if there is one.
        up: The shaper of the way up, if there is one.
        probes: Probes that came back, in the order of their coming back.
        lost: When those were sent that are now known to be lost: one sent later came back.
        oldest: When the oldest probe was sent that is still under way; ``None`` for none.
    """

    period: int
    down: Way | None
    up: Way | None
    probes: list[Probe] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    oldest: int | None = None


class Autorate(Own):
    """Base class of your own autorate algorithm, one object of which sets one or two shapers.

    Parameters are declared as for :class:`bluewater.aqm.Aqm`. All state is attributes that
    :meth:`start` sets. Times are whole nanoseconds of virtual time. A class defines

    - ``step(self, now, measured)``: called once a ``period``. ``measured`` is a :class:`Measured`.
      Returns the rates down and up in bit/s, as a pair; ``None`` leaves one as it is. The rates
      hold from that moment, within ``least`` and ``most``.
    """

    role: ClassVar[str] = "algorithm"
    methods: ClassVar[Mapping[str, tuple[str, ...]]] = {"step": ("now", "measured")}
    shown: ClassVar[tuple[str, ...]] = ("Measured", "Way", "Probe")

    def start(self, s: Measured) -> None:
        """Sets the initial state; ``s`` has the period and the shapers, nothing measured yet."""

    def step(self, now: int, measured: Measured) -> Sequence[float | None]:
        """Decides the rates down and up."""
        raise NotImplementedError(f"{type(self).__name__} has no step(self, now, measured)")


class PerWay(Autorate):
    """Base class of an algorithm that treats both ways alike, each by itself.

    A class defines ``decide(self, now, way, memory, measured)``, which returns the rate of one
    :class:`Way`, and may define ``begin(self, way, memory)``. ``memory`` is a namespace of that way
    alone.
    """

    def start(self, s: Measured) -> None:
        """Begins each way."""
        self.memories = [SimpleNamespace(), SimpleNamespace()]
        for way, memory in zip((s.down, s.up), self.memories, strict=True):
            if way is not None:
                self.begin(way, memory)

    def step(self, now: int, measured: Measured) -> Sequence[float | None]:
        """Decides for each way."""
        ways = zip((measured.down, measured.up), self.memories, strict=True)
        return [None if w is None else self.decide(now, w, memory, measured) for w, memory in ways]

    def begin(self, way: Way, memory: SimpleNamespace) -> None:
        """Sets the initial state of a way."""

    def decide(
        self, now: int, way: Way, memory: SimpleNamespace, measured: Measured
    ) -> float | None:
        """Decides the rate of a way."""
        raise NotImplementedError(f"{type(self).__name__} has no decide")


ALLOWED = "a pair, down and up, of rates in bit/s, 0 or more, or None to leave one as it is"
Bounds = tuple[int, int, int]
"""Base, least and most, bit/s."""
Traffic = tuple[int, int, int, int]
"""Rate, bytes sent and arrived since the last step, bytes that wait."""


class Driver:
    """Shows an object what was measured, and checks what it decides; the core calls it."""

    def __init__(
        self, object_: Autorate, period: int, down: Bounds | None, up: Bounds | None
    ) -> None:
        if object_.compiled:
            raise InputError("an autorate algorithm cannot be compiled", key=object_.role)
        self.object, self.period, self.bounds = object_, period, (down, up)

    def start(self) -> None:
        """Starts the object."""
        down, up = (b and Way(*b, b[0]) for b in self.bounds)
        self.object.start(Measured(self.period, down, up))

    def step(
        self,
        now: int,
        echoes: list[tuple[int, int, int]],
        lost: list[int],
        oldest: int | None,
        *traffic: Traffic | None,
    ) -> tuple[float | None, float | None]:
        """Makes a step; returns the rates down and up."""
        probes = [Probe(*each) for each in echoes]
        ways: list[Way | None] = []
        for bounds, seen, delays in zip(
            self.bounds,
            traffic,
            ([p.down for p in probes], [p.up for p in probes]),
            strict=True,
        ):
            if bounds is None or seen is None:
                ways.append(None)
                continue
            achieved = seen[1] * 8e9 / self.period
            ways.append(Way(*bounds, *seen, achieved, achieved / seen[0], delays))
        measured = Measured(self.period, ways[0], ways[1], probes, lost, oldest)
        given = self.object.step(now, measured)
        try:
            down, up = (_rate(each) for each in given)
        except (TypeError, ValueError):
            raise ValueError(f"it gave {given!r}; allowed: {ALLOWED}") from None
        return down, up


def _rate(given: float | None) -> float | None:
    if given is None:
        return None
    value = float(given)
    if not (isfinite(value) and value >= 0):
        raise ValueError(given)
    return value
