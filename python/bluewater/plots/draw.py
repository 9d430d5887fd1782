"""Drawing a plot: panels of lines, traces or bars, with one legend for all."""

from __future__ import annotations

import dataclasses
import io
import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import msgspec
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import (
    EngFormatter,
    FormatStrFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
)

from bluewater.plots import marks
from bluewater.plots import names as naming
from bluewater.plots.style import MARKERS, RC, Look, looks, order, shown, sized
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from bluewater.study.experiments.plot import Scale, Sharing

_PANEL = {1: (5.6, 3.6), 2: (5.0, 3.3), 3: (3.7, 3.0), 4: (3.0, 2.8)}
"""Width and height in inches of a panel, by how many are in a row."""
_BARS = 7.2
"""Width of a panel of bars that is alone in its row, with names beside the bars."""

_HIGHEST = {"column": 4.0, "page": 8.8}
"""Greatest height in inches of a picture in a paper, unless its rows would be too low to read."""

_LOWEST = 1.2
"""Least height in inches of a panel in a paper."""

_LARGE = 1e5
"""Larger numbers of an axis are written as 10M: a common power of ten would cover the title."""

_MARKED = 6
"""Number of markers on a trace that shares its picture."""

_FOOT = 8.5
"""Size of the lines below a picture, in points."""
_LETTER = 0.57
"""Mean width of a letter, by the font's size; bold letters are a seventh wider."""

MAX_TRACE = 800
"""Most points drawn of a trace; longer ones keep the extremes of each stretch."""


@dataclass(frozen=True)
class Parts:
    """The parts of a picture, for a page that is too narrow to show it whole.

    Attributes:
        panels: The axes of each panel.
        keys: The name of each line, and its colour, if there is a legend.
        foot: Height of the lines below the picture, in points.
    """

    panels: Sequence[Axes]
    keys: Sequence[tuple[str, str]]
    foot: float

    @property
    def boxes(self) -> list[tuple[float, float, float, float]]:
        """Left, upper end, width and height of each panel with its labels, in points."""
        return [_box(axes) for axes in self.panels]


class Picture(Figure):
    """A figure that a notebook shows if it is the value of a cell."""

    parts: Parts
    for_paper: bool = False

    @property
    def fits(self) -> bool:
        """Whether a paper's page has room for it, with the lines below it."""
        return not self.for_paper or self.get_figheight() <= _HIGHEST["page"] + 0.4

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


@dataclass(frozen=True)
class Drawable:
    """A panel with its points: columns ``x``, ``y`` and, if there are, ``line`` and ``seed``.

    A trace has a gap where ``y`` is null.

    ``groups`` names its groups of bars in the axis' order; ``brief`` is its y label for a narrow
    picture; ``shades`` are ranges of x with the colour behind them.
    """

    title: str
    points: pl.DataFrame
    y: Scale
    marks: tuple[marks.Mark, ...] = ()
    groups: tuple[Any, ...] = ()
    brief: str = ""
    shades: tuple[tuple[float, float, str], ...] = ()


