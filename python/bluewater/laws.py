"""Tests a Python class against the laws of queue disciplines and congestion controllers."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import tomli_w

from bluewater import _core
from bluewater.arguments import MAPPING, NUMBER, Argument, checked
from bluewater.control import PERSISTENT
from bluewater.endless import watched
from bluewater.errors import unknown
from bluewater.own import LANGUAGE, Own, canonical, load, parameters, role_of, text, uninterrupted
from bluewater.sources import extended

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

LAWS = {
    "works": "no method raises, and every return value is a decision",
    "books": "arrivals = departures + drops + queued, and no packet leaves twice",
    "signals": "signals are finite, and those declared as 0 … 1 stay within",
    "determinism": "the same random numbers give the same decisions",
    "restart": "a new object decides like the first: all state is in the object",
    "start": "decisions do not depend on the time at which the run begins",
    "copy": "a copy of an object shares no state with it",
    "calm": "a queue that holds no packet longer than its transmission time signals nothing",
    "compiled": "compiled methods decide like the Python methods",
}
"""The laws of queue disciplines by name."""

CONTROLLER_LAWS = {
    "works": LAWS["works"],
    "determinism": LAWS["determinism"],
    "bounded": "the window is between the least one and 2⁴⁰ bytes",
    "growth": "the window opens only if it was used (RFC 9002 §7.8)",
    "persistent": "persistent congestion leaves a window of at most two packets (RFC 9002 §7.6.2)",
    "compiled": LAWS["compiled"],
}
"""The laws of congestion controllers by name."""

_OWN = Argument((str, type), "a class, or its name as python:FILE:CLASS")

OPERATIONS = 600
ROOM = 20
"""Size of the queue, in packets."""
RATE = 8_000_000
"""Rate of the queue's link, in bit/s."""
LATER = 1_000_000_000_007
"""Delay of the whole run for the law ``start``, in nanoseconds."""


@dataclass(frozen=True)
class Finding:
    """A law that a class breaks.

    Attributes:
        law: Its name in [LAWS][bluewater.laws.LAWS] or
            [CONTROLLER_LAWS][bluewater.laws.CONTROLLER_LAWS].
        case: The parameters other than the defaults, and the traffic.
        said: A description of the failure.
    """

    law: str
    case: str
    said: str

    def __str__(self) -> str:
        meaning = {**LAWS, **CONTROLLER_LAWS}[self.law]
        return f"{self.law} ({meaning}): {self.said} [{self.case}]"


class _BrokenError(Exception):
    def __init__(self, law: str, said: str) -> None:
        super().__init__(said)
        self.law = law
        self.said = said


@contextmanager
def _told_as(law: str) -> Iterator[None]:
    """A class that fails only the second time breaks this law."""
    try:
        yield
    except _BrokenError as broken:
        how = "in Python" if law == "compiled" else "the second time"
        raise _BrokenError(law, f"{how}: {broken.said}") from broken


class _Op(NamedTuple):
    """An arrival (with a length), a wait (only a time), or else a departure."""

    wait: int = 0
    len: int = 0
    flow: int = 0
    ecn: int = 0


class _Class(NamedTuple):
    code: str
    file: str
    name: str
    ratios: frozenset[str]
    """Signals declared as 0 … 1."""

    def again(self) -> _Class:
        """The class from a new execution of its file."""
        return self._replace(code=extended(self.code, "#\n"))

    def plain(self) -> _Class:
        """The class with its methods in Python, not compiled."""
        return self._replace(code=extended(self.code, f"\n{self.name}.compiled = False\n"))


@checked(own=_OWN, params=MAPPING, seeds=NUMBER)
def check(
    own: type[Own] | str,
    params: Mapping[str, Any] | None = None,
    *,
    seeds: int = 3,
    but: Collection[str] = (),
) -> tuple[Finding, ...]:
    """Tests a class against the laws, with the given parameters and with each range's ends.

    A queue discipline is tested against [LAWS][bluewater.laws.LAWS]: bursts, drains, pauses and
    idle times at a queue of 20 packets and 8 Mb/s. A congestion controller is tested against
    [CONTROLLER_LAWS][bluewater.laws.CONTROLLER_LAWS], over links with drops, marks, random losses,
    pauses and an outage.

    Args:
        own: The class, or its name as ``python:FILE:CLASS``.
        params: Parameters that replace the defaults.
        seeds: Number of random traffic patterns, or of seeds for each link.
        but: Laws to leave out, such as ``calm`` for a link with random losses.

    Returns:
        The first violation of each broken law; empty if all hold.

    Raises:
        InputError: There is no such class, or it does not take the parameters.
    """
    code, file, name = text(own)
    cls = load(code, file, name, role_of(code, file, name))
    laws = LAWS if cls.role == "aqm" else CONTROLLER_LAWS
    for law in but:
        if law not in laws:
            raise unknown("law", law, laws, key="but")
    ratios = frozenset(each for each, (unit, _) in cls.signals.items() if unit.startswith("0 … 1"))
    made = _Class(code, file, name, ratios)
    found: dict[str, Finding] = {}
    with watched():
        for finding in _findings(made, cls, params or {}, seeds):
            found.setdefault(finding.law, finding)
            if finding.law == "works":
                break  # a class that fails is not judged further
    return tuple(found[law] for law in laws if law in found and law not in but)


