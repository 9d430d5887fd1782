"""Pictures of a sweep: what was measured over its cells and seeds."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Protocol

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.patches import Ellipse
from matplotlib.ticker import ScalarFormatter

from bluewater import _core
from bluewater.errors import InputError, unknown
from bluewater.plots.draw import Drawable, Picture, legend_columns
from bluewater.plots.files import save
from bluewater.plots.style import RC, Look, looks, order, shown
from bluewater.results.aggregate import ends, metrics, summarise
from bluewater.study.plot import Scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Runs(Protocol):
    """What is drawn: runs in cells."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of its axes."""

    @property
    def units(self) -> Mapping[str, str]:
        """The units of those that have one."""

    @property
    def runs(self) -> pl.DataFrame:
        """A row a run."""


_UNITS = {
    name: column["unit"]
    for table in _core.tables()
    for column in table["columns"]
    for name in column["names"]
}

_WORDS = {
    "p50": "50th percentile of", "p95": "95th percentile of", "p99": "99th percentile of",
    "mean": "mean", "max": "greatest",
}  # fmt: skip
"""Parts of the names of columns that stand behind what they are of."""


_SUFFIXES = {"packets": "packets", "bytes": "bytes", "s": "s", "bps": "bit/s"}
_OWN_WORDS = {"aqm": "Discipline", "jain": "Jain's index (1/n … 1)", "srtt_s": "Smoothed RTT (s)"}


def label(name: str) -> str:
    """What an axis says of a metric or of a dotted key: words, and the unit."""
    if name in _OWN_WORDS:
        return _OWN_WORDS[name]
    if "." in name:
        table, *rest, last = name.split(".")
        if (table, last) == ("queue", "aqm") and rest == ["0"]:
            return _OWN_WORDS[last]
        place = rest[0] if rest and rest[0] not in ("0", "params") else ""
        return f"{last} of {table} {place}".rstrip()
    words, _, suffix = name.rpartition("_")
    unit = _SUFFIXES.get(suffix) if words else None
    if unit is None:
        words, unit = name, _UNITS.get(name, "")
    thing, _, last = words.rpartition("_")
    words = f"{_WORDS[last]} {thing}" if thing and last in _WORDS else words
    words = words.replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}" + (f" ({unit})" if unit else "")


KINDS = ("lines", "heat", "box", "cdf", "ellipse")


