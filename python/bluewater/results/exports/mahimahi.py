"""A queue's packets as a log of mahimahi's ``mm-link``, which many scripts can draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bluewater.results.exports.lines import Line, at_queue, write_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

SUFFIX = ".mahimahi"

_OPPORTUNITY = 1504
"""Bytes that mahimahi sends at one opportunity."""


def write(file: Path, path: Path, queue: str | None = None) -> None:
    """Writes arrivals (``+``), drops (``d``), departures (``-``) and send opportunities (``#``).

    Times are milliseconds, rounded down. A drop has packets and bytes, a departure its queueing
    delay. A link with a constant rate has an opportunity for each 1504 bytes.

    Args:
        file: Packets of a run.
        path: The file to write.
        queue: The link, as ``A->B``; by default the file's first.

    Raises:
        InputError: No such file or queue.
        StorageError: The file cannot be written.
    """
    rows, name, facts = at_queue(file, queue)
    link = facts.link(name)
    head = (
        f"# mahimahi mm-link ({name}) [Bluewater {facts.version}] > {path.name}\n"
        f"# queue: {facts.queues[name]['aqm']} [{facts.queues[name]['buffer']}]\n"
        "# init timestamp: 0\n# base timestamp: 0\n"
    )
    last = max((row["left_ns"] or row["arrived_ns"] for row in rows), default=0)
    chances = [] if link is None else _chances(link.rate_bps, last)
    write_lines(path, head, [*_events(rows), *chances])


def _events(rows: list[dict[str, Any]]) -> Iterator[Line]:
    for row in rows:
        size, arrived, left = row["bytes"], row["arrived_ns"], row["left_ns"]
        yield Line(arrived, 0, f"{_ms(arrived)} + {size}")
        if row["fate"] == "dropped":
            yield Line(left, 1, f"{_ms(left)} d 1 {size}")
        elif row["fate"] == "sent":
            yield Line(left, 3, f"{_ms(left)} - {size} {_ms(left) - _ms(arrived)}")


def _chances(rate_bps: int, until: int) -> Iterator[Line]:
    bits = 8 * _OPPORTUNITY
    for n in range(1, until * rate_bps // (bits * 10**9) + 1):
        at = n * bits * 10**9 // rate_bps
        yield Line(at, 2, f"{_ms(at)} # {_OPPORTUNITY}")


def _ms(ns: int) -> int:
    return ns // 1_000_000
