"""Where words go: data to stdout, everything else to stderr."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.table import Table

from bluewater.progress import notes

_FILE_WIDTH = 140
"""Columns of a table that goes to a file or a pipe."""


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


def escaped(text: str) -> str:
    """The text with nothing in it taken for markup."""
    return text.replace("[", r"\[")


def note(text: str) -> None:
    """A remark on stderr."""
    notes.print(text, soft_wrap=True, markup=False)
