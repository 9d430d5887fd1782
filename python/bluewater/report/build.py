"""Builds the report of a reproduction."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from bluewater import _core
from bluewater.plots.draw import draw
from bluewater.plots.experiment import drawables
from bluewater.plots.files import inline_svg, save
from bluewater.report.metrics import METRICS
from bluewater.report.page import environment
from bluewater.results import host
from bluewater.results.tables import STANDARD
from bluewater.study.claims import MIN_SEEDS, Verdict
from bluewater.text import measured, number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bluewater.study.claims import Finding, Measured
    from bluewater.study.experiment import Sheet
    from bluewater.study.plot import Plot
    from bluewater.study.reproduce import Outcome

MAX_RUNS_LISTED = 40
"""Above this many runs the report lists none of them; ``runs.csv`` beside it has them all."""


def write_report(outcomes: Sequence[Outcome], folder: Path, jobs: int = 1) -> Path:
    """Writes ``report.html`` and, in a folder an experiment, plots and data; returns the page.

    Experiments are drawn ``jobs`` at a time, each in a process of its own: drawing takes about as
    long as the runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if min(jobs, len(outcomes)) > 1:
        # Not forked: the data frames' threads would not survive it.
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            # What takes longest first, so that no core waits for another's last one.
            drawn = {
                outcome.experiment.id: pool.submit(_section, outcome, folder)
                for outcome in sorted(outcomes, key=_panels, reverse=True)
            }
            sections = [drawn[outcome.experiment.id].result() for outcome in outcomes]
    else:
        sections = [_section(outcome, folder) for outcome in outcomes]
    page = (
        environment()
        .get_template("report.html.j2")
        .render(
            sections=sections,
            counts=tally(outcomes),
            css=CSS,
            metrics=METRICS,
            version=_core.version(),
            host=host.facts(),
            made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            min_seeds=MIN_SEEDS,
        )
    )
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


CSS: dict[str, str] = {
    Verdict.REPRODUCED: "reproduced",
    Verdict.STATED: "stated",
    Verdict.PARTLY: "partly",
    Verdict.CONTRADICTED: "contradicted",
    Verdict.NOT_REPRODUCED: "not",
    Verdict.NEEDS_FULL: "needs",
}
"""The class of a verdict on the page."""


def tally(outcomes: Sequence[Outcome]) -> dict[str, dict[Verdict, int]]:
    """How many claims have each verdict, by who says them."""
    findings = [finding for outcome in outcomes for finding in outcome.findings]
    return {
        origin: {
            verdict: sum(
                finding.verdict is verdict and finding.claim.origin == origin
                for finding in findings
            )
            for verdict in Verdict
        }
        for origin in ("paper", "ours")
        if any(finding.claim.origin == origin for finding in findings)
    }


def _panels(outcome: Outcome) -> int:
    return sum(len(plot.panels) for plot in outcome.experiment.plots)


def _section(outcome: Outcome, folder: Path) -> dict[str, Any]:
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
    return {
        "experiment": experiment,
        "anchor": experiment.id.replace("/", "-"),
        "size": outcome.size,
        "findings": [_finding(finding) for finding in outcome.findings],
        "failures": outcome.failures,
        "plots": [
            _plot(outcome, plot, own)
            for plot in experiment.plots
            if entries and _has(outcome, plot.reading)
        ],
        "sheets": [
            _sheet(outcome, sheet, own)
            for sheet in experiment.sheets
            if entries and _has(outcome, sheet.reading)
        ],
        "runs": runs if len(runs) <= MAX_RUNS_LISTED else [],
        "run_count": len(entries),
        "decision_hash": outcome.decision_hash,
        "wall_s": outcome.wall_s,
        "reused": outcome.reused,
        "scenario": results[0].scenario if entries else "",
        "axes": {
            axis.name: list(dict.fromkeys(entry.axes[axis.name] for entry in entries))
            for axis in experiment.axes
        },
    }


def _has(outcome: Outcome, reading: str) -> bool:
    """Whether this size has runs of a reading."""
    return reading == "all" or reading in outcome.tables.parts


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "claim": finding.claim,
        "readings": [
            {
                "reading": each.reading,
                "measured": _told(each, finding.claim.unit),
                "verdict": each.verdict,
                "numbers": each.values,
            }
            for each in finding.readings
        ],
        "verdict": finding.verdict,
        "under": finding.under,
        "refuted": finding.refuted,
        "provisional": finding.provisional,
    }


def _told(found: Measured, unit: str) -> str:
    estimate = found.estimate
    return measured(
        estimate.mean if estimate else None, estimate.half_width if estimate else None, unit
    )


def _plot(outcome: Outcome, plot: Plot, folder: Path) -> dict[str, Any]:
    panels = drawables(plot, outcome.tables, outcome.experiment.file)
    figure = draw(plot.title, plot.kind, plot.x, panels, plot.in_a_row, plot.sharing)
    stem = folder / plot.id
    save(figure, panels, stem)
    return {
        "id": plot.id,
        "title": plot.title,
        "caption": plot.caption,
        "note": _drawn(plot, outcome.size.seeds),
        "svg": inline_svg(stem.with_name(f"{plot.id}.svg"), plot.title),
        "files": [f"{folder.name}/{plot.id}.{ending}" for ending in ("png", "svg", "pdf", "csv")],
    }


def _sheet(outcome: Outcome, sheet: Sheet, folder: Path) -> dict[str, Any]:
    tables = outcome.tables if sheet.reading == "all" else outcome.tables.of(sheet.reading)
    found = tables.query(sheet.sql, (), f"table.{sheet.id}.sql", outcome.experiment.file)
    found.write_csv(folder / f"{sheet.id}.csv")
    rows = [[_shown(value) for value in row] for row in found.iter_rows()]
    lines = [found.columns, ["---"] * found.width, *rows]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
    (folder / f"{sheet.id}.md").write_text(text, "utf-8")
    return {
        "id": sheet.id,
        "title": sheet.title,
        "caption": sheet.caption,
        "columns": found.columns,
        "rows": rows,
        "files": [f"{folder.name}/{sheet.id}.{ending}" for ending in ("csv", "md")],
    }


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else number(value)


def _drawn(plot: Plot, seeds: Sequence[int]) -> str:
    reading = "" if plot.reading in (STANDARD, "all") else f"Reading {plot.reading}. "
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
        "runs": len(outcome.tables.entries),
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
                "bound": finding.claim.bound,
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
