"""Cross traffic: what else passes a bottleneck, read off the times between recorded packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bluewater.study.identify.probe import Packets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bluewater.study.identify.recording import Recording

_FULL = 1500
"""Bytes of a packet of cross traffic, if gaps do not tell it."""
_WAITS = 3
"""A packet that waits for so many full ones finds the bottleneck busy, and so does the next."""
_FEW = 100
"""Fewer pairs of packets that waited tell nothing."""
_BIN = 0.025
"""Gaps within such a share are alike."""
_OFTEN = 0.2
"""Gaps that are at least so often as the commonest ones, and as all, belong to neighbours."""
_LEAST = 1e-3
"""Cross traffic has at least so much of what passes, relative to the recorded packets."""
_MOST = 5.0
"""A rate above so many times the largest throughput is that of bunches, as a radio link or a card
hands them over, and not that of the bottleneck."""
_PACKETS = 300_000
"""More packets of cross traffic are not simulated."""
_RESIDUE = 0.05
"""A packet that waits for such a share of a full one finds another in transmission."""
_NEAR = 15
"""Packets over which the bottleneck's use by others is averaged while the recording rests."""
_LOST_NEAR = 40
"""Packets over which losses are averaged."""
_LOSES = 0.6
"""Losses above this share are no measure of others' losses."""
_MORE = 0.2
"""In queues per flow others offer up to so much more than what passes."""
_STEP = 0.618
"""Draws of what is unknown are spread evenly by the golden section."""


@dataclass(frozen=True)
class _Course:
    """Bytes of others over time.

    Attributes:
        at: When they arrive at the queue, s, increasing.
        passed: How many pass until the next of these times.
        loss: Share of recorded packets that are lost meanwhile.
    """

    at: NDArray[Any]
    passed: NDArray[Any]
    loss: NDArray[Any]


@dataclass(frozen=True)
class Cross:
    """Cross traffic beside a recording.

    Attributes:
        rate: Of the bottleneck, bit/s.
        share: Of all bytes that pass while recorded packets wait.
        size: Bytes of a packet.
        behind: Its course if packets leave in the order of arrival.
        beside: Its course if each flow has a queue.
    """

    rate: float
    share: float
    size: int
    behind: _Course
    beside: _Course

    def packets(self, fair: bool, apart: bool, flows: int, draw: int) -> Packets:
        """Cross traffic that would have passed as this one did.

        What the recording does not tell is drawn: when packets arrive between two recorded ones,
        and what was lost.

        Args:
            fair: Whether each flow has a queue.
            apart: Whether the queue tells flows apart, so that losses of others are not alike.
            flows: Number of its flows.
            draw: Number of the draw.
        """
        random = np.random.default_rng(draw)
        middle = (0.5 + _STEP * draw) % 1
        course = self.beside if fair else self.behind
        if fair:
            bytes_ = course.passed * (1 + _MORE * middle)
        elif apart:
            bytes_ = course.passed
        else:
            bytes_ = course.passed / (1 - middle * course.loss)
        sums = np.concatenate([[0.0], np.cumsum(bytes_)])
        count = int(sums[-1] / self.size)
        levels = self.size * (np.arange(count) + random.random(count))
        sent = np.sort(np.interp(levels, sums, np.concatenate([[0.0], course.at])))
        zeros = np.zeros(count, int)
        return Packets(sent, zeros + self.size, zeros, np.arange(count) % flows)


def read(recording: Recording, throughput: float, steady: bool) -> Cross | None:
    """What passed beside the recorded packets; None if gaps do not show it.

    Behind a packet that waits the next one follows after its own time of transmission, and that of
    all that passes between them. So the shortest of the usual gaps tell the rate, and the others
    what passes (packet pairs, Keshav91).

    Args:
        recording: The packets.
        throughput: The usual one while packets waited, bit/s.
        steady: Whether it was the same at most times. Others would change it with the load of the
            recorded packets, so then only bunches and coarse clocks have shorter gaps.
    """
    order = recording.arrivals
    arrived, sent, size = (getattr(recording, name)[order] for name in ("arrived", "sent", "size"))
    base = float(np.min(arrived - sent))
    late = arrived - sent - base > _WAITS * recording.size.max() * 8 / throughput
    busy = late[1:] & late[:-1] & (sent[1:] + base < arrived[:-1])
    gap, own = np.diff(arrived)[busy], size[1:][busy]
    if np.count_nonzero(gap > 0) < _FEW:
        return None
    times = np.log(gap[gap > 0] / (8 * own[gap > 0]))
    alike = _first_mode(times, _BIN)
    rate = float(np.exp(-np.median(_first_mode(alike, _BIN / 5))))
    between = gap * rate / 8 - own
    share = float(between.sum() / (between.sum() + own.sum()))
    fastest = throughput * (1 + _BIN if steady else _MOST)
    if alike.size < _OFTEN * gap.size or share < _LEAST or rate > fastest:
        return None
    delay = recording.arrived - recording.sent - recording.size * 8 / rate
    left = recording.arrived - np.nanmin(delay)
    behind, beside = (_course(recording, rate, left, order, fair) for fair in (False, True))
    found = Cross(rate, share, _size(between, own), behind, beside)
    packets = [each.passed.sum() / found.size for each in (behind, beside)]
    return found if min(packets) >= 1 and max(packets) <= _PACKETS else None


