"""A result in a notebook: key figures, and a small picture of its queue over time."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from bluewater.text import milliseconds, number, percent, rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

_WIDTH, _HEIGHT = 640, 120
_POINTS = 320
"""Number of time steps in the picture; the least and greatest value of each are drawn."""


def figures(summary: Mapping[str, Any], decision_hash: str) -> dict[str, str]:
    """The key figures of a run in words, by name."""
    if "aqm" not in summary:
        return {name: _shown(value) for name, value in summary.items() if name != "wall_s"}
    return {
        "queue": f"{summary['queue']} ({summary['aqm']})",
        "loss": percent(summary["loss"]),
        "marked": percent(summary["mark_rate"]),
        "throughput": f"{rate(summary['throughput_bps'])} ({percent(summary['utilisation'])})",
        "delay": f"mean {milliseconds(summary['delay_mean_s'])}, "
        f"p99 {milliseconds(summary['delay_p99_s'])}",
        "fairness (Jain)": number(summary["jain"]),
        "decision hash": decision_hash,
    }


def page(shown: Mapping[str, str], series: pl.DataFrame | None, queue: str) -> str:
    """The figures as a table, below a picture of a queue if the run has a series."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in shown.items()
    )
    drawn = "" if series is None or series.is_empty() else _picture(series, queue)
    return f"<div>{drawn}<table>{cells}</table></div>"


def _shown(value: object) -> str:
    return number(value) if isinstance(value, int | float) else str(value)


def _picture(series: pl.DataFrame, queue: str) -> str:
    rows = series.filter(series["queue"] == queue)
    lengths = rows["backlog_packets"].to_list()
    last, most = rows["time_s"].to_list()[-1], max(*lengths, 1)
    step = max(1, len(lengths) // _POINTS)
    corners = []
    for start in range(0, len(lengths), step):
        part = lengths[start : start + step]
        x = _WIDTH * start / max(len(lengths) - 1, 1)
        corners += [
            f"{x:.1f},{_HEIGHT * (1 - each / most):.1f}"
            for each in dict.fromkeys((min(part), max(part)))
        ]
    title = f"queue at {queue}: up to {most} packets, over {number(last)} s"
    return (
        f"<figure style='margin:0'><svg role='img' aria-label='{escape(title)}' "
        f"viewBox='0 -4 {_WIDTH} {_HEIGHT + 8}' style='width:100%;max-width:{_WIDTH}px'>"
        f"<line x1='0' x2='{_WIDTH}' y1='{_HEIGHT}' y2='{_HEIGHT}' stroke='currentColor' "
        f"stroke-opacity='.3'/><polyline points='{' '.join(corners)}' fill='none' "
        f"stroke='#1b7fd1' stroke-width='1'/></svg>"
        f"<figcaption>{escape(title)}</figcaption></figure>"
    )
