"""``sweep``: a scenario with axes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import polars.selectors as cs
import typer
from rich.table import Table

from bluewater import text
from bluewater.cli.console import note, out, print_json, progress
from bluewater.cli.group import FAILED, example
from bluewater.cli.options import (
    CORES,
    DEFAULT_OUT,
    Jobs,
    Json,
    Out,
    Reps,
    Seed,
    Seeds,
    seeds,
    store,
)
from bluewater.results.tables import Tables
from bluewater.study.execute import execute
from bluewater.study.experiment import parse
from bluewater.study.scenario import read_text

_SHOWN = ("loss", "mark_rate", "utilisation", "queue_mean_packets", "delay_p99_s", "jain")


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(sweep)


@example("bluewater sweep my.toml --reps 5", "bluewater sweep my.toml --dry-run")
def sweep(
    file: Annotated[Path, typer.Argument(help="A scenario with [sweep] as TOML.")],
    size: Annotated[str, typer.Option(help="One of the file's sizes.")] = "full",
    seed: Seed = None,
    seeds_: Seeds = None,
    reps: Reps = None,
    jobs: Jobs = CORES,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, and list the runs.")] = False,
    out_: Out = DEFAULT_OUT,
    json: Json = False,
) -> None:
    """Run a scenario at every point of its axes, for every seed.

    Finished runs are kept: the same command goes on where it was stopped. The table of runs is
    written as Parquet and CSV, those of flows and of time series as Parquet.
    """
    experiment = parse(read_text(file), str(file), file.stem)
    chosen = experiment.size(size)
    wanted = seeds(seed, seeds_, reps) or chosen.seeds
    plan = experiment.plan(replace(chosen, seeds=wanted))
    tasks = [task for task, _ in plan]
    runs = store(out_)
    held = sum(task.key in runs for task in tasks)
    note(f"{len(tasks)} runs, {held} of them made before, {jobs} at a time")
    if dry_run:
        for task in tasks:
            out.print(f"{task.key}  {task.label}", markup=False, soft_wrap=True)
        return
    with progress(tasks, held, file.stem) as on_progress:
        failures = execute(tasks, runs, jobs, on_progress)
    failed = {failure.task.key for failure in failures}
    tables = Tables([entry for _, entry in plan if entry.key not in failed], runs)
    if tables.entries:
        _write(tables, out_ / file.stem)
        if json:
            print_json(tables.runs.to_dicts())
        else:
            out.print(_table(tables, [axis.name for axis in experiment.axes]))
    for failure in failures:
        note(f"failed: {failure.task.label}: {failure.reason}")
    if failures:
        raise typer.Exit(FAILED)


def _write(tables: Tables, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tables.runs.write_parquet(folder / "runs.parquet")
    tables.runs.write_csv(folder / "runs.csv")
    for name in tables.present:
        table = tables.table(name)
        if not table.is_empty():
            table.write_parquet(folder / f"{name}.parquet")
    note(f"tables in {folder}")


def _table(tables: Tables, axes: list[str]) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold")
    runs = tables.runs
    places = [name for name in (*axes, "reading", "seed") if name in runs.columns]
    # Formulas and traces have other quantities.
    shown = [column for column in _SHOWN if column in runs.columns] or [
        name for name in runs.select(cs.numeric()).columns if name not in places
    ][: len(_SHOWN)]
    for column in (*places, *shown):
        table.add_column(column, justify="right" if column in shown else "left")
    for row in runs.iter_rows(named=True):
        values = (text.number(row[column]) for column in shown)
        table.add_row(*(str(row[column]) for column in places), *values)
    return table