def draw(
    title: str,
    kind: str,
    x: Scale,
    panels: Sequence[Drawable | None],
    columns: int,
    share_y: Sharing,
    told: Sequence[str] = (),
    size: str | None = None,
    narrow: int = 1,
) -> Picture:
    """Draws a figure.

    Args:
        title: Its title; the caption describes the runs.
        kind: ``spread``, ``trace``, ``scatter`` or ``bars``.
        x: The axis that all panels share.
        panels: In reading order; ``None`` leaves a place empty.
        columns: Panels in a row.
        share_y: Which panels share a y axis: ``all``, ``row`` or ``none``.
        told: Lines of text below it.
        size: For a paper, ``column`` or ``page``: without a title, and with smaller text.
        narrow: Panels in a row of the size ``column``.
    """
    paper = sized(size)
    if size == "column":
        columns, panels = narrow, [panel for panel in panels if panel is not None]
    made = [panel for panel in panels if panel is not None]
    panels = [panel and _without_hidden(panel, made, share_y) for panel in panels]
    if kind == "bars":
        panels = _with_groups(panels, columns, share_y)
    made = [panel for panel in panels if panel is not None]
    styles = looks(_lines(made))
    if alone := all(map(_says_its_line, made)):
        styles = {name: dataclasses.replace(own, dash="-") for name, own in styles.items()}
    if kind == "trace" and (alone or len(styles) == 1):
        styles = {name: dataclasses.replace(own, marker="") for name, own in styles.items()}
    width, height = _size(made, kind, columns, len(styles))
    rows = math.ceil(len(panels) / columns)
    above = 0.5
    if paper.width is not None:
        most = _HIGHEST[size or "page"]
        width, height, above = paper.width / columns, _height(height, rows, most), 0.0
    foot = _wrapped(told, columns * width, _FOOT)
    below = (1.3 * _FOOT * (foot.count("\n") + 1) + 8) / 72 if foot else 0.0
    with mpl.rc_context(paper.rc):
        figure = Picture(figsize=(width * columns, height * rows + above), layout="constrained")
        figure.for_paper = paper.width is not None
        if not figure.for_paper:
            heading = _wrapped([title], width * columns, 12, bold=True)
            figure.suptitle(heading, x=0.01, ha="left", fontsize=12, fontweight="bold")
        sharex: Sharing = "all" if kind != "bars" and _fit_one_axis(made) else "none"
        grid = figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=share_y)
        drawn = _placed(list(grid.flat), panels)
        for axes, panel in drawn:
            _panel(axes, panel, kind, x, styles, width - 0.2)
        if figure.for_paper and sharex == "all":
            _share_labels(list(grid.flat), panels[columns:])
        names = _marks(drawn, kind)
        # Limits last: setting one on a shared axis stops the other panels from widening it.
        for axes, panel in drawn:
            _limit(axes, "x", panel.y if kind == "bars" else x)
            if kind != "bars":
                _limit(axes, "y", panel.y)
        names = naming.seen(names)
        if len(styles) > 1 and not alone:
            _legend(figure, [axes for axes, _ in drawn], len(styles))
        _lay_out(figure, below, foot)
        naming.place(figure, names)
        keys = [(name, style.colour) for name, style in styles.items()]
        own = keys if figure.legends else []
        figure.parts = Parts([axes for axes, _ in drawn], own, 72 * below)
    return figure


def room(size: str | None, columns: int) -> int | None:
    """How many panels a picture in a paper has room for; None on a screen."""
    if sized(size).width is None:
        return None
    return int(_HIGHEST["page"] / _LOWEST) * (1 if size == "column" else columns)


def _placed(
    every: Sequence[Axes], panels: Sequence[Drawable | None]
) -> list[tuple[Axes, Drawable]]:
    """Pairs each panel with its axes, and removes axes without a panel."""
    drawn = []
    for place, axes in enumerate(every):
        panel = panels[place] if place < len(panels) else None
        if panel is None:
            axes.remove()
        else:
            drawn.append((axes, panel))
    return drawn


def _share_labels(every: Sequence[Axes], beneath: Sequence[Drawable | None]) -> None:
    """Leaves the labels of the x axis to the lowest panels."""
    for axes, lower in zip(every, beneath, strict=False):
        if lower is not None:
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)


def _fit_one_axis(panels: Sequence[Drawable]) -> bool:
    """Whether the panels' x values are close enough for one axis."""
    ends = [float(panel.points["x"].max() or 0) for panel in panels]  # type: ignore[arg-type]
    return not ends or 2 * min(ends) >= max(ends)


