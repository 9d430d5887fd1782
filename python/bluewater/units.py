"""Parsing times, rates and sizes, for the few places where Python needs numbers.

The core parses them as in scenario files, so that a unit has one meaning everywhere.
"""

from __future__ import annotations

from bluewater import _core
from bluewater.errors import InputError


def _read(kind: str, text: str, key: str | None) -> int:
    try:
        return _core.quantity(kind, text)[0]
    except _core.ScenarioError as error:
        raise InputError(
            error.problem, key=key, value=text, allowed=error.allowed, hint=error.hint
        ) from None


def seconds(text: str, key: str = "time") -> float:
    """Parses a duration such as ``20ms`` to seconds; ``key`` names it in an error."""
    return _read("duration", text, key) / 1e9


def bits_per_second(text: str, key: str = "rate") -> float:
    """Parses a rate such as ``10mbit``; ``key`` names it in an error."""
    return float(_read("rate", text, key))


def times(rate: str, factor: int, key: str = "rate") -> str:
    """The rate multiplied by ``factor``."""
    return f"{_read('rate', rate, key) * factor}bit"


def size_bytes(text: str, key: str | None = None) -> int:
    """Parses a size such as ``1kB`` or ``1500B`` to bytes; ``key`` names it in an error."""
    return _read("size", text, key)


def duration_text(value: float) -> str:
    """Writes seconds as a duration of scenario files, to the nanosecond."""
    nanoseconds = round(value * 1e9)
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    return f"{nanoseconds}ns"


_READABLE = {"s": (1e3, "ms"), "bit/s": (1e-6, "Mb/s")}
"""For each declared unit the factor to a readable unit, and that unit."""


def readable(unit: str) -> tuple[float, str]:
    """The factor from a declared unit to a readable one, and that unit."""
    return _READABLE.get(unit, (1.0, unit))
