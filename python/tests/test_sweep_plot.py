"""Pictures of a sweep pool nothing but seeds, or say what else they pool."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from bluewater.errors import InputError
from bluewater.plots.style import Look
from bluewater.plots.sweep import KINDS, _region, draw


@dataclass
class Runs:
    """Three axes, of which each moves the delay; the seed hardly does."""

    name: str = "sweep"
    axes: tuple[str, ...] = ("aqm", "buffer", "flows")
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def runs(self) -> pl.DataFrame:
        cells = itertools.product(("red", "codel"), ("50p", "100p"), (5, 40), (1, 2))
        return pl.DataFrame(
            [
                {
                    "aqm": aqm,
                    "buffer": buffer,
                    "flows": flows,
                    "seed": seed,
                    "delay_mean_s": flows + 10.0 * (buffer == "100p") + 0.1 * seed,
                    "loss": 0.01 * seed,
                }
                for aqm, buffer, flows, seed in cells
            ]
        )


def drawn(kind: str, line: Any = None, path: Path | None = None, runs: Any = None) -> Any:
    x = {"ellipse": "loss", "cdf": None}.get(kind, "flows")
    return draw(runs or Runs(), "delay_mean_s", x, line, kind, path)


@pytest.mark.parametrize("kind", KINDS)
def test_an_axis_that_is_left_is_not_pooled(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="would pool runs") as error:
        drawn(kind, "aqm", tmp_path / "none")
    assert error.value.key == "line"
    assert "buffer" in str(error.value)
    assert "flows" not in error.value.problem or kind in ("cdf", "ellipse")
    assert error.value.hint is not None
    assert error.value.hint.startswith("line = ('aqm', 'buffer'")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_every_combination_has_its_line(kind: str, tmp_path: Path) -> None:
    drawn(kind, path=tmp_path / "all")
    points = pl.read_csv(tmp_path / "all.csv")
    assert set(points.columns) >= {"aqm", "buffer", "flows", "seed"}
    cells = ["line"] if kind in ("cdf", "ellipse") else ["line", "x"]
    assert points.group_by(cells).len()["len"].unique().to_list() == [2]
    assert "red, 50p" in points["line"][0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_metric_without_a_number_says_so(kind: str) -> None:
    class Silent(Runs):
        @property
        def runs(self) -> pl.DataFrame:
            return super().runs.with_columns(pl.lit(None, pl.Float64).alias("delay_mean_s"))

    figure = drawn(kind, ("aqm", "buffer", "flows"), runs=Silent())
    assert "nothing to show" in [text.get_text() for text in figure.axes[0].texts]


def test_the_band_is_that_of_the_seeds() -> None:
    figure = drawn("lines", ("aqm", "buffer"))
    (axes,) = figure.axes
    bands = [each.get_paths()[0].vertices[:, 1] for each in axes.collections]
    assert len(bands) == 4
    # Two seeds 0.1 s apart: 0.05 · 12.706 to each side of the mean at both loads, in ms.
    for band in bands:
        sides = [np.ptp(band[abs(band - middle) < 3e3]) for middle in (band.min(), band.max())]
        assert sides == pytest.approx([2 * 12.706 * 50] * 2, rel=1e-3)
    names = set(texts(figure))
    assert names == {"red, 50p", "red, 100p", "codel, 50p", "codel, 100p"}


def test_an_axis_with_one_point_is_in_no_label() -> None:
    class One(Runs):
        @property
        def runs(self) -> pl.DataFrame:
            return super().runs.filter(pl.col("buffer") == "50p")

    (axes,) = drawn("lines", "aqm", runs=One()).axes
    assert len(axes.lines) == 2
    assert set(texts(drawn("lines", runs=One()))) == {"red", "codel"}


def test_readings_are_not_pooled() -> None:
    class Read(Runs):
        @property
        def runs(self) -> pl.DataFrame:
            return super().runs.with_columns(reading=pl.col("buffer")).drop("buffer")

    two = Read(axes=("aqm", "flows"))
    with pytest.raises(InputError, match="reading"):
        drawn("lines", "aqm", runs=two)
    (axes,) = drawn("lines", runs=two).axes
    assert len(axes.lines) == 4


def test_a_distribution_begins_at_none() -> None:
    (axes,) = drawn("cdf").axes
    for each in axes.lines:
        assert list(each.get_ydata()) == [0, 0.5, 1]
        assert each.get_xdata()[0] == each.get_xdata()[1]


@dataclass
class Named(Runs):
    """Thirty disciplines at three buffers, whose names are what somebody made of them."""

    names: tuple[str, ...] = tuple(f"name{number}" for number in range(30))
    axes: tuple[str, ...] = ("aqm", "buffer")

    @property
    def runs(self) -> pl.DataFrame:
        cells = itertools.product(self.names, ("20p", "50p", "100p"), (1, 2))
        return pl.DataFrame(
            [
                {"aqm": aqm, "buffer": buffer, "seed": seed, "delay_p99_s": 0.01 * seed**8}
                for aqm, buffer, seed in cells
            ]
        )


def texts(figure: Any) -> list[str]:
    legends = [each for each in (figure.axes[0].get_legend(), *figure.legends) if each]
    return [text.get_text() for legend in legends for text in legend.get_texts()]


@pytest.mark.parametrize("kind", ["lines", "box"])
def test_thirty_names_leave_the_axes_their_room(kind: str) -> None:
    figure = draw(Named(), "delay_p99_s", "buffer", "aqm", kind, None)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert sorted(texts(figure)) == sorted(Named().names)
    width = figure.get_figwidth()
    box = axes.get_window_extent()
    assert box.width > 0.8 * width * figure.dpi
    assert box.height / figure.dpi > 2.5
    (legend,) = figure.legends
    around, whole, labelled = legend.get_window_extent(), figure.bbox, axes.get_tightbbox()
    assert labelled is not None
    assert around.y1 < labelled.y0, "below the axes and their labels"
    assert min(around.x0, around.y0) >= 0
    assert around.x1 <= whole.x1
    assert axes.yaxis.label.get_window_extent().y1 <= whole.y1
    if kind == "lines":
        looks = {(line.get_color(), line.get_marker(), str(vars(line)["_unscaled_dash_pattern"]))
                 for line in axes.lines}  # fmt: skip
        assert len(looks) == 30
        assert len({line.get_marker() for line in axes.lines}) > 5


def test_names_along_x_are_readable_and_not_joined() -> None:
    figure = draw(Named(), "delay_p99_s", "aqm", "buffer", "lines", None)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    boxes = [each.get_window_extent() for each in axes.get_xticklabels()]
    apart = [right.x0 - left.x1 for left, right in itertools.pairwise(boxes)]
    assert min(apart) >= 0, "no label stands on another"
    assert {line.get_linestyle() for line in axes.lines} == {"None"}
    joined = draw(Named(), "delay_p99_s", "buffer", "aqm", "lines", None)
    assert {line.get_linestyle() for line in joined.axes[0].lines} != {"None"}


def test_no_delay_is_drawn_below_zero() -> None:
    (axes,) = draw(Named(), "delay_p99_s", "buffer", "aqm", "lines", None).axes
    paths: list[Any] = [each.get_paths()[0] for each in axes.collections]
    bands = np.concatenate([path.vertices[:, 1] for path in paths])
    assert bands.min() == 0
    assert bands.max() > 10_000, "to the other side it is as wide as it is"


@pytest.mark.parametrize("name", ["_hidden", "$x_1$", r"$\frac{$", "a$b"])
def test_a_name_is_written_as_it_is(name: str, tmp_path: Path) -> None:
    runs = Named(names=(name, "other"))
    figure = draw(runs, "delay_p99_s", "buffer", "aqm", "lines", tmp_path / "odd.svg")
    shown = [each.strip("\N{ZERO WIDTH SPACE}") for each in texts(figure)]
    assert sorted(shown) == sorted([name, "other"])
    assert name in (tmp_path / "odd.svg").read_text().replace("\N{ZERO WIDTH SPACE}", "")
    draw(runs, "delay_p99_s", "aqm", "buffer", "lines", tmp_path / "along")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "width"), [("column", 3.5), ("page", 7.16)])
def test_a_figure_for_a_paper_fits_its_column(kind: str, size: str, width: float) -> None:
    figure = draw(Runs(), "delay_mean_s", *axes_of(kind), kind, None, size)
    figure.draw_without_rendering()
    assert figure.get_figwidth() == pytest.approx(width)
    assert 1.5 < figure.get_figheight() < 5
    assert figure._suptitle is None  # type: ignore[attr-defined]
    axes = figure.axes[0]
    around = axes.get_tightbbox()
    assert around is not None
    assert min(around.x0, around.y0) >= -1
    assert around.x1 <= figure.bbox.x1 + 1
    assert axes.get_window_extent().height / figure.dpi > 0.9
    for legend in figure.legends:
        assert legend.get_window_extent().y1 <= around.y0 + 1, "it covers nothing"
    assert all(float(text.get_fontsize()) >= 7 for text in axes.get_xticklabels())


def axes_of(kind: str) -> tuple[str | None, None]:
    return {"ellipse": "loss", "cdf": None}.get(kind, "flows"), None


def test_axes_are_in_units_that_are_read() -> None:
    (axes,) = draw(Runs(), "delay_mean_s", "loss", None, "ellipse", None).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Loss (%)", "Mean delay (ms)")
    low, high = axes.get_xlim()
    assert low < 1 < high < 4, "seeds lose 1 and 2 %"


def test_a_comparison_has_no_power_over_its_title() -> None:
    figure = draw(Runs(name="compare"), "delay_mean_s", "flows", None, "lines", None)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert axes.get_title() == ""
    assert axes.yaxis.get_offset_text().get_text() == ""


@dataclass
class Normal(Runs):
    """Ten runs a discipline, of two normal variables."""

    axes: tuple[str, ...] = ("aqm",)
    seed: int = 0

    @property
    def runs(self) -> pl.DataFrame:
        random = np.random.default_rng(self.seed)
        x, y = random.multivariate_normal([0.3, 0.05], [[1e-3, 4e-4], [4e-4, 5e-4]], 10).T
        return pl.DataFrame({"aqm": ["red"] * 10, "seed": range(10), "loss": x, "delay_mean_s": y})


def test_the_ellipse_holds_the_mean_in_95_of_100_cases() -> None:
    """Of 400, 380 are expected, with a standard deviation of 4.4."""
    held = 0
    for seed in range(400):
        own = Normal(seed=seed).runs.select(x=100 * pl.col("loss"), y=1e3 * pl.col("delay_mean_s"))
        region = _region(own.to_numpy(), Look("#000000", "o"))
        held += (
            region.get_patch_transform().inverted().transform([30.0, 50.0])
            @ (region.get_patch_transform().inverted().transform([30.0, 50.0]))
            <= 1
        )
    assert 365 <= held <= 394
    (axes,) = draw(Normal(), "delay_mean_s", "loss", None, "ellipse", None).axes
    legend = axes.get_legend()
    assert legend is not None
    assert "95 % confidence region of the mean" in {text.get_text() for text in legend.get_texts()}


@pytest.mark.parametrize(("kind", "x", "line"), [("lines", "buffer", "aqm"), ("cdf", None, None)])
def test_lines_are_told_apart_without_colour(kind: str, x: str | None, line: str | None) -> None:
    runs = Named(names=tuple("abcdefghi"))
    (axes,) = draw(runs, "delay_p99_s", x, line, kind, None).axes
    looks = {(each.get_marker(), str(vars(each)["_unscaled_dash_pattern"])) for each in axes.lines}
    assert len(looks) == len(axes.lines) >= 9