def draw(
    sweep: Runs,
    y: str,
    x: str | None,
    line: str | Sequence[str] | None,
    kind: str,
    path: Path | None,
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
    with mpl.rc_context(RC):
        figure = Picture(figsize=_size(points, kind), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title("" if sweep.name == "sweep" else sweep.name)
        {"lines": _lines, "heat": _heat, "box": _box, "cdf": _cdf, "ellipse": _ellipse}[kind](
            axes, points, y
        )
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(numbers := axis.get_major_formatter(), ScalarFormatter):
                numbers.set_useOffset(False)
        if kind != "heat":
            _legend(figure, axes)
    if path is not None:
        save(figure, [Drawable(y, points, Scale(y))], path)
    return figure


def _parted(sweep: Runs, across: str | None, line: Sequence[str] | None) -> tuple[str, ...]:
    """The axes that have a line for each of their points, all that are left if none were named.

    An interval is one over seeds: what was measured at other points of an axis is not pooled.
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
            f"runs of several points of {', '.join(left)} would be thrown together",
            key="line",
            value=line[0] if len(line) == 1 else line,
            hint=f"line = {(*line, *left)!r} draws one for each; without it all of them are parted",
        )
    return tuple(line)


def _across(sweep: Runs, x: str | None, kind: str) -> str | None:
    if x is not None and kind == "cdf":
        raise InputError(
            "a distribution has its metric along x",
            key="x",
            value=x,
            hint=f"line = {x!r} draws one for each of its points",
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
    """A row a run: ``x``, ``y``, ``line`` and ``seed``, and where it lies."""
    names = pl.concat_str([pl.col(name).cast(pl.String) for name in line], separator=", ")
    own = {
        "x": pl.col(x) if x else pl.lit(""),
        "y": pl.col(y).cast(pl.Float64),
        "line": names if line else pl.lit(sweep.name),
        "seed": pl.col("seed"),
        "x_name": pl.lit(_named(sweep, x or "")),
        "line_name": pl.lit(", ".join(_named(sweep, name) for name in line)),
    }
    return sweep.runs.select(**{name: pl.col(name) for name in sweep.axes} | own)


def _named(sweep: Runs, name: str) -> str:
    """What an axis of the picture says of an axis of the sweep, or of a metric."""
    return f"{label(name)} ({unit})" if (unit := sweep.units.get(name)) else label(name)


def _size(points: pl.DataFrame, kind: str) -> tuple[float, float]:
    """In inches: wider for many labels along x, higher for a legend of many lines below."""
    labels = "line" if kind == "box" and points["x"].n_unique() == 1 else "x"
    of_text = kind != "cdf" and not points.schema[labels].is_numeric()
    width = max(7.2, 0.22 * points[labels].n_unique() if of_text else 0.0)
    rows = points["line"].n_unique() if kind == "heat" else 0
    names = points["line"].unique().to_list()
    below = 0
    if kind != "heat" and len(names) > _MOST_INSIDE:
        below = math.ceil(len(names) / legend_columns(names, width))
    return width, 4.2 + 0.19 * (below + max(rows - 12, 0))


_MOST_INSIDE = 8
"""Lines whose names stand in the picture; those of more stand below it."""


def _legend(figure: Picture, axes: Axes) -> None:
    _, names = axes.get_legend_handles_labels()
    if 1 < len(names) <= _MOST_INSIDE:
        axes.legend()
    elif names[1:]:
        columns = legend_columns(names, figure.get_figwidth())
        figure.legend(loc="outside lower left", ncols=columns, borderaxespad=0.2)


_AMOUNT = re.compile(r"[0-9.]")
"""How labels begin that have an order, as 50p and 100p; names of things have none."""


def _ticks(axes: Axes, labels: Sequence[Any]) -> None:
    """Labels along x, upright where they would stand on each other."""
    names = [str(each) for each in labels]
    upright = sum(map(len, names)) + 2 * len(names) > 80
    axes.set_xticks(range(len(names)), names, rotation=90 if upright else 0)


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
        # The values are called y here: where they end is what their metric says.
        low, high = over.select(pl.col("low", "high").cast(pl.Float64)).to_numpy().clip(*ends(y)).T
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
    image = axes.imshow(grid, aspect="auto", cmap="cividis")
    _ticks(axes, columns)
    axes.set_yticks(range(len(rows)), [str(each) for each in rows])
    axes.set_xlabel(points["x_name"][0])
    axes.set_ylabel(points["line_name"][0])
    axes.grid(visible=False)
    axes.figure.colorbar(image, ax=axes, label=label(y))


def _box(axes: Axes, points: pl.DataFrame, y: str) -> None:
    """A box for each line, at each point of x if there is one."""
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
    for name, look, own in _by_line(points):
        values = np.sort(own["y"].drop_nulls().to_numpy())
        share = np.arange(len(values) + 1) / max(len(values), 1)
        values = np.concatenate([values[:1], values])
        axes.step(
            values, share, where="post", color=look.colour, linestyle=look.dash, label=shown(name)
        )
    axes.set_xlabel(label(y))
    axes.set_ylabel("Share of runs")
    axes.set_ylim(0, 1)


def _ellipse(axes: Axes, points: pl.DataFrame, y: str) -> None:
    """Each line's runs, their mean, and the ellipse of one standard deviation."""
    for name, look, own in _by_line(points.drop_nulls(["x", "y"])):
        place = own.select(pl.col("x").cast(pl.Float64), "y").to_numpy()
        centre = place.mean(axis=0)
        axes.plot(
            *centre, color=look.colour, marker=look.marker, linestyle="none", label=shown(name)
        )
        if len(place) > 2:
            values, vectors = np.linalg.eigh(np.cov(place.T))
            angle = np.degrees(np.arctan2(*vectors[:, -1][::-1]))
            small, large = 2 * np.sqrt(np.clip(values, 0, None))
            axes.add_patch(
                Ellipse(
                    tuple(centre),
                    large,
                    small,
                    angle=angle,
                    facecolor=look.colour,
                    alpha=0.25,
                    edgecolor=look.colour,
                )
            )
    axes.autoscale_view()
    axes.set_xlabel(points["x_name"][0])
    axes.set_ylabel(label(y))
