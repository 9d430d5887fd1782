"""Optuna behind one function: it proposes points in batches, the caller makes their runs.

The batches do not depend on the number of parallel runs, so a search is a function of its seed. A
repeated search proposes the same points, whose runs the store has.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bluewater.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BATCH = 10
"""Points that are proposed before their results are known."""
_RANDOM = 20
"""Points drawn at random before the sampler goes by results."""

Point = dict[str, Any]
"""A value for each axis, by name."""


@dataclass(frozen=True)
class Range:
    """An axis of numbers, both ends included."""

    low: float
    high: float
    log: bool = True
    whole: bool = False


Space = dict[str, Range | list[Any]]
"""The axes of a search: a range of numbers, or a list of choices."""


def search(
    space: Space,
    directions: Sequence[Literal["maximize", "minimize"]],
    values: Callable[[Sequence[Point]], Sequence[tuple[float, ...] | None]],
    runs: int,
    seed: int,
    ends: float | None = None,
    known: Sequence[tuple[tuple[float, ...], Point]] = (),
) -> Iterator[int]:
    """Searches with Optuna's TPE sampler; yields the number of points of each batch.

    Args:
        space: The axes.
        directions: ``maximize`` or ``minimize`` for each objective.
        values: Makes the runs of a batch; ``None`` for a point where none is possible.
        runs: How many points to try.
        seed: The sampler's seed.
        ends: No batch begins after this :func:`time.monotonic`.
        known: Points whose values are known already.
    """
    try:
        import optuna  # noqa: PLC0415 - optional, and slow to load
    except ImportError as error:
        hint = "pip install 'bluewater[search]'"
        raise InputError("a search needs Optuna, which is not installed", hint=hint) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    kinds, state = optuna.distributions, optuna.trial.TrialState

    def axis(each: Range | list[Any]) -> Any:
        if isinstance(each, list):
            return kinds.CategoricalDistribution(each)
        if each.whole:
            return kinds.IntDistribution(int(each.low), int(each.high), log=each.log)
        return kinds.FloatDistribution(each.low, each.high, log=each.log)

    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=min(_RANDOM, runs))
    study = optuna.create_study(directions=list(directions), sampler=sampler)
    axes = {name: axis(each) for name, each in space.items()}
    for found_before, point in known:
        study.add_trial(
            optuna.trial.create_trial(params=point, distributions=axes, values=found_before)
        )
    for start in range(0, runs, BATCH):
        if ends is not None and time.monotonic() > ends:
            return
        trials = [study.ask(axes) for _ in range(min(BATCH, runs - start))]
        found = values([dict(trial.params) for trial in trials])
        for trial, each in zip(trials, found, strict=True):
            study.tell(trial, each, state.FAIL if each is None else state.COMPLETE)
        yield len(trials)
