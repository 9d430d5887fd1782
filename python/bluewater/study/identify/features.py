"""Summary statistics of what a queue did to packets, and how far two sets of them are apart."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bluewater.errors import InputError
from bluewater.study.identify import cross

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bluewater.study.identify.cross import Cross
    from bluewater.study.identify.path import Seen
    from bluewater.study.identify.recording import Recording

WINDOWS = 50
"""Windows of equal length that a recording is cut into."""
_LEAST = 12
"""Fewer packets of a class in a window give no statistic."""
_HEAVY = 0.2
"""A flow with this share of a window's packets counts as heavy."""
_TAIL = 0.02
"""Share of the largest throughputs that are left out as noise."""


@dataclass(frozen=True)
class Basics:
    """What is read off a recording without a model.

    Attributes:
        base: Least time from sending to arrival without transmission, s, on the clocks' difference.
        rate: Rate of the bottleneck, bit/s.
        burst: Bytes that it lets pass at once, as a token bucket does; 0 if packets leave one by
            one.
        line: Rate of the link on which packets leave, bit/s: more behind a shaper.
        waited: Time of each packet in the queue, s; NaN if it is lost.
        cross: What else passes, if anything.
        jitter: What the path adds; none if something else passes, because nothing tells them apart.
    """

    base: float
    rate: float
    burst: int
    line: float
    waited: NDArray[Any]
    cross: Cross | None
    jitter: Jitter


def basics(recording: Recording) -> Basics:
    """Rate, token bucket, base delay, cross traffic and jitter of a recording."""
    rate, steady = throughput(recording)
    usual, fast = 0.0, behind(recording, rate)
    if beside := cross.read(recording, rate, steady):
        rate = beside.rate
    elif varies := jitter(recording, rate, fast):
        rate, usual = throughput(recording, _LONG).rate, varies.usual
    burst = bucket(recording, rate, usual)
    if burst and not rate < fast < _FASTER * rate:
        fast = _FASTER * rate
    waited = recording.arrived - recording.sent - recording.size * 8 / fast
    base = float(np.nanmin(waited))
    late = NO_JITTER if beside else jitter(recording, rate, fast)
    return Basics(base, rate, burst, fast, waited - base, beside, late)


@dataclass(frozen=True)
class Jitter:
    """How the delay of a path varies that is not its queue's.

    Attributes:
        late: By how much packets that found the path idle were late, s; empty if it is little.
        ordered: Whether packets of a flow never overtake each other.
    """

    late: NDArray[Any]
    ordered: bool

    def __bool__(self) -> bool:
        """Whether it counts."""
        return self.late.size > 0

    @property
    def usual(self) -> float:
        """The delay that most of these packets do not exceed, s."""
        return float(np.quantile(self.late, _NEARLY)) if self else 0.0

    def added(self, seen: Seen, rate: float) -> Seen:
        """Packets that are late by chance as these, behind a queue that sends at this rate."""
        left = seen.sent + seen.size * 8 / rate
        arrived = left + seen.waited + np.random.default_rng(1).choice(self.late, left.size)
        if self.ordered:
            order = np.argsort(left + seen.waited, kind="stable")
            arrived[order] = np.fmax.accumulate(arrived[order])
            arrived[np.isnan(seen.waited)] = np.nan
        return replace(seen, waited=arrived - left)


NO_JITTER = Jitter(np.zeros(0), ordered=True)
_NEARLY = 0.95
_IDLE_PACKETS = 15
"""Fewer packets that find the path idle tell no jitter."""
_LITTLE, _LITTLE_S = 0.1, 5e-5
"""Jitter below this share of a full packet's time, or below this time in s, does not count."""


def jitter(recording: Recording, rate: float, fast: float) -> Jitter:
    """What packets show that were sent when all before had arrived, and a shaper lets pass again.

    Args:
        recording: The recording.
        rate: Of the bottleneck, bit/s.
        fast: Of the link behind it, bit/s.
    """
    full = recording.size.max() * 8 / rate
    idle = (_rests(recording) > (full if fast > rate else 0)) & ~recording.lost
    delay = (recording.arrived - recording.sent - recording.size * 8 / fast)[idle]
    little = max(_LITTLE_S, _LITTLE * full * rate / fast)
    if delay.size < _IDLE_PACKETS or np.quantile(delay, _NEARLY) - delay.min() < little:
        return NO_JITTER
    there = ~recording.lost
    flow, arrived = recording.flow[there], recording.arrived[there]
    order = np.argsort(flow, kind="stable")
    back = (np.diff(arrived[order]) < 0) & (np.diff(flow[order]) == 0)
    return Jitter(delay - delay.min(), not back.any())


