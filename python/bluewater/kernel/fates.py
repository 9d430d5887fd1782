"""What became of packets, and where two lists of that differ."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bluewater.kernel import uml
from bluewater.kernel.frames import packets
from bluewater.kernel.settings import Setting, flow

if TYPE_CHECKING:
    from collections.abc import Sequence

STATISTICS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sent bytes", "sent packets"), "sent"),
    (("packets waiting", "bytes waiting", "drops", "requeues", "overlimits"), "queue"),
    ((), "own"),
)
"""Names of what a discipline counts, as ``uml.statistics`` reads them."""
SAME_NS = 2000
"""Departures that lie less apart are the same: a clock's looks and rounding, not a decision."""


@dataclass(frozen=True)
class Fate:
    """What became of a packet.

    Attributes:
        left: When it left the queue, ns after the first packet came; ``None`` if it was dropped.
        marked: Whether it left with a mark that it did not bring.
        dscp: Its codepoint when it left, if it is another.
        others: The same of its other segments.
    """

    left: int | None
    marked: bool = False
    dscp: int | None = None
    others: tuple[Fate, ...] = ()

    def is_as(self, other: Fate) -> bool:
        """Whether the other is the same but for a clock's looks."""
        if self.left is None or other.left is None:
            return self.left is other.left
        return (
            (self.marked, self.dscp) == (other.marked, other.dscp)
            and abs(self.left - other.left) < SAME_NS
            and len(self.others) == len(other.others)
            and all(a.is_as(b) for a, b in zip(self.others, other.others, strict=True))
        )

    def __str__(self) -> str:
        if self.left is None:
            return "dropped"
        marked = "marked and " * self.marked
        dscp = "" if self.dscp is None else f" with DSCP {self.dscp}"
        others = f", and {len(self.others)} segments more" if self.others else ""
        return f"{marked}sent at {self.left / 1e6:.3f} ms{dscp}{others}"


def of_kernel(setting: Setting, found: dict[str, Any]) -> list[Fate]:
    """The fates of a setting's packets from what the kernel's first process found."""
    bytes_ = [flow(text).byte for text in setting.flows.split()]
    return [
        _fate(bytes_[which], segments)
        for (_, which, _), segments in zip(packets(setting), found["packets"], strict=True)
    ]


def _fate(byte: int, segments: Sequence[Any]) -> Fate:
    """The fate of a packet that came with a byte, from when and how its segments left."""
    first, *others = [
        Fate(left, now & 3 != byte & 3, None if now >> 2 == byte >> 2 else now >> 2)
        for left, now in segments
    ] or [Fate(None)]
    return replace(first, others=tuple(others))


def of_statistics(one: dict[str, Any], other: dict[str, Any], *, nested: bool = False) -> str:
    """The first difference of two kernels' statistics, or nothing.

    The discipline's own are attributes of netlink if they are ``nested``.
    """
    for (n, a), (_, b) in zip(one["statistics"], other["statistics"], strict=True):
        for names, kind in STATISTICS:
            # A kernel may count more than another, or other things.
            if len(a[kind]) != len(b[kind]):
                continue
            if kind == "own" and nested and _layout(a[kind]) != _layout(b[kind]):
                continue
            for at, (first, second) in enumerate(zip(a[kind], b[kind], strict=True)):
                if first != second:
                    name = names[at] if names else f"word {at} of the discipline's own"
                    return f"after {n} packets {name}: {first}, TREE2: {second}"
    return ""


def _layout(words: Sequence[int]) -> list[tuple[int, int]]:
    """The kinds and lengths of attributes."""
    found = uml.attributes(struct.pack(f"={len(words)}I", *words))
    return [(kind, len(value)) for kind, value in found.items()]


def first_difference(a: Sequence[Fate], b: Sequence[Fate]) -> int | None:
    """The packet that differs first in time, by when it leaves in either."""
    differ = [n for n, (one, other) in enumerate(zip(a, b, strict=True)) if not one.is_as(other)]
    return min(differ, key=lambda n: min(_left(a[n]), _left(b[n])), default=None)


def _left(fate: Fate) -> float:
    return float("inf") if fate.left is None else fate.left
