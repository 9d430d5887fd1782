"""Which queue discipline suits a link: all that its box can run are tried on it, and ranked.

The worth of a discipline is

    ln(throughput/rate) + ln(Jain) − ln(1 + delay/scale) + weight·ln(1 − loss)

with the throughput of the bulk flows on the link, Jain's index over them, and delay (99 %) and loss
of calls and games; the scale is 20 ms and the weight 10. Without calls and games they are the delay
of all packets and the loss of the bulk flows, with 100 ms and 1. The worth grows with each of the
four, so the first candidate is never worse than another in all of them. A link with two directions
is simulated once each way; the worths of both ways add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bluewater import _core
from bluewater.arguments import texts
from bluewater.errors import InputError
from bluewater.results.aggregate import ends
from bluewater.results.stats import Estimate, estimate
from bluewater.study.scenarios import tcp
from bluewater.text import milliseconds, number, percent
from bluewater.text import rate as show_rate
from bluewater.units import bits_per_second, duration_text, seconds, size_bytes, times

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bluewater.results.result import Result

CALL: dict[str, Any] = {"transport": "cbr", "rate": "85.6kbit", "packet": "214B"}
"""A voice call: 50 packets a second of 160 bytes with 54 of headers."""
GAME: dict[str, Any] = {
    "transport": "cbr", "rate": "72kbit", "packet": "150B", "gaps": "uniform", "jitter": 0.2,
}  # fmt: skip
"""A game: 60 packets a second."""
HEADER = 14
"""Bytes of the Ethernet header in these lengths. Framing counts from the IP packet on."""
_FULL_S, _CALM_S = 0.02, 0.1
"""The scale of delay with and without calls and games, in s."""
_FULL_LOSS, _CALM_LOSS = 10, 1
"""The weight of loss in the same two cases."""
_LITTLE = 0.8
"""`reasons` says so if no candidate fills the link to this part."""

MARGIN = 0.1
"""How much less than the first an equally good candidate may be worth (ours): a tenth of the
throughput, 1 % of loss, or 2 ms of delay where there is next to none."""


@dataclass(frozen=True)
class Link:
    """A link and who uses it; texts are in the units of scenario files.

    Attributes:
        rate: Its rate in the one direction that is of interest, unless ``down`` or ``up`` is given.
        down: Its rate towards its users.
        up: Its rate away from them.
        margin: How much less than the link's rate a box shapes to, in %. By default 10 down and 5
            up, so that packets wait in the box's queue and not in a modem behind it.
        framing: What packets take on the wire beside their own bytes, in the words of ``tc cake``:
            ``pppoe-ptm``, ``docsis``, ``overhead 44 atm``; empty for none.
        rtt: Round-trip times without queueing; flows are spread over them.
        bulk: Bulk TCP flows in each direction.
        transport: Which TCP; ``cubic`` is Linux's.
        calls: Voice calls, 86 kb/s each way.
        games: Games, 72 kb/s each way.
        hostile: The rates of datagram flows that ignore congestion.
        ecn: Whether TCP uses ECN.
        buffer: The room of the queue.
    """

    rate: str = "50mbit"
    down: str = ""
    up: str = ""
    margin: float | None = None
    framing: str = ""
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
        for name in ("rate", "down", "up"):
            if text := getattr(self, name):
                bits_per_second(text, name)
        for each in self.hostile:
            bits_per_second(each, "hostile")
        if self.framing:
            try:
                _core.framing(self.framing)
            except ValueError as error:
                allowed = str(error).partition("allowed: ")[2]
                raise InputError(
                    "not a framing",
                    key="framing",
                    value=self.framing,
                    allowed=allowed,
                    hint=_LINES.get(self.framing.lower()),
                ) from error
        if self.margin is not None and not 0 <= self.margin <= 50:
            raise InputError("not a margin", key="margin", value=self.margin, allowed="0 to 50 %")

    @property
    def ways(self) -> dict[str, str]:
        """The directions of interest with the link's rate; a single one may have no name."""
        both = {"down": self.down, "up": self.up}
        return {way: rate for way, rate in both.items() if rate} or {"": self.rate}

    def shaped(self, way: str) -> str:
        """The rate that a box shapes to in a direction, below the link's by ``margin``."""
        margin = self.margin
        if margin is None:
            margin = 10 if way == "down" else 5
        kbit = bits_per_second(self.ways[way]) * (100 - margin) / 1e5
        return f"{math.floor(kbit)}kbit" if kbit >= 100 else f"{max(1000, round(kbit * 1e3))}bit"

    @property
    def title(self) -> str:
        """What it is, in a line."""
        ecn = "" if self.ecn else " without ECN"
        users = [
            f"{_several(self.bulk, f'{self.transport} flow')}{ecn}",
            *([_several(self.calls, "call")] if self.calls else []),
            *([_several(self.games, "game")] if self.games else []),
            *(f"a flow of {rate} that ignores congestion" for rate in self.hostile),
        ]
        rates = " and ".join(f"{rate} {way}".rstrip() for way, rate in self.ways.items())
        framing = f", {self.framing}" if self.framing else ""
        return f"{rates}{framing}, {' and '.join(self.rtt)}, {self.buffer}: {', '.join(users)}"


