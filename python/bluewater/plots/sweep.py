"""Pictures of a sweep: a metric over its cells and seeds."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Protocol

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from matplotlib.ticker import ScalarFormatter

from bluewater.errors import InputError, unknown
from bluewater.plots.draw import Drawable, Picture, legend_columns
from bluewater.plots.files import save
from bluewater.plots.style import INK, RC, Look, looks, order, shown, sized
from bluewater.results.aggregate import ends, metrics, summarise
from bluewater.results.quantities import quantity
from bluewater.study.experiments.plot import Scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Runs(Protocol):
    """Runs in cells, which can be drawn."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of its axes."""

    @property
    def units(self) -> Mapping[str, str]:
        """The units of the axes that have one."""

    @property
    def runs(self) -> pl.DataFrame:
        """The table of runs."""


def label(name: str) -> str:
    """The label of a metric or a dotted key: words, and the unit."""
    if "." not in name:
        return quantity(name).label
    table, *rest, last = name.split(".")
    if (table, last) in (("queue", "aqm"), ("traffic", "flows")) and rest == ["0"]:
        return quantity(last).label
    place = rest[0] if rest and rest[0] not in ("0", "params") else ""
    return f"{last} of {table} {place}".rstrip()


KINDS = ("lines", "heat", "box", "cdf", "ellipse")


def draw(
    sweep: Runs,
    y: str,
    x: str | None,
    line: str | Sequence[str] | None,
    kind: str,
    path: Path | None,
    size: str | None = None,
) -> Figure:
    """Draws a metric; see :meth:`bluewater.lab.Sweep.plot`."""
    if kind not in KINDS:
        raise unknown("kind of picture", kind, KINDS)
    measured = metrics(sweep.runs, sweep.axes)
    for name in (y, *([x] if kind == "ellipse" and x else [])):
        if name not in measured:
            raise unknown("metric", name, measured)
    across = None if kind == "ellipse" else _across(sweep, x, kind)
    wanted = _parted(sweep, across, (line,) if isinstance(line, str) else line)
    points = _points(sweep, (x or "delay_mean_s") if kind == "ellipse" else across, y, wanted)
    paper = sized(size)
    with mpl.rc_context(paper.rc):
        figure = Picture(figsize=_size(points, kind, paper.width), layout="constrained")
        figure.for_paper = paper.width is not None
        axes = figure.add_subplot()
        own = sweep.name not in _UNNAMED and not figure.for_paper
        axes.set_title(sweep.name if own else "")
        if points["y"].drop_nulls().is_empty():
            axes.text(0.5, 0.5, "nothing to show", transform=axes.transAxes, ha="center")
        else:
            {"lines": _lines, "heat": _heat, "box": _box, "cdf": _cdf, "ellipse": _ellipse}[kind](
                axes, points, y
            )
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(numbers := axis.get_major_formatter(), ScalarFormatter):
                numbers.set_useOffset(False)
                numbers.set_scientific(False)  # a common power of ten would overlap the title
        if kind != "heat":
            _legend(figure, axes)
    if path is not None:
        save(figure, [Drawable(label(y), points, Scale(label(y)))], path)
    return figure


_UNNAMED = ("sweep", "compare", "advise")
"""Default names, which a title leaves out."""


def _parted(sweep: Runs, across: str | None, line: Sequence[str] | None) -> tuple[str, ...]:
    """The axes with a line for each of their points; by default all that are left.

    An interval covers seeds only: runs at different points of an axis are never pooled.
    """
    there = [*sweep.axes, *(["reading"] if "reading" in sweep.runs.columns else [])]
    several = [name for name in there if sweep.runs[name].n_unique() > 1]
    for name in line or ():
        if name not in there:
            raise unknown("axis", name, there)
    left = [name for name in several if name != across and name not in (line or ())]
    if line is None:
        return tuple(left)
    if left:
        raise InputError(
            f"the lines would pool runs of several points of {', '.join(left)}",
            key="line",
            value=line[0] if len(line) == 1 else line,
            hint=f"line = {(*line, *left)!r} draws one line for each; so does leaving `line` out",
        )
    return tuple(line)


def _across(sweep: Runs, x: str | None, kind: str) -> str | None:
    if x is not None and kind == "cdf":
        raise InputError(
            "a distribution has its metric along x, and no other x",
            key="x",
            value=x,
            hint=f"line = {x!r} draws a distribution for each of its points",
        )
    if x is not None:
        if x not in sweep.axes:
            raise unknown("axis", x, sweep.axes)
        return x
    if kind in ("box", "cdf"):
        return None
    if not sweep.axes:
        raise InputError("a sweep without axes", hint='kind="box" or "cdf" shows its seeds')
    numeric = [name for name in sweep.axes if sweep.runs.schema[name].is_numeric()]
    return (numeric or list(sweep.axes))[-1]


