"""``suite``: published tests and the tests of standards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from bluewater.cli.console import note, note_failures, out, print_json, show, table
from bluewater.cli.group import FAILED, example
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
    seeds,
    store,
)
from bluewater.cli.reproduce import reproduce
from bluewater.errors import InputError, unknown
from bluewater.lab import CORES, DEFAULT_OUT, criteria
from bluewater.study.execution.execute import HERE
from bluewater.study.experiments.experiment import known, suites
from bluewater.study.rfc9743 import card
from bluewater.study.rfc9743.cells import Verdict
from bluewater.study.rfc9743.senders import DEFAULT
from bluewater.study.rfc9743.suite import NAME, RUNS, TITLE

if TYPE_CHECKING:
    from bluewater.study.rfc9743.suite import Scorecard

_COLOURS = {
    Verdict.HOLDS: "green",
    Verdict.PARTLY: "yellow",
    Verdict.NOT: "red",
    Verdict.UNJUDGED: "dim",
}


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(suite)


@example(
    "bluewater suite",
    "bluewater suite l4s --quick",
    "bluewater suite rfc9743 --candidate bbr --quick",
    "bluewater suite rfc9743 --candidate python:my.py:Mine",
)
def suite(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[SUITE]", help="A suite; without a name, all are listed."),
    ] = None,
    size: SizeName = "full",
    quick: Quick = False,
    candidate: Annotated[
        str | None,
        typer.Option(
            "--candidate",
            metavar="CONTROLLER",
            help=f"Suite {NAME} only: the congestion controller to evaluate: a TCP, a QUIC stack "
            "as in quinn:cubic, or your own class python:FILE:CLASS.",
            show_default=DEFAULT,
        ),
    ] = None,
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

    The suite `rfc9743` evaluates a congestion controller, `--candidate`, by the criteria of RFC
    9743. It prints a scorecard, and keeps it as JSON and CSV.
    """
    there = suites()
    if name is None:
        rows = [
            (each, found.title, str(sum(key.startswith(f"{each}/") for key in known())))
            for each, found in there.items()
        ]
        rows.append((NAME, TITLE, str(len(RUNS))))
        out.print(table("Suites", ("name", "what it is", "experiments"), rows))
        return
    if name == NAME:
        planned = criteria.planned(candidate, "quick" if quick else size, seeds(seed, seeds_, reps))
        kept = store(out_, share)
        for task in () if resume else planned.tasks:
            kept.remove(task.key)
        note(f"{planned.candidate.name}: {len(planned.tasks)} simulations, {jobs} at a time")
        _show(criteria.evaluate(planned, kept, jobs, on), out_, json)
        return
    if name not in there:
        raise unknown("suite", name, [*there, NAME])
    if candidate is not None:
        raise InputError(
            f"the suite {name} evaluates no congestion controller",
            key="--candidate",
            value=candidate,
            hint=f"`bluewater suite {NAME} --candidate {candidate}` does",
        )
    reproduce(
        [name], size, quick, seed, seeds_, reps, jobs, on, None, share, out_, json, resume=resume
    )


def _show(found: Scorecard, folder: Path, json: bool) -> None:
    """Prints the scorecard, and writes it."""
    place = card.write(found, folder)
    if json:
        print_json(card.to_json(found))
    else:
        made = Table(
            title=f"{found.plan.candidate.name} by RFC 9743, size {found.plan.size}",
            title_justify="left", title_style="bold", box=None, padding=(0, 1),
        )  # fmt: skip
        made.add_column("run", style="cyan", no_wrap=True)
        for head in ("what", "RFC 9743", "rule"):
            made.add_column(head)
        made.add_column("worst measured", ratio=1, min_width=30)
        made.add_column("hold", no_wrap=True)
        made.add_column("verdict", no_wrap=True)
        for row in found.rows:
            colour = _COLOURS[row.verdict]
            asked = f"{row.force} §{row.section}" if row.section != "–" else str(row.force)
            made.add_row(
                row.id, row.title, asked, escape(row.rule), escape(card.measured(row)),
                card.held(row), f"[{colour}]{row.verdict}[/{colour}]",
            )  # fmt: skip
        show(made, (0, 1), 110)
    note_failures(failure for failure in found.failures if not failure.skipped)
    note(", ".join(f"{found.counts[verdict]} {verdict}" for verdict in Verdict))
    note(f"scorecard: {(place / 'scorecard.json').resolve()}, runs.csv and readings.csv beside it")
    if found.failures:
        raise typer.Exit(FAILED)
