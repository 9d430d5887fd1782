"""Reproducing experiments: planning all runs at once, making them, judging the claims."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bluewater.kinds import KINDS
from bluewater.results.tables import STANDARD, Tables
from bluewater.study.execution.execute import HERE, execute
from bluewater.study.experiments.claims import Finding, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bluewater.results.store import Store
    from bluewater.results.tables import Entry
    from bluewater.study.execution.task import Failure, Progress, Task
    from bluewater.study.experiments.experiment import Experiment, Size


@dataclass(frozen=True)
class Outcome:
    """The results of one experiment.

    Attributes:
        wall_s: Seconds from the start of its first new run to the end of its last; kept runs cost
            nothing.
        reused: The number of its runs that were kept from before.
        failures: Runs that could not be made; the findings leave them out.
        kinds: The kinds of its runs.
    """

    experiment: Experiment
    size: Size
    tables: Tables
    findings: Sequence[Finding]
    failures: Sequence[Failure]
    wall_s: float
    reused: int
    kinds: frozenset[str]

    @property
    def decision_hash(self) -> str:
        """16 hexadecimal digits over the decision hashes of all runs, in the order of the sweep."""
        every = "".join(result.decision_hash for result in self.tables.results)
        return hashlib.sha256(every.encode()).hexdigest()[:16]


@dataclass
class _Clock:
    """The span of time in which one experiment's runs were made."""

    keys: frozenset[str]
    first: float | None = None
    last: float = 0.0

    def tick(self, key: str, now: float) -> None:
        if key in self.keys:
            self.first = now if self.first is None else self.first
            self.last = now

    @property
    def seconds(self) -> float:
        return 0.0 if self.first is None else self.last - self.first


@dataclass(frozen=True)
class Incomplete:
    """An experiment with runs that the store lacks and this machine could make."""

    id: str
    missing: Sequence[Task]
    runs: int


@dataclass(frozen=True)
class Plan:
    """All runs of some experiments, without duplicates."""

    parts: Sequence[tuple[Experiment, Size, Sequence[tuple[Task, Entry]]]]

    @classmethod
    def of(cls, wanted: Sequence[tuple[Experiment, Size]]) -> Plan:
        """Plans the experiments at their sizes; raises any error in one of them."""
        return cls([(experiment, size, experiment.plan(size)) for experiment, size in wanted])

    @property
    def tasks(self) -> list[Task]:
        """Every run once."""
        return list({task.key: task for *_, runs in self.parts for task, _ in runs}.values())

    def complete(self, store: Store) -> tuple[Plan, list[Incomplete]]:
        """Splits the plan into experiments that are complete in a store, and the others.

        An experiment is complete if only runs are missing that this machine cannot make. If it
        cannot make any, the experiment goes with the rest of its paper.
        """
        kinds = {task.kind for task in self.tasks}
        cannot = {kind for kind in kinds if KINDS[kind].missing()}
        begun: set[str] = set()
        lacking: dict[str, Incomplete] = {}
        idle: list[str] = []
        for experiment, _, runs in self.parts:
            tasks = list({task.key: task for task, _ in runs}.values())
            absent = [task for task in tasks if task.key not in store]
            missing = [task for task in absent if task.kind not in cannot]
            none = len(absent) == len(tasks)
            if missing or none:
                told = absent if none else missing
                lacking[experiment.id] = Incomplete(experiment.id, told, len(tasks))
            if not missing and none:
                idle.append(experiment.id)
            elif not missing:
                begun.add(experiment.id.partition("/")[0])
        for name in idle:
            if name.partition("/")[0] in begun or len(idle) == len(self.parts):
                del lacking[name]
        there = [part for part in self.parts if part[0].id not in lacking]
        return Plan(there), list(lacking.values())


def reproduce(
    plan: Plan,
    store: Store,
    jobs: int,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on: str = HERE,
) -> list[Outcome]:
    """Makes the runs of a plan that the store lacks, and judges every claim.

    Every query is tried on empty tables before the first run.
    """
    asked = [
        experiment.try_queries([entry for _, entry in runs], store)
        for experiment, _, runs in plan.parts
    ]
    held = {task.key for task in plan.tasks if task.key in store}
    clocks = [_Clock(frozenset(task.key for task, _ in runs)) for *_, runs in plan.parts]

    def watch(progress: Progress) -> None:
        now = time.perf_counter()
        for clock in clocks:
            clock.tick(progress.task.key, now)
        on_progress(progress)

    made = execute(plan.tasks, store, jobs, watch, on)
    failures = {failure.task.key: failure for failure in made}
    outcomes = []
    for (experiment, size, runs), clock, names in zip(plan.parts, clocks, asked, strict=True):
        entries = [entry for _, entry in runs if entry.key not in failures]
        tables = Tables(entries, store, experiment.views, names)
        outcomes.append(
            Outcome(
                experiment=experiment,
                size=size,
                tables=tables,
                findings=_findings(experiment, size, tables),
                failures=[failures[task.key] for task, _ in runs if task.key in failures],
                wall_s=clock.seconds,
                reused=sum(task.key in held for task, _ in runs),
                kinds=frozenset(task.kind for task, _ in runs),
            )
        )
    return outcomes


def _findings(experiment: Experiment, size: Size, tables: Tables) -> list[Finding]:
    """Every claim with its result; empty if the standard reading has no runs."""
    there = list(tables.parts)
    if STANDARD not in there:
        return []
    return [
        judge(
            claim,
            tables,
            experiment.file,
            readings=[each for each in experiment.stated(claim) if each in there],
            exact=experiment.exact,
            needs_full=claim.id in size.needs_full,
            unread=not size.readings and bool(experiment.stated(claim)),
            hindsight=experiment.hindsight,
        )
        for claim in experiment.claims
    ]
