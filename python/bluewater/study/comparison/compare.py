"""Queue disciplines side by side on one link, without a file to write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from bluewater import _core
from bluewater.arguments import FLAG, NAMES, NUMBER, TEXT, Argument, texts
from bluewater.errors import InputError, unknown
from bluewater.own import LANGUAGE, keys
from bluewater.study.advice.advise import CALL, GAME
from bluewater.study.scenarios import tcp
from bluewater.study.scenarios.scenario import parsed
from bluewater.study.scenarios.sweep import Axis, Point, assign
from bluewater.units import bits_per_second, duration_text, seconds, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.aqm import Aqm

FLOWS = (*tcp.TCPS, "tfrc", "ledbat", "scream")
"""Transports of which other traffic can be."""
_LIVE: Mapping[str, dict[str, Any]] = {"call": CALL, "game": GAME}
AGAINST = (*FLOWS, "cbr", "web", *_LIVE)
"""What other traffic there can be: flows of a transport, datagrams, web sessions, calls, games."""

_PAGES = {"size": "24p", "shape": 1.2, "objects": 4, "off": "500ms", "handshake": True}
"""Pages of a web session: four objects of 24 packets in the mean, then half a second to think."""
_TODAY = "1500B"
"""Packets of TCP as it is today; the papers' have 1000 bytes."""

_KINDS = {
    "flows": NUMBER, "ecn": FLAG, "ecn_timeout": FLAG, "delays": FLAG, "against": NAMES,
    "settings": Argument((Mapping, type(None)), "a mapping"),
}  # fmt: skip


_LEAST_BYTES = 15_000
"""Of a buffer that nobody chose: ten packets."""


@dataclass(frozen=True)
class Setup:
    """The link and its load; texts are in the units of scenario files.

    Attributes:
        rtt: Without queueing; flows are spread over several.
        warmup: What results leave out; a third of the duration if not given.
        settings: Dotted keys that are set at the end.
        against: Other traffic: ``cubic:10`` for so many flows, without ECN where they can do
            without, ``cbr:2mbit`` for datagrams at a rate, ``web:20`` for so many users, ``call:2``
            and ``game:1`` for so many voice calls and games.
        preset: ``linux`` or ``modern``: TCP as it is today, with packets of 1500 bytes. Without it
            connections are as in the papers: an initial window of two, packets of 1000 bytes.
        delays: Delays are measured for each group, in the queue, one way and round trips; against
            other traffic they always are.
    """

    rate: str = "45mbit"
    rtt: str | tuple[str, ...] = "100ms"
    flows: int = 100
    buffer: str = "1bdp"
    duration: str = "30s"
    warmup: str = ""
    transport: str = "sack"
    ecn: bool = True
    ecn_timeout: bool = False
    against: tuple[str, ...] = ()
    settings: Mapping[str, Any] | None = None
    preset: str = ""
    delays: bool = False

    @property
    def room(self) -> str:
        """The buffer; where one bandwidth–delay product is less than ten packets, these."""
        little = self.buffer == "1bdp" and _bdp_bytes(self) < _LEAST_BYTES
        return "10p" if little else self.buffer

    def __post_init__(self) -> None:
        trips = texts("rtt", self.rtt, "a setup")
        if not trips:
            raise InputError("no round trip", key="rtt", value=self.rtt, allowed='as "20ms"')
        object.__setattr__(self, "rtt", trips if len(trips) > 1 else trips[0])
        for field in fields(self):
            if field.name == "rtt":
                continue
            _KINDS.get(field.name, TEXT).check(field.name, getattr(self, field.name), "a setup")

    @property
    def trips(self) -> tuple[str, ...]:
        """The round trips, also if it is one."""
        return texts("rtt", self.rtt, "a setup")

    @property
    def title(self) -> str:
        """What it is, in a line."""
        which = f" ({self.preset})" if self.preset else ""
        beside = f" against {', '.join(self.against)}" if self.against else ""
        changes = "".join(f", {key} = {value}" for key, value in (self.settings or {}).items())
        return (
            f"{self.flows} {self.transport} flows{which}{beside}, {self.rate}, "
            f"{' and '.join(self.trips)} round trip, {self.room} buffer{changes}"
        )


