"""Comparing candidates with a recording by simulation."""

from __future__ import annotations

import math
import random
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bluewater._core import ScenarioError
from bluewater.errors import InputError
from bluewater.study.identify import candidates, features, path
from bluewater.study.identify.candidates import SEARCHED, Family, Room
from bluewater.study.identify.path import Queue, Seen
from bluewater.study.identify.recording import ECN
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from bluewater.study.identify.candidates import Point
    from bluewater.study.identify.cross import Cross
    from bluewater.study.identify.recording import Recording

_PACKETS = 9_000
"""About so many packets of a recording are looked at, evenly spread."""
_ROUNDS = ((len(SEARCHED), 4, 0.6), (8, 8, 0.5), (4, 12, 0.3), (3, 16, 0.12), (2, 24, 0.05))
"""Searching: so many best families get so many more runs each, near their best points by this
share."""
_AGAIN, _ALMOST = 3, 1.5
"""If no family explains the recording the last rounds come so often again, near points whose misfit
and error are at most so many times the least."""
_WIDE = (32, 0.15)
"""And the likeliest family, for its intervals."""
_BATCH = 4
"""Points that are drawn before their results are known."""
_LAST, _SEEDS = 4, 5
"""The best families get runs with so many seeds."""
_NEAR = (0.0, 0.03, 0.08)
"""And with parameters that lie around the best ones by these shares: the decisions of CoDel and its
kin depend on them so finely that the search seldom meets them exactly. The best share counts."""
_FACTORS = (0.5, 0.7, 0.84, 1.19, 1.43, 2.0)
"""Around the best value of a parameter these multiples are simulated."""
_COMB = tuple(1.1**n for n in range(-6, 7))
"""And around the best interval of CoDel and its kin these: the misfit falls only within a tenth of
the right one, for almost any target."""
_TARGETS = (0.005, 0.02)
"""And with these targets, s."""
_BUFFERS = tuple(40.0 * 2**n for n in range(10))
"""Buffers, in packets, of queues per flow: one that never fills is like any larger one."""
_WALLS = (0.6, 0.75, 0.9, 1.0, 1.15)
"""And these multiples of ``max_th`` with the deepest of these buffers: both end a queue."""
_COUNT, _COUNT_BESIDE = 16, 8
"""How many independent statistics a recording counts for, without and with cross traffic. The
statistics are correlated and no model is exact, so it is far below their number; measured in
docs/identify.md."""
_ERROR = 0.1
"""Misfit that the right queue may have as well by chance."""
_CROSSES = math.exp(2 * 3.84 / _COUNT)
"""Rise of misfit and error at the ends of a 95 % interval, as a factor, by the likelihood ratio; of
single runs, which add their own chance to that of the recording, so that its weight is half."""
_BEHIND = 5.0
"""Families whose misfit and error are so much larger than the least are given up."""
_BETTER = 0.8
"""A misfit that is so much smaller was not found before the families were judged."""
_RARE = 0.001
"""Losses of so few packets may be the path's."""
_EXPLAINED, _EXPLAINED_BESIDE = 0.5, 1.4
"""The largest misfit of a queue that explains a recording, without and with cross traffic, which is
known only in part."""
SURE = 0.95
"""Probability from which on a family counts as certain."""


@dataclass
class _Tried:
    """A family's points with their misfits."""

    family: Family
    points: list[tuple[float, Point]] = field(default_factory=list)
    deepened: bool = False
    combed: set[float] = field(default_factory=set)

    @property
    def best(self) -> tuple[float, Point]:
        """The best point."""
        return min(self.points, key=lambda each: each[0], default=(math.inf, {}))

    def within(self, factor: float) -> list[Point]:
        """The points whose misfit and error are at most so many times the least."""
        level = factor * (self.best[0] + _ERROR)
        return [point for misfit, point in self.points if misfit + _ERROR <= level]


@dataclass(frozen=True)
class Candidate:
    """A queue to simulate.

    Attributes:
        queue: The queue.
        family: Its family.
        others: Flows of cross traffic.
        hash: Number of the key of its hash, if it tells much; what else is random does not then.
    """

    queue: Queue
    family: Family
    others: int
    hash: int | None


