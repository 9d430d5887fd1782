"""Takes what arrives for the line's rate, whenever a queue stands at the line.

Behind a line whose queue is not empty exactly the line's rate arrives. So when the one-way delay
rises above the threshold, the rate down becomes a share of what arrived in the last steps; it rises
slowly under load. Up, the shaper is before the line and sees nothing arrive from it: there the rate
falls by the same share of itself.
"""

from bluewater.autorate import Autorate, duration, number


class Arrivals(Autorate):
    """Sets the rate to a share of what the line delivers while probes are delayed."""

    threshold = duration("15ms", "Delay above the least of 10 s that counts.", low="1ms")
    share = number(0.9, "Share of what arrives.", low=0.1, high=1)
    high = number(0.75, "Share of the rate above which the load is high.", low=0, high=1)
    up = number(1.02, "Factor of an increase.", low=1, high=4)
    rest = duration("200ms", "Time between two decreases.")

    def start(self, s):
        self.rates = [way and float(way.base) for way in (s.down, s.up)]
        self.lowered, self.least, self.arrived = [-self.rest] * 2, [[], []], []

    def step(self, now, measured):
        if measured.down is not None:
            self.arrived = [*self.arrived, measured.down.arrived * 8e9 / measured.period][-3:]
        for i, way in enumerate((measured.down, measured.up)):
            if way is not None and way.delays:
                self.rates[i] = self.decide(now, i, way)
        return self.rates

    def decide(self, now, i, way):
        self.least[i] = [p for p in self.least[i] if p[0] > now - 10_000_000_000]
        self.least[i].append((now, min(way.delays)))
        rate = self.rates[i]
        if min(way.delays) > min(p[1] for p in self.least[i]) + self.threshold:
            if now - self.lowered[i] >= self.rest:
                self.lowered[i] = now
                seen = sum(self.arrived) / len(self.arrived) if i == 0 else rate
                rate = min(rate, self.share * seen)
        elif way.load > self.high:
            rate *= self.up
        return min(max(rate, way.least), way.most)
