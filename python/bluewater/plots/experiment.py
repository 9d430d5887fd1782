"""The plots of an experiment: their queries turned into panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bluewater.plots.draw import Drawable, Mark
from bluewater.results.tables import Frames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.results.tables import Tables
    from bluewater.study.claims import Claim
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
        Mark(claim.id, claim.holds.low, claim.holds.high, claim.drawn.x, claim.drawn.paper)
        for claim in claims
        if claim.plot == plot.id
        and claim.drawn is not None
        and claim.drawn.panel in ("", panel.title)
    )
