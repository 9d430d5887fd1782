"""Builds the report of a reproduction."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater import _core
from bluewater.files import write_text
from bluewater.plots.files import share_styles
from bluewater.report.kept import Besides, unchanged
from bluewater.report.kept import besides as others
from bluewater.report.kept import told as told_left_out
from bluewater.report.metrics import METRICS
from bluewater.report.page import environment
from bluewater.report.scorecard import scorecard
from bluewater.report.section import describe, write_table
from bluewater.results import host
from bluewater.study.experiments.claims import MIN_SEEDS, Verdict
from bluewater.study.experiments.experiment import known
from bluewater.study.experiments.together import ALL, COLUMNS, Judged, together
from bluewater.study.experiments.verdicts import kept

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bluewater.report.kept import Section
    from bluewater.study.experiments.reproduce import Outcome


def write_report(
    outcomes: Sequence[Outcome],
    folder: Path,
    jobs: int = 1,
    beside: Besides | None = None,
    formats: Sequence[str] = (),
) -> Path:
    """Writes ``report.html`` and, in a folder an experiment, plots and data; returns the page.

    The page is also about what else the folder has, as it was kept. Experiments are drawn ``jobs``
    at a time, each in a process of its own: drawing takes about as long as the runs. One that was
    drawn before, of the same runs, is not drawn again. Plots are in the page and beside it as SVG,
    and in the other ``formats``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    beside = besides(folder, outcomes) if beside is None else beside
    names = list(known())
    sections = sorted(
        [*_sections(outcomes, folder, jobs, formats), *beside.sections],
        key=lambda each: (
            names.index(name) if (name := each["experiment"].id) in names else len(names)
        ),
    )
    papers = _papers(sections, names)
    for paper in papers:
        paper["scorecard"] = _scorecard(paper, folder)
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
            summary=_summary(sections),
            left_out=told_left_out(beside.left_out),
            alone=outcomes[0].experiment.id if len(outcomes) == 1 else "",
            verdicts=list(Verdict),
            matrix=_matrix(papers),
            joint=_joint(papers),
            results=_results(papers),
            results_columns=COLUMNS,
            all_papers=ALL,
            kept=kept(),
            open=open_,
            filters=_filters(open_),
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
    write_text(path, page)
    return path


def besides(folder: Path, outcomes: Sequence[Outcome]) -> Besides:
    """The folder's other experiments, at the sizes of these."""
    if not outcomes:
        return Besides()
    asked = {outcome.experiment.id for outcome in outcomes}
    sizes = {outcome.size.name for outcome in outcomes}
    return others(folder, asked, sizes, outcomes[0].tables.store)


def _sections(
    outcomes: Sequence[Outcome], folder: Path, jobs: int, formats: Sequence[str]
) -> list[Section]:
    found = {outcome.experiment.id: unchanged(outcome, folder, formats) for outcome in outcomes}
    new = [outcome for outcome in outcomes if found[outcome.experiment.id] is None]
    if min(jobs, len(new)) > 1:
        # Not forked: Polars' threads would not survive it.
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            # The longest first, so that no core idles while another draws the last one.
            drawn = {
                outcome.experiment.id: pool.submit(describe, outcome, folder, formats)
                for outcome in sorted(new, key=_panels, reverse=True)
            }
            found |= {name: made.result() for name, made in drawn.items()}
    else:
        found |= {outcome.experiment.id: describe(outcome, folder, formats) for outcome in new}
    return [each for each in found.values() if each is not None]


CSS: dict[str, str] = {
    Verdict.REPRODUCED: "reproduced",
    Verdict.STATED: "stated",
    Verdict.PARTLY: "partly",
    Verdict.CONTRADICTED: "contradicted",
    Verdict.NOT_REPRODUCED: "not",
    Verdict.NEEDS_FULL: "needs",
}
"""The CSS class of a verdict."""


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


