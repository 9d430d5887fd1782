"""A run as the summary of a speed test, as Cloudflare's gives it (``getSummary()`` there)."""

from __future__ import annotations

import json
import tomllib
from math import isfinite
from typing import TYPE_CHECKING

import polars as pl

from bluewater.results.exports.files import write_file
from bluewater.results.result import measured
from bluewater.results.tables import DATAGRAMS

if TYPE_CHECKING:
    from pathlib import Path

    from bluewater.results.result import Result

SUFFIX = ".speedtest.json"


def write(result: Result, path: Path, queue: str | None = None) -> None:  # noqa: ARG001
    """Writes the keys of that summary for which the run has data.

    Of the flows with a congestion window, those whose data pass the primary queue are downloads,
    the others uploads. ``download`` and ``upload``, bit/s: the 90th percentile over samples of
    goodput; ``downLoadedLatency`` and ``upLoadedLatency``, ms: the median over samples of smoothed
    round trips; ``downLoadedJitter`` and ``upLoadedJitter``, ms: the mean difference between a
    flow's consecutive samples; ``packetLoss``, 0 to 1: the loss of datagrams, if any were sent. The
    warm-up is left out.

    ``latency`` and ``jitter`` are the median and mean difference over all flows before the first
    bulk flow starts, warm-up included. They are missing unless another flow starts earlier.

    Args:
        result: A run whose scenario has ``[measure]`` with ``interval`` and ``flows = true``.
        path: The file to write.
        queue: Ignored: the summary covers the whole network.

    Raises:
        InputError: A run without samples of flows.
        StorageError: The file cannot be written.
    """
    write_file(path, json.dumps(_summary(result), allow_nan=False, indent=2) + "\n")


def _summary(result: Result) -> dict[str, float]:
    samples = measured(result, "flow_series").filter(pl.col("cwnd_packets").is_not_null())
    start = result.summary["duration_s"] - result.summary["measured_s"]
    loaded = samples.filter(pl.col("time_s") > start)
    # Only acknowledgements of the other direction's flows pass this queue.
    passes = result.flows.filter(2 * pl.col("throughput_bps") >= pl.col("goodput_bps"))["flow"]
    down = pl.col("flow").is_in(passes.implode())
    datagrams = result.flows.filter(pl.col("transport").is_in(DATAGRAMS))
    sums = datagrams.select(pl.col("drops", "arrivals").sum())
    lost = sums.select(pl.col("drops") / pl.max_horizontal("drops", "arrivals")).item()
    found = {
        **_trips(samples.filter(pl.col("time_s") < _load_begins(result)), "latency", "jitter"),
        **_way(loaded.filter(down), "down"),
        **_way(loaded.filter(~down), "up"),
        "packetLoss": lost,
    }
    return {key: value for key, value in found.items() if value is not None and isfinite(value)}


def _load_begins(result: Result) -> float:
    """The start time of the first bulk flow."""
    groups = tomllib.loads(result.scenario)["traffic"]
    greedy = [group["name"] for group in groups if group.get("app", "infinite") == "infinite"]
    starts = result.flows.filter(pl.col("group").is_in(greedy))["start_s"]
    return min(starts.to_list(), default=0.0)


def _way(samples: pl.DataFrame, way: str) -> dict[str, float | None]:
    total = samples.group_by("time_s").agg(pl.col("goodput_bps").sum())
    rate = total.select(pl.col("goodput_bps").quantile(0.9, "linear")).item()
    return {f"{way}load": rate, **_trips(samples, f"{way}LoadedLatency", f"{way}LoadedJitter")}


def _trips(samples: pl.DataFrame, latency: str, jitter: str) -> dict[str, float | None]:
    trips = samples.filter(pl.col("srtt_s").is_not_null()).sort("flow", "time_s")
    trip = 1e3 * pl.col("srtt_s")
    return {
        latency: trips.select(trip.median()).item(),
        jitter: trips.select(trip.diff().over("flow").abs().mean()).item(),
    }
