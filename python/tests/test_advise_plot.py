from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text
from test_advise import ranked_of

from bluewater.plots import advise as plots
from bluewater.study.advice.advise import Measured


def test_names_in_the_picture_cover_neither_one_another_nor_points() -> None:
    """Twenty candidates in one corner, and one far away."""
    near = {
        f"candidate-{k}": [Measured(49e6 + 1e4 * (k % 5), 1.0, 0.01 + 2e-4 * k, k / 500, -k)] * 2
        for k in range(20)
    }
    ranked = ranked_of({**near, "far": [Measured(20e6, 0.5, 0.2, 0.0, -30)] * 2})
    made = plots.figure(ranked, "a title")
    made.draw_without_rendering()
    axes = made.axes[0]
    names: list[Any] = list(axes.texts)
    assert len(names) == 21
    boxes = [Text.get_window_extent(each) for each in names]
    for one, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:one]), names[one]
        inside = axes.get_window_extent()
        assert inside.x0 <= box.x0, names[one]
        assert box.x1 <= inside.x1, names[one]
    points = axes.transData.transform([each.xy for each in names])
    assert not any(box.contains(*point) for box in boxes for point in points)


def test_ticks_are_numbers() -> None:
    """The default of a logarithmic axis is mathematical markup, which was shown as it stands."""
    for delays in ((0.001, 0.02), (1e-5, 0.7)):
        ranked = ranked_of({f"x{d}": [Measured(20e6, 0.5, d, 0.0, -d)] * 2 for d in delays})
        made = plots.figure(ranked, "a title")
        made.draw_without_rendering()
        ticks = [tick.get_text() for tick in made.axes[0].get_xticklabels(which="both")]
        told = [text for text in ticks if text]
        assert len(told) >= 3, told
        assert all(float(text) > 0 for text in told)
        every = [text.get_text() for text in made.findobj(Text)]
        assert not [text for text in every if "$" in text or "\\" in text]


def test_the_picture_names_the_table_s_winner_and_shows_what_loses_calls() -> None:
    """The last of a table had the best throughput, and was on a line through the best points."""
    runs = {
        "codel": Measured(6.52e5, 0.7, 0.161, 1.0, -200),
        "near": Measured(4.4e5, 1.0, 0.1, 0.009, -5.01),
        "sfq": Measured(4.3e5, 1.0, 0.2, 0.286, -5),
        "pie": Measured(4.5e5, 0.9, 0.05, 0.01, -6),
    }
    ranked = ranked_of({name: [each] * 2 for name, each in runs.items()})
    axes = plots.figure(ranked, "a title").axes[0]
    lines = {str(each.get_label()): each for each in axes.get_lines()}
    (ring,) = (each for label, each in lines.items() if label.startswith("advice"))
    best = runs[ranked[0].name]
    assert ranked[0].name == "sfq"
    assert np.asarray(ring.get_xydata())[0] == pytest.approx([200, best.throughput / 1e6])
    assert not any("front" in label for label in lines)
    names = [each.get_text() for each in axes.texts]
    assert names == ["sfq, loses 28.6 %", "near", "pie, loses 1 %", "codel, loses 100 %"]
    hollow = {
        round(float(points[0][1]), 3): each.get_markerfacecolor() == "white"
        for each in axes.get_lines()
        if len(points := np.asarray(each.get_xydata())) == 1 and each is not ring
    }
    told = {round(each.throughput / 1e6, 3): each.loss >= 0.01 for each in runs.values()}
    assert hollow == told