def scenario(setup: Setup) -> dict[str, Any]:
    """A dumbbell whose one managed queue is yet to be chosen.

    A sixth of the round trip is spent on each of its six hops, and the access links are ten
    times as fast as the bottleneck, so that no other queue matters. Of several round trips each has
    a node on the left; on the right is one, of the shortest.
    """
    tcp.check(setup.transport, "--transport")
    trips = sorted(seconds(each, "--rtt") for each in setup.trips)
    hop = duration_text(trips[0] / 6)
    access: dict[str, Any] = {"access_delay": hop}
    if len(trips) > 1:
        left = [duration_text(each / 2 - trips[0] / 3) for each in trips]
        access = {"access_delay": left, "left": len(trips), "right": 1}
    today = {"preset": setup.preset, "packet": _TODAY} if setup.preset else {}
    made = {
        "duration": setup.duration,
        "warmup": setup.warmup or duration_text(seconds(setup.duration, "--duration") / 3),
        "network": {
            "preset": "dumbbell",
            "rate": setup.rate,
            "delay": hop,
            "access_rate": times(setup.rate, 10, "--rate"),
            **access,
        },
        "queue": [{"aqm": "droptail", "buffer": setup.room}],
        "traffic": [
            {
                "flows": setup.flows,
                "transport": setup.transport,
                "app": "infinite",
                "start": _begin(setup),
                "ecn": setup.ecn,
                "ecn_timeout": setup.ecn_timeout,
                **today,
            },
            *(_other(text, setup) for text in setup.against),
        ],
        "measure": {"interval": "50ms", "delays": setup.delays or bool(setup.against)},
    }
    for key, value in (setup.settings or {}).items():
        assign(made, key, value, "<compare>")
    return made


def _other(text: str, setup: Setup) -> dict[str, Any]:
    kind, _, amount = text.partition(":")
    if kind not in AGAINST:
        raise unknown("traffic", kind, AGAINST, key="--against")
    group: dict[str, Any] = {"name": text, "start": _begin(setup)}
    if kind == "cbr":
        return {**group, "transport": "cbr", "rate": amount or "1mbit"}
    if amount and not (amount.isdecimal() and int(amount)):
        raise InputError(
            "not a number of flows", key="--against", value=text, allowed="as in cubic:10"
        )
    group["flows"] = int(amount or 1)
    if kind in _LIVE:
        return group | _LIVE[kind]
    group |= {"transport": "sack", "app": "web", **_PAGES} if kind == "web" else {"transport": kind}
    if kind in ("dctcp", "prague"):
        group["ecn"] = True  # Without marks they are nothing.
    if setup.preset and group["transport"] in tcp.TCPS:
        group |= tcp.preset(setup.preset, group["transport"]) | {"packet": _TODAY}
    return group


def axis(aqms: Sequence[str | type[Aqm]]) -> Axis:
    """The axis of queue disciplines, as texts or as classes."""
    return Axis("aqm", tuple(map(_point, aqms)))


_WITH_PARAMS = re.compile(r"(?P<name>.+?):(?P<params>\w+=[^,]*(?:,\w+=[^,]*)*)")


def _point(aqm: str | type[Aqm]) -> Point:
    """A name or a class in Python, which may be followed by parameters of its own."""
    if not isinstance(aqm, str):
        written = {f"queue.0.{key}": text for key, text in keys(aqm).items()}
        return Point(aqm.__name__, written)
    found = _WITH_PARAMS.fullmatch(aqm)
    name, own = (found["name"], parsed(found["params"].split(","))) if found else (aqm, {})
    params = {f"queue.0.params.{key}": value for key, value in own.items()}
    return Point(aqm, {"queue.0.aqm": _discipline(name), **params})


