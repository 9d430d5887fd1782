"""What a picture says of its claims, and how it fits what it is shown on."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.markers import CARETDOWNBASE, CARETLEFTBASE, CARETRIGHTBASE, CARETUPBASE

from bluewater.errors import InputError
from bluewater.plots.draw import Drawable, draw
from bluewater.plots.experiment import told
from bluewater.plots.files import inline_svg, save
from bluewater.plots.marks import Mark
from bluewater.plots.names import MARK
from bluewater.plots.run import _in_sight
from bluewater.plots.style import looks
from bluewater.results.stats import estimate
from bluewater.study.experiments import experiment
from bluewater.study.experiments.claims import Claim, Finding, Measured, Verdict
from bluewater.study.experiments.plot import Plot, Scale

EXPERIMENTS = [experiment.load(name) for name in experiment.known()]


def measured(claim: Claim) -> Finding:
    """A claim as if 12.5 had been measured."""
    found = Measured("standard", estimate([12.5]), Verdict.REPRODUCED, {1: 12.5})
    return Finding(claim, [found], Verdict.REPRODUCED, (), provisional=True)


@pytest.mark.parametrize("made", EXPERIMENTS, ids=lambda made: made.id)
def test_every_plot_and_table_shows_its_claims(made: experiment.Experiment) -> None:
    """Each stands at one; below it, what it says and what was measured."""
    shown: list[Plot | experiment.Sheet] = [*made.plots, *made.sheets]
    findings = [measured(claim) for claim in made.claims]
    for finding in findings:
        if made.id.startswith("bbr/") and not finding.claim.plot:
            continue  # of one phase, which a plot of the whole run does not show
        assert finding.claim.plot in {each.id for each in shown}, finding.claim.id
    for each in shown:
        lines = told(each, findings)
        own = [claim for claim in made.claims if claim.plot == each.id]
        assert [line.finding.claim for line in lines] == own
        for claim, line in zip(own, lines, strict=True):
            text = line.text.replace("\N{NO-BREAK SPACE}", " ")
            assert claim.text in text
            assert f"Bound: {claim.holds.told}" in text
            assert "Measured: 12.5" in text
            assert (f"Paper: {claim.paper}." in text) is (claim.origin == "paper")


def test_a_claim_of_a_plot_that_is_not_there_is_refused() -> None:
    text = (experiment.root() / "feng" / "fig16.toml").read_text("utf-8")
    with pytest.raises(InputError, match="unknown plot"):
        experiment.parse(text.replace('plot = "flows"', 'plot = "flow"'), "x.toml", "feng/fig16")


def test_the_measured_number_is_of_the_reading_that_is_drawn() -> None:
    (made,) = (each for each in EXPERIMENTS if each.id == "feng/fig13-simulated")
    (plot,) = (each for each in made.plots if each.id == "loss-altq")
    (claim,) = (each for each in made.claims if each.plot == plot.id)
    readings = [
        Measured(name, estimate([value]), Verdict.REPRODUCED, {1: value})
        for name, value in (("standard", 1.0), (plot.reading, 7.0))
    ]
    (line,) = told(plot, [Finding(claim, readings, Verdict.STATED, (), provisional=True)])
    assert "Measured: 7\N{NO-BREAK SPACE}" in line.text


def points(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame(columns)


LINES = points(
    x=[1.0, 2.0, 4.0] * 2, y=[10.0, 20.0, 40.0, 1.0, 2.0, 4.0], line=["RED"] * 3 + ["BLUE"] * 3
)


def drawn(mark: Mark, kind: str = "spread", data: pl.DataFrame = LINES) -> Any:
    figure = draw("t", kind, Scale("x"), [Drawable("p", data, Scale("y"), (mark,))], 1, "none")
    return figure.axes[0]


def curves(axes: Any) -> list[list[tuple[float, float]]]:
    """The dashed lines of a panel."""
    return [
        [(float(x), float(y)) for x, y in zip(*line.get_data(), strict=True)]
        for line in axes.get_lines()
        if line._unscaled_dash_pattern == (0, (5, 3))
    ]


@pytest.mark.parametrize(
    ("of", "by", "low", "high", "expected"),
    [
        ("RED", "times", -math.inf, 0.5, [[5.0, 10.0, 20.0]]),
        ("RED", "less", 25.0, math.inf, [[7.5, 15.0, 30.0]]),
        ("RED", "within", -math.inf, 1.0, [[9.0, 19.0, 39.0], [11.0, 21.0, 41.0]]),
        ("RED", "percent", -math.inf, 10.0, [[9.0, 18.0, 36.0], [11.0, 22.0, 44.0]]),
        ("RED", "after", 2.0, 3.0, [[12.0, 22.0, 42.0], [13.0, 23.0, 43.0]]),
    ],
)
def test_a_bound_lies_along_a_line(
    of: str, by: Any, low: float, high: float, expected: list[list[float]]
) -> None:
    found = curves(drawn(Mark("a", low, high, of=of, by=by)))
    assert [[x for x, _ in each] for each in found] == [[1.0, 2.0, 4.0]] * len(expected)
    assert [[y for _, y in each] for each in found] == [pytest.approx(each) for each in expected]


def test_a_bound_may_hold_for_a_stretch_or_beside_a_number() -> None:
    (line,) = curves(drawn(Mark("a", -math.inf, 0.5, x=(1.0, 2.0), of=4.0)))
    assert line == [(1.0, 2.0), (2.0, 2.0)]
    low, high = curves(drawn(Mark("a", -math.inf, 15.0, x=(1.0, 4.0), of=20.0, by="percent")))
    assert (low[0][1], high[0][1]) == pytest.approx((17.0, 23.0))
    (line,) = curves(drawn(Mark("a", -math.inf, 0.5, x=(2.0, 4.0), of="RED")))
    assert line == [(2.0, 10.0), (4.0, 20.0)]


def test_a_bound_may_be_on_the_x_axis() -> None:
    axes = drawn(Mark("a", 1.0, 2.0, upright=True, of=1.5, by="after", paper=3.0))
    assert [[x for x, _ in line] for line in curves(axes)] == [[2.5, 2.5], [3.5, 3.5]]
    (name,) = (text for text in axes.texts if text.get_text() == "(a)")
    assert name.get_window_extent().y0 >= axes.get_window_extent().y1


def test_an_arrow_is_at_its_bar() -> None:
    bars = points(x=["a", "b"] * 2, y=[8.0, 4.0, 1.0, 2.0], line=["RED"] * 2 + ["BLUE"] * 2)
    axes = drawn(Mark("c", 25.0, math.inf, x="b", of="RED", by="less"), "bars", bars)
    ((x, y),) = [line.get_xydata()[0] for line in axes.get_lines() if line.get_gid() == MARK]
    assert (x, y) == (3.0, 1.5)  # a quarter less than 4, at the second group


def test_names_beside_a_picture_do_not_stand_on_each_other() -> None:
    marks = tuple(Mark(name, -math.inf, high) for name, high in (("a", 20), ("b", 20.1), ("c", 20)))
    figure = draw("t", "spread", Scale("x"), [Drawable("p", LINES, Scale("y"), marks)], 1, "none")
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == 3
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    right = figure.axes[0].get_window_extent().x1
    assert all(box.x0 >= right for box in boxes)


def test_no_name_stands_beside_a_bound_that_is_out_of_sight() -> None:
    panel = Drawable("p", LINES, Scale("y", high=30), (Mark("a", -math.inf, 90),))
    figure = draw("t", "spread", Scale("x"), [panel], 1, "none")
    assert [text.get_visible() for text in figure.axes[0].texts] == [False]


def test_the_lines_below_are_in_the_file_and_beside_the_picture_on_the_page(tmp_path: Path) -> None:
    panel = Drawable("p", LINES, Scale("y"))
    lines = [f"({name}) " + "nobody loses, " * 20 + "at all." for name in "ab"]
    figure = draw("t", "spread", Scale("x"), [panel], 1, "none", lines)
    save(figure, [panel], tmp_path / "x", ("svg",))
    whole = (tmp_path / "x.svg").read_text()
    assert "(a) nobody loses" in whole
    assert "(b) nobody loses" in whole
    (told_,) = (text for text in figure.texts if text.get_text().startswith("(a)"))
    (legend,) = figure.legends
    assert told_.get_window_extent().y1 <= legend.get_window_extent().y0
    assert told_.get_window_extent().y0 >= 0
    assert told_.get_window_extent().x1 <= figure.bbox.x1
    shown = inline_svg(tmp_path / "x.svg", "t", figure.parts.foot)
    assert "nobody" not in shown
    high = [
        float(re.findall(r'viewBox="0 0 [0-9.]+ ([0-9.]+)"', text)[0]) for text in (whole, shown)
    ]
    assert high[0] - high[1] == pytest.approx(figure.parts.foot)


def test_each_panel_can_stand_alone() -> None:
    """On a phone it does: it has its labels, and its box holds it."""
    panels = [Drawable(name, LINES, Scale("y")) for name in ("one", "two", "three")]
    figure = draw("t", "spread", Scale("x"), panels, 2, "all")
    figure.draw_without_rendering()
    for axes, (left, upper, width, height) in zip(figure.axes, figure.parts.boxes, strict=True):
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "y")
        assert any(label.get_visible() and label.get_text() for label in axes.get_yticklabels())
        assert any(label.get_visible() and label.get_text() for label in axes.get_xticklabels())
        box = axes.get_window_extent()
        scale = 72 / figure.dpi
        assert left <= scale * box.x0
        assert left + width >= scale * box.x1
        assert upper <= 72 * figure.get_figheight() - scale * box.y1
        assert upper + height >= 72 * figure.get_figheight() - scale * box.y0
    assert [name for name, _ in figure.parts.keys] == ["RED", "BLUE"]


def test_a_trace_has_a_gap_where_nothing_was_measured() -> None:
    points = pl.DataFrame({"x": [0.0, 1, 2, 3, 4], "y": [12.0, 11, None, 5, None]})
    figure = draw("t", "trace", Scale("x"), [Drawable("delay", points, Scale("y"))], 1, "none")
    line, alone = figure.axes[0].lines
    drawn = np.asarray(line.get_ydata(), dtype=float).tolist()
    assert [y for y in drawn if not math.isnan(y)] == [12, 11, 5]
    assert math.isnan(drawn[2])
    assert (np.asarray(alone.get_xdata()).tolist(), alone.get_marker()) == ([3], ".")


def test_panels_of_a_paper_share_their_labels() -> None:
    points = pl.DataFrame({"x": [0.0, 1], "y": [1.0, 2]})
    panels = [Drawable(name, points, Scale("y")) for name in ("one", "two", "three", "four")]
    figure = draw("t", "trace", Scale("x"), panels, 4, "none", size="column", narrow=2)
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "x", "x"]
    assert figure.get_figheight() <= 4


def test_titles_are_not_cut() -> None:
    long = "a-discipline-of-a-long-name: loss 0.123 %, delay 12.3 ms, and some more of it"
    panels = [Drawable(long, LINES, Scale("y")) for _ in range(3)]
    figure = draw(f"{long}, {long}, {long}", "spread", Scale("x"), panels, 3, "none")
    for title in (figure._suptitle, *(axes._left_title for axes in figure.axes)):  # type: ignore[attr-defined]
        assert title.get_window_extent().x1 <= figure.bbox.x1
    boxes = [axes._left_title.get_window_extent() for axes in figure.axes]  # type: ignore[attr-defined]
    assert not boxes[0].overlaps(boxes[1])


def test_thirty_lines_are_told_apart() -> None:
    names = [f"queue {k}" for k in range(24)] + ["RED", "BLUE", "droptail", "R1", "R5", "B4"]
    found = looks(names)
    assert list(found) == names
    assert len({(each.colour, each.dash) for each in found.values()}) == len(names)


def test_a_legend_that_repeats_the_titles_is_left_out() -> None:
    panels = [
        Drawable(f"{name}: loss", LINES.filter(pl.col("line") == name), Scale("y"))
        for name in ("RED", "BLUE")
    ]
    assert not draw("t", "trace", Scale("x"), panels, 2, "none").legends


@pytest.mark.parametrize("kind", ["spread", "trace", "scatter", "bars"])
@pytest.mark.parametrize("of", ["x", "y"])
def test_lines_without_a_number_say_so(kind: str, of: str) -> None:
    empty = LINES.with_columns(pl.lit(None, pl.Float64).alias(of))
    figure = draw("t", kind, Scale("x"), [Drawable("p", empty, Scale("y"))], 1, "none")
    assert [text.get_text() for text in figure.axes[0].texts] == ["nothing to show"]
    assert not figure.legends
    assert not figure.parts.keys


def test_a_small_probability_is_not_pressed_to_the_ground() -> None:
    panels = [
        Drawable(str(high), points(x=[0, 1], y=[0.0, high]), Scale("p", low=0))
        for high in (1.0, 0.06, 0.5, 0.05)
    ]
    ends = [panel.y.high for panel in _in_sight(panels)]
    assert ends == pytest.approx([1.05, 0.063, 1.05, 0.063])


def test_every_bar_has_its_value() -> None:
    data = points(x=[f"group {k}" for k in range(70)], y=[k + 0.5 for k in range(70)])
    axes = drawn(Mark("a", 1.0, 2.0), "bars", data)
    assert {f"{k + 0.5:g}" for k in range(70)} <= {text.get_text() for text in axes.texts}


@pytest.mark.parametrize("wrong", ['by = "twice"', 'by = "after"', 'axis = "x", of = "SFB"'])
def test_a_wrong_comparison_is_refused(wrong: str) -> None:
    text = (experiment.root() / "feng" / "fig16.toml").read_text("utf-8")
    with pytest.raises(InputError):
        experiment.parse(text.replace("scale = 0.00112219", wrong), "x.toml", "feng/fig16")


def test_a_panel_of_few_flows_is_not_lost_beside_one_of_many() -> None:
    panels = [Drawable(str(most), points(x=[0, most], y=[0, 1]), Scale("y")) for most in (900, 200)]
    figure = draw("t", "spread", Scale("x"), panels, 2, "all")
    assert figure.axes[1].get_xlim()[1] < 250


def test_large_numbers_leave_the_title_alone() -> None:
    data = points(x=[0, 1], y=[0.0, 3e7])
    figure = draw("t", "spread", Scale("x"), [Drawable("p", data, Scale("bit/s"))], 1, "none")
    figure.draw_without_rendering()
    assert "30M" in {label.get_text() for label in figure.axes[0].get_yticklabels()}
    assert figure.axes[0].yaxis.get_offset_text().get_text() == ""


def test_a_log_axis_of_many_decades_has_its_numbers() -> None:
    scale = Scale("y", "log", 1e-12, 1)
    data = points(x=[0, 1], y=[1e-9, 0.5])
    figure = draw("t", "spread", Scale("x"), [Drawable("p", data, scale)], 1, "none")
    figure.draw_without_rendering()
    low, high = figure.axes[0].get_ylim()
    shown = [label for label in figure.axes[0].get_yticklabels() if label.get_text()]
    assert sum(low <= label.get_position()[1] <= high for label in shown) >= 3


def test_no_two_lines_have_nearly_the_same_colour() -> None:
    names = ["RED", "RED-PD", "test", "BLUE", "SFB", "drop-front", "one", "two", "three"]
    shown = [(look.colour, str(look.dash)) for look in looks(names).values()]
    for (one, first), (other, second) in itertools.combinations(shown, 2):
        channels = [[int(each[at : at + 2], 16) for at in (1, 3, 5)] for each in (one, other)]
        assert first != second or math.dist(*channels) > 40, (one, other)


@pytest.mark.parametrize(
    ("low", "high", "upright", "caret"),
    [
        (0.5, math.inf, False, CARETUPBASE),
        (-math.inf, 0.5, False, CARETDOWNBASE),
        (0.5, math.inf, True, CARETRIGHTBASE),
        (-math.inf, 0.5, True, CARETLEFTBASE),
        (0.4, 0.5, False, None),
    ],
)
def test_an_open_bound_says_on_which_side_it_holds(
    low: float, high: float, upright: bool, caret: Any
) -> None:
    points = pl.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]})
    for x, of in ((None, 1.0), ((0.0, 1.0), 1.0), (None, "base")):
        if upright and (x, of) != (None, 1.0):
            continue
        own = points.with_columns(line=pl.lit("base"))
        mark = Mark("a", low, high, x, upright=upright, of=of)
        panel = Drawable("", own, Scale("y"), (mark,))
        (axes,) = draw("", "spread", Scale("x"), [panel], 1, "none").axes
        carets = {line.get_marker() for line in axes.lines} - {"None", "o"}
        assert carets == (set() if caret is None else {caret}), (x, of)