def _findings(
    made: _Class, cls: type[Own], params: Mapping[str, Any], seeds: int
) -> Iterator[Finding]:
    """Yields the laws that the class breaks."""
    differs = False
    for changed in _cases(cls):
        settings = {key: _text(value) for key, value in {**params, **changed}.items()}
        canonical(*made[:3], settings, cls.role)
        if cls.role != "aqm":
            yield from _controlled(made, settings, seeds, cls.compiled)
            continue
        for seed in range(seeds):
            case = ", ".join(f"{key} = {text}" for key, text in settings.items())
            if differs:
                break  # after the first difference anything may differ
            for law, said in _tried(made, settings, seed, cls.compiled):
                differs |= law in ("determinism", "restart")
                yield Finding(law, f"{case or 'as declared'}; traffic {seed}", said)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cases(cls: type[Own]) -> Iterator[dict[str, str]]:
    """Yields the parameters unchanged, then each at each end of its range or with each choice."""
    yield {}
    for key, each in parameters(cls).items():
        for end in each.words or (each.low, each.high):
            if end is not None and end != each.default:
                yield {key: end}


def _tried(
    cls: _Class, settings: Mapping[str, str], seed: int, compiled: bool
) -> Iterator[tuple[str, str]]:
    """Yields each broken law with a description."""
    ops = _traffic(seed)
    try:
        first = _run(cls, settings, ops)
        others = {"determinism": cls.again(), "restart": cls}
        if compiled:
            others["compiled"] = cls.plain()
        for law, other in others.items():
            with _told_as(law):
                found = _run(other, settings, ops)
            _same(law, first, found)
        _same(
            "start", [each[:2] for each in first], [e[:2] for e in _run(cls, settings, ops, LATER)]
        )
        _copied(cls, settings, ops)
    except _BrokenError as broken:
        yield broken.law, broken.said
        if broken.law in ("works", "books"):
            return
    try:
        trace = _run(cls, settings, _calm(seed))
    except _BrokenError as broken:
        yield broken.law, broken.said
        return
    signalled = next((at for at, (events, _, _) in enumerate(trace) if events), None)
    if signalled is not None:
        yield "calm", f"packet {trace[signalled][0][0][1]} was {trace[signalled][0][0][0]}"


_FATES = ("drops and marks", "sent", "signals")
"""The parts of a row of :data:`_Trace`."""


def _same(law: str, first: Sequence[Any], other: Sequence[Any]) -> None:
    """Compares what happened at each operation at a queue."""
    for at, (one, two) in enumerate(zip(first, other, strict=True)):
        if repr(one) != repr(two):
            raise _BrokenError(law, f"operation {at}: {_difference(law, _FATES, one, two)}")


def _difference(law: str, names: Sequence[str], one: Sequence[Any], two: Sequence[Any]) -> str:
    """The parts that differ, by their names."""
    once, again = ("compiled", "in Python") if law == "compiled" else ("first", "then")
    return ", ".join(
        f"{name} {a} {once}, {b} {again}"
        for name, a, b in zip(names, one, two, strict=False)
        if repr(a) != repr(b)
    )


def _traffic(seed: int) -> list[_Op]:
    """Bursts, drains, pauses and idle times at random."""
    rng = Random(seed)
    ops, arrivals = [], 0.7
    for number in range(OPERATIONS):
        if number % 50 == 0:
            arrivals = rng.choice([0.9, 0.5, 0.2, 0.7])
        if rng.random() < 0.3:
            ops.append(_Op(wait=int(rng.random() * 1_000_000) * rng.choice([0, 1, 1, 3, 200])))
        elif rng.random() < arrivals:
            size = rng.choice([40, 576, 1000, 1500, 9000])
            ops.append(_Op(len=size, flow=rng.randrange(5), ecn=rng.randrange(4)))
        else:
            ops.append(_Op())
    return ops


