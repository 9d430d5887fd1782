from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from conftest import Cli

from bluewater import _core, trace
from bluewater.errors import InputError
from bluewater.results.store import Store
from bluewater.study.experiments import experiment
from bluewater.study.experiments.experiment import parse
from bluewater.study.experiments.reproduce import Plan, reproduce

SHORT = {"duration": "5s", "load": "2mbit"}


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "x.pcapng"
    trace.generate(path, SHORT)
    return path


def test_both_formats_hold_the_same(tmp_path: Path, capture: Path) -> None:
    classic = tmp_path / "x.pcap"
    packets, size = trace.generate(classic, SHORT)
    assert classic.read_bytes()[:4] == b"\x4d\x3c\xb2\xa1"
    one, other = trace.measure(classic), trace.measure(capture)
    assert one.summary == other.summary
    assert one.flows.equals(other.flows)
    assert (one.summary["packets"], one.summary["bytes"]) == (packets, size)
    assert one.flows["bytes"].sum() == size
    assert one.flows["bytes"].is_sorted(descending=True)
    assert one.summary["error"] is None
    whole = trace.measure(classic, windows=["1s"])
    assert trace.measure(classic, windows="1s").windows.equals(whole.windows)


def test_the_command_prints_tables_and_draws(cli: Cli, capture: Path) -> None:
    done = cli("trace", str(capture), "--window", "500ms", "--window", "1s")
    assert done.exit_code == 0
    for words in ("flows, ", "Bytes / packets of the largest flows", "Largest flows", "tcp"):
        assert words in done.stdout
    folder = cli.out / "trace-x"
    for picture in ("skew", "windows", "persistence"):
        assert (folder / f"{picture}.png").stat().st_size > 10_000
    skew = pl.read_parquet(folder / "skew.parquet")
    assert skew["window"].unique(maintain_order=True).to_list() == ["whole", "500ms", "1s"]
    whole = skew.filter(pl.col("window") == "whole")
    assert whole["byte_share"].is_sorted()
    assert whole["byte_share"][-1] == pytest.approx(1)


def test_json_on_stdout(cli: Cli, capture: Path) -> None:
    found = json.loads(cli("trace", str(capture), "--json").stdout)
    assert set(found) == {"summary", "windows", "skew", "persistence", "flows"}
    assert found["summary"]["flows"] == len(found["flows"])


def test_a_pipe_is_read(capture: Path) -> None:
    with capture.open("rb") as stream:
        code = "from bluewater import trace; print(trace.measure(None).summary['bytes'])"
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=stream, capture_output=True, text=True, check=True
        )
    assert int(done.stdout) == trace.measure(capture).summary["bytes"]


def test_a_cut_file_is_measured_until_there(cli: Cli, capture: Path) -> None:
    whole = trace.measure(capture).summary["packets"]
    content = capture.read_bytes()
    capture.write_bytes(content[: len(content) - 70])
    done = cli("trace", str(capture), "--json")
    assert done.exit_code == 0
    summary = json.loads(done.stdout)["summary"]
    assert summary["packets"] == whole - 1
    assert f"{capture}: byte {len(content) - 72}: the file ends in the middle" in summary["error"]
    assert "the capture was measured up to there" in done.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b"hello, world", "neither pcap nor pcapng"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"\x0a\x0d\x0d\x0a", "ends in the middle"),
    ],
)
def test_what_is_no_capture_is_refused(cli: Cli, tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "bad.pcap"
    path.write_bytes(content)
    done = cli("trace", str(path))
    assert done.exit_code == 2
    assert f"{path}: byte 0: " in done.stderr.replace("\n", "")
    assert says in done.stderr


def test_a_missing_file_is_named(cli: Cli, tmp_path: Path) -> None:
    done = cli("trace", str(tmp_path / "none.pcap"))
    assert done.exit_code == 2
    assert "none.pcap" in done.stderr


def test_flows_beyond_the_bound_are_merged_and_said(cli: Cli, capture: Path) -> None:
    done = cli("trace", str(capture), "--json", "--most-flows", "20")
    found = json.loads(done.stdout)
    assert len(found["flows"]) <= 20
    summary = found["summary"]
    told = sum(flow["bytes"] for flow in found["flows"])
    assert summary["merged_bytes"] > 0
    assert told + summary["merged_bytes"] == summary["bytes"]
    shown = cli("trace", str(capture), "--most-flows", "20")
    assert f"{summary['merged_flows']:,} flows were merged" in shown.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["--size-shape", "0"], "--size-shape"),
        (["--load", "10"], "--load"),
        (["--duration", "0s"], "--duration"),
        (["--most", "50"], "--most"),
    ],
)
def test_generator_options_are_checked(
    cli: Cli, tmp_path: Path, arguments: list[str], key: str
) -> None:
    path = tmp_path / "y.pcapng"
    done = cli("trace", "generate", str(path), *arguments, keep_out=False)
    assert done.exit_code == 2
    assert f"at {key} = " in done.stderr
    assert not path.exists()


