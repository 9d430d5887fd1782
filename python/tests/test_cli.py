from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import SWEEP, TINY, Cli, children
from rich.console import Console

import bluewater
from bluewater.cli.view import picture
from bluewater.plots.run import panels, side_by_side, stem
from bluewater.results.result import SIMULATED
from bluewater.text import milliseconds


def test_list_json(cli: Cli) -> None:
    found = json.loads(cli("list", "--json", keep_out=False).stdout)
    assert set(found) == {"aqms", "transports", "experiments"}
    assert {"red", "blue", "droptail"} <= set(found["aqms"])
    assert "sack" in found["transports"]
    assert "feng/fig5" in found["experiments"]


@pytest.mark.parametrize("command", ["", "reproduce", "report", "compare", "run", "sweep", "plot",
                                     "export", "list", "explain", "bench", "doctor"])  # fmt: skip
def test_help_has_examples(cli: Cli, command: str) -> None:
    found = cli(*filter(None, [command]), "--help", keep_out=False)
    assert found.exit_code == 0
    assert command == "" or f"bluewater {command}" in " ".join(found.stdout.split())


def test_run_json_has_summary_queues_flows_and_hash(cli: Cli, tiny: Path) -> None:
    found = json.loads(cli("run", str(tiny), "--json").stdout)
    assert found["summary"]["aqm"] == "red"
    assert len(found["queues"]) == 1
    assert len(found["flows"]) == 20
    assert found["decision_hash"] == bluewater.run(tiny).decision_hash
    (kept,) = (cli.out / "runs").glob("*/*")
    assert json.loads((kept / "meta.json").read_text())["summary"]["aqm"] == "red"


def test_run_shows_transfers(cli: Cli, tmp_path: Path) -> None:
    finite = 'transport = "sack"\napp = "finite"\nsize = "3kB"'
    text = TINY.replace('transport = "sack"', finite).replace("0s..1s", "1s..1500ms")
    file = tmp_path / "finite.toml"
    file.write_text(text)
    assert "flows: flows" in " ".join(cli("run", str(file)).stdout.split())
    (row,) = json.loads(cli("run", str(file), "--json").stdout)["transfers"]
    assert row["kind"] == "flow"
    assert 0 < row["completed"] <= row["began"]


def test_no_star_where_the_seed_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bluewater.cli import compare  # noqa: PLC0415

    setup: dict[str, Any] = {"rate": "5mbit", "flows": 5, "duration": "6s", "warmup": "2s"}
    found = bluewater.compare(
        ["red", "codel"], seeds=[1, 2, 3], settings={"traffic.0.start": "0s"}, jobs=2,
        out=tmp_path, progress=False, **setup,
    )  # fmt: skip
    hashes = {run.decision_hash for at, run in found.results() if at["aqm"] == "codel"}
    assert len(hashes) == 1
    apart = found.differences("aqm", "red").filter(pl.col("significant"))
    assert not apart.is_empty()
    shown = Console(width=200, record=True, quiet=False)
    shown.print(compare._table(found, "red", 3))
    assert "*" not in next(line for line in shown.export_text().splitlines() if "codel" in line)


def test_run_shows_delays_by_group(cli: Cli, tiny: Path) -> None:
    assert "one-way" not in cli("run", str(tiny)).stdout
    asked = ("run", str(tiny), "--set", "measure.delays=true")
    shown = cli(*asked).stdout
    rows = json.loads(cli(*asked, "--json").stdout)["delays"]
    assert [row["kind"] for row in rows] == ["queueing", "one-way", "round-trip"]
    for row in rows:
        line = next(each for each in shown.splitlines() if f"flows: {row['kind']}" in each)
        assert milliseconds(row["delay_p50_s"]) in line
    queueing, one_way, round_trip = (row["delay_mean_s"] for row in rows)
    assert queueing < one_way < round_trip


