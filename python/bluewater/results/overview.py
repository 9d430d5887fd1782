"""The runs of a sweep at a glance: a row a cell, with means over its seeds."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from bluewater import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

METRICS = ("loss", "mark_rate", "utilisation", "queue_mean_packets", "delay_p99_s", "jain")
"""The metrics that are shown where they were measured."""


class Overview(NamedTuple):
    """Texts in columns: the axes, ``seeds``, then metrics with half their 95 % intervals."""

    axes: int
    columns: list[str]
    rows: list[list[str]]

    @classmethod
    def of(cls, over: pl.DataFrame, axes: Sequence[str]) -> Overview:
        """That of means over seeds, as :func:`~bluewater.results.aggregate.summarise` gives."""
        measured = over["metric"].unique(maintain_order=True).to_list()
        # Formulas and traces have other quantities.
        shown = [name for name in METRICS if name in measured] or measured[: len(METRICS)]
        cells: dict[tuple[str, ...], dict[str, str]] = {}
        seeds: dict[tuple[str, ...], int] = {}
        for row in over.iter_rows(named=True):
            place = tuple(str(row[name]) for name in axes)
            seeds[place] = row["seeds"]
            cells.setdefault(place, {})[row["metric"]] = text.summarised(row, 1, "")
        rows = [
            [*place, str(seeds[place]), *(values.get(name, "–") for name in shown)]
            for place, values in cells.items()
        ]
        return cls(len(axes), [*axes, "seeds", *shown], rows)

    def html(self) -> str:
        """A table for a notebook."""

        def row(tag: str, cells: Sequence[str]) -> str:
            sides = ["left"] * self.axes + ["right"] * (len(cells) - self.axes)
            return "".join(
                f"<{tag} style='text-align:{side}'>{escape(cell)}</{tag}>"
                for side, cell in zip(sides, cells, strict=True)
            )

        body = "".join(f"<tr>{row('td', cells)}</tr>" for cells in self.rows)
        return (
            f"<table><thead><tr>{row('th', self.columns)}</tr></thead><tbody>{body}</tbody></table>"
        )
