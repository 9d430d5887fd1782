"""A queue that marks by the clock: one packet, or all for a time."""

from __future__ import annotations

from typing import Any

from bluewater.aqm import ADMIT, SIGNAL, Aqm, duration


class Marks(Aqm):
    """Marks all packets from ``begin`` to ``until``; with equal times the first one after."""

    begin = duration("10s", "When marking begins.")
    until = duration("10s", "When it ends.")

    def start(self, now: int, queue: Any) -> None:  # noqa: ARG002
        """Nothing is marked yet."""
        self.marked = 0

    def on_arrival(self, now: int, packet: Any, queue: Any) -> float:  # noqa: ARG002
        """Marks by the clock; what cannot be marked is let through."""
        if now < self.begin or packet.ecn == 0:
            return ADMIT
        if now < self.until or (self.until == self.begin and self.marked == 0):
            self.marked += 1
            return SIGNAL
        return ADMIT
