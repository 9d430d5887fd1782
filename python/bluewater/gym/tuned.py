"""Parameters of a queue as actions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bluewater import _core
from bluewater.arguments import MAPPING
from bluewater.errors import InputError, unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ranges = Mapping[str, tuple[Any, Any]]
"""Of parameters by name, the values for the actions 0 and 1."""
_MOST = 10
"""The most parameters: all combinations of their extremes are tried."""
_UNITS = {"duration": "ns", "rate": "bit", "size": "B", "integer": "", "number": ""}


class Chosen(NamedTuple):
    """A parameter that an agent chooses.

    Attributes:
        name: Its name.
        low: Its value for the action 0, in ``unit``.
        high: For the action 1.
        unit: The unit in scenario files; empty for a number.
        whole: Whether values are whole numbers.
    """

    name: str
    low: float
    high: float
    unit: str
    whole: bool

    def values(self, actions: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values for actions of 0 … 1: each step multiplies, or adds from 0 on."""
        if self.low > 0 and self.high > 0:
            values = self.low * (self.high / self.low) ** actions
        else:
            values = self.low + (self.high - self.low) * actions
        return np.round(values) if self.whole else values

    def written(self, value: float) -> float | int | str:
        """A value as scenario files have it."""
        number = int(value) if self.whole else value
        # Without an exponent, as the simulator writes it.
        return np.format_float_positional(number, trim="-") + self.unit if self.unit else number


def chosen(ranges: Ranges, aqm: str) -> list[Chosen]:
    """The parameters of a discipline with these ranges.

    Raises:
        InputError: One does not exist, does not change during a run, or has no such values.
    """
    MAPPING.check("tune", ranges, "an environment")
    entry = next((each for each in _core.catalog()["aqms"] if each["name"] == aqm), None)
    live = entry["live"] if entry else []
    if entry is None or not live:
        problem = "a discipline whose parameters do not change during a run"
        raise InputError(problem, key="aqm", value=aqm)
    if not 1 <= len(ranges) <= _MOST:
        problem = "nothing to choose" if not ranges else f"more than {_MOST} parameters"
        raise InputError(problem, key="tune", allowed=", ".join(live))
    kinds = {each["name"]: each["kind"] for each in entry["parameters"]}
    for name in ranges:
        if name not in live:
            raise unknown(f"parameter of {aqm} that changes during a run", name, live, key="tune")
    return [_chosen(name, kinds[name], bounds) for name, bounds in ranges.items()]


def _chosen(name: str, kind: str, bounds: Any) -> Chosen:
    key = f"tune.{name}"
    try:
        low, high = (_number(kind, each) for each in bounds)
    except (TypeError, ValueError) as error:
        raise InputError(
            "no range", key=key, value=bounds, allowed="two values, as scenario files have them"
        ) from error
    if low[1] != high[1]:
        raise InputError("two units", key=key, value=bounds, allowed="values of one unit")
    return Chosen(name, low[0], high[0], low[1], kind != "number" and low[1] != "%")


def _number(kind: str, value: Any) -> tuple[float, str]:
    """A value in its unit."""
    if kind not in _UNITS or isinstance(value, bool):
        raise ValueError(kind)
    if not isinstance(value, str):
        if _UNITS[kind]:
            raise TypeError(value)
        return float(value), ""
    share = re.fullmatch(r"([\d.]+)(p|%)", value) if kind == "size" else None
    if share:
        return float(share[1]), share[2]
    return float(_core.quantity(kind, value)[0]), _UNITS[kind]
