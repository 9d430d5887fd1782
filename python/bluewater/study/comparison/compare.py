"""Queue disciplines side by side on one link, without a file to write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater import _core
from bluewater.arguments import FLAG, NAMES, NUMBER, TEXT, Argument, texts
from bluewater.errors import InputError, unknown
from bluewater.files import of_capture
from bluewater.own import LANGUAGE, keys
from bluewater.study.advice.advise import CALL, GAME
from bluewater.study.scenarios import tcp
from bluewater.study.scenarios.scenario import parsed
from bluewater.study.scenarios.sweep import Axis, Point, assign
from bluewater.units import bits_per_second, duration_text, seconds, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.aqm import Aqm

FLOWS = (*tcp.TCPS, *tcp.STACKS, "tfrc", "ledbat", "scream")
"""Transports that other traffic can have."""
_LIVE: Mapping[str, dict[str, Any]] = {"call": CALL, "game": GAME}
AGAINST = (*FLOWS, "cbr", "web", *_LIVE)
"""Kinds of other traffic: flows of a transport, datagrams, web sessions, calls, games."""

_PAGES = {"size": "24p", "shape": 1.2, "objects": 4, "off": "500ms", "handshake": True}
"""Pages of a web session: four objects of 24 packets on average, then half a second to think."""
_TODAY = "1500B"
"""Packet length of modern TCP; the papers' packets have 1000 bytes."""

_TIME = Argument((str,), 'a time such as "20ms"')
_KINDS = {
    "rate": Argument((str,), 'a rate such as "45mbit"'), "duration": _TIME, "warmup": _TIME,
    "buffer": Argument((str,), 'a size such as "100p", "50kB" or "1bdp"'),
    "flows": NUMBER, "ecn": FLAG, "ecn_timeout": FLAG, "delays": FLAG, "against": NAMES,
    "settings": Argument((Mapping, type(None)), "a mapping"),
}  # fmt: skip


_INTERVAL = "50ms"
"""Interval of the series that the picture shows."""
_LEAST_BYTES = 15_000
"""The smallest default buffer: ten packets."""


