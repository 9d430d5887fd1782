"""Searching the unknowns of a paper, to see how its claims depend on them.

The experiments of a section, or one alone, declare what their paper leaves open (see
:mod:`bluewater.study.experiments.readings`). A *point* gives each unknown a value; the claims of
all the experiments are judged at it together. The search tries, as far as its budget goes,

1. the standard values, and the readings that are stated;
2. each other value alone;
3. every point, if the budget allows it; otherwise, with half of the remaining budget, a Latin
   hypercube, which has each value of an unknown equally often;
4. with the other half the neighbours of the best points, the best first.

All points have the same seeds (common random numbers), and their runs are kept in the store: an
interrupted search continues on the same path. Every ``hold_out``-th claim is ignored until the
search is over and a reading is chosen.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bluewater import kinds
from bluewater.results.tables import Entry, Tables
from bluewater.study.execution.execute import execute
from bluewater.study.experiments.claims import MIN_SEEDS, Claim, Measured, Verdict, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bluewater.results.store import Store
    from bluewater.study.execution.task import Task
    from bluewater.study.experiments.experiment import Experiment, Size
    from bluewater.study.experiments.readings import Unknown


SIZE = "explore"
"""The size of a search: the one of this name, or else the full size with three seeds."""


@dataclass(frozen=True, eq=False)
class Variable:
    """An unknown in the search.

    Attributes:
        name: Its name, with its experiment's in front if it belongs to one.
        experiment: The experiment it belongs to; ``None`` for the whole section.
    """

    name: str
    unknown: Unknown
    experiment: str | None

    @property
    def others(self) -> list[str]:
        """The labels of its other values, without the standard one."""
        return [label for label in self.unknown.values if label != self.unknown.standard]


@dataclass(frozen=True)
class Point:
    """A value for each unknown.

    Attributes:
        choices: The labels other than the standard ones, by variable.
        reading: The stated reading, with its further settings, that the point is; a searched point
            has none.
    """

    choices: tuple[tuple[str, str], ...] = ()
    reading: str | None = None

    @property
    def title(self) -> str:
        """Its choices in words."""
        chosen = ", ".join(f"{name} = {label}" for name, label in self.choices) or "standard"
        return (
            f"{self.reading} ({chosen})"
            if self.reading and self.choices
            else (self.reading or chosen)
        )


@dataclass(frozen=True)
class Item:
    """A claim in the search."""

    experiment: Experiment
    claim: Claim
    held_out: bool

    @property
    def id(self) -> str:
        """Its name within the paper."""
        return f"{self.experiment.id.rpartition('/')[2]}/{self.claim.id}"


@dataclass(frozen=True)
class Group:
    """Experiments that share their readings: those of a section, or one alone."""

    title: str
    experiments: Sequence[Experiment]

    @cached_property
    def variables(self) -> list[Variable]:
        """The unknowns, the section's before the experiments' own."""
        found: dict[str, Variable] = {}
        for experiment in self.experiments:
            shared = (
                {each.name for each in experiment.section.unknowns} if experiment.section else ()
            )
            for each in experiment.unknowns:
                short = experiment.id.rpartition("/")[2]
                own = None if each.name in shared else experiment.id
                name = each.name if own is None else f"{short}: {each.name}"
                found.setdefault(name, Variable(name, each, own))
        return sorted(found.values(), key=lambda each: each.experiment is not None)

    @property
    def possible(self) -> int:
        """The number of points."""
        return math.prod(len(each.unknown.values) for each in self.variables)

    def items(self, hold_out: int) -> list[Item]:
        """The claims of its experiments; every ``hold_out``-th is held out, none if it is 0."""
        claims = [(each, claim) for each in self.experiments for claim in each.claims]
        return [
            Item(experiment, claim, hold_out > 0 and position % hold_out == hold_out - 1)
            for position, (experiment, claim) in enumerate(claims)
        ]


def groups(experiments: Sequence[Experiment]) -> list[Group]:
    """The experiments by section, without sections that have no unknowns.

    Experiments that measure real time are left out too: searching one would take hours.
    """
    found: dict[str, list[Experiment]] = {}
    titles: dict[str, str] = {}
    for each in experiments:
        if kinds.of(each.base, each.file).alone:
            continue
        alone = each.section is None or len(experiments) == 1
        key = each.id if alone or each.section is None else each.section.id
        titles[key] = (
            each.id
            if alone or each.section is None
            else (f"{each.paper.cite} §{each.section.id}: {each.section.title}")
        )
        found.setdefault(key, []).append(each)
    made = [Group(titles[key], members) for key, members in found.items()]
    return [each for each in made if each.variables and any(e.claims for e in each.experiments)]


Row = dict[str, Measured]
"""The results at a point, by claim."""


def _make(tasks: Sequence[Task], store: Store, jobs: int) -> dict[str, str]:
    return {each.task.key: each.reason for each in execute(tasks, store, jobs)}


@dataclass
class Search:
    """A search and its results.

    Attributes:
        seed: Seed of the Latin hypercube; the runs have their own.
        make: Makes runs into the store; returns the reasons of failed runs, by key.
        rows: The results at each point.
        stated: The stated readings, by name.
        designed: The points that were chosen without regard to other points' results.
        failed: The reasons of failed runs, by key.
    """

    group: Group
    size: str
    seeds: Sequence[int] | None
    store: Store
    jobs: int
    budget: int
    hold_out: int = 3
    seed: int = 1
    make: Callable[[Sequence[Task], Store, int], Mapping[str, str]] = _make
    rows: dict[Point, Row] = field(default_factory=dict)
    stated: dict[str, Point] = field(default_factory=dict)
    designed: list[Point] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    _known: dict[tuple[str, tuple[str, ...]], Row] = field(default_factory=dict)

    @cached_property
    def items(self) -> list[Item]:
        """The claims."""
        return self.group.items(self.hold_out)

    def run(self) -> None:
        """Searches until the budget is used up or every point is tried."""
        self.stated = self._stated()
        self._try([Point(), *self.stated.values()])
        self._try(
            Point(((each.name, label),)) for each in self.group.variables for label in each.others
        )
        if self.group.possible <= self.left + len(self.rows):
            self._try(self._every())
            self.designed = list(self.rows)
            return
        self._try(itertools.islice(self._hypercube(self.left // 2), self.left))
        self.designed = list(self.rows)
        while self.left > 0 and (near := self._next()):
            self._try(near)

    @property
    def left(self) -> int:
        """How many points may still be tried."""
        return self.budget - len(self.rows)

    # --- points

    def _stated(self) -> dict[str, Point]:
        points = {}
        for experiment in self.group.experiments:
            shared = (
                {each.name for each in experiment.section.unknowns} if experiment.section else ()
            )
            joint = {each.id for each in experiment.section.readings} if experiment.section else ()
            short = experiment.id.rpartition("/")[2]
            for reading in experiment.readings:
                if reading.settings and reading.id not in joint:
                    continue  # its settings belong to one experiment
                standard = {each.name: each.standard for each in experiment.unknowns}
                choices = {
                    name if name in shared else f"{short}: {name}": label
                    for name, label in reading.choose.items()
                    if label != standard[name]
                }
                points[reading.id] = Point(
                    tuple(sorted(choices.items())), reading.id if reading.settings else None
                )
        return points

    def _every(self) -> Iterable[Point]:
        variables = self.group.variables
        for labels in itertools.product(*(each.unknown.values for each in variables)):
            yield self._point(dict(zip(variables, labels, strict=True)))

    def _hypercube(self, count: int) -> Iterable[Point]:
        dice = random.Random(self.seed)
        columns: list[list[str]] = []
        for each in self.group.variables:
            labels = list(each.unknown.values)
            column = [labels[i % len(labels)] for i in range(count)]
            dice.shuffle(column)
            columns.append(column)
        for row in zip(*columns, strict=True):
            yield self._point(dict(zip(self.group.variables, row, strict=True)))

    def _point(self, labels: Mapping[Variable, str]) -> Point:
        return Point(
            tuple(
                sorted(
                    (v.name, label) for v, label in labels.items() if label != v.unknown.standard
                )
            )
        )

    def _next(self) -> list[Point]:
        """The untried neighbours of the best point that has any."""
        for best in self.ranked():
            if best.reading is None and (
                near := [p for p in self._near(best) if p not in self.rows]
            ):
                return near[: self.left]
        return []

    def _near(self, point: Point) -> Iterable[Point]:
        chosen = dict(point.choices)
        for each in self.group.variables:
            for label in each.unknown.values:
                changed = {**chosen, each.name: label}
                if label == each.unknown.standard:
                    changed.pop(each.name)
                if changed != chosen:
                    yield Point(tuple(sorted(changed.items())))

    # --- judging

    def _try(self, points: Iterable[Point]) -> None:
        """Makes the runs of points, all at once, and judges the claims at each."""
        fresh = [point for point in dict.fromkeys(points) if point not in self.rows]
        fresh = fresh[: self.left]
        plans = {
            point: [self._plan(each, point) for each in self.group.experiments] for point in fresh
        }
        tasks = list(
            {
                task.key: task for plan in plans.values() for runs in plan for task, _ in runs
            }.values()
        )
        self.failed.update(self.make(tasks, self.store, self.jobs))
        for point, plan in plans.items():
            self.rows[point] = {}
            for experiment, runs in zip(self.group.experiments, plan, strict=True):
                self.rows[point] |= self._judged(experiment, [entry for _, entry in runs])

    def _plan(self, experiment: Experiment, point: Point) -> list[tuple[Task, Entry]]:
        size = self.sized(experiment)
        values = {
            each.name: each.unknown.values
            for each in self.group.variables
            if each.experiment in (None, experiment.id)
        }
        set_: list[Mapping[str, Any]] = [
            values[name][label] for name, label in point.choices if name in values
        ]
        set_ += [each.settings for each in experiment.readings if each.id == point.reading]
        return experiment.runs(experiment.cells_with(size, set_, "unknown"), size, None)

    def sized(self, experiment: Experiment) -> Size:
        """The size of an experiment, with the search's seeds."""
        if self.size == SIZE and SIZE not in experiment.sizes:
            full = experiment.size("full")
            size = replace(full, name=SIZE, seeds=full.seeds[:MIN_SEEDS])
        else:
            size = experiment.size(self.size)
        return size if self.seeds is None else replace(size, seeds=tuple(self.seeds))

    def _judged(self, experiment: Experiment, entries: Sequence[Entry]) -> Row:
        """Judges an experiment's claims; points with the same runs share the result."""
        key = (experiment.id, tuple(entry.key for entry in entries))
        if key not in self._known:
            there = [entry for entry in entries if entry.key not in self.failed]
            tables = Tables(there, self.store, experiment.views)
            short = experiment.id.rpartition("/")[2]
            self._known[key] = {
                f"{short}/{claim.id}": measure(claim, tables, experiment.file, "")
                if len(there) == len(entries)
                else Measured("", None, Verdict.NOT_REPRODUCED, {})
                for claim in experiment.claims
            }
        return self._known[key]

    # --- what was found

    def met(self, point: Point, items: Iterable[Item] | None = None) -> set[str]:
        """The claims that are reproduced at a point."""
        wanted = self.items if items is None else items
        return {
            each.id for each in wanted if self.rows[point][each.id].verdict is Verdict.REPRODUCED
        }

    @property
    def seen(self) -> list[Item]:
        """The claims that the search looks at."""
        return [each for each in self.items if not each.held_out]

    @property
    def unseen(self) -> list[Item]:
        """The claims that the search holds out."""
        return [each for each in self.items if each.held_out]

    def ranked(self, items: Sequence[Item] | None = None) -> list[Point]:
        """The points, best first: most claims met, then most partly, fewest choices, earliest."""
        wanted = self.seen if items is None else items

        def merit(point: Point) -> tuple[int, int, int]:
            row = self.rows[point]
            partly = sum(row[each.id].verdict is Verdict.PARTLY for each in wanted)
            return -len(self.met(point, wanted)), -partly, len(point.choices)

        return sorted(self.rows, key=merit)

    @property
    def standard(self) -> Point:
        """The point of the standard values."""
        return Point()

    @property
    def best(self) -> Point:
        """The joint reading that meets most of the claims in the search."""
        return self.ranked()[0]

    @property
    def some(self) -> set[str]:
        """The claims that at least one point meets."""
        return set().union(*(self.met(point) for point in self.rows))

    @property
    def cover(self) -> list[tuple[Point, int]]:
        """Few points that together meet every claim that some point meets, with running counts.

        The first is the best; each further one adds most. The choice is greedy, so a smaller set
        may exist.
        """
        chosen: list[tuple[Point, int]] = []
        have: set[str] = set()
        left = self.ranked()
        while len(have) < len(self.some):
            point = (
                self.best if not chosen else max(left, key=lambda each: len(self.met(each) - have))
            )
            have |= self.met(point)
            chosen.append((point, len(have)))
        return chosen

    def sensitivity(self, item: Item, variable: Variable) -> float | None:
        """The share of a claim's variance that an unknown alone explains, 0 to 1.

        It is the correlation ratio over the designed points, adjusted for chance (ε²); ``None`` if
        the value does not vary or too few points have one.
        """
        if variable.experiment not in (None, item.experiment.id):
            return None
        by_label: dict[str, list[float]] = {}
        for point in self.designed:
            estimate = self.rows[point][item.id].estimate
            if estimate is not None and point.reading is None:
                label = dict(point.choices).get(variable.name, variable.unknown.standard)
                by_label.setdefault(label, []).append(estimate.mean)
        values = [value for own in by_label.values() for value in own]
        if len(by_label) < 2 or len(values) <= len(by_label):
            return None
        mean = math.fsum(values) / len(values)
        total = math.fsum((value - mean) ** 2 for value in values)
        if total <= 1e-18 * max(mean * mean, 1e-300) * len(values):
            return None
        within = math.fsum(
            (value - math.fsum(own) / len(own)) ** 2 for own in by_label.values() for value in own
        )
        share = 1 - (within / (len(values) - len(by_label))) / (total / (len(values) - 1))
        return min(max(share, 0.0), 1.0)

    def alone(self, item: Item, variable: Variable) -> list[str]:
        """The values of an unknown that meet the claim, with all other unknowns standard."""
        points = {
            label: Point(((variable.name, label),))
            if label != variable.unknown.standard
            else Point()
            for label in variable.unknown.values
        }
        return [
            label
            for label, point in points.items()
            if point in self.rows and item.id in self.met(point)
        ]
