"""The queue disciplines that may be on a path, and the ranges of their parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bluewater.study.identify.path import Queue
from bluewater.study.search.optimise import Range
from bluewater.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bluewater.study.search.optimise import Point, Space


@dataclass(frozen=True)
class Room:
    """What waited in a queue at most, if there is only one.

    Attributes:
        size: Bytes.
        packet: Bytes of a full packet.
    """

    size: float
    packet: int

    @property
    def packets(self) -> float:
        """Full packets."""
        return self.size / self.packet


_DEEPEST = 20_000.0
"""The deepest buffer of a search, in packets, unless more waited."""


@dataclass(frozen=True)
class Family:
    """A discipline as candidate.

    Attributes:
        name: Its name.
        fair: Whether it keeps a queue per flow; then a waiting time says little about the buffer.
        fixed: Parameters that are not searched.
        axes: Those that are, with their ranges; each has its default first.
        ecn: Whether it can mark.
        early: Whether it drops before the buffer is full.
    """

    name: str
    axes: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    fair: bool = False
    ecn: bool = True
    early: bool = True


_LINUX = {"preset": "linux"}
_CODEL = {"target": (0.005, 0.001, 0.1), "interval": (0.1, 0.02, 0.6)}
_RED = {"min_th": (0.33, 0.03, 0.8), "wide": (3, 1.5, 6), "max_p": (0.1, 0.01, 1)}
_PIE = {"target": (0.015, 0.002, 0.15)}
FAMILIES = (
    Family("droptail", ecn=False, early=False),
    Family("drop-front", ecn=False, early=False),
    Family("red", _RED, _LINUX),
    Family("ared", {"target": (0.005, 0.001, 0.1)}),
    Family("blue", {"freeze_time": (0.1, 0.01, 1.0), "increment": (0.02, 0.001, 0.1)}),
    Family("codel", _CODEL, _LINUX),
    Family("cobalt", _CODEL),
    Family("pie", _PIE, _LINUX),
    Family("choke", _RED, _LINUX),
    Family("sfb", {"bin_size": (19, 5, 100), "increment": (5e-4, 1e-4, 5e-3)}, _LINUX),
    Family("dualpi2", {"target": (0.015, 0.003, 0.1), "min_th": (0.001, 0.0002, 0.01)}, _LINUX),
    Family("sfq", fixed=_LINUX, fair=True, ecn=False, early=False),
    Family("drr", fair=True, ecn=False, early=False),
    Family("fq-codel", _CODEL, _LINUX, fair=True),
    Family("fq-pie", _PIE, _LINUX, fair=True),
    Family("cake", {"rtt": (0.1, 0.005, 1.0)}, fair=True),
)


def space(family: Family, room: Room) -> Space:
    """The axes of a search.

    Args:
        family: The candidate.
        room: What waited at most.
    """
    most = room.packets
    if family.fair:
        axes: Space = {"buffer": Range(20.0, _DEEPEST)}
    elif family.early:
        axes = {"buffer": Range(max(2.0, 0.7 * most), max(_DEEPEST, 1.4 * most))}
    else:
        axes = {"buffer": Range(max(1.0, 0.7 * most), max(3.0, 1.5 * most)), "unit": UNITS}
    return axes | {name: Range(low, high) for name, (_, low, high) in family.axes.items()}


UNITS = ["packets", "bytes"]
"""What a buffer counts."""


def starts(family: Family, room: Room) -> list[Point]:
    """Where a search begins: at the defaults, and at what is set for other round trips."""
    most = max(2.0, room.packets)
    if family.fair:
        point: Point = {"buffer": 10240.0 if family.early else 127.0}
    else:
        point = (
            {"buffer": max(1000.0, most)} if family.early else {"buffer": most, "unit": UNITS[0]}
        )
    point |= {name: axis[0] for name, axis in family.axes.items()}
    if "interval" in family.axes:
        others = [{"target": each / 20, "interval": each} for each in _TRIPS]
    else:
        others = [{"rtt": each} for each in _TRIPS if "rtt" in family.axes]
    return [point, *(point | other for other in others)]


_TRIPS = (0.04, 0.25)
"""Round trips, s, short and long, for which CoDel and its kin are set."""


def queue(family: Family, point: Point, rate: float, room: Room, ecn: bool) -> Queue:
    """The path's queue for a point of the search."""
    params = dict(family.fixed)
    if family.ecn and family.name != "dualpi2":
        params["ecn"] = ecn
    for name in family.axes.keys() - {"wide"}:
        params[name] = written(family, name, point, room)
    if "wide" in family.axes:
        top = {"min_th": point["min_th"] * point["wide"]}
        params["max_th"] = written(family, "min_th", top, room)
    if family.name == "sfb":
        params["bin_limit"] = f"{round(1.25 * point['bin_size'])}p"
        params["decrement"] = float(f"{point['increment'] / 11:.4g}")
    return Queue(family.name, written(family, "buffer", point, room), rate, params)


_TIMES = ("target", "interval", "freeze_time", "rtt")


def written(family: Family, name: str, point: Point, room: Room) -> Any:
    """A value of an axis as scenario files have it, rounded to three digits."""
    value = float(f"{point[name]:.3g}")
    if name == "buffer":
        whole = max(1, round(point["buffer"]))
        by_bytes = point.get("unit") == "bytes" or family.name == "red"
        return f"{whole * room.packet}B" if by_bytes else f"{whole}p"
    if name in _TIMES or (family.name, name) == ("dualpi2", "min_th"):
        return duration_text(value)
    if name == "min_th":  # as a share of the bytes that waited at most
        least = max(1, round(point[name] * (room.size if family.name == "red" else room.packets)))
        return f"{least}B" if family.name == "red" else f"{least}p"
    return f"{round(value)}p" if name == "bin_size" else value
