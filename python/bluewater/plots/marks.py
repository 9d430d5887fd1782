"""Claims in a plot: where they hold, and the paper's numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.markers import CARETDOWNBASE, CARETLEFTBASE, CARETRIGHTBASE, CARETUPBASE
from matplotlib.path import Path
from matplotlib.transforms import ScaledTranslation

from bluewater.plots.names import MARK, Named
from bluewater.plots.style import INK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform

    from bluewater.plots.names import Where
    from bluewater.study.experiments.claims import By

_SIZE = 7
"""Font size of a claim's name, in points."""
_INK: Any = {"color": INK, "linewidth": 1.0, "alpha": 0.75, "zorder": 3}
_BAND: Any = {"color": INK, "alpha": 0.07, "linewidth": 0, "zorder": 0}
_DASHED: Any = (0, (5, 3))
_DOTTED: Any = (0, (1, 2))
_BOTH: Any = (0, (5, 2, 1, 2))
"""Line style of an end of a bound that is the paper's number."""
_CARETS = {
    False: {True: CARETUPBASE, False: CARETDOWNBASE},
    True: {True: CARETRIGHTBASE, False: CARETLEFTBASE},
}
"""Marker on the line of a one-sided bound that points to where the claim holds, by whether the line
is upright, and whether its value is the lower end."""
_CARET: Any = {"color": INK, "markersize": 5, "linestyle": "none", "zorder": 3}
_ARROWS = {
    False: [Path([(0, 0), (-0.6, end), (0.6, end), (0, 0)]) for end in (-1, 1)],
    True: [Path([(0, 0), (end, -0.6), (end, 0.6), (0, 0)]) for end in (-1, 1)],
}
"""Markers at the lower and upper end of a bound at one x, by whether values are along x. The tip is
at the end, so that the markers of a narrow bound do not overlap."""
_SPAN = "claim"
"""Name of the line that joins a claim's marks at one x."""
_BESIDE = 10
"""Distance in points between claims at one x whose marks would overlap."""


@dataclass(frozen=True)
class Mark:
    """A claim on an axis: its bound and the paper's number.

    Attributes:
        name: The claim's name.
        low: The lower end of its bound, or minus infinity.
        high: The upper end, or infinity.
        x: Its place on the other axis, if not everywhere; two numbers are the ends of a stretch.
        paper: The paper's number.
        upright: Whether the value is a number of the x axis, not of the y axis.
        of: The reference that the value is compared with: a number, or a line by its name.
        by: How it is compared: as a multiple of the reference, as percent less, as a difference
            after it, or as the greatest distance from it, absolute or in percent.
    """

    name: str
    low: float
    high: float
    x: float | str | tuple[float, float] | None = None
    paper: float | None = None
    upright: bool = False
    of: str | float = 1.0
    by: By = "times"

    def ends(self, base: Any) -> tuple[Any, Any]:
        """The ends of its bound on the axis, for one reference or many; ``None`` if open."""
        if self.by in ("within", "percent"):
            far = self.high if self.by == "within" else base * self.high / 100
            return base - far, base + far
        low, high = self.low, self.high
        if self.by == "less":
            low, high = 1 - high / 100, 1 - low / 100
        return self._end(base, low), self._end(base, high)

    def _end(self, base: Any, end: float) -> Any:
        if not math.isfinite(end):
            return None
        return base + end if self.by == "after" else base * end


