"""Progress of runs, in a terminal and in a notebook."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bluewater.study.task import Progress, Task

notes = Console(stderr=True, highlight=False)


@contextmanager
def of_runs(
    tasks: Sequence[Task], held: int, title: str, shown: bool = True
) -> Iterator[Callable[[Progress], None]]:
    """A bar over all runs, with the time left; what it gives is told of every step.

    Nothing is drawn where stderr is neither a terminal nor a notebook's.
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
        disable=not shown or not _visible(),
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


def of_one(title: str) -> tuple[Bar, Callable[[float], None]]:
    """A bar for a single run, and what to tell of its progress."""
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=notes,
        transient=True,
        disable=not _visible(),
    )
    handle = bar.add_task(title, total=1.0)
    return bar, lambda fraction: bar.update(handle, completed=fraction)


def _visible() -> bool:
    return notes.is_terminal or notes.is_jupyter