@dataclass(frozen=True)
class Observed:
    """A recording as it is compared.

    Attributes:
        statistics: Its summary statistics.
        every: Every so many-th packet counts.
        rate: Of the link, bit/s.
        burst: Bytes that a shaper in front of the link lets pass at once; 0 if there is none.
        line: Rate of the link on which packets leave, bit/s.
        room: What waited at most.
        unit: A short waiting time, s.
        ecn: Whether packets were marked.
        elsewhere: What happened to packets that found no queue.
        cross: What else passes.
        jitter: What the path adds to delays.
        end: When the last packet was sent, s.
        flows: Number of flows.
    """

    statistics: NDArray[Any]
    every: int
    rate: float
    burst: int
    line: float
    room: Room
    unit: float
    ecn: bool
    elsewhere: features.Elsewhere
    cross: Cross | None
    jitter: features.Jitter
    end: float
    flows: int

    @property
    def explained(self) -> float:
        """The largest misfit of a queue that explains it."""
        return _EXPLAINED_BESIDE if self.cross else _EXPLAINED

    def candidate(self, family: Family, point: Point) -> Candidate:
        """The queue of a point, on this path."""
        made = candidates.queue(family, point, self.rate, self.room, self.ecn)
        queue = replace(made, burst=self.burst, line=self.line)
        return Candidate(queue, family, point.get("others", 1), point.get("hash"))


