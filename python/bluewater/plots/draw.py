"""Drawing a plot: panels of lines, traces or bars, with one legend for all."""

from __future__ import annotations

import dataclasses
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import msgspec
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from bluewater.plots.style import INK, RC, Look, look, order
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from bluewater.study.plot import Scale, Sharing

_PANEL = {1: (7.2, 3.6), 2: (5.0, 3.3), 3: (3.7, 3.0), 4: (3.0, 2.8)}
"""Width and height in inches of a panel, by how many are in a row."""

MAX_LABELLED = 60
"""Bars of a panel that have their value beside them; more would not be read."""

MAX_TRACE = 800
"""Points of a trace that are drawn; longer ones are thinned to the extremes of each stretch."""


class Picture(Figure):
    """A figure that a notebook shows where it is the value of a cell."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


@dataclass(frozen=True)
class Mark:
    """A claim on the y axis: where its value has to lie, and the paper's number.

    Attributes:
        name: That of the claim.
        low: The lower end of its bound, or minus infinity.
        high: The upper end, or infinity.
        x: Where on the x axis, if not everywhere.
        paper: The paper's number.
    """

    name: str
    low: float
    high: float
    x: float | str | None = None
    paper: float | None = None


@dataclass(frozen=True)
class Drawable:
    """A panel with its points: columns ``x``, ``y`` and, if any, ``line`` and ``seed``.

    ``groups`` are those of its bars, in the order of their axis.
    """

    title: str
    points: pl.DataFrame
    y: Scale
    marks: tuple[Mark, ...] = ()
    groups: tuple[Any, ...] = ()


def draw(
    title: str,
    kind: str,
    x: Scale,
    panels: Sequence[Drawable | None],
    columns: int,
    share_y: Sharing,
) -> Figure:
    """Draws a figure.

    Args:
        title: Its title; what was run is said in the caption.
        kind: ``spread``, ``trace``, ``scatter`` or ``bars``.
        x: The axis that all panels share.
        panels: In reading order; ``None`` leaves a place empty.
        columns: Panels in a row.
        share_y: Which panels have the same y axis: ``all``, ``row`` or ``none``.
    """
    rows = math.ceil(len(panels) / columns)
    width, height = _PANEL[min(columns, 4)]
    made = [panel for panel in panels if panel is not None]
    panels = [panel and _without_hidden(panel, made, share_y) for panel in panels]
    if kind == "bars":
        panels = _with_groups(panels, columns, share_y)
    made = [panel for panel in panels if panel is not None]
    names = _lines(made)
    if kind == "bars":
        most = max((len(panel.groups) for panel in made), default=0)
        height = max(height, 0.9 + 0.13 * most * (len(names) + 0.5))
    looks = {name: look(name, position) for position, name in enumerate(names)}
    with mpl.rc_context(RC):
        figure = Picture(figsize=(width * columns, height * rows + 0.5), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
        grid = figure.subplots(
            rows, columns, squeeze=False, sharex="none" if kind == "bars" else "all", sharey=share_y
        )
        every = list(grid.flat)
        for axes in every[len(panels) :]:
            axes.remove()
        drawn: list[tuple[Axes, Drawable]] = []
        for place, (axes, panel) in enumerate(zip(every, panels, strict=False)):
            if panel is None:
                axes.remove()
                continue
            drawn.append((axes, panel))
            below = panels[place + columns] if place + columns < len(panels) else None
            lowest = below is None
            _panel(axes, panel, kind, x if lowest else msgspec.structs.replace(x, label=""), looks)
            if lowest:  # also where the row below is not full
                axes.tick_params(labelbottom=True)
            for mark in panel.marks:
                _mark(axes, mark, panel, kind)
        # Limits last: one that is set on a shared axis stops the others from widening it.
        for axes, panel in drawn:
            if kind == "bars":
                _limit(axes, "x", panel.y)
            else:
                _limit(axes, "x", x)
                _limit(axes, "y", panel.y)
        _legend(figure, [axes for axes, _ in drawn], len(names))
        # Laid out once: every format that is written later takes the places as they are. With an
        # engine, even one that does nothing, each of them would first be drawn for its layout.
        engine = figure.get_layout_engine()
        assert engine is not None
        engine.execute(figure)
        figure.set_layout_engine(None)
    return figure


def _without_hidden(panel: Drawable, made: Sequence[Drawable], share_y: Sharing) -> Drawable:
    """The panel with an axis that shows all of its points: a logarithmic one has no place for 0."""
    if panel.y.scale != "log":
        return panel
    shared = [panel] if share_y == "none" else [each for each in made if each.y.scale == "log"]
    values = pl.concat([each.points["y"].cast(pl.Float64).drop_nulls() for each in shared])
    if values.is_empty() or float(values.min() or 0) > 0:  # type: ignore[arg-type]
        return panel
    least = values.filter(values > 0).min()
    scale = msgspec.structs.replace(
        panel.y,
        scale="symlog",
        low=0,
        linear_below=float(least or 1),  # type: ignore[arg-type]
    )
    return dataclasses.replace(panel, y=scale)


def _with_groups(
    panels: Sequence[Drawable | None], columns: int, share_y: Sharing
) -> list[Drawable | None]:
    """The panels with their groups of bars: panels with one axis have the same."""
    size = {"all": max(len(panels), 1), "row": columns, "none": 1}[share_y]
    grouped: list[Drawable | None] = []
    for first in range(0, len(panels), size):
        peers = panels[first : first + size]
        points = [each.points.drop_nulls(["x", "y"]) for each in peers if each]
        groups = dict.fromkeys(x for each in points for x in each["x"])
        grouped += [each and dataclasses.replace(each, groups=tuple(groups)) for each in peers]
    return grouped


def _mark(axes: Axes, mark: Mark, panel: Drawable, kind: str) -> None:
    """Draws where a claim holds, dashed or an arrow, and the paper's number, dotted or a star."""
    ends = [end for end in (mark.low, mark.high) if math.isfinite(end)]
    if mark.x is None:
        _everywhere(axes, mark, ends, kind == "bars")
    elif (place := _place(panel, mark.x, kind)) is not None:
        _there(axes, mark, ends, place, kind == "bars")


