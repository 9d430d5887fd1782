"""``explore``: how a paper's claims depend on what the paper leaves open."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from bluewater.cli.console import note, out, print_json, table
from bluewater.cli.group import FAILED, example
from bluewater.cli.options import (
    Jobs,
    Json,
    On,
    Out,
    Quick,
    Reps,
    Seed,
    Seeds,
    Shared,
    seeds,
    store,
)
from bluewater.errors import InputError, unknown
from bluewater.lab import CORES, DEFAULT_OUT
from bluewater.progress import notes, of_runs
from bluewater.study.execution.execute import HERE, engine, execute
from bluewater.study.experiments.experiment import select
from bluewater.study.experiments.explore import SIZE, Search, groups

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bluewater.results.store import Store
    from bluewater.study.execution.task import Task
    from bluewater.study.experiments.experiment import Experiment


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(explore)


@example(
    "bluewater explore feng/fig19 --quick --budget 20",
    "bluewater explore Feng02 --budget 100 --jobs 8",
)
def explore(
    name: Annotated[
        str, typer.Argument(metavar="PAPER[/FIGURE]", help="A paper, or one of its experiments.")
    ],
    size: Annotated[
        str,
        typer.Option(
            "--size",
            help="explore (the full size with three seeds unless a file says otherwise), full or "
            "quick.",
        ),
    ] = SIZE,
    quick: Quick = False,
    budget: Annotated[
        int, typer.Option("--budget", min=1, help="Readings to try for each section.")
    ] = 64,
    hold_out: Annotated[
        int,
        typer.Option(
            "--hold-out",
            min=0,
            help="Hold every Nth claim out of the search, to check its result; 0: none.",
        ),
    ] = 3,
    section: Annotated[
        str, typer.Option("--section", metavar="ID", help="Explore only this section of the paper.")
    ] = "",
    seed: Seed = None,
    seeds_: Seeds = None,
    reps: Reps = None,
    jobs: Jobs = CORES,
    on: On = HERE,
    share: Shared = "",
    out_: Out = DEFAULT_OUT,
    json: Json = False,
) -> None:
    """Search what a paper leaves open, and show which claims depend on it.

    The search tries other plausible values of the unknowns that the experiments declare; a value of
    a section's unknown holds for all its experiments. It prints how many claims hold as the
    experiments stand, how many under the best joint reading, and how many under some reading. The
    page shows how much each claim depends on each unknown, and which claims no reading meets. Runs
    are kept: the same command continues an interrupted search.
    """
    chosen = _within(select(name), section)
    found = groups(chosen)
    if not found:
        raise InputError(
            f"{name} declares no unknowns",
            hint="declare them as [[unknown]] in an experiment, or [[section.unknown]] in "
            "paper.toml",
        )
    wanted = seeds(seed, seeds_, reps)
    engine(on, jobs)
    runs = store(out_, share)
    searches = []
    for group in found:
        search = Search(
            group,
            "quick" if quick else size,
            wanted,
            runs,
            jobs,
            budget,
            hold_out,
            make=partial(_making, on=on),
        )
        note(
            f"{group.title}: {len(group.variables)} unknowns, {group.possible} combinations, "
            f"{len(search.items)} claims"
        )
        search.run()
        searches.append(search)
    _finish(
        name, searches, out_ / "-".join(filter(None, ("explore", *name.split("/"), section))), json
    )
    if any(search.failed for search in searches):
        raise typer.Exit(FAILED)


def _within(experiments: Sequence[Experiment], section: str) -> list[Experiment]:
    """The experiments of a section; all of them if none is named."""
    there = {each.section.id: None for each in experiments if each.section}
    if section and section not in there:
        raise unknown("section", section, there, key="--section")
    return [
        each for each in experiments if not section or (each.section and each.section.id == section)
    ]


def _making(tasks: Sequence[Task], runs: Store, jobs: int, on: str) -> dict[str, str]:
    runs.sync(task.key for task in tasks)
    held = sum(task.key in runs for task in tasks)
    with of_runs(tasks, held, "exploring") as on_progress:
        failures = execute(tasks, runs, jobs, on_progress, on)
    return {failure.task.key: failure.reason for failure in failures}


def _finish(name: str, searches: Sequence[Search], folder: Path, json: bool) -> None:
    # Drawing needs matplotlib, which takes a while to load: only when there is something to draw.
    from bluewater.report import write_exploration  # noqa: PLC0415
    from bluewater.report.explore import to_json  # noqa: PLC0415

    with notes.status("drawing and writing the page"):
        path = write_exploration(name, searches, folder)
    if json:
        print_json([to_json(search) for search in searches])
    else:
        columns = (
            "section",
            "claims",
            "as it stands",
            "joint reading",
            "some reading each",
            "none",
        )
        out.print(table("Claims met", columns, [_row(search) for search in searches]))
        for search in searches:
            note(f"{search.group.title}: best joint reading: {search.best.title}")
    for search in searches:
        for reason in sorted(set(search.failed.values())):
            note(f"failed: {search.group.title}: {reason}")
    note(f"page: {path.resolve()}")


def _row(search: Search) -> list[str]:
    return [
        search.group.title,
        str(len(search.items)),
        str(len(search.met(search.standard))),
        f"{len(search.met(search.best))} ({len(search.met(search.best, search.unseen))} of "
        f"{len(search.unseen)} held out)",
        str(len(search.some)),
        str(len(search.items) - len(search.some)),
    ]
