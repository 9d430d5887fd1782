"""Arguments shared by the functions that make runs: where, how many at once, which seeds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Self

from bluewater._core import ScenarioError
from bluewater.arguments import NUMBER, PATH, TEXT, Argument
from bluewater.errors import InputError, Interrupted, StorageError
from bluewater.progress import of_one, of_runs
from bluewater.results.store import Store
from bluewater.study.comparison.compare import as_asked
from bluewater.study.execution.execute import HERE, engine, execute
from bluewater.study.execution.task import Failure, Task
from bluewater.study.execution.worker import serve
from bluewater.study.scenarios.scenario import Scenario
from bluewater.study.scenarios.seeds import counted, distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.results.result import Result
    from bluewater.study.comparison.compare import Setup

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


REAL = Argument((int, float), "a number", (bool,))


def at_least(**given: tuple[int, int]) -> None:
    """Refuses an argument, given as its value and the least one, that is below that."""
    for name, (value, least) in given.items():
        if value < least:
            raise InputError("not allowed", key=name, value=value, allowed=f"{least} or more")


class Maker:
    """Makes the runs of a search, batch by batch, with one bar for all of them.

    On this machine they are made by threads of this process: a batch takes less time than starting
    the processes that :func:`execute` needs.
    """

    def __init__(
        self, out: Path | str, share: str, jobs: int, on: str, title: str, shown: bool
    ) -> None:
        engine(on, jobs)  # reports a wrong engine
        self.store = Store(Path(out) / "runs", share)
        self._how = jobs, on
        self._results: dict[str, Result] = {}
        self._bar, self.told = of_one(title, shown)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    @staticmethod
    def scenario(table: Mapping[str, Any], setup: Setup) -> Scenario:
        """A scenario made from a setup, of whose fields an error speaks."""
        try:
            return Scenario(table, origin=setup.title)
        except ScenarioError as error:
            told = {name: getattr(error, name) for name in ("key", "value", "allowed", "hint")}
            raise as_asked(InputError(error.problem, **told), setup, several=False) from error

    def make(self, scenarios: Sequence[Scenario]) -> list[Result]:
        """The results of scenarios, in order.

        Raises:
            InputError: A run failed.
        """
        tasks = [
            Task(each.prepared.key, each.canonical, each.origin, each.prepared.kind.name)
            for each in scenarios
        ]
        missing = {task.key: task for task in tasks if task.key not in self._results}
        self.store.sync(missing)
        lacking = [task for key, task in missing.items() if key not in self.store]
        for failure in self._make(lacking) if lacking else ():
            raise InputError(f"a run failed: {failure.reason}", file=failure.task.label)
        self._results |= {key: self.store.read(key) for key in missing}
        return [self._results[task.key] for task in tasks]

    def _make(self, tasks: Sequence[Task]) -> list[Failure]:
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
                errors = [each.result().get("error") for each in made]
            except KeyboardInterrupt as error:
                stopped.set()
                pool.shutdown(cancel_futures=True)
                kept = sum(task.key in self.store for task in tasks)
                raise Interrupted(kept, len(tasks)) from error
        failed = [(task, why) for task, why in zip(tasks, errors, strict=True) if why]
        for task, why in failed:
            if why["kind"] == "storage":
                raise StorageError(why["problem"], file=task.label, hint=why["hint"])
        return [Failure(task, why["problem"]) for task, why in failed]