_LINES = {
    **dict.fromkeys(("adsl", "dsl"), "ADSL has pppoe-llcsnap or overhead 44 atm"),
    **dict.fromkeys(("vdsl", "vdsl2"), "VDSL has pppoe-ptm or bridged-ptm"),
    **dict.fromkeys(("cable", "docsis3", "docsis3.1", "catv"), "cable has docsis"),
    **dict.fromkeys(("fibre", "fiber", "ftth", "gpon"), "fibre has ethernet"),
    "pppoe": "VDSL has pppoe-ptm, ADSL pppoe-llcsnap",
}
"""The framing of lines that are no framing by themselves."""


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def scenario(link: Link, duration: str, warmup: str, rate: str = "") -> dict[str, Any]:
    """The link at a rate (its own unless given) as a scenario whose queue is yet to be chosen."""
    rate = rate or link.rate
    if link.bulk < 1:
        raise InputError("nothing fills the link", key="bulk", value=link.bulk, allowed="1 or more")
    framing = {"framing": link.framing} if link.framing else {}
    tcp.check(link.transport)
    nodes = [f"n{k}" for k in range(len(link.rtt))]
    begin = f"0s..{duration_text(min(1.0, seconds(warmup, 'warmup')))}"
    place = {"from": nodes, "to": ["sink"], "start": begin}
    today = tcp.preset("linux", link.transport)
    full = f"{1514 - HEADER if link.framing else 1514}B"
    call, game = (_framed(each) if link.framing else each for each in (CALL, GAME))
    groups = [
        {"name": "bulk", **place, "flows": link.bulk, "transport": link.transport, **today,
         "packet": full, "ecn": link.ecn},
        *([{"name": "calls", **place, "flows": link.calls, **call}] if link.calls else []),
        *([{"name": "games", **place, "flows": link.games, **game}] if link.games else []),
        *({"name": f"hostile {k}", **place, "transport": "cbr", "packet": full, "rate": rate}
          for k, rate in enumerate(link.hostile, 1)),
    ]  # fmt: skip
    wide = "10gbit" if bits_per_second(rate) <= 1e9 else times(rate, 10)
    access = [
        {"from": node, "to": "R", "rate": wide, "delay": duration_text(seconds(rtt, "rtt") / 2)}
        for node, rtt in zip(nodes, link.rtt, strict=True)
    ]
    return {
        "duration": duration,
        "warmup": warmup,
        "link": [
            *access,
            {"from": "R", "to": "S", "rate": rate, "delay": "0s", **framing},
            {"from": "S", "to": "sink", "rate": wide, "delay": "0s"},
        ],
        "queue": [{"link": "R->S", "aqm": "droptail", "buffer": link.buffer}],
        "traffic": groups,
        "measure": {"delays": True},
    }


def _framed(datagrams: dict[str, Any]) -> dict[str, Any]:
    """Datagrams without their Ethernet header, as many a second."""
    long = size_bytes(datagrams["packet"])
    rate = bits_per_second(datagrams["rate"]) * (long - HEADER) / long
    return {**datagrams, "packet": f"{long - HEADER}B", "rate": f"{rate:.0f}bit"}


