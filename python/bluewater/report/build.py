"""Builds the report of a reproduction."""

from __future__ import annotations

import json
import math
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from bluewater import _core
from bluewater.plots.draw import draw
from bluewater.plots.experiment import drawables, in_readings, told
from bluewater.plots.files import inline_svg, page_name, save, share_styles
from bluewater.report.metrics import METRICS
from bluewater.report.page import environment
from bluewater.report.scorecard import scorecard
from bluewater.results import host
from bluewater.results.tables import STANDARD
from bluewater.study.claims import MIN_SEEDS, Verdict
from bluewater.text import measured, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from bluewater.plots.experiment import Shown, Told
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
    papers = _papers(sections)
    for paper in papers:
        paper["scorecard"] = _scorecard(paper, outcomes, folder)
    plots = [plot for section in sections for plot in section["plots"]]
    styles = share_styles(plots) + "".join(
        f".w{width}{{max-width:{width}rem}}" for width in sorted({plot["width"] for plot in plots})
    )
    open_ = _open([section for paper in papers for section in paper["sections"]])
    page = (
        environment()
        .get_template("report.html.j2")
        .render(
            papers=papers,
            summary=_summary(outcomes),
            verdicts=list(Verdict),
            matrix=_matrix(papers),
            joint=_joint(papers),
            open=open_,
            filters=_filters(open_),
            by=BY,
            css=CSS,
            styles=styles,
            marks=MARKS,
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


MARKS = {
    "reproduced": "●",
    "stated": "◉",
    "partly": "◐",
    "contradicted": "×",
    "not": "○",
    "needs": "…",
}
"""A verdict in one sign."""


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


def _papers(sections: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The experiments by paper: most claims first, our own papers last, in each what is ours."""
    found: dict[str, dict[str, Any]] = {}
    for section in sections:
        experiment = section["experiment"]
        folder = experiment.id.partition("/")[0]
        paper = found.setdefault(
            folder,
            {
                "anchor": f"paper-{folder}",
                "cite": experiment.paper.cite or folder,
                "title": experiment.paper.title if experiment.paper.source else "",
                "source": experiment.paper.source,
                "own": experiment.paper.own,
                "sections": [],
            },
        )
        paper["sections"].append(section)
    for paper in found.values():
        paper["sections"].sort(key=lambda each: not _from_paper(each))
        paper["claims"] = sum(_from_paper(each) for each in paper["sections"])
    return sorted(found.values(), key=lambda each: (each["own"], -each["claims"]))


def _from_paper(section: Mapping[str, Any]) -> int:
    return sum(each["claim"].origin == "paper" for each in section["findings"])


def _summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    findings = [finding for outcome in outcomes for finding in outcome.findings]
    papers = [finding for finding in findings if finding.claim.origin == "paper"]
    # A formula has the same value whatever the seed.
    counts = {len(outcome.size.seeds) for outcome in outcomes if not outcome.experiment.exact}
    ends = sorted({min(counts, default=1), max(counts, default=1)})
    return {
        "sizes": sorted({outcome.size.name for outcome in outcomes}),
        "seeds": " to ".join(map(str, ends)),
        "runs": sum(len(outcome.tables.entries) for outcome in outcomes),
        "claims": len(findings),
        "papers": len(papers),
        "reproduced": sum(each.verdict in (Verdict.REPRODUCED, Verdict.STATED) for each in papers),
        "fitted": sum(each.fitted for each in papers),
        "provisional": sum(finding.provisional for finding in findings),
        "failures": sum(len(outcome.failures) for outcome in outcomes),
    }


def _matrix(papers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How many claims of each paper have each verdict; ours apart."""
    rows = []
    for origin, all_ in (("paper", "all papers"), ("ours", "all of ours")):
        made = []
        for paper in papers:
            own = [
                each
                for section in paper["sections"]
                for each in section["findings"]
                if each["claim"].origin == origin
            ]
            counts = [sum(each["verdict"] is verdict for each in own) for verdict in Verdict]
            if any(counts):
                beside = "" if origin == "paper" or paper["own"] else "ours, beside "
                name = f"{beside}{paper['cite']}"
                anchor = paper["anchor"]
                row = {"name": name, "anchor": anchor, "counts": counts, "total": False}
                made.append(row | {"fitted": sum(each["fitted"] for each in own)})
        if len(made) > 1:
            sums = [sum(column) for column in zip(*(row["counts"] for row in made), strict=True)]
            row = {"name": all_, "anchor": "", "counts": sums, "total": True}
            made.append(row | {"fitted": sum(row["fitted"] for row in made)})
        rows += made
    return rows


def _joint(papers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each reading of a section how many of its claims it meets, and the standard one does."""
    rows = []
    for paper in papers:
        found: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
        for section in paper["sections"]:
            own = section["experiment"].section
            for finding in section["findings"]:
                standard, *others = finding["readings"]
                for each in others:
                    if own and each["reading"] in {reading.id for reading in own.readings}:
                        met = each["verdict"] is Verdict.REPRODUCED
                        pair = (met, standard["verdict"] is Verdict.REPRODUCED)
                        found.setdefault((own.id, each["reading"]), []).append(pair)
        rows += [
            {
                "section": f"{paper['cite']} §{section}",
                "reading": reading,
                "judged": len(pairs),
                "met": sum(met for met, _ in pairs),
                "standard": sum(standard for _, standard in pairs),
            }
            for (section, reading), pairs in found.items()
        ]
    return rows


def _open(sections: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The claims not reproduced as they stand, or by what was fitted, with their causes."""
    rows = []
    for section in sections:
        experiment = section["experiment"]
        folder, _, name = experiment.id.rpartition("/")
        for finding in section["findings"]:
            if finding["verdict"] is not Verdict.REPRODUCED or finding["fitted"]:
                css = CSS[finding["verdict"]]
                evidence = "fitted" if finding["fitted"] else "free"
                rows.append(
                    {
                        "finding": finding,
                        "anchor": f"{section['anchor']}-claim-{finding['claim'].id}",
                        "cite": experiment.paper.cite or folder,
                        "name": f"{name} ({finding['claim'].id})",
                        "paper": folder,
                        "css": css,
                        "fitted": finding["fitted"],
                        "classes": f"v-{css} p-{folder} e-{evidence}",
                        "why": _why(finding),
                    }
                )
    return rows


def _why(finding: Mapping[str, Any]) -> str:
    """The cause of a verdict in a line."""
    claim, under, verdict = finding["claim"], ", ".join(finding["under"]), finding["verdict"]
    told = "Not known."
    if verdict in (Verdict.REPRODUCED, Verdict.STATED):
        where = f"Reproduced under {under}" if under else "Reproduced"
        because = " ".join(filter(None, (claim.fitted, claim.cause)))
        told = f"{where}: {because}" if because else f"{where}."
    elif verdict is Verdict.CONTRADICTED:
        told = f"Contradicted by {BY[claim.contradicted.by]}: {claim.contradicted.why}"
    elif verdict is Verdict.NEEDS_FULL:
        told = "This size is too small to say."
    elif claim.cause:
        told = str(claim.cause)
    elif under:
        told = f"In part under {under}."
    elif verdict is Verdict.PARTLY and claim.holds.holds(finding["readings"][0]["mean"]):
        told = "The mean lies within the bound, its interval does not: much depends on the seed."
    return told


BY = {
    "arithmetic": "arithmetic",
    "independent run": "an independent run",
    "the paper itself": "the paper itself",
}
"""What shows that a claim cannot hold, in a sentence."""


def _filters(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """What the list may be narrowed to: a verdict, a paper."""
    verdicts = [verdict for verdict in Verdict if any(row["css"] == CSS[verdict] for row in rows)]
    papers = dict.fromkeys((row["paper"], row["cite"]) for row in rows)
    by_verdict = [
        (f"v-{CSS[each]}", str(each), sum(row["css"] == CSS[each] for row in rows))
        for each in verdicts
    ]
    fitted = sum(row["fitted"] for row in rows)
    by_evidence = [("e-fitted", "fitted", fitted), ("e-free", "not fitted", len(rows) - fitted)]
    by_paper = [
        (f"p-{folder}", cite, sum(row["paper"] == folder for row in rows))
        for folder, cite in papers
    ]
    return [
        (
            group,
            [
                {"id": f"filter-{group}-{css}", "css": css, "name": name, "count": count}
                for css, name, count in [("", "all", len(rows)), *each]
            ],
        )
        for group, each in (("verdict", by_verdict), ("evidence", by_evidence), ("paper", by_paper))
        if rows
    ]


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
            _plot(outcome, shown, own)
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
                "mean": each.estimate.mean if each.estimate else math.nan,
                "verdict": each.verdict,
                "numbers": each.values,
            }
            for each in finding.readings
        ],
        "verdict": finding.verdict,
        "under": finding.under,
        "refuted": finding.refuted,
        "fitted": finding.fitted,
        "provisional": finding.provisional,
    }


def _told(found: Measured, unit: str) -> str:
    estimate = found.estimate
    return measured(
        estimate.mean if estimate else None, estimate.half_width if estimate else None, unit
    )


def _plot(outcome: Outcome, shown: Shown, folder: Path) -> dict[str, Any]:
    plot = shown.plot
    own = [finding.claim for finding in shown.findings]
    panels = drawables(plot, outcome.tables, outcome.experiment.file, own)
    claims = told(plot, shown.findings)
    lines = [f"({each.finding.claim.id}) {each.text}" for each in claims]
    figure = draw(plot.title, plot.kind, plot.x, panels, plot.in_a_row, plot.sharing, lines)
    save(figure, panels, folder / shown.name)
    svg = folder / f"{shown.name}.svg"
    return {
        "id": shown.name,
        "title": plot.title,
        "caption": plot.caption,
        "claims": _claims(claims),
        "note": _drawn(plot, outcome.size.seeds) + (_MARKS if any(p.marks for p in panels) else ""),
        "svg": inline_svg(svg, plot.title, figure.parts.foot),
        "width": round(figure.get_figwidth() * _INCH),
        "name": page_name(svg),
        "boxes": [" ".join(f"{each:.0f}" for each in box) for box in figure.parts.boxes],
        "legend": figure.parts.keys,
        "files": [f"{folder.name}/{shown.name}.{end}" for end in ("png", "svg", "pdf", "csv")],
    }  # fmt: skip


def _claims(told_: Sequence[Told]) -> list[dict[str, Any]]:
    """The claims below a plot or a table."""
    return [
        {"id": each.finding.claim.id, "text": each.text, "verdict": each.finding.verdict,
         "provisional": each.finding.provisional}
        for each in told_
    ]  # fmt: skip


_INCH = 6.7
"""Of a picture, in rem: letters of a picture are as large as those of its caption."""


def _sheet(outcome: Outcome, sheet: Sheet, folder: Path) -> dict[str, Any]:
    tables = outcome.tables if sheet.reading == "all" else outcome.tables.of(sheet.reading)
    found = tables.query(sheet.sql, (), f"table.{sheet.id}.sql", outcome.experiment.file)
    made = _table(found, folder / sheet.id, f"{folder.name}/{sheet.id}")
    claims = _claims(told(sheet, outcome.findings))
    return {
        "id": sheet.id, "title": sheet.title, "caption": sheet.caption, "claims": claims, **made
    }  # fmt: skip


def _scorecard(
    paper: Mapping[str, Any], outcomes: Sequence[Outcome], folder: Path
) -> dict[str, Any] | None:
    """The scorecard of a suite that has one."""
    own = paper["anchor"].removeprefix("paper-")
    mine = [each for each in outcomes if each.experiment.id.startswith(f"{own}/")]
    baseline = next((each.experiment.paper.scorecard for each in mine), None)
    found = scorecard(mine, baseline) if baseline else None
    if found is None or found.is_empty():
        return None
    stem = f"{own}-scorecard"
    return {"baseline": baseline, **_table(found, folder / stem, stem)}


def _table(found: pl.DataFrame, stem: Path, link: str) -> dict[str, Any]:
    """A table for the page, which is written as CSV and Markdown, too."""
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
