"""Exported qlog, read back by types with the fields of its drafts."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import polars as pl
import pytest
from msgspec import Meta, Struct
from test_exports import SCENARIO

import bluewater
from bluewater import InputError
from bluewater.results.exports import qlog

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Cli

    from bluewater.results.result import Result


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packets of the run `sampled`."""
    return tmp_path_factory.mktemp("packets") / "my.parquet"


@pytest.fixture(scope="module")
def sampled(rows: Path) -> Result:
    measure = {"interval": "100ms", "flows": True}
    return bluewater.run(SCENARIO | {"measure": measure, "warmup": "2s"}, packets=rows)


def test_qlog_has_what_was_sampled_of_each_flow(sampled: Result, tmp_path: Path) -> None:
    file = tmp_path / "my.qlog"
    qlog.write(sampled, file)
    made = json.loads(file.read_text())
    assert (made["qlog_version"], made["qlog_format"]) == ("0.3", "JSON")
    samples = sampled.load("flow_series")
    # A trace without an event ends qvis's reading of the whole file.
    assert all(each["events"] for each in made["traces"])
    told = samples.filter(pl.col("srtt_s").is_not_null() | pl.col("cwnd_packets").is_not_null())
    assert len(made["traces"]) == told["flow"].n_unique()
    trace_ = made["traces"][3]
    assert trace_["common_fields"]["protocol_type"] == ["sack"]
    mine = samples.filter((pl.col("flow") == 3) & (pl.col("cwnd_packets") > 0))
    last: dict[str, float] = {}
    for event in trace_["events"]:
        assert event["name"] == "recovery:metrics_updated"
        last |= event["data"]
    assert last["smoothed_rtt"] == pytest.approx(1e3 * mine["srtt_s"][-1])
    assert last["congestion_window"] == round(1000 * mine["cwnd_packets"][-1])
    times = [event["time"] for event in trace_["events"]]
    assert times == sorted(times)
    assert len(times) > 50
    assert not [each for each in made["traces"] if "cbr" in each["title"]]


class Header(Struct, forbid_unknown_fields=True):
    """PacketHeader of draft-ietf-quic-qlog-quic-events-01, appendix A.1, as far as it is used."""

    packet_type: Literal["initial", "handshake", "0RTT", "1RTT", "retry"]
    packet_number: Annotated[int, Meta(ge=0)]


class Raw(Struct, forbid_unknown_fields=True):
    """RawInfo of draft-ietf-quic-qlog-main-schema-02."""

    length: Annotated[int, Meta(ge=0)]


class Ack(Struct, forbid_unknown_fields=True):
    """AckFrame: stretches of packet numbers, from the first to the last of each."""

    frame_type: Literal["ack"]
    acked_ranges: Annotated[list[tuple[int, int]], Meta(min_length=1)]


class Sent(Struct, forbid_unknown_fields=True):
    """TransportPacketSent and TransportPacketReceived."""

    header: Header
    raw: Raw
    frames: list[Ack] = []


class Lost(Struct, forbid_unknown_fields=True):
    """RecoveryPacketLost."""

    header: Header


Count = Annotated[int, Meta(ge=0)]