def behind(recording: Recording, rate: float) -> float:
    """Rate of the link on which packets leave, bit/s: that of the bottleneck, or of a faster one.

    A packet that finds the path idle passes a shaper at once, such as CAKE's: its length hardly
    delays it.
    """
    full, delay = recording.size.max(), recording.arrived - recording.sent
    alone = (_rests(recording) > full * 8 / rate) & ~recording.lost
    groups = [alone & (recording.size < full / 2), alone & (recording.size > _FULL * full)]
    if min(each.sum() for each in groups) < _FEW:
        return rate
    sizes = [recording.size[each].mean() for each in groups]
    small, large = (np.quantile(delay[each], (0.0, _NEARLY)) for each in groups)
    bits, longer = (sizes[1] - sizes[0]) * 8, large[0] - small[0]
    vary = max(high - low for low, high in (small, large))
    if vary > bits / rate / 2 or longer > bits / rate / _SLOWER:
        return rate
    return float(bits / longer) if longer > 0 else math.inf


_FASTER, _SLOWER = 20.0, 1.25
"""A link behind a token bucket is so many times as fast, unless packets tell. They tell no less
than the second factor."""
_FULL = 0.9
"""Packets of so much of the longest one's length are full."""


def bucket(recording: Recording, rate: float, late: float) -> int:
    """Bytes that pass at once behind an idle time; 0 if packets leave one by one.

    Behind the first packet of a train, a link passes bytes at its rate. A token bucket passes more,
    as many as it has tokens. So does a link with jitter, if it was this packet that came late.
    """
    sent, size = recording.sent, recording.size
    rest = _rests(recording)
    found = []
    for begin in np.flatnonzero(rest > _IDLE_S):
        some = slice(begin, min(begin + _TRAIN, int(np.searchsorted(sent, sent[begin] + _SOON_S))))
        there = some.start + np.flatnonzero(~recording.lost[some])
        most = _ahead(sent[some], size[some], rate)
        if most > _TRAIN / 8 * size[begin] and there.size > 1:
            order = there[np.argsort(recording.arrived[there], kind="stable")]
            ahead = _ahead(recording.arrived[order], size[order], rate)
            if rest[begin] * rate / 8 > _REFILLED * ahead:
                found.append((ahead > _WHOLE * most, ahead, ahead + size[order[0]]))
    if not found:
        return 0
    longer = [each for each in found if not each[0]]
    _, ahead, burst = np.quantile(longer or found, _USUAL, axis=0)
    return round(burst) if ahead > size.max() / 2 + late * rate / 8 else 0


def _rests(recording: Recording) -> NDArray[Any]:
    """How long the path has been idle when each packet gets there, s; negative if it is not."""
    before = np.fmax.accumulate(np.r_[-np.inf, recording.arrived[:-1]])
    idle: NDArray[Any] = recording.sent + np.nanmin(recording.arrived - recording.sent) - before
    return idle


def never_idle(recording: Recording, rate: float) -> bool:
    """Whether packets leave right behind each other all the time, so that none met an idle path."""
    order = recording.arrivals
    own = recording.size[order][1:] * 8 / rate
    return not bool((np.diff(recording.arrived[order]) > _LATER * own).any())


_LATER = 1.5
"""A packet that leaves so many times its time of transmission behind another met an idle path."""


@dataclass(frozen=True)
class Elsewhere:
    """What happens to packets that find no queue.

    Attributes:
        lost: Packets.
        marked: Packets.
        loss: Their share of the packets that find no queue.
        mark: Share of the ECN-capable ones that arrive.
    """

    lost: int
    marked: int
    loss: float
    mark: float

    def __bool__(self) -> bool:
        """Whether it is more than chance."""
        return self.lost + self.marked > _FEW

    def added(self, seen: Seen) -> Seen:
        """Packets that lose and get marks by these shares as well."""
        chance = np.random.default_rng(1).random(seen.sent.size)
        waited = np.where(chance < self.loss, np.nan, seen.waited)
        marked = seen.marked | ((seen.ecn > 0) & (chance > 1 - self.mark))
        return replace(seen, waited=waited, marked=marked & ~np.isnan(waited))


