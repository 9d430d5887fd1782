"""The page's section on one experiment: its findings, plots and tables, with their files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bluewater.plots.draw import draw
from bluewater.plots.experiment import drawables, in_readings, told
from bluewater.plots.files import inline_svg, page_name, save
from bluewater.report.kept import keep
from bluewater.report.scorecard import score
from bluewater.results.tables import STANDARD
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

    from bluewater.plots.experiment import Shown, Told
    from bluewater.report.kept import Section
    from bluewater.study.experiments.claims import Finding
    from bluewater.study.experiments.experiment import Sheet
    from bluewater.study.experiments.reproduce import Outcome

MAX_RUNS_LISTED = 40
"""With more runs the report lists none of them; ``runs.csv`` beside it has them all."""


def describe(outcome: Outcome, folder: Path, formats: Sequence[str] = ()) -> Section:
    """Draws and writes what the page says of an experiment, which is kept beside it.

    Pictures are SVG, which the page holds, and the ``formats`` besides.
    """
    experiment = outcome.experiment
    own = folder / experiment.id.replace("/", "-")
    own.mkdir(exist_ok=True)
    entries = outcome.tables.entries
    if entries:
        outcome.tables.runs.write_csv(own / "runs.csv")
    (own / "claims.json").write_text(json.dumps(to_json(outcome), indent=2) + "\n", "utf-8")
    results = outcome.tables.results
    runs = [
        {
            "axes": dict(entry.axes),
            "reading": entry.reading,
            "seed": entry.seed,
            "hash": result.decision_hash,
        }
        for entry, result in zip(entries, results, strict=True)
    ]
    scores = score(outcome) if experiment.paper.scorecard else None
    made = {
        "experiment": experiment,
        "anchor": experiment.id.replace("/", "-"),
        "size": outcome.size,
        "findings": [_finding(finding) for finding in outcome.findings],
        "failures": [
            {"run": each.task.label, "reason": each.reason, "skipped": each.skipped}
            for each in outcome.failures
        ],
        "score": scores.to_dict(as_series=False) if scores is not None else None,
        "plots": [
            _plot(outcome, shown, own, ("svg", *formats))
            for plot in experiment.plots
            if entries and _has(outcome, plot.reading)
            for shown in in_readings(plot, outcome.findings)
        ],
        "sheets": [
            _sheet(outcome, sheet, own)
            for sheet in experiment.sheets
            if entries and _has(outcome, sheet.reading)
        ],
        "runs": runs if len(runs) <= MAX_RUNS_LISTED else [],
        "run_count": _made(outcome),
        "keys": [entry.key for entry in entries],
        "decision_hash": outcome.decision_hash,
        "wall_s": outcome.wall_s,
        "reused": outcome.reused,
        "scenario": results[0].scenario if entries else "",
        "axes": {
            axis.name: list(dict.fromkeys(entry.axes[axis.name] for entry in entries))
            for axis in experiment.axes
        },
    }
    keep(made, outcome, own)
    return made


def _has(outcome: Outcome, reading: str) -> bool:
    """Whether this size has runs of a reading."""
    return reading == "all" or reading in outcome.tables.parts


def _made(outcome: Outcome) -> int:
    """The number of different runs; a run of several readings counts once."""
    return len({entry.key for entry in outcome.tables.entries})


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "claim": finding.claim,
        "readings": [
            {
                "reading": each.reading,
                "measured": finding.claim.shown(each.estimate),
                "mean": each.estimate.mean if each.estimate else None,
                "verdict": each.verdict,
                "numbers": each.values,
            }
            for each in finding.readings
        ],
        "decisive": list(finding.readings).index(finding.decisive),
        "verdict": finding.verdict,
        "under": list(finding.under),
        "refuted": finding.refuted,
        "fitted": finding.fitted,
        "provisional": finding.provisional,
    }


def _plot(outcome: Outcome, shown: Shown, folder: Path, formats: Sequence[str]) -> dict[str, Any]:
    plot = shown.plot
    own = [finding.claim for finding in shown.findings]
    panels = drawables(plot, outcome.tables, outcome.experiment.file, own)
    claims = told(plot, shown.findings)
    lines = [f"({each.finding.claim.id}) {each.text}" for each in claims]
    figure = draw(plot.title, plot.kind, plot.x, panels, plot.in_a_row, plot.sharing, lines)
    save(figure, panels, folder / shown.name, formats)
    svg = folder / f"{shown.name}.svg"
    return {
        "id": shown.name,
        "title": plot.title,
        "caption": _caption(outcome, shown),
        "claims": _claims(claims),
        "note": _drawn(shown, outcome.size.seeds)
        + (_MARKS if any(p.marks for p in panels) else ""),
        "svg": inline_svg(svg, plot.title, figure.parts.foot),
        "width": round(figure.get_figwidth() * _INCH),
        "name": page_name(svg),
        "boxes": [" ".join(f"{each:.0f}" for each in box) for box in figure.parts.boxes],
        "legend": figure.parts.keys,
        "files": [f"{folder.name}/{shown.name}.{end}" for end in (*formats, "csv")],
    }  # fmt: skip


def _caption(outcome: Outcome, shown: Shown) -> str:
    """The caption of a plot; in another reading than the file's, what that reading changes."""
    plot = shown.plot
    if shown.name == plot.id:
        return plot.caption
    title = next(each.title for each in outcome.experiment.readings if each.id == plot.reading)
    return (
        f"As the experiment stands: {plot.caption} The plot shows the reading {plot.reading}: "
        f"{title}."
    )


