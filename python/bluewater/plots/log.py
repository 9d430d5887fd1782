"""Pictures of a gateway's or a shell's log: queues, throughput, drops and marks over time."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater.errors import InputError
from bluewater.files import read_text
from bluewater.plots.draw import Drawable
from bluewater.plots.run import over_time, told_signals
from bluewater.study.experiments.plot import Scale
from bluewater.units import bits_per_second

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_COUNTED = {
    "time_s", "queue", "backlog_packets", "backlog_bytes", "arrivals", "departures",
    "departures_bytes", "drops", "marks", "delay_mean_s", "rate_bps", "interval_s", "at",
}  # fmt: skip


@dataclass(frozen=True)
class Log:
    """The content of a log: its title, its disciplines, and a row for each line about a queue.

    ``rate_bps`` is empty where the rate varies.
    """

    title: str
    aqms: Sequence[str]
    rows: pl.DataFrame


def read_log(path: Path) -> Log:
    """Reads a log; an unfinished last line is left out."""
    text = read_text(path, hint=None)
    whole = text[: text.rfind("\n") + 1].splitlines()
    if not whole or '"bluewater-gateway"' not in whole[0]:
        raise InputError(
            "not a log of a gateway",
            file=str(path),
            hint="you can plot the folder of a run, as `bluewater run` prints it, or the file that "
            "`--log` of gateway or shell wrote",
        )
    lines = [_line(path, number, line) for number, line in enumerate(whole, 1)]
    try:
        return _tabulated(lines, str(path))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"the log has a line that no gateway writes: {error!r}", file=str(path)
        ) from error


def _tabulated(lines: list[dict[str, Any]], file: str) -> Log:
    queues = lines[0]["queues"]
    rates = _rates(queues)
    aqms = [each["aqm"] for each in queues]
    before = dict.fromkeys(rates, 0.0)
    rows = []
    for line in lines[1:]:
        if "change" in line:
            rates = _rates(line["change"])
            aqms += [each["aqm"] for each in line["change"]]
        elif "queue" in line:
            name, time = line["queue"], line["time_s"]
            rows.append({**line, "rate_bps": rates[name], "interval_s": time - before[name]})
            before[name] = time
    if not rows:
        raise InputError(
            "the log has no samples", file=file, hint="a shorter --interval, or a longer run"
        )
    title = ", ".join(f"{each['queue']} {each['aqm']} {each['rate']}" for each in queues)
    table = pl.DataFrame(rows, infer_schema_length=None)
    return Log(
        f"{title}, {queues[0]['delay']} each way",
        tuple(dict.fromkeys(aqms)),
        table.with_columns(pl.col("rate_bps").cast(pl.Float64)),
    )


def _line(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"a line is not JSON: {error}", file=str(path), line=number) from error
    return value if isinstance(value, dict) else {}


def _rates(queues: list[dict[str, Any]]) -> dict[str, float | None]:
    """The rate of each queue; none for a varying one, whose nominal rate says little."""
    return {
        each["queue"]: None if "rate_trace" in each else bits_per_second(each["rate"])
        for each in queues
    }


def panels(log: Log) -> list[Drawable]:
    """The panels: queue length, queueing delay, throughput, drops, marks, signals."""
    each_s = pl.col("interval_s").clip(1e-9)
    shown = [
        _panel(log, "Queue", "Queue (packets)", pl.col("backlog_packets")),
        replace(_panel(log, "Delay", *_delay(log)), brief="Delay (ms)"),
        _panel(log, "Throughput", "Sent (Mb/s)", 8e-6 * pl.col("departures_bytes") / each_s),
    ]
    shown += [
        _panel(log, what.capitalize(), f"{what.capitalize()} (packets/s)", pl.col(what) / each_s)
        for what in [what for what in ("drops", "marks") if log.rows[what].sum() > 0] or ["drops"]
    ]
    told = {k: v for aqm in reversed(log.aqms) for k, v in told_signals(aqm).items()}
    for name in (each for each in log.rows.columns if each not in _COUNTED):
        shown.append(over_time(name, _panel(log, name, "", pl.col(name)).points, name, told))
    return shown


def _delay(log: Log) -> tuple[str, pl.Expr]:
    """The panel of queueing delay: as the log measures it, or the nearest quantity that it has.

    Second choice is the delay that the discipline measures, third the time to send the queued bytes
    at the link's rate; at a varying rate, at the rate sent in the interval.
    """
    there = log.rows.columns
    for name, words in (
        ("delay_mean_s", "Time in the queue, mean of the interval (ms)"),
        ("sojourn", "Time in the queue of the last packet (ms)"),
    ):
        if name in there:
            return words, 1e3 * pl.col(name)
    sent = 8 * pl.col("departures_bytes") / pl.col("interval_s").clip(1e-9)
    rate = pl.coalesce("rate_bps", pl.when(sent > 0).then(sent))
    return "Time to send what is queued (ms)", 8e3 * pl.col("backlog_bytes") / rate


def _panel(log: Log, title: str, label: str, y: pl.Expr) -> Drawable:
    points = log.rows.select(x="time_s", y=y, line="queue")
    return Drawable(title, points, Scale(label, low=0))
