"""Pictures of single runs: queue length and signals over time."""

from __future__ import annotations

import hashlib
import re
import textwrap
import tomllib
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from bluewater import _core
from bluewater.errors import unknown
from bluewater.own import LANGUAGE, load
from bluewater.plots.draw import Drawable, draw, room
from bluewater.results.result import measured, schema
from bluewater.study.experiments.plot import Scale
from bluewater.text import milliseconds, number, other, percent, whole
from bluewater.units import readable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bluewater.plots.draw import Picture
    from bluewater.results.result import Result

TIME = Scale("Time (s)")
_SHARE = "0 … 1"
"""The unit of probabilities and shares."""
_FIRST = ("p_m", "p_a")
"""Preferred signals: the probabilities with which packets are dropped or marked."""
_IN_SIGHT = 5.0
"""Signals share an axis if its range is at most this many times that of each line."""
_EITHER = "packets or bytes"
"""The unit of signals that count by the discipline's ``mode``."""
_BESIDE = 2
"""Panels of one run in a row."""
_IN_A_ROW = 3
"""Most panels in a row: their titles need room."""
_ACROSS = 34
"""Most characters in a line of an axis label."""
_SHADES = dict.fromkeys(("startup", "slow-start", "refill", "up"), "#d99a00") | dict.fromkeys(
    ("drain", "down", "probe-rtt", "reduction", "recovery", "timeout"), "#1b5fc1"
)
"""Behind a phase that sends more than the path is known to carry, and one that sends less."""
_LONGEST = 80
"""Most characters in a picture's name."""


def side_by_side(
    results: Sequence[tuple[str, Result]], most: int = _IN_A_ROW
) -> tuple[list[Drawable | None], int]:
    """Panels of queue length for each named run, with the discipline's own signal below.

    At most ``most`` runs are in a row. Returns the panels in reading order, with ``None`` for an
    empty place, and the panels per row.
    """
    queues = _on_one_axis([_queue(name, result) for name, result in results])
    signals = [_signal(name, result) for name, result in results]
    shares = iter(_in_sight([panel for panel, unit in signals if unit == _SHARE]))
    own = [next(shares) if unit == _SHARE else panel for panel, unit in signals]
    width = min(len(results), most)
    panels: list[Drawable | None] = []
    for first in range(0, len(results), width):
        for row in (queues, own):
            part = row[first : first + width]
            panels += [*part, *[None] * (width - len(part))]
    return panels, width


def stem(names: Sequence[str], asked: str = "") -> str:
    """A short name for the picture of these disciplines, different for other disciplines.

    ``asked``: the settings, unless they are the defaults: other settings give another name.
    """
    also = other(asked)
    names = [re.sub(r"[^\w.-]+", "-", name.rsplit("/", 1)[-1]) for name in names]
    whole = f"compare-{'-'.join(names)}"
    if len(whole) <= _LONGEST:
        return whole + also
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"compare-{'-'.join(names[:3])}-and-{len(names) - 3}-more-{digest}{also}"


def panels(result: Result, queue: str | None = None) -> list[Drawable]:
    """The panels of a run's series, queue by queue: length, drops and marks, signals.

    Raises:
        InputError: The run has no such ``queue``.
    """
    series = measured(result, "series")
    interval = tomllib.loads(result.scenario).get("measure", {}).get("interval", "an interval")
    every = Scale(f"Packets in {interval}", low=0)
    shown: list[Drawable] = []
    queues = list(result.queues.select("queue", "aqm").iter_rows())
    if queue is not None and queue not in dict(queues):
        raise unknown("queue", queue, dict(queues), key="queue")
    for name, aqm in queues:
        if queue not in (None, name):
            continue
        of = series.filter(pl.col("queue") == name)
        named = f"{name}: " if len(queues) > 1 else ""
        shown.append(_length(f"{named}{aqm}", result, name))
        # Apart, because in a busy run the line of one would cover the other's.
        happened = [what for what in ("drops", "marks") if of[what].sum() > 0] or ["drops"]
        shown += [
            Drawable(f"{named}{what}", of.select(x="time_s", y=what, line=pl.lit(what)), every)
            for what in happened
        ]
        told = _told(result, name)
        shown += [
            over_time(f"{named}{signal}", of.select(x="time_s", y=pl.col(signal)), signal, told)
            for signal in _signals(of)
            if not _is_set(aqm, of[signal])
        ]
    return shown + (_control(result) if "control" in result.names else [])


def fitting(shown: list[Drawable], size: str | None) -> list[Drawable]:
    """The first of the panels, as many as a picture of this size has room for."""
    return shown[: room(size, _BESIDE)]


