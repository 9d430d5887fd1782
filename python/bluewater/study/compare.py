"""Queue disciplines side by side on one link, without a file to write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bluewater.study.sweep import Axis, Point
from bluewater.units import duration_text, seconds, times

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Setup:
    """The link and its load; texts are in the units of scenario files."""

    rate: str
    rtt: str
    flows: int
    buffer: str
    duration: str
    warmup: str
    transport: str
    ecn: bool
    ecn_timeout: bool


def scenario(setup: Setup) -> dict[str, Any]:
    """A dumbbell whose one managed queue is yet to be chosen.

    A sixth of the round trip is spent on each of its six hops, and the access links are ten
    times as fast as the bottleneck, so that no other queue matters.
    """
    hop = duration_text(seconds(setup.rtt, "--rtt") / 6)
    return {
        "duration": setup.duration,
        "warmup": setup.warmup,
        "network": {
            "preset": "dumbbell",
            "rate": setup.rate,
            "delay": hop,
            "access_rate": times(setup.rate, 10, "--rate"),
            "access_delay": hop,
        },
        "queue": [{"aqm": "droptail", "buffer": setup.buffer}],
        "traffic": [
            {
                "flows": setup.flows,
                "transport": setup.transport,
                "app": "infinite",
                "start": "0s..1s",
                "ecn": setup.ecn,
                "ecn_timeout": setup.ecn_timeout,
            }
        ],
        "measure": {"interval": "50ms"},
    }


def axis(aqms: Sequence[str]) -> Axis:
    """The axis of queue disciplines."""
    return Axis("aqm", tuple(Point(name, {"queue.0.aqm": name}) for name in aqms))
