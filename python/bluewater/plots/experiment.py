"""The plots of an experiment: their queries turned into panels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bluewater.plots.draw import Drawable
from bluewater.plots.marks import Mark
from bluewater.results.tables import Frames
from bluewater.text import measured, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.results.tables import Tables
    from bluewater.study.claims import Claim, Drawn, Finding
    from bluewater.study.plot import Panel, Plot


def drawables(
    plot: Plot, tables: Tables | Frames, file: str, claims: Sequence[Claim] = ()
) -> list[Drawable]:
    """The panels of a plot with the points that their queries give, and the claims drawn there.

    Panels that have none, because a size leaves their runs out, are left out too.
    """
    own = tables if isinstance(tables, Frames) or plot.reading == "all" else tables.of(plot.reading)
    every = [
        Drawable(
            panel.title,
            own.query(panel.sql, ("x", "y"), f"plot.{plot.id}.panel.sql", file),
            panel.y or plot.y,
            _marks(plot, panel, claims),
        )
        for panel in plot.panels
    ]
    return [panel for panel in every if not panel.points.is_empty()] or every


def _marks(plot: Plot, panel: Panel, claims: Sequence[Claim]) -> tuple[Mark, ...]:
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
class Told:
    """A claim of a plot in words: what the paper says, where it holds, what was measured."""

    finding: Finding
    text: str


def told(plot: Plot, findings: Sequence[Finding]) -> list[Told]:
    """A line for each claim of a plot; what was measured is of the reading that is drawn."""
    lines = []
    for finding in findings:
        claim = finding.claim
        if claim.plot == plot.id:
            shown = next((r for r in finding.readings if r.reading == plot.reading), None)
            value = (shown or finding.readings[0]).estimate
            number = measured(value.mean, value.half_width, claim.unit) if value else "no value"
            bound = f"{claim.holds.told} {claim.unit}".rstrip()
            says = f" Paper: {claim.paper}." if claim.origin == "paper" else " Ours."
            numbers = f"Bound: {whole(bound)}. Measured: {whole(number)}."
            lines.append(Told(finding, f"{claim.text}{says} {numbers}"))
    return lines
