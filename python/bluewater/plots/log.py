"""Pictures of a gateway's or a shell's log: queues, throughput, drops and marks over time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater.errors import InputError
from bluewater.files import read_text
from bluewater.plots.draw import Drawable
from bluewater.study.plot import Scale
from bluewater.units import bits_per_second

if TYPE_CHECKING:
    from pathlib import Path

_COUNTED = {
    "time_s", "queue", "backlog_packets", "backlog_bytes", "arrivals", "departures",
    "departures_bytes", "drops", "marks", "rate_bps", "interval_s", "at",
}  # fmt: skip


@dataclass(frozen=True)
class Log:
    """What a log tells: its title, and a row for each of its lines about a queue."""

    title: str
    rows: pl.DataFrame


def read_log(path: Path) -> Log:
    """Reads a log, whole or as far as it goes."""
    text = read_text(path, hint=None)
    whole = text[: text.rfind("\n") + 1].splitlines()
    lines = [_line(path, number, line) for number, line in enumerate(whole, 1)]
    if not lines or lines[0].get("log") != "bluewater-gateway":
        raise InputError(
            "no log of a gateway",
            file=str(path),
            hint="a folder of a run, or what `--log` of gateway or shell wrote",
        )
    try:
        return _tabulated(lines, str(path))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"not as a gateway writes it: {error!r}", file=str(path)) from error


def _tabulated(lines: list[dict[str, Any]], file: str) -> Log:
    queues = lines[0]["queues"]
    rates = _rates(queues)
    before = dict.fromkeys(rates, 0.0)
    rows = []
    for line in lines[1:]:
        if "change" in line:
            rates = _rates(line["change"])
        elif "queue" in line:
            name, time = line["queue"], line["time_s"]
            rows.append({**line, "rate_bps": rates[name], "interval_s": time - before[name]})
            before[name] = time
    if not rows:
        raise InputError(
            "nothing was sampled", file=file, hint="a shorter --interval, or a longer run"
        )
    title = ", ".join(f"{each['queue']} {each['aqm']} {each['rate']}" for each in queues)
    return Log(
        f"{title}, {queues[0]['delay']} each way", pl.DataFrame(rows, infer_schema_length=None)
    )


def _line(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"no JSON: {error}", file=str(path), line=number) from error
    return value if isinstance(value, dict) else {}


def _rates(queues: list[dict[str, str]]) -> dict[str, float]:
    return {each["queue"]: bits_per_second(each["rate"]) for each in queues}


def panels(log: Log) -> list[Drawable]:
    """Queue, the time that it takes to send it, throughput, drops and marks, and signals."""
    each_s = pl.col("interval_s").clip(1e-9)
    shown = [
        _panel(log, "Queue", "Queue (packets)", pl.col("backlog_packets")),
        _panel(
            log, "Delay", "Time to send what is queued (ms)",
            8e3 * pl.col("backlog_bytes") / pl.col("rate_bps"),
        ),
        _panel(log, "Throughput", "Sent (Mb/s)", 8e-6 * pl.col("departures_bytes") / each_s),
    ]  # fmt: skip
    counts = [
        _panel(log, what, "", pl.col(what) / each_s, f" {what}").points
        for what in ("drops", "marks")
    ]
    shown.append(Drawable("Drops and marks", pl.concat(counts), Scale("Packets/s", low=0)))
    signals = [name for name in log.rows.columns if name not in _COUNTED]
    return shown + [_panel(log, name, name, pl.col(name)) for name in signals]


def _panel(log: Log, title: str, label: str, y: pl.Expr, kind: str = "") -> Drawable:
    points = log.rows.select(x="time_s", y=y, line=pl.col("queue") + kind)
    return Drawable(title, points, Scale(label, low=0))
