"""Flows as qlog 0.3, for qvis and similar tools: a trace for each flow."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater.results.exports.files import write_file
from bluewater.results.packets import BACK, FORWARD, collected, of_queue, open_
from bluewater.results.result import measured
from bluewater.units import size_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from bluewater.results.result import Result

SUFFIX = ".qlog"

Event = dict[str, Any]


def write(
    result: Result,
    path: Path,
    queue: str | None = None,
    packets: Path | None = None,
) -> None:
    """Writes ``recovery:metrics_updated`` at each sample of each flow: round trip and window.

    The format is the one that tools read, version 0.3 as JSON (draft-ietf-quic-qlog-main-schema-02,
    events of draft-ietf-quic-qlog-quic-events-01): ``smoothed_rtt`` in ms, ``congestion_window`` in
    bytes of whole packets. Times are in ms from the run's beginning. Values that a transport lacks
    are left out.

    Args:
        result: A run whose scenario has ``[measure]`` with ``interval`` and ``flows = true``.
        path: The file to write.
        queue: The link whose packets are added.
        packets: The file of the run's packets; their events are added as by :func:`write_packets`.

    Raises:
        InputError: A run without these samples, or no file of packets.
        StorageError: The file cannot be written.
    """
    of_packets = {} if packets is None else _of_packets(packets, queue)
    traces = []
    for flow, about, metrics in _metrics(result):
        events = [*metrics, *of_packets.get(flow, ())]
        # At equal times the metrics come first, because they let the packet be sent.
        traces.append({**about, "events": sorted(events, key=lambda event: event["time"])})
    _write(path, f"Bluewater {result.version}, decisions {result.decision_hash}", traces)


def write_packets(file: Path, path: Path, queue: str | None = None) -> None:
    """Writes the events of each flow's packets, as seen at a queue.

    ``transport:packet_sent`` when a data packet arrives at the queue, ``recovery:packet_lost`` when
    the queue drops it, ``transport:packet_received`` when an acknowledgement leaves a queue on its
    way back, with the packets that it newly acknowledges. Packets of a flow are numbered in order
    of arrival; a retransmission gets a new number, as in QUIC.

    Args:
        file: Packets of a run.
        path: The file to write.
        queue: The link, as ``A->B``; by default all.

    Raises:
        InputError: No such file or queue.
        StorageError: The file cannot be written.
    """
    _, facts = open_(file)
    traces = [
        {**_about(flow, f"flow {flow}", "network"), "events": events}
        for flow, events in _of_packets(file, queue).items()
    ]
    _write(path, f"Bluewater {facts.version}, decisions {facts.decision_hash}", traces)


def _write(path: Path, title: str, traces: Sequence[Mapping[str, Any]]) -> None:
    # qvis reads each trace's last event, and rejects a file with an empty trace.
    told = [trace for trace in traces if trace["events"]]
    document = {"qlog_version": "0.3", "qlog_format": "JSON", "title": title, "traces": told}
    write_file(path, json.dumps(document, allow_nan=False))


def _about(flow: int, title: str, where: str) -> dict[str, Any]:
    """The head of a trace, seen from the server, which sends the data."""
    seen = {"flow": "server"} if where == "network" else {}
    return {
        "title": title,
        "vantage_point": {"name": f"flow {flow}", "type": where, **seen},
        "common_fields": {
            "group_id": str(flow),
            "time_format": "relative",
            "reference_time": 0,
        },
    }


def _metrics(result: Result) -> Iterator[tuple[int, dict[str, Any], list[Event]]]:
    """Each flow with the head of its trace and its samples."""
    transports = dict(result.flows.select("flow", "transport").iter_rows())
    groups = tomllib.loads(result.scenario)["traffic"]
    samples = measured(result, "flow_series").sort("flow", "time_s")
    for (flow, group), own in samples.group_by("flow", "group", maintain_order=True):
        transport = transports[flow]
        sizes = {
            size_bytes(each["packet"])
            for each in groups
            if (each["name"], each["transport"]) == (group, transport) and "packet" in each
        }
        about = _about(flow, f"flow {flow}, {transport} of {group!r}", "server")
        about["common_fields"]["protocol_type"] = [transport]
        # If groups share a name, the length of this flow's packets is unknown.
        yield flow, about, _sampled(own, sizes.pop() if len(sizes) == 1 else 0)


def _sampled(samples: pl.DataFrame, packet: int) -> list[Event]:
    events = []
    told: dict[str, float] = {}
    for row in samples.iter_rows(named=True):
        values = {
            "smoothed_rtt": 1e3 * (row["srtt_s"] or 0),
            "congestion_window": round(packet * (row["cwnd_packets"] or 0)),
        }
        # Before a flow begins it has neither.
        new = {key: value for key, value in values.items() if value and told.get(key) != value}
        if new:
            told |= new
            events.append(_event(1e9 * row["time_s"], "recovery:metrics_updated", new))
    return events


def _event(ns: float, name: str, data: Mapping[str, Any]) -> Event:
    return {"time": ns / 1e6, "name": name, "data": data}


def _of_packets(file: Path, queue: str | None) -> dict[int, list[Event]]:
    """The events of each flow in the order of time.

    Data packets count at the first queue in the file that has them, and so do acknowledgements.
    """
    columns = (
        "queue", "flow", "connection", "seq", "kind", "bytes", "arrived_ns", "left_ns", "fate",
    )  # fmt: skip
    rows, _ = open_(file)
    kept = (
        of_queue(rows, queue, file).select(columns).filter(pl.col("kind").is_in([*FORWARD, *BACK]))
    )
    whole = collected(kept.with_columns(back=pl.col("kind").is_in(BACK)), file)
    first = pl.col("queue") == pl.col("queue").first().over("flow", "back")
    own = whole.filter(first).sort("flow", "arrived_ns", maintain_order=True)
    return {
        int(flow): _of_flow(part.to_dicts())
        for (flow,), part in own.group_by("flow", maintain_order=True)
    }


def _of_flow(rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    """The events of one flow; at equal times data arrive before an acknowledgement leaves."""
    found: list[Event] = []
    sent: dict[tuple[int, int], list[tuple[int, int]]] = {}
    """Departure time and number of each packet, by connection and sequence number."""
    for number, row in enumerate(row for row in rows if not row["back"]):
        head = _header(number)
        length = {"length": row["bytes"]}
        found.append(
            _event(row["arrived_ns"], "transport:packet_sent", {"header": head, "raw": length})
        )
        if row["fate"] == "dropped":
            found.append(_event(row["left_ns"], "recovery:packet_lost", {"header": head}))
        elif row["fate"] == "sent":
            place = sent.setdefault((row["connection"], row["seq"]), [])
            place.append((row["left_ns"], number))
    reached: dict[int, int] = {}
    """The first unacknowledged sequence number of each connection."""
    answers = [row for row in rows if row["back"] and row["fate"] == "sent"]
    for number, row in enumerate(sorted(answers, key=lambda row: row["left_ns"])):
        data: dict[str, Any] = {"header": _header(number), "raw": {"length": row["bytes"]}}
        if row["kind"] == "ack":
            start = reached.get(row["connection"], 0)
            seqs = range(start, row["seq"])
            reached[row["connection"]] = max(start, row["seq"])
            came = (_last(sent.get((row["connection"], seq), ()), row["left_ns"]) for seq in seqs)
            if ranges := _ranges(sorted(each for each in came if each is not None)):
                data["frames"] = [{"frame_type": "ack", "acked_ranges": ranges}]
        found.append(_event(row["left_ns"], "transport:packet_received", data))
    return sorted(found, key=lambda event: event["time"])


def _header(number: int) -> dict[str, Any]:
    return {"packet_type": "1RTT", "packet_number": number}


def _last(sent: Sequence[tuple[int, int]], now: int) -> int | None:
    """The number of the last of these packets that left by this time."""
    return max((number for left, number in sent if left <= now), default=None)


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Groups ascending numbers into ranges: first and last of each."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
