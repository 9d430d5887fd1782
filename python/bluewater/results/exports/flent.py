"""A run as a file of Flent, version 4 of its format (``doc/data-format.rst`` there)."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater.errors import InputError
from bluewater.results.exports.files import write_file
from bluewater.results.result import measured

if TYPE_CHECKING:
    from pathlib import Path

    from bluewater.results.result import Result

SUFFIX = ".flent.gz"

_VERSION = 4
_TEST = "tcp_nup"
"""Name of a test that Flent knows, which it requires; this one has any number of streams."""

_HOST = "gw"
_BEGIN = "1970-01-01T00:00:00.000000Z"
"""Simulated time begins at 0, so the same run gives the same file."""


def write(result: Result, path: Path, queue: str | None = None) -> None:
    """Writes a run for Flent: a stream for each group of flows, a ping, the queue's statistics.

    Throughput is measured at the link, in Mb/s, over the interval before each sample; backlog in
    packets and bytes, at the sample; drops and marks in packets, over that interval. The ping is
    the median over flows of their smoothed round trips, in ms, if they were sampled.

    Args:
        result: A run whose scenario has ``[measure]`` with ``interval`` and ``groups = true``, for
            the ping also ``flows = true``.
        path: The file to write.
        queue: The link, as ``A->B``; by default the primary queue's.

    Raises:
        InputError: No such queue, or a run without these tables.
        StorageError: The file cannot be written.
    """
    made = json.dumps(document(result, path.name, queue), allow_nan=False)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as file:
        file.write(made.encode())
    write_file(path, packed.getvalue())


def document(result: Result, name: str, queue: str | None = None) -> dict[str, Any]:
    """The content of the file ``name`` that :func:`write` compresses."""
    shown = queue or result.summary["queue"]
    groups = _of(result, "groups", shown)
    series = _of(result, "series", shown)
    times = series["time_s"].to_list()
    names = groups["group"].unique(maintain_order=True).to_list()
    streams = {f"TCP upload::{i}": _sent(groups, each, times) for i, each in enumerate(names, 1)}
    ping = _ping(result, times)
    raw = {key: _points(times, values) for key, values in (streams | ping).items()}
    return {
        "version": _VERSION,
        "metadata": _metadata(result, name, shown, names, times, [*ping]),
        "x_values": times,
        "results": streams | _totals(list(streams.values())) | ping,
        "raw_values": raw | {f"qdisc_stats_{_HOST}": _statistics(series)},
    }


def _of(result: Result, table: str, queue: str) -> pl.DataFrame:
    found = measured(result, table)
    rows = found.filter(pl.col("queue") == queue)
    if rows.is_empty():
        known = ", ".join(found["queue"].unique(maintain_order=True).to_list())
        raise InputError(f"no queue {queue!r}", hint=f"there are: {known}")
    return rows.sort("time_s", maintain_order=True)


def _sent(groups: pl.DataFrame, group: str, times: list[float]) -> list[float | None]:
    # Not goodput: it jumps when a loss is repaired, since data behind the hole arrive at once.
    rows = groups.filter(pl.col("group") == group)
    return _at(times, rows["time_s"], rows["throughput_bps"] / 1e6)


def _ping(result: Result, times: list[float]) -> dict[str, list[float | None]]:
    if "flow_series" not in result.names:
        return {}
    trips = result.load("flow_series").filter(pl.col("srtt_s") > 0)
    if trips.is_empty():
        return {}
    median = trips.group_by("time_s").agg(pl.col("srtt_s").median())
    return {"Ping (ms) ICMP": _at(times, median["time_s"], 1e3 * median["srtt_s"])}


def _at(times: list[float], when: pl.Series, values: pl.Series) -> list[float | None]:
    by_time = dict(zip(when, values, strict=True))
    return [by_time.get(time) for time in times]


def _totals(streams: list[list[float | None]]) -> dict[str, list[float | None]]:
    """The sum and mean over streams, which Flent stores; its ``fairness`` is left out."""
    present = [[value for value in row if value is not None] for row in zip(*streams, strict=True)]
    return {
        "TCP upload sum": [sum(row) if row else None for row in present],
        "TCP upload avg": [sum(row) / len(row) if row else None for row in present],
    }


def _points(times: list[float], values: list[float | None]) -> list[dict[str, float]]:
    # t counts from the epoch, and so does the metadata's T0, which is the epoch itself.
    pairs = zip(times, values, strict=True)
    return [{"t": time, "val": value} for time, value in pairs if value is not None]


def _statistics(series: pl.DataFrame) -> list[dict[str, Any]]:
    return series.select(
        t="time_s",
        backlog_bytes="backlog_bytes",
        backlog_pkts="backlog_packets",
        dropped="drops",
        ecn_mark="marks",
        sent_pkts="departures",
    ).to_dicts()


def _metadata(
    result: Result,
    name: str,
    queue: str,
    groups: list[str],
    times: list[float],
    ping: list[str],
) -> dict[str, Any]:
    step = times[1] - times[0] if len(times) > 1 else times[0]
    streams = ", ".join(f"{i} is {each!r}" for i, each in enumerate(groups, 1))
    series = [f"TCP upload::{i}" for i in range(1, len(groups) + 1)]
    return {
        "NAME": _TEST,
        "TITLE": f"{result.summary['aqm']} at {queue}, seed {result.summary['seed']}",
        "NOTE": f"Bluewater {result.version}, decisions {result.decision_hash}. Streams are groups "
        f"of flows, of whatever transport: {streams}. No ping was sent: it is the median of the "
        "flows' smoothed round trips, if any.",
        "TIME": _BEGIN,
        "T0": _BEGIN,
        "HOST": "bluewater",
        "HOSTS": ["bluewater"],
        "LOCAL_HOST": "bluewater",
        "LENGTH": times[-1],
        "TOTAL_LENGTH": times[-1],
        "STEP_SIZE": step,
        "DATA_FILENAME": name,
        "IP_VERSION": 4,
        "TEST_PARAMETERS": {
            "upload_streams": str(len(groups)),
            "qdisc_stats_hosts": _HOST,
            "qdisc_stats_interfaces": queue,
        },
        "SERIES_META": {
            each: {"UNITS": "Mbits/s"} for each in (*series, "TCP upload sum", "TCP upload avg")
        }
        | {each: {"UNITS": "ms"} for each in ping},
    }
