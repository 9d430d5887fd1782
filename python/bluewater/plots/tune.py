"""The picture of `tune`: two objectives, all points of the search, the front and the defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import polars as pl

from bluewater.plots.draw import Drawable, Picture
from bluewater.plots.files import save
from bluewater.plots.style import INK, RC
from bluewater.results.quantities import quantity
from bluewater.study.experiments.plot import Scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bluewater.results.stats import Estimate

_LOOKS = {"tried": (".", "#9aa5b1"), "front": ("o", "#1f6feb"), "defaults": ("*", "#b3261e")}


def write(
    aqm: str,
    metrics: Sequence[str],
    sets: Mapping[str, Sequence[Sequence[Estimate]]],
    path: Path,
) -> None:
    """Draws one objective, or two, of sets of points by name; of all but the tried intervals."""
    shown = [quantity(each) for each in metrics]
    rows = []
    with mpl.rc_context(RC):
        made = Picture(figsize=(7, 5), layout="constrained")
        axes = made.subplots()
        for name, points in sets.items():
            (x, left), (y, up) = (
                (
                    [shown[k].factor * each[k].mean for each in points],
                    [shown[k].factor * (each[k].half_width or 0.0) for each in points],
                )
                for k in (0, -1)
            )
            form, colour = _LOOKS[name]
            bars: dict[str, Any] = (
                {} if name == "tried" else {"yerr": up, "xerr": left, "mec": INK, "ms": 8}
            )
            axes.errorbar(x, y, fmt=form, color=colour, lw=0.9, label=name, **bars)
            rows += [{"x": a, "y": b, "line": name} for a, b in zip(x, y, strict=True)]
        axes.set_xlabel(shown[0].label)
        axes.set_ylabel(shown[-1].label)
        axes.set_title(f"{aqm}: Pareto front, 95 % intervals over seeds", loc="left")
        made.legend(loc="outside lower left", ncols=3)
        save(made, [Drawable(aqm, pl.DataFrame(rows), Scale(shown[-1].label))], path)
