"""Flows of a run as qlog 0.3, for qvis and its like: a trace for each flow."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

from bluewater.results.exports.samples import of_flows, write_text
from bluewater.units import size_bytes

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from bluewater.results.result import Result

SUFFIX = ".qlog"


def write(result: Result, path: Path, queue: str | None = None) -> None:  # noqa: ARG001
    """Writes ``recovery:metrics_updated`` at each sample of each flow: round trip and window.

    Version 0.3 as JSON (draft-ietf-quic-qlog-main-schema-02, events of
    draft-ietf-quic-qlog-quic-events-01, which is what tools read): ``smoothed_rtt`` in ms,
    ``congestion_window`` in bytes of whole packets. Times are in ms, from the run's beginning.
    A value that a transport has not is left out.

    Args:
        result: A run whose scenario has ``[measure]`` with ``interval`` and ``flows = true``.
        path: Where to.
        queue: Has no effect: flows are of the whole network.

    Raises:
        InputError: A run without these samples.
        StorageError: It cannot be written.
    """
    document = {
        "qlog_version": "0.3",
        "qlog_format": "JSON",
        "title": f"Bluewater {result.version}, decisions {result.decision_hash}",
        "traces": _traces(result),
    }
    write_text(path, json.dumps(document, allow_nan=False))


def _traces(result: Result) -> list[dict[str, Any]]:
    transports = dict(result.flows.select("flow", "transport").iter_rows())
    groups = tomllib.loads(result.scenario)["traffic"]
    traces = []
    samples = of_flows(result).sort("flow", "time_s")
    for (flow, group), own in samples.group_by("flow", "group", maintain_order=True):
        transport = transports[flow]
        sizes = {
            size_bytes(each["packet"])
            for each in groups
            if (each["name"], each["transport"]) == (group, transport) and "packet" in each
        }
        traces.append(
            {
                "title": f"flow {flow}, {transport} of {group!r}",
                "vantage_point": {"name": f"flow {flow}", "type": "server"},
                "common_fields": {
                    "group_id": str(flow),
                    "protocol_type": [transport],
                    "time_format": "relative",
                    "reference_time": 0,
                },
                # Groups may have one name; then nobody knows how long this flow's packets are.
                "events": _events(own, sizes.pop() if len(sizes) == 1 else 0),
            }
        )
    return traces


def _events(samples: pl.DataFrame, packet: int) -> list[dict[str, Any]]:
    events = []
    told: dict[str, float] = {}
    for row in samples.iter_rows(named=True):
        values = {
            "smoothed_rtt": 1e3 * (row["srtt_s"] or 0),
            "congestion_window": round(packet * (row["cwnd_packets"] or 0)),
        }
        # Before a flow begins there is neither.
        new = {key: value for key, value in values.items() if value and told.get(key) != value}
        if new:
            told |= new
            name = "recovery:metrics_updated"
            events.append({"time": 1e3 * row["time_s"], "name": name, "data": new})
    return events
