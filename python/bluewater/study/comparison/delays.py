"""Delays of groups of flows in queues, from end to end, and round trips, over many runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bluewater.results.result import Result

KINDS = {"queueing": "in the queue", "one-way": "one way", "round-trip": "round trip"}
"""The kinds of the table of delays, in words."""

QUANTILES = {"50 %": "delay_p50_s", "95 %": "delay_p95_s", "99 %": "delay_p99_s"}
"""The quantiles to show, with their heads."""


def table(runs: Iterable[tuple[str, Result]]) -> pl.DataFrame:
    """The quantiles in s, with a row per run, group and kind of delay.

    "In the queue" means the primary queue. The table is empty if delays were not measured
    (``[measure]``, ``delays``).
    """
    frames = [
        run.delays.filter(pl.col("queue").is_in(["", run.summary["queue"]])).select(
            pl.lit(name).alias("name"),
            pl.lit(run.summary["seed"]).alias("seed"),
            "group",
            "kind",
            *QUANTILES.values(),
        )
        for name, run in runs
    ]
    return pl.concat(frames) if frames else pl.DataFrame()
