"""Writing a picture: PNG, SVG and PDF, its points as CSV, and an SVG to put into a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import matplotlib as mpl
import polars as pl

from bluewater.plots.style import GRID, INK, RC

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from bluewater.plots.draw import Drawable

_PLAIN = {
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}
"""No tool's name and no date: the same numbers give the same bytes."""


def save(figure: Figure, points: Sequence[Drawable], stem: Path) -> list[Path]:
    """Writes ``stem`` with each ending; the CSV has a row per point, named by its panel."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    written = []
    for ending, metadata in _PLAIN.items():
        path = stem.with_name(f"{stem.name}.{ending}")
        with mpl.rc_context(RC):
            figure.savefig(path, facecolor="white", metadata=metadata)
        written.append(path)
    table = stem.with_name(f"{stem.name}.csv")
    pl.concat(
        [panel.points.select(pl.lit(panel.title).alias("panel"), pl.all()) for panel in points],
        how="diagonal_relaxed",
    ).write_csv(table)
    return [*written, table]


def inline_svg(path: Path, label: str) -> str:
    """A saved SVG as an element that takes its ink, grid and background from the page around it."""
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = text.replace(INK, "var(--ink)").replace(GRID, "var(--grid)")
    text = text.replace("fill: #ffffff", "fill: none")
    for size in ("width", "height"):
        text = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", text, count=1)
    escaped = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return text.replace("<svg", f'<svg role="img" aria-label="{escaped}"', 1)
