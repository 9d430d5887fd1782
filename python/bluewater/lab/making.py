"""Arguments shared by the functions that make runs: where, how many at once, which seeds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bluewater.arguments import NUMBER, PATH, TEXT, Argument
from bluewater.errors import InputError
from bluewater.progress import of_runs
from bluewater.study.execution.execute import HERE, execute
from bluewater.study.scenarios.scenario import Scenario
from bluewater.study.scenarios.seeds import counted, distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.results.store import Store
    from bluewater.study.execution.task import Failure, Task

DEFAULT_OUT = Path("results")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)

SOURCE = Argument(
    (Scenario, str, PathLike, Mapping), "a Scenario, a path, TOML text, or a mapping of its keys"
)
MAKING = {"jobs": NUMBER, "on": TEXT, "share": TEXT, "out": PATH}
"""Arguments that say where and how many runs are made."""


def chosen_seeds(seeds: Sequence[int] | None, reps: int | None) -> tuple[int, ...] | None:
    """The named seeds, or ``reps`` of them from 1 on; None if neither is given."""
    if reps is None:
        return None if seeds is None else distinct(list(seeds), "seeds")
    if seeds is not None:
        raise InputError("seeds cannot go with reps", hint="name every seed in seeds")
    return counted(1, reps, ("seeds", "reps"))


def make_all(
    tasks: Sequence[Task],
    store: Store,
    jobs: int,
    title: str,
    progress: bool = True,
    on: str = HERE,
) -> list[Failure]:
    """Makes the runs that the store lacks, with a progress bar."""
    held = sum(task.key in store for task in tasks)
    with of_runs(tasks, held, title, progress) as on_progress:
        return execute(tasks, store, jobs, on_progress, on)
