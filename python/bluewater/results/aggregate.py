"""Statistics over the seeds of runs: means with intervals, and paired differences."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import polars as pl
import polars.selectors as cs

from bluewater import _core
from bluewater.arguments import texts
from bluewater.errors import InputError, unknown
from bluewater.results.stats import t95

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.results.tables import Label

_VALUE = "one value"
"""Name of a single metric; no column of results has it (a formula's is ``value``)."""

_SAME = 1e-12
"""A deviation below this share of a difference is rounding error."""

COLUMNS = frozenset(
    {"metric", "seeds", "mean", "low", "high", "difference", "relative", "effect", "significant",
     "base", "deviation", _VALUE}
)  # fmt: skip
"""The columns of these tables; no axis can have such a name."""

_NO_METRICS = {"seed", "duration_s", "measured_s", "wall_s"}
_MEAN = {"metric": pl.String, "seeds": pl.Int64, "mean": pl.Float64, "low": pl.Float64,
         "high": pl.Float64}  # fmt: skip


def metrics(runs: pl.DataFrame, axes: Sequence[str]) -> list[str]:
    """The columns with a value in some run; fairness of single flows, for one, has none."""
    out = {*_NO_METRICS, *axes, "reading"}
    measured = runs.select(cs.numeric() | cs.by_dtype(pl.Null))
    return [name for name in measured.columns if name not in out]


def summarise(
    runs: pl.DataFrame, axes: Sequence[str], wanted: Sequence[str] | None = None
) -> pl.DataFrame:
    """Means over seeds with the ends of their 95 % t-intervals: a row per cell and metric.

    Columns: the axes, ``metric``, ``seeds``, ``mean``, ``low``, ``high``. With a single seed the
    ends are empty. An interval is cut at the ends of its metric's range: a share is 0 … 1, and
    counts and times are never negative.
    """
    long = _long(runs, axes, wanted)
    if long.is_empty():
        return pl.DataFrame(schema={**{axis: runs.schema[axis] for axis in axes}, **_MEAN})
    least, most = (
        pl.col("metric").replace_strict(ends, default=None, return_dtype=pl.Float64)
        for ends in _ends()
    )
    return _intervals(long, [*axes, "metric"], "mean").select(
        *axes,
        "metric",
        "seeds",
        "mean",
        pl.col("low").clip(lower_bound=least),
        pl.col("high").clip(upper_bound=most),
    )


def ends(metric: str) -> tuple[float, float]:
    """The ends of a metric's range; infinite if there is none."""
    least, most = _ends()
    return least.get(metric, -math.inf), most.get(metric, math.inf)


@cache
def _ends() -> tuple[dict[str, float], dict[str, float]]:
    """The lower and upper ends of all metrics' ranges, where they exist."""
    declared = {
        name: column
        for table in _core.tables()
        for column in table["columns"]
        for name in column["names"]
    }
    least = {
        name: 0.0 for name, each in declared.items() if each["unit"] or each["kind"] == "count"
    }
    most = {}
    for name, each in declared.items():
        low, dots, high = each["unit"].partition(" … ")
        if dots:
            least[name] = float(low) if low.isdecimal() else 0.0
            most[name] = float(high)
    return least, most


def differences(
    runs: pl.DataFrame,
    axes: Sequence[str],
    axis: str,
    against: Label,
    wanted: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Paired differences to one point of an axis: runs with the same seed are compared.

    Runs with one seed share their random numbers, and what both have in common cancels. Columns:
    the axes, ``metric``, ``seeds`` (pairs), ``difference`` with ``low`` and ``high``, the ends of
    its 95 % t-interval; ``relative``, the difference over the mean at ``against``; ``effect``, the
    mean difference over the standard deviation of the differences; and ``significant``, whether the
    interval excludes 0. The last two are empty if every seed gives the same difference, since the
    seeds then say nothing. There is no correction for multiple comparisons.

    Raises:
        InputError: There is no such axis, or no such point of it.
    """
    if axis not in axes:
        raise unknown("axis", axis, axes)
    points = runs[axis].unique(maintain_order=True).to_list()
    if against not in points:
        raise unknown(f"value of the axis '{axis}'", str(against), map(str, points))
    long = _long(runs, axes, wanted)
    others = [name for name in axes if name != axis]
    on = [*others, "metric", "seed"]
    base = long.filter(pl.col(axis) == against).select(*on, base=_VALUE)
    pairs = long.filter(pl.col(axis) != against).join(base, on=on, maintain_order="left")
    made = _intervals(
        pairs.with_columns(pl.col(_VALUE) - pl.col("base")), [*axes, "metric"], "difference"
    )
    varies = pl.col("deviation") > _SAME * pl.col("difference").abs()
    return made.select(
        *axes,
        "metric",
        "seeds",
        "difference",
        "low",
        "high",
        relative=pl.when(pl.col("base") != 0).then(pl.col("difference") / pl.col("base")),
        effect=pl.when(varies).then(pl.col("difference") / pl.col("deviation")),
        significant=pl.when(varies).then((pl.col("low") > 0) | (pl.col("high") < 0)),
    )


def _long(runs: pl.DataFrame, axes: Sequence[str], wanted: Sequence[str] | None) -> pl.DataFrame:
    there = metrics(runs, axes)
    if wanted is not None:
        wanted = texts("metrics", wanted, "a table of means")
    for name in wanted or ():
        if name not in there:
            raise unknown("metric", name, there)
    if "seed" not in runs.columns:
        raise InputError("not a table of runs: it has no column seed")
    chosen = list(there if wanted is None else wanted)
    return (
        runs.select(*axes, "seed", pl.col(chosen).cast(pl.Float64))
        .unpivot(on=chosen, index=[*axes, "seed"], variable_name="metric", value_name=_VALUE)
        .drop_nulls(_VALUE)
    )


def _intervals(long: pl.DataFrame, by: Sequence[str], mean: str) -> pl.DataFrame:
    """Adds mean, deviation and 95 % t-interval of the values, and the mean of ``base`` if given."""
    base = pl.col("base").mean() if "base" in long.columns else pl.lit(None, pl.Float64)
    made = long.group_by(list(by), maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("seeds"),
        pl.col(_VALUE).mean().alias(mean),
        pl.col(_VALUE).std().alias("deviation"),
        base.alias("base"),
    )
    counts = made["seeds"].unique().to_list()
    quantile = {count: t95(count - 1) if count > 1 else None for count in counts}
    half = (
        pl.col("seeds").replace_strict(quantile, return_dtype=pl.Float64)
        * pl.col("deviation")
        / pl.col("seeds").sqrt()
    )
    return made.with_columns(low=pl.col(mean) - half, high=pl.col(mean) + half)