def draw(
    axes: Axes, mark: Mark, points: pl.DataFrame, groups: Sequence[Any], lying: bool
) -> Named | None:
    """Draws a claim's bound, dashed or as arrows, and the paper's number, dotted or as a star.

    Args:
        axes: The panel's axes.
        mark: The claim.
        points: The panel's points.
        groups: The groups of bars, in order.
        lying: Whether the panel has bars, whose values are along x.

    Returns:
        The name that was written beside the axes, if any.
    """
    across = lying or mark.upright
    if isinstance(mark.x, float | int | str):
        place = _place(mark.x, points, groups, lying)
        base = _at(points, mark.of, mark.x)
        if place is None or base is None:
            return None
        return _there(axes, mark, mark.ends(base), place, across)
    end = None
    if isinstance(mark.of, str):
        own = _line(points, mark.of).group_by("x").agg(pl.col("y").mean()).sort("x")
        if mark.x is not None:
            own = own.filter(pl.col("x").is_between(*mark.x))
        value = None if own.is_empty() else _along(axes, mark, own)
        end = own["x"].max()
    elif mark.x is None:
        value = _everywhere(axes, mark, across)
    elif (stretch := _drawn(points, mark.x)) is None:
        return None
    else:
        value, end = _stretch(axes, mark, stretch), stretch[1]
    return None if value is None else _named(axes, mark, value, across, end)


def _named(axes: Axes, mark: Mark, value: float, across: bool, end: Any) -> Named:
    """Writes the name above or right of the axes, or at the end of the claim's line."""
    if across:
        axes.set_title(axes.get_title("left"), pad=_SIZE + 7)
        return _name(axes, mark, (value, 1.0), axes.get_xaxis_transform(), "above")
    if end is None:
        return _name(axes, mark, (1.0, value), axes.get_yaxis_transform(), "beside")
    return _name(axes, mark, (end, value), axes.transData, "within")


def _name(
    axes: Axes,
    mark: Mark,
    point: tuple[float, float],
    transform: Transform,
    where: Where,
    gap: float = 5,
) -> Named:
    above = where == "above"
    text = axes.annotate(
        f"({mark.name})", point, xycoords=transform, xytext=(0, 2) if above else (gap, 0),
        textcoords="offset points", fontsize=_SIZE, annotation_clip=False,
        ha="center" if above else "left", va="bottom" if above else "center",
    )  # fmt: skip
    return Named(text, axes, transform, where)


def _drawn(points: pl.DataFrame, stretch: tuple[float, float]) -> tuple[float, float] | None:
    """The part of a stretch that has points: a size may leave out the others."""
    x = points.drop_nulls(["x", "y"])["x"].cast(pl.Float64)
    low, high = (float(end or 0) for end in (x.min(), x.max()))  # type: ignore[arg-type]
    low, high = max(low, stretch[0]), min(high, stretch[1])
    return (low, high) if low <= high and not x.is_empty() else None


def _place(
    x: float | str, points: pl.DataFrame, groups: Sequence[Any], lying: bool
) -> float | None:
    """The position of an x on its axis; for bars just below them, to hide nothing."""
    if not lying:
        return None if _drawn(points, (float(x), float(x))) is None else float(x)
    labels = [each if isinstance(x, float) else str(each) for each in groups]
    return labels.index(x) + 0.5 if x in labels else None


def _line(points: pl.DataFrame, name: str) -> pl.DataFrame:
    return points.filter(pl.col("line").cast(pl.String) == name).drop_nulls(["x", "y"])


def _at(points: pl.DataFrame, of: str | float, x: float | str) -> float | None:
    """The reference that a claim is compared with at an x."""
    if not isinstance(of, str):
        return of
    text = isinstance(x, str)
    own = _line(points, of).filter((pl.col("x").cast(pl.String) if text else pl.col("x")) == x)
    return own["y"].cast(pl.Float64).mean()  # type: ignore[return-value]


def _everywhere(axes: Axes, mark: Mark, across: bool) -> float | None:
    low, high = mark.ends(mark.of)
    if low is not None and high is not None:
        (axes.axvspan if across else axes.axhspan)(low, high, **_BAND)
    value = _numbers(mark, axes.axvline if across else axes.axhline)
    side = _side(mark.ends(mark.of))
    if value is not None and side is not None:
        # The line ends here, and its name begins.
        at = (value, 0.98) if across else (0.98, value)
        place = axes.get_xaxis_transform() if across else axes.get_yaxis_transform()
        axes.plot(*at, marker=_CARETS[across][side], transform=place, **_CARET)
    return value


