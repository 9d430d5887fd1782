"""Times and rates in text, for the few places where Python needs them as numbers."""

from __future__ import annotations

import re

from bluewater.errors import InputError

_SECONDS = {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_TIME = re.compile(r"\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>h|min|s|ms|us|ns)\s*")


def seconds(text: str, key: str = "time") -> float:
    """Parses a duration such as ``20ms`` to seconds; ``key`` names it in an error."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise InputError(
            "not a duration", key=key, value=text, allowed="a number with h, min, s, ms, us or ns"
        )
    return float(match["number"]) * _SECONDS[match["unit"]]


_RATE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<prefix>[kmg]?)bit")
_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


def bits_per_second(text: str, key: str = "rate") -> float:
    """Parses a rate such as ``10mbit``; ``key`` names it in an error."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise InputError(
            "not a rate", key=key, value=text, allowed="a number with bit, kbit, mbit or gbit"
        )
    return float(match["number"]) * _PREFIXES[match["prefix"]]


_QUANTITY = re.compile(r"\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z/]+)\s*")


def times(rate: str, factor: float, key: str = "rate") -> str:
    """A rate in whatever unit, so many times as high; the scenario's reader checks the unit."""
    match = _QUANTITY.fullmatch(rate)
    if match is None:
        raise InputError(
            "not a rate", key=key, value=rate, allowed="a number with a unit, as in 45mbit"
        )
    return f"{factor * float(match['number']):.12g}{match['unit']}"


_SIZES = {"B": 1, "kB": 1000, "MB": 1_000_000, "KiB": 1024, "MiB": 1024**2}


def size_bytes(text: str) -> int:
    """The bytes of a size as the canonical scenario writes it, such as ``1kB`` or ``1500B``."""
    match = _QUANTITY.fullmatch(text)
    if match is None or match["unit"] not in _SIZES:
        raise InputError("not a size in bytes", value=text, allowed="as 1500B or 1kB")
    return round(float(match["number"]) * _SIZES[match["unit"]])


def duration_text(value: float) -> str:
    """Writes seconds as a duration that the scenario format reads, to the nanosecond."""
    nanoseconds = round(value * 1e9)
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    return f"{nanoseconds}ns"