def _place(panel: Drawable, x: float | str, kind: str) -> float | None:
    """Where an x is on its axis; of bars just below, where they hide nothing."""
    if kind != "bars":
        return float(x)
    labels = [str(each) for each in panel.groups]
    return labels.index(str(x)) + 0.5 if str(x) in labels else None


def _everywhere(axes: Axes, mark: Mark, ends: Sequence[float], lying: bool) -> None:
    ink: Any = {"color": INK, "linewidth": 1.0, "alpha": 0.75, "zorder": 3}
    line = axes.axvline if lying else axes.axhline
    for end in ends:
        line(end, linestyle=(0, (5, 3)), **ink)
    if mark.paper is not None:
        line(mark.paper, linestyle=(0, (1, 2)), **ink)
    values = [*ends, *([] if mark.paper is None else [mark.paper])]
    for value in values[:1]:
        if lying:
            axes.text(value, 1.0, f"({mark.name})", fontsize=7, va="bottom",
                      transform=axes.get_xaxis_transform())  # fmt: skip
        else:
            axes.text(1.0, value, f"({mark.name})", fontsize=7, ha="right", va="bottom",
                      transform=axes.get_yaxis_transform())  # fmt: skip


def _there(axes: Axes, mark: Mark, ends: Sequence[float], place: float, lying: bool) -> None:
    """At one x: arrows from the ends of the bound towards where it holds."""
    arrows = {mark.low: ">" if lying else "^", mark.high: "<" if lying else "v"}
    shown = {end: arrows[end] for end in ends}
    if mark.paper is not None:
        shown[mark.paper] = "*"
    for value, marker in shown.items():
        at = (value, place) if lying else (place, value)
        axes.plot(*at, marker=marker, markersize=8 if marker == "*" else 5, color=INK, zorder=4)
    last = max(shown)
    axes.annotate(f"({mark.name})", (last, place) if lying else (place, last), xytext=(5, 0),
                  textcoords="offset points", fontsize=7, va="center")  # fmt: skip


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
        _bars(axes, points, panel.groups, looks)
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


def _bars(axes: Axes, points: pl.DataFrame, groups: Sequence[Any], looks: dict[str, Look]) -> None:
    lines = _by_line(points)
    width = 0.8 / len(lines)
    for position, (name, own) in enumerate(lines):
        style = looks.get(name, look(name, position))
        over = _over_seeds(own)
        mean = over["mean"].to_numpy()
        drawn = axes.barh(
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
        if len(groups) * len(lines) <= MAX_LABELLED:
            labels = [number(value) for value in mean]
            axes.bar_label(drawn, labels, padding=3, fontsize=7)
    axes.set_yticks(range(len(groups)), [str(group) for group in groups])
    axes.margins(x=0.12, y=0.4 / len(groups))
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
    # Below, where it takes no width: on a phone there is none to spare.
    width = figure.get_figwidth()
    longest = max(len(name) for name in ordered)
    columns = max(1, min(count, int(width / (0.5 + 0.085 * longest))))
    figure.legend(
        handles=[handles[name] for name in ordered],
        loc="outside lower left",
        ncols=columns,
        borderaxespad=0.2,
    )