def _size(panels: Sequence[Drawable], kind: str, columns: int, lines: int) -> tuple[float, float]:
    """Width and height of a panel in inches."""
    width, height = _PANEL[min(columns, 4)]
    if kind == "bars":
        most = max((len(panel.groups) for panel in panels), default=0)
        between = 1.0 if any(panel.marks for panel in panels) else 0.5
        height = max(height, 0.9 + 0.13 * most * (lines + between))
        width = _BARS if columns == 1 else width
    return width, height


def _height(wanted: float, rows: int, most: float) -> float:
    """The height of a panel in a paper, in inches, in a picture of at most ``most``."""
    return max(_LOWEST, min(0.62 * wanted, most / rows))


def _wrapped(lines: Sequence[str], width: float, size: float, *, bold: bool = False) -> str:
    """Lines broken to a width in inches."""
    letters = int(72 * width / (size * _LETTER * (1.15 if bold else 1)))
    return "\n".join(textwrap.fill(line, letters) for line in lines)


def _marks(drawn: Sequence[tuple[Axes, Drawable]], kind: str) -> list[naming.Named]:
    lying = kind == "bars"
    found = [
        marks.draw(axes, mark, panel.points, panel.groups, lying)
        for axes, panel in drawn
        for mark in panel.marks
    ]
    return [each for each in found if each is not None]


def _lay_out(figure: Picture, below: float, foot: str) -> None:
    """Lays out all parts once, and then the lines of text below them.

    Every format uses this layout. With a layout engine, even an idle one, Matplotlib would draw
    the figure once more for each format.
    """
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)
    figure.set_layout_engine(None)
    if not foot:
        return
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + below)
    share = below / (height + below)
    for axes in figure.axes:
        at = axes.get_position()
        axes.set_position((at.x0, share + (1 - share) * at.y0, at.width, (1 - share) * at.height))
    for title in figure.texts:
        title.set_y(share + (1 - share) * title.get_position()[1])
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0, share, 1, 1 - share), figure.transFigure)
    style: Any = {"fontsize": _FOOT, "linespacing": 1.1, "va": "bottom", "gid": "told"}
    figure.text(0.01, 4 / 72 / (height + below), foot, **style)


def _box(axes: Axes) -> tuple[float, float, float, float]:
    figure, box = axes.get_figure(root=True), axes.get_tightbbox()
    assert figure is not None
    assert box is not None
    scale = 72 / figure.dpi
    left, upper = scale * box.x0 - 2, 72 * figure.get_figheight() - scale * box.y1 - 2
    return left, upper, scale * box.width + 4, scale * box.height + 4


def _without_hidden(panel: Drawable, made: Sequence[Drawable], share_y: Sharing) -> Drawable:
    """The panel with an axis that shows all its points: a logarithmic one cannot show 0."""
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
    """The panels with their groups of bars; panels that share an axis share the groups."""
    size = {"all": max(len(panels), 1), "row": columns, "none": 1}[share_y]
    grouped: list[Drawable | None] = []
    for first in range(0, len(panels), size):
        peers = panels[first : first + size]
        points = [each.points.drop_nulls(["x", "y"]) for each in peers if each]
        groups = dict.fromkeys(x for each in points for x in each["x"])
        grouped += [each and dataclasses.replace(each, groups=tuple(groups)) for each in peers]
    return grouped


def _lines(panels: Sequence[Drawable]) -> list[str]:
    """The names of the lines that have a point."""
    names: dict[str, None] = {}
    for panel in panels:
        if "line" in panel.points.columns:
            drawn = panel.points.drop_nulls(["x", "y"])["line"]
            names.update(dict.fromkeys(sorted(drawn.unique().cast(pl.String))))
    return sorted(names, key=order)


