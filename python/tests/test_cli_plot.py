from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import SWEEP, Cli
from test_cli_sweep import THREE

import bluewater
from bluewater.errors import InputError
from bluewater.plots.draw import Picture, draw
from bluewater.plots.log import panels as log_panels
from bluewater.plots.log import read_log
from bluewater.plots.run import TIME, figure, fitting, panels

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
    assert [Path(path).suffix for path in written] == [".png", ".csv"]
    points = pl.read_csv(tmp_path / "run.csv").filter(pl.col("line").str.starts_with("up"))
    shown = {panel: points.filter(pl.col("panel") == panel)["y"].to_list() for panel in
             ("Queue", "Delay", "Throughput", "Drops", "Marks", "p_m")}  # fmt: skip
    # 12.5 kB take 10 ms at 10 Mb/s and half of it at 20; 31.25 kB in 0.5 s and in 1 s.
    assert shown == {
        "Queue": [10, 10],
        "Delay": [10, 5],
        "Throughput": [0.5, 0.25],
        "Drops": [10, 5],
        "Marks": [2, 1],
        "p_m": [0.02, 0.04],
    }
    log.write_text("{}\n")
    refused = cli("plot", str(log), keep_out=False)
    assert (refused.exit_code, "not a log of a gateway" in refused.stderr) == (2, True)


