"""Output of the commands: data goes to stdout, everything else to stderr."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table

from bluewater.progress import notes
from bluewater.results.overview import Mean, Overview
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bluewater.results.overview import Cell, Column
    from bluewater.study.execution.task import Failure

_FILE_WIDTH = 140
"""Width in columns of a table that goes to a file or a pipe."""


_CUT = "…"
"""Rich ends a word that it cuts with this."""


class _Out(Console):
    def on_broken_pipe(self) -> None:
        """Ends as what is printed without Rich does: who reads no further has what they want."""
        with suppress(SystemExit):
            super().on_broken_pipe()
        raise SystemExit(0)


out = _Out(highlight=False)
if not out.is_terminal:
    out = _Out(highlight=False, width=_FILE_WIDTH)


def print_json(value: Any) -> None:
    """Writes JSON to stdout, plain, whatever the terminal."""
    print(json.dumps(value, indent=2, allow_nan=False))


def table(title: str, columns: tuple[str, ...], rows: list[Any]) -> Table:
    """A table whose first column names things."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1))
    for place, column in enumerate(columns):
        table.add_column(column, style="cyan" if place == 0 else "", no_wrap=place == 0)
    for row in rows:
        table.add_row(*map(escaped, row))
    return table


def show(table: Table, heads: Sequence[int] = (0,), wants: int = 0) -> None:
    """Prints a table; if the terminal would cut a word of it, a paragraph for each row.

    Args:
        table: The table.
        heads: The columns that a paragraph begins with.
        wants: The least width for a table that is easy to read.
    """
    names = [str(column.header) for column in table.columns]
    rows = list(zip(*(column.cells for column in table.columns), strict=True))
    with out.capture() as drawn:
        out.print(table)
    cut = drawn.get().count(_CUT) > "".join([*names, *map(str, rows)]).count(_CUT)
    if out.width >= wants and not cut:
        out.print(table)
        return
    for cells in rows:
        parts = [f"{name} {cell}".lstrip() for name, cell in zip(names, cells, strict=True)]
        out.print("  ".join(parts[at] for at in heads), style="bold")
        rest = (part for at, part in enumerate(parts) if at not in heads)
        out.print(Padding("  ".join(rest), (0, 0, 0, 2)))


def show_overview(shown: Overview) -> None:
    """Prints a table of means, in as few lines a row as the terminal's width allows.

    Half intervals that do not fit beside the means stand below them. If that does not fit either,
    names are broken into lines, and then the columns make several tables.
    """
    for below in (False, True):
        made = _overview(shown, below)
        if _width(made) <= out.width:
            out.print(made)
            return
    first = sum(column.kind != "mean" for column in shown.columns)
    places = range(first, len(shown.columns))
    room = (out.width - _wide(shown, places)) // max(first, 1) - _BESIDE
    if room >= _SHORTEST:
        out.print(_overview(shown, below=True, most=room))
        return
    least = min(_wide(shown, range(first)), out.width // 2)
    while places:
        count = len(places)
        while count > 1 and _wide(shown, places[:count]) > out.width - least:
            count -= 1
        part = _of(shown, [*range(first), *places[:count]])
        out.print(_overview(part, below=True, most=least // max(first, 1) - _BESIDE))
        places = places[count:]


def _wide(shown: Overview, places: Sequence[int]) -> int:
    return _width(_overview(_of(shown, places), below=True))


def _width(made: Table) -> int:
    """The width in columns of a table if nothing is cut."""
    return Measurement.get(out, out.options.update(max_width=_ANY), made).maximum


_BESIDE = 2
"""Width of the gap between two columns of a table."""
_SHORTEST = 12
"""Names of more letters than this may be broken."""
_ANY = 10_000
"""More columns than a terminal has."""


def _of(shown: Overview, places: Sequence[int]) -> Overview:
    """Some of its columns."""
    rows = [[row[at] for at in places] for row in shown.rows]
    return replace(shown, columns=[shown.columns[at] for at in places], rows=rows)


def _overview(shown: Overview, below: bool, most: int | None = None) -> Table:
    """The table with half intervals beside the means or below them.

    Args:
        shown: The means.
        below: Whether half intervals stand below, and each word of a head on its own line.
        most: The width of a column of text.
    """
    made = Table(box=None, padding=(0, 1), header_style="bold", title_justify="left")
    heads = [_head(column, below) for column in shown.columns]
    lines = max((head.count("\n") for head in heads), default=0)
    for place, (column, head) in enumerate(zip(shown.columns, heads, strict=True)):
        made.add_column(
            escaped("\n" * (lines - head.count("\n")) + head),
            justify="left" if column.kind == "text" else "right",
            style="cyan" if place == 0 else "",
            no_wrap=not (most and column.kind == "text"),
            overflow="fold",
            max_width=most if column.kind == "text" else None,
        )
    for row in shown.rows:
        made.add_row(*(_cell(cell, below) for cell in row))
    return made


def _head(column: Column, below: bool) -> str:
    words = column.head.replace(" ", "\n") if below else column.head
    return f"{words}\n{column.unit}" if column.unit else words


def _cell(cell: Cell, below: bool) -> str:
    if not isinstance(cell, Mean):
        return number(None) if cell is None else escaped(cell)
    mean, half = cell.texts
    star = "*" if cell.star else ""
    if not half:
        return mean + star
    return f"{mean}\n[dim]±{half}[/dim]{star}" if below else f"{mean} ± {half}{star}"


def escaped(text: str) -> str:
    """The text with Rich's markup escaped."""
    return text.replace("[", r"\[")


def note(text: str) -> None:
    """A remark on stderr."""
    notes.print(text, soft_wrap=True, markup=False)


def note_failures(failures: Iterable[Failure]) -> None:
    """Prints which runs failed and why; a reason once, since seeds of a run share it."""
    alike: dict[str, list[Failure]] = {}
    for failure in failures:
        # An error of a user's class names the packet's time, which differs with the seed.
        alike.setdefault(_WHEN.sub("", failure.reason), []).append(failure)
    for first, *others in alike.values():
        more = f" (and {len(others)} more in the same way)" if others else ""
        note(f"failed: {first.task.label}: {first.reason}{more}")


_WHEN = re.compile(r" at [0-9.]+ s(?=:)")