@dataclass(frozen=True)
class Measured:
    """What users of a link get in one run.

    Attributes:
        throughput: Of the bulk flows at the link, bit/s. Goodput at the receivers would also count
            packets that were queued, or waited behind a hole, as the warm-up ended: more than the
            link can carry.
        jain: Jain's index of the bulk flows' throughput.
        delay: In the queue, not exceeded by 99 % of the packets of calls and games, of the group
            that waits longest; of all packets without calls and games; in s.
        loss: Of calls and games, or of bulk flows without them, 0 to 1.
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
    """A candidate in its place, in one direction of the link.

    Attributes:
        name: The queue discipline.
        runs: What was measured in this direction, seed by seed.
        behind: How much less it is worth than the first in all directions together, with the
            interval of the differences seed by seed; 0 for the first.
    """

    name: str
    runs: tuple[Measured, ...]
    behind: Estimate

    @property
    def as_good(self) -> bool:
        """Whether it is worth less than the first by under :data:`MARGIN`, by the whole interval.

        An interval that holds 0 would not do: that of two seeds is 13 times as wide as their
        difference, and would call a candidate equal that waits ten times as long.
        """
        return self.behind.high < MARGIN

    @property
    def undecided(self) -> bool:
        """Whether these seeds cannot tell if it is as good as the first."""
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


def rank(*ways: Mapping[str, Sequence[Measured]]) -> list[list[Ranked]]:
    """The candidates of each direction in one order, by the worth of all directions together.

    All were run with the same seeds.
    """
    worth = {
        name: [
            math.fsum(each.worth for each in runs)
            for runs in zip(*(way[name] for way in ways), strict=True)
        ]
        for name in ways[0]
    }
    order = sorted(worth, key=lambda name: -sum(worth[name]))
    first = worth[order[0]]
    behind = {
        name: estimate([a - b for a, b in zip(first, worth[name], strict=True)]) for name in order
    }
    return [[Ranked(name, tuple(way[name]), behind[name]) for name in order] for way in ways]


def reasons(ranked: Sequence[Ranked], link: Link, way: str = "") -> list[str]:
    """Why the first one is first in a direction of the link, beside a queue without management."""
    rate = bits_per_second(link.ways[way])
    best = ranked[0].means
    plain = next((each.means for each in ranked if each.name == "droptail"), None)
    if ranked[0].name == "droptail":
        plain = None
    live = bool(link.calls or link.games)

    def told(text: str, show: Callable[[Measured], str]) -> str:
        beside = f" (a plain queue: {show(plain)})" if plain else ""
        return f"{text.format(show(best))}{beside}"

    bulk = {"down": "downloads get {} of the link", "up": "uploads get {} of the link"}
    lines = [
        told(
            f"99 % of {'call and game' if live else 'all'} packets wait at most {{}}",
            lambda each: milliseconds(each.delay),
        ),
        told(
            f"{'calls and games' if live else 'bulk flows'} lose {{}}",
            lambda each: percent(each.loss),
        ),
        told(
            bulk.get(way, "bulk flows get {} of the link"),
            lambda each: percent(each.throughput / rate),
        ),
        told(
            "Jain's index of bulk flows is {} of 1",
            lambda each: number(each.jain),
        ),
    ]
    needs = {
        what: bits_per_second(kind["rate"])
        for what, kind, count in (("call", CALL, link.calls), ("game", GAME, link.games))
        if count
    }
    flows = link.bulk + link.calls + link.games + len(link.hostile)
    share = bits_per_second(link.shaped(way)) / flows
    if link.calls * needs.get("call", 0) + link.games * needs.get("game", 0) > rate:
        lines.append("calls and games alone need more than the link has: no queue can help")
    elif poor := [
        f"a {what} needs {show_rate(need)}" for what, need in needs.items() if need > share
    ]:
        lines.append(
            f"an equal share for each of {flows} flows is {show_rate(share)}, and "
            f"{' and '.join(poor)}: fair queues drop the rest, so let fewer bulk flows go at once"
        )
    if (busy := max(each.means.busy for each in ranked)) < _LITTLE:
        lines.append(
            f"with every queue the link is busy for at most {percent(busy)} of the time, so there "
            "is little to choose by (more flows, or a longer run, may fill it)"
        )
    return lines
