"""Pictures of single runs: queue length and signals over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from bluewater.errors import InputError
from bluewater.plots.draw import Drawable
from bluewater.study.plot import Scale
from bluewater.text import milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.results.result import Result

TIME = Scale("Time (s)")
_FIXED = {
    "time_s", "queue", "backlog_packets", "backlog_bytes", "arrivals", "departures", "drops",
    "marks", "idle_s",
}  # fmt: skip
_PROBABILITIES = ("p_m", "p_a", "p_b", "max_p")


def side_by_side(results: Sequence[tuple[str, Result]]) -> list[Drawable]:
    """For each named run its queue length, and below it its probability of a signal."""
    return [_queue(name, result) for name, result in results] + [
        _probability(name, result) for name, result in results
    ]


def panels(result: Result) -> list[Drawable]:
    """Everything that a run's series tell: queue length, what happened to packets, signals."""
    name = str(result.summary["aqm"])
    series = primary(result)
    counts = [
        series.select(x="time_s", y=pl.col(what), line=pl.lit(what)) for what in ("drops", "marks")
    ]
    shown = [
        _queue(name, result),
        Drawable("Drops and marks", pl.concat(counts), Scale("Packets per interval")),
    ]
    for signal in _signals(series):
        points = series.select(x="time_s", y=pl.col(signal))
        shown.append(Drawable(signal, points, Scale(_label(signal))))
    return shown


def primary(result: Result) -> pl.DataFrame:
    """The series of the primary queue."""
    series = result.series
    if series.is_empty():
        raise InputError(
            "the run has no time series",
            key="measure.interval",
            hint='put `[measure]` with `interval = "100ms"` into the scenario and run it again',
        )
    return series.filter(pl.col("queue") == result.queues["queue"][0])


def _queue(name: str, result: Result) -> Drawable:
    summary = result.summary
    title = (
        f"{name}: loss {percent(summary['loss'])}, delay {milliseconds(summary['delay_mean_s'])}"
    )
    points = primary(result).select(x="time_s", y="backlog_packets", line=pl.lit(name))
    return Drawable(title, points, Scale("Queue (packets)", low=0))


def _probability(name: str, result: Result) -> Drawable:
    series = primary(result)
    signal = next((each for each in _PROBABILITIES if each in _signals(series)), None)
    if signal is None:
        empty = pl.DataFrame(schema={"x": pl.Float64, "y": pl.Float64})
        return Drawable(f"{name}: no signal but overflow", empty, Scale("Probability", low=0))
    points = series.select(x="time_s", y=pl.col(signal), line=pl.lit(name))
    return Drawable(f"{name}: {signal}", points, Scale(_label(signal), low=0))


def _signals(series: pl.DataFrame) -> list[str]:
    return [
        column
        for column in series.columns
        if column not in _FIXED and series[column].null_count() < series.height
    ]


def _label(signal: str) -> str:
    return f"Probability {signal}" if signal in _PROBABILITIES else signal
