"""A run for Flent, read by Flent itself."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import polars as pl
import pytest

import bluewater
from bluewater.errors import InputError
from bluewater.results.exports import flent

if TYPE_CHECKING:
    from conftest import Cli

    from bluewater.results.result import Result

SAMPLED = """
duration = "3s"
warmup = "1s"
[network]
preset = "dumbbell"
rate = "10mbit"
[measure]
interval = "200ms"
groups = true
flows = true
[[queue]]
aqm = "red"
buffer = "100p"
[[traffic]]
name = "one"
flows = 10
transport = "sack"
start = "0s..1s"
ecn = true
[[traffic]]
name = "two"
flows = 5
transport = "sack"
start = "0s..1s"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Result:
    path = tmp_path_factory.mktemp("flent") / "sampled.toml"
    path.write_text(SAMPLED)
    return bluewater.run(path)


def read(file: Path, *arguments: str) -> str:
    program = Path(sys.executable).with_name("flent")
    found = subprocess.run(
        [program, "-i", file, *arguments],
        env=os.environ | {"MPLBACKEND": "Agg"},
        cwd=file.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "Error" not in found.stderr, found.stderr
    # It greets on stdout, too.
    greeting, _, rest = found.stdout.partition("\n")
    return rest if greeting.startswith("Starting Flent") else found.stdout


def test_flent_reads_what_each_group_sends(run: Result, tmp_path: Path) -> None:
    file = tmp_path / "a.flent.gz"
    flent.write(run, file)
    rows = list(csv.DictReader(read(file, "-f", "csv").splitlines()))
    assert [float(row["tcp_nup"]) for row in rows] == run.series["time_s"].to_list()
    for stream, group in enumerate(("one", "two"), 1):
        sent = [float(row[f"TCP upload::{stream}"]) for row in rows]
        there = run.groups.filter(group=group)["throughput_bps"] / 1e6
        assert sent == pytest.approx(there.to_list())
    for row in rows:
        of_both = float(row["TCP upload::1"]) + float(row["TCP upload::2"])
        assert float(row["TCP upload sum"]) == pytest.approx(of_both)
        assert of_both < 10.001, "the link has 10 Mb/s"
    pings = {float(row["tcp_nup"]): row for row in rows}
    for time, row in pings.items():
        trips = run.flow_series.filter(pl.col("srtt_s") > 0, time_s=time)["srtt_s"].to_list()
        told = row["Ping (ms) ICMP"]
        assert float(told) == pytest.approx(1e3 * median(trips)) if trips else not told


@pytest.mark.slow
@pytest.mark.parametrize("plot", ["totals", "upload", "backlog", "drops"])
def test_flent_draws_it(run: Result, tmp_path: Path, plot: str) -> None:
    file, picture = tmp_path / "a.flent.gz", tmp_path / "drawn.png"
    flent.write(run, file)
    read(file, "-f", "plot", "-p", plot, "-o", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_statistics_are_those_of_the_queue(run: Result, tmp_path: Path) -> None:
    file = tmp_path / "a.flent.gz"
    flent.write(run, file)
    shown = read(file, "-f", "stats")
    assert "TCP upload sum" in shown
    raw = flent.document(run, file.name)["raw_values"]["qdisc_stats_gw"]
    assert sum(point["dropped"] for point in raw) == run.series["drops"].sum() > 0
    assert sum(point["ecn_mark"] for point in raw) == run.series["marks"].sum() > 0
    assert [point["backlog_bytes"] for point in raw] == run.series["backlog_bytes"].to_list()


def test_the_same_run_gives_the_same_file(run: Result, tmp_path: Path) -> None:
    first, second = tmp_path / "1" / "a.flent.gz", tmp_path / "2" / "a.flent.gz"
    flent.write(run, first)
    flent.write(run, second)
    assert first.read_bytes() == second.read_bytes()


def test_what_cannot_be_written_is_said(run: Result, tmp_path: Path, tiny: Path) -> None:
    with pytest.raises(InputError, match="no queue 'B->Z'") as error:
        flent.write(run, tmp_path / "a.flent.gz", "B->Z")
    assert error.value.hint == "there are: A->B"
    with pytest.raises(InputError, match="no table") as error:
        flent.write(bluewater.run(tiny), tmp_path / "a.flent.gz")
    assert "groups = true" in str(error.value.hint)
    assert not (tmp_path / "a.flent.gz").exists()


def test_export_writes_a_run_that_is_kept(cli: Cli, run: Result, tmp_path: Path) -> None:
    run.save(tmp_path / "kept")
    file = tmp_path / "a.flent.gz"
    done = cli("export", str(tmp_path / "kept"), "--to", str(file), keep_out=False)
    assert done.exit_code == 0
    assert done.stdout.strip() == str(file)
    assert "TCP upload::2" in read(file, "-f", "csv")
