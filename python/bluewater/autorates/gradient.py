"""The trend of the one-way delay: a queue that grows is a rate that is too high.

Of the last ``window`` the slope of a straight line through the delays (least squares) says by what
share the line is overbooked: packets that come ``x`` per cent too fast wait ``x`` per cent of the
time that has passed. The rate is lowered by that share, and raised while the slope is flat.
"""

from bluewater.autorate import PerWay, duration, number


class Gradient(PerWay):
    """Follows the slope of the one-way delay."""

    window = duration("500ms", "Time over which the slope is taken.", low="50ms")
    flat = number(0.02, "Slope up to which the delay counts as steady.", low=0, high=1)
    high = number(0.75, "Share of the rate above which the load is high.", low=0, high=1)
    up = number(1.03, "Factor of an increase.", low=1, high=4)
    drain = duration("20ms", "Delay above the least of 10 s that is drained.", low="1ms")

    def begin(self, way, memory):
        memory.rate, memory.points, memory.least = float(way.base), [], []

    def decide(self, now, way, memory, measured):
        memory.points += zip([p.sent for p in measured.probes], way.delays, strict=True)
        memory.points = [p for p in memory.points if p[0] > now - self.window]
        if way.delays:
            memory.least = [*memory.least, (now, min(way.delays))]
        memory.least = [p for p in memory.least if p[0] > now - 10_000_000_000]
        slope = self._slope(memory.points)
        if slope > self.flat:
            memory.rate = min(memory.rate, way.achieved or memory.rate) / (1 + min(slope, 1.0))
            memory.points = []
        elif memory.points and memory.points[-1][1] > min(p[1] for p in memory.least) + self.drain:
            memory.rate *= 0.97
        elif way.load > self.high:
            memory.rate *= self.up
        memory.rate = min(max(memory.rate, way.least), way.most)
        return memory.rate

    def _slope(self, points):
        """Of the line through the points; 0 if there are too few."""
        if len(points) < 4:
            return 0.0
        mean_x = sum(x for x, _ in points) / len(points)
        mean_y = sum(y for _, y in points) / len(points)
        over = sum((x - mean_x) ** 2 for x, _ in points)
        return sum((x - mean_x) * (y - mean_y) for x, y in points) / over if over else 0.0
