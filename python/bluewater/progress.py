"""Progress bars of runs, in a terminal and in a notebook."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bluewater.study.execution.task import Progress, Task

notes = Console(stderr=True, highlight=False)

_WIDTH = 30
"""Width of a bar in a notebook, in characters."""
_DRAWN_S = 0.2
"""Seconds between two updates of a bar in a notebook."""


@contextmanager
def of_runs(
    tasks: Sequence[Task], held: int, title: str, shown: bool = True
) -> Iterator[Callable[[Progress], None]]:
    """A bar over all runs, with the time left; yields a function to call at every step.

    Nothing is drawn if stderr is neither a terminal nor a notebook.
    """
    total = len(tasks) - held
    drawn = _in_cell(title, total) if shown and notes.is_jupyter else _bar(title, total, shown)
    with drawn as tell:
        under_way: dict[str, float] = {}
        done = 0

        def update(step: Progress) -> None:
            nonlocal done
            if step.fraction >= 1.0:
                under_way.pop(step.task.key, None)
                done += 1
            else:
                under_way[step.task.key] = step.fraction
            tell(step.task.label.partition(",")[0], done, done + sum(under_way.values()))

        yield update


@contextmanager
def _bar(title: str, total: int, shown: bool) -> Iterator[Callable[[str, int, float], None]]:
    """The bar in a terminal."""
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
        disable=not shown or not notes.is_terminal,
    )
    with bar:
        handle = bar.add_task(title, total=total, runs=0, all=total)
        yield lambda name, runs, completed: bar.update(
            handle, completed=completed, runs=runs, description=name
        )


@contextmanager
def _in_cell(title: str, total: int) -> Iterator[Callable[[str, int, float], None]]:
    """The bar as text in a notebook: Rich would need another package, and draws nothing."""
    # Every notebook has IPython.
    from IPython.display import display, update_display  # noqa: PLC0415

    place = f"bluewater-{uuid4().hex}"
    began = drawn = time.monotonic()

    def line(name: str, runs: int, completed: float) -> dict[str, str]:
        share = min(completed / total, 1.0) if total else 1.0
        full = round(share * _WIDTH)
        left = (time.monotonic() - began) * (1 / share - 1) if share else None
        parts = [
            name,
            "█" * full + "░" * (_WIDTH - full),
            f"{100 * share:.0f} %",
            f"{runs} of {total} runs",
            *([] if left is None else [f"{left:.0f} s left"]),
        ]
        return {"text/plain": "  ".join(parts)}

    def tell(name: str, runs: int, completed: float) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - drawn >= _DRAWN_S:
            drawn = now
            update_display(line(name, runs, completed), raw=True, display_id=place)

    display(line(title, 0, 0.0), raw=True, display_id=place)
    try:
        yield tell
    finally:
        update_display({"text/plain": ""}, raw=True, display_id=place)


def of_one(title: str, shown: bool = True) -> tuple[Bar, Callable[..., None]]:
    """A bar for a single run or search, and the function to call with its progress.

    The function may also get words to show beside the title.
    """
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=notes,
        transient=True,
        disable=not shown or not notes.is_terminal,
    )
    handle = bar.add_task(title, total=1.0)
    return bar, lambda fraction, beside="": bar.update(
        handle, completed=fraction, description=f"{title}  {beside}".rstrip()
    )