def _discipline(name: str) -> str:
    """What a scenario calls it; a class in Python may go without ``python:``."""
    file, _, cls = name.removeprefix(LANGUAGE).rpartition(":")
    if name.startswith(LANGUAGE) or ".py" in name:
        if not file or not cls or cls.endswith(".py"):
            raise InputError("no class is named", key="aqm", value=name, allowed="FILE.py:CLASS")
        return f"{LANGUAGE}{file}:{cls}"
    known = [entry["name"] for entry in _core.catalog()["aqms"]]
    if name in known:
        return name
    several = re.split(r"[, ]+", name)
    if len(several) > 1 and {*several} <= {*known, ""}:
        apart = " ".join(filter(None, several))
        how = "without quotes" if " " in name else "spaces separate them"
        raise InputError("not a name", key="aqm", value=name, hint=f"{how}: {apart}")
    if name.endswith(".toml"):
        raise InputError(
            "a scenario, and no queue discipline",
            key="aqm",
            value=name,
            hint=f"`bluewater sweep {name}` compares what its [sweep] lists",
        )
    if name.lower() in ("yes", "no", "true", "false", "on", "off"):
        raise InputError(
            "no queue discipline",
            key="aqm",
            value=name,
            hint="switches take no value, as in --ecn and --no-ecn",
        )
    before, colon, rest = name.partition(":")
    if colon and before in known:
        raise InputError(
            "a parameter without a value" if rest.strip() else "no parameter behind the colon",
            key="aqm",
            value=name,
            allowed=f"{before}:{rest.strip() or 'NAME'}=VALUE",
            hint=f"`bluewater explain {before}` has its parameters",
        )
    raise unknown("queue discipline", name, known, key="aqm")


_OTHERS_RATE = re.compile(r"traffic\[([0-9]+)\]\.rate")


_AS_OPTIONS = {"duration": "--duration", "warmup": "--warmup", "traffic[0].preset": "--preset"}


def as_asked(error: InputError, setup: Setup, several: bool) -> InputError:
    """The error of a scenario that nobody has written, as one of what was asked for."""
    key, hint = error.key or "", error.hint
    problem, _, cell = error.problem.partition(" (in the cell ")
    given = {re.sub(r"\.([0-9]+)\b", r"[\1]", each) for each in setup.settings or {}}
    where: dict[str, Any] = {"value": error.value, "allowed": error.allowed}
    if key.startswith("queue[0].params."):
        if several and " has " in (error.allowed or ""):
            name = key.rpartition(".")[2]
            hint = f"for one of several disciplines: NAME:{name}=VALUE, as in red:max_p=0.2"
        return InputError(f"{problem} ({cell}" if cell else problem, key=key, hint=hint, **where)
    if key in given:
        if key.endswith(".rtt"):
            hint = "the round trip is --rtt"
        return InputError(problem, key=key, hint=hint, **where)
    if key == "queue[0].buffer":
        if setup.buffer.endswith("bdp") and not hint:
            hint = f"{setup.buffer} is {_bdp_bytes(setup)} bytes at this rate and round trip"
        return InputError(problem, key="--buffer", hint=hint, **where | {"value": setup.buffer})
    if key in _AS_OPTIONS:
        return InputError(problem, key=_AS_OPTIONS[key], hint=hint, **where)
    if (other := _OTHERS_RATE.fullmatch(key)) and int(other[1]) <= len(setup.against):
        text = setup.against[int(other[1]) - 1]
        return InputError(problem, key="--against", hint=hint, **where | {"value": text})
    return error


def _begin(setup: Setup) -> str:
    """Flows start within the first second, or while there is time."""
    return f"0s..{duration_text(min(1.0, seconds(setup.duration, '--duration')))}"


def _bdp_bytes(setup: Setup) -> int:
    trips = [seconds(each, "--rtt") for each in setup.trips]
    multiple = float(setup.buffer.removesuffix("bdp"))
    return int(multiple * bits_per_second(setup.rate, "--rate") / 8 * sum(trips) / len(trips))
