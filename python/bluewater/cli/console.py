"""Where words go: data to stdout, everything else to stderr."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bluewater.study.execute import Progress, Task

_FILE_WIDTH = 140
"""Columns of a table that goes to a file or a pipe."""

out = Console(highlight=False)
if not out.is_terminal:
    out = Console(highlight=False, width=_FILE_WIDTH)
notes = Console(stderr=True, highlight=False)


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


@contextmanager
def progress(tasks: Sequence[Task], held: int, title: str) -> Iterator[Callable[[Progress], None]]:
    """A bar over all runs, with the time left; what it gives is told of every step.

    Nothing is drawn where stderr is not a terminal.
    """
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[runs]} of {task.fields[all]} runs"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=notes,
        transient=True,
        disable=not notes.is_terminal,
    )
    total = len(tasks) - held
    with bar:
        handle = bar.add_task(title, total=total, runs=0, all=total)
        under_way: dict[str, float] = {}
        done = 0

        def update(step: Progress) -> None:
            nonlocal done
            if step.fraction >= 1.0:
                under_way.pop(step.task.key, None)
                done += 1
            else:
                under_way[step.task.key] = step.fraction
            name = step.task.label.partition(",")[0]
            bar.update(
                handle, completed=done + sum(under_way.values()), runs=done, description=name
            )

        yield update


def bar_of_one(title: str) -> tuple[Bar, Callable[[float], None]]:
    """A bar for a single run, and what to tell of its progress."""
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=notes,
        transient=True,
        disable=not notes.is_terminal,
    )
    handle = bar.add_task(title, total=1.0)
    return bar, lambda fraction: bar.update(handle, completed=fraction)
