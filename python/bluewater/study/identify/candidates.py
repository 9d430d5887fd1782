"""The queue disciplines that may be on a path, and the ranges of their parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from bluewater.study.identify.path import Queue
from bluewater.units import duration_text

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

Point = dict[str, Any]
"""A value for each axis and choice of a family, by name."""


@dataclass(frozen=True)
class Room:
    """What waited in a queue, if there is only one.

    Attributes:
        size: Bytes at most.
        packet: Bytes of a full packet.
        usual: Time in the queue while it loses or marks packets, s: the median.
    """

    size: float
    packet: int
    usual: float

    @property
    def packets(self) -> float:
        """Full packets."""
        return self.size / self.packet


_DEEPEST = 20_000.0
"""The deepest buffer of a search, in packets, unless more waited."""


Choices = dict[str, tuple[Any, ...]]
"""What has no order, by name."""
_LINUX: Choices = {"preset": ("linux", None)}
_UNITS: Choices = {"unit": ("packets", "bytes")}
_HASHES: Choices = {"hash": tuple(range(16))}
"""Keys of a hash into few queues: which flows share one."""


@dataclass(frozen=True)
class Family:
    """A discipline as candidate.

    Attributes:
        name: Its name.
        axes: Parameters that are searched: default, least and largest value.
        choices: What has no order: its preset, or what its buffer counts.
        fair: Whether it keeps a queue per flow; then a waiting time says little about the buffer.
        ecn: Whether it can mark.
        early: Whether it drops before the buffer is full.
    """

    name: str
    axes: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    choices: Choices = field(default_factory=dict)
    fair: bool = False
    ecn: bool = True
    early: bool = True

    @property
    def apart(self) -> bool:
        """Whether it treats flows of one codepoint differently."""
        return self.fair or self.name in ("choke", "sfb")

    def beside_others(self) -> Family:
        """The same with cross traffic, whose flows may be so many."""
        others = {"others": (1, 2, 4)} if self.apart else {}
        return replace(self, choices={**self.choices, **others})


_CODEL = {"target": (0.005, 0.001, 0.1), "interval": (0.1, 0.02, 0.6)}
_RED = {
    "max_th": (0.85, 0.2, 4),
    "min_th": (0.33, 0.05, 0.95),
    "max_p": (0.1, 0.01, 1),
    "w_q": (0.0625, 0.001, 0.5),
}
_PIE = {"target": (0.015, 0.002, 0.15)}
_TICKS: Choices = {"t_update": ("15ms", "20ms", "30ms")}
"""PIE's updates by the RFC, and by Linux's timer: 15 ms become 16, 20 or 30 with 1000, 250 or 100
ticks a second."""
_BLUE = {
    "freeze_time": (0.1, 0.01, 1.0),
    "increment": (0.02, 0.001, 0.1),
    "initial": (0.001, 0.001, 1.0),
}
_RED_KINDS: dict[str, dict[str, Any]] = {
    "linux": {"preset": "linux"},
    "gentle": {},
    "packets": {"gentle": False},
}
"""Linux's RED counts bytes. One that counts packets drops all above ``max_th``, or if it is gentle
all above twice as much."""
FAMILIES = (
    Family("droptail", choices=_UNITS, ecn=False, early=False),
    Family("drop-front", choices=_UNITS, ecn=False, early=False),
    Family("red", _RED, {"kind": ("linux",)}),
    Family("ared", {"target": (0.005, 0.001, 0.1)}),
    Family("blue", _BLUE),
    Family("codel", _CODEL, _LINUX),
    Family("cobalt", _CODEL),
    Family("pie", _PIE, _LINUX | _TICKS),
    Family("choke", _RED, _LINUX),
    Family("sfb", {"bin_size": (19, 5, 100), "increment": (5e-4, 1e-4, 5e-3)}, _LINUX),
    Family("dualpi2", {"target": (0.015, 0.003, 0.1), "min_th": (0.001, 0.0002, 0.01)}, _LINUX),
    Family("sfq", choices=_LINUX | _HASHES, fair=True, ecn=False, early=False),
    Family("drr", fair=True, ecn=False, early=False),
    Family("fq-codel", _CODEL, _LINUX, fair=True),
    Family("fq-pie", _PIE, _LINUX | _TICKS, fair=True),
    Family("cake", {"rtt": (0.1, 0.005, 1.0)}, fair=True),
)
SEARCHED = FAMILIES + tuple(
    replace(family, choices={"kind": (kind,)})
    for family in FAMILIES if "kind" in family.choices
    for kind in _RED_KINDS if kind != "linux"
)  # fmt: skip
"""All that are searched: each kind of RED by itself."""


def bounds(family: Family, name: str, room: Room) -> tuple[float, float]:
    """The least and the largest value that a search tries.

    Args:
        family: The candidate.
        name: An axis, or ``buffer``.
        room: What waited at most.
    """
    most = room.packets
    if name != "buffer":
        return family.axes[name][1:]
    if family.fair:
        return 20.0, _DEEPEST
    if family.early:
        return max(2.0, 0.7 * most), max(_DEEPEST, 1.4 * most)
    return max(1.0, 0.7 * most), max(3.0, 1.5 * most)


def starts(family: Family, room: Room) -> list[Point]:
    """Where a search begins.

    With the defaults, with a buffer that fills and one that does not, with what is set for other
    round trips, and with a target near the time that packets waited.
    """
    most = max(2.0, room.packets)
    point: Point = {name: axis[0] for name, axis in family.axes.items()}
    point |= {name: each[0] for name, each in family.choices.items()}
    if family.fair:
        buffers = [10240.0, 127.0] if family.axes else [127.0, 60.0, 300.0, 800.0]
    else:
        buffers = [max(1000.0, most), most] if family.early else [most]
    points = [point | {"buffer": each} for each in buffers]
    others: list[Point] = []
    if "interval" in family.axes:
        others = [{"target": each / 20, "interval": each} for each in _TRIPS]
    elif "rtt" in family.axes:
        others = [{"rtt": each} for each in _TRIPS]
    elif "target" in family.axes:
        low, high = bounds(family, "target", room)
        ticks = family.choices.get("t_update", (None,))
        others = [
            {"target": min(max(room.usual * each, low), high), "t_update": tick}
            for each in (0.5, 1.0) for tick in ticks
        ]  # fmt: skip
    elif "initial" in family.axes:
        others = [{"buffer": most, "initial": each} for each in _BEFORE]
    elif "w_q" in family.axes:
        others = [{"w_q": 0.016}, {"max_th": 1.7}]
        others += [{"w_q": 0.016, "max_p": each} for each in (0.3, 0.03)]
        if "preset" in point:
            others.append({"preset": None, "max_th": 0.45, "w_q": 0.002})
        elif not _by_bytes(point):
            others = [
                {"w_q": 0.002, "max_th": max_th, "buffer": buffer}
                for max_th in (0.45, 0.7, 0.95) for buffer in buffers
            ]  # fmt: skip
            others += [others[1] | {"max_p": each} for each in (0.3, 0.03)]
            others += [others[-1] | {"w_q": 0.01, "max_th": each} for each in (0.7, 0.95)]
    elif not family.axes:
        values = product(*(each[:2] for each in family.choices.values()))
        chosen = [dict(zip(family.choices, each, strict=True)) for each in values]
        return [each | other for each in points for other in chosen]
    return points + [points[0] | other for other in others]


_BEFORE = (0.1, 0.35)
"""Probabilities of BLUE that overloads before the recording may leave, such as the search for the
rate."""
_TRIPS = (0.04, 0.25)
"""Round trips, s, short and long, for which CoDel and its kin are set."""


def near(family: Family, point: Point, spread: float, room: Room, random: random.Random) -> Point:
    """A point near another one: by about this share, in some axes and sometimes in a choice."""
    made = dict(point)
    names = ["buffer", *family.axes]
    for name in random.sample(names, random.randint(1, len(names))):
        low, high = bounds(family, name, room)
        made[name] = min(max(point[name] * math.exp(random.gauss(0, spread)), low), high)
    for name, values in family.choices.items():
        if random.random() < _OTHER:
            made[name] = random.choice(values)
    return made


_OTHER = 0.25
"""How often a near point draws another choice."""


def queue(family: Family, point: Point, rate: float, room: Room, ecn: bool) -> Queue:
    """The path's queue for a point of the search."""
    params = {name: point[name] for name in ("preset", "t_update") if point.get(name)}
    params |= _RED_KINDS[point["kind"]] if "kind" in point else {}
    if family.ecn and family.name != "dualpi2":
        params["ecn"] = ecn
    params |= {name: written(family, name, point, room) for name in family.axes}
    if family.name == "sfb":
        params["bin_limit"] = f"{round(1.25 * point['bin_size'])}p"
        params["decrement"] = float(f"{point['increment'] / 11:.4g}")
    return Queue(family.name, written(family, "buffer", point, room), rate, params)


_TIMES = ("target", "interval", "freeze_time", "rtt")


def _by_bytes(point: Point) -> bool:
    """Whether a queue counts bytes, and not packets."""
    return point.get("unit") == "bytes" or point.get("kind") == "linux"


def written(family: Family, name: str, point: Point, room: Room) -> Any:
    """A value of an axis as scenario files have it, rounded to three digits."""
    value = float(f"{point[name]:.3g}")
    if name == "buffer":
        whole = max(1, round(point["buffer"]))
        return f"{whole * room.packet}B" if _by_bytes(point) else f"{whole}p"
    if name in _TIMES or (family.name, name) == ("dualpi2", "min_th"):
        return duration_text(value)
    if name in ("min_th", "max_th"):  # as shares of what waited at most, and of max_th
        share = point["max_th"] * (1 if name == "max_th" else point["min_th"])
        length = max(1, round(share * (room.size if _by_bytes(point) else room.packets)))
        return f"{length}B" if _by_bytes(point) else f"{length}p"
    return f"{round(value)}p" if name == "bin_size" else value
