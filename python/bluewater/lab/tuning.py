"""Parameters of a queue discipline, searched for several objectives over a range of links."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater._core import ScenarioError
from bluewater.arguments import NAMES, NUMBER, TEXT, Argument, checked
from bluewater.errors import InputError
from bluewater.lab.making import CORES, DEFAULT_OUT, MAKING, Maker
from bluewater.results.stats import Estimate, estimate
from bluewater.results.store import Store
from bluewater.study.comparison.compare import Setup, as_asked
from bluewater.study.comparison.compare import scenario as scenario_for
from bluewater.study.execution.execute import HERE, engine
from bluewater.study.scenarios import scenario
from bluewater.study.scenarios.scenario import Scenario
from bluewater.study.search import tune as rules
from bluewater.study.search.optimise import search

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bluewater.study.execution.task import Failure
    from bluewater.study.scenarios.scenario import Source
    from bluewater.study.search.optimise import Point
    from bluewater.study.search.tune import Knob, Objective, Values

_REAL = Argument((int, float), "a number", (bool,))
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
        failures: Runs that could not be made.
    """

    aqm: str
    knobs: tuple[Knob, ...]
    objectives: tuple[Objective, ...]
    links: tuple[str, ...]
    front: tuple[Tuned, ...]
    defaults: Tuned
    tried: tuple[Tuned, ...] = field(repr=False)
    failures: tuple[Failure, ...] = ()

    @property
    def place(self) -> str:
        """Where the defaults are.

        ``on`` the front: no point is better in one objective and worse in none. ``in`` its
        intervals: one is, but by less than the intervals of the differences. ``off``: one is surely
        better.
        """
        return rules.place(
            self.defaults.values, [each.values for each in self.front], self.objectives
        )

    def write(self, path: Path | str) -> None:
        """Draws the first two objectives of all points: ``.png``, ``.svg``, ``.pdf`` or ``.pgf``.

        Without an ending it writes PNG, SVG and PDF, and the points as CSV.
        """
        from bluewater.plots import tune as plots  # noqa: PLC0415 - matplotlib takes long

        plots.write(self, Path(path))


@checked(aqm=TEXT, params=NAMES, minimise=NAMES, maximise=NAMES, quantile=_REAL, runs=NUMBER,
         search_reps=NUMBER, seconds=_REAL, seed=NUMBER, reps=NUMBER, **MAKING)  # fmt: skip
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
        InputError: A name, range or metric cannot be used, or Optuna is not installed.
        ScenarioError: A link is not valid with the defaults.
        Interrupted: Ctrl-C; finished runs are kept.
    """
    bounds = (("runs", runs, 1), ("search_reps", search_reps, 1), ("reps", reps, 2))
    for name, value, least in bounds:
        if value < least:
            raise InputError("not allowed", key=name, value=value, allowed=f"{least} or more")
    if not 0 < quantile <= 1:
        raise InputError("not allowed", key="quantile", value=quantile, allowed="above 0 … 1")
    engine(on, jobs)
    if not minimise and not maximise:
        minimise, maximise = ("delay_p99_s",), ("utilisation",)
    objectives = tuple(
        rules.objective(name, least)
        for names, least in ((minimise, True), (maximise, False))
        for name in names
    )
    knobs = rules.knobs(aqm, params)
    bases = [_base(each) for each in links]
    if not bases:
        raise InputError("no link", key="links", value=[], allowed="one or more")
    with Maker(Store(Path(out) / "runs", share), jobs, on, f"tune {aqm}", progress) as maker:
        made = _Runs(aqm, bases, objectives, quantile, maker)
        made.scenarios({}, seed)  # reports what is wrong with the links
        seeds = [seed + k for k in range(search_reps)]
        tried = _search(made, knobs, runs, seconds, seeds)
        shown = _spread(_front(tried, objectives))
        fresh = [seed + search_reps + k for k in range(reps)]
        checks = made.values([{}, *(each.params for each in shown)], fresh)
        if (usual := checks[0]) is None:
            raise InputError("the defaults give no value for an objective", key="links")
    front = [
        Tuned(each.params, values)
        for each, values in zip(shown, checks[1:], strict=True)
        if values is not None
    ]
    titles = tuple(title for title, _ in bases)
    return Tuning(
        aqm, knobs, objectives, titles, tuple(_front(front, objectives)), Tuned({}, usual),
        tuple(tried), tuple(maker.failures.values()),
    )  # fmt: skip


class _Runs:
    """The runs of sets of parameters on all links."""

    def __init__(
        self,
        aqm: str,
        bases: Sequence[tuple[str, Mapping[str, Any]]],
        objectives: Sequence[Objective],
        quantile: float,
        maker: Maker,
    ) -> None:
        self.aqm = aqm
        self.bases = bases
        self.objectives = objectives
        self.quantile = quantile
        self.maker = maker

    def scenarios(self, params: Mapping[str, Any], seed: int) -> list[Scenario]:
        """The scenario of each link."""
        made = []
        for title, base in self.bases:
            table = copy.deepcopy(dict(base))
            first = {key: table["queue"][0][key] for key in _OF_LINK if key in table["queue"][0]}
            table["queue"][0] = {**first, "aqm": self.aqm, "params": dict(params)}
            made.append(Scenario({**table, "seed": seed}, origin=title))
        return made

    def values(
        self, each: Sequence[Mapping[str, Any]], seeds: Sequence[int]
    ) -> list[Values | None]:
        """The objectives of sets of parameters, seed by seed; ``None`` where a run is impossible.

        Parameters may exclude each other, such as thresholds of which the lower must be first.
        """
        cells: list[list[Scenario] | None] = []
        for params in each:
            try:
                cells.append([one for seed in seeds for one in self.scenarios(params, seed)])
            except (ScenarioError, InputError):
                cells.append(None)
        results = iter(self.maker.make([one for cell in cells if cell for one in cell]))
        rows: list[Values | None] = []
        for cell in cells:
            if cell is None:
                rows.append(None)
                continue
            found = [next(results) for _ in cell]
            table = [
                [None if run is None else run.summary[each.metric] for run in found]
                for each in self.objectives
            ]
            rows.append(None if any(None in row for row in table) else self._worst(table))
        return rows

    def _worst(self, table: Sequence[Sequence[Any]]) -> Values:
        links = len(self.bases)
        return tuple(
            tuple(
                each.worst(row[at : at + links], self.quantile) for at in range(0, len(row), links)
            )
            for each, row in zip(self.objectives, table, strict=True)
        )


_OF_LINK = ("link", "buffer", "prefilter", "prefilter_params", "told_rate")
"""Keys of a queue that are not its discipline's."""


