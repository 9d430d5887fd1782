"""Traffic that breaks a queue discipline, searched, reduced to what it needs, and checked."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater.arguments import NUMBER, TEXT, Argument, checked, with_fields
from bluewater.errors import InputError, Interrupted, unknown
from bluewater.files import write_text
from bluewater.lab.making import CORES, DEFAULT_OUT, MAKING, REAL, Maker, at_least
from bluewater.results.stats import Estimate, estimate
from bluewater.study.execution.execute import HERE
from bluewater.study.search import attack as rules
from bluewater.study.search.attack import MEASURES, Effect, Moves, Threat
from bluewater.study.search.optimise import search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.aqm import Aqm
    from bluewater.study.scenarios.scenario import Scenario
    from bluewater.study.search.optimise import Point

_THREAT = Argument((Threat,), 'a Threat; its fields go by name, as in rate="10mbit"')
_AQM = Argument((str, type), "a name, or your own class")
_KEPT = 0.9
"""The reduced attack keeps this share of the damage."""
_CHOSEN = 8
"""So many of the best points are tried with more seeds, because the best of many is partly luck."""
_MORE = 2
"""Seeds beside the search's for choosing and reducing."""
_ROUNDING = 1.02
"""How far whole packets may take an attack above its mean rate."""
_NONE = float("-inf")
"""The damage of an attack that exceeds its budget."""


@dataclass(frozen=True)
class Measured:
    """An attack, and its effects seed by seed.

    Attributes:
        name: What it is.
        moves: What the attacker does; ``None`` for no attack.
        runs: Its effects.
    """

    name: str
    moves: Moves | None
    runs: tuple[Effect, ...]

    def mean(self, what: str) -> Estimate:
        """The mean over seeds of ``value``, ``damage`` or ``load``."""
        return estimate([getattr(each, what) for each in self.runs])


@dataclass(frozen=True)
class Attack:
    """The worst traffic that a search found for a queue discipline.

    Attributes:
        aqm: The discipline.
        measure: What the damage is measured by, one of :data:`MEASURES`.
        threat: The link, its users, and the attacker's budget.
        found: The reduced attack.
        words: The attack in plain words.
        remark: What kind of attack it is, if it has a name.
        beside: No attack, and attacks at a constant rate; none after Ctrl-C.
        scenario: The attack with the first of the seeds that the search did not see.
        decision_hash: The decision hash of that scenario.
        tried: How many attacks the search tried.
    """

    aqm: str
    measure: str
    threat: Threat
    found: Measured
    words: str
    remark: str
    beside: tuple[Measured, ...] = field(repr=False)
    scenario: Scenario = field(repr=False)
    decision_hash: str
    tried: int

    @property
    def complete(self) -> bool:
        """Whether the attack was reduced and checked; not so after Ctrl-C."""
        return bool(self.beside)

    @property
    def is_real(self) -> bool:
        """Whether the damage exceeds 0 by its whole interval over fresh seeds."""
        return self.complete and self.found.mean("damage").low > 0

    @property
    def beats_constant(self) -> bool:
        """Whether it does more damage than a constant rate with the whole budget, seed by seed."""
        pairs = zip(self.found.runs, self.beside[1].runs, strict=True) if self.complete else ()
        more = [one.damage - other.damage for one, other in pairs]
        return bool(more) and estimate(more).low > 0

    def write(self, path: Path | str) -> None:
        """Writes the scenario as TOML, with its decision hash and the attack in words above it."""
        mean = self.found.mean("damage").mean
        head = (
            f"# {self.aqm}, {self.measure}: {self.words}\n# {self.threat.title}\n"
            f"# damage {mean:.4g}{'' if self.complete else ', not checked with other seeds'}\n"
            f"# decision hash {self.decision_hash}\n"
        )
        write_text(Path(path), head + self.scenario.canonical)


class Runs:
    """The runs of attacks and of their absence."""

    def __init__(self, aqm: str | type[Aqm], measure: str, threat: Threat, maker: Maker) -> None:
        self.aqm = aqm
        self.measure = measure
        self.threat = threat
        self.maker = maker

    def scenario(self, chosen: Moves | None, seed: int) -> Scenario:
        """The link with an attack, or without one."""
        table = rules.scenario(self.aqm, self.threat, chosen)
        return self.maker.scenario({**table, "seed": seed}, self.threat)

    def effects(
        self, each: Sequence[Moves | None], seeds: Sequence[int]
    ) -> list[tuple[Effect, ...]]:
        """The effects of attacks, seed by seed."""
        cells = [(moves, seed) for moves in dict.fromkeys([None, *each]) for seed in seeds]
        made = self.maker.make([self.scenario(*cell) for cell in cells])
        runs = dict(zip(cells, made, strict=True))
        return [
            tuple(
                rules.effect(self.measure, runs[moves, seed], runs[None, seed], self.threat)
                for seed in seeds
            )
            for moves in each
        ]

    def damages(self, each: Sequence[Moves], seeds: Sequence[int]) -> list[float]:
        """Mean damages."""
        most = self.threat.load * _ROUNDING
        return [
            estimate([one.damage for one in row]).mean
            if max(one.load for one in row) <= most
            else _NONE
            for row in self.effects(each, seeds)
        ]


@checked(aqm=_AQM, threat=_THREAT, measure=TEXT, runs=NUMBER, seconds=REAL, seed=NUMBER,
         reps=NUMBER, **MAKING)  # fmt: skip