def _control(result: Result) -> list[Drawable]:
    """Window and rate of each flow whose congestion control was written down, its phases shaded."""
    shown = []
    table = result.load("control")
    for own in table.partition_by("flow", maintain_order=True):
        title = f"{own['group'][0]}, flow {own['flow'][0]}"
        shades = _phases(own)
        lines = {"cwnd_packets": "window", "inflight_packets": "in flight"}
        shown.append(_over_phases(f"{title}: window", own, lines, "Packets", shades))
        lines = {"pacing_bps": "pacing", "max_bw": "max_bw"}
        rates = own.with_columns(pl.col(list(lines)) / 1e6)
        if rates["pacing_bps"].null_count() < rates.height:
            shown.append(_over_phases(f"{title}: rate", rates, lines, "Mbit/s", shades))
    signals = result.load("control_signals")

    def told_by(group: str) -> Mapping[str, Mapping[str, str]]:
        spec = _spec(result, "traffic", "name", group)
        return told_signals(spec.get("transport", ""), spec.get("code", ""), "transport")

    for own in signals.partition_by("flow", "signal", maintain_order=True):
        group, flow, signal = (own[name][0] for name in ("group", "flow", "signal"))
        points = own.select(x="time_s", y="value", line=pl.lit(signal)).drop_nulls()
        title = f"{group}, flow {flow}: {signal}"
        shown.append(over_time(title, points, signal, told_by(group)))
    return shown


def _over_phases(
    title: str,
    table: pl.DataFrame,
    lines: Mapping[str, str],
    unit: str,
    shades: tuple[tuple[float, float, str], ...],
) -> Drawable:
    parts = [
        table.select(x="time_s", y=pl.col(column).cast(pl.Float64), line=pl.lit(name))
        for column, name in lines.items()
    ]
    points = pl.concat(parts).drop_nulls()
    return Drawable(title, points, Scale(unit, low=0), shades=shades)


def _phases(table: pl.DataFrame) -> tuple[tuple[float, float, str], ...]:
    """The phases of a flow in which it sends more or less than it takes the path to carry."""
    began = table.filter(event="phase").select("time_s", "phase").rows()
    ends = [*(time for time, _ in began[1:]), float(table["time_s"].max() or 0)]  # type: ignore[arg-type]
    return tuple(
        (time, end, _SHADES[phase])
        for (time, phase), end in zip(began, ends, strict=True)
        if phase in _SHADES
    )


def primary(result: Result) -> pl.DataFrame:
    """The series of the primary queue."""
    return measured(result, "series").filter(pl.col("queue") == result.queues["queue"][0])


def _queue(name: str, result: Result) -> Drawable:
    return _length(name, result, result.queues["queue"][0])


def _length(name: str, result: Result, queue: str) -> Drawable:
    found = result.queues.filter(pl.col("queue") == queue).row(0, named=True)
    numbers = f"loss {percent(found['loss'])}", f"delay {milliseconds(found['delay_mean_s'])}"
    title = f"{name}: {', '.join(map(whole, numbers))}"
    points = measured(result, "series").filter(pl.col("queue") == queue)
    return Drawable(
        title,
        points.select(x="time_s", y="backlog_packets", line=pl.lit(name)),
        Scale("Queue (packets)", low=0),
    )


def _signal(name: str, result: Result) -> tuple[Drawable, str]:
    """The panel that shows how a discipline signals: a signal of its own, or its drops."""
    series = primary(result)
    there = _signals(series)
    told = _told(result, result.queues["queue"][0])
    units = {signal: told.get(signal, {}).get("unit", "") for signal in there}
    chosen = (
        [each for each in _FIRST if each in there]
        + [each for each in there if units[each] == _SHARE]
        + there
    )
    if not chosen:
        rate = pl.col("drops") / pl.col("time_s").diff().fill_null(pl.col("time_s").first())
        points = series.select(x="time_s", y=rate, line=pl.lit(name))
        return Drawable(f"{name}: drops", points, Scale("Dropped (packets/s)", low=0)), ""
    points = series.select(x="time_s", y=pl.col(chosen[0]), line=pl.lit(name))
    return over_time(f"{name}: {chosen[0]}", points, chosen[0], told), units[chosen[0]]


def over_time(
    title: str, points: pl.DataFrame, signal: str, told: Mapping[str, Mapping[str, str]]
) -> Drawable:
    """A signal over time, in a unit that is easy to read; ``points`` has it as ``y``."""
    unit, what = (told.get(signal, {}).get(part, "") for part in ("unit", "doc"))
    factor, unit = readable(unit)
    if what and not unit and not what[0].isdigit():  # a signal of 0 or 1
        unit = "number"
    # A name such as CAKE's `sparse` does not explain itself.
    words = f"{signal}: {what.removesuffix('.')}" if what else signal
    label = textwrap.fill(f"{words} ({unit})" if unit else words, _ACROSS)
    brief = f"{signal} ({unit})" if unit else signal
    shown = points.with_columns(y=factor * pl.col("y"))
    return Drawable(title, shown, Scale(label, low=0), brief=brief)


