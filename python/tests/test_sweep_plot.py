"""Pictures of a sweep pool nothing but seeds, unless the reader is told."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from bluewater.errors import InputError
from bluewater.plots.sweep import KINDS, draw


@dataclass
class Runs:
    """Three axes, of which each moves the delay; the seed hardly does."""

    name: str = "sweep"
    axes: tuple[str, ...] = ("aqm", "buffer", "flows")

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
    with pytest.raises(InputError, match="would be thrown together") as error:
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


def test_the_band_is_that_of_the_seeds() -> None:
    figure = drawn("lines", ("aqm", "buffer"))
    (axes,) = figure.axes
    bands = [each.get_paths()[0].vertices[:, 1] for each in axes.collections]
    assert len(bands) == 4
    # Two seeds 0.1 apart: 0.05 · 12.706 to each side of the mean at both loads.
    for band in bands:
        sides = [np.ptp(band[abs(band - middle) < 3]) for middle in (band.min(), band.max())]
        assert sides == pytest.approx([2 * 12.706 * 0.05] * 2, rel=1e-3)
    names = {text.get_text() for text in axes.get_legend().get_texts()}
    assert names == {"red, 50p", "red, 100p", "codel, 50p", "codel, 100p"}


def test_an_axis_with_one_point_is_in_no_label() -> None:
    class One(Runs):
        @property
        def runs(self) -> pl.DataFrame:
            return super().runs.filter(pl.col("buffer") == "50p")

    (axes,) = drawn("lines", "aqm", runs=One()).axes
    assert len(axes.lines) == 2
    (axes,) = drawn("lines", runs=One()).axes
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"red", "codel"}


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