_FEW = 3
"""So many losses and marks without a queue may be chance."""


def elsewhere(recording: Recording, basics: Basics) -> Elsewhere:
    """Losses and marks where no packet waits longer than on an idle path.

    A lost packet waits like the packets of its flow before and behind it.
    """
    waited = basics.waited
    first = waited[(_rests(recording) > _IDLE_S) & ~recording.lost]
    if not first.size:
        return Elsewhere(0, 0, 0.0, 0.0)
    jitter = _SHORT * recording.size.max() * 8 / basics.rate
    if basics.cross is None:
        jitter = max(float(np.quantile(first, _MOSTLY)), jitter)
    lost = 0
    for flow in np.unique(recording.flow[recording.lost]):
        own = np.flatnonzero(recording.flow == flow)
        there = own[~recording.lost[own]]
        if there.size > 1:
            at = np.searchsorted(there, own[recording.lost[own]]).clip(1, there.size - 1)
            beside = np.maximum(waited[there[at - 1]], waited[there[at]])
            lost += int((beside <= jitter).sum())
    soon = waited <= jitter
    marked, capable = int((recording.marked & soon).sum()), int((soon & (recording.ecn > 0)).sum())
    return Elsewhere(lost, marked, lost / (lost + int(soon.sum())), marked / max(capable, 1))


_MOSTLY, _SHORT = 0.9, 0.5
"""Of the packets that find the path idle, so many are on time; others wait at least for a share of
a full packet."""
_IDLE_S, _SOON_S, _TRAIN = 0.1, 0.5, 60
"""A train begins behind so much idle time; so much of it is looked at, in time and packets."""
_REFILLED = 1.2
"""A bucket that had time for so much more than it gave was full."""
_WHOLE = 0.9
"""A train that is ahead by so much of what it may be was shorter than the bucket."""
_USUAL = 0.5
"""Trains differ by jitter, and by tokens that a bucket has not got back yet."""


def _ahead(times: NDArray[Any], sizes: NDArray[Any], rate: float) -> float:
    """By how many bytes packets are ahead of a rate at most, behind the first of them."""
    return float(np.max(np.cumsum(sizes) - sizes[0] - rate / 8 * (times - times[0])))


def throughput(recording: Recording, parts: int = 60) -> Throughput:
    """Throughput of the bottleneck, over such a part of the recording's time.

    It is that of times which begin and end with packets that waited: a token bucket is empty then,
    and the bottleneck mostly busy. If there are few, it is near the largest one.

    Raises:
        InputError: The times of arrival are no stream of packets.
    """
    order = recording.arrivals
    at, size = recording.arrived[order], recording.size[order]
    delay = at - recording.sent[order]
    sums = np.cumsum(size)
    ends = np.searchsorted(at, at + float(recording.sent[-1]) / parts) - 1
    full = (ends < at.size - 1) & (at[ends] > at)
    found = 8.0 * (sums[ends] - sums)[full] / (at[ends] - at)[full]
    if not found.size:
        raise InputError(
            "the times of arrival tell no rate",
            key="arrived_s", allowed="a stream about as long as that of sending",
        )  # fmt: skip
    rate = float(np.quantile(found, 1 - _TAIL))
    waits = delay - delay.min() > _BUSY * size.max() * 8 / rate
    busy = found[(waits & waits[ends])[full]]
    if busy.size <= _TAIL * found.size:
        return Throughput(rate, False)
    low, usual, high = np.quantile(busy, (0.2, _STEADY, 0.8))
    return Throughput(float(usual), bool(high < _ALIKE * low))


class Throughput(NamedTuple):
    """Of the recorded packets through a busy bottleneck.

    Attributes:
        rate: The usual one, bit/s.
        steady: Whether most times have the same.
    """

    rate: float
    steady: bool


_ALIKE = 1.02
"""Times of steady throughput differ by less than this factor."""
_STEADY = 0.7
"""A little more than half of these times have less throughput, because some are not busy."""
_LONG = 20
"""Jitter needs longer times, because it bunches packets: a time that ends behind a bunch has too
many."""
_BUSY = 3
"""A queue is busy if packets wait as long as so many take to leave."""