def _stretch(axes: Axes, mark: Mark, x: tuple[float, float]) -> float | None:
    value = _numbers(mark, lambda value, **style: axes.plot(x, (value, value), **style))
    side = _side(mark.ends(mark.of))
    if value is not None and side is not None:
        axes.plot(x, (value, value), marker=_CARETS[False][side], **_CARET)
    return value


def _side(ends: tuple[Any, Any]) -> bool | None:
    """Whether a one-sided bound holds above its end; ``None`` for two ends or no end."""
    low, high = ends
    return (high is None) if (low is None) != (high is None) else None


def _numbers(mark: Mark, line: Callable[..., object]) -> float | None:
    """Draws the ends of the bound and the paper's number as lines; returns the first line."""
    shown = {end: _DASHED for end in mark.ends(mark.of) if end is not None}
    if mark.paper is not None:
        shown[mark.paper] = _BOTH if mark.paper in shown else _DOTTED
    for value, dash in shown.items():
        line(value, linestyle=dash, **_INK)
    return next(iter(shown), None)


def _along(axes: Axes, mark: Mark, own: pl.DataFrame) -> float | None:
    """Draws a bound relative to a line: another line must lie there at each x."""
    x, base = own["x"].to_numpy(), own["y"].to_numpy()
    shown = [end for end in mark.ends(base) if end is not None]
    side = _side(mark.ends(base))
    for end in shown:
        axes.plot(x, end, linestyle=_DASHED, **_INK)
        if side is not None:
            axes.plot(x[[0, -1]], end[[0, -1]], marker=_CARETS[False][side], **_CARET)
    if len(shown) == 2:
        axes.fill_between(x, *shown, **_BAND)
    return float(shown[0][-1]) if shown else None


def _there(
    axes: Axes, mark: Mark, ends: tuple[Any, Any], place: float, across: bool
) -> Named | None:
    """Draws a bound at one x: arrows at its ends, joined by a line."""
    arrows = zip(ends, _ARROWS[across], strict=True)
    shown: list[tuple[float, Any, int]] = [
        (end, arrow, 12) for end, arrow in arrows if end is not None
    ]
    if mark.paper is not None:
        shown.append((mark.paper, "*", 8))
    if not shown:
        return None
    values = sorted(value for value, _, _ in shown)
    transform = _aside(axes, place, values, across)
    # Name the claim, since several may stand at one x.
    parts = axes.plot(*_turned([place] * len(values), values, across), color=INK, linewidth=0.6,
                      zorder=3, gid=_SPAN)  # fmt: skip
    for value, marker, size in shown:
        # Hollow, so that a point below it is visible.
        parts += axes.plot(*_turned([place], [value], across), marker=marker, markersize=size,
                           color=INK, markerfacecolor="none", zorder=4, gid=MARK,
                           clip_on=False)  # fmt: skip
    for part in parts:
        part.set_transform(transform)
    (x,), (y,) = _turned([place], values[-1:], across)
    return _name(axes, mark, (x, y), transform, "within", 9 if across else 5)


def _turned(
    places: list[float], values: list[float], across: bool
) -> tuple[list[float], list[float]]:
    return (values, places) if across else (places, values)


def _aside(axes: Axes, place: float, values: Sequence[float], across: bool) -> Transform:
    """The shift of a claim at one x: beside earlier claims whose marks would overlap."""
    before = 0
    for line in axes.lines:
        x, y = np.asarray(line.get_xydata()).T
        at, own = (y, x) if across else (x, y)
        if line.get_gid() == _SPAN and at[0] == place:
            before += bool(own.min() <= values[-1] and values[0] <= own.max())
    figure = axes.get_figure(root=True)
    assert figure is not None
    far = before * _BESIDE / 72
    offset = (0.0, -far) if across else (far, 0.0)
    return axes.transData + ScaledTranslation(*offset, figure.dpi_scale_trans)
