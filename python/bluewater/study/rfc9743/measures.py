"""The quantities that the suite's rules judge, as functions of plain numbers and series.

A series is a list of samples at equal steps: the first stands for the time from 0 s to one step.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

STARVING = 0.1
"""A flow starves in a window in which it gets less than this part of an equal share."""

FAIR = 0.9
"""Jain's index from which flows count as converged."""

HOLD_S = 5.0
"""How long flows share evenly, or a flow keeps to a changed path, before that counts."""

LEAST_LOSS = 0.001
"""A smaller share lost counts as this one: near zero every ratio of losses is large."""


def jain(shares: Sequence[float]) -> float:
    """Jain's fairness index, (Σx)² / (n·Σx²); 0 if nobody gets anything."""
    squares = sum(each * each for each in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0


def ratio(value: float, other: float) -> float:
    """One by the other; infinite by nothing, and 1 if both are nothing."""
    if other > 0:
        return value / other
    return math.inf if value > 0 else 1.0


def uneven(one: float, other: float) -> float:
    """The larger of two by the smaller; infinite if either is nothing."""
    small, large = sorted((one, other))
    return large / small if small > 0 else math.inf


def harm_to_more(alone: float, beside: float) -> float:
    """Harm to a quantity of which more is better, (x − y) / x (Ware et al., 2019)."""
    return max(0.0, (alone - beside) / alone) if alone > 0 else 0.0


def harm_to_less(alone: float, beside: float, least: float = 0.0) -> float:
    """Harm to a quantity of which less is better, (y − x) / y; both count as ``least`` at least."""
    x, y = max(alone, least), max(beside, least)
    if math.isinf(y):
        return 0.0 if math.isinf(x) else 1.0
    return max(0.0, (y - x) / y) if y > 0 else 0.0


def window_s(rtt: float) -> float:
    """The length of a window in which a flow may starve: 10 s, or 100 round trips if longer."""
    return max(10.0, 100 * rtt)


def starved(flows: Sequence[Sequence[float]], step: float, window: float) -> float:
    """The share of windows in which any flow gets less than a tenth of an equal share.

    Windows follow one another from the first sample on. The last one counts only if it is complete,
    unless it is the only one. In a window in which nobody gets anything, all starve.
    """
    samples = min(map(len, flows))
    wide = max(1, min(samples, round(window / step)))
    counted = starving = 0
    for start in range(0, samples - wide + 1, wide):
        got = [sum(flow[start : start + wide]) for flow in flows]
        counted += 1
        starving += min(got) < STARVING * sum(got) / len(got) or not sum(got)
    return starving / counted


def first(
    samples: Sequence[float], step: float, since: float, least: float, hold: float = 0.0
) -> float:
    """Seconds from ``since`` until the samples reach ``least``, and stay there for ``hold``.

    The time ends with the first sample that does. It is infinite if none does.
    """
    wide = max(1, math.ceil(hold / step - 1e-9))
    start = math.ceil(since / step - 1e-9)
    for at in range(start, len(samples) - wide + 1):
        if all(each >= least for each in samples[at : at + wide]):
            return (at + 1) * step - since
    return math.inf


def converged(
    flows: Sequence[Sequence[float]], times: Sequence[tuple[float, float]], step: float, join: float
) -> float:
    """Seconds from a join until the flows that are there have a Jain index of 0.9 for 5 s.

    ``times`` are when each flow starts and stops.
    """
    indices = []
    for at in range(min(map(len, flows))):
        there = [
            flow[at]
            for flow, (start, stop) in zip(flows, times, strict=True)
            if start <= at * step + 1e-9 and (at + 1) * step <= stop + 1e-9
        ]
        indices.append(jain(there) if there else 0.0)
    return first(indices, step, join, FAIR, HOLD_S)


def settled(
    rates: Sequence[float],
    waits: Sequence[float],
    step: float,
    since: float,
    least: float,
    most: float,
) -> float:
    """Seconds from ``since`` until over 5 s the rate is at least, and the wait at most a bound.

    Both are means, and count together: a flow that sends nothing has no queue, and one that never
    slows down has the rate.
    """
    wide = max(1, round(HOLD_S / step))
    spans = range(min(len(rates), len(waits)) - wide + 1)
    good = [
        float(
            sum(rates[at : at + wide]) >= least * wide and sum(waits[at : at + wide]) <= most * wide
        )
        for at in spans
    ]
    return first(good, step, since, 1.0)


def timeouts(rto: float, outage: float) -> tuple[int, float]:
    """How many timeouts end within an outage if each is twice the one before, and the next one, s.

    RFC 6298 §5.5.
    """
    count, spent, length = 0, 0.0, rto
    while spent + length <= outage:
        spent += length
        length *= 2
        count += 1
    return count, length


def chain(events: Sequence[tuple[float, str]], since: float) -> int:
    """The most timeouts in a row after ``since``, without a repair that ended between them.

    ``events`` are times and kinds, as in the table ``control``.
    """
    longest = length = 0
    for time, kind in events:
        if time < since:
            continue
        if kind == "timeout":
            length += 1
            longest = max(longest, length)
        elif kind == "recovered":
            length = 0
    return longest


def in_flight(
    arrivals: Sequence[float],
    drops: Sequence[float],
    departures: Sequence[float],
    step: float,
    rtt: float,
) -> list[float]:
    """Packets on a path with one queue: what came less what was dropped, and left a trip ago.

    Args:
        arrivals: At the queue, in each sample.
        drops: There.
        departures: There.
        step: Time between samples, s.
        rtt: Round trip without the queue, s.
    """
    wide = round(rtt / step)
    left = [0.0] * wide + list(accumulate(departures))
    return [
        a - b - c for a, b, c in zip(accumulate(arrivals), accumulate(drops), left, strict=False)
    ]


def reaction(
    marked: Sequence[float], unmarked: Sequence[float], step: float, mark: float, rtt: float
) -> float:
    """Packets in flight two round trips after a mark, by those of the same run without it.

    The sender learns of a mark a round trip later at most, and has a round trip to answer.
    """
    at = math.ceil((mark + 2 * rtt) / step - 1e-9)
    return ratio(marked[at], unmarked[at])


def step_bound(rtt: float) -> float:
    """The time within which a step is to be followed: 5 s, or 50 round trips if longer."""
    return max(5.0, 50 * rtt)


def join_bound(rtt: float) -> float:
    """The time within which flows are to converge: 20 s, or 200 round trips if longer."""
    return max(20.0, 200 * rtt)
