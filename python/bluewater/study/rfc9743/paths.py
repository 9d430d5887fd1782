"""Paths with one bottleneck, as tables of scenario files, and grid P."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bluewater.study.rfc9743.senders import PACKET, rate, time
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LEAST_PACKETS = 4
"""No buffer is smaller: below a packet a queue carries nothing."""

QUEUE = "R->B"
BACK = "B->R"


@dataclass(frozen=True)
class Path:
    """A path ``S``, ``R``, ``B``, ``D`` whose bottleneck is from ``R`` to ``B``.

    Attributes:
        rate: Rate of the bottleneck, bit/s.
        rtt: Round trip without queues, s.
        buffer: Room of the bottleneck's queue in bytes.
    """

    rate: float
    rtt: float
    buffer: int

    @classmethod
    def of(cls, rate: float, rtt: float, bdps: float) -> Path:
        """The path with a buffer in bandwidth–delay products, four packets at least."""
        return cls(rate, rtt, max(LEAST_PACKETS * PACKET, round(bdps * rate * rtt / 8)))

    @property
    def label(self) -> str:
        """The path in a few words."""
        bdps = number(self.buffer * 8 / self.rate / self.rtt, 2)
        mbit = number(self.rate / 1e6)
        return f"{mbit} Mb/s, {number(self.rtt * 1e3)} ms, {bdps} BDP"

    @property
    def longest_wait(self) -> float:
        """The wait behind a full buffer, s."""
        return self.buffer * 8 / self.rate

    @property
    def duration(self) -> float:
        """How long a run lasts: a minute, or at 1 Gb/s and more 20 s."""
        return 60.0 if self.rate < 1e9 else 20.0

    def scenario(
        self,
        *groups: Mapping[str, Any],
        duration: float | None = None,
        warmup: float | None = None,
        step: float = 1.0,
        aqm: Mapping[str, Any] | None = None,
        link: Mapping[str, Any] | None = None,
        back: Mapping[str, Any] | None = None,
        access: Mapping[str, float] | None = None,
        control: bool = False,
    ) -> dict[str, Any]:
        """The scenario of these groups.

        Args:
            groups: Groups of traffic.
            duration: Length in seconds.
            warmup: What measures leave out; a quarter of the duration if not given.
            step: Time between samples.
            aqm: Keys of the bottleneck's queue, in place of drop-tail's.
            link: More keys of the bottleneck.
            back: More keys of the way back.
            access: More senders by name, each with what it adds to the round trip, s.
            control: Whether the table ``control`` is written.
        """
        length = self.duration if duration is None else duration
        fast = rate(max(10 * self.rate, 1e9))
        half = time(self.rtt / 2)
        ends: dict[str, float] = {"S": 0.0} | dict(access or {})
        links: list[dict[str, Any]] = [
            {"from": "R", "to": "B", "rate": rate(self.rate), "delay": half, "duplex": False},
            {"from": "B", "to": "R", "rate": fast, "delay": half, "duplex": False},
            {"from": "B", "to": "D", "rate": fast, "delay": "0s"},
            *(
                {"from": name, "to": "R", "rate": fast, "delay": time(more / 2)}
                for name, more in ends.items()
            ),
        ]
        links[0] |= dict(link or {})
        links[1] |= dict(back or {})
        return {
            "duration": time(length),
            "warmup": time(length / 4 if warmup is None else warmup),
            "link": links,
            "queue": [
                {"link": QUEUE, "aqm": "droptail", "buffer": f"{self.buffer}B"} | dict(aqm or {})
            ],
            "traffic": [dict(each) for each in groups],
            "measure": {
                "interval": time(step),
                "flows": True,
                "delays": True,
                "control": control,
            },
        }


def grid(quick: bool) -> Iterator[Path]:
    """Grid P: rates, round trips and buffers; at quick size one path.

    Where several buffers of a path are smaller than four packets, one of them is left.
    """
    if quick:
        yield Path.of(10e6, 0.04, 1)
        return
    cells = (
        Path.of(rate, rtt, bdps)
        for rate in (1e6, 10e6, 100e6, 1e9)
        for rtt in (0.01, 0.04, 0.16)
        for bdps in (0.25, 1, 4)
    )
    yield from dict.fromkeys(cells)
