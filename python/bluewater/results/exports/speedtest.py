"""A run as the summary of a speed test, as Cloudflare's gives it (``getSummary()`` there)."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING

import polars as pl

from bluewater.results.exports.samples import of_flows, write_text
from bluewater.results.tables import DATAGRAMS

if TYPE_CHECKING:
    from pathlib import Path

    from bluewater.results.result import Result

SUFFIX = ".speedtest.json"


def write(result: Result, path: Path, queue: str | None = None) -> None:  # noqa: ARG001
    """Writes the keys of that summary which the run has something for.

    ``download``, bit/s: the 90th percentile over samples of the goodput of all flows that have a
    congestion window, whatever their direction; ``downLoadedLatency``, ms: the median over samples
    of these flows' smoothed round trips; ``downLoadedJitter``, ms: the mean of the differences
    between a flow's consecutive samples; ``packetLoss``, 0 to 1: of datagrams, if any were sent.
    The warm-up is left out. Nothing is measured on the idle link, so ``latency`` and ``jitter``
    are not there.

    Args:
        result: A run whose scenario has ``[measure]`` with ``interval`` and ``flows = true``.
        path: Where to.
        queue: Has no effect: flows are of the whole network.

    Raises:
        InputError: A run without samples of flows.
        StorageError: It cannot be written.
    """
    write_text(path, json.dumps(_summary(result), allow_nan=False, indent=2) + "\n")


def _summary(result: Result) -> dict[str, float]:
    measured = pl.col("time_s") > result.summary["duration_s"] - result.summary["measured_s"]
    samples = of_flows(result).filter(measured & pl.col("cwnd_packets").is_not_null())
    total = samples.group_by("time_s").agg(pl.col("goodput_bps").sum())
    trip = 1e3 * pl.col("srtt_s")
    trips = samples.filter(pl.col("srtt_s").is_not_null())
    datagrams = result.flows.filter(pl.col("transport").is_in(DATAGRAMS))
    values = {
        "download": total.select(pl.col("goodput_bps").quantile(0.9, "linear")),
        "downLoadedLatency": trips.select(trip.median()),
        "downLoadedJitter": trips.select(trip.diff().over("flow").abs().mean()),
        "packetLoss": datagrams.select(pl.col("drops").sum() / pl.col("arrivals").sum()),
    }
    found = {key: frame.item() for key, frame in values.items()}
    return {key: value for key, value in found.items() if value is not None and isfinite(value)}
