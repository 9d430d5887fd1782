"""Ranking queue disciplines for a link: every one that its box can run is simulated.

The worth of a discipline is

    ln(throughput/rate) + ln(Jain) − ln(1 + delay/scale) + weight·ln(1 − loss)

with the throughput of the bulk flows on the link, Jain's index over them, and delay (99 %) and loss
of calls and games; the scale is 20 ms and the weight 10. Without calls and games, delay is that of
all packets and loss that of the bulk flows, with a scale of 100 ms and a weight of 1. The worth
grows with each of the four, so the first candidate is never worse than another in all of them. A
link with two directions is simulated once each way, and the worths of both ways add up.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from typing import TYPE_CHECKING, Any

from bluewater import _core
from bluewater.arguments import FLAG, NUMBER, Argument, texts
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
FULL, HEADER = 1514, 14
"""Bytes of a full packet, and of the Ethernet header in these lengths. Framing counts from the IP
packet on."""
_FULL_S, _CALM_S = 0.02, 0.1
"""The scale of delay with and without calls and games, s."""
_FULL_LOSS, _CALM_LOSS = 10, 1
"""The weight of loss with and without calls and games."""
_MOST_LOSS, _MOST_DELAY = 0.01, 0.15
"""What calls and games bear: loss, and queueing delay in s (ITU-T G.114 has 150 ms for the whole
way of a call; ours)."""
_LITTLE = 0.8
"""`reasons` adds a remark if no candidate keeps the link busy for this share of the time."""

MARGIN = 0.1
"""A candidate counts as good as the first if it is worth less by under this (ours): a tenth of the
throughput, 1 % of loss, or 2 ms of delay if there is hardly any."""


@dataclass(frozen=True)
class Link:
    """A link and its users; texts have the units of scenario files.

    Attributes:
        rate: Its rate in the only direction considered, unless ``down`` or ``up`` is given.
        down: Its rate towards its users.
        up: Its rate away from them.
        margin: How far below the link's rate a box shapes, in %. By default 10 down and 5 up, so
            that packets wait in the box's queue and not in a modem behind it; 0 in a DOCSIS modem.
        framing: Overhead of packets on the wire, as ``tc cake`` writes it: ``pppoe-ptm``,
            ``docsis``, ``overhead 44 atm``; ``raw`` or empty if nothing is added. None if it is not
            known, which is simulated as ``raw``.
        rtt: Round-trip times without queueing; flows are spread over them.
        bulk: Bulk TCP flows in each direction.
        transport: The TCP variant; ``cubic`` is Linux's.
        calls: Voice calls, 86 kb/s each way.
        games: Games, 72 kb/s each way.
        hostile: The rates of datagram flows that ignore congestion.
        ecn: Whether TCP uses ECN.
        buffer: The size of the queue.
    """

    rate: str = "50mbit"
    down: str = ""
    up: str = ""
    margin: float | None = None
    framing: str | None = None
    rtt: tuple[str, ...] = ("20ms", "80ms")
    bulk: int = 8
    transport: str = "cubic"
    calls: int = 2
    games: int = 1
    hostile: tuple[str, ...] = ()
    ecn: bool = True
    buffer: str = "1000p"

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            if not (name in ("margin", "framing") and getattr(self, name) is None):
                kind.check(name, getattr(self, name), "a link")
        for name in ("calls", "games"):
            if (count := getattr(self, name)) < 0:
                raise InputError("not a count", key=name, value=count, allowed="0 or more")
        for name in ("rtt", "hostile"):
            object.__setattr__(self, name, texts(name, getattr(self, name), "a link"))
        if not self.rtt:
            raise InputError("no round trip", key="rtt", value=self.rtt, allowed='as "20ms"')
        for name in ("rate", "down", "up"):
            if text := getattr(self, name):
                bits_per_second(text, name)
        for each in self.hostile:
            bits_per_second(each, "hostile")
        if self.framing is not None:
            object.__setattr__(self, "framing", _framing(self.framing))
        if self.margin is not None and not 0 <= self.margin <= 50:
            raise InputError("not a margin", key="margin", value=self.margin, allowed="0 to 50 %")

    @property
    def full(self) -> int:
        """Bytes of a full packet as its queue counts them."""
        return FULL - HEADER if self.framing else FULL

    @property
    def ways(self) -> dict[str, str]:
        """The link's rate by direction; a single direction may have no name."""
        both = {"down": self.down, "up": self.up}
        return {way: rate for way, rate in both.items() if rate} or {"": self.rate}

    def shaped(self, way: str, share: float = 1) -> str:
        """The rate that a box shapes to in a direction: ``margin`` below the link's.

        A shaper that does not count all bytes on the wire gets a ``share`` of it.
        """
        margin = self.margin
        if margin is None:
            margin = 10 if way == "down" else 5
        kbit = bits_per_second(self.ways[way]) * (100 - margin) / 1e5 * share
        return f"{math.floor(kbit)}kbit" if kbit >= 100 else f"{max(1000, round(kbit * 1e3))}bit"

    @property
    def may_have_cells(self) -> bool:
        """Whether a line of these rates, whose framing is not known, may carry ATM cells.

        ADSL2+ has 24 Mb/s down at most (ITU-T G.992.5), SHDSL 5.7 Mb/s each way (G.991.2).
        """
        most = {"down": 25e6, "up": 6e6, "": 6e6}
        slow = (bits_per_second(rate) <= most[way] for way, rate in self.ways.items())
        return self.framing is None and all(slow)

    @property
    def title(self) -> str:
        """The link and its users in one line."""
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


