"""The skew between the clocks of sender and receiver."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bluewater.study.identify.features import throughput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bluewater.study.identify.recording import Recording

MOST = 5e-4
"""A larger slope is no skew of clocks but a queue that grows: NTP slews by this at most."""


def skew(sent: NDArray[Any], delay: NDArray[Any]) -> float:
    """By how much the receiver's clock is faster, as a share; 0 if the delays do not tell.

    It is the slope of the line that lies below all delays and nearest to them on average
    (Moon99): the edge of their convex hull that passes below the mean time of sending.

    Args:
        sent: When packets were sent, s, in order.
        delay: From sending to arrival without transmission, s.
    """
    hull: list[tuple[float, float]] = []
    for x, y in zip(sent.tolist(), delay.tolist(), strict=True):
        while hull and x == hull[-1][0] and y <= hull[-1][1]:
            hull.pop()
        if hull and x == hull[-1][0]:
            continue
        while len(hull) > 1 and _is_above(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    if len(hull) < 2:
        return 0.0
    at = int(np.searchsorted([x for x, _ in hull], float(np.mean(sent))))
    (begin, low), (end, high) = hull[max(at, 1) - 1], hull[max(at, 1)]
    slope = (high - low) / (end - begin)
    return slope if abs(slope) <= MOST else 0.0


def aligned(made: Recording) -> Recording:
    """A recording of two clocks without their skew, and with 0 as the least delay."""
    there = ~made.lost
    through = made.arrived - made.sent - made.size * 8 / throughput(made).rate
    arrived = made.arrived - skew(made.sent[there], through[there]) * made.sent
    return replace(made, arrived=arrived - float(np.nanmin(arrived - made.sent)))


def _is_above(
    before: tuple[float, float], point: tuple[float, float], after: tuple[float, float]
) -> bool:
    """Whether a point lies above the line between two others, or on it."""
    return (point[1] - before[1]) * (after[0] - before[0]) >= (after[1] - before[1]) * (
        point[0] - before[0]
    )
