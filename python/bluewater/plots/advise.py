"""The picture of `advise`: throughput against delay, with fairness as the colour."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import polars as pl
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from bluewater.plots.draw import Drawable, Picture, set_scale
from bluewater.plots.files import save
from bluewater.plots.style import INK, RC
from bluewater.study.experiments.plot import Scale
from bluewater.text import percent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bluewater.study.advice.advise import Ranked

_SHORTEST = 1e-2
"""The axis of delays is logarithmic: shorter delays are drawn at this one, ms."""
_LOSES = 0.01
"""From this loss on, which costs as much as a tenth of the throughput, a marker is hollow."""
_SIZE = 7.0
"""Size of a candidate's marker, in points."""


def figure(ranked: Sequence[Ranked], title: str) -> Figure:
    """Draws a point per candidate, means with 95 % intervals; up and to the left is better.

    The ring marks the first of the table, and those as good have bold names. A hollow marker loses
    1 % of calls and games or more (without them, of the bulk flows' packets), and its name says how
    much. The table ranks by more than the two axes, so there is no line along the best points.
    """
    with mpl.rc_context(RC):
        made = Picture(figsize=(9, 6), layout="constrained")
        made.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
        axes = made.subplots()
        points = _points(ranked)
        _intervals(axes, ranked)
        least = min(0.5, *(each.means.jain for each in ranked))
        scale = Normalize(least, 1)
        made.colorbar(
            ScalarMappable(scale, "viridis"), ax=axes, label="Fairness (Jain's index)", pad=0.02
        )
        for each, point in zip(ranked, points, strict=True):
            colour = mpl.colormaps["viridis"](scale(each.means.jain))
            inside, edge, width = ("white", colour, 2) if _loses(each) else (colour, INK, 0.8)
            axes.plot(*point, "o", ms=_SIZE, mfc=inside, mec=edge, mew=width, zorder=3)
        axes.plot(
            *points[0], "o", ms=_SIZE + 7, mfc="none", mec="#b3261e", mew=1.6, zorder=4, ls="",
            label="advice; as good ones have bold names",
        )  # fmt: skip
        axes.plot([], [], "o", ms=_SIZE, mfc="white", mec=INK, mew=2, ls="",
                  label="loses 1 % or more, of calls and games if there are any")  # fmt: skip
        axes.set_xlabel("Delay in the queue, 99 %, of calls and games if there are any (ms)")
        axes.set_ylabel("Throughput of bulk flows (Mb/s)")
        delays, rates = zip(*points, strict=True)
        axes.set_xlim(min(delays) / 2, max(delays) * 2)
        set_scale(axes, "x", Scale("", "log"))
        spread = max(max(rates) - min(rates), 0.05 * max(rates))
        bottom = min(rates) - 0.15 * spread
        axes.set_ylim(bottom, max(rates) + 0.15 * spread)
        made.legend(loc="outside lower left", ncols=2, fontsize=8.5)
        _names(made, axes, ranked, points)
    return made


def _points(ranked: Sequence[Ranked]) -> list[tuple[float, float]]:
    return [
        (max(each.means.delay * 1e3, _SHORTEST), each.means.throughput * 1e-6) for each in ranked
    ]


def _loses(each: Ranked) -> bool:
    return each.means.loss >= _LOSES


def _told(each: Ranked) -> str:
    """A candidate's name, with its loss where it has some."""
    return f"{each.name}, loses {percent(each.means.loss)}" if _loses(each) else each.name


def _intervals(axes: Axes, ranked: Sequence[Ranked]) -> None:
    for each in ranked:
        delay, rate = each.mean("delay"), each.mean("throughput")
        x, low, high = (max(t * 1e3, _SHORTEST) for t in (delay.mean, delay.low, delay.high))
        axes.hlines(rate.mean * 1e-6, low, high, color="#9aa5b1", lw=0.9, zorder=1)
        axes.vlines(x, rate.low * 1e-6, rate.high * 1e-6, color="#9aa5b1", lw=0.9, zorder=1)


def _names(
    made: Figure, axes: Axes, ranked: Sequence[Ranked], points: Sequence[tuple[float, float]]
) -> None:
    """Writes a name beside each point where it covers neither another name nor a point."""
    made.draw_without_rendering()  # Only a drawn figure knows its layout.
    dot = made.dpi / 72
    places = axes.transData.transform(points)
    taken = [
        Bbox.from_bounds(x - _SIZE * dot / 2, y - _SIZE * dot / 2, _SIZE * dot, _SIZE * dot)
        for x, y in places
    ]
    inside = axes.get_window_extent()
    for n, (each, point, place) in enumerate(zip(ranked, points, places, strict=True)):
        style: dict[str, Any] = {"fontsize": 8.5, "in_layout": False, "zorder": 5}
        if n == 0 or each.as_good:
            style["fontweight"] = "bold"
        name = axes.annotate(
            _told(each), point, xytext=(0, 0), textcoords="offset points", ha="center", va="center",
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
            arrowprops={"arrowstyle": "-", "color": "#9aa5b1", "lw": 0.6, "shrinkB": 3}, **style,
        )  # fmt: skip
        size = name.get_window_extent()
        shift, box = _free(place, size.width + 2 * dot, size.height, dot, taken, inside)
        name.xyann = (shift[0] / dot, shift[1] / dot)
        taken.append(box)


def _free(
    place: Any, width: float, height: float, dot: float, taken: Sequence[Bbox], inside: Bbox
) -> tuple[tuple[float, float], Bbox]:
    """The nearest free place for a box around a point: the offset, and the box there."""
    candidates = []
    for distance in range(9, 240, 6):
        for step in (4, 12, 2, 6, 10, 14, 3, 5, 11, 13, 1, 7, 9, 15, 0, 8):  # above, below, aside
            angle = math.tau * step / 16
            right, up = math.cos(angle), math.sin(angle)
            shift = (
                right * distance * dot + right * width / 2,
                up * distance * dot + up * height / 2,
            )
            box = Bbox.from_bounds(
                place[0] + shift[0] - width / 2, place[1] + shift[1] - height / 2, width, height
            )
            if box.x0 < inside.x0 or box.x1 > inside.x1 or box.y0 < inside.y0 or box.y1 > inside.y1:
                continue
            if not any(box.overlaps(other) for other in taken):
                return shift, box
            candidates.append((shift, box))
    nowhere = (0.0, 0.0), Bbox.from_bounds(place[0], place[1], width, height)
    return candidates[0] if candidates else nowhere


def write(ranked: Sequence[Ranked], title: str, stem: Path) -> Path:
    """Writes the picture and its points; returns the path of the PNG."""
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