def _papers(sections: Sequence[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """The experiments by paper: most claims first, our own questions last."""
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
                "experiments": sum(name.partition("/")[0] == folder for name in names),
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


def _summary(sections: Sequence[Section]) -> dict[str, Any]:
    findings = [finding for section in sections for finding in section["findings"]]
    papers = [finding for finding in findings if finding["claim"].origin == "paper"]
    # A formula's value does not depend on the seed.
    counts = {len(each["size"].seeds) for each in sections if not each["experiment"].exact}
    ends = sorted({min(counts, default=1), max(counts, default=1)})
    met = (Verdict.REPRODUCED, Verdict.STATED)
    return {
        "sizes": sorted({section["size"].name for section in sections}),
        "seeds": " to ".join(map(str, ends)),
        # A run of several experiments counts once.
        "runs": len({key for section in sections for key in section["keys"]}),
        "claims": len(findings),
        "papers": len(papers),
        "reproduced": sum(each["verdict"] in met for each in papers),
        "fitted": sum(each["fitted"] for each in papers),
        "provisional": sum(finding["provisional"] for finding in findings),
        "failed": sum(not each["skipped"] for s in sections for each in s["failures"]),
        "skipped": sum(each["skipped"] for s in sections for each in s["failures"]),
        "unjudged": sum(
            claim.origin == "paper"
            for section in sections
            if not section["findings"]
            for claim in section["experiment"].claims
        ),
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
                row["part"] = _part(paper) if origin == "paper" or paper["own"] else ""
                made.append(row | {"fitted": sum(each["fitted"] for each in own)})
        if len(made) > 1:
            sums = [sum(column) for column in zip(*(row["counts"] for row in made), strict=True)]
            row = {"name": all_, "anchor": "", "counts": sums, "total": True, "part": ""}
            made.append(row | {"fitted": sum(row["fitted"] for row in made)})
        rows += made
    return rows


def _results(papers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How many claims hold: by the page if it has the full size, else by the kept verdicts."""
    sections = [section for paper in papers for section in paper["sections"]]
    if all(section["size"].name == "full" for section in sections):
        claims = [each for section in sections for each in _judged(section)]
        return {"rows": together(claims), "kept": ""}
    held = kept()
    rows = held.rows({paper["cite"] for paper in papers})
    return {"rows": rows, "kept": f"Full size, {held.date}, core {held.core}."}


def _judged(section: Mapping[str, Any]) -> list[Judged]:
    return [
        Judged(
            section["experiment"],
            each["verdict"],
            bool(each["claim"].fitted),
            {found["reading"]: found["verdict"] for found in each["readings"]},
        )
        for each in section["findings"]
        if each["claim"].origin == "paper"
    ]


def _part(paper: Mapping[str, Any]) -> str:
    """How many of a paper's experiments are on the page, if not all."""
    there, every = len(paper["sections"]), paper["experiments"]
    return f"{there} of {every} experiments" if there < every else ""


def _joint(papers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each reading of a section how many of its claims hold, there and in the standard one."""
    rows = []
    for paper in papers:
        found: dict[tuple[str, str, str], list[tuple[bool, bool]]] = {}
        titles = {}
        for section in paper["sections"]:
            own = section["experiment"].section
            for finding in section["findings"]:
                standard, *others = finding["readings"]
                for each in others:
                    joint = {reading.id: reading.title for reading in own.readings} if own else {}
                    if own and each["reading"] in joint:
                        titles[each["reading"]] = joint[each["reading"]]
                        met = each["verdict"] is Verdict.REPRODUCED
                        pair = (met, standard["verdict"] is Verdict.REPRODUCED)
                        key = (finding["claim"].origin, own.id, each["reading"])
                        found.setdefault(key, []).append(pair)
        rows += [
            {
                "section": f"{paper['cite']} §{section}",
                "reading": reading,
                "title": titles[reading],
                "ours": origin == "ours",
                "judged": len(pairs),
                "met": sum(met for met, _ in pairs),
                "standard": sum(standard for _, standard in pairs),
            }
            for (origin, section, reading), pairs in sorted(found.items(), key=_most_judged)
        ]
    return sorted(rows, key=lambda row: bool(row["ours"]))


def _most_judged(
    found: tuple[tuple[str, str, str], Sequence[tuple[bool, bool]]],
) -> tuple[str, int]:
    """The sort key: by section, then readings that are judged for most claims first."""
    (_, section, _), pairs = found
    return section, -len(pairs)


def _open(sections: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The claims not reproduced as they stand, or only by a fitted value, with their causes."""
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
                        "ours": finding["claim"].origin == "ours",
                        "classes": f"v-{css} p-{folder} e-{evidence}",
                        "why": _why(finding, experiment.id),
                    }
                )
    return sorted(rows, key=lambda row: (row["ours"], _WORST.index(row["finding"]["verdict"])))


_WORST = (
    Verdict.NOT_REPRODUCED,
    Verdict.PARTLY,
    Verdict.CONTRADICTED,
    Verdict.NEEDS_FULL,
    Verdict.STATED,
    Verdict.REPRODUCED,
)
"""The sort key of the list: the worst verdicts first."""


HINDSIGHT = "Chosen with the results in view."
"""Why a claim is fitted whose file gives no reason of its own."""


def _why(finding: Mapping[str, Any], name: str) -> str:
    """The cause of a verdict in a line."""
    claim, under, verdict = finding["claim"], ", ".join(finding["under"]), finding["verdict"]
    told = "Not known."
    if verdict in (Verdict.REPRODUCED, Verdict.STATED):
        where = f"Reproduced under {under}" if under else "Reproduced"
        fitted = claim.fitted or (HINDSIGHT if finding["fitted"] else "")
        because = " ".join(filter(None, (fitted, claim.cause)))
        told = f"{where}: {because}" if because else f"{where}."
    elif verdict is Verdict.CONTRADICTED:
        told = f"Contradicted by {claim.contradicted.by}: {claim.contradicted.why}"
    elif verdict is Verdict.NEEDS_FULL:
        held = kept().of(name, claim)
        told = "This size is too small to say."
        told += f" Full size: {held.told}, {held.measured}." if held else ""
    elif claim.cause:
        told = str(claim.cause)
    elif under:
        told = f"In part under {under}."
    elif verdict is Verdict.PARTLY and claim.holds.holds(finding["readings"][0]["mean"]):
        told = (
            "The mean lies within the bound, its interval does not: the result depends on the seed."
        )
    return told


def _filters(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The filters of the list: verdicts and papers."""
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


def _scorecard(paper: Mapping[str, Any], folder: Path) -> dict[str, Any] | None:
    """The scorecard of a suite that has one."""
    own = paper["anchor"].removeprefix("paper-")
    baseline = paper["sections"][0]["experiment"].paper.scorecard
    scores = [pl.DataFrame(each["score"]) for each in paper["sections"] if each["score"]]
    found = scorecard(scores, baseline) if baseline else None
    if found is None or found.is_empty():
        return None
    stem = f"{own}-scorecard"
    return {"baseline": baseline, **write_table(found, folder / stem, stem)}