_RATE = Argument((str,), "a rate such as 50mbit")
_KINDS = {
    **dict.fromkeys(("rate", "down", "up"), _RATE),
    **dict.fromkeys(("bulk", "calls", "games"), NUMBER),
    "margin": Argument((Real,), "0 to 50 %", (bool,)),
    "framing": Argument((str,), "text such as pppoe-ptm"),
    "transport": Argument((str,), "text such as cubic"),
    "buffer": Argument((str,), "a size such as 1000p or 250kB"),
    "ecn": FLAG,
}
"""The types of a link's fields but ``rtt`` and ``hostile``."""

_LINES = {
    **dict.fromkeys(("adsl", "adsl2", "adsl2+", "dsl"), "ADSL has pppoe-llcsnap or conservative"),
    **dict.fromkeys(("vdsl", "vdsl2"), "VDSL has pppoe-ptm or bridged-ptm"),
    **dict.fromkeys(("cable", "docsis3", "docsis3.1", "catv"), "cable has docsis"),
    **dict.fromkeys(("fibre", "fiber", "ftth", "gpon"), "fibre has ethernet"),
    **dict.fromkeys(("lte", "5g", "wifi", "none", "no"), "leave the option out"),
    "pppoe": "VDSL has pppoe-ptm, ADSL pppoe-llcsnap",
    "vlan": "a VLAN tag is ether-vlan, beside the others",
    "via-ethernet": "the words count from the IP packet on, whatever the interface",
}
"""The framing of lines that are no framing by themselves."""


def _framing(text: str) -> str:
    """A framing as ``tc cake`` has it; empty for ``raw``: as the interface counts packets."""
    words = re.split("[ ,]+", text.strip(" ,"))
    if words in (["raw"], [""]):
        return ""
    if "raw" in words:
        raise InputError(
            "raw counts packets as their interface does, and stands alone",
            key="framing",
            value=text,
            hint=f"leave raw out: {' '.join(word for word in words if word != 'raw')}",
        )
    try:
        _core.framing(text)
    except ValueError as error:
        allowed, _, hint = str(error).partition("allowed: ")[2].partition("; ")
        raise InputError(
            "not a framing",
            key="framing",
            value=text,
            allowed=allowed,
            hint=_meant(text.lower(), hint.removeprefix("presets are ").split(", ")) or hint,
        ) from error
    return text