def observe(recording: Recording) -> tuple[Observed, features.Basics]:
    """The statistics of a recording, and what is read off it."""
    basics = features.basics(recording)
    waited = basics.waited
    every = max(1, len(recording.sent) // _PACKETS)
    seen = Seen(
        recording.sent, recording.size, recording.ecn, recording.flow, waited, recording.marked
    ).every(every)
    unit = max(5e-4, 1500 * 8 / basics.rate)
    longest = float(np.nanquantile(waited, 0.999))
    if not recording.marked.any() and recording.lost.mean() <= _RARE:
        raise InputError(
            "nothing to identify: none of the packets is lost or marked, though they wait up to "
            f"{number(1e3 * max(longest, 0))} ms",
            hint="the bottleneck has to be overloaded until its queue acts",
        )
    if longest < recording.size.max() * 8 / basics.rate:
        raise InputError(
            f"nothing to identify: no packet waits in a queue longer than {number(1e3 * longest)} "
            "ms, so losses and marks come from elsewhere",
            hint="no packet finds the path idle: begin before the overload"
            if features.never_idle(recording, basics.rate)
            else "the bottleneck has to be overloaded; `bluewater probe` finds its rate",
        )
    room = Room(
        longest * basics.rate / 8, int(recording.size.max()), features.usual(recording, waited)
    )
    return Observed(
        features.statistics(seen, unit), every, basics.rate, basics.burst, basics.line,
        room, unit,
        bool(recording.marked.any()), features.elsewhere(recording, basics),
        basics.cross, basics.jitter,
        float(recording.sent[-1]), int(recording.flow.max()) + 1,
    ), basics  # fmt: skip


def _statistics(observed: Observed, folder: Path, seed: int, made: tuple[Candidate, int]) -> Any:
    """The statistics of a candidate, by itself and with what may happen elsewhere on the path.

    None if its parameters do not fit together.
    """
    candidate, draw = made
    queue, jitter = candidate.queue, observed.jitter
    beside = _beside(observed.cross, folder, candidate, draw) if observed.cross else None
    seed += draw if candidate.hash is None else candidate.hash
    text = path.scenario(queue, folder / _SENT, observed.end, seed, beside)
    try:
        seen = path.run(text, observed.flows, 1 if jitter else observed.every)
    except ScenarioError:
        return None
    if jitter:
        seen = jitter.added(seen, observed.line).every(observed.every)
    if observed.cross:  # whether any packet found no queue is not known
        seen = replace(seen, waited=seen.waited - np.nanmin(seen.waited))
    both = [seen, observed.elsewhere.added(seen)] if observed.elsewhere else [seen]
    return np.array([features.statistics(each, observed.unit) for each in both])


def _beside(cross: Cross, folder: Path, made: Candidate, draw: int) -> tuple[Path, float]:
    """A capture of cross traffic for a candidate, made once for all like it, and its beginning."""
    family = made.family
    file = folder / f"{family.fair}-{family.apart}-{made.others}-{draw}.pcapng"
    packets = cross.packets(family.fair, family.apart, made.others, draw)
    if not file.exists():
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as other:
            path.capture(packets, Path(other.name))
        Path(other.name).replace(file)
    return file, float(packets.sent[0])


_SENT = "sent.pcapng"


class Simulator:
    """Makes runs of candidates with the packets of a recording, side by side."""

    def __init__(
        self, observed: Observed, folder: Path, seed: int, many: Callable[..., Any]
    ) -> None:
        self.observed, self.seed, self._many = observed, seed, many
        self._run = partial(_statistics, observed, folder, seed)

    def misfits(self, made: Sequence[Candidate]) -> list[float]:
        """The misfit of each candidate; infinite if it cannot be simulated."""
        return [
            math.inf
            if runs is None
            else min(
                features.misfit(features.deviations(self.observed.statistics, each, 0.0))
                for each in runs
            )
            for runs in self.statistics([(each, 0) for each in made])
        ]

    def statistics(self, made: Sequence[tuple[Candidate, int]]) -> list[Any]:
        """The statistics of candidates, each with the number of a draw of what is random."""
        return list(self._many(self._run, made))


@contextmanager
def simulator(
    recording: Recording, observed: Observed, seed: int, jobs: int
) -> Iterator[Simulator]:
    """Makes the capture and the processes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path.capture(recording, folder / _SENT)
        if jobs == 1:
            yield Simulator(observed, folder, seed, map)
            return
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            yield Simulator(observed, folder, seed, pool.map)


def find(made: Simulator, told: Callable[[float, str], object] = lambda *_: None) -> list[_Tried]:
    """Searches every family's parameters, the better ones longer."""
    observed, draws = made.observed, random.Random(made.seed)
    tried = [
        _Tried(each.beside_others() if observed.cross else each)
        for each in SEARCHED
        if each.ecn or observed.elsewhere or not observed.ecn
    ]
    for each in tried:
        _tried(made, each, candidates.starts(each.family, observed.room))
    whole = sum(min(count, len(tried)) * runs for count, runs, _ in _ROUNDS)
    done = 0
    for count, runs, spread in _ROUNDS:
        ahead = _ahead(tried, count)
        for each in ahead:
            done += runs
            behind = each.best[0] + _ERROR > _BEHIND * (ahead[0].best[0] + _ERROR)
            if behind and count < len(SEARCHED):
                continue
            if count <= _LAST:
                _deepen(made, each)
                _comb(made, each)
            _explore(made, each, runs, spread, draws)
            told(min(1.0, done / whole), each.family.name)
    return tried


def _last(tried: list[_Tried]) -> list[_Tried]:
    """The best families, each name once."""
    best: dict[str, _Tried] = {}
    for each in sorted(tried, key=lambda one: one.best[0]):
        best.setdefault(each.family.name, each)
    return _ahead(list(best.values()), _LAST)


def _ahead(tried: list[_Tried], count: int) -> list[_Tried]:
    """The best families, of which so many differ: those that treat all packets alike count once."""
    levels = sorted({each.best[0] for each in tried})[:count]
    return sorted((one for one in tried if one.best[0] <= levels[-1]), key=lambda one: one.best[0])


def _look_on(made: Simulator, tried: list[_Tried], draws: random.Random) -> None:
    """Searches on where the best points explain too little, near others as well."""
    for count, runs, spread in _ROUNDS[2:]:
        for each in _ahead(tried, count):
            _explore(made, each, runs, spread, draws, _ALMOST)


def _explore(
    made: Simulator,
    tried: _Tried,
    runs: int,
    spread: float,
    draws: random.Random,
    factor: float = 1.0,
) -> None:
    """Adds points near the best one, or near those whose misfit is at most so many times larger."""
    for _ in range(runs // _BATCH):
        parents = tried.within(factor)
        points = [
            candidates.near(tried.family, draws.choice(parents), spread, made.observed.room, draws)
            for _ in range(_BATCH)
        ]
        _tried(made, tried, points)


def _deepen(made: Simulator, tried: _Tried) -> None:
    """Looks at far buffers where no waiting time bounds them, or max_th does in their place."""
    if tried.deepened:
        return
    tried.deepened, best = True, tried.best[1]
    if tried.family.fair:
        _tried(made, tried, [{**best, "buffer": each} for each in _BUFFERS])
    elif "max_th" in best:
        _tried(made, tried, [
            {**best, "buffer": _BUFFERS[-1], "max_th": best["max_th"] * each} for each in _WALLS
        ])  # fmt: skip


def _comb(made: Simulator, tried: _Tried) -> None:
    """Looks closely at intervals, for each target that has become the best one since."""
    best = tried.best[1]
    if "interval" not in best:
        return
    targets = {*_TARGETS, best["target"]} - tried.combed
    tried.combed |= targets
    _tried(made, tried, [
        {**best, "target": target, "interval": best["interval"] * each}
        for target in sorted(targets) for each in _COMB
    ])  # fmt: skip


def _tried(made: Simulator, tried: _Tried, points: Sequence[Point]) -> list[float]:
    """The misfits of points of a family, which are added to it."""
    before = [point for _, point in tried.points]
    new = [point for point in points if point not in before]
    found = made.misfits([made.observed.candidate(tried.family, point) for point in new])
    tried.points += zip(found, new, strict=True)
    return [next(value for value, other in tried.points if other == point) for point in points]


@dataclass(frozen=True)
class Parameter:
    """A parameter of the most likely queue, as scenario files write it.

    Attributes:
        name: Its name; ``buffer`` is the queue's.
        value: The most likely value.
        low: The least one in the 95 % interval; None where the recording does not bound it.
        high: The largest one.
    """

    name: str
    value: str
    low: str | None
    high: str | None


@dataclass(frozen=True)
class Answer:
    """What a recording says about its path.

    Attributes:
        probabilities: Of the families that are worth naming, the most likely first.
        known: Whether the first of them explains the recording.
        misfit: Mean squared deviation of its statistics, about 1 or less if it explains it.
        rate: Rate of the bottleneck, bit/s.
        base: Delay without queue, s; it contains the difference of the two clocks.
        longest: Longest time in the queue (99.9 %), s.
        cross: Share of other traffic of what passed while packets waited.
        marked: For each codepoint that was sent ECN-capable, the share that arrived marked.
        queue: The most likely queue, as a scenario writes it.
        parameters: Its parameters.
        remarks: What may make the answer wrong.
    """

    probabilities: tuple[tuple[str, float], ...]
    known: bool
    misfit: float
    rate: float
    base: float
    longest: float
    cross: float
    marked: dict[str, float]
    queue: Queue
    parameters: tuple[Parameter, ...]
    remarks: tuple[str, ...]

    @property
    def families(self) -> tuple[str, ...]:
        """The fewest families that are right with a probability of 95 %; none if unknown."""
        named, total = [], 0.0
        for name, share in self.probabilities if self.known else ():
            named.append(name)
            total += share
            if total >= SURE:
                break
        return tuple(named)


def identify(
    recording: Recording,
    seed: int = 1,
    jobs: int = 1,
    told: Callable[[float, str], object] = lambda *_: None,
) -> Answer:
    """Finds the queue that explains a recording best.

    Args:
        recording: What a path did to packets.
        seed: Of the search and of the simulations.
        jobs: Processes that simulate at once; the answer does not depend on it.
        told: Called with the fraction done and the candidate at hand.
    """
    observed, basics = observe(recording)
    with simulator(recording, observed, seed, jobs) as made:
        tried = find(made, lambda done, name: told(0.85 * done, name))
        judged = _judged(made, _last(tried))
        for again in range(_AGAIN):
            if judged[0][1] <= observed.explained:
                break
            told(0.85, "what explains more")
            _look_on(made, tried, random.Random(again))
            judged = _judged(made, _last(tried))
        _, misfit, best = judged[0]
        told(0.95, best.family.name)
        before, bounds = best.best[0], _bounds(made, best)
        if best.best[0] < _BETTER * before:
            judged = _judged(made, _last(tried))
            _, misfit, best = judged[0]
    count = _COUNT_BESIDE if observed.cross else _COUNT
    weights = [(score / judged[0][0]) ** (-count / 2) for score, _, _ in judged]
    shares = [each / sum(weights) for each in weights]
    family, point = best.family, best.best[1]

    def text(name: str, value: float | None) -> str | None:
        if value is None:
            return None
        return str(candidates.written(family, name, {**point, name: value}, observed.room))

    told(1.0, family.name)
    return Answer(
        tuple(
            (each.family.name, share)
            for (_, _, each), share in zip(judged, shares, strict=True)
        ),
        misfit <= observed.explained, misfit,
        observed.rate, basics.base,
        observed.room.size * 8 / observed.rate,
        observed.cross.share if observed.cross else 0.0, _marks(recording),
        observed.candidate(family, point).queue,
        tuple(
            Parameter(name, text(name, point[name]) or "", *(
                text(name, end) for end in bounds.get(name, (None, None))
            ))
            for name in ("buffer", *family.axes)
        ),
        tuple(_remarks(
            observed.elsewhere, never_idle=features.never_idle(recording, observed.rate)
        )),
    )  # fmt: skip


def _remarks(found: features.Elsewhere, *, never_idle: bool) -> Iterator[str]:
    if never_idle:
        yield (
            "no packet finds the path idle: the delay without queue may be too long, and so the "
            "time in the queue and the buffer too small; begin before the overload"
        )
    if found:
        yield (
            f"{found.lost} packets were lost and {found.marked} marked where no packet waited: "
            "unless the queue is RED, ARED, CHOKe, BLUE, SFB or DualPI2, this happened elsewhere "
            "on the path"
        )


def _bounds(made: Simulator, tried: _Tried) -> dict[str, tuple[float | None, float | None]]:
    """Where the misfit passes that of the 95 % interval.

    For each parameter by itself, and wider where others compensate for it in points of the search.
    """
    found = {}
    _explore(made, tried, *_WIDE, random.Random(made.seed), _CROSSES)
    for name in ("buffer", *tried.family.axes):
        least, best = tried.best
        points = [{**best, name: best[name] * factor} for factor in _FACTORS]
        values = _tried(made, tried, points)
        curve = sorted([(0.0, least), *zip(map(math.log, _FACTORS), values, strict=True)])
        level = (min(least, *values) + _ERROR) * _CROSSES - _ERROR
        ends = [_crossing(curve, level, way) for way in (-1, 1)]
        likely = [point[name] for point in tried.within(_CROSSES)]
        low, high = (None if end is None else best[name] * math.exp(end) for end in ends)
        found[name] = (
            None if low is None else min(low, *likely), None if high is None else max(high, *likely)
        )  # fmt: skip
    return found


def _crossing(curve: Sequence[tuple[float, float]], level: float, way: int) -> float | None:
    """The last place, seen from the least value, at which a curve reaches a level."""
    at = min(range(len(curve)), key=lambda k: curve[k][1])
    while 0 <= at + way < len(curve):
        (here, low), (there, high) = curve[at], curve[at + way]
        if high > level:
            share = 1.0 if math.isinf(high) else (level - low) / (high - low)
            return here + share * (there - here)
        at += way
    return None


def _judged(made: Simulator, last: Sequence[_Tried]) -> list[tuple[float, float, _Tried]]:
    """Score, misfit and family, the best first.

    Those that explain the recording, or almost as much as the best one does; all if none does.

    The spread of runs counts as likely: the synthetic likelihood. Families with more parameters pay
    for each, as in Schwarz's criterion (Schwarz78).
    """
    observed, found = made.observed, []
    for each in last:
        best, draws = each.best[1], random.Random(made.seed)
        scores = []
        for near in _NEAR:
            points = [
                best | {
                    name: best[name] * math.exp(draws.gauss(0, near)) for name in each.family.axes
                }
                for _ in range(_SEEDS)
            ]  # fmt: skip
            queues = [observed.candidate(each.family, point) for point in points]
            runs = made.statistics([(queue, draw) for draw, queue in enumerate(queues)])
            kept = [row for row in runs if row is not None]
            if kept:
                scores += [_score(observed, rows) for rows in np.stack(kept, axis=1)]
        if scores:
            score, misfit = (min(each) for each in zip(*scores, strict=True))
            price = _COUNT ** (len(each.family.axes) / _COUNT)
            found.append(((score + _ERROR) * price, misfit, each))
    found.sort(key=lambda each: each[0])
    least = min(misfit for _, misfit, _ in found)
    likely = max(observed.explained, _ALMOST * (least + _ERROR) - _ERROR)
    return [each for each in found if least > observed.explained or each[1] <= likely]


def _score(observed: Observed, rows: NDArray[Any]) -> tuple[float, float]:
    """Score and misfit of runs."""
    there = (~np.isnan(rows)).sum(0)
    filled = np.where(np.isnan(rows), 0.0, rows)
    mean = np.where(there > _SEEDS / 2, filled.sum(0) / np.maximum(there, 1), np.nan)
    square = np.where(np.isnan(rows), 0.0, rows - mean) ** 2
    spread = np.sqrt(np.nan_to_num(square).sum(0) / np.maximum(there - 1, 1) * (1 + 1 / _SEEDS))
    z = features.deviations(observed.statistics, mean, spread)
    misfit = features.misfit(z)
    width = np.log1p(np.square(spread / features.FLOORS))[~np.isnan(z)].mean()
    return misfit + float(width), misfit


def _marks(recording: Recording) -> dict[str, float]:
    """The share of marks by the codepoint sent."""
    there = ~recording.lost
    codes = {bits: there & (recording.ecn == bits) for bits in (1, 2)}
    return {
        ECN[bits]: float(recording.marked[those].mean())
        for bits, those in codes.items()
        if those.any()
    }
