"""Where words go: data to stdout, everything else to stderr."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from bluewater.progress import notes

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILE_WIDTH = 140
"""Columns of a table that goes to a file or a pipe."""


_CUT = "…"
"""With what Rich ends a word that it cuts."""


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
    for number, column in enumerate(columns):
        table.add_column(column, style="cyan" if number == 0 else "", no_wrap=number == 0)
    for row in rows:
        table.add_row(*map(escaped, row))
    return table


def show(table: Table, heads: Sequence[int] = (0,), wants: int = 0) -> None:
    """Prints a table, or where a word of it would be cut on the terminal a paragraph a row.

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


def escaped(text: str) -> str:
    """The text with nothing in it taken for markup."""
    return text.replace("[", r"\[")


def note(text: str) -> None:
    """A remark on stderr."""
    notes.print(text, soft_wrap=True, markup=False)