def attack(
    aqm: str | type[Aqm],
    threat: Threat | None = None,
    *,
    measure: str = "throughput",
    runs: int = 300,
    seconds: float | None = None,
    seed: int = 1,
    reps: int = 5,
    jobs: int = CORES,
    on: str = HERE,
    share: str = "",
    out: Path | str = DEFAULT_OUT,
    progress: bool = True,
    **keys: Any,
) -> Attack:
    """Searches traffic that breaks a queue discipline, within an attacker's budget.

    Optuna proposes attacks; the best are tried with two more seeds. Then each move that is not
    needed for 90 % of the damage is removed or reduced, and the result is checked with fresh seeds,
    beside attackers at a constant rate. The same call gives the same attack, for any ``jobs``,
    unless ``seconds`` ended the search. After Ctrl-C the best attack so far is returned.

    Args:
        aqm: A queue discipline, with parameters if wanted (``"red:max_p=0.2"``), or your own class.
        threat: The link, its users, and the attacker's budget.
        measure: What the damage is measured by: ``throughput``, ``delay``, ``starve``, ``penalty``.
        runs: How many attacks to try.
        seconds: The search begins no further batch after this time.
        seed: Seed of the search and of its runs; those after it choose and check.
        reps: How many fresh seeds check the result, at least 2.
        jobs: Parallel runs.
        on: Where the runs are made, as for :func:`sweep`.
        share: A shared store of finished runs, as for :func:`sweep`.
        out: The folder of results.
        progress: Whether a bar is shown.
        keys: Fields of :class:`~bluewater.Threat` to set: ``load=0.1``.

    Raises:
        InputError: A name or quantity cannot be used, a run fails, or Optuna is not installed.
        Interrupted: Ctrl-C before any attack was tried.
    """
    if measure not in MEASURES:
        raise unknown("measure", measure, MEASURES, key="measure")
    at_least(runs=(runs, 1), reps=(reps, 2))
    chosen = with_fields(threat or Threat(), keys, "attack()")
    label = aqm if isinstance(aqm, str) else aqm.__name__
    with Maker(out, share, jobs, on, f"attack {label}", progress) as maker:
        made = Runs(aqm, measure, chosen, maker)
        made.scenario(Moves(chosen.load), seed)  # reports what is wrong with it
        best, tried = _search(made, runs, seconds, seed, label)
        worst, last, beside = best[0], [seed], []
        try:
            if tried == runs or seconds is not None:
                reduced = _reduced(made, _chosen(made, best, seed), seed)
                fresh = [seed + 1 + _MORE + k for k in range(reps)]
                beside = _beside(made, reduced, fresh)
                worst, last = reduced, fresh
        except Interrupted:
            pass
        (row,) = made.effects([worst], last)
        scenario = made.scenario(worst, last[0])
        (result,) = maker.make([scenario])
    return Attack(
        label, measure, chosen, Measured("worst found", worst, row), rules.words(worst, chosen),
        rules.remark(worst, chosen), tuple(beside), scenario, result.decision_hash, tried,
    )  # fmt: skip


def _search(
    made: Runs, runs: int, seconds: float | None, seed: int, label: str
) -> tuple[list[Moves], int]:
    """The best attacks on the search's own seed, best first, and how many were tried."""
    found: dict[Moves, float] = {}
    tried = given = 0
    ends = None if seconds is None else time.monotonic() + seconds

    def damages(points: Sequence[Point]) -> list[tuple[float, ...] | None]:
        proposed = [rules.moves(point, made.threat) for point in points]
        values = made.damages(proposed, [seed])
        found.update(zip(proposed, values, strict=True))
        return [None if value == _NONE else (value,) for value in values]

    families = rules.families(made.threat, label.partition(":")[0])
    try:
        for number, (part, space) in enumerate(families):
            is_last = number + 1 == len(families)
            few = runs - given if is_last else min(round(part * runs), runs - given)
            given += few
            for count in search(space, ["maximize"], damages, few, seed + number, ends):
                tried += count
                made.maker.told(tried / runs, f"worst damage {max(found.values()):.3g}")
    except Interrupted:
        if not found:
            raise
    if max(found.values(), default=_NONE) == _NONE:
        raise InputError("no attack keeps to the budget", hint="raise --load or --duration")
    return sorted(found, key=lambda each: -found[each]), tried


def _chosen(made: Runs, best: Sequence[Moves], seed: int) -> Moves:
    """The worst of the best attacks by its mean damage over more seeds."""
    few = best[:_CHOSEN]
    damages = made.damages(few, [seed + k for k in range(1 + _MORE)])
    return few[damages.index(max(damages))]


def _reduced(made: Runs, attack: Moves, seed: int) -> Moves:
    """The attack without what is not needed for :data:`_KEPT` of its damage."""
    seeds = [seed + k for k in range(1 + _MORE)]
    (damage,) = made.damages([attack], seeds)
    less: Moves | None = attack
    while less is not None and damage > 0:
        attack, smaller = less, rules.smaller(less)
        kept = zip(smaller, made.damages(smaller, seeds), strict=True)
        less = next((each for each, got in kept if got >= _KEPT * damage), None)
    return attack


def _beside(made: Runs, attack: Moves, seeds: Sequence[int]) -> list[Measured]:
    named: dict[str, Moves | None] = {
        "no attack": None,
        "constant rate, whole budget": Moves(made.threat.load),
        "constant rate, same mean": Moves(attack.load),
    }
    rows = made.effects([attack, *named.values()], seeds)[1:]
    return [Measured(*each, row) for each, row in zip(named.items(), rows, strict=True)]