def _meant(text: str, presets: Sequence[str]) -> str:
    """The hint for what is no framing; empty without a guess."""
    odd = [word for word in re.split("[ ,]+", text) if word not in presets]
    if not odd:
        return f"did you mean {text}?"
    for word in odd:
        longer = [each for each in presets if each.startswith(word)]
        if near := longer or get_close_matches(word, presets, 1):
            return _LINES.get(word) or f"did you mean {' or '.join(near)}?"
    return next(filter(None, map(_LINES.get, odd)), "")


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def scenario(link: Link, duration: str, warmup: str, rate: str = "") -> dict[str, Any]:
    """The link at a rate (by default its own) as a scenario without a queue discipline yet."""
    rate = rate or link.rate
    if link.bulk < 1:
        raise InputError(
            "advice needs bulk flows, which fill the link",
            key="bulk",
            value=link.bulk,
            allowed="1 or more",
        )
    framing = {"framing": link.framing} if link.framing else {}
    tcp.check(link.transport)
    nodes = [f"n{k}" for k in range(len(link.rtt))]
    begin = f"0s..{duration_text(min(1.0, seconds(warmup, 'warmup')))}"
    place = {"from": nodes, "to": ["sink"], "start": begin}
    today = tcp.preset("linux", link.transport)
    full = f"{link.full}B"
    if not link.buffer.endswith("p") and size_bytes(link.buffer, "buffer") < link.full:
        raise InputError(
            "a full packet has no room",
            key="buffer",
            value=link.buffer,
            allowed=f"{link.full}B or more, or packets as in 1000p",
        )
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


def _framed(datagrams: Mapping[str, Any]) -> dict[str, Any]:
    """Datagrams without their Ethernet header, as many a second."""
    long = size_bytes(datagrams["packet"])
    rate = bits_per_second(datagrams["rate"]) * (long - HEADER) / long
    return {**datagrams, "packet": f"{long - HEADER}B", "rate": f"{rate:.0f}bit"}


def needed(datagrams: Mapping[str, Any], framing: str) -> float:
    """The rate of calls or games on the wire, bit/s: the link's rate and its shares count that."""
    if not framing:
        return bits_per_second(datagrams["rate"])
    framed = _framed(datagrams)
    long = size_bytes(framed["packet"])
    return bits_per_second(framed["rate"]) * _core.on_wire(framing, long) / long


@dataclass(frozen=True)
class Measured:
    """The users' results in one run.

    Attributes:
        throughput: Throughput of the bulk flows at the link, bit/s. Goodput at the receivers would
            also count packets that were queued, or waited behind a hole, when the warm-up ended:
            more than the link can carry.
        jain: Jain's index of the bulk flows' throughput.
        delay: 99th percentile of the queueing delay, s: of calls and games, whichever group waits
            longer; without them, of all packets.
        loss: Loss of calls and games, or of bulk flows without them, 0 to 1.
        worth: The value for the ranking.
        rate: Rate of the link, bit/s.
        busy: Share of the time in which the link sends.
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
        """Computes the users' results from a run."""
        flows = result.flows
        bulk = flows.filter(flows["group"] == "bulk")["throughput_bps"].to_list()
        # A packet that is being sent when the window ends counts whole.
        throughput = min(max(sum(bulk), 1.0), rate_bps)
        jain = sum(bulk) ** 2 / (len(bulk) * max(sum(each**2 for each in bulk), 1e-9))
        names = ["calls", "games"]
        delays = result.delays
        queued = delays["group"].is_in(names) & (delays["kind"] == "queueing")
        waits = delays.filter(queued)["delay_p99_s"].to_list()
        live = flows.filter(flows["group"].is_in(names))
        concerned = live if live.height else flows.filter(flows["group"] == "bulk")
        sent, lost = (int(concerned[name].sum()) for name in ("arrivals", "drops"))
        # Dropped packets may have arrived before the window began.
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

    @property
    def suffices(self) -> bool:
        """Whether calls and games get what they need."""
        return self.loss < _MOST_LOSS and self.delay <= _MOST_DELAY

    def dominates(self, other: Measured) -> bool:
        """Whether it is better in some respect and worse in none."""
        mine, others = (
            (each.throughput, each.jain, -each.delay, -each.loss) for each in (self, other)
        )
        return mine != others and all(a >= b for a, b in zip(mine, others, strict=True))


_METRICS = {
    "throughput": "throughput_bps", "jain": "jain", "delay": "delay_p99_s", "loss": "loss",
}  # fmt: skip
"""The metric of results whose range each field has."""


