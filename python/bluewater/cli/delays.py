"""The table of delays of `compare` and `advise`: in the queue, from end to end, and round trips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer
from rich.table import Table

from bluewater.study.comparison.delays import KINDS, QUANTILES
from bluewater.text import number

if TYPE_CHECKING:
    from pathlib import Path

Delays = Annotated[
    bool,
    typer.Option(
        "--delays",
        help="Also show one-way delays and round trips beside those in the queue, by group, as a "
        "table and a picture.",
    ),
]


def shown(delays: pl.DataFrame) -> Table:
    """The table: a row per discipline and group, a column per kind of delay, means over seeds."""
    made = Table(box=None, padding=(0, 1), header_style="bold")
    made.add_column(f"delay {', '.join(QUANTILES)}", style="cyan", no_wrap=True)
    several = delays["group"].n_unique() > 1
    if several:
        made.add_column("of")
    for title in KINDS.values():
        made.add_column(title, justify="right")
    means = delays.group_by("name", "group", "kind", maintain_order=True).mean()
    told = {row[:3]: row[4:] for row in means.iter_rows()}
    for name, group in means.select("name", "group").unique(maintain_order=True).iter_rows():
        cells = (_cell(told.get((name, group, kind))) for kind in KINDS)
        made.add_row(name, *([group] if several else []), *cells)
    return made


def _cell(quantiles: tuple[float, ...] | None) -> str:
    if quantiles is None:
        return number(None)
    return f"{', '.join(number(1e3 * each) for each in quantiles)} ms"


def picture(title: str, delays: pl.DataFrame, stem: Path, size: str | None = None) -> Path:
    """Draws the delays; returns the first file, the PNG if the name has no ending."""
    from bluewater.plots.delays import figure  # noqa: PLC0415 - matplotlib takes long
    from bluewater.plots.files import save  # noqa: PLC0415

    made, panels = figure(title, delays, size)
    return save(made, panels, stem)[0]
