"""Traffic that breaks a queue discipline: what an attacker may do, and what that does to others.

An attack lasts from the end of the warm-up to the end of the run, which is what is measured. It is
compared with the run of the same seed without it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bluewater import text
from bluewater.errors import InputError
from bluewater.study.comparison import compare
from bluewater.study.comparison.compare import Setup
from bluewater.study.scenarios import tcp
from bluewater.study.scenarios.sweep import assign
from bluewater.study.search.optimise import Point, Range, Space
from bluewater.units import bits_per_second, duration_text, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bluewater.aqm import Aqm
    from bluewater.results.result import Result

MEASURES: Mapping[str, str] = {
    "throughput": "share of the victims' goodput that is lost",
    "delay": "99th percentile of the victims' queueing delay",
    "starve": "share of a mean victim's goodput that the worst-off victim lacks",
    "penalty": "share of the link that the attacker takes",
}
"""What an attack may be judged by. Its damage is what this measure is above its value without
attack; for ``penalty``, above an equal share of the link."""

_PACKET = 1500
"""Length of the victims' packets, and of an attacker's that does not vary it, bytes."""
_LEAST_PACKET = 64
_PERIODS = (0.05, 5.0)
"""Range of the bursts' periods, s; the longest is also a quarter of the attack."""
_LEAST_ON = 0.01
"""Least share of the period that a burst lasts."""
_SHORTEST = 1e-3
"""No burst is made shorter than this, s."""
_LEAST_LOAD = 1e-4
"""No attack is made smaller than this share of the link's rate."""
_DSCP = ("cake", "wred")
"""The disciplines for which the codepoint is a move; others ignore it."""
_LOW = 0.5
"""An attack of a lower share of the link's rate counts as one of a low rate."""
_NEAR = (0.8, 1.5)
"""A period of so many timeouts counts as near the timeout."""


@dataclass(frozen=True)
class Threat(Setup):
    """A link with its users, the victims, and what an attacker may spend.

    The link and the victims are described as for :class:`~bluewater.Setup`.

    Attributes:
        duration: Length of a run; the attack lasts from the end of ``warmup`` to the end.
        min_rto: The victims' least retransmission timeout; RFC 6298 has 1 s, Linux 200 ms.
        load: The attack's mean rate at most, as a share of the link's.
        identities: Spoofed flows at most, all together.
        peak: Rate of a burst at most, as a multiple of the link's.
    """

    rate: str = "10mbit"
    rtt: str | tuple[str, ...] = ("20ms", "40ms", "60ms", "100ms")
    flows: int = 10
    duration: str = "25s"
    warmup: str = "5s"
    min_rto: str = "1s"
    load: float = 0.2
    identities: int = 1000
    peak: float = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        tcp.check(self.transport)
        bounds = {"load": (0.001, self.peak), "peak": (0.001, 10), "identities": (1, 10_000)}
        bounds["flows"] = (1, 10_000)
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not least <= value <= most:
                raise InputError("not allowed", key=name, value=value, allowed=f"{least} … {most}")
        seconds(self.min_rto, "min_rto")
        if self.lasts <= 0:
            allowed = f"more than the warm-up, {self.warmup}"
            raise InputError(
                "no time is left", key="duration", value=self.duration, allowed=allowed
            )

    @property
    def bits(self) -> float:
        """The link's rate, bit/s."""
        return bits_per_second(self.rate, "rate")

    @property
    def lasts(self) -> float:
        """Length of the attack, s."""
        return seconds(self.duration, "duration") - seconds(self.warmup, "warmup")

    @property
    def title(self) -> str:
        """The link, its users and the attacker's budget in one line."""
        return (
            f"{super().title}, least timeout {self.min_rto}; budget: {text.percent(self.load)} of "
            f"the link for {text.number(self.lasts)} s, {self.identities} flows"
        )


@dataclass(frozen=True)
class Moves:
    """What an attacker does.

    Attributes:
        load: Mean rate as a share of the link's.
        period: Time from burst to burst, s; 0 for a constant rate.
        burst: Length of a burst, s.
        identities: Spoofed flows, all together.
        turns: The flows come in so many sets, one after another.
        packet: Length of the packets, bytes.
        ecn: Whether packets are ECN-capable; marks are ignored.
        dscp: The codepoint; empty for none.
    """

    load: float
    period: float = 0.0
    burst: float = 0.0
    identities: int = 1
    turns: int = 1
    packet: int = _PACKET
    ecn: bool = False
    dscp: str = ""


