"""The probe: traffic whose phases tell queue disciplines apart, for a path of a given rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

FULL = 1400
"""Bytes of a full packet, on the wire."""
_SMALL = 300
_SPARSE = 150
_FAST = 10e6
"""Above this rate (bit/s) the phases get shorter, because they have packets enough."""
_SHORTEST = 0.2
"""The least factor by which they get shorter."""
_TRAIN = 20
"""Packets of a train."""
_FIXED_S = 0.5
"""Phases up to this length are never made shorter."""
_DRAINS_S = 3.0
"""Time for a queue to drain behind the probe."""
_SINGLE_S = 0.05
"""Time between single packets."""
END_S = _DRAINS_S + 9 * _SINGLE_S
"""Time that :func:`with_end` adds."""

NOT_ECT, ECT1, ECT0 = 0, 1, 2


@dataclass(frozen=True)
class Packets:
    """Packets to send, in order of time.

    Attributes:
        sent: Seconds.
        size: Bytes.
        ecn: Codepoint, as bits.
        flow: Number of the flow.
    """

    sent: NDArray[Any]
    size: NDArray[Any]
    ecn: NDArray[Any]
    flow: NDArray[Any]


@dataclass(frozen=True)
class _Sender:
    """A flow in a phase: its mean load, as a share of the path's rate, at begin and end."""

    flow: int
    begin: float
    end: float | None = None
    size: int = FULL
    ecn: int = NOT_ECT


def trains(rate: float, count: int = 5, begin: float = 0.5) -> Packets:
    """Trains of packets that a path of about this rate (bit/s) spreads out."""
    gap = max(0.2, 3 * _TRAIN * FULL * 8 / rate)
    starts = begin + gap * np.arange(count)
    sent = (starts[:, None] + 1e-6 * np.arange(_TRAIN)).ravel()
    zeros = np.zeros(sent.size, int)
    return Packets(sent, zeros + FULL, zeros, zeros)


def steady(rate: float, seconds: float) -> Packets:
    """A flow of full packets of this rate, bit/s, ten of them at least."""
    count = max(10, round(rate * seconds / (8 * FULL)))
    zeros = np.zeros(count, int)
    return Packets(np.arange(count) * FULL * 8 / rate, zeros + FULL, zeros, zeros)


def single(begin: float = 0.0) -> Packets:
    """Ten small packets, far from each other, that find no queue."""
    zeros = np.zeros(10, int)
    return Packets(begin + _SINGLE_S * np.arange(10), zeros + 100, zeros, zeros)


def with_end(packets: Packets) -> Packets:
    """Adds single packets behind the others, by which the skew of two clocks shows."""
    return _joined([packets, single(float(packets.sent[-1]) + _DRAINS_S)])


def packets(rate: float, seed: int = 1, seconds: float | None = None) -> Packets:
    """The whole probe for a path.

    Gaps are random, so that no pattern of the probe coincides with one of the queue.

    Args:
        rate: Of the path, bit/s.
        seed: Of the gaps.
        seconds: About how long it lasts; if not given 33 s, and less above
            10 Mb/s.
    """
    random = np.random.default_rng(seed)
    parts = [single(), trains(rate)]
    now = float(parts[-1].sent[-1]) + 0.5
    many = [_Sender(10 + k, 0.025) for k in range(40)]
    light = [_Sender(4, 0.15), _Sender(5, 0.15, ecn=ECT0), _Sender(6, 0.15, ecn=ECT1)]
    phases: list[tuple[float, float, Sequence[_Sender]]] = [
        (3.0, 0.2, light),
        (5.0, 0.7, [_Sender(1, 0.95, 1.1)]),
        (3.0, 0.7, [_Sender(1, 0.9, 1.5)]),
        (3.0, 0.7, [_Sender(2, 1.2), _Sender(3, 0.02, size=_SPARSE)]),
        (4.0, 0.7, [_Sender(4, 0.45), _Sender(5, 0.45, ecn=ECT0), _Sender(6, 0.45, ecn=ECT1)]),
        (3.0, 0.7, [*many, _Sender(7, 0.4)]),
        *[(0.1, 0.2, [_Sender(8, 3.0)])] * 8,
        (2.0, 2.0, [_Sender(1, 3.0)]),
        (1.0, 0.0, [_Sender(9, 2.5, size=_SMALL)]),
    ]
    if seconds is None:
        scale = min(1.0, max(_SHORTEST, (_FAST / rate) ** 0.5))
    else:
        fixed = now + sum(long + pause for long, pause, _ in phases if long <= _FIXED_S)
        whole = sum(long + pause for long, pause, _ in phases if long > _FIXED_S)
        scale = max(0.05, (seconds - fixed) / whole)
    for long, pause, senders in phases:
        factor = scale if long > _FIXED_S else 1.0
        for sender in senders:
            parts.append(_arrivals(sender, rate, now, long * factor, random))
        now += long * factor + pause * factor
    return _joined(parts)


def _joined(parts: Sequence[Packets]) -> Packets:
    """Packets in order of sending."""
    sent = np.concatenate([part.sent for part in parts])
    order = np.argsort(sent, kind="stable")
    return Packets(
        sent[order],
        *(
            np.concatenate([getattr(part, name) for part in parts])[order]
            for name in ("size", "ecn", "flow")
        ),
    )


def _arrivals(
    sender: _Sender, rate: float, begin: float, long: float, random: np.random.Generator
) -> Packets:
    """A flow's packets, whose gaps are uniform around their mean."""
    end = sender.begin if sender.end is None else sender.end
    mean = rate * (sender.begin + end) / 2 / (8 * sender.size)
    count = max(1, round(mean * long))
    share = (np.arange(count) + random.uniform(0, 0.9, count)) / count
    if sender.begin != end:  # the inverse of the packets sent until a time, for a linear ramp
        grows = (end - sender.begin) / sender.begin
        share = (np.sqrt(1 + 2 * grows * share * (1 + grows / 2)) - 1) / grows
    full = np.full(count, sender.size)
    return Packets(begin + long * share, full, 0 * full + sender.ecn, 0 * full + sender.flow)
