"""``reproduce`` and ``report``: the papers' experiments and the verdicts on their claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from bluewater import programs
from bluewater.cli.console import note, note_failures, print_json, show, table
from bluewater.cli.group import FAILED, example
from bluewater.cli.options import (
    Jobs,
    Json,
    On,
    Out,
    Part,
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
from bluewater.cli.sweep import make_part
from bluewater.errors import InputError
from bluewater.files import PICTURES
from bluewater.lab import CORES, DEFAULT_OUT, plan
from bluewater.progress import notes, of_runs
from bluewater.study.execution.execute import HERE, engine
from bluewater.study.execution.task import Shard
from bluewater.study.experiments.claims import Verdict
from bluewater.study.experiments.reproduce import reproduce as make
from bluewater.study.experiments.together import ONCE, of_findings, together
from bluewater.study.experiments.verdicts import kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.study.experiments.reproduce import Incomplete, Outcome

_COLOURS = {
    Verdict.REPRODUCED: "green",
    Verdict.STATED: "green",
    Verdict.PARTLY: "yellow",
    Verdict.CONTRADICTED: "magenta",
    Verdict.NOT_REPRODUCED: "red",
    Verdict.NEEDS_FULL: "dim",
}

_ORIGINS = {"paper": "claims of the papers", "ours": "claims of ours, counted apart"}

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PAPER[/FIGURE]]...",
        help="Experiments, papers, or your own files (my.toml); all if none is named.",
    ),
]


def add(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(reproduce)
    app.command()(report)


@example(
    "bluewater reproduce --quick",
    "bluewater reproduce feng/fig6-8 --quick",
    "bluewater reproduce feng cmu/fig16 --jobs 8",
    "bluewater reproduce feng --on dask=tcp://cluster:8786 --out /shared/results",
)
def reproduce(
    names: Names = None,
    size: SizeName = "full",
    quick: Quick = False,
    seed: Seed = None,
    seeds_: Seeds = None,
    reps: Reps = None,
    jobs: Jobs = CORES,
    on: On = HERE,
    shard: Part = None,
    share: Shared = "",
    out_: Out = DEFAULT_OUT,
    json: Json = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a claim is not reproduced.")
    ] = False,
    resume: Resume = True,
) -> None:
    """Reproduce a paper's experiments, judge its claims, and write a report.

    Runs that were made before are used again. The report is a single HTML file; beside it are
    the plots as SVG and their data. `bluewater report --pictures pdf` writes them as PDF too.
    """
    engine(on, jobs)  # reports a wrong engine before the planning, which takes time
    part = Shard.parse(shard) if shard else None
    made = plan(names or [], "quick" if quick else size, seeds(seed, seeds_, reps))
    tasks = part.of(made.tasks) if part else made.tasks
    runs = store(out_, share)
    if resume:
        runs.sync(task.key for task in tasks)
    else:
        for task in tasks:
            runs.remove(task.key)
    held = sum(task.key in runs for task in tasks)
    note(f"{len(tasks)} runs, {held} of them made before, {jobs} at a time")
    if part:
        make_part(tasks, runs, jobs, "starting", on)
        return
    with of_runs(tasks, held, "starting") as on_progress:
        outcomes = make(made, runs, jobs, on_progress, on)
    _finish(outcomes, out_, json, jobs)
    failed = any(not failure.skipped for outcome in outcomes for failure in outcome.failures)
    unmet = any(f.verdict is Verdict.NOT_REPRODUCED for o in outcomes for f in o.findings)
    if failed or (strict and unmet):
        raise typer.Exit(FAILED)


@example(
    "bluewater report --quick",
    "bluewater report feng/fig5 --out results",
    "bluewater report feng/fig5 --pictures pdf,png",
)
def report(
    names: Names = None,
    size: SizeName = "full",
    quick: Quick = False,
    seed: Seed = None,
    seeds_: Seeds = None,
    reps: Reps = None,
    out_: Out = DEFAULT_OUT,
    json: Json = False,
    pictures: Annotated[
        str,
        typer.Option(
            "--pictures",
            metavar="FORMATS",
            help="Write the plots also as png, pdf or pgf; several are separated by commas.",
        ),
    ] = "",
) -> None:
    """Write the report from finished runs, without new ones.

    Without a name it covers every complete experiment, and lists the others. Runs that this machine
    cannot make, such as those with real packets, may be missing.
    """
    size = "quick" if quick else size
    # Kept runs have the version of the gateway that made them: do not build a newer one.
    with programs.as_they_are():
        _report(names or [], size, seeds(seed, seeds_, reps), out_, json, _formats(pictures))


def _formats(pictures: str) -> tuple[str, ...]:
    formats = tuple(each.strip() for each in pictures.split(",") if each.strip())
    for each in formats:
        if f".{each}" not in PICTURES:
            allowed = ", ".join(ending[1:] for ending in PICTURES)
            raise InputError("not a format", key="--pictures", value=each, allowed=allowed)
    return tuple(each for each in formats if each != "svg")  # is written anyway


def _report(
    names: Sequence[str],
    size: str,
    chosen: tuple[int, ...] | None,
    out_: Path,
    json: bool,
    formats: Sequence[str],
) -> None:
    made = plan(names, size, chosen)
    runs = store(out_)
    there, missing = made.complete(runs)
    if not there.parts or (names and missing):
        absent = [task for part in missing for task in part.missing]
        words = ["bluewater reproduce", *names, f"--size {size} --out {out_}"]
        raise InputError(
            f"{len({task.key for task in absent})} of {len(made.tasks)} runs are missing, "
            f"first {absent[0].label}",
            file=str(runs.root),
            hint=f"`{' '.join(words)}` makes them",
        )
    _finish(make(there, runs, 1), out_, json, CORES, missing, formats)


def _finish(
    outcomes: Sequence[Outcome],
    folder: Path,
    json: bool,
    jobs: int,
    missing: Sequence[Incomplete] = (),
    formats: Sequence[str] = (),
) -> None:
    # Matplotlib takes a while to load: import it only when there is something to draw.
    from bluewater.report import LeftOut, besides, tally, to_json, told, write_report  # noqa: PLC0415

    with notes.status("drawing plots and writing the report"):
        beside = besides(folder, outcomes)
        for each in missing:
            beside.left_out[each.id] = LeftOut.of_runs(len(each.missing), each.runs)
        path = write_report(outcomes, folder, jobs, beside, formats)
    if json:
        found = [to_json(outcome) for outcome in outcomes]
        print_json(found[0] if len(found) == 1 else found)
    else:
        if any(outcome.findings for outcome in outcomes):
            show(_table(outcomes), (0, 5), _WIDE)
        _show_results(outcomes)
    for outcome in outcomes:
        note_failures(failure for failure in outcome.failures if not failure.skipped)
        if reasons := {failure.reason for failure in outcome.failures if failure.skipped}:
            note(f"skipped: {outcome.experiment.id}: {', '.join(reasons)}")
    for outcome in outcomes:
        if not (experiment := outcome.experiment).claims:
            note(f"{experiment.id} has no [[claim]] to judge; `bluewater sweep` shows its numbers")
    for line in told(beside.left_out):
        note(f"not on the page: {line}")
    for origin, verdicts in tally(outcomes).items():
        said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items() if count)
        note(f"{_ORIGINS[origin]}: {said}")
    if any(finding.provisional for outcome in outcomes for finding in outcome.findings):
        note("verdicts marked * are provisional: too few seeds for an interval (--reps 3)")
    note(f"report: {path.resolve()}")


def _show_results(outcomes: Sequence[Outcome]) -> None:
    """Shows how many claims hold, by these runs if they have the full size, else as kept."""
    claims = [each for o in outcomes for each in of_findings(o.experiment, o.findings)]
    if all(outcome.size.name == "full" for outcome in outcomes):
        rows, title = together(claims), "How many claims hold"
    else:
        rows = kept().rows({each.experiment.paper.cite for each in claims})
        title = f"All claims at full size, {kept().date}"
    if rows:
        cells = [(name, *map(str, counts[: len(ONCE)])) for name, counts in rows]
        show(table(title, ("paper", *ONCE), cells))


_WIDE = 110
"""Terminal columns below which the table is hard to read."""


def _table(outcomes: Sequence[Outcome]) -> Table:
    made = Table(box=None, padding=(0, 1), header_style="bold")
    made.add_column("claim", style="cyan", no_wrap=True)
    made.add_column("statement", ratio=5, min_width=24)
    made.add_column("paper", ratio=2)
    made.add_column("measured", ratio=2)
    made.add_column("holds if")
    made.add_column("verdict", min_width=14)
    for outcome in outcomes:
        for finding in outcome.findings:
            colour = _COLOURS[finding.verdict]
            star = " *" if finding.provisional else ""
            under = f" ({', '.join(finding.under)})" if finding.under else ""
            under += ", fitted" if finding.fitted else ""
            if finding.verdict is Verdict.NEEDS_FULL:
                held = kept().of(outcome.experiment.id, finding.claim)
                under = f"; there: {held.told}, {held.measured}" if held else ""
            made.add_row(
                f"{outcome.experiment.id} {finding.claim.id}",
                escape(finding.claim.text),
                escape(finding.claim.paper),
                finding.claim.shown(finding.decisive.estimate),
                finding.claim.holds.told,
                f"[{colour}]{finding.verdict}{escape(under)}{star}[/{colour}]",
            )
    return made
