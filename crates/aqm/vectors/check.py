#!/usr/bin/env python3
"""Tests three queue disciplines against the vectors beside it: ``check.py [FOLDER]``.

It shares no code with the library. Put your own implementation in place of these classes.
"""

import json
import math
import sys
from collections import deque
from pathlib import Path

NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def nanoseconds(text):
    """A time such as ``5ms``."""
    unit = text.lstrip("0123456789.")
    return round(float(text.removesuffix(unit)) * NS[unit])


class DropTail:
    """Drops what does not fit."""

    def __init__(self, case):
        self.given = case["parameters"]
        self.room = int(case["link"]["buffer"].removesuffix("p"))
        self.queue, self.drop, self.mark = deque(), [], []

    def enqueue(self, packet, draws):  # noqa: ARG002
        """A packet arrives."""
        if len(self.queue) == self.room:
            self.drop.append([packet["in"], "overflow"])
        else:
            self.queue.append(packet)

    def dequeue(self, now):  # noqa: ARG002
        """The packet to send, if there is one."""
        return self.queue.popleft() if self.queue else None


class Bernoulli(DropTail):
    """Drops each packet with probability p."""

    def enqueue(self, packet, draws):
        """A packet arrives, for which a number is drawn."""
        if (draws.pop(0) >> 11) / 2**53 < float(self.given["p"]):
            self.drop.append([packet["in"], "early"])
        else:
            super().enqueue(packet, draws)


class CoDel(DropTail):
    """RFC 8289, section 5, with ``grace`` of Linux."""

    MTU = 1514

    def __init__(self, case):
        super().__init__(case)
        self.target, self.interval, self.grace = (
            nanoseconds(self.given[key]) for key in ("target", "interval", "grace")
        )
        self.above_until, self.dropping = None, False
        self.next, self.count, self.last = 0, 0, 0

    def head(self, now):
        """The packet at the head, and whether all have waited too long for an interval."""
        if not self.queue:
            self.above_until = None
            return None, False
        packet = self.queue.popleft()
        left = sum(other["len"] for other in self.queue)
        if now - packet["t"] < self.target or left <= self.MTU:
            self.above_until = None
        elif self.above_until is None:
            self.above_until = now + self.interval + self.grace
        else:
            return packet, now >= self.above_until
        return packet, False

    def later(self, t):
        """When the signal after the one at t is due."""
        return t + int(self.interval / math.sqrt(self.count))

    def signal(self, packet):
        """Whether the packet is dropped, not marked."""
        if packet["ecn"]:
            packet["ecn"] = 3
            self.mark.append([packet["in"], "early"])
            return False
        self.drop.append([packet["in"], "early"])
        return True

    def dequeue(self, now):
        """The packet to send, behind those that are dropped."""
        packet, late = self.head(now)
        if self.dropping and late:
            while late and now >= self.next:
                self.count += 1
                dropped = self.signal(packet)
                if dropped:
                    packet, late = self.head(now)
                if late:
                    self.next = self.later(self.next)
                if not dropped:
                    break
        elif late:
            if self.signal(packet):
                packet, _ = self.head(now)
            grown = self.count - self.last
            recent = now - self.next < 16 * self.interval
            self.count = self.last = grown if grown > 1 and recent else 1
            self.next = self.later(now)
        self.dropping = late and packet is not None
        return packet


def check(case, discipline):
    """Calls the discipline as the events say, and compares what it does."""
    queue = discipline(case)
    for event in case["events"]:
        queue.drop, queue.mark, sent = [], [], {}
        if "in" in event:
            draws = [int(word, 16) for word in event.get("draws", [])]
            queue.enqueue(dict(event), draws)
        elif "out" in event:
            packet = queue.dequeue(event["t"])
            sent = {"out": packet and packet["in"]} | ({"ecn": packet["ecn"]} if packet else {})
        done = {**sent, "drop": queue.drop, "mark": queue.mark}
        wanted = {key: event.get(key, []) for key in done}
        if done != wanted:
            raise SystemExit(f"{case['discipline']}, at {event['t']} ns: {done}, not {wanted}")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent
    for name, discipline in {"droptail": DropTail, "bernoulli": Bernoulli, "codel": CoDel}.items():
        cases = json.loads((folder / name).with_suffix(".json").read_text("utf-8"))
        for case in cases:
            check(case, discipline)
            own = case["parameters"].items() - cases[0]["parameters"].items()
            settings = ", ".join(f"{key} = {value}" for key, value in sorted(own)) or "defaults"
            which = case["preset"] or f"({settings})"
            print(f"{name} {which}: {len(case['events'])} events agree")