class Metrics(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """RecoveryMetricsUpdated: round trips in ms, volumes in bytes, the rate in bit/s."""

    smoothed_rtt: float = 0.0
    min_rtt: float = 0.0
    congestion_window: Count = 0
    bytes_in_flight: Count = 0
    packets_in_flight: Count = 0
    ssthresh: Count = 0
    pacing_rate: Count = 0


class State(Struct, forbid_unknown_fields=True):
    """RecoveryCongestionStateUpdated."""

    new: str
    old: str | None = None


class VantagePoint(Struct, forbid_unknown_fields=True):
    """VantagePoint: a network's says whose packets it calls sent."""

    name: str
    type: Literal["client", "server", "network", "unknown"]
    flow: Literal["client", "server"] | None = None


class CommonFields(Struct, forbid_unknown_fields=True):
    group_id: str
    time_format: Literal["absolute", "delta", "relative"]
    reference_time: float
    protocol_type: list[str] = []


class Event(Struct, forbid_unknown_fields=True):
    time: Annotated[float, Meta(ge=0)]
    name: Literal[
        "transport:packet_sent",
        "transport:packet_received",
        "recovery:packet_lost",
        "recovery:metrics_updated",
        "recovery:congestion_state_updated",
        "bluewater:control_updated",
    ]
    data: dict[str, Any]


class Trace(Struct, forbid_unknown_fields=True):
    title: str
    vantage_point: VantagePoint
    common_fields: CommonFields
    events: list[Event]


class QlogFile(Struct, forbid_unknown_fields=True):
    qlog_version: Literal["0.3"]
    qlog_format: Literal["JSON"]
    title: str
    traces: list[Trace]


EVENTS: dict[str, Any] = {
    "transport:packet_sent": Sent,
    "transport:packet_received": Sent,
    "recovery:packet_lost": Lost,
    "recovery:metrics_updated": Metrics,
    "recovery:congestion_state_updated": State,
    "bluewater:control_updated": dict[str, Any],
}


def read_qlog(file: Path) -> dict[int, list[tuple[float, str, Any]]]:
    """The events of each flow, all of whose fields are those of the drafts."""
    found = {}
    for trace_ in msgspec.json.decode(file.read_bytes(), type=QlogFile).traces:
        assert (trace_.vantage_point.type == "network") == (trace_.vantage_point.flow is not None)
        times = [event.time for event in trace_.events]
        assert times == sorted(times)
        found[int(trace_.common_fields.group_id)] = [
            (
                event.time,
                event.name.partition(":")[2],
                msgspec.convert(event.data, EVENTS[event.name]),
            )
            for event in trace_.events
        ]
    return found


def judge_packets(events: list[tuple[float, str, Any]], known: pl.DataFrame) -> None:
    """By the file of packets: what was sent is lost, acknowledged or still under way."""
    data = known.filter((pl.col("queue") == "A->B") & (pl.col("kind") == "data"))
    sent = [(time, each) for time, name, each in events if name == "packet_sent"]
    assert [each.header.packet_number for _, each in sent] == list(range(data.height))
    assert [round(1e6 * time) for time, _ in sent] == data["arrived_ns"].to_list()
    assert sum(each.raw.length for _, each in sent) == data["bytes"].sum()
    lost = {each.header.packet_number for _, name, each in events if name == "packet_lost"}
    fates = data["fate"].to_list()
    assert lost == {k for k, fate in enumerate(fates) if fate == "dropped"}
    received = [each for _, name, each in events if name == "packet_received"]
    back = known.filter((pl.col("queue") == "B->A") & (pl.col("fate") == "sent"))
    assert len(received) == back.height
    ranges = [each for answer in received for frame in answer.frames for each in frame.acked_ranges]
    acked = [number for first, last in ranges for number in range(first, last + 1)]
    assert len(acked) == len(set(acked)), "each by the first that acknowledges it"
    assert all(fates[number] == "sent" for number in acked)
    # Each sequence number up to the last that was acknowledged, and no other.
    seqs = data["seq"].to_list()
    assert sorted(seqs[number] for number in acked) == list(range(max(back["seq"])))


def test_qlog_tells_what_was_sent_lost_and_acknowledged(tmp_path: Path, cli: Cli) -> None:
    file, rows = tmp_path / "packets.qlog", tmp_path / "lossy.parquet"
    sack, udp = SCENARIO["traffic"]
    lossy = SCENARIO | {"traffic": [{**sack, "ecn": False}, udp]}
    bluewater.run(lossy, packets=rows)
    done = cli("export", str(rows), "--to", str(file), keep_out=False)
    assert done.exit_code == 0, done.stderr
    known = pl.read_parquet(rows).sort("queue", "n")
    events = read_qlog(file)
    assert set(events) == set(known["flow"])
    for flow in range(10):
        assert {name for _, name, _ in events[flow]} == {
            "packet_sent", "packet_lost", "packet_received",
        }  # fmt: skip
        judge_packets(events[flow], known.filter(pl.col("flow") == flow))
    assert {name for _, name, _ in events[10]} == {"packet_sent", "packet_lost"}


def test_qlog_has_metrics_and_packets_in_one_trace(
    rows: Path, sampled: Result, tmp_path: Path
) -> None:
    file = tmp_path / "both.qlog"
    qlog.write(sampled, file, packets=rows)
    events = read_qlog(file)[3]
    judge_packets(events, pl.read_parquet(rows).filter(pl.col("flow") == 3).sort("queue", "n"))
    assert sum(name == "metrics_updated" for _, name, _ in events) > 50


OWN_CONTROL = '''
from bluewater.control import Controller, inf

class Halves(Controller):
    """Halves its window on each congestion."""

    signals = {"window": ("bytes", "Its window."), "low": ("bytes", "The lowest, at first inf.")}

    def start(self, s):
        self.mtu = float(s.mtu)
        self.cwnd = self.window = float(s.initial_window)
        self.low = inf

    def on_ack(self, a):
        self.window = self.cwnd = self.cwnd + self.mtu * a.acked / self.cwnd

    def on_congestion(self, c):
        self.window = self.low = self.cwnd = max(self.cwnd / 2, 2 * self.mtu)
'''


@pytest.fixture(scope="module")
def controlled() -> Result:
    own = {"transport": "python:own.py:Halves", "code": OWN_CONTROL}
    kinds = [{"transport": "bbr", "preset": "modern"}, own, {"transport": "sack"}]
    lossy = SCENARIO | {
        "duration": "12s",
        "traffic": [{"name": f"kind {n}", **kind} for n, kind in enumerate(kinds)],
        "measure": {"control": True},
    }
    return bluewater.run(lossy)


def test_qlog_has_each_value_of_each_row_of_control(controlled: Result, tmp_path: Path) -> None:
    file = tmp_path / "control.qlog"
    qlog.write(controlled, file)
    events, signals = read_qlog(file), controlled.control_signals
    assert set(events) == set(controlled.control["flow"]) == {0, 1, 2}
    for flow, mine in controlled.control.group_by("flow"):
        rows = mine.drop("flow", "group").to_dicts()
        told = [(ms, data) for ms, name, data in events[flow[0]] if name == "control_updated"]
        assert len(told) == len(rows) > 20
        state: dict[str, Any] = dict.fromkeys(rows[0])
        own: dict[str, list[float | None]] = {"window": [], "low": []}
        for (ms, data), row in zip(told, rows, strict=True):
            state |= data
            assert ms / 1e3 == pytest.approx(row.pop("time_s"), abs=1e-12)
            assert {key: state[key] for key in row} == row
            for name in own if flow[0] == 1 else ():
                own[name].append(state["signals"][name])
        for name, values in own.items():
            known = signals.filter(pl.col("flow") == flow[0], pl.col("signal") == name)
            assert values == known["value"].to_list()
    assert signals["value"].null_count() > 0


def test_qlog_has_windows_and_phases_by_the_names_of_the_draft(
    controlled: Result, tmp_path: Path
) -> None:
    file = tmp_path / "standard.qlog"
    qlog.write(controlled, file)
    events = read_qlog(file)
    for flow in range(3):
        rows = controlled.control.filter(pl.col("flow") == flow)
        phases = [data for _, name, data in events[flow] if name == "congestion_state_updated"]
        begun = rows.filter(pl.col("event") == "phase")
        assert [each.new.replace("_", "-") for each in phases] == begun["phase"].to_list()
        assert [(each.old or "").replace("_", "-") for each in phases] == begun["ended"].to_list()
        last: dict[str, float] = {}
        for _, name, data in events[flow]:
            last |= msgspec.to_builtins(data) if name == "metrics_updated" else {}
        end = rows.to_dicts()[-1]
        length = 1500 if flow == 0 else 1000
        assert last["congestion_window"] == round(length * end["cwnd_packets"])
        assert last["packets_in_flight"] == end["inflight_packets"]
        assert last["bytes_in_flight"] == length * end["inflight_packets"]
        for name, value in (("pacing_rate", end["pacing_bps"]), ("ssthresh", end["ssthresh"])):
            scale = length if name == "ssthresh" else 1
            assert last.get(name) == (None if value is None else round(scale * value))
    assert last["ssthresh"] > 0, "of Reno"
    assert {each.new for _, name, each in events[0] if name == "congestion_state_updated"} >= {
        "startup", "drain", "cruise", "probe_rtt",
    }  # fmt: skip


def test_qlog_has_samples_and_control_in_one_trace(tmp_path: Path) -> None:
    measure = {"interval": "100ms", "flows": True, "control": True}
    both = bluewater.run(SCENARIO | {"measure": measure})
    file = tmp_path / "both.qlog"
    qlog.write(both, file)
    for events in read_qlog(file).values():
        metrics = [data for _, name, data in events if name == "metrics_updated"]
        assert any(each.smoothed_rtt for each in metrics)
        assert any(each.packets_in_flight for each in metrics)
        assert all(
            one.congestion_window != two.congestion_window
            for one, two in pairwise(metrics)
            if one.congestion_window and two.congestion_window
        )


def test_a_run_without_samples_and_control_names_the_keys(tmp_path: Path) -> None:
    short = bluewater.run(SCENARIO | {"duration": "1s"})
    with pytest.raises(InputError) as error:
        qlog.write(short, tmp_path / "none.qlog")
    assert "`flows = true`" in (error.value.hint or "")
