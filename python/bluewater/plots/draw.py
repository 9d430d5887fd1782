"""Drawing a plot: panels of lines, traces or bars, with one legend for all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import msgspec
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from bluewater.plots.style import RC, Look, look, order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from bluewater.study.plot import Scale, Sharing

_PANEL = {1: (7.2, 3.6), 2: (5.0, 3.3), 3: (3.7, 3.0), 4: (3.0, 2.8)}
"""Width and height in inches of a panel, by how many are in a row."""

MAX_TRACE = 1500
"""Points of a trace that are drawn; longer ones are thinned to the extremes of each stretch."""


@dataclass(frozen=True)
class Drawable:
    """A panel with its points: columns ``x``, ``y`` and, if any, ``line`` and ``seed``."""

    title: str
    points: pl.DataFrame
    y: Scale


def draw(
    title: str, kind: str, x: Scale, panels: Sequence[Drawable], columns: int, share_y: Sharing
) -> Figure:
    """Draws a figure.

    Args:
        title: Its title; what was run is said in the caption.
        kind: ``spread``, ``trace``, ``scatter`` or ``bars``.
        x: The axis that all panels share.
        panels: In reading order.
        columns: Panels in a row.
        share_y: Which panels have the same y axis: ``all``, ``row`` or ``none``.
    """
    rows = math.ceil(len(panels) / columns)
    width, height = _PANEL[min(columns, 4)]
    names = _lines(panels)
    if kind == "bars":
        most = max((panel.points["x"].n_unique() for panel in panels), default=0)
        height = max(height, 0.9 + 0.13 * most * (len(names) + 0.5))
    looks = {name: look(name, position) for position, name in enumerate(names)}
    with mpl.rc_context(RC):
        figure = Figure(figsize=(width * columns, height * rows + 0.5), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
        grid = figure.subplots(
            rows, columns, squeeze=False, sharex="none" if kind == "bars" else "all", sharey=share_y
        )
        every = list(grid.flat)
        for place, (axes, panel) in enumerate(zip(every, panels, strict=False)):
            lowest = place + columns >= len(panels)
            _panel(axes, panel, kind, x if lowest else msgspec.structs.replace(x, label=""), looks)
            if lowest:  # also where the row below is not full
                axes.tick_params(labelbottom=True)
        # Limits last: one that is set on a shared axis stops the others from widening it.
        for axes, panel in zip(every, panels, strict=False):
            if kind == "bars":
                _limit(axes, "x", panel.y)
            else:
                _limit(axes, "x", x)
                _limit(axes, "y", panel.y)
        for axes in every[len(panels) :]:
            axes.remove()
        _legend(figure, every[: len(panels)], len(names))
        # Laid out once: every format that is written later takes the places as they are. With an
        # engine, even one that does nothing, each of them would first be drawn for its layout.
        engine = figure.get_layout_engine()
        assert engine is not None
        engine.execute(figure)
        figure.set_layout_engine(None)
    return figure


def _lines(panels: Sequence[Drawable]) -> list[str]:
    names: dict[str, None] = {}
    for panel in panels:
        if "line" in panel.points.columns:
            names.update(dict.fromkeys(sorted(panel.points["line"].unique().cast(pl.String))))
    return sorted(names, key=order)


def _panel(axes: Axes, panel: Drawable, kind: str, x: Scale, looks: dict[str, Look]) -> None:
    axes.set_title(panel.title)
    axes.set_xlabel(x.label)
    axes.set_ylabel(panel.y.label)
    points = panel.points.drop_nulls(["x", "y"])
    if points.is_empty():
        axes.text(0.5, 0.5, "nothing to show", transform=axes.transAxes, ha="center")
    elif kind == "bars":
        _bars(axes, points, looks)
    else:
        drawer = _LINES[kind]
        for name, own in _by_line(points):
            drawer(axes, own, name, looks.get(name, look(name, 0)))
    if kind == "bars":
        _scale(axes, "x", panel.y)
    else:
        _scale(axes, "x", x)
        _scale(axes, "y", panel.y)


def _by_line(points: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    if "line" not in points.columns:
        return [("", points)]
    parts = points.with_columns(pl.col("line").cast(pl.String)).partition_by("line", as_dict=True)
    return sorted(((str(name[0]), part) for name, part in parts.items()), key=lambda p: order(p[0]))


def _over_seeds(points: pl.DataFrame) -> pl.DataFrame:
    y = pl.col("y")
    return points.group_by("x", maintain_order=True).agg(mean=y.mean(), low=y.min(), high=y.max())


def _spread(axes: Axes, points: pl.DataFrame, name: str, style: Look) -> None:
    over = _over_seeds(points).sort("x")
    x = over["x"].to_numpy()
    axes.fill_between(x, over["low"].to_numpy(), over["high"].to_numpy(), color=style.colour,
                      alpha=0.18, linewidth=0)  # fmt: skip
    axes.plot(x, over["mean"].to_numpy(), color=style.colour, marker=style.marker, label=name)


def _trace(axes: Axes, points: pl.DataFrame, name: str, style: Look) -> None:
    thin = _thin(_first_seed(points).sort("x"))
    axes.plot(thin["x"].to_numpy(), thin["y"].to_numpy(), color=style.colour, linewidth=0.7,
              label=name)  # fmt: skip


def _scatter(axes: Axes, points: pl.DataFrame, name: str, style: Look) -> None:
    own = _first_seed(points)
    axes.plot(own["x"].to_numpy(), own["y"].to_numpy(), color=style.colour, linestyle="none",
              marker="o", markersize=3.2, label=name)  # fmt: skip


_LINES = {"spread": _spread, "trace": _trace, "scatter": _scatter}


def _first_seed(points: pl.DataFrame) -> pl.DataFrame:
    if "seed" not in points.columns:
        return points
    return points.filter(pl.col("seed") == points["seed"].min())


def _thin(points: pl.DataFrame) -> pl.DataFrame:
    """Keeps the least and the greatest of each stretch, so that no spike is lost."""
    stretch = max(1, math.ceil(2 * points.height / MAX_TRACE))
    if stretch == 1:
        return points
    return (
        points.with_row_index("row")
        .with_columns(part=pl.col("row") // stretch)
        .filter(
            (pl.col("y") == pl.col("y").max().over("part"))
            | (pl.col("y") == pl.col("y").min().over("part"))
        )
        .unique(subset=["part", "y"], keep="first", maintain_order=True)
    )


def _bars(axes: Axes, points: pl.DataFrame, looks: dict[str, Look]) -> None:
    groups = points["x"].unique(maintain_order=True).to_list()
    lines = _by_line(points)
    width = 0.8 / len(lines)
    for position, (name, own) in enumerate(lines):
        style = looks.get(name, look(name, position))
        over = _over_seeds(own)
        mean = over["mean"].to_numpy()
        axes.barh(
            [
                groups.index(group) + (position - (len(lines) - 1) / 2) * width
                for group in over["x"]
            ],
            mean,
            height=width * 0.9,
            # Of equal values the mean may lie beside them by rounding.
            xerr=[
                (mean - over["low"].to_numpy()).clip(0),
                (over["high"].to_numpy() - mean).clip(0),
            ],
            color=style.colour,
            ecolor=RC["text.color"],
            error_kw={"elinewidth": 0.9},
            label=name,
        )
    axes.set_yticks(range(len(groups)), [str(group) for group in groups])
    axes.margins(y=0.4 / len(groups))
    if not axes.yaxis_inverted():  # panels that share it have turned it already
        axes.invert_yaxis()
    axes.set_xlabel(axes.get_ylabel())
    axes.set_ylabel("")


def _scale(axes: Axes, which: str, scale: Scale) -> None:
    options: dict[str, Any] = {}
    if scale.scale == "symlog":
        options = {"linthresh": scale.linear_below, "linscale": 0.6}
    getattr(axes, f"set_{which}scale")(scale.scale, **options)
    axis = getattr(axes, f"{which}axis")
    if scale.scale == "log":
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_formatter(NullFormatter())
    if scale.scale != "linear":
        axis.set_major_formatter(FormatStrFormatter("%g"))


def _limit(axes: Axes, which: str, scale: Scale) -> None:
    if scale.low is not None or scale.high is not None:
        getattr(axes, f"set_{which}lim")(scale.low, scale.high)


def _legend(figure: Figure, every: Sequence[Axes], count: int) -> None:
    if count <= 1:
        return
    handles: dict[str, Any] = {}
    for axes in every:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    ordered = sorted(handles, key=order)
    figure.legend(
        handles=[handles[name] for name in ordered], loc="outside right upper", borderaxespad=0.2
    )
