"""AIMD that knows when a Starlink dish may change its satellite.

Starlink assigns satellites anew each 15 s, at 12, 27, 42 and 57 s of each minute: the rate and the
path change there. Around these instants the rate is held at a share of itself, so that a lower
new rate meets a short queue, and what probes say of the outage does not count.
"""

from bluewater.autorate import duration, number
from bluewater.autorates.aimd import Aimd


class Slots(Aimd):
    """AIMD on one-way delays that lowers the rate around each 15-s step of Starlink."""

    first = duration("12s", "Time of the first step; they follow each 15 s.")
    before = duration("300ms", "How long before a step the rate is lowered.")
    after = duration("700ms", "How long after a step.")
    share = number(0.7, "Share of the rate meanwhile.", low=0.01, high=1)

    def decide(self, now, way, memory, measured):
        slot = (now - self.first + self.before) % 15_000_000_000
        if slot < self.before + self.after:
            memory.recent, memory.baseline = [], memory.baseline and min(
                [memory.baseline, *way.delays]
            )
            return max(memory.rate * self.share, way.least)
        return super().decide(now, way, memory, measured)
