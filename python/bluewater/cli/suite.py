"""``suite``: published tests and the tests of standards."""

from __future__ import annotations

from typing import Annotated

import typer

from bluewater.cli.console import out, table
from bluewater.cli.group import example
from bluewater.cli.options import (
    Jobs,
    Json,
    On,
    Out,
    Quick,
    Reps,
    Resume,
    Seed,
    Seeds,
    Shared,
    SizeName,
)
from bluewater.cli.reproduce import reproduce
from bluewater.errors import unknown
from bluewater.lab import CORES, DEFAULT_OUT
from bluewater.study.execution.execute import HERE
from bluewater.study.experiments.experiment import known, suites


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(suite)


@example("bluewater suite", "bluewater suite l4s --quick")
def suite(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[SUITE]", help="A suite; without a name, all are listed."),
    ] = None,
    size: SizeName = "full",
    quick: Quick = False,
    seed: Seed = None,
    seeds_: Seeds = None,
    reps: Reps = None,
    jobs: Jobs = CORES,
    on: On = HERE,
    share: Shared = "",
    out_: Out = DEFAULT_OUT,
    json: Json = False,
    resume: Resume = True,
) -> None:
    """Run a suite of published tests, judge its claims, and write a report.

    A suite consists of experiments like those of the papers; `bluewater reproduce l4s/shared` runs
    one of them alone.
    """
    there = suites()
    if name is None:
        rows = [
            (each, found.title, str(sum(key.startswith(f"{each}/") for key in known())))
            for each, found in there.items()
        ]
        out.print(table("Suites", ("name", "what it is", "experiments"), rows))
        return
    if name not in there:
        raise unknown("suite", name, there)
    reproduce(
        [name], size, quick, seed, seeds_, reps, jobs, on, None, share, out_, json, resume=resume
    )