def _calm(seed: int) -> list[_Op]:
    """One packet at a time, each sent before the next one arrives."""
    rng = Random(seed)
    parts = ([_Op(len=1000, flow=rng.randrange(5)), _Op(wait=1_000_000), _Op()] for _ in range(200))
    return [op for part in parts for op in part]


_Trace = list[tuple[list[tuple[str, int]], int | None, list[tuple[str, float]]]]
"""Per operation: the fate of packets, the packet sent, the signals afterwards."""


def _run(cls: _Class, settings: Mapping[str, str], ops: Sequence[_Op], start: int = 0) -> _Trace:
    """Runs the operations on a new queue, and checks counts and signals after each."""
    return _Tried(cls, settings, start).all(ops)


def _copied(cls: _Class, settings: Mapping[str, str], ops: Sequence[_Op]) -> None:
    tried = _Tried(cls, settings, 0)
    half = len(ops) // 2
    tried.all(ops[:half])
    copy = tried.copy()
    _same("copy", tried.all(ops[half:]), copy.all(ops[half:]))


class _Tried:
    """A queue, with independent counts of its packets and bytes."""

    def __init__(self, cls: _Class, settings: Mapping[str, str], start: int) -> None:
        self.cls = cls
        self.now = start
        self.lengths: list[int] = []
        self.queued: set[int] = set()
        try:
            self.queue = _core.Driven(cls[:3], list(settings.items()), ROOM, RATE, start)
        except ValueError as error:
            raise _BrokenError("works", str(error)) from error

    def copy(self) -> _Tried:
        copy = object.__new__(_Tried)
        copy.__dict__ = {**self.__dict__, "queued": set(self.queued), "lengths": [*self.lengths]}
        copy.queue = self.queue.copy()
        return copy

    def all(self, ops: Sequence[_Op]) -> _Trace:
        return [self.one(op) for op in ops]

    def one(self, op: _Op) -> tuple[list[tuple[str, int]], int | None, list[tuple[str, float]]]:
        """Does one operation, and checks counts and signals."""
        sent = None
        try:
            if op.wait:
                self.now += op.wait
                events = self.queue.wait(self.now)
            elif op.len:
                self.queued.add(len(self.lengths))
                self.lengths.append(op.len)
                events = self.queue.arrive(self.now, op.len, op.flow, op.ecn)
            else:
                sent, events = self.queue.depart(self.now)
            signals = self.queue.signals(self.now)
        except ValueError as error:
            raise _BrokenError("works", str(error)) from error
        gone = [number for what, number in events if what == "dropped"]
        self._balance(gone if sent is None else [*gone, sent])
        self._check(signals)
        return events, sent, signals

    def _balance(self, gone: Sequence[int]) -> None:
        for number in gone:
            if number not in self.queued:
                raise _BrokenError("books", f"packet {number} leaves twice")
            self.queued.remove(number)
        arrived, departed, dropped, queued = self.queue.books()
        own = [
            (len(each), sum(self.lengths[n] for n in each))
            for each in (range(len(self.lengths)), self.queued)
        ]
        sums = tuple(map(sum, zip(departed, dropped, queued, strict=True)))
        if arrived != sums or [arrived, queued] != own:
            raise _BrokenError(
                "books",
                f"arrived {arrived}, departed {departed}, dropped {dropped}, queued {queued} "
                f"(packets, bytes); counted outside: arrived {own[0]}, queued {own[1]}",
            )

    def _check(self, signals: Sequence[tuple[str, float]]) -> None:
        for name, value in signals:
            if not math.isfinite(value) or (name in self.cls.ratios and not 0 <= value <= 1):
                raise _BrokenError("signals", f"{name} = {value} at {self.now / 1e9:.9f} s")


PACKET = 1500
"""Packet length in bytes of a tested controller, whose least window is one packet."""
LARGEST = 2.0**40
"""The largest window that a controller may set, in bytes."""

_LINK = {"from": "a", "to": "b", "rate": "4mbit", "delay": "20ms"}
_GROUP = {
    "from": ["a"],
    "to": ["b"],
    "packet": f"{PACKET}B",
    "initial_window": 10,
    "window": "500p",
}
_SETTINGS: Mapping[str, dict[str, Any]] = {
    "drops": {"duration": "10s", "traffic": {"flows": 2, "handshake": True}},
    "marks": {"duration": "10s", "traffic": {"ecn": True}, "queue": {"aqm": "red"}},
    "losses": {
        "duration": "10s", "traffic": {"timestamps": True, "pacing": True},
        "link": {"loss": "3%", "jitter": "20ms", "reorder": True},
    },
    "pauses": {
        "duration": "20s",
        "traffic": {"app": "exponential", "on": "300ms", "off": "500ms", "rate": "2mbit"},
    },
    "outage": {
        "duration": "20s", "traffic": {},
        "link": {
            "rate_trace": {
                "steps": [["0s", "4mbit"], ["3s", "0bit"], ["12s", "4mbit"]], "repeat": False,
            },
        },
    },
}  # fmt: skip
"""Settings of the tests of controllers: a link of 4 Mb/s and 40 ms, a queue of 20 packets."""

