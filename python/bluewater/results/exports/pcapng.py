"""Packets of a run as pcapng, for Wireshark and similar: the comment says each packet's fate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater import _core
from bluewater.files import whole
from bluewater.results.packets import ECN_BITS, FORWARD, TCP, collected, directed, of_queue, open_
from bluewater.results.why import story

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bluewater.results.packets import Facts

SUFFIX = ".pcapng"

_TCP_HEADERS = 40
_SEGMENT = 1500
"""Length in bytes of a full packet, for a flow without data in the file."""

_PORTS = {True: 80, False: 9}
"""Ports of the sink: for TCP, and for datagrams (discard)."""


def write(file: Path, path: Path, queue: str | None = None) -> None:
    """Writes packets as they arrived at their queue; the comment says each packet's fate.

    Times are those of the arrivals, counted from 1970. Each packet has an IPv4 and a TCP or UDP
    header, made up from what the simulator knows: the source of flow N is 10.0.0.0 + N, its port
    1024 plus the connection's number, and the sink is in 198.18.0.0/15. TCP's sequence numbers
    count bytes, as if every segment had the length of the flow's longest. The ECN field is the one
    at arrival.

    Args:
        file: Packets of a run.
        path: The file to write.
        queue: The link, as ``A->B``; by default all.

    Raises:
        InputError: No such file or queue, or ``path`` is a device.
        StorageError: The file cannot be written.
    """
    rows, facts = open_(file)
    wanted = of_queue(directed(rows, file), queue, file).sort("arrived_ns", maintain_order=True)
    ordered = collected(wanted, file)
    with whole(path) as temporary:
        _core.write_commented(temporary, _packets(ordered, facts))


def _packets(rows: pl.DataFrame, facts: Facts) -> Iterator[tuple[Any, ...]]:
    data = rows.filter(pl.col("kind").is_in(FORWARD))
    segments = dict(data.group_by("flow").agg(pl.col("bytes").max()).iter_rows())
    for row in rows.iter_rows(named=True):
        segment = segments.get(row["flow"], _SEGMENT) - _TCP_HEADERS
        yield (
            row["arrived_ns"],
            row["bytes"],
            ECN_BITS[row["ecn"]],
            *_ends(row),
            _numbers(row, segment) if row["kind"] in TCP else None,
            _comment(story(row, facts)),
        )


def _comment(lines: list[str]) -> str:
    """The comment, fate first: a list of packets shows only a comment's beginning."""
    head, *between, end = (" ".join(line.split()) for line in lines)
    return "\n".join((end, head, *between))


def _ends(row: dict[str, Any]) -> tuple[tuple[bytes, bytes], tuple[int, int]]:
    """Source and destination: addresses and ports."""
    top, *low = row["flow"].to_bytes(4)
    ends = (bytes([10, *low]), bytes([198, 18, 0, top]))
    ports = (1024 + row["connection"], _PORTS[row["kind"] in TCP])
    return (ends, ports) if row["forward"] else (ends[::-1], ports[::-1])


def _numbers(row: dict[str, Any], segment: int) -> tuple[int, int | None, bool]:
    """Sequence and acknowledgement number, and whether it is a SYN, which counts as a byte."""
    match row["kind"]:
        case "syn":
            return 0, None, True
        case "syn-ack":
            return 0, 1, True
        case "ack":
            return 1, (1 + row["seq"] * segment) % 2**32, False
        case "request":
            return 1, 1, False
    return (1 + row["seq"] * segment) % 2**32, 1, False
