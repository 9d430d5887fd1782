"""A table of means with intervals, for a terminal, a notebook, a spreadsheet, or a paper."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from bluewater import text
from bluewater.files import check_ending, write_text
from bluewater.results.quantities import quantity
from bluewater.text import tex

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import polars as pl

METRICS = ("loss", "mark_rate", "utilisation", "queue_mean_packets", "delay_p99_s", "jain")
"""The metrics to show, if they were measured."""


FORMATS = (".csv", ".md", ".tex")
"""File endings of the formats of tables."""


@dataclass(frozen=True)
class Column:
    """A column: its head, the unit of its numbers, and their kind."""

    head: str
    unit: str = ""
    kind: Literal["mean", "count", "text"] = "mean"

    @property
    def name(self) -> str:
        """Head and unit in one line."""
        return f"{self.head} ({self.unit})" if self.unit else self.head


@dataclass(frozen=True)
class Mean:
    """A mean over seeds, in the unit of its column.

    Attributes:
        mean: The mean.
        low: The lower end of its 95 % interval; ``None`` with a single seed.
        high: The upper end.
        star: Whether to mark it, such as for a significant difference.
    """

    mean: float
    low: float | None = None
    high: float | None = None
    star: bool = False

    @property
    def texts(self) -> tuple[str, str]:
        """The mean and half the interval with the same decimals; the latter empty with one seed."""
        if self.low is None or self.high is None:
            return text.number(self.mean), ""
        return text.interval(self.mean, max(self.high - self.mean, self.mean - self.low))


Cell: TypeAlias = "str | Mean | None"


@dataclass(frozen=True)
class Overview:
    """A table of texts and means.

    Attributes:
        columns: Its columns; columns of means come last.
        rows: A cell for each column; ``None`` if nothing was measured.
        starred: What a star means; formats for papers have it below the table.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    starred: str = ""

    @classmethod
    def of(
        cls,
        over: pl.DataFrame,
        axes: Sequence[str],
        metrics: Sequence[str] | None = None,
        units: Mapping[str, str] | None = None,
        stars: Collection[tuple[str, ...]] = (),
    ) -> Overview:
        """Makes the table from means over seeds.

        Args:
            over: The means, from :func:`~bluewater.results.aggregate.summarise`.
            axes: Its axes.
            metrics: The metrics to show; by default the most important ones, and the seeds.
            units: The units of the axes that have one.
            stars: The cells to mark: values of the axes, then the metric.
        """
        measured = over["metric"].unique(maintain_order=True).to_list()
        # Formulas and traces have other quantities.
        usual = [name for name in METRICS if name in measured] or measured[: len(METRICS)]
        shown = usual if metrics is None else metrics
        cells: dict[tuple[str, ...], dict[str, Mean]] = {}
        seeds: dict[tuple[str, ...], int] = {}
        for row in over.iter_rows(named=True):
            place = tuple(str(row[name]) for name in axes)
            seeds[place] = max(row["seeds"], seeds.get(place, 0))
            factor = quantity(row["metric"]).factor
            low, high = (None if end is None else factor * end for end in (row["low"], row["high"]))
            star = (*place, row["metric"]) in stars
            cells.setdefault(place, {})[row["metric"]] = Mean(factor * row["mean"], low, high, star)
        names = [Column(axis, (units or {}).get(axis, ""), "text") for axis in axes]
        counted = [] if metrics is not None else [Column("seeds", kind="count")]
        numbers = [Column(each.head, each.unit) for each in map(quantity, shown)]
        return cls(
            [*names, *counted, *numbers],
            [
                [*place, *([str(seeds[place])] if counted else []), *map(found.get, shown)]
                for place, found in cells.items()
            ],
        )

    @property
    def has_intervals(self) -> bool:
        """Whether there are several seeds."""
        return any(
            isinstance(cell, Mean) and cell.low is not None for row in self.rows for cell in row
        )

    @property
    def has_stars(self) -> bool:
        """Whether a number has a star that is explained."""
        cells = (cell for row in self.rows for cell in row)
        return bool(self.starred) and any(isinstance(cell, Mean) and cell.star for cell in cells)

    def write(self, path: Path | str) -> None:
        """Writes it as CSV, Markdown or LaTeX (for ``booktabs``), by the ending of the file.

        Raises:
            InputError: The file has another ending.
        """
        path = Path(path)
        check_ending(path, FORMATS, "a table")
        kinds = zip(FORMATS, (self.csv, self.markdown, self.latex), strict=True)
        write_text(path, dict(kinds)[path.suffix.lower()]())

    def csv(self) -> str:
        """The table with all digits; with several seeds, columns for the ends of the intervals."""
        ends = self.has_intervals
        file = io.StringIO()
        rows = csv.writer(file, lineterminator="\n")
        head: list[str] = []
        for column in self.columns:
            head.append(column.name)
            if ends and column.kind == "mean":
                head += [
                    Column(f"{column.head} {end}", column.unit).name for end in ("low", "high")
                ]
        rows.writerow(head)
        for row in self.rows:
            out: list[object] = []
            for column, cell in zip(self.columns, row, strict=True):
                found = [cell.mean, cell.low, cell.high] if isinstance(cell, Mean) else [cell] * 3
                # The last digits of a product of floats are rounding error.
                digits = [float(f"{x:.12g}") if isinstance(x, float) else x for x in found]
                out += digits if ends and column.kind == "mean" else digits[:1]
            rows.writerow(out)
        return file.getvalue()

    def markdown(self) -> str:
        """The table in GitHub's Markdown, without aligned pipes."""

        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(each.replace("|", r"\|") for each in cells) + " |\n"

        sides = ["---" if column.kind == "text" else "---:" for column in self.columns]
        body = (line([_plain(cell) for cell in row]) for row in self.rows)
        note = f"\n\\* {self.starred}\n" if self.has_stars else ""
        return line([column.name for column in self.columns]) + line(sides) + "".join(body) + note

    def latex(self) -> str:
        """A LaTeX ``tabular`` with the rules of ``booktabs``; units are in a second head line."""

        def line(cells: Sequence[str]) -> str:
            return "  " + " & ".join(cells) + r" \\" + "\n"

        sides = "".join("l" if column.kind == "text" else "r" for column in self.columns)
        units = [f"({tex(column.unit)})" if column.unit else "" for column in self.columns]
        note = ""
        if self.has_stars:
            told = rf"\footnotesize $^{{*}}$ {tex(self.starred)}"
            note = f"  \\multicolumn{{{len(self.columns)}}}{{l}}{{{told}}}\n"
        about = "mean over seeds and half its 95 % t-interval; " if self.has_intervals else ""
        return (
            f"% {about}needs \\usepackage{{booktabs}}\n"
            f"\\begin{{tabular}}{{{sides}}}\n  \\toprule\n"
            + line([tex(column.head) for column in self.columns])
            + (line(units) if any(units) else "")
            + "  \\midrule\n"
            + "".join(line([_tex_cell(cell) for cell in row]) for row in self.rows)
            + f"  \\bottomrule\n{note}\\end{{tabular}}\n"
        )

    def html(self) -> str:
        """The table as HTML, for a notebook."""

        def row(tag: str, cells: Sequence[str]) -> str:
            return "".join(
                f"<{tag} style='text-align:{'left' if column.kind == 'text' else 'right'}'>"
                f"{escape(cell)}</{tag}>"
                for column, cell in zip(self.columns, cells, strict=True)
            )

        head = row("th", [column.name for column in self.columns])
        body = "".join(f"<tr>{row('td', list(map(_plain, cells)))}</tr>" for cells in self.rows)
        note = f"<p>* {escape(self.starred)}</p>" if self.has_stars else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _plain(cell: Cell) -> str:
    if not isinstance(cell, Mean):
        return text.number(None) if cell is None else cell
    mean, half = cell.texts
    return (f"{mean} ± {half}" if half else mean) + ("*" if cell.star else "")


def _tex_cell(cell: Cell) -> str:
    if not isinstance(cell, Mean):
        return "--" if cell is None else tex(cell)
    mean, half = cell.texts
    star = "^{*}" if cell.star else ""
    return f"${mean} \\pm {half}{star}$" if half else f"${mean}{star}$"