def _claims(told_: Sequence[Told]) -> list[dict[str, Any]]:
    """The claims below a plot or a table."""
    return [
        {"id": each.finding.claim.id, "text": each.text, "verdict": each.finding.verdict,
         "provisional": each.finding.provisional}
        for each in told_
    ]  # fmt: skip


_INCH = 6.7
"""The width of a picture in rem, so that its letters are as large as the caption's."""


def _sheet(outcome: Outcome, sheet: Sheet, folder: Path) -> dict[str, Any]:
    tables = outcome.tables if sheet.reading == "all" else outcome.tables.of(sheet.reading)
    found = tables.query(sheet.sql, (), f"table.{sheet.id}.sql", outcome.experiment.file)
    made = write_table(found, folder / sheet.id, f"{folder.name}/{sheet.id}")
    claims = _claims(told(sheet, outcome.findings))
    return {
        "id": sheet.id, "title": sheet.title, "caption": sheet.caption, "claims": claims, **made
    }  # fmt: skip


def write_table(found: pl.DataFrame, stem: Path, link: str) -> dict[str, Any]:
    """A table for the page, also written as CSV and Markdown."""
    found.write_csv(stem.with_name(f"{stem.name}.csv"))
    rows = [[_shown(value) for value in row] for row in found.iter_rows()]
    lines = [found.columns, ["---"] * found.width, *rows]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
    stem.with_name(f"{stem.name}.md").write_text(text, "utf-8")
    files = [f"{link}.{ending}" for ending in ("csv", "md")]
    return {"columns": found.columns, "rows": rows, "files": files}


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else number(value)


_MARKS = (
    " Dashed lines and arrows: the bound of the claim in brackets; dotted lines and stars: the "
    "paper's number."
)


def _drawn(shown: Shown, seeds: Sequence[int]) -> str:
    plot = shown.plot
    # A plot that is drawn in a second reading has a caption that names it.
    plain = plot.reading in (STANDARD, "all") or shown.name != plot.id
    reading = "" if plain else f"Reading {plot.reading}. "
    if plot.kind in ("trace", "scatter"):
        return f"{reading}Seed {min(seeds)}."
    if len(seeds) == 1:
        return f"{reading}One seed ({seeds[0]})."
    return (
        f"{reading}Mean of {len(seeds)} seeds; bands and whiskers from the least to the greatest."
    )


def to_json(outcome: Outcome) -> dict[str, Any]:
    """The findings of an experiment as stable JSON."""
    return {
        "experiment": outcome.experiment.id,
        "size": outcome.size.name,
        "seeds": list(outcome.size.seeds),
        "wall_s": round(outcome.wall_s, 3),
        "runs": _made(outcome),
        "reused": outcome.reused,
        "decision_hash": outcome.decision_hash,
        "failures": [
            {"run": failure.task.label, "reason": failure.reason, "skipped": failure.skipped}
            for failure in outcome.failures
        ],
        "claims": [
            {
                "id": finding.claim.id,
                "origin": finding.claim.origin,
                "text": finding.claim.text,
                "paper": finding.claim.paper,
                "measured": finding.measured.mean if finding.measured else None,
                "spread": finding.measured.half_width if finding.measured else None,
                "unit": finding.claim.unit,
                "holds": finding.claim.holds.text,
                "partly": finding.claim.partly.text if finding.claim.partly else None,
                "bound": finding.claim.basis,
                "fitted": finding.claim.fitted,
                "authors": finding.claim.authors,
                "verdict": str(finding.verdict),
                "under": list(finding.under),
                "contradicted_by": finding.claim.contradicted and finding.claim.contradicted.by,
                "provisional": finding.provisional,
                "readings": [
                    {
                        "reading": each.reading,
                        "measured": each.estimate.mean if each.estimate else None,
                        "spread": each.estimate.half_width if each.estimate else None,
                        "verdict": str(each.verdict),
                    }
                    for each in finding.readings
                ],
            }
            for finding in outcome.findings
        ],
    }
