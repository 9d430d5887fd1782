"""Metrics as people read them: in words, and in a suitable unit."""

from __future__ import annotations

from typing import NamedTuple

from bluewater import _core
from bluewater.units import readable

_UNITS = {
    name: column["unit"]
    for table in _core.tables()
    for column in table["columns"]
    for name in column["names"]
}
_SUFFIXES = {"packets": "packets", "bytes": "bytes", "s": "s", "bps": "bit/s"}
_ENDS = {
    "p50": "50th percentile of", "p90": "90th percentile of", "p95": "95th percentile of",
    "p99": "99th percentile of", "mean": "mean", "max": "greatest",
}  # fmt: skip
"""Parts of column names that follow the quantity, with the words that precede it."""
_WORDS = {
    "loss": "loss", "mark_rate": "marked", "utilisation": "link used", "srtt": "smoothed RTT",
    "jain": "Jain's index", "goodput": "goodput", "mos": "MOS", "aqm": "discipline",
    "idle_fraction": "idle", "rpm": "round trips per minute",
}  # fmt: skip
_HEADS = {"jain": "Jain", "queue_mean_packets": "queue", "srtt_s": "RTT"}
"""Short heads for columns of tables."""
_QUICK = ("delay", "srtt", "jitter", "sojourn")
"""Times that are shown in milliseconds; the others are in seconds."""


class Quantity(NamedTuple):
    """A metric as people read it.

    Attributes:
        words: Its name on an axis, in lower case.
        head: Its name at the head of a table's column.
        unit: Its unit; empty if it has none.
        factor: Factor from the stored value to that unit.
    """

    words: str
    head: str
    unit: str = ""
    factor: float = 1.0

    @property
    def label(self) -> str:
        """The label of an axis: words and unit."""
        words = f"{self.words[:1].upper()}{self.words[1:]}"
        return f"{words} ({self.unit})" if self.unit else words


def quantity(metric: str) -> Quantity:
    """The metric of a column: of the summary, of a formula, or of a view."""
    words, _, suffix = metric.rpartition("_")
    unit = _SUFFIXES.get(suffix) if words else None
    if unit is None:
        words, unit = metric, _UNITS.get(metric, "")
    thing, _, last = words.rpartition("_")
    if thing and last in _ENDS:
        name = _WORDS.get(thing, thing.replace("_", " "))
        long, head = f"{_ENDS[last]} {name}", f"{name} {last}"
    else:
        long = head = _WORDS.get(words, words.replace("_", " "))
    head = _HEADS.get(metric, head)
    if unit.startswith("0 … 1") and unit != "0 … 1":
        return Quantity(long, head)
    if unit == "0 … 1":
        return Quantity(long, head, "%", 100.0)
    if unit in ("1/n … 1", "≥ 1", "1 … 4.4", "0 … 93.2"):
        return Quantity(long, head)
    if unit == "s" and not metric.startswith(_QUICK):
        return Quantity(long, head, "s")
    factor, unit = readable(unit)
    return Quantity(long, head, unit, factor)
