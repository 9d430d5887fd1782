"""BLUE where a departure and an arrival fall on one instant, with either of them first.

BLUE of Feng02 Fig. 3 in front of HRC's link: 1 Mb/s, 150 packets of 1000 bytes, steps of 0.02 and
0.002, a freeze of 10 ms, drops. A flow of constant rate, and windows that halve on a loss and grow
by a packet a round trip of 40 ms. Nothing is shared with the simulator: Python's standard library,
whole nanoseconds, so that instants are equal or not. It makes blue_ties.csv:
python3 blue_ties.py > blue_ties.csv

A row is a run of 520 s, the first 20 left out: idle events, the share of them in which the next
packet came at the same instant, means of p_m and of the packets that wait, the share of the link
that is used, Mb/s of the flow of constant rate. ``gap_ms`` is the time between its packets.
"""

import heapq
import itertools
import random

MS = 1_000_000
SERVICE, FREEZE, BUFFER, WAY = 8 * MS, 10 * MS, 150, 20 * MS
END, WARMUP = 520_000 * MS, 20_000 * MS
CBR = -1


class Run:
    """One run."""

    def __init__(self, departures_first, gap, windows, seed):
        self.draw, self.order, self.events = random.Random(seed), itertools.count(), []
        self.rank = {"served": 0 if departures_first else 2, "packet": 1, "answer": 3}
        self.p, self.last, self.queue, self.busy, self.gap = 0.0, -FREEZE - 1, [], False, gap
        self.window, self.flying = [1.0] * windows, [0] * windows
        self.cut, self.idle_since, self.now = [0] * windows, 0, 0
        self.idle = self.tied = self.sent = self.own = 0
        self.area_p = self.area_q = 0.0
        self.at(self.draw.randrange(1000 * MS), "packet", CBR, True)
        for flow in range(windows):
            self.at(self.draw.randrange(1000 * MS), "answer", flow, True)

    def at(self, time, what, flow, arrived):
        """Puts an event into the list."""
        heapq.heappush(self.events, (time, self.rank[what], next(self.order), what, flow, arrived))

    def row(self):
        """Runs all events; the last columns of a row."""
        while self.events[0][0] <= END:
            then, _, _, what, flow, arrived = heapq.heappop(self.events)
            span = max(0, then - max(self.now, WARMUP))
            self.area_p, self.area_q = (
                self.area_p + span * self.p,
                self.area_q + span * len(self.queue),
            )
            self.now = then
            getattr(self, what)(flow, arrived)
            if self.queue and not self.busy:
                self.busy = True
                self.at(self.now + SERVICE, "served", self.queue.pop(0), True)
        span = END - WARMUP
        return (
            *(self.idle, self.tied / max(1, self.idle), self.area_p / span, self.area_q / span),
            *(self.sent * SERVICE / span, self.own * 8000 / span * 1000),
        )

    def move(self, by):
        """Moves p_m, unless it has just been moved."""
        if self.now - self.last > FREEZE:
            self.p, self.last = min(1.0, max(0.0, self.p + by)), self.now

    def packet(self, flow, _):
        """A packet comes to the queue."""
        if flow == CBR:
            self.at(self.now + self.gap, "packet", CBR, True)
        full = self.busy and len(self.queue) == BUFFER
        if full:
            self.move(0.02)
        if not full and self.draw.random() >= self.p:
            self.tied += self.now > WARMUP and not self.busy and self.idle_since == self.now
            self.queue.append(flow)
        elif flow != CBR:  # its sender hears of it behind the packets that wait
            self.at(self.now + WAY + SERVICE * (len(self.queue) + 1), "answer", flow, False)

    def served(self, flow, _):
        """The transmitter has sent a packet."""
        measured = self.now > WARMUP
        self.busy, self.sent, self.own = (
            False,
            self.sent + measured,
            self.own + (measured and flow == CBR),
        )
        if flow != CBR:
            self.at(self.now + WAY, "answer", flow, True)
        if not self.queue:
            self.idle, self.idle_since = self.idle + measured, self.now
            self.move(-0.002)

    def answer(self, flow, arrived):
        """A sender hears of a packet; the first time it starts."""
        self.flying[flow] = max(0, self.flying[flow] - 1)
        if arrived:
            self.window[flow] += 1 / self.window[flow]
        elif self.now > self.cut[flow]:
            self.window[flow] = max(1.0, self.window[flow] / 2)
            self.cut[flow] = self.now + 2 * WAY
        while self.flying[flow] < min(50, int(self.window[flow])):
            self.flying[flow] += 1
            self.at(self.now + WAY, "packet", flow, True)


if __name__ == "__main__":
    print("first,gap_ms,windows,seed,idle_events,same_instant,p_m,packets,used,cbr_mbps")
    for gap, windows in ((4, 0), (4, 10), (2, 10), (1, 10)):
        for first, seed in itertools.product(("departure", "arrival"), range(1, 21)):
            row = Run(first == "departure", gap * MS, windows, seed).row()
            print(f"{first},{gap},{windows},{seed}," + ",".join(f"{x:.4g}" for x in row))
