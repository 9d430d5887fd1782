"""Runs and packets in the formats of other programs, read back by others than who wrote them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import tomli_w

import bluewater
from bluewater import InputError, _core, trace
from bluewater.results import packets, why
from bluewater.results.exports import mahimahi, ns2, pcapng, speedtest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Cli

    from bluewater.results.result import Result

SCENARIO: dict[str, Any] = {
    "duration": "8s",
    "network": {"preset": "dumbbell", "rate": "10mbit", "delay": "10ms"},
    "queue": [
        {"aqm": "blue", "buffer": "40p"},
        {"link": "B->A", "aqm": "droptail", "buffer": "100p"},
    ],
    "traffic": [
        {"transport": "sack", "flows": 10, "start": "0s..1s", "ecn": True},
        {"transport": "cbr", "rate": "2mbit"},
    ],
}
"""Data and acknowledgements at a queue each."""

WEB = {
    "transport": "sack", "flows": 5, "app": "web", "size": "24p", "shape": 1.2, "objects": 4,
    "off": "500ms", "handshake": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("rows") / "my.parquet"
    bluewater.run(SCENARIO, packets=file)
    return file


def tshark(file: Path, *fields: str, wanted: str = "frame") -> list[list[str]]:
    """The fields of packets as Wireshark reads them; skips where it is not installed."""
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("tshark is not installed")
    chosen = [word for field in fields for word in ("-e", field)]
    line = [program, "-r", str(file), "-Y", wanted, "-T", "fields", "-E", "separator=/t", *chosen]
    made = subprocess.run(line, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in made.stdout.splitlines()]


@pytest.mark.slow
def test_wireshark_reads_each_packet_and_its_comment(rows: Path, tmp_path: Path) -> None:
    file = tmp_path / "my.pcapng"
    pcapng.write(rows, file)
    known = pl.read_parquet(rows).sort("arrived_ns", maintain_order=True)
    shown = tshark(file, "frame.time_epoch", "frame.len", "ip.dsfield.ecn", "frame.comment")
    times, lengths, ecn, comments = zip(*shown, strict=True)
    assert [round(float(time) * 1e9) for time in times] == known["arrived_ns"].to_list()
    assert [int(length) for length in lengths] == known["bytes"].to_list()
    numbers = {"not-ect": 0, "ect1": 1, "ect0": 2, "ce": 3}
    assert [int(field) for field in ecn] == [numbers[each] for each in known["ecn"]]
    for comment, row in zip(comments, known.iter_rows(named=True), strict=True):
        assert f"packet {row['n']} at {row['queue']} (" in comment
        assert (row["fate"] == "dropped") == ("dropped" in comment.partition("\\n")[0])
        assert ("marked (CE)" in comment) == bool(row["marked"])


@pytest.mark.slow
def test_wireshark_finds_what_the_sender_repeated(rows: Path, tmp_path: Path) -> None:
    file = tmp_path / "my.pcapng"
    pcapng.write(rows, file)
    data = pl.read_parquet(rows).filter(pl.col("kind") == "data").sort("arrived_ns")
    again = data.filter(~pl.struct("flow", "seq").is_first_distinct())
    # It calls some of them by other names, and sees those alone that come after a gap.
    wanted = (
        "tcp.analysis.retransmission or tcp.analysis.fast_retransmission"
        " or tcp.analysis.out_of_order or tcp.analysis.spurious_retransmission"
    )
    found = tshark(file, "frame.time_epoch", wanted=wanted)
    times = {round(float(time) * 1e9) for (time,) in found}
    assert again.height > 20
    assert times == set(again["arrived_ns"])
    acks = tshark(file, "tcp.ack", wanted="tcp.len == 0 and ip.dst == 10.0.0.3")
    kept = pl.read_parquet(rows).filter((pl.col("kind") == "ack") & (pl.col("flow") == 3))
    # 1000 bytes with 40 of headers.
    assert [int(ack) for (ack,) in acks] == [1 + 960 * seq for seq in kept["seq"]]


def test_our_own_reader_finds_the_flows(rows: Path, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "down.pcapng"
    pcapng.write(rows, file, "A->B")
    found = trace.measure(file).flows
    known = pl.read_parquet(rows).filter(pl.col("queue") == "A->B")
    assert found.height == 11
    assert found["bytes"].sum() == known["bytes"].sum()
    assert sorted(found["protocol"]) == [6] * 10 + [17]
    assert [each.name for each in file.parent.iterdir()] == ["down.pcapng"]
    with pytest.raises(InputError, match="no packets of this queue"):
        pcapng.write(rows, file, "B->Z")


def test_each_kind_of_tcp_has_its_numbers() -> None:
    """Of one that nobody thought of they would be those of data."""
    numbers = {kind: pcapng._numbers({"kind": kind, "seq": 2}, 1460) for kind in packets.TCP}
    assert numbers == {
        "data": (2921, 1, False),
        "ack": (1, 2921, False),
        "syn": (0, None, True),
        "syn-ack": (0, 1, True),
        "request": (1, 1, False),
    }
    assert {"ack", "syn-ack"} == ns2._ACKS < set(packets.TCP)


def test_every_cause_of_the_core_s_is_told() -> None:
    queues = next(each for each in _core.tables() if each["name"] == "queues")
    names = {name for column in queues["columns"] for name in column["names"]}
    causes = {name.removeprefix("drops_") for name in names if name.startswith("drops_")}
    causes.remove("bytes")
    assert why._CAUSES.keys() == causes
    assert {"", *causes} == set(packets._WORDS["marked"]) == set(packets._WORDS["dropped"])


def test_web_sessions_have_handshakes_and_requests(tmp_path: Path) -> None:
    file, made = tmp_path / "web.parquet", tmp_path / "web.pcapng"
    web: dict[str, Any] = SCENARIO | {"traffic": [WEB]}
    bluewater.run(web, packets=file)
    pcapng.write(file, made)
    kinds = packets.open_(file)[0].select("kind").collect()["kind"]
    assert {"syn", "syn-ack", "data", "ack"} <= set(kinds)
    syns = tshark(made, "ip.src", wanted="tcp.flags.syn == 1 and tcp.flags.ack == 0")
    answers = tshark(made, "ip.dst", wanted="tcp.flags.syn == 1 and tcp.flags.ack == 1")
    assert (len(syns), len(answers)) == ((kinds == "syn").sum(), (kinds == "syn-ack").sum())
    assert {address for (address,) in answers} <= {address for (address,) in syns}
    # The client is where the data go: what it says leaves node 3 + 2N of ns-2, data node 2 + 2N.
    for queue, first in (("A->B", {0}), ("B->A", {1})):
        ns2.write(file, tmp_path / "web.tr", queue)
        ends = [line.split()[8] for line in (tmp_path / "web.tr").read_text().splitlines()]
        assert {int(end.partition(".")[0]) % 2 for end in ends} == first


NS2 = re.compile(
    r"([-+rd]) (\d+\.\d{9}) 0 1 (tcp|ack|cbr) (\d+) (----[E-]-[N-]) "
    r"(\d+) (\d+)\.(\d+) (\d+)\.(\d+) (\d+) (\d+)"
)


def test_a_trace_of_ns_2_tells_each_event(rows: Path, tmp_path: Path) -> None:
    file = tmp_path / "my.tr"
    ns2.write(rows, file, "A->B")
    lines = [NS2.fullmatch(line) for line in file.read_text().splitlines()]
    events = [line.groups() for line in lines if line is not None]
    assert len(events) == len(lines)
    times = [round(float(event[1]) * 1e9) for event in events]
    assert times == sorted(times)
    known = pl.read_parquet(rows).filter(pl.col("queue") == "A->B")
    fates = dict(known["fate"].value_counts().iter_rows())
    kinds = [event[0] for event in events]
    assert kinds.count("+") == known.height
    assert kinds.count("d") == fates["dropped"]
    assert kinds.count("-") == kinds.count("r") == fates["sent"]
    marked = known.filter((pl.col("marked") != "") & (pl.col("fate") == "sent")).height
    assert sum(event[0] == "r" and event[4] == "----E-N" for event in events) == marked > 0
    sent = {event[11]: time for event, time in zip(events, times, strict=True) if event[0] == "-"}
    for event, time in zip(events, times, strict=True):
        if event[0] == "r":  # 1000 bytes at 10 Mb/s take 0.8 ms, and then 10 ms.
            assert time - sent[event[11]] == 10_800_000


def test_a_log_of_mahimahi_has_the_throughput_of_the_run(rows: Path, tmp_path: Path) -> None:
    file = tmp_path / "my.mahimahi"
    mahimahi.write(rows, file, "A->B")
    lines = file.read_text().splitlines()
    assert "# base timestamp: 0" in lines
    events = [line.split() for line in lines if not line.startswith("#")]
    sums = {kind: sum(int(e[2]) for e in events if e[1] == kind) for kind in "+-#"}
    known = pl.read_parquet(rows).filter(pl.col("queue") == "A->B")
    assert sums["+"] == known["bytes"].sum()
    sent = known.filter(pl.col("fate") == "sent")
    assert sums["-"] == sent["bytes"].sum()
    # 10 Mb/s for 8 s, in chances of 1504 bytes.
    assert sums["#"] == pytest.approx(10_000_000, abs=2 * 1504)
    drops = [e for e in events if e[1] == "d"]
    assert len(drops) == known.height - sent.height - (known["fate"] == "queued").sum()
    assert all(e[2:] == ["1", "1000"] for e in drops)
    departures = [e for e in events if e[1] == "-"]
    delays = sum(int(e[3]) for e in departures) / len(departures) / 1e3
    assert delays == pytest.approx(sent["delay_s"].mean(), abs=1e-3)
    stamps = [int(e[0]) for e in events]
    assert stamps == sorted(stamps)


def test_a_link_that_varies_has_no_rate_to_tell(tmp_path: Path) -> None:
    rates = {"steps": [["0s", "10mbit"], ["1s", "5mbit"]]}
    link = {"from": "A", "to": "B", "rate": "10mbit", "delay": "10ms", "rate_trace": rates}
    flow = {"transport": "sack", "from": ["A"], "to": ["B"]}
    queue = {"aqm": "blue", "buffer": "40p", "link": "A->B"}
    varying = {"duration": "2s", "link": [link], "queue": [queue], "traffic": [flow]}
    file = tmp_path / "varying.parquet"
    bluewater.run(varying, packets=file)
    with pytest.raises(InputError, match="constant rate and delay"):
        ns2.write(file, tmp_path / "x.tr")
    mahimahi.write(file, tmp_path / "x.mahimahi")
    assert " # " not in (tmp_path / "x.mahimahi").read_text()


@pytest.fixture(scope="module")
def sampled() -> Result:
    measure = {"interval": "100ms", "flows": True}
    return bluewater.run(SCENARIO | {"measure": measure, "warmup": "2s"})


def test_a_speed_test_of_both_ways_begins_on_an_idle_line(tmp_path: Path) -> None:
    ping = {"name": "ping", "transport": "sack", "app": "web", "size": "1p", "objects": 1,
            "off": "100ms", "handshake": True}  # fmt: skip
    bulk = {"transport": "sack", "start": "2s..3s", "flows": 2}
    made = bluewater.run(
        SCENARIO
        | {
            "warmup": "4s",
            "traffic": [
                ping,
                {"name": "down", **bulk},
                {"name": "up", "from": ["B"], "to": ["A"], **bulk},
            ],
            "measure": {"interval": "50ms", "flows": True},
        }
    )
    file = tmp_path / "my.speedtest.json"
    speedtest.write(made, file)
    found = json.loads(file.read_text())
    samples = made.load("flow_series")
    idle = samples.filter((pl.col("time_s") < 2) & pl.col("srtt_s").is_not_null())
    assert found["latency"] == pytest.approx(1e3 * idle.select(pl.median("srtt_s")).item())
    # The line's 20 ms there and back, and a packet's transmission; nothing waits.
    assert 20 < found["latency"] < 23
    assert found["jitter"] < 5
    assert found["latency"] < found["downLoadedLatency"]
    assert found["latency"] < found["upLoadedLatency"]
    for key, groups in (("download", ["down", "ping"]), ("upload", ["up"])):
        own = samples.filter(pl.col("group").is_in(groups) & (pl.col("time_s") > 4))
        rates = own.group_by("time_s").agg(pl.col("goodput_bps").sum())
        rate = pl.col("goodput_bps")
        low, high = rates.select(rate.mean(), p90=rate.quantile(0.9, "linear")).row(0)
        assert low < found[key] == pytest.approx(high)


def test_a_speed_test_sums_up_what_flows_got(sampled: Result, tmp_path: Path) -> None:
    file = tmp_path / "my.speedtest.json"
    speedtest.write(sampled, file)
    made = json.loads(file.read_text())
    assert set(made) == {"download", "downLoadedLatency", "downLoadedJitter", "packetLoss"}
    tcp = sampled.flows.filter(pl.col("transport") == "sack")
    assert 1 < made["download"] / tcp["goodput_bps"].sum() < 1.2
    # The base round trip is 20 ms and more, the buffer 32 ms.
    assert 20 < made["downLoadedLatency"] < 70
    assert 0 < made["downLoadedJitter"] < made["downLoadedLatency"]
    udp = sampled.flows.filter(pl.col("transport") == "cbr")
    assert made["packetLoss"] == pytest.approx(udp["loss"][0])
    with pytest.raises(InputError, match="no table 'flow_series'"):
        speedtest.write(bluewater.run(SCENARIO), file)


def test_a_speed_test_loses_no_more_than_all(tmp_path: Path) -> None:
    """CoDel drops what a flow that has ended left behind, and next to nothing arrives."""
    made = bluewater.run(
        {
            "duration": "3s",
            "warmup": "2s",
            "network": {"preset": "dumbbell", "rate": "1mbit"},
            "queue": [{"aqm": "codel", "buffer": "1000p"}],
            "traffic": [
                {"name": "gone", "transport": "cbr", "rate": "2mbit", "stop": "2s"},
                {"name": "thin", "transport": "sack"},
            ],
            "measure": {"interval": "100ms", "flows": True},
        }
    )
    file = tmp_path / "my.speedtest.json"
    speedtest.write(made, file)
    assert made.flows["drops"][0] > made.flows["arrivals"][0]
    assert json.loads(file.read_text())["packetLoss"] == 1


def test_the_command_line(cli: Cli, rows: Path, tmp_path: Path) -> None:
    scenario, direct = tmp_path / "my.toml", tmp_path / "direct.pcapng"
    scenario.write_text(tomli_w.dumps(SCENARIO))
    made = cli("run", str(scenario), "--packets", str(direct))
    assert made.exit_code == 0, made.stderr
    assert "bluewater why" not in made.stderr
    later = tmp_path / "later.pcapng"
    done = cli("export", str(rows), "--to", str(later), keep_out=False)
    assert done.exit_code == 0, done.stderr
    assert later.read_bytes() == direct.read_bytes()
    for arguments, problem in [
        (["--to", str(tmp_path / "a.csv")], "unknown format"),
        (["--to", str(later)], "made from packets"),
        ([str(scenario), "--to", str(later)], "not a file of packets"),
        ([str(rows), "--to", "/proc/nowhere/x.pcapng"], "cannot write"),
    ]:
        refused = cli("export", *arguments, keep_out=False)
        assert refused.exit_code != 0
        assert problem in refused.stderr
        assert "Traceback" not in refused.stderr
