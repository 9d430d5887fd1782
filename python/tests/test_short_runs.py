"""What a run costs beside its simulation, in what a busy machine does not change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest
import tomli_w

import bluewater
from bluewater.plots.experiment import drawables
from bluewater.results import result, store, tables
from bluewater.results.store import Store, read_result
from bluewater.study.experiments.experiment import parse
from bluewater.study.experiments.reproduce import Plan, reproduce

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHORT = bluewater.Scenario(
    duration="2s",
    warmup="500ms",
    network={"preset": "dumbbell", "rate": "1mbit", "delay": "20ms"},
    queue=[{"aqm": "red", "buffer": "50p"}],
    traffic=[{"flows": 2, "transport": "sack", "start": "0s..300ms"}],
)


EXPERIMENT = f"""
seeds = [1, 2, 3]
{tomli_w.dumps(SHORT.table)}
[[claim]]
id = "a"
plot = "p"
origin = "ours"
paper = "something"
text = "All flows get something."
measure = "SELECT seed, MIN(goodput_bps) AS value FROM flows GROUP BY seed"
holds = "> 0"
bound = "ours"
[[plot]]
id = "p"
title = "Drops"
caption = ""
kind = "bars"
x = {{ label = "" }}
y = {{ label = "" }}
[[plot.panel]]
title = "all"
sql = "SELECT queue AS x, drops AS y, seed FROM queues"
"""


def counted(patch: pytest.MonkeyPatch, where: object, name: str) -> list[None]:
    """Counts the calls of a function."""
    function: Callable[..., object] = getattr(where, name)
    calls: list[None] = []

    def counting(*args: object, **named: object) -> object:
        calls.append(None)
        return function(*args, **named)

    patch.setattr(where, name, counting)
    return calls


def test_a_short_run_is_three_small_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bluewater.run(SHORT)
    written = counted(monkeypatch, pl.DataFrame, "write_parquet")
    made = counted(monkeypatch, result, "frame")
    found.save(tmp_path)
    assert (len(written), len(made)) == (0, 0)
    files = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert files.keys() == {"meta.json", "scenario.toml", "tables.json"}
    assert sum(files.values()) < 6000
    again = read_result(tmp_path)
    for name in found.names:
        assert again.load(name).equals(found.load(name))
        assert again.load(name).schema == found.load(name).schema


def test_a_table_of_many_runs_is_one_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swept = bluewater.sweep(SHORT, reps=20, jobs=1, out=tmp_path, progress=False)
    made = counted(monkeypatch, tables, "of_lists")
    read = counted(monkeypatch, pl, "read_parquet")
    names = {path.name for path in swept.write(tmp_path / "tables")}
    assert {"queues.parquet", "flows.parquet"} <= names
    assert "calls.parquet" not in names
    assert len(made) == len(names - {"runs.parquet", "runs.csv", "summary.csv"})
    assert not read


def test_all_tables_of_a_run_are_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = bluewater.sweep(SHORT, reps=20, jobs=1, out=tmp_path, progress=False)
    parsed = counted(monkeypatch, store, "_lists")
    swept.write(tmp_path / "tables")
    assert len(parsed) == 20


def test_a_claim_and_a_plot_open_each_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = parse(EXPERIMENT, "x.toml", "short")
    plan = Plan.of([(experiment, experiment.size("full"))])
    parsed = counted(monkeypatch, store, "_lists")
    (outcome,) = reproduce(plan, Store(tmp_path), jobs=1)
    (plot,) = experiment.plots
    (panel,) = drawables(plot, outcome.tables, "x.toml")
    assert panel.points.height == 3
    assert len(outcome.findings) == 1
    assert len(parsed) == 3


def test_tables_of_runs_are_put_together_whatever_they_are_kept_as(tmp_path: Path) -> None:
    """Some as text and some as Parquet, of other columns from run to run, some without a row."""
    axes = {
        "queue.0.aqm": ["red", "codel"],
        "measure.interval": ["20ms", "500ms"],
        "duration": ["2s", "5s"],
    }
    swept = bluewater.sweep(SHORT, axes, reps=2, jobs=2, out=tmp_path, progress=False)
    kept = [each for _, each in swept.results()]
    assert {"series" in each.lists() for each in kept} == {True, False}
    places = ["queue.0.aqm", "measure.interval", "duration", "seed"]
    for name in swept.tables.present:
        alone = [
            each.load(name).select(
                *(pl.lit(value).alias(key) for key, value in place.items()), pl.exclude(*place)
            )
            for place, each in swept.results()
        ]
        whole = pl.concat(alone, how="diagonal_relaxed")
        found = swept.table(name)
        assert found.drop(places).equals(whole.drop(places))
        assert found.select(places).rows() == whole.select(places).rows()


def as_of_format_3(folder: Path) -> None:
    """Changes the folder of a run into what was written before."""
    found = read_result(folder)
    names = ["scenario.toml", *(f"{name}.parquet" for name in found.names)]
    for name in found.names:
        found.load(name).write_parquet(folder / f"{name}.parquet")
    (folder / "tables.json").unlink()
    meta = json.loads((folder / "meta.json").read_text())
    del meta["tables"]
    digests = {name: result.digest((folder / name).read_bytes()) for name in names}
    meta |= {"format": 3, "files": digests}
    (folder / "meta.json").write_text(json.dumps(result.sealed(meta)))


def test_a_store_of_before_is_used_again(tmp_path: Path) -> None:
    swept = bluewater.sweep(SHORT, reps=3, jobs=1, out=tmp_path, progress=False)
    for entry in swept.tables.entries[:2]:
        as_of_format_3(swept.tables.store.path(entry.key))
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("meta.json")}
    again = bluewater.sweep(SHORT, reps=3, jobs=1, out=tmp_path, progress=False)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("meta.json")} == times
    assert again.runs.equals(swept.runs)
    for name in swept.tables.present:
        assert again.table(name).equals(swept.table(name))
