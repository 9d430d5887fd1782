"""The picture of `tune`: two objectives, all points of the search, the front and the defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import polars as pl

from bluewater.plots.draw import Drawable, Picture
from bluewater.plots.files import save
from bluewater.plots.style import INK, RC
from bluewater.results.quantities import quantity
from bluewater.study.experiments.plot import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Protocol

    from matplotlib.figure import Figure

    from bluewater.results.stats import Estimate
    from bluewater.study.search.tune import Objective, Values

    class _Tuned(Protocol):
        @property
        def values(self) -> Values: ...
        def mean(self, objective: int) -> Estimate: ...

    class _Tuning(Protocol):
        @property
        def aqm(self) -> str: ...
        @property
        def objectives(self) -> tuple[Objective, ...]: ...
        @property
        def front(self) -> Sequence[_Tuned]: ...
        @property
        def tried(self) -> Sequence[_Tuned]: ...
        @property
        def defaults(self) -> _Tuned: ...


def write(tuning: _Tuning, path: Path) -> None:
    """Draws the first two objectives, or the only one over its rank."""
    shown = [quantity(each.metric) for each in tuning.objectives[:2]]
    placed = ((0, shown[0]), (len(shown) - 1, shown[-1]))
    sets = {"tried": tuning.tried, "front": tuning.front, "defaults": [tuning.defaults]}
    rows = []
    with mpl.rc_context(RC):
        made: Figure = Picture(figsize=(7, 5), layout="constrained")
        axes = made.subplots()
        for name, points in sets.items():
            xs, ys = ([q.factor * each.mean(k).mean for each in points] for k, q in placed)
            left, up = (
                [q.factor * (each.mean(k).half_width or 0.0) for each in points] for k, q in placed
            )
            if name == "tried":
                axes.plot(xs, ys, "o", color="#9aa5b1", ms=3, label=name)
            else:
                form, colour = ("o", "#1f6feb") if name == "front" else ("*", "#b3261e")
                axes.errorbar(
                    xs, ys, up, left, fmt=form, color=colour, mec=INK, ms=8, lw=0.9, label=name
                )
            rows += [{"x": x, "y": y, "line": name} for x, y in zip(xs, ys, strict=True)]
        axes.set_xlabel(shown[0].label)
        axes.set_ylabel(shown[-1].label)
        axes.set_title(f"{tuning.aqm}: Pareto front, 95 % intervals over seeds", loc="left")
        made.legend(loc="outside lower left", ncols=3)
        save(made, [Drawable(tuning.aqm, pl.DataFrame(rows), Scale(shown[-1].label))], path)
