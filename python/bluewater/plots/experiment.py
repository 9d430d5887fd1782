"""The plots of an experiment: their queries turned into panels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from bluewater.plots.draw import Drawable
from bluewater.plots.marks import Mark
from bluewater.results.tables import STANDARD, Frames
from bluewater.study.experiments.plot import Plot
from bluewater.text import whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.results.tables import Tables
    from bluewater.study.experiments.claims import Claim, Drawn, Finding
    from bluewater.study.experiments.experiment import Sheet
    from bluewater.study.experiments.plot import Panel


def drawables(
    plot: Plot, tables: Tables | Frames, file: str, claims: Sequence[Claim] = ()
) -> list[Drawable]:
    """The panels of a plot with the points of their queries, and the claims drawn there.

    Panels without points, whose runs the size leaves out, are omitted.
    """
    own = tables if isinstance(tables, Frames) or plot.reading == "all" else tables.of(plot.reading)
    every = [
        Drawable(
            panel.title,
            own.query(panel.sql, ("x", "y"), f"plot.{plot.id}.panel.sql", file),
            panel.y or plot.y,
            marks_of(plot, panel, claims),
        )
        for panel in plot.panels
    ]
    return [panel for panel in every if not panel.points.is_empty()] or every


def marks_of(plot: Plot, panel: Panel, claims: Sequence[Claim]) -> tuple[Mark, ...]:
    """The claims that are drawn in a panel."""
    return tuple(
        _mark(claim, claim.drawn)
        for claim in claims
        if claim.plot == plot.id
        and claim.drawn is not None
        and claim.drawn.panel in ("", panel.title)
    )


def _mark(claim: Claim, drawn: Drawn) -> Mark:
    return Mark(
        claim.id,
        claim.holds.low * drawn.scale,
        claim.holds.high * drawn.scale,
        drawn.x,
        drawn.paper,
        upright=drawn.axis == "x",
        of=1.0 if drawn.of is None else drawn.of,
        by=drawn.by,
    )


@dataclass(frozen=True)
class Shown:
    """A plot in one reading, with the claims that it shows.

    Attributes:
        name: The plot's name, with the reading's unless the file declares that reading.
    """

    name: str
    plot: Plot
    findings: Sequence[Finding]


def in_readings(plot: Plot, findings: Sequence[Finding]) -> list[Shown]:
    """The plot in its declared reading, and again in other readings that decide verdicts.

    The readings are as few as show every verdict.
    """
    own = [finding for finding in findings if finding.claim.plot == plot.id]
    shown = [Shown(plot.id, plot, own)]
    waiting = [each for each in own if plot.reading not in ("all", *_rests_on(each))]
    while waiting:
        most = Counter(reading for each in waiting for reading in _rests_on(each))
        [(reading, _)] = most.most_common(1)
        found = [each for each in waiting if reading in _rests_on(each)]
        title = f"{plot.title}, reading {reading}"
        again = msgspec.structs.replace(plot, reading=reading, title=title)
        shown.append(Shown(f"{plot.id}-{reading}", again, found))
        waiting = [each for each in waiting if each not in found]
    return shown


def _rests_on(finding: Finding) -> Sequence[str]:
    return finding.under or (STANDARD,)


@dataclass(frozen=True)
class Told:
    """The text of a claim below a plot or table: statement, bound, measured value."""

    finding: Finding
    text: str


def told(shown: Plot | Sheet, findings: Sequence[Finding]) -> list[Told]:
    """A line for each claim of a plot or table, with the value measured in the shown reading."""
    lines = []
    for finding in findings:
        claim = finding.claim
        if claim.plot == shown.id:
            own = next((r for r in finding.readings if r.reading == shown.reading), None)
            value = (own or finding.readings[0]).estimate
            bound = f"{claim.holds.told} {claim.unit}".rstrip()
            says = f" Paper: {claim.paper}." if claim.origin == "paper" else " Ours."
            numbers = f"Bound: {whole(bound)}. Measured: {whole(claim.shown(value))}."
            lines.append(Told(finding, f"{claim.text}{says} {numbers}{_elsewhere(shown, finding)}"))
    return lines


def _elsewhere(shown: Plot | Sheet, finding: Finding) -> str:
    """Names the reading that a verdict rests on, if another is shown."""
    if shown.reading in ("all", *_rests_on(finding)):
        return ""
    drawn = ", drawn below" if isinstance(shown, Plot) else ""
    return f" The verdict rests on the reading {_rests_on(finding)[0]}{drawn}."
