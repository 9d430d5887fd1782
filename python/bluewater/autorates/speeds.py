"""A memory of speeds that were good, from which one is drawn when delay rises.

The idea is sqm-autorate's, as its README describes it; the code and the constants that are not
named there are ours. Under load without delay the rate rises, first exponentially and then
linearly, and the rate achieved joins the last ``size`` good ones. When the round trip is more than
``threshold`` above the fastest one, the rate becomes a good one drawn at random, and at most
0.9 times the present one.
"""

from bluewater.autorate import PerWay, duration, integer, number, random


class Speeds(PerWay):
    """Draws a lower rate at random from those that were good before."""

    threshold = duration("15ms", "Rise of the round trip that counts as bufferbloat.", low="1ms")
    size = integer(100, "Good rates that are remembered.", low=1)
    high = number(0.8, "Share of the rate above which the load is high.", low=0, high=1)
    rest = duration("500ms", "Time between two changes.")

    def begin(self, way, memory):
        memory.rate, memory.baseline, memory.changed = float(way.base), None, -self.rest
        memory.delays = []
        memory.good = [way.base * (0.75 + 0.5 * random()) for _ in range(self.size)]
        memory.at = 0

    def decide(self, now, way, memory, measured):
        for probe in measured.probes:
            if memory.baseline is None:
                memory.baseline = probe.round_trip
            share = 0.001 if probe.round_trip >= memory.baseline else 0.9
            memory.baseline += share * (probe.round_trip - memory.baseline)
            memory.delays = [*memory.delays, probe.round_trip - memory.baseline][-5:]
        if now - memory.changed < self.rest or not memory.delays:
            return memory.rate
        # One slow probe of five is noise.
        delay = sorted(memory.delays)[len(memory.delays) // 2]
        if delay > self.threshold:
            drawn = memory.good[int(random() * self.size)]
            memory.rate = min(drawn, 0.9 * memory.rate)
            memory.changed = now
        elif way.load > self.high:
            memory.good[memory.at] = way.achieved
            memory.at = (memory.at + 1) % self.size
            room = max(1 - memory.rate / max(memory.good), 0)
            memory.rate += memory.rate * 0.1 * room + 0.03 * way.base
            memory.changed = now
        memory.rate = min(max(memory.rate, way.least), way.most)
        return memory.rate
