"""Multiplicative increase under load, multiplicative decrease when probes are delayed.

The rules, names and defaults are those that cake-autorate 3.2 describes (README, defaults.sh); the
code is ours. Of each probe the delay above a slowly rising baseline counts:

- bufferbloat: of the last ``window`` probes ``count`` are above ``threshold``. The rate is
  multiplied by 0.99 … ``down``, the less the higher the mean delay, and then rests.
- high load: more than ``high`` of the rate is used. The rate is multiplied by up to ``up``.
- low load: it returns to the base rate, by a hundredth at a time, and then rests longer.

cake-autorate takes half of a round trip for each way, or one-way delays if its pinger has them.
``switch_share`` is for Starlink, which assigns satellites anew at 12, 27, 42 and 57 s of each
minute: from 300 ms before to 700 ms after, the rate is that share of itself, and no probe counts.
"""

from bluewater.autorate import PerWay, duration, flag, integer, number


class Aimd(PerWay):
    """Raises the rate under load, lowers it when half of the round trip is delayed."""

    one_way = flag(False, "Whether it sees one-way delays, not half of round trips.")
    threshold = duration("30ms", "Delay above the baseline that counts.", low="1ms")
    raise_below = duration("10ms", "Mean delay up to which the rate rises by all of `up`.")
    lower_above = duration("60ms", "Mean delay from which it falls by all of `down`.")
    window = integer(6, "Probes that are looked at.", low=1)
    count = integer(3, "How many of them have to be delayed.", low=1)
    down = number(0.75, "Factor of the largest decrease.", low=0.01, high=0.99)
    up = number(1.04, "Factor of the largest increase.", low=1, high=4)
    high = number(0.75, "Share of the rate above which the load is high.", low=0, high=1)
    rest = duration("300ms", "Time between two decreases.")
    decay_rest = duration("1s", "Time between two steps towards the base rate.")
    switch_at = duration("12s", "Time of Starlink's first step; others follow each 15 s.")
    switch_share = number(1.0, "Share of the rate around these steps.", low=0.01, high=1)

    def begin(self, way, memory):
        memory.rate, memory.baseline, memory.mean = float(way.base), None, 0.0
        memory.recent, memory.lowered, memory.decayed = [], -self.rest, -self.decay_rest

    def decide(self, now, way, memory, measured):
        if self.switch_share < 1 and (now - self.switch_at + 0.3e9) % 15e9 < 1e9:
            memory.recent = []
            return max(memory.rate * self.switch_share, way.least)
        delays = way.delays if self.one_way else [p.round_trip / 2 for p in measured.probes]
        for delay in delays:
            if memory.baseline is None:
                memory.baseline = delay
            share = 0.001 if delay >= memory.baseline else 0.9
            memory.baseline += share * (delay - memory.baseline)
            above = delay - memory.baseline
            memory.mean += 0.095 * (above - memory.mean)
            memory.recent = [*memory.recent, above > self.threshold][-self.window :]
        if sum(memory.recent) >= self.count:
            if now - memory.lowered >= self.rest:
                memory.lowered = now
                part = self._part(memory.mean, self.threshold, self.lower_above)
                memory.rate *= 0.99 + part * (self.down - 0.99)
        elif way.load > self.high:
            part = 1 - self._part(memory.mean, self.raise_below, self.threshold)
            memory.rate *= 1 + part * (self.up - 1)
        elif now - memory.decayed >= self.decay_rest and now - memory.lowered >= self.rest:
            memory.decayed = now
            if memory.rate > way.base:
                memory.rate = max(memory.rate * 0.99, way.base)
            else:
                memory.rate = min(memory.rate * 1.01, way.base)
        memory.rate = min(max(memory.rate, way.least), way.most)
        return memory.rate

    def _part(self, delay, low, high):
        """How far a delay is from low to high, 0 … 1."""
        return min(max((delay - low) / max(high - low, 1), 0.0), 1.0)