@dataclass(frozen=True)
class Ranked:
    """A ranked candidate, in one direction of the link.

    Attributes:
        name: The queue discipline.
        runs: The results in this direction, seed by seed.
        behind: How much less it is worth than the first, all directions together, with the interval
            of the differences seed by seed; 0 for the first.
    """

    name: str
    runs: tuple[Measured, ...]
    behind: Estimate

    @property
    def as_good(self) -> bool:
        """Whether it is worth less than the first by under :data:`MARGIN`, by the whole interval.

        An interval that contains 0 would be too weak a test: with two seeds it is 13 times as wide
        as their difference, and would call a candidate equal whose packets wait ten times as long.
        """
        return self.behind.high < MARGIN

    @property
    def undecided(self) -> bool:
        """Whether these seeds cannot decide if it is as good as the first."""
        return self.behind.low <= 0 and not self.as_good

    def mean(self, what: str) -> Estimate:
        """The mean over seeds of one of the fields of :class:`Measured`."""
        least, most = ends(_METRICS[what]) if what in _METRICS else (-math.inf, math.inf)
        if what == "throughput":
            most = self.runs[0].rate
        return estimate([getattr(each, what) for each in self.runs], (least, most))

    @property
    def means(self) -> Measured:
        """The mean over seeds of every field."""
        names = ("throughput", "jain", "delay", "loss", "worth", "busy")
        return Measured(**{name: self.mean(name).mean for name in names}, rate=self.runs[0].rate)


def rank(*ways: Mapping[str, Sequence[Measured]]) -> list[list[Ranked]]:
    """Ranks the candidates by their worth in all directions together.

    All must have run with the same seeds. Every direction gets the same order.
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


def unmet(ways: Mapping[str, Sequence[Ranked]], link: Link) -> str:
    """What calls and games lack with the first candidate; empty if nothing."""
    if not (link.calls or link.games):
        return ""
    lacking = [
        f"{f'{way}, ' if way else ''}{first.name} loses {percent(first.means.loss)} of them, and "
        f"99 % wait at most {milliseconds(first.means.delay)}"
        for way, (first, *_) in ways.items()
        if not first.means.suffices
    ]
    if not lacking:
        return ""
    enough = [
        each[0].name
        for each in zip(*ways.values(), strict=True)
        if all(there.means.suffices for there in each)
    ]
    others = f"{' and '.join(enough)} would do" if enough else "no candidate meets that"
    return (
        f"calls and games need a loss below {percent(_MOST_LOSS)} and waits of at most "
        f"{milliseconds(_MOST_DELAY)}; {'; '.join(lacking)}; {others}"
    )


def reasons(ranked: Sequence[Ranked], link: Link, way: str = "") -> list[str]:
    """Reasons for the first candidate in a direction, compared with a plain drop-tail queue."""
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
        what: needed(kind, link.framing or "")
        for what, kind, count in (("call", CALL, link.calls), ("game", GAME, link.games))
        if count
    }
    on_wire = " on the wire" if link.framing else ""
    flows = link.bulk + link.calls + link.games + len(link.hostile)
    shaped = bits_per_second(link.shaped(way))
    share = shaped / flows
    all_need = link.calls * needs.get("call", 0) + link.games * needs.get("game", 0)
    if all_need > shaped:
        lines.append(
            f"calls and games alone need {show_rate(all_need)}{on_wire}, more than the link's "
            f"shaped rate of {show_rate(shaped)}: no queue can help"
        )
    elif poor := [
        f"a {what} needs {show_rate(need)}{on_wire}" for what, need in needs.items() if need > share
    ]:
        lines.append(
            f"an equal share for each of {flows} flows is {show_rate(share)}, and "
            f"{' and '.join(poor)}: fair queues drop the rest, so run fewer bulk flows at once"
        )
    if (busy := max(each.means.busy for each in ranked)) < _LITTLE:
        lines.append(
            f"with every queue the link is busy for at most {percent(busy)} of the time, so the "
            "candidates differ little (more flows, or a longer run, may fill it)"
        )
    return lines
