"""A PID controller that holds the one-way delay at a target above its least value.

The error is the target minus the delay of the last step, in units of the target, at most 1
up and 5 down. The rate changes by a factor, so that it behaves alike on slow and fast lines: with
the rate r and the error e of step k

    r := r · (1 + kp · (e_k - e_(k-1)) + ki · e_k + kd · (e_k - 2 · e_(k-1) + e_(k-2)))

Without load the error says nothing about the line: then the rate stays.
"""

from bluewater.autorate import PerWay, duration, number


class Pid(PerWay):
    """Holds the one-way delay at a target."""

    target = duration("15ms", "Delay above the least of 10 s.", low="1ms")
    kp = number(0.05, "Gain of a change of the error.", low=0, high=10)
    ki = number(0.02, "Gain of the error, each step.", low=0, high=10)
    kd = number(0.01, "Gain of a change of that change.", low=0, high=10)
    high = number(0.75, "Share of the rate above which the load is high.", low=0, high=1)

    def begin(self, way, memory):
        memory.rate, memory.least, memory.errors = float(way.base), [], [0.0, 0.0]

    def decide(self, now, way, memory, measured):
        if not way.delays:
            return memory.rate
        memory.least = [*memory.least, (now, min(way.delays))]
        memory.least = [p for p in memory.least if p[0] > now - 10_000_000_000]
        delay = max(way.delays) - min(p[1] for p in memory.least)
        error = max(1 - delay / self.target, -5.0)
        before, earlier = memory.errors
        change = self.kp * (error - before) + self.ki * error
        change += self.kd * (error - 2 * before + earlier)
        memory.errors = [error, before]
        if error < 0 or way.load > self.high:
            memory.rate *= max(1 + change, 0.5)
        memory.rate = min(max(memory.rate, way.least), way.most)
        return memory.rate
