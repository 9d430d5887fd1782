"""What became of packets, and where two lists of that differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bluewater.kernel.settings import Setting, fields, packets

if TYPE_CHECKING:
    from collections.abc import Sequence

SAME_NS = 2000
"""Departures that lie less apart are the same: a clock's looks and rounding, not a decision."""


@dataclass(frozen=True)
class Fate:
    """What became of a packet.

    Attributes:
        left: When it left the queue, ns after the first packet came; ``None`` if it was dropped.
        marked: Whether it left with a mark that it did not bring.
    """

    left: int | None
    marked: bool = False

    def is_as(self, other: Fate) -> bool:
        """Whether the other is the same but for a clock's looks."""
        if self.left is None or other.left is None:
            return self.left is other.left
        return self.marked == other.marked and abs(self.left - other.left) < SAME_NS

    def __str__(self) -> str:
        if self.left is None:
            return "dropped"
        return f"{'marked and ' * self.marked}sent at {self.left / 1e6:.3f} ms"


def of_kernel(setting: Setting, row: Sequence[Any]) -> list[Fate]:
    """The fates of a setting's packets from what its first process found."""
    bytes_ = [fields(flow)[0] for flow in setting.flows.split()]
    return [
        Fate(None) if out is None else Fate(out[0], out[1] != bytes_[flow])
        for (_, flow, _), out in zip(packets(setting), row, strict=True)
    ]


def first_difference(a: Sequence[Fate], b: Sequence[Fate]) -> int | None:
    """The packet that differs first in time, by when it leaves in either."""
    differ = [n for n, (one, other) in enumerate(zip(a, b, strict=True)) if not one.is_as(other)]
    return min(differ, key=lambda n: min(_left(a[n]), _left(b[n])), default=None)


def _left(fate: Fate) -> float:
    return float("inf") if fate.left is None else fate.left
