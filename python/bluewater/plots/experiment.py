"""The plots of an experiment: their queries turned into panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bluewater.plots.draw import Drawable
from bluewater.results.tables import Frames

if TYPE_CHECKING:
    from bluewater.results.tables import Tables
    from bluewater.study.plot import Plot


def drawables(plot: Plot, tables: Tables | Frames, file: str) -> list[Drawable]:
    """The panels of a plot with the points that their queries give.

    Panels that have none, because a size leaves their runs out, are left out too.
    """
    own = tables if isinstance(tables, Frames) or plot.reading == "all" else tables.of(plot.reading)
    every = [
        Drawable(
            panel.title,
            own.query(panel.sql, ("x", "y"), f"plot.{plot.id}.panel.sql", file),
            panel.y or plot.y,
        )
        for panel in plot.panels
    ]
    return [panel for panel in every if not panel.points.is_empty()] or every
