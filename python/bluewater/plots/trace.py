"""Pictures of a capture, drawn as those of the experiment ``redpd/fig3-5``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from bluewater.files import PACKAGE, read_text
from bluewater.plots.draw import draw
from bluewater.plots.experiment import drawables
from bluewater.plots.files import save
from bluewater.results.tables import Frames
from bluewater.study.experiments import experiment

if TYPE_CHECKING:
    from pathlib import Path

    from bluewater.trace import Trace

_FILE = PACKAGE / "experiments" / "redpd" / "fig3-5.toml"


def draw_all(found: Trace, folder: Path) -> list[Path]:
    """Draws every picture into the folder; returns the written paths."""
    tables = Frames(
        {
            "skew": found.skew.with_columns(seed=pl.lit(1)),
            "persistence": found.persistence.with_columns(seed=pl.lit(1)),
        }
    )
    file = str(_FILE)
    written = []
    for plot in experiment.parse(read_text(_FILE), file, "redpd/fig3-5").plots:
        panels = drawables(plot, tables, file)
        figure = draw(plot.title, plot.kind, plot.x, panels, plot.in_a_row, plot.sharing)
        written += save(figure, panels, folder / plot.id)
    return written