def _base(link: Setup | Source) -> tuple[str, Mapping[str, Any]]:
    if isinstance(link, Setup):
        base = {**scenario_for(link), "measure": {}}
        try:
            Scenario(base, origin=link.title)
        except ScenarioError as error:
            told = InputError(
                error.problem, key=error.key, value=error.value, allowed=error.allowed,
                hint=error.hint,
            )  # fmt: skip
            raise as_asked(told, link, several=False) from error
        return link.title, base
    made = scenario.of(link, {})
    return made.table.get("title") or made.origin, made.table


def _search(
    made: _Runs, knobs: Sequence[Knob], runs: int, seconds: float | None, seeds: Sequence[int]
) -> list[Tuned]:
    def written(point: Point) -> dict[str, Any]:
        return {knob.name: knob.written(point[knob.name]) for knob in knobs}

    def values(points: Sequence[Point]) -> list[tuple[float, ...] | None]:
        rows = made.values([written(point) for point in points], seeds)
        found.extend(
            Tuned(written(point), row) for point, row in zip(points, rows, strict=True) if row
        )
        return [None if row is None else tuple(estimate(e).mean for e in row) for row in rows]

    found: list[Tuned] = []
    space = {knob.name: knob.axis for knob in knobs}
    directions = [each.direction for each in made.objectives]
    done = 0
    ends = None if seconds is None else time.monotonic() + seconds
    for batch in search(space, directions, values, runs, seeds[0], ends):
        done += len(batch)
        made.maker.told(done / runs, f"{len(_front(found, made.objectives))} points in front")
    if not found:
        raise InputError(
            "no set of parameters could be simulated",
            key="params", hint="narrow the ranges, as in --param target=1ms..50ms",
        )  # fmt: skip
    return found


def _front(points: Sequence[Tuned], objectives: Sequence[Objective]) -> list[Tuned]:
    """The points that no other dominates, by the first objective; one of each set of values."""
    unlike = list({each.values: each for each in points}.values())
    kept = [
        one
        for one in unlike
        if not any(
            rules.dominates(other.values, one.values, objectives, surely=False) for other in unlike
        )
    ]
    return sorted(kept, key=lambda each: each.mean(0).mean)


def _spread(front: Sequence[Tuned]) -> list[Tuned]:
    """At most :data:`_SHOWN` points, from one end of the front to the other."""
    if len(front) <= _SHOWN:
        return list(front)
    return [front[round(k * (len(front) - 1) / (_SHOWN - 1))] for k in range(_SHOWN)]
