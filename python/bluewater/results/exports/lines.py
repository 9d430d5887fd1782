"""Logs whose lines are in the order of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bluewater.errors import InputError
from bluewater.results.exports.files import write_file
from bluewater.results.packets import collected, directed, of_queue, open_

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bluewater.results.packets import Facts


class Line(NamedTuple):
    """A line: its time in ns, its rank among lines of one instant, and its text."""

    ns: int
    rank: int
    text: str


def at_queue(file: Path, queue: str | None) -> tuple[list[dict[str, Any]], str, Facts]:
    """The packets of one queue in the order of arrivals, its name, and the facts of the run.

    Args:
        file: Packets of a run.
        queue: The link, as ``A->B``; the file's first if not given.

    Raises:
        InputError: No such file or queue, or no packets in it.
    """
    rows, facts = open_(file)
    first = collected(rows.select("queue").head(1), file)["queue"]
    if first.is_empty():
        raise InputError("no packets in it", file=str(file))
    name = queue or first[0]
    columns = (
        "n", "flow", "connection", "seq", "kind", "bytes", "ecn", "arrived_ns", "left_ns", "fate",
        "marked", "forward",
    )  # fmt: skip
    found = collected(of_queue(directed(rows, file), name, file).select(columns), file)
    return found.to_dicts(), name, facts


def write_lines(path: Path, head: str, lines: Iterable[Line]) -> None:
    """Writes a head and the sorted lines; equal time and rank keep their order.

    Raises:
        StorageError: The file cannot be written.
    """
    ordered = sorted(lines, key=lambda line: line[:2])
    write_file(path, head + "".join(f"{line.text}\n" for line in ordered))
