"""Comparing candidates with a recording by simulation."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bluewater._core import ScenarioError
from bluewater.study.identify import candidates, features, path
from bluewater.study.identify.candidates import FAMILIES, Family
from bluewater.study.identify.path import Queue, Seen
from bluewater.study.search.optimise import BATCH, search

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bluewater.study.identify.recording import Recording
    from bluewater.study.search.optimise import Point

_PACKETS = 12_000
"""About so many packets of a recording are looked at, evenly spread."""
_ROUNDS = ((16, 6), (8, 8), (4, 16), (2, 20))
"""Searching: so many best families get so many more runs each."""
_SEEDS = 5
"""Seeds of the best point of the best families."""


@dataclass
class _Tried:
    """A family's points with their misfits."""

    family: Family
    points: list[tuple[float, Point]] = field(default_factory=list)

    @property
    def best(self) -> tuple[float, Point]:
        """The best point."""
        return min(self.points, key=lambda each: each[0], default=(math.inf, {}))


@dataclass(frozen=True)
class Observed:
    """A recording as it is compared.

    Attributes:
        statistics: Its summary statistics.
        every: Every so many-th packet counts.
        rate: Of the link, bit/s.
        room: Bytes that waited at most, if there is one queue.
        unit: A short waiting time, s.
        ecn: Whether packets were marked.
        end: When the last packet was sent, s.
        flows: Number of flows.
    """

    statistics: NDArray[np.float64]
    every: int
    rate: float
    room: float
    unit: float
    ecn: bool
    end: float
    flows: int


def observe(recording: Recording) -> tuple[Observed, features.Basics]:
    """The statistics of a recording, and what is read off it."""
    basics = features.basics(recording)
    waited = recording.arrived - recording.sent - recording.size * 8 / basics.rate - basics.base
    every = max(1, len(recording.sent) // _PACKETS)
    some = slice(None, None, every)
    seen = Seen(
        *(each[some] for each in (
            recording.sent, recording.size, recording.ecn, recording.flow, waited, recording.marked,
        ))
    )  # fmt: skip
    unit = max(5e-4, 1500 * 8 / basics.rate)
    longest = float(np.nanquantile(waited, 0.999))
    return Observed(
        features.statistics(seen, unit), every, basics.rate, longest * basics.rate / 8, unit,
        bool(recording.marked.any()), float(recording.sent[-1]), int(recording.flow.max()) + 1,
    ), basics  # fmt: skip


def _statistics(observed: Observed, file: Path, made: tuple[Queue, int]) -> Any:
    """The statistics of a candidate; None if its parameters do not fit together."""
    queue, seed = made
    text = path.scenario(queue, file, observed.end, seed)
    try:
        seen = path.run(text, observed.flows, observed.every)
    except ScenarioError:
        return None
    return features.statistics(seen, observed.unit)


class Simulator:
    """Makes runs of candidates with the packets of a recording, side by side."""

    def __init__(self, observed: Observed, file: Path, many: Callable[..., Any]) -> None:
        self.observed, self._file, self._many = observed, file, many

    def misfits(self, queues: Sequence[Queue], seed: int) -> list[float]:
        """The misfit of each queue; infinite if it cannot be simulated."""
        return [
            math.inf
            if made is None
            else features.misfit(features.deviations(self.observed.statistics, made, 0.0))
            for made in self.statistics([(queue, seed) for queue in queues])
        ]

    def statistics(self, made: Sequence[tuple[Queue, int]]) -> list[Any]:
        """The statistics of queues, each with a seed."""
        return list(self._many(partial(_statistics, self.observed, self._file), made))


@contextmanager
def simulator(recording: Recording, observed: Observed, jobs: int) -> Iterator[Simulator]:
    """Makes the capture and the processes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sent.pcapng"
        path.capture(recording, file)
        if jobs == 1:
            yield Simulator(observed, file, map)
            return
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            yield Simulator(observed, file, pool.map)


def find(
    made: Simulator, seed: int, told: Callable[[float, str], object] = lambda *_: None
) -> list[_Tried]:
    """Searches every family's parameters, the better ones longer."""
    observed = made.observed
    tried = [_Tried(each) for each in FAMILIES if each.ecn or not observed.ecn]
    whole = sum(min(count, len(tried)) * runs for count, runs in _ROUNDS)
    done = 0
    for turn, (count, runs) in enumerate(_ROUNDS):
        for each in sorted(tried, key=lambda one: one.best[0])[:count]:
            _explore(made, each, runs, seed, turn)
            done += runs
            told(done / whole, each.family.name)
    return sorted(tried, key=lambda one: one.best[0])


def _explore(made: Simulator, tried: _Tried, runs: int, seed: int, turn: int) -> None:
    """Adds points of a family, by Optuna; the first one is that of the defaults."""
    observed, family = made.observed, tried.family

    def values(points: Sequence[Point]) -> list[tuple[float, ...] | None]:
        queues = [
            candidates.queue(family, point, observed.rate, observed.room, observed.ecn)
            for point in points
        ]
        found = made.misfits(queues, seed)
        tried.points += zip(found, points, strict=True)
        return [None if math.isinf(each) else (each,) for each in found]

    space = candidates.space(family, observed.room)
    if not tried.points:
        values([candidates.usual(family, observed.room)])
        runs -= 1
    known = [((each,), point) for each, point in tried.points if math.isfinite(each)]
    for _ in search(space, ["minimize"], values, runs, seed + turn, known=known):
        pass
