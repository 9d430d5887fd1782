"""The picture of an advice: what the candidates give against what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import polars as pl

from bluewater.plots.draw import Drawable, Picture
from bluewater.plots.files import save
from bluewater.plots.style import RC
from bluewater.study.plot import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from bluewater.study.advise import Ranked


_PANELS = (
    ("throughput", 1e-6, "Throughput of what\nalways has data (Mb/s)", "linear"),
    ("delay", 1e3, "Delay in the queue,\n99 % (ms)", "log"),
    ("jain", 1.0, "Fairness\n(Jain's index)", "linear"),
    ("loss", 100.0, "Loss of calls\nand games (%)", "linear"),
)


def figure(ranked: Sequence[Ranked], title: str) -> Figure:
    """A row a candidate, the advice on top: means with their 95 % intervals."""
    rows = range(len(ranked))
    with mpl.rc_context(RC):
        made = Picture(figsize=(9, 1.4 + 0.26 * len(ranked)), layout="constrained")
        made.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
        grid = made.subplots(1, len(_PANELS), sharey=True)
        for axes, (what, scale, label, kind) in zip(grid, _PANELS, strict=True):
            for row, each in enumerate(ranked):
                found = each.mean(what)
                x, half = found.mean * scale, (found.half_width or 0) * scale
                colour = "#0072b2" if row == 0 else "#56b4e9" if each.as_good else "#6b7280"
                low = min(half, 0.99 * x) if kind == "log" else half
                axes.errorbar(x, row, xerr=[[low], [half]], color=colour, fmt="o", markersize=4.5)
            axes.set_xscale(kind)
            axes.set_xlabel(label, fontsize=9)
        grid[0].set_yticks(list(rows), [each.name for each in ranked])
        grid[0].get_yticklabels()[0].set_fontweight("bold")
        grid[0].invert_yaxis()
    return made


def write(ranked: Sequence[Ranked], title: str, stem: Path) -> Path:
    """Writes the picture and its points; gives the PNG."""
    points = pl.DataFrame(
        [
            {"x": run.delay, "y": run.throughput, "line": each.name, "jain": run.jain,
             "loss": run.loss, "worth": run.worth}
            for each in ranked
            for run in each.runs
        ]
    )  # fmt: skip
    panel = Drawable("candidates", points, Scale("Throughput (bit/s)"))
    return save(figure(ranked, title), [panel], stem)[0]
