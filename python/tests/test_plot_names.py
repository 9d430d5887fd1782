"""Names of claims stand on nothing else, in the papers' plots with the points of a quick run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from bluewater.plots.draw import Drawable, Picture, draw
from bluewater.plots.experiment import marks_of
from bluewater.plots.marks import Mark
from bluewater.plots.style import INK
from bluewater.study.experiments import experiment
from bluewater.study.experiments.plot import Scale

POINTS: dict[str, Any] = json.loads(Path(__file__).with_name("plots.json").read_text("utf-8"))
"""Of each plot with claims in it, by panel and line: some x and y of its first seed. They say where
lines are, and nothing about what a version measures."""


def picture(name: str) -> Picture:
    which, shown = name.split()
    made = experiment.load(which)
    (plot,) = (each for each in made.plots if each.id == shown)
    panels = []
    for panel in plot.panels:
        if not (own := POINTS[name].get(panel.title)):
            continue
        columns: dict[str, list[Any]] = {"x": [], "y": [], "line": []}
        for line, (x, y) in own.items():
            columns["x"] += x
            columns["y"] += y
            columns["line"] += [line] * len(x)
        points = pl.DataFrame(columns, strict=False)
        marks = marks_of(plot, panel, made.claims)
        panels.append(Drawable(panel.title, points, panel.y or plot.y, marks))
    return draw(plot.title, plot.kind, plot.x, panels, plot.in_a_row, plot.sharing)


def of_claims(axes: Any) -> list[Any]:
    """Lines and marks that are claims', of which the marks are hollow."""
    return [line for line in axes.lines if line.get_color() == INK and line.get_visible()]


def judge(figure: Picture) -> None:
    """No name stands on a title, a number, another name, or on what is drawn of a claim."""
    figure.draw_without_rendering()
    titles = [axes._left_title for axes in figure.axes]  # type: ignore[attr-defined]
    written = [text for axes in figure.axes for text in axes.texts] + titles
    boxes = [(each, Text.get_window_extent(each)) for each in written if each.get_visible()]
    names = [(text, box) for text, box in boxes if text.get_text().startswith("(")]
    for text, box in names:
        on = [other.get_text() for other, its in boxes if other is not text and its.overlaps(box)]
        assert not on, (text.get_text(), on)
        assert box.x1 <= figure.bbox.x1 + 1
        for line in of_claims(text.axes):
            path = line.get_transform().transform_path(line.get_path())
            if len(path.vertices) > 1:
                assert not path.intersects_bbox(box, filled=False), text.get_text()
            elif line.get_markerfacecolor() == "none":
                (point,) = path.vertices
                reach = Bbox([point, point]).padded(2 * figure.dpi / 72)
                assert not reach.overlaps(box), text.get_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", POINTS)
def test_names_of_claims_stand_on_nothing(name: str) -> None:
    judge(picture(name))


LINES = pl.DataFrame(
    {"x": [1.0, 2.0, 4.0] * 2, "y": [1.0, 1.0, 1.0, 5.0, 5.0, 5.0], "line": ["a"] * 3 + ["b"] * 3}
)


@pytest.mark.parametrize(
    "marks",
    [
        (Mark("d-one", 3, math.inf, (1, 4)), Mark("d-two", 3, math.inf, (1, 4))),
        (Mark("one", -math.inf, 3, (1, 2)), Mark("two", 3, math.inf, (2, 4))),
        (Mark("one", 2, 4, 4.0), Mark("two", 1, 4, 4.0), Mark("three", 3, 4, 4.0)),
        (Mark("one", 2, 4, 4.0), Mark("two", 3, math.inf)),
        tuple(Mark(f"claim-{k}", -math.inf, 3 + 0.01 * k) for k in range(12)),
        tuple(Mark(f"claim-{k}", 2 + 0.01 * k, math.inf, upright=True) for k in range(4)),
    ],
)
def test_names_of_one_place_stand_beside_each_other(marks: tuple[Mark, ...]) -> None:
    panel = Drawable("p", LINES, Scale("y"), marks)
    figure = draw("t", "spread", Scale("x"), [panel], 1, "none")
    judge(figure)
    names = [text for text in figure.axes[0].texts if text.get_visible()]
    assert len(names) == len(marks)


def test_marks_of_two_claims_at_one_x_do_not_stand_among_each_other() -> None:
    marks = (Mark("one", 2, 4, 2.0), Mark("two", 3, 6, 2.0), Mark("three", 0.5, 1, 2.0))
    panel = Drawable("p", LINES, Scale("y"), marks)
    (axes,) = draw("t", "spread", Scale("x"), [panel], 1, "none").axes
    columns: dict[float, list[float]] = {}
    for line in axes.lines:
        if line.get_markerfacecolor() == "none":
            (data,) = np.asarray(line.get_xydata())
            x, _ = line.get_transform().transform(data)
            columns.setdefault(round(x), []).append(float(data[1]))
    assert sorted(map(sorted, columns.values())) == [[0.5, 1, 2, 4], [3, 6]]


@pytest.mark.parametrize(
    "mark", [Mark("a", 2, 3, (2, 8)), Mark("a", 2, 3, 8.0), Mark("a", 2, 3, (6, 8))]
)
def test_a_claim_of_what_a_size_leaves_out_does_not_widen_the_axis(mark: Mark) -> None:
    ends = [
        draw("t", "spread", Scale("x"), [Drawable("p", LINES, Scale("y"), own)], 1, "none")
        .axes[0]
        .get_xlim()
        for own in ((), (mark,))
    ]
    assert ends[0] == pytest.approx(ends[1])


def test_a_bound_that_is_the_papers_number_looks_like_both() -> None:
    panel = Drawable("p", LINES, Scale("y"), (Mark("a", -math.inf, 3, paper=3),))
    (axes,) = draw("t", "spread", Scale("x"), [panel], 1, "none").axes
    looks = {line._unscaled_dash_pattern for line in of_claims(axes) if len(line.get_xdata()) > 1}
    assert looks == {(0, (5, 2, 1, 2))}


def test_of_links_there_are_no_halves() -> None:
    points = pl.DataFrame({"x": [1, 5], "y": [1.0, 2.0]})
    figure = draw("t", "spread", Scale("links"), [Drawable("p", points, Scale("y"))], 1, "none")
    ticks = figure.axes[0].get_xticks()
    assert all(tick == round(tick) for tick in ticks)