def _first_mode(values: NDArray[Any], width: float) -> NDArray[Any]:
    """Those values, within two bins of this width, at the first maximum that is no tail."""
    low, high = float(values.min()), float(values.max())
    counts, edges = np.histogram(values, np.arange(low - width, high + 2 * width, width))
    pairs = counts[:-1] + counts[1:]
    first = int(np.flatnonzero(pairs >= _OFTEN * pairs.max())[0])
    while first + 1 < pairs.size and pairs[first + 1] > pairs[first]:
        first += 1
    alike: NDArray[Any] = values[(values >= edges[first]) & (values < edges[first + 2])]
    return alike


def _size(between: NDArray[Any], own: NDArray[Any]) -> int:
    """The commonest number of bytes between two packets that one packet can have."""
    one = between[(between > _RESIDUE * own.max()) & (between < _FULL * (1 + _BIN))]
    if one.size < _FEW:
        return _FULL
    counts, edges = np.histogram(one, np.arange(0, _FULL * (1 + 2 * _BIN), _FULL * _BIN))
    most = int(counts.argmax())
    within = one[(one >= edges[most]) & (one < edges[most + 1])]
    return round(float(np.median(within)))


def _course(
    recording: Recording, rate: float, left: NDArray[Any], order: NDArray[Any], fair: bool
) -> _Course:
    """What passes between packets of the recording, in order of departure.

    In one queue it arrives between the same two packets. Those that may overtake (ECT(1) in
    DualPI2) are not looked at. In queues per flow it arrives when it passes.

    While the recording rests it is as busy with others as the packets before and behind find it.
    """
    own = np.cumsum(recording.size[order])
    kept = np.full(order.size, True) if fair else recording.ecn[order] != 1
    at, own = order[kept], np.diff(own[kept], prepend=0)
    sent, size, left = recording.sent[at], recording.size[at], left[at]
    before = np.concatenate([[0.0], left[:-1]])
    waited = left - sent - size * 8 / rate
    passed = (left - before) * rate / 8 - own
    rests = (sent > before) & (waited < _WAITS * _FULL * 8 / rate)
    if rests.any():
        busy = _mean(waited[rests] > _RESIDUE * _FULL * 8 / rate, _NEAR)
        likely = np.maximum(waited * rate / 8, 0)[rests]
        likely = np.maximum(likely, (busy * (left - before)[rests]) * rate / 8 - own[rests])
        passed[rests] = np.minimum(passed[rests], likely)
    sums = np.cumsum(passed)
    rising = (np.maximum.accumulate(sums) + np.minimum.accumulate(sums[::-1])[::-1]) / 2
    rising = np.maximum(rising, 0)
    plain = recording.ecn == 0
    if plain.any():
        lost = _mean(recording.lost[plain], _LOST_NEAR)
        loss = np.minimum(np.interp(sent, recording.sent[plain], lost), _LOSES)
    else:
        loss = np.zeros(at.size)
    return _Course(
        np.maximum.accumulate(left - size * 8 / rate if fair else sent),
        np.diff(rising, prepend=0.0),
        np.where(sent > before, 0.0, loss),
    )


def _mean(values: NDArray[Any], width: int) -> NDArray[Any]:
    """Moving mean over so many values, fewer at both ends."""
    window = np.ones(min(width, values.size))
    counts = np.convolve(np.ones(values.size), window, "same")
    mean: NDArray[Any] = np.convolve(values, window, "same") / counts
    return mean
