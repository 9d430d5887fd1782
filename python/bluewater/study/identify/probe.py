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


def packets(rate: float, seed: int = 1) -> Packets:
    """The whole probe for a path of this rate, bit/s: 30 s, above 10 Mb/s less.

    Gaps are random, so that no pattern of the probe coincides with one of the queue.
    """
    random = np.random.default_rng(seed)
    scale = min(1.0, max(_SHORTEST, (_FAST / rate) ** 0.5))
    quiet = np.zeros(10, int)
    parts = [
        Packets(0.05 * np.arange(10), quiet + 100, quiet, quiet),
        trains(rate),
    ]
    now = float(parts[-1].sent[-1]) + 0.5
    many = [_Sender(10 + k, 0.025) for k in range(40)]
    phases: list[tuple[float, float, Sequence[_Sender]]] = [
        (5.0, 0.7, [_Sender(1, 0.95, 1.1)]),
        (3.0, 0.7, [_Sender(1, 0.9, 1.5)]),
        (3.0, 0.7, [_Sender(2, 1.2), _Sender(3, 0.02, size=_SPARSE)]),
        (4.0, 0.7, [_Sender(4, 0.45), _Sender(5, 0.45, ecn=ECT0), _Sender(6, 0.45, ecn=ECT1)]),
        (3.0, 0.7, [*many, _Sender(7, 0.4)]),
        *[(0.1, 0.2, [_Sender(8, 3.0)])] * 8,
        (2.0, 2.0, [_Sender(1, 3.0)]),
        (1.0, 0.0, [_Sender(9, 2.5, size=_SMALL)]),
    ]
    for long, pause, senders in phases:
        factor = scale if long > 0.5 else 1.0
        for sender in senders:
            parts.append(_arrivals(sender, rate, now, long * factor, random))
        now += long * factor + pause * (factor if long > 0.5 else 1.0)
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