def test_groups_of_one_name_are_all_shown(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "chain.toml"
    file.write_text(
        """
        duration = "2s"
        measure = { delays = true }
        [network]
        preset = "dumbbell"
        bottlenecks = 3
        cross = 1
        [[queue]]
        aqm = "droptail"
        buffer = "50p"
        [[traffic]]
        name = "cross"
        transport = "cbr"
        rate = "4mbit"
        from = ["s*.0"]
        to = ["d*.0"]
        """
    )
    assert cli("run", str(file)).stdout.count("cross: one-way") == 3


def test_run_writes_its_tables_as_csv(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "csv"
    cli("run", str(tiny), "--csv", str(folder))
    names = {file.name for file in folder.iterdir()}
    assert names == {f"{name}.csv" for name in ("summary", *SIMULATED)}
    assert len((folder / "flows.csv").read_text().splitlines()) == 1 + 20
    (folder / "blocked").write_text("")
    assert cli("run", str(tiny), "--csv", str(folder / "blocked")).exit_code == 2


def test_run_sets_keys(cli: Cli, tiny: Path) -> None:
    found = cli("run", str(tiny), "--json", "--set", "queue.0.aqm=blue", "--set", "duration=3s",
                "--seed", "9")  # fmt: skip
    summary = json.loads(found.stdout)["summary"]
    assert (summary["aqm"], summary["duration_s"], summary["seed"]) == ("blue", 3.0, 9)


def test_dry_run_echoes_every_default_and_runs_nothing(cli: Cli, tiny: Path) -> None:
    found = cli("run", str(tiny), "--dry-run")
    assert "w_q = " in found.stdout
    assert not cli.out.exists()
    echoed = tiny.with_name("again.toml")
    echoed.write_text(found.stdout)
    assert cli("run", str(echoed), "--dry-run").stdout == found.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            TINY.replace('"red"', '"blu"'),
            ["queue[0].aqm", '"blu"', "allowed", "did you mean `blue`?"],
        ),
        (TINY.replace('"100kB"', '"0B"'), ["queue[0].buffer", '"0B"']),
        (TINY.replace('"100kB"', '"100kb"'), ["queue[0].buffer", '"100kb"', "hint:"]),
        (TINY.replace('"2s"', '"-2s"'), ["duration", '"-2s"']),
        (TINY.replace("flows", "flowz"), ["flowz", "did you mean `flows`?"]),
        ("x = [", ["TOML"]),
    ],
)
def test_bad_scenarios_exit_2_and_say_where(
    cli: Cli, tmp_path: Path, text: str, says: list[str]
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    for command in ("run", "sweep"):
        found = cli(command, str(path))
        assert found.exit_code == 2
        assert found.stdout == ""
        assert "error: " in found.stderr
        assert "bad.toml" in found.stderr
        if command == "run" and "TOML" not in says:
            assert all(word in found.stderr for word in says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "missing.toml"], "No such file"),
        (["run", "."], "directory"),
        (["reproduce", "feng/fig99"], "unknown experiment"),
        (["reproduce", "feng", "--size", "huge"], "unknown size"),
        (["reproduce", "feng", "--seeds", "1,1"], "seeds repeat"),
        (["reproduce", "feng", "--seeds", "one"], "not a list of seeds"),
        (["reproduce", "feng", "--seeds", "1", "--reps", "2"], "--seeds cannot go with"),
        (["report", "feng/fig6-8", "--quick"], "runs are missing"),
        (["compare", "red", "blu"], "did you mean `blue`?"),
        (["compare", "red", "--rate", "fast"], "not a rate"),
        (["compare", "red", "--rtt", "20"], "not a duration"),
        (["reproduce", "--jobs", "0"], "jobs"),
    ],
)
def test_bad_arguments_exit_2(cli: Cli, arguments: list[str], says: str) -> None:
    found = cli(*arguments)
    assert found.exit_code == 2
    assert says in " ".join(found.stderr.split())
    assert found.stdout == ""