def _points(sweep: Runs, x: str | None, y: str, line: Sequence[str]) -> pl.DataFrame:
    """The points to draw, one per run: ``x``, ``y``, ``line``, ``seed`` and its values of axes."""
    names = pl.concat_str([pl.col(name).cast(pl.String) for name in line], separator=", ")
    metric = x is not None and x not in sweep.axes
    across = pl.col(x).cast(pl.Float64) * quantity(x).factor if x and metric else pl.col(x or "")
    own = {
        "x": across if x else pl.lit(""),
        "y": pl.col(y).cast(pl.Float64) * quantity(y).factor,
        "line": names if line else pl.lit(sweep.name),
        "seed": pl.col("seed"),
        "x_name": pl.lit(_named(sweep, x or "")),
        "line_name": pl.lit(", ".join(_named(sweep, name) for name in line)),
    }
    return sweep.runs.select(**{name: pl.col(name) for name in sweep.axes} | own)


def _named(sweep: Runs, name: str) -> str:
    """The label of the picture's axis for an axis of the sweep, or for a metric."""
    return f"{label(name)} ({unit})" if (unit := sweep.units.get(name)) else label(name)


def _size(points: pl.DataFrame, kind: str, paper: float | None) -> tuple[float, float]:
    """Width and height in inches: wider for many labels along x, higher for a long legend.

    ``paper`` is the fixed width in a paper.
    """
    labels = "line" if kind == "box" and points["x"].n_unique() == 1 else "x"
    of_text = kind != "cdf" and not points.schema[labels].is_numeric()
    width = max(7.2, 0.22 * points[labels].n_unique() if of_text else 0.0)
    width = width if paper is None else paper
    rows = points["line"].n_unique() if kind == "heat" else 0
    names = points["line"].unique().to_list()
    below = 0
    if kind != "heat" and len(names) > 1:
        below = math.ceil(len(names) / legend_columns(names, width))
    height = 4.0 if paper is None else 2.4 if paper < _NARROW else 2.9
    return width, height + 0.019 * mpl.rcParams["font.size"] * (below + max(rows - 12, 0))


_NARROW = 5.0
"""A picture narrower than this, in inches, is for one column."""


def _legend(figure: Picture, axes: Axes) -> None:
    """Draws the legend below the axes, in the order of the lines."""
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1:
        columns = legend_columns(names, figure.get_figwidth())
        figure.legend(handles, names, loc="outside lower left", ncols=columns, borderaxespad=0.2)


_AMOUNT = re.compile(r"[0-9.]")
"""Labels that begin so have an order, such as 50p and 100p; names have none."""


def _ticks(axes: Axes, labels: Sequence[Any], beside: float = 0.0) -> None:
    """Sets the labels along x, upright if they would overlap."""
    names = [str(each) for each in labels]
    figure = axes.get_figure(root=True)
    assert figure is not None
    room = 11 * figure.get_figwidth() * RC["font.size"] / mpl.rcParams["font.size"]
    upright = sum(map(len, names)) + 2 * len(names) > room
    places = [place + beside for place in range(len(names))]
    axes.set_xticks(places, names, rotation=90 if upright else 0)


def _by_line(points: pl.DataFrame) -> list[tuple[str, Look, pl.DataFrame]]:
    names = sorted(points["line"].unique().to_list(), key=order)
    return [
        (name, look, points.filter(pl.col("line") == name)) for name, look in looks(names).items()
    ]


def _lines(axes: Axes, points: pl.DataFrame, y: str) -> None:
    labels = points["x"].unique(maintain_order=True).to_list()
    numeric = points.schema["x"].is_numeric()
    joined = numeric or all(_AMOUNT.match(each) for each in labels)
    for name, look, own in _by_line(points):
        over = summarise(own, ["x"], ["y"])
        if numeric:
            over = over.sort("x")
        place = over["x"].to_numpy() if numeric else [labels.index(each) for each in over["x"]]
        mean = over["mean"].to_numpy()
        axes.plot(
            place, mean, color=look.colour, marker=look.marker, label=shown(name),
            linestyle=look.dash if joined else "none",
        )  # fmt: skip
        # The column is called y, but the range is that of its metric.
        least, most = (quantity(y).factor * end for end in ends(y))
        low, high = (
            over.select(pl.col("low", "high").cast(pl.Float64)).to_numpy().clip(least, most).T
        )
        if not np.isnan(low).all() and joined:
            axes.fill_between(place, low, high, color=look.colour, alpha=0.18, linewidth=0)
        elif not np.isnan(low).all():
            axes.vlines(place, low, high, color=look.colour, linewidth=1)
    if not numeric:
        _ticks(axes, labels)
    axes.set_xlabel(points["x_name"][0])
    several = points["seed"].n_unique() > 1
    axes.set_ylabel(f"{label(y)},\nmean and 95 % interval" if several else label(y))


