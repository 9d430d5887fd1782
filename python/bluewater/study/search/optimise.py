"""Optuna behind one function: it proposes points in batches, the caller makes their runs.

The batches do not depend on the number of parallel runs, so a search is a function of its seed. A
repeated search proposes the same points, whose runs the store has.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bluewater.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BATCH = 10
"""Points that are proposed before their results are known."""

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


@dataclass(frozen=True)
class Tried:
    """A point and its values, one per objective; ``None`` if no run was possible there."""

    point: Point
    values: tuple[float, ...] | None


def search(
    space: Space,
    directions: Sequence[str],
    values: Callable[[Sequence[Point]], Sequence[tuple[float, ...] | None]],
    runs: int,
    seed: int,
    ends: float | None = None,
) -> Iterator[list[Tried]]:
    """Searches with Optuna's TPE sampler; yields each batch of points with their values.

    Args:
        space: The axes.
        directions: ``maximize`` or ``minimize`` for each objective.
        values: Makes the runs of a batch.
        runs: How many points to try.
        seed: The sampler's seed.
        ends: No batch begins after this :func:`time.monotonic`.
    """
    optuna = _optuna()
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=min(20, runs))
    study = optuna.create_study(directions=list(directions), sampler=sampler)
    axes = {name: _axis(optuna, each) for name, each in space.items()}
    for start in range(0, runs, BATCH):
        if ends is not None and time.monotonic() > ends:
            return
        trials = [study.ask(axes) for _ in range(min(BATCH, runs - start))]
        points = [dict(trial.params) for trial in trials]
        tried = list(map(Tried, points, values(points)))
        for trial, each in zip(trials, tried, strict=True):
            state = optuna.trial.TrialState
            done = state.FAIL if each.values is None else state.COMPLETE
            study.tell(trial, each.values, done)
        yield tried


def _axis(optuna: Any, each: Range | list[Any]) -> Any:
    kinds = optuna.distributions
    if isinstance(each, list):
        return kinds.CategoricalDistribution(each)
    if each.whole:
        return kinds.IntDistribution(int(each.low), int(each.high), log=each.log)
    return kinds.FloatDistribution(each.low, each.high, log=each.log)


def _optuna() -> Any:
    """The optimiser, which is optional."""
    try:
        import optuna  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "a search needs Optuna, which is not installed",
            hint="pip install 'bluewater[search]'",
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
