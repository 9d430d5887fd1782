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
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from bluewater.results.result import Result

SUFFIX = ".qlog"

METRICS = "recovery:metrics_updated"
STATE = "recovery:congestion_state_updated"
CONTROL = "bluewater:control_updated"

Event = dict[str, Any]


def write(
    result: Result,
    path: Path,
    queue: str | None = None,
    packets: Path | None = None,
) -> None:
    """Writes what was sampled of each flow, and what its congestion control did.

    The format is the one that tools read, version 0.3 as JSON (draft-ietf-quic-qlog-main-schema-02,
    events of draft-ietf-quic-qlog-quic-events-01). ``recovery:metrics_updated`` has values for
    which that draft has names, ``recovery:congestion_state_updated`` phases. An event of our own,
    ``bluewater:control_updated``, has the rows of the table ``control``, and as ``signals`` those
    of ``control_signals``. Times are in ms from the run's beginning; an event has only what changed
    since the one before.

    Args:
        result: A run whose scenario has ``[measure]`` with ``interval`` and ``flows = true``, or
            with ``control = true``.
        path: The file to write.
        queue: The link whose packets are added.
        packets: The file of the run's packets; their events are added as by :func:`write_packets`.

    Raises:
        InputError: A run without these tables, or no file of packets.
        StorageError: The file cannot be written.
    """
    of_packets = {} if packets is None else _of_packets(packets, queue)
    traces = []
    for flow, about, told in _told(result):
        events = [*told, *of_packets.get(flow, ())]
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


def _told(result: Result) -> Iterator[tuple[int, dict[str, Any], list[Event]]]:
    """Each flow with the head of its trace and the events of its samples and its control."""
    control = _by_flow(result, "control")
    samples = _by_flow(result, "flow_series")
    if not control and not samples:
        measured(result, "flow_series")
    signals = _by_flow(result, "control_signals")
    transports = dict(result.flows.select("flow", "transport").iter_rows())
    groups = tomllib.loads(result.scenario)["traffic"]
    for flow, group in sorted(control.keys() | samples.keys()):
        transport = transports[flow]
        sizes = {
            size_bytes(each["packet"])
            for each in groups
            if (each["name"], each["transport"]) == (group, transport) and "packet" in each
        }
        # If groups share a name, the length of this flow's packets is unknown.
        packet = sizes.pop() if len(sizes) == 1 else 0
        about = _about(flow, f"flow {flow}, {transport} of {group!r}", "server")
        about["common_fields"]["protocol_type"] = [transport]
        key = (flow, group)
        events = [
            *_sampled(samples.get(key, ()), packet),
            *_controlled(control.get(key, ()), signals.get(key, ()), packet),
        ]
        yield flow, about, _changes(sorted(events, key=lambda event: event["time"]))


def _by_flow(result: Result, name: str) -> dict[tuple[int, str], list[dict[str, Any]]]:
    """The rows of a table, in their order, by flow and group; none if the run has no such table."""
    rows: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in result.load(name).to_dicts() if name in result.names else ():
        rows.setdefault((row["flow"], row["group"]), []).append(row)
    return rows


def _sampled(rows: Sequence[Mapping[str, Any]], packet: int) -> Iterator[Event]:
    for row in rows:
        values = {
            "smoothed_rtt": 1e3 * (row["srtt_s"] or 0),
            "congestion_window": round(packet * (row["cwnd_packets"] or 0)),
        }
        # Before a flow begins it has neither.
        known = {key: value for key, value in values.items() if value}
        yield _event(1e9 * row["time_s"], METRICS, known)


def _controlled(
    rows: Sequence[Mapping[str, Any]], signals: Sequence[Mapping[str, Any]], packet: int
) -> Iterator[Event]:
    each = len(signals) // max(len(rows), 1)
    """Signals of a row; they come in the order of the rows."""
    for n, row in enumerate(rows):
        ns = 1e9 * row["time_s"]
        own = {key: value for key, value in row.items() if key not in ("time_s", "flow", "group")}
        here = signals[each * n : each * (n + 1)]
        own |= {"signals": {signal["signal"]: signal["value"] for signal in here}} if here else {}
        if row["event"] == "phase":
            old = {"old": _state(row["ended"])} if row["ended"] else {}
            yield _event(ns, STATE, {**old, "new": _state(row["phase"])})
        yield _event(ns, METRICS, _standard(row, packet))
        yield _event(ns, CONTROL, own)


def _standard(row: Mapping[str, Any], packet: int) -> dict[str, float]:
    """The values of a row for which the draft has a name, in its units."""
    sources = {
        "congestion_window": ("cwnd_packets", packet),
        "bytes_in_flight": ("inflight_packets", packet),
        "packets_in_flight": ("inflight_packets", 1),
        "ssthresh": ("ssthresh", packet),
        "pacing_rate": ("pacing_bps", 1),
    }
    found: dict[str, float] = {
        key: round(scale * row[column])
        for key, (column, scale) in sources.items()
        if scale and row[column] is not None
    }
    return found if row["min_rtt"] is None else {**found, "min_rtt": 1e3 * row["min_rtt"]}


def _state(phase: str) -> str:
    """A phase as the draft writes states: ``slow_start``."""
    return phase.replace("-", "_")


def _changes(events: Iterable[Event]) -> list[Event]:
    """Leaves out what the flow's event of the same name had last, but keeps what an event is."""
    found = []
    told: dict[str, dict[str, Any]] = {}
    for event in events:
        name, data = event["name"], event["data"]
        last = told.setdefault(name, {})
        new = {
            key: value
            for key, value in data.items()
            if name == STATE or key == "event" or last.get(key) != value
        }
        last |= data
        if new:
            found.append({**event, "data": new})
    return found


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
