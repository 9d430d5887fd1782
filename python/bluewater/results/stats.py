"""Means and t-intervals, for verdicts."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Two-sided 95 % quantiles of Student's t for 1 … 30 degrees of freedom.
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds.

    Attributes:
        mean: The mean.
        half_width: Half the width of its 95 % t-interval; ``None`` with a single value.
        count: The number of values.
        ends: The ends of the values' range, at which the interval is cut.
    """

    mean: float
    half_width: float | None
    count: int
    ends: tuple[float, float] = (-math.inf, math.inf)

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return max(self.mean - (self.half_width or 0.0), self.ends[0])

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return min(self.mean + (self.half_width or 0.0), self.ends[1])


def estimate(
    values: Sequence[float], ends: tuple[float, float] = (-math.inf, math.inf)
) -> Estimate:
    """The mean of at least one value with its 95 % t-interval."""
    mean = statistics.fmean(values)
    count = len(values)
    if count == 1:
        return Estimate(mean, None, 1, ends)
    deviation = statistics.stdev(values)
    return Estimate(mean, t95(count - 1) * deviation / math.sqrt(count), count, ends)


def t95(freedom: int) -> float:
    """The two-sided 95 % quantile of Student's t, to within 0.002 beyond 30 degrees of freedom."""
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    return 1.96 + 2.4 / freedom