def test_windows_are_checked(cli: Cli, capture: Path) -> None:
    done = cli("trace", str(capture), "--window", "0s")
    assert done.exit_code == 2
    assert "times above 0" in done.stderr


def test_a_capture_is_traffic(cli: Cli, tmp_path: Path, capture: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        f"""
        duration = "10s"
        [network]
        preset = "dumbbell"
        rate = "1mbit"
        [[queue]]
        aqm = "red"
        buffer = "50p"
        [[traffic]]
        transport = "trace"
        file = "{capture}"
        """
    )
    found = json.loads(cli("run", str(scenario), "--json").stdout)
    summary = trace.measure(capture).summary
    assert found["summary"]["arrivals"] == summary["packets"]
    assert found["summary"]["flows"] == summary["flows"] == len(found["flows"])
    assert found["summary"]["drops"] > 0
    assert "digest = " in found["scenario"]


def test_one_direction_of_a_capture_is_traffic(cli: Cli, tmp_path: Path, capture: Path) -> None:
    flows = trace.measure(capture).flows
    sender = flows["source"][0]
    scenario = tmp_path / "s.toml"

    def run(senders: str) -> str:
        scenario.write_text(
            f"""
            duration = "10s"
            network = {{ preset = "dumbbell", rate = "1mbit" }}
            queue = [{{ aqm = "red", buffer = "50p" }}]
            [[traffic]]
            transport = "trace"
            file = "{capture}"
            senders = ["{senders}"]
            """
        )
        done = cli("run", str(scenario), "--json")
        return done.stdout if done.exit_code == 0 else done.stderr

    found = json.loads(run(sender))
    assert found["summary"]["arrivals"] == flows.filter(source=sender)["packets"].sum()
    assert json.loads(run("0.0.0.0/0"))["summary"]["arrivals"] == flows["packets"].sum()
    assert "traffic[0].senders" in run("203.0.113.0/24")
    assert "192.0.2.0/24" in run("lan")


TRACE = """
seeds = [1, 2]
[trace]
duration = "5s"
load = "2mbit"
windows = ["1s"]
[sweep]
shape = { key = "trace.size_shape", values = [0.8, 2.5] }
[[claim]]
id = "a"
text = "Light tails have less skew."
paper = "less"
measure = '''
SELECT seed, SUM(CASE shape WHEN 2.5 THEN byte_share ELSE -byte_share END) AS value FROM skew
WHERE flow_share = 0.1 AND "window" = 'whole' GROUP BY seed'''
holds = "< -0.2"
"""


def test_a_generated_trace_is_an_experiment(tmp_path: Path) -> None:
    loaded = parse(TRACE, "f.toml", "x")
    plan = Plan.of([(loaded, loaded.size("full"))])
    (outcome,) = reproduce(plan, Store(tmp_path), 1)
    (finding,) = outcome.findings
    assert str(finding.verdict) == "reproduced"
    assert outcome.tables.present == ["skew", "persistence"]
    assert len(outcome.tables.runs) == 4
    again = reproduce(Plan.of([(loaded, loaded.size("full"))]), Store(tmp_path / "2"), 1)
    assert again[0].decision_hash == outcome.decision_hash


def test_an_experiment_says_what_it_cannot_take() -> None:
    loaded = parse(TRACE.replace('load = "2mbit"', 'laod = "2mbit"'), "f.toml", "x")
    with pytest.raises(InputError) as raised:
        loaded.plan(loaded.size("full"))
    assert (raised.value.file, raised.value.key) == ("f.toml", "laod")
    assert "load" in str(raised.value.allowed)