def test_explain_and_plot_refuse_what_is_not_there(cli: Cli, tmp_path: Path) -> None:
    found = cli("explain", "blu", keep_out=False)
    assert found.exit_code == 2
    assert "hint: did you mean 'blue'?" in found.stderr
    assert cli("plot", str(tmp_path), keep_out=False).exit_code == 2


_LOG = """\
{"log": "bluewater-gateway", "format": 1, "queues": [
 {"queue": "up", "aqm": "blue", "rate": "10mbit", "delay": "5ms"},
 {"queue": "down", "aqm": "blue", "rate": "1.5mbit", "delay": "5ms"}]}
{"time_s": 0.5, "queue": "up", "backlog_packets": 10, "backlog_bytes": 12500, "arrivals": 40,
 "departures": 25, "departures_bytes": 31250, "drops": 5, "marks": 1, "p_m": 0.02}
{"time_s": 0.5, "queue": "down", "backlog_packets": 3, "backlog_bytes": 300, "arrivals": 4,
 "departures": 1, "departures_bytes": 100, "drops": 0, "marks": 0, "p_m": 0.0}
{"time_s": 0.7, "change": [
 {"queue": "up", "aqm": "blue", "rate": "20mbit", "delay": "5ms"},
 {"queue": "down", "aqm": "blue", "rate": "1.5mbit", "delay": "5ms"}]}
{"time_s": 1.5, "queue": "up", "backlog_packets": 10, "backlog_bytes": 12500, "arrivals": 40,
 "departures": 25, "departures_bytes": 31250, "drops": 5, "marks": 1, "p_m": 0.04}
{"summary": []}
""".replace("\n ", " ")


