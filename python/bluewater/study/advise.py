"""Which queue discipline suits a link: all that its box can run are tried on it, and ranked.

The worth of a discipline is

    ln(throughput/rate) + ln(Jain) − ln(1 + delay/scale) + weight·ln(1 − loss)

with what the link sends of that which always has data, Jain's index over these flows, and delay
(99 %) and loss of what is interactive; the scale is 20 ms and the weight 10. Where nothing is, they
are the delay of all packets and the loss of what always has data, with 100 ms and 1. It grows with
each of them, so what is worth most is no worse in something than another that is better in all the
rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bluewater.arguments import texts
from bluewater.errors import InputError
from bluewater.results.aggregate import ends
from bluewater.results.stats import Estimate, estimate
from bluewater.study import tcp
from bluewater.text import milliseconds, number, percent
from bluewater.units import bits_per_second, duration_text, seconds, times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bluewater.results.result import Result

CALL: dict[str, Any] = {"transport": "cbr", "rate": "85.6kbit", "packet": "214B"}
"""A voice call: 50 packets a second of 160 bytes with 54 of headers."""
GAME: dict[str, Any] = {
    "transport": "cbr", "rate": "72kbit", "packet": "150B", "gaps": "uniform", "jitter": 0.2,
}  # fmt: skip
"""A game: 60 packets a second."""
_FULL_S, _CALM_S = 0.02, 0.1
"""The scale of delay where something is interactive, and where nothing is, in s."""
_FULL_LOSS, _CALM_LOSS = 10, 1
"""The weight of loss in the same two cases."""
_LITTLE = 0.8
"""Of a link that no candidate fills to this part something is said."""

MARGIN = 0.1
"""What may be missing of the first one's worth in what is as good (ours): a tenth of the
throughput, 1 % of loss, or 2 ms more of delay where there is next to none."""


@dataclass(frozen=True)
class Link:
    """A link and who uses it; texts are in the units of scenario files.

    Attributes:
        rate: Its rate.
        rtt: Round-trip times without queueing; flows are spread over them.
        bulk: TCP flows that always have data.
        transport: Which TCP; ``cubic`` is Linux's.
        calls: Voice calls, 86 kb/s each.
        games: Games, 72 kb/s each.
        hostile: The rates of datagram flows that yield to nothing.
        ecn: Whether TCP uses ECN.
        buffer: The room of the queue.
    """

    rate: str = "50mbit"
    rtt: tuple[str, ...] = ("20ms", "80ms")
    bulk: int = 8
    transport: str = "cubic"
    calls: int = 2
    games: int = 1
    hostile: tuple[str, ...] = ()
    ecn: bool = True
    buffer: str = "1000p"

    def __post_init__(self) -> None:
        for name in ("rtt", "hostile"):
            object.__setattr__(self, name, texts(name, getattr(self, name), "a link"))
        if not self.rtt:
            raise InputError("no round trip", key="rtt", value=self.rtt, allowed='as "20ms"')

    @property
    def title(self) -> str:
        """What it is, in a line."""
        ecn = "" if self.ecn else " without ECN"
        users = [
            f"{_several(self.bulk, f'{self.transport} flow')}{ecn}",
            *([_several(self.calls, "call")] if self.calls else []),
            *([_several(self.games, "game")] if self.games else []),
            *(f"a flow of {rate} that yields to nothing" for rate in self.hostile),
        ]
        return f"{self.rate}, {' and '.join(self.rtt)}, {self.buffer}: {', '.join(users)}"


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def scenario(link: Link, duration: str, warmup: str) -> dict[str, Any]:
    """The link as a scenario whose queue is yet to be chosen."""
    if link.bulk < 1:
        raise InputError("nothing fills the link", key="bulk", value=link.bulk, allowed="1 or more")
    tcp.check(link.transport)
    nodes = [f"n{k}" for k in range(len(link.rtt))]
    place = {"from": nodes, "to": ["sink"], "start": "0s..1s"}
    today = tcp.preset("linux", link.transport)
    groups = [
        {"name": "bulk", **place, "flows": link.bulk, "transport": link.transport, **today,
         "packet": "1514B", "ecn": link.ecn},
        *([{"name": "calls", **place, "flows": link.calls, **CALL}] if link.calls else []),
        *([{"name": "games", **place, "flows": link.games, **GAME}] if link.games else []),
        *({"name": f"hostile {k}", **place, "transport": "cbr", "packet": "1514B", "rate": rate}
          for k, rate in enumerate(link.hostile, 1)),
    ]  # fmt: skip
    wide = "10gbit" if bits_per_second(link.rate) <= 1e9 else times(link.rate, 10)
    access = [
        {"from": node, "to": "R", "rate": wide, "delay": duration_text(seconds(rtt, "rtt") / 2)}
        for node, rtt in zip(nodes, link.rtt, strict=True)
    ]
    return {
        "duration": duration,
        "warmup": warmup,
        "link": [
            *access,
            {"from": "R", "to": "S", "rate": link.rate, "delay": "0s"},
            {"from": "S", "to": "sink", "rate": wide, "delay": "0s"},
        ],
        "queue": [{"link": "R->S", "aqm": "droptail", "buffer": link.buffer}],
        "traffic": groups,
        "measure": {"delays": True},
    }


@dataclass(frozen=True)
class Measured:
    """What users of a link have of it in one run.

    Attributes:
        throughput: What the link sent of that which always has data, bit/s. Goodput at the
            receivers would also count what was queued, or waited behind a hole, as the warm-up
            ended: more than the link can carry.
        jain: Of these flows, by the same.
        delay: In the queue, not exceeded by 99 % of the packets of calls and games, of those who
            wait longest; of all packets where there are neither; in s.
        loss: Of calls and games, or of what always has data where there are neither, 0 to 1.
        worth: What it is ranked by.
        rate: Of the link, bit/s.
        busy: Share of the time for which the link sends.
    """

    throughput: float
    jain: float
    delay: float
    loss: float
    worth: float
    rate: float = math.inf
    busy: float = 1.0

    @classmethod
    def of(cls, result: Result, rate_bps: float) -> Measured:
        """Measures a run."""
        flows = result.flows
        bulk = flows.filter(flows["group"] == "bulk")["throughput_bps"].to_list()
        # A packet whose sending goes on at the end of the window counts whole.
        throughput = min(max(sum(bulk), 1.0), rate_bps)
        jain = sum(bulk) ** 2 / (len(bulk) * max(sum(each**2 for each in bulk), 1e-9))
        names = ["calls", "games"]
        delays = result.delays
        queued = delays["group"].is_in(names) & (delays["kind"] == "queueing")
        waits = delays.filter(queued)["delay_p99_s"].to_list()
        live = flows.filter(flows["group"].is_in(names))
        concerned = live if live.height else flows.filter(flows["group"] == "bulk")
        sent, lost = (int(concerned[name].sum()) for name in ("arrivals", "drops"))
        # What was dropped may have come before the window began.
        loss = min(lost / sent, 1.0) if sent else 0.0
        delay = max(waits, default=float(result.summary["delay_p99_s"]))
        scale, weight = (_FULL_S, _FULL_LOSS) if live.height else (_CALM_S, _CALM_LOSS)
        worth = (
            math.log(throughput / rate_bps)
            + math.log(max(min(jain, 1.0), 1e-9))
            - math.log1p(delay / scale)
            + weight * math.log(max(1 - loss, 1e-9))
        )
        busy = float(result.summary["utilisation"])
        return cls(throughput, min(jain, 1.0), delay, loss, worth, rate_bps, busy)

    def dominates(self, other: Measured) -> bool:
        """Whether it is better in something and worse in nothing."""
        mine, others = (
            (each.throughput, each.jain, -each.delay, -each.loss) for each in (self, other)
        )
        return mine != others and all(a >= b for a, b in zip(mine, others, strict=True))


_METRICS = {
    "throughput": "throughput_bps", "jain": "jain", "delay": "delay_p99_s", "loss": "loss",
}  # fmt: skip
"""The metrics of results whose ends the measured have."""


@dataclass(frozen=True)
class Ranked:
    """A candidate in its place.

    Attributes:
        name: The queue discipline.
        runs: What was measured, seed by seed.
        behind: How much less it is worth than the first, with the interval of the differences seed
            by seed; of the first nought.
    """

    name: str
    runs: tuple[Measured, ...]
    behind: Estimate

    @property
    def as_good(self) -> bool:
        """Whether it is worth less than the first by under :data:`MARGIN`, by the whole interval.

        That an interval holds nought says nothing of few seeds: with two it is 13 times as wide as
        what they differ by, and holds nought for what waits ten times as long.
        """
        return self.behind.high < MARGIN

    @property
    def undecided(self) -> bool:
        """Whether these seeds tell neither that it is as good as the first nor that it is not."""
        return self.behind.low <= 0 and not self.as_good

    def mean(self, what: str) -> Estimate:
        """The mean over seeds of one of the fields of :class:`Measured`."""
        least, most = ends(_METRICS[what]) if what in _METRICS else (-math.inf, math.inf)
        if what == "throughput":
            most = self.runs[0].rate
        return estimate([getattr(each, what) for each in self.runs], (least, most))

    @property
    def means(self) -> Measured:
        """The mean of each."""
        names = ("throughput", "jain", "delay", "loss", "worth", "busy")
        return Measured(**{name: self.mean(name).mean for name in names}, rate=self.runs[0].rate)


def rank(measured: Mapping[str, Sequence[Measured]]) -> list[Ranked]:
    """The candidates, what is worth most first; all were run with the same seeds."""
    order = sorted(measured, key=lambda name: -sum(each.worth for each in measured[name]))
    first = measured[order[0]]
    return [
        Ranked(
            name,
            tuple(measured[name]),
            estimate([a.worth - b.worth for a, b in zip(first, measured[name], strict=True)]),
        )
        for name in order
    ]


def reasons(ranked: Sequence[Ranked], link: Link) -> list[str]:
    """Why the first one is first, beside a queue without management."""
    best = ranked[0].means
    plain = next((each.means for each in ranked if each.name == "droptail"), None)
    share = best.throughput / bits_per_second(link.rate)
    who = "calls and games" if link.calls or link.games else "packets"
    beside = [""] * 4
    if plain is not None and ranked[0].name != "droptail":
        beside = [
            f" (a plain queue: {percent(plain.throughput / bits_per_second(link.rate))})",
            f" (a plain queue: {milliseconds(plain.delay)})",
            f" (a plain queue: {percent(plain.loss)})",
            f" (a plain queue: {number(plain.jain)})",
        ]
    told = [
        f"99 % of {who} wait at most {milliseconds(best.delay)}{beside[1]}",
        f"what always has data gets {percent(share)} of the link{beside[0]}",
        f"shares are even to {number(best.jain)} of 1, by Jain's index{beside[3]}",
    ]
    whose = "of these" if link.calls or link.games else "of what always has data"
    told.insert(1, f"{whose} {percent(best.loss)} are lost{beside[2]}")
    rates = (bits_per_second(str(each["rate"])) for each in (CALL, GAME))
    live = sum(n * rate for n, rate in zip((link.calls, link.games), rates, strict=True))
    if live > bits_per_second(link.rate):
        told.append("calls and games alone need more than the link has, which no queue can mend")
    if (busy := max(each.means.busy for each in ranked)) < _LITTLE:
        told.append(
            f"whatever its queue, the link is busy for {percent(busy)} of the time at most, "
            "so that there is little to choose by (more flows, or a longer run, may fill it)"
        )
    return told
