"""Arguments shared by the functions that make runs: where, how many at once, which seeds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Self

from bluewater.arguments import NUMBER, PATH, TEXT, Argument
from bluewater.errors import InputError, Interrupted, StorageError
from bluewater.progress import of_one, of_runs
from bluewater.study.execution.execute import HERE, execute
from bluewater.study.execution.task import Failure, Task
from bluewater.study.execution.worker import serve
from bluewater.study.scenarios.scenario import Scenario
from bluewater.study.scenarios.seeds import counted, distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.results.result import Result
    from bluewater.results.store import Store

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


class Maker:
    """Makes the runs of a search, batch by batch, with one bar for all of them.

    On this machine they are made by threads of this process: a batch takes less time than starting
    the processes that :func:`execute` needs.
    """

    def __init__(self, store: Store, jobs: int, on: str, title: str, shown: bool) -> None:
        self.store = store
        self.failures: dict[str, Failure] = {}
        self._results: dict[str, Result] = {}
        self._how = jobs, on
        self._bar, self._tell = of_one(title, shown)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def told(self, fraction: float, what: str) -> None:
        """Moves the bar."""
        self._tell(fraction, what)

    def make(self, scenarios: Sequence[Scenario]) -> list[Result | None]:
        """The results of scenarios, in order; ``None`` for a run that failed."""
        prepared = [each.prepared for each in scenarios]
        tasks = [
            Task(each.key, each.canonical, f"{scenario.origin}, run {each.key[:8]}", each.kind.name)
            for scenario, each in zip(scenarios, prepared, strict=True)
        ]
        self.store.sync(task.key for task in tasks)
        missing = {task.key: task for task in tasks if task.key not in self.store}
        if missing:
            failed = self._made(list(missing.values()))
            self.failures |= {failure.task.key: failure for failure in failed}
        return [None if each.key in self.failures else self._read(each.key) for each in prepared]

    def _made(self, tasks: Sequence[Task]) -> list[Failure]:
        jobs, on = self._how
        if on != HERE or any(task.kind != "simulator" for task in tasks):
            return execute(tasks, self.store, jobs, on=on)
        self.store.prepare()
        stopped = Event()

        def go_on(_: float) -> None:
            if stopped.is_set():
                raise Interrupted(0, len(tasks))

        with ThreadPoolExecutor(jobs) as pool:
            made = [pool.submit(serve, task, self.store, go_on) for task in tasks]
            try:
                answers = [each.result() for each in made]
            except KeyboardInterrupt as error:
                stopped.set()
                pool.shutdown(cancel_futures=True)
                kept = sum(task.key in self.store for task in tasks)
                raise Interrupted(kept, len(tasks)) from error
        failures = []
        for task, answer in zip(tasks, answers, strict=True):
            if wrong := answer.get("error"):
                if wrong["kind"] == "storage":
                    raise StorageError(wrong["problem"], file=task.label, hint=wrong["hint"])
                failures.append(Failure(task, wrong["problem"]))
        return failures

    def _read(self, key: str) -> Result:
        if key not in self._results:
            self._results[key] = self.store.read(key)
        return self._results[key]