def _heat(axes: Axes, points: pl.DataFrame, y: str) -> None:
    columns = points["x"].unique(maintain_order=True).to_list()
    rows = points["line"].unique(maintain_order=True).to_list()
    means = {
        (line, x): value
        for line, x, value in points.group_by("line", "x").agg(pl.col("y").mean()).iter_rows()
    }
    grid = np.array([[means.get((row, column), np.nan) for column in columns] for row in rows])
    # Not as an image, so that it stays sharp in PDF and PGF.
    image = axes.pcolormesh(grid, cmap="cividis")
    axes.invert_yaxis()
    _ticks(axes, columns, 0.5)
    axes.set_yticks([place + 0.5 for place in range(len(rows))], [str(each) for each in rows])
    axes.set_xlabel(points["x_name"][0])
    axes.set_ylabel(points["line_name"][0])
    axes.grid(visible=False)
    axes.figure.colorbar(image, ax=axes, label=label(y))


def _box(axes: Axes, points: pl.DataFrame, y: str) -> None:
    """Draws a box for each line, at each point of x if there is an x."""
    parts = _by_line(points)
    along = points["x"].unique(maintain_order=True).to_list()
    width = 0.8 / len(parts)
    for place, (name, look, own) in enumerate(parts):
        left = (place - (len(parts) - 1) / 2) * width if len(along) > 1 else place
        drawn: dict[str, Any] = axes.boxplot(
            [own.filter(pl.col("x") == x)["y"].drop_nulls().to_numpy() for x in along],
            positions=[at + left for at in range(len(along))],
            widths=0.8 * width if len(along) > 1 else 0.5,
            patch_artist=True,
            medianprops={"color": "black"},
            manage_ticks=False,
        )
        for box in drawn["boxes"]:
            box.set(facecolor=look.colour, alpha=0.5)
        if len(along) > 1:
            drawn["boxes"][0].set_label(shown(name))
    if len(along) > 1:
        _ticks(axes, along)
        axes.set_xlabel(points["x_name"][0])
    else:
        _ticks(axes, [name for name, _, _ in parts])
        axes.set_xlabel(points["line_name"][0])
    axes.set_ylabel(label(y))


def _cdf(axes: Axes, points: pl.DataFrame, y: str) -> None:
    for place, (name, look, own) in enumerate(_by_line(points)):
        values = np.sort(own["y"].drop_nulls().to_numpy())
        share = np.arange(len(values) + 1) / max(len(values), 1)
        values = np.concatenate([values[:1], values])
        every = max(1, len(values) // 4)
        axes.step(
            values, share, where="post", color=look.colour, linestyle=look.dash, label=shown(name),
            marker=look.marker, markevery=(place % every, every),
        )  # fmt: skip
    axes.set_xlabel(label(y))
    axes.set_ylabel("Share of runs")
    axes.set_ylim(0, 1)


_LEVEL = 0.95


def _ellipse(axes: Axes, points: pl.DataFrame, y: str) -> None:
    """Draws each line's runs, their mean, and the mean's 95 % confidence region."""
    shown_region = False
    for name, look, own in _by_line(points.drop_nulls(["x", "y"])):
        place = own.select(pl.col("x").cast(pl.Float64), "y").to_numpy()
        centre = place.mean(axis=0)
        axes.plot(*place.T, color=look.colour, marker=".", linestyle="none", alpha=0.6)
        axes.plot(
            *centre, color=look.colour, marker=look.marker, linestyle="none", label=shown(name),
            markeredgecolor=INK, markeredgewidth=0.5,
        )  # fmt: skip
        if len(place) > 2:
            shown_region = True
            axes.add_patch(_region(place, look))
    axes.autoscale_view()
    axes.set_xlabel(points["x_name"][0])
    axes.set_ylabel(label(y))
    if shown_region:
        mean = Line2D([], [], color=INK, marker="o", linestyle="none", markersize=4)
        both = Ellipse((0, 0), 1, 1, facecolor="none", edgecolor=INK, linewidth=0.8)
        axes.legend(
            [mean, both], ["mean of the runs", "95 % confidence region of the mean"],
            loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2,
        )  # fmt: skip


def _region(runs: Any, look: Look) -> Ellipse:
    """The 95 % confidence ellipse of the mean of these runs, by Hotelling's T²."""
    count = len(runs)
    # (n − 1)/(n − 2)/n · 2 F(2, n − 2); with two degrees of freedom F's quantile is a power.
    scale = (count - 1) / count * ((1 - _LEVEL) ** (-2 / (count - 2)) - 1)
    values, vectors = np.linalg.eigh(np.cov(runs.T))
    small, large = 2 * np.sqrt(scale * np.clip(values, 0, None))
    angle = np.degrees(np.arctan2(*vectors[:, -1][::-1]))
    return Ellipse(
        tuple(runs.mean(axis=0)), large, small, angle=angle, facecolor=look.colour, alpha=0.25,
        edgecolor=look.colour,
    )  # fmt: skip