def families(threat: Threat, aqm: str) -> list[tuple[float, Space]]:
    """The attacker's moves with their bounds, in four families, and each one's share of the runs.

    In a single search the many attacks that do little harm at a constant rate draw the sampler away
    from the few bursts that do much.
    """
    longest = min(_PERIODS[1], threat.lasts / 4)
    axes: Space = {
        "load": Range(threat.load / 10, threat.load, log=False),
        "packet": Range(_LEAST_PACKET, _PACKET, whole=True),
        "ecn": [True, False],
        **({"dscp": ["", "EF", "CS1"]} if aqm in _DSCP else {}),
    }
    bursts: Space = {
        "period": Range(min(_PERIODS[0], longest), longest),
        "on": Range(_LEAST_ON, 0.5),
    }
    found = [(0.35, axes | bursts), (0.1, axes)]
    if threat.identities > 1:
        flows = Range(1, threat.identities, whole=True)
        many: Space = {"at_once": flows, "turns": flows}
        found += [(0.35, axes | bursts | many), (0.2, axes | many)]
    return found


def moves(point: Point, threat: Threat) -> Moves:
    """The moves of a point of the search."""
    period = round(point.get("period", 0.0), 3)
    burst = round(period * max(point.get("on", 0.0), point["load"] / threat.peak), 4)
    at_once = point.get("at_once", 1)
    turns = min(point.get("turns", 1), threat.identities // at_once)
    rest = (point["packet"], point["ecn"], point.get("dscp", ""))
    return Moves(point["load"], period, burst, at_once * turns, turns, *rest)


def group(chosen: Moves, threat: Threat) -> dict[str, Any]:
    """The attack as a group of traffic.

    Whole packets leave in each burst, rounded down: the attack never exceeds its mean rate by more
    than a packet of each flow, or the one packet that a burst has at least.
    """
    bits, long = 8 * chosen.packet, threat.lasts
    packets = chosen.load * threat.bits * long / bits
    if chosen.period:
        packets /= math.ceil(long / chosen.period)
    at_once = max(1, min(chosen.identities // chosen.turns, int(packets)))
    made: dict[str, Any] = {
        "name": "attack", "from": [f"n{len(threat.trips)}"], "transport": "cbr", "flows": at_once,
        "packet": f"{chosen.packet}B", "start": threat.warmup,
    }  # fmt: skip
    if chosen.period:
        off = duration_text(max(chosen.period - chosen.burst, 1e-4))
        made |= {"app": "periodic", "on": duration_text(chosen.burst), "off": off}
        made["rate"] = f"{int(max(1, int(packets) // at_once) * bits / chosen.burst)}bit"
    else:
        rate = max(chosen.load * threat.bits / at_once, 1000.0)
        made["rate"] = f"{int(rate)}bit"
        made["start"] += f"..{duration_text(seconds(threat.warmup) + min(bits / rate, long))}"
    if chosen.turns > 1:
        made["rekey"] = duration_text(round(long / chosen.turns, 6))
    own = {"ecn": chosen.ecn, "dscp": chosen.dscp}
    return made | {key: value for key, value in own.items() if value}


def scenario(aqm: str | type[Aqm], threat: Threat, chosen: Moves | None) -> dict[str, Any]:
    """The link with its victims and an attack, or without one.

    The attacker has a node of its own, as near as the nearest victim.
    """
    made = compare.scenario(threat)
    count = len(threat.trips)
    left = made["network"]["access_delay"]
    near = left if isinstance(left, list) else [left]
    made["network"] |= {"access_delay": [*near, near[0]], "left": count + 1, "right": 1}
    victims = {"name": "victims", "min_rto": threat.min_rto, "packet": f"{_PACKET}B"}
    made["traffic"][0] |= victims | {"from": [f"n{k}" for k in range(count)]}
    made["measure"] = {"delays": True}
    if chosen:
        made["traffic"].append(group(chosen, threat))
    for key, value in compare.axis([aqm]).points[0].settings.items():
        assign(made, key, value, "<attack>")
    return made


@dataclass(frozen=True)
class Effect:
    """What one run shows.

    Attributes:
        value: The measure, as :data:`MEASURES` has it; a delay in s.
        damage: How much it is above the value without attack, or an equal share.
        load: The attack's mean rate as it arrived at the queue, as a share of the link's.
    """

    value: float
    damage: float
    load: float


def effect(measure: str, run: Result, alone: Result, threat: Threat) -> Effect:
    """The effect of an attack, compared with the run of the same seed without one."""
    flows = run.flows.filter(run.flows["group"] == "attack")
    load = float(flows["arrivals_bytes"].sum()) * 8 / run.summary["measured_s"] / threat.bits
    value = _value(measure, run, alone, threat)
    equal = 1 / (threat.flows + 1)
    least = equal if measure == "penalty" else _value(measure, alone, alone, threat)
    return Effect(value, value - least, load)


def _value(measure: str, run: Result, alone: Result, threat: Threat) -> float:
    if measure == "penalty":
        taken = run.flows.filter(run.flows["group"] == "attack")["throughput_bps"].sum()
        return float(taken) / threat.bits
    if measure == "delay":
        delays = run.delays
        mine = (delays["group"] == "victims") & (delays["kind"] == "queueing")
        return max(
            (each or 0.0 for each in delays.filter(mine)["delay_p99_s"].to_list()), default=0
        )
    got, before = (
        each.flows.filter(each.flows["group"] == "victims")["goodput_bps"].to_list()
        for each in (run, alone)
    )
    left = min(got) * len(got) if measure == "starve" else sum(got)
    return 1 - float(left) / max(float(sum(before)), 1.0)


def smaller(chosen: Moves) -> list[Moves]:
    """Attacks with less: first those without a move, then those that shrink one, most first."""
    without: list[dict[str, Any]] = [
        {"turns": 1}, {"identities": 1, "turns": 1}, {"period": 0.0, "burst": 0.0}, {"dscp": ""},
        {"ecn": False}, {"packet": _PACKET},
    ]  # fmt: skip
    made = [replace(chosen, **each) for each in without]
    for part in (1 / 32, 1 / 8, 1 / 4, 1 / 2):
        count = max(1, round(chosen.identities * part))
        made.append(replace(chosen, identities=count, turns=min(chosen.turns, count)))
        made.append(replace(chosen, turns=max(1, round(chosen.turns * part))))
    for part in (0.1, 0.25, 0.5, 0.7, 0.85):
        if chosen.load * part < _LEAST_LOAD:
            continue
        burst = round(chosen.burst * part, 4)
        if burst >= _SHORTEST:
            made.append(replace(chosen, load=chosen.load * part, burst=burst))
        made.append(replace(chosen, load=chosen.load * part))
    return [each for each in dict.fromkeys(made) if each != chosen]


def words(chosen: Moves, threat: Threat) -> str:
    """The attack in plain words, with what it costs."""
    made = group(chosen, threat)
    count = made["flows"]
    what = text.rate(bits_per_second(made["rate"]) * count)
    if chosen.period:
        long, every = text.milliseconds(chosen.burst), text.milliseconds(chosen.period)
        what = f"bursts of {long} at {what} every {every}"
    else:
        what = f"a constant rate of {what}"
    flows = "one flow" if count == 1 else f"{count} flows at once"
    if chosen.turns > 1:
        flows += f" that change ports every {text.number(threat.lasts / chosen.turns)} s"
        flows += f" ({count * chosen.turns} flows in all)"
    marks = "ECN-capable, marks ignored" if chosen.ecn else "not ECN-capable"
    dscp = f", DSCP {chosen.dscp}" if chosen.dscp else ""
    return f"{what} from {flows}; packets of {chosen.packet} bytes, {marks}{dscp}"


def remark(chosen: Moves, threat: Threat) -> str:
    """What kind of attack this is, if it has a name; empty otherwise."""
    ratio = chosen.period / seconds(threat.min_rto, "min_rto")
    if not _NEAR[0] <= ratio <= _NEAR[1] or chosen.load >= _LOW:
        return ""
    return (
        f"the period is {text.number(ratio)} times the victims' least retransmission timeout: a "
        "low-rate attack (Kuzmanovic and Knightly, SIGCOMM 2003)"
    )