def test_the_paper_s_figures_are_an_experiment_of_a_trace() -> None:
    assert "trace" in experiment.load("redpd/fig3-5").base


def test_a_sweep_of_traces_shows_what_traces_have(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "loads.toml"
    file.write_text(
        'seeds = [1]\n[trace]\nduration = "5s"\nwindows = ["1s"]\n'
        '[sweep]\nload = { key = "trace.load", values = ["1mbit", "2mbit"] }\n'
    )
    done = cli("sweep", str(file))
    assert done.exit_code == 0, done.stderr
    _, units, *rows = done.stdout.splitlines()
    assert units.split()[:4] == ["load", "seeds", "Mb/s", "packets"]
    assert len(rows) == 2


REPLAYED = """
duration = "6s"
network = { preset = "dumbbell", rate = "4mbit" }
queue = [{ aqm = "pie", buffer = "50p" }]
traffic = [{ transport = "trace", file = "x.pcap" }]
"""


def set_back(path: Path, by: int) -> None:
    """As if the clock of the capturing host had been set back, in s, half way through a capture."""
    raw, at, told = bytearray(path.read_bytes()), 24, []
    while at < len(raw):
        told.append(at)
        at += 16 + struct.unpack_from("<I", raw, at + 8)[0]
    for record in told[len(told) // 2 :]:
        struct.pack_into("<I", raw, record, struct.unpack_from("<I", raw, record)[0] - by)
    path.write_bytes(raw)


def test_a_clock_that_was_set_is_told_to_the_user_of_a_scenario(cli: Cli, tmp_path: Path) -> None:
    """As `trace` tells it; once for a whole sweep."""
    path = tmp_path / "x.pcap"
    trace.generate(path, SHORT)
    (tmp_path / "x.toml").write_text(REPLAYED)
    told = "out of order, or after the clock was set"
    run = ("run", str(tmp_path / "x.toml"))
    assert told not in cli(*run).stderr
    set_back(path, 2)
    (said,) = (line for line in cli(*run).stderr.splitlines() if told in line)
    assert said.startswith(f"note: {path}: 1 packet is recorded")
    assert cli("trace", str(path)).stderr.count(told) == 1
    sweep = cli("sweep", str(tmp_path / "x.toml"), "--set", "queue.0.aqm=red")
    assert sweep.stderr.count(told) == 1


def test_a_clock_that_was_set_forward_is_told_as_silence(cli: Cli, tmp_path: Path) -> None:
    """The traffic would end with the run, and nobody would know why."""
    path = tmp_path / "x.pcap"
    trace.generate(path, SHORT)
    (tmp_path / "x.toml").write_text(REPLAYED)
    told = "there is no packet from "
    assert told not in cli("trace", str(path)).stderr
    assert trace.measure(path).summary["silence_s"] < 10
    set_back(path, -3600)
    assert cli("trace", str(path)).stderr.count(told) == 1
    assert trace.measure(path).summary["silence_s"] == pytest.approx(3600, abs=1)
    (said,) = (
        line for line in cli("run", str(tmp_path / "x.toml")).stderr.splitlines() if told in line
    )
    assert said.startswith(f"note: {path}: {told}")


def test_packets_that_offloads_have_merged_are_told(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `trace` and by a run, which reads the capture once."""
    path = tmp_path / "x.pcap"
    trace.generate(path, SHORT)
    raw = bytearray(path.read_bytes())
    (length,) = struct.unpack_from("<I", raw, 36)
    struct.pack_into("<I", raw, 36, 20_000)
    path.write_bytes(raw)
    assert length <= 1522
    told = "1 packet is longer than a frame of Ethernet"
    assert cli("trace", str(path)).stderr.count(told) == 1
    (tmp_path / "x.toml").write_text(REPLAYED)
    monkeypatch.delattr(_core, "measure_trace")
    for _ in range(2):  # the second time of a kept run
        said = cli("run", str(tmp_path / "x.toml")).stderr
        assert f"note: {path}: {told}" in said
        assert "gro off" in said
