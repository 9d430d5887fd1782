"""``sweep``: a scenario with axes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bluewater import lab
from bluewater.cli.console import note, note_failures, out, print_json, show_overview
from bluewater.cli.group import FAILED, example
from bluewater.cli.options import (
    Jobs,
    Json,
    On,
    Out,
    Part,
    Reps,
    Seed,
    Seeds,
    Settings,
    Shared,
    TableFile,
    check_outputs,
    seeds,
    store,
)
from bluewater.errors import InputError
from bluewater.files import read_text, write_text
from bluewater.lab import CORES, DEFAULT_OUT
from bluewater.study.execution.execute import HERE, engine
from bluewater.study.execution.task import Shard
from bluewater.study.experiments.experiment import parse
from bluewater.study.scenarios.scenario import parsed
from bluewater.text import other

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bluewater.lab import Sweep
    from bluewater.results.store import Store
    from bluewater.study.execution.task import Failure, Task
    from bluewater.study.experiments.experiment import Experiment


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(sweep)


@example(
    "bluewater sweep my.toml --reps 5",
    "bluewater sweep my.toml --dry-run",
    "bluewater sweep my.toml --reps 20 --on slurm --jobs 100",
    "bluewater sweep my.toml --reps 20 --shard 3/10 --out /shared/results",
)
def sweep(
    file: Annotated[Path, typer.Argument(help="A scenario with [sweep], as TOML.")],
    size: Annotated[str, typer.Option(help="A size that the file declares.")] = "full",
    settings: Settings = None,
    seed: Seed = None,
    seeds_: Seeds = None,
    reps: Reps = None,
    jobs: Jobs = CORES,
    on: On = HERE,
    shard: Part = None,
    share: Shared = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, and list the runs.")] = False,
    queue: Annotated[
        str | None,
        typer.Option(help="Show the numbers of this queue: A->B.", show_default="the first"),
    ] = None,
    table: TableFile = None,
    out_: Out = DEFAULT_OUT,
    json: Json = False,
) -> None:
    """Run a scenario at every point of its axes, for every seed.

    Finished runs are kept: the same command continues an interrupted sweep. The table shows means
    over seeds with half their 95 % intervals. A folder below `--out`, named after the file, gets
    the table of runs as Parquet and CSV, `summary.csv` (mean and interval of each metric in each
    cell), and the tables of flows and of time series as Parquet. Tables of another file, seed or
    setting are not overwritten: the new ones go beside them, as `my-1a2b3c`.
    """
    engine(on, jobs)  # reports a wrong engine before the planning, which takes time
    check_outputs(table, None, None)
    if file.stem == "runs":
        raise InputError(
            "the folder of its tables would be the folder of the runs",
            file=str(file),
            hint="rename the file",
        )
    part = Shard.parse(shard) if shard else None
    text = read_text(file)
    changes = parsed(settings or [])
    experiment = parse(text, str(file), file.stem, settings=changes)
    _check_settings(changes, experiment)
    chosen = experiment.size(size)
    if wanted := seeds(seed, seeds_, reps):
        chosen = replace(chosen, seeds=wanted)
    tasks = [task for task, _ in experiment.plan(chosen)]
    if part:
        tasks = part.of(tasks)
    runs = store(out_, share)
    if not dry_run:
        runs.sync(task.key for task in tasks)
    held = sum(task.key in runs for task in tasks)
    note(f"{len(tasks)} runs, {held} of them made before, {jobs} at a time")
    if not experiment.axes:
        note(f"{file} has no [sweep]: its only point is the scenario itself")
    if experiment.claims or experiment.plots or experiment.sheets:
        note(f"its claims and plots are left out: `bluewater reproduce {file}` has them")
    if dry_run:
        for task in tasks:
            out.print(f"{task.key}  {task.label}", markup=False, soft_wrap=True)
        return
    if part:
        make_part(tasks, runs, jobs, experiment.id, on)
        return
    found = lab.carry_out(experiment, chosen, jobs, runs, on=on)
    if found.tables.entries:
        found = found if queue is None else found.at(queue)
        _put(found, tasks, out_, file.stem, json)
        if table is not None:
            found.overview.write(table)
            note(f"table in {table.resolve()}")
    _tell(found.failures)


def _check_settings(changes: Mapping[str, object], experiment: Experiment) -> None:
    """Refuses a setting that every point of an axis replaces."""
    for axis in experiment.axes:
        for key, value in changes.items():
            if all(key in point.settings for point in axis.points):
                raise InputError(
                    "the sweep varies this key, so that the setting would have no effect",
                    key=f"--set {key}",
                    value=value,
                    hint=f"change the axis '{axis.name}' in the file",
                )


def _put(found: Sweep, tasks: Sequence[Task], out_: Path, name: str, json: bool) -> None:
    """Writes the tables, shows them, and prints their folder last."""
    folder = _folder(out_, name, tasks)
    found.write(folder)
    write_text(folder / _MADE_OF, _names(tasks))
    if json:
        print_json(found.runs.to_dicts())
    else:
        show_overview(found.overview)
    first, *others = found.queues or [""]
    if others and not found.queue:
        note(f"note: the table is of {first}, the first queue; --queue has {', '.join(others)}")
    for remark in found.remarks:
        note(f"note: {remark}")
    if folder.name != name:
        note(f"note: {out_ / name} has the tables of other runs, and keeps them")
    note(f"tables in {folder.resolve()}")


_MADE_OF = "made-of.txt"
"""The file beside the tables that lists the keys of their runs."""


def _names(tasks: Sequence[Task]) -> str:
    return "".join(sorted(f"{task.key}\n" for task in tasks))


def _folder(out: Path, name: str, tasks: Sequence[Task]) -> Path:
    """The folder for the tables of these runs: not one that holds tables of other runs."""
    folder, names = out / name, _names(tasks)
    if not (folder / "runs.csv").exists() or _made_of(folder) == names:
        return folder
    return out / f"{name}{other(names)}"


def _made_of(folder: Path) -> str:
    """The runs that a folder's tables are of; empty if the folder does not say."""
    there = folder / _MADE_OF
    return read_text(there) if there.exists() else ""


def make_part(tasks: Sequence[Task], runs: Store, jobs: int, title: str, on: str) -> None:
    """Makes one part of the runs, without tables."""
    failures = lab.make_all(tasks, runs, jobs, title, on=on)
    note("when all parts are made, the same command without --shard makes the tables")
    _tell(failures)


def _tell(failures: Sequence[Failure]) -> None:
    note_failures(failures)
    if failures:
        raise typer.Exit(FAILED)