def _lines(*lines: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def _sampled(**more: Any) -> dict[str, Any]:
    return {
        "time_s": 1.0, "queue": "up", "backlog_packets": 30, "backlog_bytes": 45_750,
        "arrivals": 40, "departures": 25, "departures_bytes": 40_850, "drops": 0, "marks": 1,
    } | more  # fmt: skip


VARYING = {
    "log": "bluewater-gateway", "format": 1,
    "queues": [{"queue": "up", "aqm": "codel", "rate": "10mbit", "delay": "5ms",
                "rate_trace": {"steps": 100, "mean_bps": 2e6}}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "label", "ms"),
    [
        ({"delay_mean_s": 0.14, "sojourn": 0.13}, "mean of the interval", 140),
        ({"sojourn": 0.14}, "of the last packet", 140),
        # 45.75 kB, where 40.85 kB are sent in a second; at the nominal rate that would be 36.6 ms.
        ({}, "Time to send what is queued", 1e3 * 45_750 / 40_850),
    ],
)
def test_on_a_link_that_varies_the_nominal_rate_tells_no_delay(
    tmp_path: Path, more: dict[str, float], label: str, ms: float
) -> None:
    log = tmp_path / "run.log"
    log.write_text(_lines(VARYING, _sampled(**more)))
    shown = {panel.title: panel for panel in log_panels(read_log(log))}
    assert shown["Delay"].points["y"].to_list() == pytest.approx([ms])
    assert label in shown["Delay"].y.label


@pytest.mark.parametrize("more", [{"delay_mean_s": 0.14}, {"sojourn": 0.14}, {}])
def test_in_a_column_each_label_is_beside_its_own_panel(
    tmp_path: Path, more: dict[str, float]
) -> None:
    log = tmp_path / "run.log"
    log.write_text(_lines(VARYING, _sampled(**more), _sampled(time_s=2.0, **more)))
    figure = draw("", "trace", TIME, log_panels(read_log(log)), 1, "none", [], "column")
    figure.draw_without_rendering()
    beside = [axes.yaxis.label.get_window_extent() for axes in figure.axes]
    assert all(lower.y1 < upper.y0 for upper, lower in pairwise(beside))


def test_an_interval_in_which_nothing_left_has_no_delay(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    none = _sampled(departures=0, departures_bytes=0)
    log.write_text(_lines(VARYING, none, none | {"time_s": 2.0, "delay_mean_s": None}))
    (delay,) = (panel for panel in log_panels(read_log(log)) if panel.title == "Delay")
    assert delay.points["y"].to_list() == [None, None]


def test_signals_of_a_log_have_units_and_meanings(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(_lines(VARYING, _sampled(sojourn=0.14, count=3.0, dropping=1.0)))
    labels = {panel.title: " ".join(panel.y.label.split()) for panel in log_panels(read_log(log))}
    assert labels["sojourn"] == "sojourn: delay of the last packet at the head (ms)"
    assert labels["count"].startswith("count: the control law's count")
    assert labels["count"].endswith("(number)")
    assert labels["dropping"] == "dropping: 1 in the dropping state, else 0"


def test_signals_of_a_class_of_one_s_own_have_theirs(tiny: Path) -> None:
    own = tiny.with_name("own.py")
    own.write_text(
        "from bluewater.aqm import Aqm\n"
        "class Mine(Aqm):\n"
        "    signals = {'wait': ('s', 'what it waits for'), 'f': ('bit/s', 'what it gives')}\n"
        "    wait = 0.02\n"
        "    f = 3e6\n"
    )
    text = tiny.read_text().replace('"red"', '"python:own.py:Mine"')
    tiny.write_text(text + '[measure]\ninterval = "100ms"\n')
    found = {panel.title: panel for panel in panels(bluewater.run(tiny))}
    labels = {title: " ".join(panel.y.label.split()) for title, panel in found.items()}
    assert labels["wait"] == "wait: what it waits for (ms)"
    assert labels["f"] == "f: what it gives (Mb/s)"
    assert (found["wait"].points["y"].max(), found["f"].points["y"].max()) == (20, 3)


def test_a_run_without_a_series_is_drawn_all_the_same(cli: Cli, tiny: Path) -> None:
    cli("run", str(tiny))
    (folder,) = (cli.out / "runs").glob("??/*")
    found = cli("plot", str(folder), keep_out=False)
    assert found.exit_code == 0
    assert "simulating it again with interval = 5ms" in found.stderr
    assert bluewater.load(folder).series.is_empty(), "the kept run stays as it is"


@pytest.mark.parametrize(
    ("ending", "begins"),
    [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("pgf", b"%% Creator")],
)
def test_the_ending_says_the_format(cli: Cli, tiny: Path, ending: str, begins: bytes) -> None:
    cli("run", str(tiny))
    (folder,) = (cli.out / "runs").glob("??/*")
    path = tiny.with_name(f"figure.{ending}")
    found = cli("plot", str(folder), "--out", str(path), "--size", "column", keep_out=False)
    assert found.stdout.split() == [str(path)]
    assert path.read_bytes().startswith(begins)
    assert not list(tiny.parent.glob("figure.*.*"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "figure.jpg"], ".png, .svg, .pdf, .pgf"),
        (["--out", "figure.eps"], ".pdf"),
        (["--size", "colum"], "did you mean 'column'?"),
    ],
)
def test_what_is_no_format_is_said(cli: Cli, tiny: Path, arguments: list[str], said: str) -> None:
    cli("run", str(tiny))
    (folder,) = (cli.out / "runs").glob("??/*")
    found = cli("plot", str(folder), *arguments, keep_out=False)
    assert found.exit_code == 2
    assert said in found.stderr


def test_the_table_of_runs_has_their_keys(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(SWEEP)
    assert cli("sweep", str(tmp_path / "my.toml")).exit_code == 0
    runs = pl.read_csv(cli.out / "my" / "runs.csv")
    listed = cli("sweep", str(tmp_path / "my.toml"), "--dry-run").stdout.split("\n")
    assert runs["key"].to_list() == [line.split()[0] for line in listed if line]
    store = cli.out / "runs"
    made = [bluewater.load(store / key[:2] / key) for key in runs["key"]]
    assert runs["decision_hash"].to_list() == [each.decision_hash for each in made]


@pytest.mark.slow
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
    assert [Path(name).suffix for name in written] == [".png", ".csv"]
    assert all(Path(name).exists() for name in written)
    written = cli("plot", str(run), "--out", str(tmp_path), keep_out=False).stdout.split()
    assert written[0] == str(tmp_path / "plot.png")


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


@pytest.mark.slow
def test_run_and_plot_show_every_queue(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    tiny.write_text(tiny.read_text() + TWO_QUEUES)
    found = cli("run", str(tiny))
    assert "A->B (red)" in found.stdout
    assert "B->A (codel)" in found.stdout
    drawn = tmp_path / "drawn"
    (folder,) = (cli.out / "runs").glob("??/*")
    assert cli("plot", str(folder), "--out", str(drawn), keep_out=False).exit_code == 0
    titles = set(pl.read_csv(f"{drawn}.csv")["panel"])
    assert {"A->B: p_a", "B->A: sojourn", "B->A: drops"} <= titles


def test_a_parameter_that_nothing_adapts_has_no_panel(tiny: Path) -> None:
    tiny.write_text(tiny.read_text() + TWO_QUEUES)
    made = bluewater.run(tiny)
    shown = panels(made)
    assert "A->B: max_p" not in {panel.title for panel in shown}
    assert "Constant: max_p = 0.1 at A->B" in {
        each.get_text() for each in figure(made, shown).texts
    }
    assert {p.y.label for p in shown if p.title == "B->A: drops"} == {"Packets in 100ms"}


def test_signals_have_their_units(tiny: Path) -> None:
    tiny.write_text(tiny.read_text() + TWO_QUEUES)
    found = {panel.title: panel.y.label for panel in panels(bluewater.run(tiny))}
    labels = {title: " ".join(label.split()) for title, label in found.items()}
    assert labels["B->A: sojourn"] == "sojourn: delay of the last packet at the head (ms)"
    assert labels["A->B: p_a"] == "p_a: probability with spacing, next packet (0 … 1)"
    assert labels["A->B: avg"].startswith("avg: average queue length, ")
    assert labels["A->B: avg"].endswith(" (packets)")


@pytest.fixture(scope="module")
def three() -> bluewater.Result:
    return bluewater.run(f'{THREE}measure = {{ interval = "50ms" }}\n')


@pytest.mark.slow
@pytest.mark.parametrize("size", ["column", "page"])
def test_a_picture_fits_a_paper(three: bluewater.Result, size: str) -> None:
    """That of three queues was 18 inches high in a column."""
    for queue in (None, "a->r", "r->s", "s->b"):
        made = bluewater.plot(three, size=size, queue=queue)
        assert isinstance(made, Picture)
        assert made.fits
        assert made.get_figheight() < 9.2
        told = [each.get_text() for each in made.texts]
        assert told == ([] if queue in ("a->r", "s->b") else ["Constant: max_p = 0.1 at r->s"])
    whole, some = panels(three), panels(three, "r->s")
    assert len(fitting(whole, "column")) == 7 < len(whole)
    assert fitting(whole, None) == whole
    assert [each.title for each in some] == [
        each.title for each in whole if each.title.startswith("r->s")
    ]
    with pytest.raises(InputError, match="unknown queue 'r-s'") as raised:
        panels(three, "r-s")
    assert raised.value.hint == "did you mean 'r->s'?"


@pytest.mark.slow
def test_plot_says_what_a_column_has_no_room_for(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "three.toml"
    file.write_text(f'{THREE}measure = {{ interval = "50ms" }}\n')
    folder = cli("run", str(file)).stderr.split()[-1]
    wish = ["plot", folder, "--out", str(tmp_path / "fig.pdf"), "--size", "column"]
    whole = cli(*wish, keep_out=False)
    assert "--queue draws one of a->r, r->s, s->b" in whole.stderr
    assert "no room for s->b: codel" in whole.stderr
    assert cli(*wish, "--queue", "s->b", keep_out=False).stderr == ""
    log = tmp_path / "run.log"
    log.write_text(_LOG)
    refused = cli("plot", str(log), "--queue", "up", keep_out=False)
    assert (refused.exit_code, "both ways in each panel" in refused.stderr) == (2, True)


def test_a_signal_has_the_unit_of_its_mode(three: bluewater.Result) -> None:
    """It was "packets or bytes" where the scenario says which."""
    labels = {each.title: each.y.label.replace("\n", " ") for each in panels(three)}
    assert labels["r->s: avg"].endswith(" (bytes)")


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


def test_a_congestion_control_is_drawn_with_its_phases(tiny: Path) -> None:
    text = (
        'duration = "8s"\nnetwork = { preset = "dumbbell", rate = "10mbit", delay = "20ms" }\n'
        'queue = [{ aqm = "droptail", buffer = "300p" }]\n'
        'traffic = [{ name = "f", transport = "bbr", preset = "modern" }]\n'
        'measure = { control = true, interval = "1s" }\n'
    )
    tiny.write_text(text)
    run = bluewater.run(tiny)
    found = {panel.title: panel for panel in panels(run)}
    window, rate = found["f, flow 0: window"], found["f, flow 0: rate"]
    assert set(window.points["line"]) == {"window", "in flight"}
    assert rate.points.filter(line="max_bw")["y"].max() == pytest.approx(10, rel=0.02)
    began = run.control.filter(event="phase", phase="startup")["time_s"].to_list()
    drained = run.control.filter(event="phase", phase="drain")["time_s"].to_list()
    assert (began[0], drained[0]) == window.shades[0][:2], "behind startup"
    assert len({colour for *_, colour in window.shades}) == 2
    bluewater.plot(run)
