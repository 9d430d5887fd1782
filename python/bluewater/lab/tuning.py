"""Parameters of a queue discipline, searched for several objectives over a range of links."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater._core import ScenarioError
from bluewater.arguments import NAMES, NUMBER, TEXT, checked
from bluewater.errors import InputError
from bluewater.lab.making import CORES, DEFAULT_OUT, MAKING, REAL, Maker, at_least
from bluewater.results.stats import Estimate, estimate
from bluewater.study.comparison.compare import Setup
from bluewater.study.comparison.compare import scenario as scenario_for
from bluewater.study.execution.execute import HERE
from bluewater.study.scenarios import scenario
from bluewater.study.search import tune as rules
from bluewater.study.search.optimise import search

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bluewater.study.scenarios.scenario import Scenario, Source
    from bluewater.study.search.optimise import Point
    from bluewater.study.search.tune import Knob, Objective, Values

_SHOWN = 8
"""Most points of the front that are checked with fresh seeds."""


@dataclass(frozen=True)
class Tuned:
    """Parameters and their results.

    Attributes:
        params: The parameters, as scenario files have them; none for the defaults.
        values: For each objective the value of each seed: that of the worst link, or the quantile.
    """

    params: Mapping[str, Any]
    values: Values

    def mean(self, objective: int) -> Estimate:
        """The mean over seeds of an objective, by its number."""
        return estimate(self.values[objective])


@dataclass(frozen=True)
class Tuning:
    """The Pareto front of a discipline's parameters.

    Attributes:
        aqm: The discipline.
        knobs: The parameters that were searched.
        objectives: What was to be small or large.
        links: The links in words.
        front: The points of the front, checked with fresh seeds, by the first objective.
        defaults: The defaults, with the same seeds.
        tried: All points of the search with their values.
    """

    aqm: str
    knobs: tuple[Knob, ...]
    objectives: tuple[Objective, ...]
    links: tuple[str, ...]
    front: tuple[Tuned, ...]
    defaults: Tuned
    tried: tuple[Tuned, ...] = field(repr=False)

    @property
    def place(self) -> str:
        """Where the defaults are.

        ``on`` the front: no point is better in one objective and worse in none. ``in`` its
        intervals: one is, but by less than the intervals of the differences. ``off``: one is surely
        better.
        """
        front = [each.values for each in self.front]
        return rules.place(self.defaults.values, front, self.objectives)

    def write(self, path: Path | str) -> None:
        """Draws the first two objectives of all points: ``.png``, ``.svg``, ``.pdf`` or ``.pgf``.

        Without an ending it writes PNG, SVG and PDF, and the points as CSV.
        """
        from bluewater.plots import tune as plots  # noqa: PLC0415 - matplotlib takes long

        sets = {"tried": self.tried, "front": self.front, "defaults": [self.defaults]}
        shown = sorted({0, min(1, len(self.objectives) - 1)})
        points = {name: [[e.mean(k) for k in shown] for e in each] for name, each in sets.items()}
        plots.write(self.aqm, [self.objectives[k].metric for k in shown], points, Path(path))


@checked(aqm=TEXT, params=NAMES, minimise=NAMES, maximise=NAMES, quantile=REAL, runs=NUMBER,
         search_reps=NUMBER, seconds=REAL, seed=NUMBER, reps=NUMBER, **MAKING)  # fmt: skip
def tune(
    aqm: str,
    links: Sequence[Setup | Source] = (Setup(rate="20mbit", flows=10),),
    *,
    params: Sequence[str] = (),
    minimise: Sequence[str] = (),
    maximise: Sequence[str] = (),
    quantile: float = 1.0,
    runs: int = 100,
    search_reps: int = 2,
    seconds: float | None = None,
    seed: int = 1,
    reps: int = 5,
    jobs: int = CORES,
    on: str = HERE,
    share: str = "",
    out: Path | str = DEFAULT_OUT,
    progress: bool = True,
) -> Tuning:
    """Searches a discipline's parameters for several objectives over a range of links.

    Optuna proposes parameters. An objective's value is that of the worst link, seed by seed. The
    front is checked with fresh seeds, beside the defaults. The same call gives the same front, for
    any ``jobs``, unless ``seconds`` ended the search.

    Args:
        aqm: The queue discipline.
        links: Links as :class:`~bluewater.Setup`, or scenarios, whose first queue gets it.
        params: Parameters to search, as ``target``, ``target=1ms..50ms`` or ``ecn=true,false``. By
            default each with a number as default, from a tenth of it to ten times it.
        minimise: Metrics of [queues](metrics.md#queues); ``delay.p99`` is ``delay_p99_s``.
        maximise: Metrics to be large. Without both: ``delay_p99_s`` and ``utilisation``.
        quantile: Which link counts: 1 is the worst, 0.5 the median.
        runs: How many sets of parameters to try.
        search_reps: Seeds for each of them.
        seconds: The search begins no further batch after this time.
        seed: Seed of the search, and the first of its runs'.
        reps: How many fresh seeds check the front, at least 2.
        jobs: Parallel runs.
        on: Where the runs are made, as for :func:`sweep`.
        share: A shared store of finished runs, as for :func:`sweep`.
        out: The folder of results.
        progress: Whether a bar is shown.

    Raises:
        InputError: A name, range or metric cannot be used, a run fails, or Optuna is not installed.
        ScenarioError: A link is not valid with the defaults.
        Interrupted: Ctrl-C; finished runs are kept.
    """
    at_least(runs=(runs, 1), search_reps=(search_reps, 1), reps=(reps, 2), links=(len(links), 1))
    if not 0 < quantile <= 1:
        raise InputError("not allowed", key="quantile", value=quantile, allowed="above 0 … 1")
    if not minimise and not maximise:
        minimise, maximise = ("delay_p99_s",), ("utilisation",)
    objectives = tuple(
        rules.objective(name, least)
        for names, least in ((minimise, True), (maximise, False))
        for name in names
    )
    knobs = rules.knobs(aqm, params)
    with Maker(out, share, jobs, on, f"tune {aqm}", progress) as maker:
        made = _Runs(aqm, [_base(each) for each in links], objectives, quantile, maker)
        made.scenarios({}, [seed])  # reports what is wrong with the links
        seeds = [seed + k for k in range(search_reps)]
        tried = _search(made, knobs, runs, seconds, seeds)
        shown = _spread(_front(tried, objectives))
        fresh = [seed + search_reps + k for k in range(reps)]
        usual, *front = made.tuned([{}, *(each.params for each in shown)], fresh)
    if usual is None:
        raise InputError("an objective has no value with the defaults", key="links")
    checked = _front([each for each in front if each], objectives)
    titles = tuple(each.origin for each in made.bases)
    return Tuning(aqm, knobs, objectives, titles, tuple(checked), usual, tuple(tried))


@dataclass(frozen=True)
class _Runs:
    """The runs of sets of parameters on all links."""

    aqm: str
    bases: Sequence[Scenario]
    objectives: Sequence[Objective]
    quantile: float
    maker: Maker

    def scenarios(self, params: Mapping[str, Any], seeds: Sequence[int]) -> list[Scenario]:
        """The scenario of each link, seed by seed."""
        made = {"queue.0.aqm": self.aqm, "queue.0.params": dict(params)}
        return [base.with_({**made, "seed": seed}) for seed in seeds for base in self.bases]

    def tuned(self, each: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> list[Tuned | None]:
        """Sets of parameters with their values; ``None`` where the discipline refuses the set.

        Parameters may exclude each other, such as thresholds of which the lower must be first.
        """
        cells: list[list[Scenario]] = []
        for params in each:
            try:
                cells.append(self.scenarios(params, seeds))
            except ScenarioError:
                cells.append([])
        results = iter(self.maker.make([one for cell in cells for one in cell]))
        found: list[Tuned | None] = []
        for params, cell in zip(each, cells, strict=True):
            runs = [next(results).summary for _ in cell]
            rows = [[run[one.metric] for run in runs] for one in self.objectives]
            possible = bool(runs) and all(value is not None for row in rows for value in row)
            found.append(Tuned(params, self._worst(rows)) if possible else None)
        return found

    def _worst(self, rows: Sequence[Sequence[Any]]) -> Values:
        return tuple(
            tuple(each.worst(links, self.quantile) for links in _groups(row, len(self.bases)))
            for each, row in zip(self.objectives, rows, strict=True)
        )


def _groups(row: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [row[at : at + size] for at in range(0, len(row), size)]


def _base(link: Setup | Source) -> Scenario:
    if isinstance(link, Setup):
        return Maker.scenario({**scenario_for(link), "measure": {}}, link)
    return scenario.of(link, {})


def _search(
    made: _Runs, knobs: Sequence[Knob], runs: int, seconds: float | None, seeds: Sequence[int]
) -> list[Tuned]:
    found: list[Tuned] = []

    def values(points: Sequence[Point]) -> list[tuple[float, ...] | None]:
        written = [
            {knob.name: knob.written(point[knob.name]) for knob in knobs} for point in points
        ]
        rows = made.tuned(written, seeds)
        found.extend(row for row in rows if row)
        return [tuple(estimate(e).mean for e in row.values) if row else None for row in rows]

    space = {knob.name: knob.axis for knob in knobs}
    directions = [each.direction for each in made.objectives]
    ends = None if seconds is None else time.monotonic() + seconds
    batches = search(space, directions, values, runs, seeds[0], ends)
    for done in itertools.accumulate(batches):
        made.maker.told(done / runs, f"{len(_front(found, made.objectives))} points in front")
    if not found:
        hint = "narrow the ranges, as in --param target=1ms..50ms"
        raise InputError("no set of parameters could be simulated", key="params", hint=hint)
    return found


def _front(points: Sequence[Tuned], objectives: Sequence[Objective]) -> list[Tuned]:
    """The points that no other dominates, by the first objective; one of each set of values."""
    unlike = {each.values: each for each in points}
    kept = [
        point
        for values, point in unlike.items()
        if not any(rules.dominates(other, values, objectives, surely=False) for other in unlike)
    ]
    return sorted(kept, key=lambda each: each.mean(0).mean)


def _spread(front: Sequence[Tuned]) -> list[Tuned]:
    """At most :data:`_SHOWN` points, from one end of the front to the other."""
    last = min(_SHOWN, len(front)) - 1
    return [front[round(k * (len(front) - 1) / max(last, 1))] for k in range(last + 1)]
