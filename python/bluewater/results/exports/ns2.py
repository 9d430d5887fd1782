"""A queue's packets as a trace of ns-2 (The ns Manual, *Trace and Monitoring Support*)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bluewater.errors import InputError
from bluewater.results.exports.lines import Line, at_queue, write_lines
from bluewater.results.packets import TCP

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from bluewater.results.packets import Link

SUFFIX = ".tr"

_ACKS = {"ack", "syn-ack"}
"""Kinds of packets that ns-2's TCP sink sends; other TCP packets are ``tcp``, the rest ``cbr``."""


def write(file: Path, path: Path, queue: str | None = None) -> None:
    """Writes the lines of one link.

    ``+`` when a packet arrives, ``-`` when it is sent, ``r`` when it reaches the link's end,
    ``d`` when it is dropped. The link's nodes are 0 and 1; flow N goes from node 2 + 2N to 3 + 2N,
    or back, and its connection is the port. Of the seven flags only E (marked) and N (ECN-capable)
    are used. The last field is the packet's number at the queue.

    Args:
        file: Packets of a run.
        path: The file to write.
        queue: The link, as ``A->B``; by default the file's first.

    Raises:
        InputError: No such file or queue, or a link that varies over time.
        StorageError: The file cannot be written.
    """
    rows, name, facts = at_queue(file, queue)
    link = facts.link(name)
    if link is None:
        raise InputError(
            "the times of reception are known only for a link of constant rate and delay",
            file=str(file), key="queue", value=name,
        )  # fmt: skip
    write_lines(path, "", list(_events(rows, link)))


def _events(rows: list[dict[str, Any]], link: Link) -> Iterator[Line]:
    for row in rows:
        arrived, left = row["arrived_ns"], row["left_ns"]
        came = row["ecn"] == "ce"
        yield Line(arrived, 0, _line("+", arrived, row, marked=came))
        if row["fate"] == "queued":
            continue
        marked = came or bool(row["marked"])
        if row["fate"] == "dropped":
            yield Line(left, 1, _line("d", left, row, marked=marked))
            continue
        yield Line(left, 2, _line("-", left, row, marked=marked))
        received = left + link.transmission_ns(row["bytes"]) + link.delay_ns
        yield Line(received, 3, _line("r", received, row, marked=marked))


def _line(event: str, ns: int, row: dict[str, Any], *, marked: bool) -> str:
    flow, port = row["flow"], row["connection"]
    ends = (f"{2 + 2 * flow}.{port}", f"{3 + 2 * flow}.{port}")
    if not row["forward"]:
        ends = ends[::-1]
    kind = "cbr" if row["kind"] not in TCP else "ack" if row["kind"] in _ACKS else "tcp"
    flags = f"----{'E' if marked else '-'}-{'N' if row['ecn'] != 'not-ect' else '-'}"
    return (
        f"{event} {ns // 10**9}.{ns % 10**9:09} 0 1 {kind} "
        f"{row['bytes']} {flags} {flow} {ends[0]} {ends[1]} {row['seq']} {row['n']}"
    )
