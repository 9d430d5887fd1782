"""The parameters of a discipline as axes of a search, its objectives, and its Pareto front."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bluewater import _core
from bluewater._core import ScenarioError
from bluewater.errors import InputError, unknown
from bluewater.results.result import schema
from bluewater.results.stats import estimate
from bluewater.study.scenarios.scenario import Scenario
from bluewater.study.search.optimise import Range
from bluewater.units import bits_per_second, duration_text, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDE = 10
"""A parameter without a given range is searched from its default divided by this to as many times
it, within what the discipline allows."""
_AMOUNT = re.compile(r"([0-9.]+(?:e-?[0-9]+)?)\s*(\D*)")


@dataclass(frozen=True)
class Knob:
    """A parameter to search.

    Attributes:
        name: Its name.
        kind: Its kind, as the core declares it.
        axis: Its range, or its choices.
        unit: The unit that follows a size's number.
    """

    name: str
    kind: str
    axis: Range | list[Any]
    unit: str = ""

    def written(self, value: Any) -> Any:
        """A value of the axis as scenario files have it, rounded to three digits."""
        if isinstance(self.axis, list) or self.kind == "integer":
            return value
        short = float(f"{value:.3g}")
        if self.kind == "duration":
            return duration_text(short)
        if self.kind == "rate":
            return f"{int(short)}bit"
        return f"{short:.10g}{self.unit}" if self.kind == "size" else short


def knobs(aqm: str, wanted: Sequence[str] = ()) -> tuple[Knob, ...]:
    """The parameters to search: the wanted ones, or each with a number as default.

    A default that has no effect beside the other defaults is left out.

    Args:
        aqm: A queue discipline.
        wanted: Texts as ``target``, ``target=1ms..50ms`` or ``mode=packets,bytes``.
    """
    known = {each["name"]: each for each in _core.catalog()["aqms"]}
    if aqm not in known:
        raise unknown("queue discipline", aqm, known, key="aqm")
    params = {each["name"]: each for each in known[aqm]["parameters"]}
    found = [_knob(params, text) for text in wanted] or [
        knob
        for name, each in params.items()
        if (usual := _default(each)) and _matters(aqm, knob := _knob(params, name), usual)
    ]
    names = [each.name for each in found]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise InputError("given twice", key="params", value=min(repeated))
    if not found:
        raise InputError(
            f"{aqm} has no parameter with a number as default",
            key="aqm", value=aqm, hint="name parameters, as in --param ecn=true,false",
        )  # fmt: skip
    return tuple(found)


def _default(declared: Mapping[str, Any]) -> float:
    """The default of a parameter as a number; 0 if it has none."""
    if declared["kind"] in ("flag", "choice") or declared["default"] == "none":
        return 0.0
    return _number(declared["kind"], declared["default"])


def _matters(aqm: str, knob: Knob, usual: float) -> bool:
    """Whether the discipline takes another value beside its defaults.

    It refuses a parameter that has no effect, such as one of a mode that is off.
    """
    assert isinstance(knob.axis, Range)
    near = usual * 1.2 if usual * 1.2 <= knob.axis.high else usual / 1.2
    value = knob.written(max(1, round(near)) if knob.axis.whole else near)
    queue = {"aqm": aqm, "buffer": "100p", "params": {knob.name: value}}
    network, traffic = {"preset": "dumbbell"}, {"transport": "sack"}
    try:
        Scenario(duration="1s", network=network, queue=[queue], traffic=[traffic])
    except ScenarioError:
        return False
    return True


def _number(kind: str, text: str) -> float:
    if kind == "duration":
        return seconds(text)
    if kind == "rate":
        return bits_per_second(text)
    found = _AMOUNT.fullmatch(text.strip())
    if not found:
        raise InputError("not a number", value=text)
    return float(found[1])


def _knob(params: Mapping[str, Any], text: str) -> Knob:
    name, given, values = text.partition("=")
    if name not in params:
        raise unknown("parameter", name, params, key="--param")
    declared = params[name]
    kind, allowed = declared["kind"], declared["allowed"]
    low, apart, high = values.partition("..")
    if kind in ("flag", "choice") or (given and not apart):
        return Knob(name, kind, _choices(text, values, kind, allowed))
    where: dict[str, Any] = {"key": "--param", "value": text}
    unit = _AMOUNT.fullmatch((high or declared["default"]).strip())
    bounds = allowed.split(" … ") if " … " in allowed else None
    if given:
        try:
            ends = (_number(kind, low), _number(kind, high))
        except InputError as error:
            example = "1ms..50ms" if kind == "duration" else "LOW..HIGH"
            raise InputError(
                "not a range", **where, allowed=f"{name}={example}, within {allowed}",
                hint=error.hint,
            ) from error  # fmt: skip
    elif usual := _default(declared):
        ends = (usual / _WIDE, usual * _WIDE)
        if bounds:
            least, most = (_number(kind, each) for each in bounds)
            ends = (max(ends[0], least), min(ends[1], most))
        if kind == "integer":
            ends = (max(1, round(ends[0])), round(ends[1]))
        if declared["default"].endswith("%"):
            ends = (ends[0], min(ends[1], 100.0))
    else:
        raise InputError(
            f"the default of {name}, {declared['default']}, gives no range", **where,
            allowed=f"{name}=LOW..HIGH, within {allowed}",
        )  # fmt: skip
    if not ends[0] < ends[1]:
        raise InputError("not a range", **where, allowed="the lower end first")
    axis = Range(*ends, log=ends[0] > 0, whole=kind == "integer")
    return Knob(name, kind, axis, unit[2] if unit and kind == "size" else "")


def _choices(text: str, values: str, kind: str, allowed: str) -> list[Any]:
    chosen: list[Any] = values.split(",") if values else allowed.split(" | ")
    if kind == "flag":
        flags = {"true": True, "false": False}
        if wrong := [each for each in chosen if each not in flags]:
            raise unknown("value", wrong[0], flags, key=f"--param {text}")
        chosen = [flags[each] for each in chosen]
    elif kind == "choice":
        if wrong := [each for each in chosen if each not in allowed.split(" | ")]:
            raise unknown("value", wrong[0], allowed.split(" | "), key=f"--param {text}")
    elif kind in ("number", "integer"):
        chosen = [int(n) if (n := _number(kind, each)).is_integer() else n for each in chosen]
    return chosen


@dataclass(frozen=True)
class Objective:
    """A metric of runs that is to be small or large."""

    metric: str
    least: bool

    @property
    def direction(self) -> Literal["minimize", "maximize"]:
        """The direction as Optuna has it."""
        return "minimize" if self.least else "maximize"

    def worst(self, values: Sequence[float], quantile: float) -> float:
        """The value of links that a share of them does not exceed, towards the bad side."""
        ordered = sorted(values, reverse=not self.least)
        return ordered[max(0, -(-int(quantile * len(ordered) * 1e6) // 1_000_000) - 1)]

    def gain(self, value: float, other: float) -> float:
        """By how much ``value`` is better than ``other``."""
        return other - value if self.least else value - other


def objective(name: str, least: bool) -> Objective:
    """The objective of a metric; ``delay.p99`` and ``utilization`` are read as the columns."""
    known = [
        column
        for table in ("summary", "queues")
        for column, kind in schema(table).items()
        if kind.is_numeric() and column not in ("seed", "duration_s", "measured_s", "wall_s")
    ]
    plain = name.strip().replace(".", "_").replace("ization", "isation")
    found = [each for each in known if re.fullmatch(f"{re.escape(plain)}(_s|_bps|_packets)?", each)]
    if not found:
        raise unknown("metric", name, known, key="--minimise" if least else "--maximise")
    return Objective(found[0], least)


Values = tuple[tuple[float, ...], ...]
"""The objectives' values: a tuple per objective, seed by seed."""


def dominates(one: Values, other: Values, objectives: Sequence[Objective], surely: bool) -> bool:
    """Whether ``one`` is better in some objective and worse in none, by the means over seeds.

    With ``surely`` the better one is better by the whole interval of the paired differences.
    """
    gains = [
        estimate([each.gain(a, b) for a, b in zip(*pair, strict=True)])
        for each, pair in zip(objectives, zip(one, other, strict=True), strict=True)
    ]
    better = (each.low if surely else each.mean for each in gains)
    return all(each.mean >= 0 for each in gains) and any(each > 0 for each in better)


def place(defaults: Values, front: Sequence[Values], objectives: Sequence[Objective]) -> str:
    """Where the defaults are: ``on`` the front, ``in`` its intervals, or ``off`` it."""
    for surely, name in ((True, "off"), (False, "in")):
        if any(dominates(each, defaults, objectives, surely) for each in front):
            return name
    return "on"