def _signals(series: pl.DataFrame) -> list[str]:
    """The signals of a queue, in the order of its discipline."""
    fixed = schema("series")
    return [
        column
        for column in series.columns
        if column not in fixed and series[column].null_count() < series.height
    ]


def _is_set(aqm: str, signal: pl.Series) -> bool:
    """Whether a signal is a parameter of the discipline, such as RED's max_p, that none adapts."""
    known = {each["name"]: each["parameters"] for each in _core.catalog()["aqms"]}
    named = any(each["name"] == signal.name for each in known.get(aqm, ()))
    return named and signal.n_unique() == 1


@cache
def told_signals(aqm: str, code: str = "", role: str = "aqm") -> Mapping[str, Mapping[str, str]]:
    """Unit and meaning of each signal of a discipline, with the filter in front, or of a class.

    Args:
        aqm: Its name; ``python:FILE:CLASS`` for your own class.
        code: The text of that class.
        role: The key that names it: ``transport`` for a controller.
    """
    if code:
        file, _, name = aqm.removeprefix(LANGUAGE).rpartition(":")
        own = load(code, file, name, role).signals
        return {signal: {"unit": unit, "doc": doc} for signal, (unit, doc) in own.items()}
    entries = {each["name"]: each["signals"] for each in _core.catalog()["aqms"]}
    return {each["name"]: each for name in ("red-pd", aqm) for each in entries.get(name, ())}


def _told(result: Result, queue: str) -> Mapping[str, Mapping[str, str]]:
    """Unit and meaning of each signal of the discipline at a run's queue."""
    own = _spec(result, "queue", "link", queue)
    told = told_signals(own.get("aqm", str(result.summary["aqm"])), own.get("code", ""))
    units = {_EITHER: own.get("params", {}).get("mode", _EITHER)}
    return {
        signal: {**each, "unit": units.get(each["unit"], each["unit"])}
        for signal, each in told.items()
    }


def _spec(result: Result, part: str, key: str, name: str) -> dict[str, Any]:
    """The queue or the group of traffic of this name in a run's scenario."""
    specs = tomllib.loads(result.scenario).get(part, [])
    return next((each for each in specs if each.get(key) == name), {})


def _on_one_axis(panels: Sequence[Drawable]) -> list[Drawable]:
    """Gives the panels one common y axis."""
    greatest = max((_greatest(panel) for panel in panels), default=0.0)
    high = 1.05 * greatest if greatest > 0 else None
    return [replace(panel, y=msgspec.structs.replace(panel.y, high=high)) for panel in panels]


def _in_sight(panels: Sequence[Drawable]) -> list[Drawable]:
    """Gives panels of about the same range a common y axis.

    Beside a probability of 1, one of 0.06 would be a line at the bottom.
    """
    if not panels:
        return []
    least = max(map(_greatest, panels)) / _IN_SIGHT
    great = iter(_on_one_axis([panel for panel in panels if _greatest(panel) >= least]))
    small = iter(_in_sight([panel for panel in panels if _greatest(panel) < least]))
    return [next(great if _greatest(panel) >= least else small) for panel in panels]


def _greatest(panel: Drawable) -> float:
    most = panel.points["y"].max()
    return float(most) if isinstance(most, int | float) else 0.0


def figure(
    result: Result, shown: Sequence[Drawable], size: str | None = None, queue: str | None = None
) -> Picture:
    """The picture of the panels of a run, or of one of its queues."""
    summary = result.summary
    title = f"{summary['aqm']}, seed {summary['seed']}, decision hash {result.decision_hash}"
    beside = min(_BESIDE, len(shown))
    return draw(title, "trace", TIME, shown, beside, "none", _constants(result, queue), size)


def _constants(result: Result, queue: str | None) -> list[str]:
    """A line with the parameters among the signals that have no panel, since none adapts them."""
    series = measured(result, "series")
    kept = [
        f"{signal} = {number(of[signal][0])}" + (f" at {name}" if result.queues.height > 1 else "")
        for name, aqm in result.queues.select("queue", "aqm").iter_rows()
        if queue in (None, name)
        for of in [series.filter(pl.col("queue") == name)]
        for signal in _signals(of)
        if _is_set(aqm, of[signal])
    ]
    return [f"Constant: {', '.join(kept)}"] if kept else []
