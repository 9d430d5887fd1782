"""Claims in a plot: where they hold, and the paper's numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
from matplotlib.markers import CARETDOWNBASE, CARETLEFTBASE, CARETRIGHTBASE, CARETUPBASE

from bluewater.plots.style import INK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

    from bluewater.study.claims import By

_SIZE = 7
"""Of a claim's name, in points."""
_INK: Any = {"color": INK, "linewidth": 1.0, "alpha": 0.75, "zorder": 3}
_BAND: Any = {"color": INK, "alpha": 0.07, "linewidth": 0, "zorder": 0}
_DASHED: Any = (0, (5, 3))
_DOTTED: Any = (0, (1, 2))
_CARETS = {
    False: {True: CARETUPBASE, False: CARETDOWNBASE},
    True: {True: CARETRIGHTBASE, False: CARETLEFTBASE},
}
"""On a line that is the one end of a bound, towards where it holds: by whether the line is upright,
and whether its value is the least that holds."""
_CARET: Any = {"color": INK, "markersize": 5, "linestyle": "none", "zorder": 3}


@dataclass(frozen=True)
class Mark:
    """A claim on an axis: where its value has to lie, and the paper's number.

    Attributes:
        name: That of the claim.
        low: The lower end of its bound, or minus infinity.
        high: The upper end, or infinity.
        x: Where on the other axis, if not everywhere; two numbers are the ends of a stretch.
        paper: The paper's number.
        upright: Whether the value is a number of the x axis, not of the y axis.
        of: What the value is compared with: a number, or a line by its name.
        by: How: so many times it, so many percent less, so much after it, at most so far from it,
            or at most so many percent.
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
        """Its bound on the axis, compared with a number or many; ``None`` for an open end."""
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


@dataclass(frozen=True)
class Named:
    """A claim's name: beside the axes at its value, or where its line ends."""

    text: Annotation
    axes: Axes
    value: float
    above: bool
    end: float | None = None

    @property
    def at(self) -> float:
        """Where its value is, in points along its axis."""
        across = self.axes.get_xaxis_transform() if self.above else self.axes.get_yaxis_transform()
        point = (self.value, 1.0) if self.above else (1.0, self.value)
        figure = self.axes.get_figure(root=True)
        assert figure is not None
        return float(across.transform(point)[0 if self.above else 1]) * 72 / figure.dpi


def draw(
    axes: Axes, mark: Mark, points: pl.DataFrame, groups: Sequence[Any], lying: bool
) -> Named | None:
    """Draws where a claim holds, dashed or arrows, and the paper's number, dotted or a star.

    Args:
        axes: Where.
        mark: The claim.
        points: Those of the panel.
        groups: The groups of bars, in order.
        lying: Whether it is bars, whose values are along x.

    Returns:
        The name that was written beside the axes, if one was.
    """
    across = lying or mark.upright
    if isinstance(mark.x, float | int | str):
        place = _place(mark.x, groups, lying)
        base = _at(points, mark.of, mark.x)
        if place is not None and base is not None:
            _there(axes, mark, mark.ends(base), place, across)
        return None
    end = None
    if isinstance(mark.of, str):
        own = _line(points, mark.of).group_by("x").agg(pl.col("y").mean()).sort("x")
        if mark.x is not None:
            own = own.filter(pl.col("x").is_between(*mark.x))
        value = None if own.is_empty() else _along(axes, mark, own)
        end = own["x"].max()
    elif mark.x is None:
        value = _everywhere(axes, mark, across)
    else:
        value, end = _stretch(axes, mark, mark.x), mark.x[1]
    return None if value is None else _named(axes, mark, value, across, end)


def seen(names: Sequence[Named]) -> list[Named]:
    """Those whose values are within the axes; the others are hidden."""
    shown = []
    for name in names:
        low, high = sorted(name.axes.get_xlim() if name.above else name.axes.get_ylim())
        name.text.set_visible(low <= name.value <= high)
        if name.text.get_visible():
            shown.append(name)
    return shown


def part(names: Sequence[Named]) -> None:
    """Moves the names beside one pair of axes apart, so that none stands on another."""
    last: dict[Any, float] = {}
    for name in sorted(names, key=lambda each: each.at):
        wide = 0.75 * _SIZE * len(name.text.get_text()) if name.above else _SIZE + 1
        beside = (name.axes, name.above, name.end)
        last[beside] = free = max(name.at, last.get(beside, -math.inf) + wide)
        name.text.xyann = (free - name.at, 2) if name.above else (3, free - name.at)


def _named(axes: Axes, mark: Mark, value: float, across: bool, end: Any) -> Named:
    """Beside the axes, where it hides nothing: above or on the right; or where its line ends."""
    style: Any = {"textcoords": "offset points", "fontsize": _SIZE, "annotation_clip": False}
    if across:
        text = axes.annotate(
            f"({mark.name})", (value, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 2),
            ha="center", va="bottom", **style,
        )  # fmt: skip
        axes.set_title(axes.get_title("left"), pad=_SIZE + 7)
    else:
        text = axes.annotate(
            f"({mark.name})", (1.0 if end is None else end, value), xytext=(3, 0),
            xycoords=("axes fraction" if end is None else "data", "data"), va="center", **style,
        )  # fmt: skip
    return Named(text, axes, value, across, end)


def _place(x: float | str, groups: Sequence[Any], lying: bool) -> float | None:
    """Where an x is on its axis; of bars just below, where they hide nothing."""
    if not lying:
        return float(x)
    labels = [each if isinstance(x, float) else str(each) for each in groups]
    return labels.index(x) + 0.5 if x in labels else None


def _line(points: pl.DataFrame, name: str) -> pl.DataFrame:
    return points.filter(pl.col("line").cast(pl.String) == name).drop_nulls(["x", "y"])


def _at(points: pl.DataFrame, of: str | float, x: float | str) -> float | None:
    """What a claim is compared with at an x."""
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
        # Where the line ends, and its name begins.
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
    """Whether an open bound holds above its end; none of one that has two ends, or none."""
    low, high = ends
    return (high is None) if (low is None) != (high is None) else None


def _numbers(mark: Mark, line: Callable[..., object]) -> float | None:
    """Draws the ends of the bound and the paper's number as lines; the first of them."""
    shown = [(end, _DASHED) for end in mark.ends(mark.of) if end is not None]
    if mark.paper is not None:
        shown.append((mark.paper, _DOTTED))
    for value, dash in shown:
        line(value, linestyle=dash, **_INK)
    return shown[0][0] if shown else None


def _along(axes: Axes, mark: Mark, own: pl.DataFrame) -> float | None:
    """Beside a line: where another has to lie by what this one has at each x."""
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


def _there(axes: Axes, mark: Mark, ends: tuple[Any, Any], place: float, across: bool) -> None:
    """At one x: arrows from the ends of the bound towards where it holds."""
    arrows = (">", "<") if across else ("^", "v")
    shown = {end: arrow for end, arrow in zip(ends, arrows, strict=True) if end is not None}
    if mark.paper is not None:
        shown[mark.paper] = "*"
    for value, marker in shown.items():
        at = (value, place) if across else (place, value)
        # Hollow, so that a point that it is on is seen.
        axes.plot(*at, marker=marker, markersize=8 if marker == "*" else 5, color=INK,
                  markerfacecolor="none", zorder=4)  # fmt: skip
    last = max(shown)
    axes.annotate(f"({mark.name})", (last, place) if across else (place, last), xytext=(5, 0),
                  textcoords="offset points", fontsize=_SIZE, va="center")  # fmt: skip
