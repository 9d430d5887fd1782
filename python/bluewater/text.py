"""Writing numbers for people."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROUNDING = 1e-9
"""A spread below this share of the mean is rounding error."""

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def number(value: float | None, digits: int = 3) -> str:
    """A number with ``digits`` significant digits, without an exponent if that reads well."""
    if value is None:
        return "–"
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    magnitude = math.floor(math.log10(abs(value)))
    if not -6 <= magnitude <= 6:
        return f"{value:.{digits - 1}e}"
    text = f"{value:.{max(0, digits - 1 - magnitude)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


_TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "…": r"\ldots{}",
    "µ": r"\textmu{}", "≥": r"$\geq$", "→": r"$\rightarrow$", "\N{MINUS SIGN}": "$-$",
    "\N{ZERO WIDTH SPACE}": "", "\N{NO-BREAK SPACE}": "~",
}  # fmt: skip


def tex(plain: str) -> str:
    """The text with LaTeX's special characters escaped."""
    return "".join(_TEX.get(letter, letter) for letter in plain)


def whole(text: str) -> str:
    """The text with no-break spaces, for a number and its unit."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def measured(mean: float | None, half_width: float | None, unit: str, more: int = 0) -> str:
    """A mean with the half-width of its interval and the unit, as in ``1.93 ± 0.04 %``.

    Three digits of the mean and two of the half-width are shown, and as many ``more`` of each.
    """
    if mean is None:
        return "no value"
    if half_width is None:
        return f"{number(mean, 3 + more)} {unit}".rstrip()
    noise = half_width < abs(mean) * _ROUNDING
    half = number(0 if noise else half_width, 2 + more)
    return f"{number(mean, 3 + more)} ± {half} {unit}".rstrip()


def interval(mean: float, half_width: float) -> tuple[str, str]:
    """A mean and half its interval with the same decimals, as in ``22.63`` and ``0.41``.

    Two digits of the half-width are shown, but no more than four of the mean.
    """
    largest = max(abs(mean), half_width)
    if largest == 0:
        return "0", "0"
    noise = half_width < abs(mean) * _ROUNDING
    if not -4 <= math.floor(math.log10(largest)) <= 6:
        return number(mean), number(0 if noise else half_width, 2)
    most = _decimals(mean, 3 if noise else 4)
    places = most if noise else min(_decimals(half_width, 2), most)
    return f"{mean:.{places}f}", f"{0 if noise else half_width:.{places}f}"


def _decimals(value: float, digits: int) -> int:
    """The number of decimals that gives a number this many significant digits."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 4


def summarised(row: Mapping[str, Any], factor: float, unit: str) -> str:
    """The mean and half interval of a summary's row, times ``factor``, with equal decimals."""
    return sided(row["mean"], row["low"], row["high"], factor, unit)


def sided(
    mean: float | None, low: float | None, high: float | None, factor: float, unit: str
) -> str:
    """A mean and its half interval from the interval's ends, times ``factor``, with equal decimals.

    An interval that is cut at the end of its metric's range is asymmetric: the wider side is shown.
    """
    if mean is None:
        return measured(None, None, unit)
    width = None if low is None or high is None else factor * max(high - mean, mean - low)
    return measured(factor * mean, width, unit)


def rate(bits_per_second: float) -> str:
    """A rate with its prefix."""
    for size, prefix in _PREFIXES:
        if bits_per_second >= size:
            return f"{number(bits_per_second / size)} {prefix}b/s"
    return f"{number(bits_per_second)} b/s"


def percent(fraction: float) -> str:
    """A fraction in percent; a tiny one is not shown as 0, nor one below 100 as 100."""
    if 0 < fraction < 1e-5:
        return "< 0.001 %"
    return f"{number(100 * fraction, 4 if fraction > 0.99 else 3)} %"


def milliseconds(seconds: float) -> str:
    """A time in milliseconds."""
    return f"{number(1e3 * seconds)} ms"


def other(asked: str) -> str:
    """A suffix for a file's name: empty for default settings, else different for each setting.

    So a second command in one folder does not overwrite the first one's answer.
    """
    return f"-{hashlib.sha256(asked.encode()).hexdigest()[:6]}" if asked else ""
