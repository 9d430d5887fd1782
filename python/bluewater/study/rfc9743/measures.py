"""The quantities that the suite's rules judge, as functions of plain numbers and series.

A series is a list of samples at equal steps: the first stands for the time from 0 s to one step.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

STARVING = 0.1
"""A flow starves in a window in which it gets less than this part of an equal share."""

FAIR = 0.9
"""Jain's index from which flows count as converged."""

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
    """The share of windows in which a flow gets less than a tenth of an equal share.

    Windows follow one another from the first sample on. The last one counts only if it is complete,
    unless it is the only one. Windows in which nobody gets anything do not count.
    """
    samples = min(map(len, flows))
    wide = max(1, min(samples, round(window / step)))
    counted = starving = 0
    for start in range(0, samples - wide + 1, wide):
        got = [sum(flow[start : start + wide]) for flow in flows]
        equal = sum(got) / len(got)
        if equal > 0:
            counted += len(got)
            starving += sum(each < STARVING * equal for each in got)
    return starving / counted if counted else 0.0


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
    return first(indices, step, join, FAIR, 5.0)


def drained(samples: Sequence[float], step: float, since: float, most: float) -> float:
    """Seconds from ``since`` until a queue that grew above ``most`` is no longer above it.

    0 if it never grows above; infinite if it stays above to the end.
    """
    start = math.ceil(since / step - 1e-9)
    above = next((at for at in range(start, len(samples)) if samples[at] > most), None)
    if above is None:
        return 0.0
    below = next((at for at in range(above, len(samples)) if samples[at] <= most), None)
    return math.inf if below is None else (below + 1) * step - since


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


def reaction(windows: Sequence[float], step: float, mark: float, rtt: float) -> float:
    """The least window within two round trips of a mark, by the last one before it.

    The sender learns of a mark a round trip later at most, and has a round trip to answer.
    """
    before = windows[max(0, math.floor(mark / step + 1e-9) - 1)]
    start = math.ceil(mark / step - 1e-9)
    return min(windows[start : start + max(1, round(2 * rtt / step))]) / before


def reno_rate(loss: float) -> float:
    """Reno's packets a round trip at a random loss, 1.22 / √p (Mathis et al., 1997)."""
    return 1.22 / math.sqrt(loss)


def step_bound(rtt: float) -> float:
    """The time within which a step is to be followed: 5 s, or 50 round trips if longer."""
    return max(5.0, 50 * rtt)


def join_bound(rtt: float) -> float:
    """The time within which flows are to converge: 20 s, or 200 round trips if longer."""
    return max(20.0, 200 * rtt)
