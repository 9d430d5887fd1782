"""The picture of delays: in the queue, from end to end, and round trips, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from bluewater.plots.draw import Drawable, draw
from bluewater.study.comparison.delays import KINDS, QUANTILES
from bluewater.study.experiments.plot import Scale

if TYPE_CHECKING:
    from bluewater.plots.draw import Picture


def drawables(delays: pl.DataFrame) -> list[Drawable]:
    """The panels: one for each measured kind of delay, with a bar per quantile, name and group.

    Args:
        delays: As :func:`bluewater.study.comparison.delays.table` gives them.
    """
    several = delays["group"].n_unique() > 1
    x = pl.format("{}: {}", "name", "group") if several else pl.col("name")
    long = delays.with_columns(x=x).unpivot(
        list(QUANTILES.values()), index=["x", "seed", "kind"], value_name="y"
    )
    words = dict(zip(QUANTILES.values(), QUANTILES, strict=True))
    long = long.with_columns(y=1e3 * pl.col("y"), line=pl.col("variable").replace_strict(words))
    return [
        Drawable(title, own.select("x", "y", "line", "seed"), Scale("Delay (ms)", low=0))
        for kind, title in KINDS.items()
        if not (own := long.filter(pl.col("kind") == kind)).is_empty()
    ]


def figure(
    title: str, delays: pl.DataFrame, size: str | None = None
) -> tuple[Picture, list[Drawable]]:
    """The picture, and its panels."""
    panels = drawables(delays)
    title = f"Delays of 50, 95 and 99 % of packets: {title}"
    made = draw(title, "bars", Scale(""), panels, len(panels), "all", size=size)
    return made, panels
