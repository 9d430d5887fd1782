"""The picture of an exploration: claims against unknowns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import polars as pl

from bluewater.plots.draw import Drawable, Picture
from bluewater.plots.files import save
from bluewater.plots.style import RC
from bluewater.study.experiments.plot import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def draw_sensitivity(
    claims: Sequence[str],
    unknowns: Sequence[str],
    shares: Sequence[Sequence[float | None]],
    stem: Path,
) -> None:
    """Draws how much of each claim's variance each unknown explains, and writes its files.

    Args:
        claims: Rows.
        unknowns: Columns.
        shares: 0 to 1 for each row and column; ``None`` if unknown.
        stem: The files' path without an ending.
    """
    grid = np.array([[np.nan if each is None else each for each in row] for row in shares])
    with mpl.rc_context(RC):
        width, height = 3.4 + 0.75 * len(unknowns), 2.0 + 0.26 * len(claims)
        figure = Picture(figsize=(max(width, 5.0), height), layout="constrained")
        figure.suptitle("What each claim depends on", x=0.01, ha="left", fontweight="bold")
        axes = figure.subplots()
        axes.grid(visible=False)
        image = axes.pcolormesh(grid, cmap="YlGnBu", vmin=0, vmax=1)
        axes.invert_yaxis()
        axes.set_yticks(np.arange(len(claims)) + 0.5, claims)
        axes.set_xticks(np.arange(len(unknowns)) + 0.5, unknowns, rotation=35, ha="right")
        for row, column in zip(*np.nonzero(grid >= 0.05), strict=True):
            share = grid[row, column]
            # Not pure white: a page replaces that by its own background.
            colour = "#fefefe" if share > 0.5 else "#101010"
            axes.text(column + 0.5, row + 0.5, f"{share:.2f}", ha="center", va="center",
                      fontsize=7, color=colour)  # fmt: skip
        figure.colorbar(image, ax=axes, label="Variance explained", shrink=0.9)
    points = pl.DataFrame(
        [
            {"x": unknown, "y": share, "line": claim}
            for claim, row in zip(claims, shares, strict=True)
            for unknown, share in zip(unknowns, row, strict=True)
        ],
        schema={"x": pl.String, "y": pl.Float64, "line": pl.String},
    )
    save(figure, [Drawable("sensitivity", points, Scale("Share"))], stem, ("svg",))