def _panel(
    axes: Axes, panel: Drawable, kind: str, x: Scale, styles: Mapping[str, Look], width: float
) -> None:
    """Labels every panel fully, even if it shares an axis: a page may show it alone."""
    # The title begins where the axis does.
    beside = 0.07 * max((len(str(group)) for group in panel.groups), default=6)
    font = mpl.rcParams["axes.titlesize"]
    axes.set_title(_wrapped([panel.title], width - beside, font, bold=True))
    axes.tick_params(labelleft=True, labelbottom=True)
    axes.set_xlabel(x.label)
    figure = axes.get_figure(root=True)
    paper = isinstance(figure, Picture) and figure.for_paper
    axes.set_ylabel(panel.brief if paper and panel.brief else panel.y.label)
    points = panel.points.drop_nulls(["x", "y"])
    there = set(_lines([panel]))
    if points.is_empty():
        axes.text(0.5, 0.5, "nothing to show", transform=axes.transAxes, ha="center")
    elif kind == "bars":
        _bars(axes, points, panel.groups, styles, 0.6 if panel.marks else 0.8)
    else:
        for low, high, colour in panel.shades:
            axes.axvspan(low, high, color=colour, alpha=0.15, linewidth=0, zorder=0)
        drawer = _LINES[kind]
        # A trace has a gap where nothing was measured.
        given = panel.points.drop_nulls("x") if kind == "trace" else points
        for name, own in _by_line(given):
            if name and name not in there:
                continue
            drawer(axes, own, name, styles.get(name, _ALONE))
    if kind == "bars":
        set_scale(axes, "x", panel.y)
    else:
        set_scale(axes, "x", x)
        set_scale(axes, "y", panel.y)
        if x.scale == "linear" and _are_whole(points["x"]):
            # Counts, such as of links and flows, have no halves.
            axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))


def _are_whole(x: pl.Series) -> bool:
    own = x.cast(pl.Float64)
    return not own.is_empty() and bool((own == own.round()).all())


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
    axes.plot(x, over["mean"].to_numpy(), color=style.colour, marker=style.marker,
              linestyle=style.dash, label=shown(name))  # fmt: skip