@dataclass(frozen=True)
class Setup:
    """The link and its load; texts have the units of scenario files.

    Attributes:
        rtt: Round-trip time without queueing; flows are spread over several.
        warmup: Time at the start that results leave out; by default a third of the duration.
        settings: Dotted keys to set last.
        against: Other traffic: ``cubic:10`` for ten flows, without ECN unless they need it,
            ``cbr:2mbit`` for datagrams at this rate, ``web:20`` for 20 users, ``call:2`` for two
            voice calls and ``game:1`` for a game.
        preset: ``linux`` or ``modern``: modern TCP, with packets of 1500 bytes. Without it
            connections are as in the papers: an initial window of two, packets of 1000 bytes.
        delays: Whether to measure delays for each group: in the queue, one way and round trips.
            With other traffic they are always measured.
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
        """The buffer; ten packets if the default, one bandwidth–delay product, is smaller."""
        little = self.buffer == "1bdp" and _bdp_bytes(self) < _LEAST_BYTES
        return "10p" if little else self.buffer

    def __post_init__(self) -> None:
        trips = texts("rtt", self.rtt, "a setup")
        if not trips:
            raise InputError("no round trip", key="rtt", value=self.rtt, allowed='as "20ms"')
        object.__setattr__(self, "rtt", trips if len(trips) > 1 else trips[0])
        for field in fields(Setup):  # one of a kind has more
            if field.name == "rtt":
                continue
            _KINDS.get(field.name, TEXT).check(field.name, getattr(self, field.name), "a setup")

    @property
    def trips(self) -> tuple[str, ...]:
        """The round-trip times, as a tuple even if there is only one."""
        return texts("rtt", self.rtt, "a setup")

    @property
    def title(self) -> str:
        """The link and its load in one line."""
        which = f" ({self.preset})" if self.preset else ""
        beside = f" against {', '.join(self.against)}" if self.against else ""
        changes = "".join(f", {key} = {value}" for key, value in (self.settings or {}).items())
        return (
            f"{self.flows} {self.transport} flows{which}{beside}, {self.rate}, "
            f"{' and '.join(self.trips)} round trip, {self.room} buffer{changes}"
        )


def scenario(setup: Setup) -> dict[str, Any]:
    """A dumbbell with one managed queue, whose discipline is yet to be chosen.

    Each of its six hops takes a sixth of the round trip, and the access links are ten times as fast
    as the bottleneck, so that no other queue matters. Each of several round trips has its own node
    on the left; the single node on the right has the shortest.
    """
    if 0 < seconds(setup.duration, "--duration") < 2 * seconds(_INTERVAL, "interval"):
        raise InputError(
            f"too short for a series, whose interval is {_INTERVAL}",
            key="--duration",
            value=setup.duration,
            allowed=f"at least {duration_text(2 * seconds(_INTERVAL, 'interval'))}",
        )
    bulk = tcp.bulk(setup.transport, "--transport")
    trips = sorted(seconds(each, "--rtt") for each in setup.trips)
    hop = duration_text(trips[0] / 6)
    access: dict[str, Any] = {"access_delay": hop}
    if len(trips) > 1:
        left = [duration_text(each / 2 - trips[0] / 3) for each in trips]
        access = {"access_delay": left, "left": len(trips), "right": 1}
    today: dict[str, Any] = {"preset": setup.preset, "packet": _TODAY} if setup.preset else {}
    if setup.ecn_timeout:
        today["ecn_timeout"] = True
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
                **bulk,
                "app": "infinite",
                "start": _begin(setup),
                "ecn": setup.ecn,
                **today,
            },
            *(_other(text, setup) for text in setup.against),
        ],
        "measure": {"interval": _INTERVAL, "delays": setup.delays or bool(setup.against)},
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
        group["ecn"] = True  # Scalable transports need marks.
    if setup.preset and group["transport"] in tcp.TCPS:
        group |= tcp.preset(setup.preset, group["transport"]) | {"packet": _TODAY}
    return group


def axis(aqms: Sequence[str | type[Aqm]]) -> Axis:
    """The axis of queue disciplines, given as texts or as classes."""
    return Axis("aqm", tuple(map(_point, aqms)))


_WITH_PARAMS = re.compile(r"(?P<name>.+?):(?P<params>\w+=[^,]*(?:,\w+=[^,]*)*)")


def _point(aqm: str | type[Aqm]) -> Point:
    """Parses a name or a Python class, with or without its own parameters."""
    if not isinstance(aqm, str):
        written = {f"queue.0.{key}": text for key, text in keys(aqm).items()}
        return Point(aqm.__name__, written)
    found = _WITH_PARAMS.fullmatch(aqm)
    name, own = (found["name"], parsed(found["params"].split(","))) if found else (aqm, {})
    params = {f"queue.0.params.{key}": value for key, value in own.items()}
    return Point(aqm, {"queue.0.aqm": _discipline(name), **params})


def _discipline(name: str) -> str:
    """The name in a scenario; the user may leave out ``python:`` before a class."""
    file, _, cls = name.removeprefix(LANGUAGE).rpartition(":")
    if name.startswith(LANGUAGE) or ".py" in name:
        if not file or not cls or cls.endswith(".py"):
            raise InputError(
                "the file is given, but no class", key="aqm", value=name, allowed="FILE.py:CLASS"
            )
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
    if name[:1].isdecimal():
        raise InputError("no queue discipline", key="aqm", value=name, hint=by_sweep("flows"))
    before, colon, rest = name.partition(":")
    if colon and before in known:
        raise InputError(
            "a parameter without a value" if rest.strip() else "no parameter behind the colon",
            key="aqm",
            value=name,
            allowed=f"{before}:{rest.strip() or 'NAME'}=VALUE",
            hint=f"`bluewater explain {before}` has its parameters",
        )
    error = unknown("queue discipline", name, known, key="aqm")
    error.hint = of_capture(Path(name)) or error.hint
    raise error


_SWEPT = {
    "flows": ("traffic.0.flows", "10, 20, 40"),
    "rate": ("network.rate", '"10mbit", "50mbit"'),
    "buffer": ("queue.0.buffer", '"50p", "1bdp"'),
    "transport": ("traffic.0.transport", '"sack", "cubic"'),
    "preset": ("traffic.0.preset", '"linux", "modern"'),
}
"""The key of a scenario and values as an example, for options of one value."""


def by_sweep(option: str) -> str | None:
    """A hint on what runs several values of an option; None if nothing does."""
    if option not in _SWEPT:
        return None
    key, values = _SWEPT[option]
    return (
        "an option takes one value; `bluewater sweep FILE` runs several, where the file has "
        f'[sweep] {option} = {{ key = "{key}", values = [{values}] }}'
    )


_OTHERS_RATE = re.compile(r"traffic\[([0-9]+)\]\.rate")


_AS_OPTIONS = {
    "duration": "--duration", "warmup": "--warmup", "traffic[0].preset": "--preset",
    "traffic[0].control": "--transport",
}  # fmt: skip


def as_asked(error: InputError, setup: Setup, several: bool) -> InputError:
    """Rewrites an error of the generated scenario in terms of the user's options."""
    key, hint = error.key or "", error.hint
    problem, _, cell = error.problem.partition(" (in the cell ")
    given = {re.sub(r"\.([0-9]+)\b", r"[\1]", each) for each in setup.settings or {}}
    where: dict[str, Any] = {"value": error.value, "allowed": error.allowed}
    if key.startswith("queue[0].params."):
        if several and " has " in (error.allowed or ""):
            name = key.rpartition(".")[2]
            hint = f"set it for one discipline alone: NAME:{name}=VALUE, as in red:max_p=0.2"
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
    """The range of start times: the first second, or the whole of a shorter run."""
    return f"0s..{duration_text(min(1.0, seconds(setup.duration, '--duration')))}"


def _bdp_bytes(setup: Setup) -> int:
    trips = [seconds(each, "--rtt") for each in setup.trips]
    multiple = float(setup.buffer.removesuffix("bdp"))
    return int(multiple * bits_per_second(setup.rate, "--rate") / 8 * sum(trips) / len(trips))