def test_a_gateway_s_log_is_plotted(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(_LOG)
    written = cli("plot", str(log), keep_out=False).stdout.split()
    assert [Path(path).suffix for path in written] == [".png", ".svg", ".pdf", ".csv"]
    points = pl.read_csv(tmp_path / "run.csv").filter(pl.col("line").str.starts_with("up"))
    shown = {panel: points.filter(pl.col("panel") == panel)["y"].to_list() for panel in
             ("Queue", "Delay", "Throughput", "Drops and marks", "p_m")}  # fmt: skip
    # 12.5 kB take 10 ms at 10 Mb/s and half of it at 20; 31.25 kB in 0.5 s and in 1 s.
    assert shown == {
        "Queue": [10, 10],
        "Delay": [10, 5],
        "Throughput": [0.5, 0.25],
        "Drops and marks": [10, 5, 2, 1],
        "p_m": [0.02, 0.04],
    }
    log.write_text("{}\n")
    refused = cli("plot", str(log), keep_out=False)
    assert (refused.exit_code, "no log of a gateway" in refused.stderr) == (2, True)


def test_sweep_then_plot(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(SWEEP)
    assert len(cli("sweep", str(path), "--dry-run").stdout.splitlines()) == 4
    found = json.loads(cli("sweep", str(path), "--reps", "2", "--json").stdout)
    assert len(found) == 8
    assert {"buffer", "aqm", "seed", "loss"} <= set(found[0])
    assert (cli.out / "two" / "series.parquet").exists()
    run = next((cli.out / "runs").glob("*/*"))
    written = cli("plot", str(run), keep_out=False).stdout.split()
    assert [Path(name).suffix for name in written] == [".png", ".svg", ".pdf", ".csv"]
    assert all(Path(name).exists() for name in written)
    written = cli("plot", str(run), "--out", str(tmp_path), keep_out=False).stdout.split()
    assert written[0] == str(tmp_path / "plot.png")


def test_compare_makes_a_table_and_a_picture(cli: Cli) -> None:
    arguments = ["compare", "red", "blue", "droptail", "--rate", "5mbit", "--flows", "10",
                 "--duration", "4s", "--warmup", "1s"]  # fmt: skip
    found = cli(*arguments)
    assert found.exit_code == 0
    (picture,) = cli.out.glob("compare-red-blue-droptail-*.png")
    assert str(picture) in found.stdout
    rows = json.loads(cli(*arguments, "--json").stdout)
    assert [row["aqm"] for row in rows] == ["red", "blue", "droptail"]


def test_reproduce_json_and_strict(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "experiments" / "mine"
    folder.mkdir(parents=True)
    claim = """
[[claim]]
id = "a"
text = "All is lost."
paper = "100 %"
measure = "SELECT seed, loss AS value FROM runs WHERE aqm = 'red' AND buffer = 20"
holds = ">= 1"
"""
    (folder / "one.toml").write_text(SWEEP + claim)
    (folder / "two.toml").write_text(SWEEP)
    monkeypatch.setenv("BLUEWATER_EXPERIMENTS", str(folder.parent))
    found = cli("reproduce", "mine/one", "--json")
    assert found.exit_code == 0
    assert json.loads(found.stdout)["claims"][0]["verdict"] == "not reproduced"
    both = json.loads(cli("reproduce", "--json").stdout)
    assert [each["experiment"] for each in both] == ["mine/one", "mine/two"]
    assert [each["reused"] for each in both] == [4, 4]
    assert cli("reproduce", "mine/one", "--strict").exit_code == 1
    assert cli("report", "mine").exit_code == 0


def test_doctor(cli: Cli) -> None:
    found = cli("doctor", "--json", keep_out=False)
    assert found.exit_code == 0, found.stdout
    assert {check["name"] for check in json.loads(found.stdout)} >= {"core", "determinism"}


def working(pid: int) -> bool:
    """Whether a process or one that it started has spent three seconds of processor time."""
    processes = {pid, *children(pid)}
    times = [Path(f"/proc/{each}/stat").read_text().split()[13:15] for each in processes]
    return any(sum(map(int, each)) > 3 * os.sysconf("SC_CLK_TCK") for each in times)


def test_no_color_and_ctrl_c(tmp_path: Path) -> None:
    path = tmp_path / "long.toml"
    path.write_text(TINY.replace('duration = "2s"', 'duration = "100000s"'))
    for command in (["run"], ["sweep"]):
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bluewater",
                *command,
                str(path),
                "--out",
                str(tmp_path / "out"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )
        # Until it is at work: a busy machine takes its time to load it.
        deadline = time.monotonic() + 60
        while not working(process.pid) and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 130, err
        assert "interrupted" in err
        assert "\x1b[" not in out + err
        assert not list((tmp_path / "out").glob("runs/.tmp-*"))


def test_ctrl_c_while_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "polars.py").write_text("raise KeyboardInterrupt")
    found = subprocess.run(
        [sys.executable, "-m", "bluewater", "list"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
    )
    assert (found.returncode, found.stderr) == (130, "interrupted\n")


SMALL = ["--rate", "5mbit", "--flows", "5", "--duration", "6s"]


def test_another_question_has_another_picture(cli: Cli) -> None:
    drawn = [
        cli("compare", "red", *SMALL, *more).stdout.split()[-1]
        for more in ([], ["--no-ecn"], ["--seed", "2"], [])
    ]
    assert len(set(drawn[:3])) == 3
    assert drawn[0] == drawn[3]
    assert all(Path(path).exists() for path in drawn)


def test_what_is_left_out_is_a_third_of_a_comparison(cli: Cli) -> None:
    (row,) = json.loads(cli("compare", "red", *SMALL, "--json").stdout)
    assert (row["duration_s"], row["measured_s"]) == (6, 4)


def test_a_comparison_shows_the_others_where_one_fails(cli: Cli, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from bluewater.aqm import Aqm\n"
        "class Broken(Aqm):\n"
        "    def on_arrival(self, now, packet, queue):\n"
        "        return 1 / 0\n",
        "utf-8",
    )
    found = cli("compare", "red", f"python:{own}:Broken", "blue", *SMALL)
    assert found.exit_code == 1
    assert "failed: compare, aqm=python:" in found.stderr
    assert "ZeroDivisionError" in found.stderr
    assert all(name in found.stdout for name in (" red ", " blue "))
    assert list(cli.out.glob("compare-red-blue-*.png"))


ENDLESS = """
from bluewater.aqm import Aqm

class Endless(Aqm):
    def on_arrival(self, now, packet, queue):
        while now > 1_000_000_000:
            pass
"""


def test_a_method_without_an_end_is_stopped(tmp_path: Path) -> None:
    """By Ctrl-C, and when whoever started it is killed."""
    (tmp_path / "endless.py").write_text(ENDLESS, "utf-8")
    for how in (signal.SIGINT, signal.SIGKILL):
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "bluewater", "compare", "python:endless.py:Endless"),
                *("--rate", "10mbit", "--out", str(tmp_path / "out")),
            ],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while not working(process.pid) and time.monotonic() < deadline:
            time.sleep(0.1)
        workers = children(process.pid)
        assert workers
        process.send_signal(how)
        process.wait(timeout=20)
        deadline = time.monotonic() + 20
        while any(Path(f"/proc/{each}").exists() for each in workers):
            assert time.monotonic() < deadline, how
            time.sleep(0.1)


def _queue(way: str, packets: int) -> dict[str, Any]:
    return {
        "queue": way,
        "rate": "10mbit",
        "delay": "5ms",
        "buffer": "50000B",
        "aqm": "blue",
        "departures_bytes": 1000 * packets,
        "backlog_packets": 7,
        "delay_s": 0.0123,
        "drops": {"overflow": packets // 50, "early": 0},
        "marks": {"early": packets // 10},
        "signals": {"p_m": 0.25},
        "flows": [
            {
                "source": "10.0.0.1",
                "destination": "fd00::2",
                "protocol": 6,
                "ports": [443, 5001],
                "bytes": 250_000,
                "drops": 3,
                "marks": 4,
            }
        ],
    }


def test_the_view_shows_rates_between_two_answers() -> None:
    before, now = (
        {"time_s": time, "queues": [_queue("up", packets), _queue("down", 0)]}
        for time, packets in [(1.0, 500), (1.5, 1000)]
    )
    console = Console(width=140)
    with console.capture() as shown:
        console.print(picture(before, now))
    up = next(line for line in shown.get().splitlines() if line.startswith(" up"))
    # 500 packets of 1000 bytes, 10 drops and 50 marks in half a second.
    assert up.split()[1:] == [
        *("10mbit", "5ms", "50000B", "blue", "8.00", "7p", "12.3", "ms"),
        *("overflow", "20", "early", "100", "p_m=0.25"),
    ]
    assert "tcp 10.0.0.1:443 > fd00::2:5001  2.00" in " ".join(shown.get().split("\n"))


@pytest.mark.parametrize(
    ("command", "task"),
    [
        ("gateway", "run"),
        ("gateway ctl", "ctl"),
        ("shell", "shell"),
        ("testbed", "testbed"),
        ("replay", "replay"),
    ],
)
def test_real_packets_are_the_gateway_s_task(command: str, task: str, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 7\n')
    program.chmod(0o755)
    given = ["--rate", "10mbit", "--quiet", "--", "ls", "--help", "-l"]
    done = subprocess.run(
        [sys.executable, "-m", "bluewater", *command.split(), *given],
        env={**os.environ, "BLUEWATER_GATEWAY": str(program)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()) == (7, [task, *given])


@pytest.mark.filterwarnings("default::bluewater.errors.DamagedWarning")
def test_a_damaged_result_is_put_aside_and_made_again(cli: Cli, tiny: Path) -> None:
    first = cli("run", str(tiny), "--json")
    (folder,) = (cli.out / "runs").glob("??/*")
    for name, text in [("tables.json", b"{}"), ("meta.json", b"{"), ("scenario.toml", b"")]:
        (folder / name).write_bytes(text)
        again = cli("sweep", str(tiny), "--json")
        assert again.exit_code == 0
        assert str(folder / name) in again.stderr
        assert "put aside" in again.stderr
        assert "1 runs, 0 of them made before" in again.stderr
        assert json.loads(first.stdout)["summary"]["loss"] == json.loads(again.stdout)[0]["loss"]
        assert "put aside" not in cli("sweep", str(tiny)).stderr
    assert len(list((cli.out / "runs" / "damaged").iterdir())) == 3


def test_a_damaged_result_is_named_where_it_is_read(cli: Cli, tiny: Path) -> None:
    cli("run", str(tiny), "--set", "measure.interval=100ms")
    (folder,) = (cli.out / "runs").glob("??/*")
    (folder / "tables.json").write_bytes(b"{}")
    found = cli("plot", str(folder), keep_out=False)
    assert found.exit_code == 2
    assert "tables.json" in found.stderr
    (folder / "meta.json").write_text("[]")
    found = cli("plot", str(folder), keep_out=False)
    assert found.exit_code == 2
    assert "meta.json" in found.stderr


TWO_QUEUES = """
[[queue]]
link = "B->A"
aqm = "codel"
buffer = "50p"
[measure]
interval = "100ms"
"""


def test_run_and_plot_show_every_queue(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    tiny.write_text(tiny.read_text() + TWO_QUEUES)
    found = cli("run", str(tiny))
    assert "A->B (red)" in found.stdout
    assert "B->A (codel)" in found.stdout
    drawn = tmp_path / "drawn"
    (folder,) = (cli.out / "runs").glob("??/*")
    assert cli("plot", str(folder), "--out", str(drawn), keep_out=False).exit_code == 0
    titles = set(pl.read_csv(f"{drawn}.csv")["panel"])
    assert {"A->B: p_a", "B->A: sojourn", "B->A: drops and marks"} <= titles


def test_signals_have_their_units(tiny: Path) -> None:
    tiny.write_text(tiny.read_text() + TWO_QUEUES)
    labels = {panel.title: panel.y.label for panel in panels(bluewater.run(tiny))}
    assert labels["B->A: sojourn"] == "sojourn (s)"
    assert labels["A->B: p_a"] == "p_a (0 … 1)"
    assert labels["A->B: avg"] == "avg (packets or bytes)"


def test_compare_shows_each_discipline_s_own_signal(tmp_path: Path) -> None:
    names = ["red", "codel", "sfb", "droptail", "fq-codel"]
    made = bluewater.compare(
        names, rate="5mbit", flows=20, duration="3s", warmup="1s", out=tmp_path, progress=False
    )
    grid, width = side_by_side([(str(at["aqm"]), run) for at, run in made.results()])
    assert width == 3
    assert len(grid) == 12
    shown = [panel for panel in grid if panel is not None]
    assert len(shown) == 10
    titles = [panel.title for panel in shown]
    assert titles[3:6] == ["red: p_a", "codel: sojourn", "sfb: p_mean"]
    assert titles[8:] == ["droptail: drops", "fq-codel: queues"]
    assert all(panel.points["y"].drop_nulls().len() > 0 for panel in shown)
    assert shown[0].y.high == shown[2].y.high == shown[7].y.high


def test_many_names_make_no_name_too_long() -> None:
    assert stem(["red", "blue"]) == "compare-red-blue"
    assert stem(["red", "blue"], "a") != stem(["red", "blue"], "b")
    names = [entry["name"] for entry in bluewater.catalog()["aqms"]]
    assert len(stem(names)) < 100
    assert stem(names) != stem(names[:-1])


def test_compare_with_seeds_settings_and_other_traffic(cli: Cli) -> None:
    found = cli(
        "compare", "red", "blue", "--rate", "5mbit", "--flows", "10", "--duration", "3s",
        "--warmup", "1s", "--reps", "3", "--against", "cbr:1mbit", "--set", "queue.0.buffer=30p",
    )  # fmt: skip
    assert found.exit_code == 0
    assert "±" in found.stdout
    assert "differs from red" in found.stderr
    assert "throughput of" in found.stdout
    assert found.stdout.count("Mb/s") == 4
    assert "delay p50, p99 of" in found.stdout
    refused = cli("compare", "red", "--against", "udp:3")
    assert refused.exit_code == 2
    assert "cbr" in refused.stderr


def test_compare_tells_how_long_each_kind_of_flow_waits(cli: Cli) -> None:
    load = ("--rate", "20mbit", "--rtt", "20ms", "--flows", "2", "--duration", "8s",
            "--warmup", "3s", "--transport", "prague", "--against", "cubic:2")  # fmt: skip
    (dual,) = json.loads(cli("compare", "dualpi2", *load, "--json").stdout)
    low, classic = (dual["delays_of"][name] for name in ("flows", "cubic:2"))
    # The step of the L queue marks at 1 ms (RFC 9332); the classic queue's target is 15 ms.
    assert low["delay_p50_s"] < 1e-3
    assert classic["delay_p50_s"] > 5e-3
    assert low["delay_p50_s"] <= low["delay_p99_s"]


def test_hosts_are_no_obstacle_to_a_comparison(tmp_path: Path) -> None:
    file = tmp_path / "hosts.toml"
    hosts = TINY.replace("[[traffic]]", "[[traffic]]\nhost = 1\npeer = 2\ndscp = 'AF41'")
    file.write_text(hosts)
    axes = {"queue.0.aqm": ["cake", "fq-codel"]}
    found = bluewater.sweep(file, axes, out=tmp_path, progress=False)
    assert not found.failures
    assert found.runs.height == 2


def test_a_single_flow_has_no_fairness(cli: Cli, tiny: Path) -> None:
    link = ("--rate", "5mbit", "--duration", "2s", "--warmup", "1s")
    for reps in ((), ("--reps", "2")):
        found = cli("compare", "red", "droptail", *link, "--flows", "1", *reps)
        assert found.exit_code == 0
        rows = [line.split() for line in found.stdout.splitlines() if line.strip()]
        assert [row[-1] for row in rows if row[0] in {"red", "droptail"}] == ["–", "–"]
    found = cli("run", str(tiny), "--set", "traffic.0.flows=1")
    assert "fairness (Jain) –" in " ".join(found.stdout.split())


def test_seeds_that_change_nothing_are_said(cli: Cli, tmp_path: Path) -> None:
    still = TINY.replace('"red"', '"droptail"').replace('"feng"', '"dumbbell"')
    still = still.replace('start = "0s..1s"\n', "")
    path = tmp_path / "still.toml"
    path.write_text(still)
    assert "seed changes nothing" in cli("sweep", str(path), "--reps", "2").stderr
    path.write_text(TINY)
    assert "seed changes nothing" not in cli("sweep", str(path), "--reps", "2").stderr


def test_a_buffer_too_small_for_any_packet_is_said(cli: Cli, tiny: Path) -> None:
    found = cli("run", str(tiny), "--set", "queue.0.buffer=30B")
    assert "every packet" in found.stderr
    found = cli("run", str(tiny), "--set", "traffic.0.start=1999ms")
    assert "nothing arrived" in found.stderr
    found = cli("run", str(tiny), "--set", "traffic.0.start=1s..9s")
    assert "start after the end of the run: flows" in found.stderr


@pytest.mark.parametrize("name", ["seed", "loss", "time_s", "reading"])
def test_an_axis_does_not_hide_what_is_measured(cli: Cli, tiny: Path, name: str) -> None:
    axis = f'\n[sweep]\n{name} = {{ key = "queue.0.buffer", values = [50], unit = "kB" }}\n'
    tiny.write_text(tiny.read_text() + axis)
    found = cli("sweep", str(tiny))
    assert found.exit_code == 2
    assert f"sweep.{name}" in found.stderr


def test_a_sweep_given_to_run_is_told_where_it_belongs(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    found = cli("run", str(path))
    assert found.exit_code == 2
    assert "bluewater sweep" in found.stderr


def test_plot_takes_the_newest_run(
    cli: Cli, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "makes one" in cli("plot", keep_out=False).stderr
    tiny.write_text(tiny.read_text() + '[measure]\ninterval = "100ms"\n')
    cli("run", str(tiny))
    cli("run", str(tiny), "--seed", "2")
    kept = max((cli.out / "runs").glob("??/*"), key=lambda path: path.stat().st_mtime_ns)
    assert cli("plot", keep_out=False).stdout.splitlines()[0].endswith("plot.png")
    assert (kept / "plot.png").exists()
    assert bluewater.lab.newest() == Path("results") / kept.relative_to(cli.out)


def test_the_newest_run_is_the_one_that_was_asked_for_last(
    cli: Cli, tiny: Path, tmp_path: Path
) -> None:
    def last() -> Any:
        return bluewater.load(bluewater.lab.newest(cli.out)).summary["seed"]

    cli("sweep", str(tiny), "--reps", "3", "--jobs", "1")
    assert last() == 3
    cli("run", str(tiny), "--seed", "1")  # which is there already
    assert last() == 1
    (second,) = (
        path.parent
        for path in (cli.out / "runs").glob("??/*/scenario.toml")
        if "seed = 2" in path.read_text()
    )
    (second / "plot.png").touch()  # a picture in another's folder
    assert last() == 1
    bluewater.run(tiny, seed=2, out=cli.out)
    assert last() == 2
    cli("sweep", str(tiny), "--reps", "3")
    assert last() == 3
    cli("run", str(tiny), "--seed", "9")
    assert last() == 9


def test_a_load_that_chance_made_is_said(cli: Cli, tmp_path: Path) -> None:
    def told(*more: str) -> str:
        path = str(tmp_path / "x.pcap")
        return cli("trace", "generate", path, "--load", "5mbit", *more, keep_out=False).stderr

    assert "mean over many traces" in told("--duration", "5s", "--seed", "1")
    assert "mean over many traces" not in told("--duration", "60s", "--seed", "4", "--most", "9999")


WRONG = """duration = "2s"
# A comment, which a text that is written anew has not.
[network]
preset = "dumbbell"

[[queue]]
aqm = "red"
{0}

[[traffic]]
transport = "sack"
"""


def test_errors_name_lines_of_the_file_also_with_set(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(WRONG.format('buffer = "50x"'))
    for settings in ([], ["--set", "network.rate=5mbit"], ["--seed", "3"]):
        done = cli("run", str(file), *settings)
        assert done.exit_code == 2
        assert f"{file}:8: queue[0].buffer" in done.stderr, done.stderr


def test_an_error_of_a_setting_has_no_line_of_the_file(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "right.toml"
    file.write_text(WRONG.format('buffer = "50p"'))
    done = cli("run", str(file), "--set", "queue.0.aqm=rex")
    assert done.exit_code == 2
    assert f"{file}: queue[0].aqm" in done.stderr, done.stderr
    # One that the file has, too, but with another value.
    file.write_text(WRONG.format('buffer = "50x"'))
    done = cli("run", str(file), "--set", "queue.0.buffer=50y")
    assert f"{file}: queue[0].buffer" in done.stderr, done.stderr


def test_a_scenario_object_names_lines_only_of_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(WRONG.format('buffer = "50x"'))
    with pytest.raises(bluewater.ScenarioError) as raised:
        bluewater.Scenario.load(file)
    assert (raised.value.line, raised.value.key) == (8, "queue[0].buffer")
    file.write_text(WRONG.format('buffer = "50p"'))
    with pytest.raises(bluewater.ScenarioError) as raised:
        bluewater.Scenario.load(file).with_({"queue.0.buffer": "50x"})
    assert raised.value.line is None
    assert str(raised.value).startswith(f"{file}: queue[0].buffer")
