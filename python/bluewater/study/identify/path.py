"""A simulated path: a link with one queue, that gets the packets of a recording."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w

from bluewater import _core
from bluewater.results.packets import ECN_BITS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from bluewater.study.identify.probe import Packets
    from bluewater.study.identify.recording import Recording

AFTER_S = 1.0
"""How long a run goes on behind the last packet at least, s."""
_ENDS = bytes([198, 18, 0, 0])


def capture(packets: Packets | Recording, path: Path) -> None:
    """Writes packets to send as a capture, for traffic of the kind ``trace``."""
    columns = (np.rint(packets.sent * 1e9).astype(np.int64), packets.size, packets.ecn,
               packets.flow)  # fmt: skip
    _core.write_commented(
        path,
        (
            (sent, size, ecn, (bytes([10, *flow.to_bytes(3)]), _ENDS), (1024, 9), None, "")
            for sent, size, ecn, flow in zip(*(each.tolist() for each in columns), strict=True)
        ),
    )


@dataclass(frozen=True)
class Queue:
    """A queue and its link.

    Attributes:
        aqm: The discipline.
        buffer: As in scenario files.
        params: Its parameters.
        rate: Of the bottleneck, bit/s.
        burst: Bytes that a shaper lets pass at once; 0 if there is none.
        line: Rate of the link behind a shaper, bit/s.
    """

    aqm: str
    buffer: str
    rate: float
    params: Mapping[str, Any] = field(default_factory=dict)
    burst: int = 0
    line: float = 0.0


def scenario(
    queue: Queue, file: Path, end: float, seed: int, beside: tuple[Path, float] | None = None
) -> str:
    """The scenario of a path whose traffic is a capture.

    Args:
        queue: The queue.
        file: The capture.
        end: When its last packet is sent, s.
        seed: Of the queue.
        beside: A capture of other packets, and when the first of them is sent, s.
    """
    rate = f"{round(queue.rate)}bit"
    managed: dict[str, Any] = {
        "link": "A->B", "aqm": queue.aqm, "buffer": queue.buffer, "params": dict(queue.params)
    }  # fmt: skip
    if queue.burst:
        managed["shaper"] = {"rate": rate, "burst": f"{queue.burst}B"}
    link = {
        "from": "A",
        "to": "B",
        "rate": f"{round(queue.line if queue.burst else queue.rate)}bit",
        "delay": "1ms",
    }
    traffic = [
        {"transport": "trace", "file": str(name), "start": f"{round(start * 1e9)}ns",
         "from": ["A"], "to": ["B"]}
        for name, start in ((file, 0.0), *([beside] if beside else []))
    ]  # fmt: skip
    table = {
        "duration": f"{round((end + AFTER_S) * 1e9)}ns",
        "seed": seed,
        "link": [link],
        "queue": [managed],
        "traffic": traffic,
    }
    return tomli_w.dumps(table)


@dataclass(frozen=True)
class Seen:
    """Packets and what the queue did to them, in order of sending.

    Attributes:
        sent: Seconds.
        size: Bytes.
        ecn: Codepoint when sent, as bits.
        flow: Number of the flow.
        waited: Seconds in the queue; NaN if it was dropped.
        marked: Whether it was marked.
    """

    sent: NDArray[Any]
    size: NDArray[Any]
    ecn: NDArray[Any]
    flow: NDArray[Any]
    waited: NDArray[Any]
    marked: NDArray[Any]

    def every(self, count: int) -> Seen:
        """Each so many-th packet."""
        return Seen(*(getattr(self, each.name)[::count] for each in fields(self)))


_COLUMNS = ("arrived_ns", "bytes", "ecn", "flow", "left_ns", "fate", "marked")


def run(text: str, flows: int, every: int = 1, queue: str = "A->B") -> Seen:
    """Runs a scenario whose first traffic is a capture.

    Args:
        text: The scenario.
        flows: Flows of the capture.
        every: Only each so many-th packet is looked at.
        queue: The queue whose decisions count.
    """
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}

    def take(at: str, rows: dict[str, list[Any]]) -> None:
        if at != queue:
            return
        for name in _COLUMNS:
            columns[name] += rows[name]

    _core.Prepared(text).run(journal=take, flows=[(0, flows - 1)], every=every, columns=_COLUMNS)
    sent = np.array(columns["arrived_ns"], np.int64)
    left = np.array([each or 0 for each in columns["left_ns"]], np.int64)
    passed = np.array([each == "sent" for each in columns["fate"]])
    return Seen(
        sent * 1e-9,
        np.array(columns["bytes"]),
        np.array([ECN_BITS[each] for each in columns["ecn"]]),
        np.array(columns["flow"]),
        np.where(passed, (left - sent) * 1e-9, np.nan),
        passed & np.array([each != "" for each in columns["marked"]]),
    )