def _trace(axes: Axes, points: pl.DataFrame, name: str, style: Look) -> None:
    thin = _thin(_first_seed(points).sort("x"))
    marks: dict[str, Any] = {}
    if style.marker in MARKERS and style is not _ALONE:
        # A few markers per line, each line's elsewhere: a dash style is lost on a jagged line.
        every = max(1, thin.height // _MARKED)
        first = every * (MARKERS.index(style.marker) + 1) // (len(MARKERS) + 1)
        marks = {"marker": style.marker, "markevery": (first, every)}
    axes.plot(thin["x"].to_numpy(), thin["y"].to_numpy(), color=style.colour, linewidth=0.7,
              linestyle=style.dash, label=shown(name), **marks)  # fmt: skip
    gone = pl.col("y").is_null()
    alone = thin.filter(~gone & gone.shift(1, fill_value=True) & gone.shift(-1, fill_value=True))
    if not alone.is_empty():  # a point between two gaps, which no line shows
        axes.plot(alone["x"].to_numpy(), alone["y"].to_numpy(), color=style.colour, marker=".",
                  markersize=3, linestyle="none")  # fmt: skip


def _scatter(axes: Axes, points: pl.DataFrame, name: str, style: Look) -> None:
    own = _first_seed(points)
    axes.plot(own["x"].to_numpy(), own["y"].to_numpy(), color=style.colour, linestyle="none",
              marker="o", markersize=3.2, label=shown(name))  # fmt: skip


_ALONE = Look("#0072b2", "o")
"""The look of points without a line's name."""

_LINES = {"spread": _spread, "trace": _trace, "scatter": _scatter}


def _first_seed(points: pl.DataFrame) -> pl.DataFrame:
    if "seed" not in points.columns:
        return points
    return points.filter(pl.col("seed") == points["seed"].min())


def _thin(points: pl.DataFrame) -> pl.DataFrame:
    """Thins a trace to the least and greatest of each stretch: no spike and no gap is lost."""
    stretch = max(1, math.ceil(2 * points.height / MAX_TRACE))
    if stretch == 1:
        return points
    return (
        points.with_row_index("row")
        .with_columns(part=pl.col("row") // stretch)
        .filter(
            pl.col("y").is_null()
            | (pl.col("y") == pl.col("y").max().over("part"))
            | (pl.col("y") == pl.col("y").min().over("part"))
        )
        .unique(subset=["part", "y"], keep="first", maintain_order=True)
    )


def _bars(
    axes: Axes,
    points: pl.DataFrame,
    groups: Sequence[Any],
    styles: Mapping[str, Look],
    room: float,
) -> None:
    """Draws horizontal bars in groups, with room between groups for the marks of claims."""
    lines = _by_line(points)
    width = room / len(lines)
    for position, (name, own) in enumerate(lines):
        style = styles.get(name, _ALONE)
        over = _over_seeds(own)
        mean = over["mean"].to_numpy()
        drawn = axes.barh(
            [
                groups.index(group) + (position - (len(lines) - 1) / 2) * width
                for group in over["x"]
            ],
            mean,
            height=width * 0.9,
            # Rounding may put the mean of equal values beside them.
            xerr=[
                (mean - over["low"].to_numpy()).clip(0),
                (over["high"].to_numpy() - mean).clip(0),
            ],
            color=style.colour,
            ecolor=RC["text.color"],
            error_kw={"elinewidth": 0.9},
            label=shown(name),
        )
        labels = [number(value) for value in mean]
        axes.bar_label(drawn, labels, padding=3, fontsize=7)
    axes.set_yticks(range(len(groups)), [str(group) for group in groups])
    axes.margins(x=0.12, y=0.4 / len(groups))
    if not axes.yaxis_inverted():  # a panel that shares the axis may have inverted it already
        axes.invert_yaxis()
    axes.set_xlabel(axes.get_ylabel())
    axes.set_ylabel("")


def set_scale(axes: Axes, which: str, scale: Scale) -> None:
    """Gives an axis its scale, and ticks with plain numbers."""
    options: dict[str, Any] = {}
    if scale.scale == "symlog":
        options = {"linthresh": scale.linear_below, "linscale": 0.6}
    getattr(axes, f"set_{which}scale")(scale.scale, **options)
    axis = getattr(axes, f"{which}axis")
    if scale.scale == "log":
        low, high = getattr(axes, f"get_{which}lim")()
        few = (scale.high or high) <= 1e3 * (scale.low or low)
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
        # The default's labels are mathematical markup, which this style does not parse.
        axis.set_minor_formatter(NullFormatter())
    if scale.scale != "linear":
        axis.set_major_formatter(FormatStrFormatter("%g"))
    elif max(map(abs, getattr(axes, f"get_{which}lim")())) >= _LARGE:
        axis.set_major_formatter(EngFormatter(sep=""))


def _limit(axes: Axes, which: str, scale: Scale) -> None:
    if scale.low is not None or scale.high is not None:
        getattr(axes, f"set_{which}lim")(scale.low, scale.high)


def _legend(figure: Figure, every: Sequence[Axes], count: int) -> None:
    """Draws the legend below the panels, because a phone has no width to spare."""
    handles: dict[str, Any] = {}
    for axes in every:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    ordered = sorted(handles, key=order)
    columns = min(count, legend_columns(ordered, figure.get_figwidth()))
    figure.legend(
        handles=[handles[name] for name in ordered],
        loc="outside lower left",
        ncols=columns,
        borderaxespad=0.2,
    )


def legend_columns(names: Sequence[str], width: float) -> int:
    """How many columns of a legend of these names fit into a width in inches."""
    scale = mpl.rcParams["font.size"] / RC["font.size"]
    return max(1, int((width + 0.2) / (scale * (0.7 + 0.085 * max(map(len, names))))))


def _says_its_line(panel: Drawable) -> bool:
    """Whether a panel has one line, and its title begins with that line's name."""
    names = _lines([panel])
    return len(names) == 1 and panel.title.startswith(names[0])