def usual(recording: Recording, waited: NDArray[Any]) -> float:
    """Time in the queue while it acts, s: the median over packets beside losses and marks."""
    acts = recording.lost | recording.marked
    beside = np.convolve(acts, np.ones(_BESIDE), "same") > 0
    return float(np.nanmedian(waited[beside]))


_BESIDE = 21
"""Packets beside a lost or marked one, and itself."""


def classes(seen: Seen, windows: int = WINDOWS) -> tuple[NDArray[Any], int]:
    """A number for each packet: its window, its codepoint, and whether its flow is heavy there."""
    edge = float(seen.sent[-1]) * (1 + 1e-9)
    window = np.minimum((seen.sent / edge * windows).astype(int), windows - 1)
    flows = int(seen.flow.max()) + 1
    both = window * flows + seen.flow
    heavy = (
        np.bincount(both, minlength=windows * flows)[both]
        > _HEAVY * np.bincount(window, minlength=windows)[window]
    )
    return (window * 4 + seen.ecn) * 2 + heavy, windows * 8


def statistics(seen: Seen, unit: float) -> NDArray[Any]:
    """Statistics per class of packets, a column each; NaN where a class has too few packets.

    Args:
        seen: The packets.
        unit: A waiting time, s, below which differences count little.
    """
    group, count = classes(seen)
    lost = np.isnan(seen.waited)
    number = np.bincount(group, minlength=count)
    there = np.bincount(group, ~lost, minlength=count)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.bincount(group, lost, minlength=count) / number
        mark = np.bincount(group, seen.marked, minlength=count) / there
        # Whether the packet sent before in the class had the same fate: losses in runs or spaced.
        order = np.argsort(group, kind="stable")
        same = np.r_[False, group[order][1:] == group[order][:-1]]
        gone = lost[order]
        pair = np.bincount(group[order], same & gone & np.r_[False, gone[:-1]], minlength=count)
        runs = pair / number - loss**2
        quantiles = _quantiles(seen.waited[~lost], group[~lost], count)
        # Chance spreads such angles by 1/(2 sqrt(n)), whatever the share (Anscombe48).
        weight = 1 / np.sqrt(1 + 1 / (4 * number * FLOORS[0] ** 2))
        angles = weight * np.arcsin(np.sqrt([loss, mark]))
    found = np.column_stack([*angles, runs, np.log(quantiles + unit)])
    found[number < _LEAST] = np.nan
    found[there < _LEAST / 2, 1] = np.nan
    found[there < _LEAST / 2, 3:] = np.nan
    return found


SHARES = (0.1, 0.5, 0.9)
"""The quantiles of the waiting time in a class."""


def _quantiles(values: NDArray[Any], group: NDArray[Any], count: int) -> NDArray[Any]:
    order = np.lexsort((values, group))
    sizes = np.bincount(group, minlength=count)
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    found = np.full((count, len(SHARES)), np.nan)
    has = sizes > 0
    for k, share in enumerate(SHARES):
        at = begins + np.floor(share * np.maximum(sizes - 1, 0)).astype(int)
        found[has, k] = values[order][at[has]]
    waits: NDArray[Any] = np.maximum(found, 0.0)
    return waits


FLOORS = np.array([0.05, 0.05, 0.04, 0.12, 0.12, 0.12])
"""Differences of the statistics that no model of a path explains: of shares of packets, as angles
or plain, and of logarithms of waiting times."""
_GONE = 4.0
"""Deviation of a class that has a statistic on one side only, as where all packets are lost."""


def deviations(
    observed: NDArray[Any], made: NDArray[Any], spread: NDArray[Any] | float
) -> NDArray[Any]:
    """Standardised differences; NaN where neither side has the statistic."""
    z = (observed - made) / np.sqrt(FLOORS**2 + np.square(spread))
    one_side = np.isnan(observed) != np.isnan(made)
    apart: NDArray[Any] = np.where(one_side, _GONE, z)
    return apart


def misfit(z: NDArray[Any]) -> float:
    """Mean of the squared deviations, in which large ones grow like their logarithm."""
    return float(np.nanmean(4 * np.log1p(z**2 / 4)))
