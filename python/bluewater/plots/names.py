"""Placing the names of claims in a picture so that they cover nothing else.

A name takes the nearest free place beside its mark. It covers names, numbers, titles and marks only
if every place does, and lines only if there is no better place. A line joins a name that was moved
to its mark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.transforms import Bbox

from bluewater.plots.style import INK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation
    from matplotlib.transforms import Transform

Where: TypeAlias = Literal["beside", "above", "within"]

MARK = "mark"
"""Name of a mark of a claim at one x."""
_GAP = 1.0
"""Free space around a name, in points."""
_ROWS = 24
"""Greatest shift of a name, in half its height."""
_ON_LINE = 12.0
"""A shift of this many points is better than covering a line."""
_ON_CLAIM = 100.0
"""A shift of this many points is better than covering a claim's line, which would seem named."""
_ON_NAME = 1e4


@dataclass(frozen=True)
class Named:
    """A claim's name, and the region it may move in: beside, above or inside the axes.

    Attributes:
        transform: From its point to pixels.
    """

    text: Annotation
    axes: Axes
    transform: Transform
    where: Where

    @property
    def point(self) -> Any:
        """The point that it names, in pixels."""
        return self.transform.transform(self.text.xy)

    @property
    def box(self) -> Bbox:
        """The box that it covers, in pixels."""
        return self.text.get_window_extent()


def seen(names: Sequence[Named]) -> list[Named]:
    """The names whose values lie within the axes; hides the others with their marks."""
    for axes in dict.fromkeys(name.axes for name in names):
        axes.autoscale_view()  # a property, so that the layout is read only after drawing
        for line in axes.lines:
            if line.get_gid() == MARK:
                (point,) = axes.transData.transform(line.get_xydata())
                line.set_visible(_holds(axes, point))
    for name in names:
        # A mark that is shifted beside its x is hidden with its name.
        way = name.axes.transData if name.where == "within" else name.transform
        name.text.set_visible(_holds(name.axes, way.transform(name.text.xy)))
    return [name for name in names if name.text.get_visible()]


def place(figure: Figure, names: Sequence[Named]) -> None:
    """Moves each name to its best place; call it when the layout is final."""
    scale = figure.dpi / 72
    taken = _taken(figure, names, scale)
    for name in sorted(names, key=lambda each: tuple(each.point)):
        crossed = _crossed(name.axes)
        box = name.box.padded(_GAP * scale)

        def cost(moved: tuple[float, float], box: Bbox = box, crossed: Any = crossed) -> float:
            there = box.translated(*moved)
            on = sum(each.overlaps(there) for each in taken) + (not _inside(figure, there))
            lines = sum(weight for weight, *line in crossed if _covers(there, *line))
            return float(_ON_NAME * on + scale * lines + np.hypot(*moved))

        moved = min(_moves(name, box, scale), key=cost)
        x, y = name.text.xyann
        name.text.xyann = (x + moved[0] / scale, y + moved[1] / scale)
        taken.append(box.translated(*moved))
        if np.hypot(*moved) > 0.75 * box.height:
            _lead(figure, name)


def _holds(axes: Axes, point: Any) -> bool:
    box = axes.get_window_extent()
    return bool(box.padded(1).contains(*point))


def _inside(figure: Figure, box: Bbox) -> bool:
    whole = figure.bbox.padded(3)
    return bool(whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0)


def _moves(name: Named, box: Bbox, scale: float) -> Iterator[tuple[float, float]]:
    """The places to try, as shifts from the first."""
    for step in range(-_ROWS, _ROWS + 1):
        if name.where == "above":
            yield step * box.width / 4, 0.0
            continue
        up = step * box.height / 2
        yield 0.0, up
        if name.where == "within":
            yield -(box.width + 10 * scale), up
            yield -(box.width / 2 + 5 * scale), up


def _taken(figure: Figure, names: Sequence[Named], scale: float) -> list[Bbox]:
    """The boxes that a name must not cover: titles, numbers at bars and axes, marks."""
    moved = {name.text for name in names}
    found = []
    for axes in figure.axes:
        labels = [*axes.get_xticklabels(), *axes.get_yticklabels()]
        fixed = {text for text in axes.texts if text not in moved}
        written = [*fixed, axes._left_title, *labels]  # type: ignore[attr-defined]
        found += [
            each.get_window_extent() for each in written if each.get_visible() and each.get_text()
        ]
        for line in axes.lines:
            if line.get_gid() == MARK and line.get_visible():
                (point,) = line.get_transform().transform(line.get_xydata())
                found.append(_mark(line, point, scale))
    return found


def _mark(line: Line2D, point: Any, scale: float) -> Bbox:
    """The box that a mark covers; an arrow lies on one side of its point."""
    marker, half = line.get_marker(), float(line.get_markersize()) / 2
    if not isinstance(marker, Path):
        return Bbox([point, point]).padded(half * scale)
    corners = point + half * scale * np.asarray(marker.vertices)
    return Bbox([corners.min(axis=0), corners.max(axis=0)])


def _crossed(axes: Axes) -> list[tuple[float, Any, bool]]:
    """The lines of a pair of axes: cost of covering it, its path, and whether it is joined."""
    return [
        (
            _ON_CLAIM if line.get_color() == INK else _ON_LINE,
            line.get_transform().transform_path(line.get_path()),
            line.get_linestyle() != "None",
        )
        for line in axes.lines
        if line.get_gid() != MARK
    ]


def _covers(box: Bbox, path: Any, joined: bool) -> bool:
    if joined and len(path.vertices) > 1:
        return bool(path.intersects_bbox(box, filled=False))
    return bool(box.count_contains(path.vertices))


def _lead(figure: Figure, name: Named) -> None:
    """A line from a name to its mark, in the picture's coordinates."""
    box, (x, y) = name.box, name.point
    near = (min(max(x, box.x0), box.x1), min(max(y, box.y0), box.y1))
    ends = figure.transFigure.inverted().transform([(x, y), near])
    figure.add_artist(Line2D(*ends.T, color=INK, linewidth=0.5, alpha=0.75, zorder=3))