_Calls = list[tuple[int, str, int, float, float, int, int]]
"""A record of each call, whose parts are :data:`_PARTS`."""
_PARTS = (
    "connection", "method", "time in ns", "window in bytes", "rate in bytes/s", "timer in ns",
    "window_limited or kind",
)  # fmt: skip


def _controlled(
    cls: _Class, settings: Mapping[str, str], seeds: int, compiled: bool
) -> Iterator[Finding]:
    """Yields the laws that a controller breaks with these parameters."""
    changed = ", ".join(f"{key} = {value}" for key, value in settings.items()) or "as declared"
    for name in _SETTINGS:
        for seed in range(1, seeds + 1):
            try:
                _keeps(cls, settings, name, seed, compiled)
            except _BrokenError as broken:
                yield Finding(broken.law, f"{changed}; {name}, seed {seed}", broken.said)


def _keeps(cls: _Class, settings: Mapping[str, str], name: str, seed: int, compiled: bool) -> None:
    """Tests the laws of one controller in one setting."""
    hash_, calls = _driven(cls, settings, name, seed)
    of = load(*cls[:3], "transport")
    _lawful(calls, [name for name in of.methods if hasattr(of, name)])
    others = {"determinism": cls.again()}
    if compiled:
        others["compiled"] = cls.plain()
    for law, other in others.items():
        with _told_as(law):
            other_hash, other_calls = _driven(other, settings, name, seed)
        for one, two in zip(calls, other_calls, strict=False):
            if repr(one) != repr(two):
                at = f"{one[1]} of connection {one[0]} at {one[2] / 1e9:.9f} s"
                raise _BrokenError(law, f"{at}: {_difference(law, _PARTS, one, two)}")
        if hash_ != other_hash:
            raise _BrokenError(
                law, f"the decision hash is {other_hash}, and {hash_} the first time"
            )


def _driven(cls: _Class, settings: Mapping[str, str], name: str, seed: int) -> tuple[str, _Calls]:
    setting = _SETTINGS[name]
    group = {
        **_GROUP, **setting["traffic"], "transport": f"{LANGUAGE}{cls.file}:{cls.name}",
        "code": cls.code, "params": dict(settings),
    }  # fmt: skip
    scenario = {
        "seed": seed,
        "duration": setting["duration"],
        "link": [{**_LINK, **setting.get("link", {})}],
        "queue": [{"link": "a->b", "aqm": "droptail", "buffer": "20p", **setting.get("queue", {})}],
        "traffic": [group],
        "measure": {"control": True},
    }
    try:
        with uninterrupted():
            return _core.controlled(tomli_w.dumps(scenario), f"<check of {cls.name}>")
    except ValueError as error:
        raise _BrokenError("works", str(error)) from error


def _lawful(calls: _Calls, methods: Collection[str]) -> None:
    """Checks the laws that hold for each call; ``methods`` are those that the class has."""
    before: dict[int, float] = {}
    used: dict[int, tuple[bool, float]] = {}
    """Whether the last acknowledgement found the window used, and the largest that was."""
    asked: dict[int, str] = {}
    """The method that was called last."""
    for connection, method, now, window, _, _, detail in calls:
        at = f"{method} at {now / 1e9:.9f} s"
        if method in methods:
            asked[connection] = at
        by = asked.get(connection, "start()")
        if not PACKET <= window <= LARGEST:
            raise _BrokenError("bounded", f"{by} leaves a window of {window} bytes")
        last = before.get(connection, window)
        was_used, most = used.get(connection, (True, window))
        unused = {"on_ack": not detail, "on_timer": not was_used and window > most}
        if window > last and unused.get(method):
            raise _BrokenError("growth", f"{at} opens the window from {last} to {window} bytes")
        if method == "on_ack":
            was_used, most = bool(detail), max(most, window if detail else 0)
        used[connection] = was_used, most
        if method == "on_congestion" and detail == PERSISTENT and window > 2 * PACKET:
            raise _BrokenError("persistent", f"{at} leaves a window of {window} bytes")
        before[connection] = window
