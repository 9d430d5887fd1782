"""Another discipline on what a gateway recorded: its arrivals at a link of the same rate."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater.errors import InputError
from bluewater.results import packets
from bluewater.results.exports import pcapng
from bluewater.study.scenario import Scenario, parsed, run
from bluewater.study.sweep import assign

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bluewater.results.packets import Packets
    from bluewater.results.result import Result

_LINK = {"queue", "rate", "delay", "buffer", "aqm", "mean_packet", "seed", "params"}
"""What a scenario's link can be made of; of others a capture does not know what they did."""


def on_recording(
    recording: Path,
    aqm: str,
    queue: str | None = None,
    settings: Sequence[str] = (),
    journal: Packets | None = None,
) -> tuple[Result, dict[str, int | str]]:
    """Runs a discipline on the arrivals of a recording.

    Args:
        recording: What a gateway recorded.
        aqm: The discipline: a name, or a class in Python as a scenario names it.
        queue: ``up`` or ``down``; the first with arrivals if not given.
        settings: ``KEY=VALUE`` of the scenario that is run.
        journal: Where to write down what becomes of each packet.

    Returns:
        The run; and of the recording the queue, its discipline, and what came of its packets.

    Raises:
        InputError: It is no recording, or its link cannot be simulated from a capture.
    """
    rows, facts = packets.open_(recording)
    if not facts.links:
        raise InputError(
            "no recording of a gateway",
            file=str(recording),
            hint="`bluewater gateway … --record run.arr` makes one",
        )
    arrived = packets.collected(packets.of_queue(rows, queue, recording), recording)
    if arrived.is_empty():
        raise InputError("nothing arrived", file=str(recording))
    name = queue or arrived["queue"][0]
    arrived = arrived.filter(pl.col("queue") == name)
    link = facts.queues[name]
    if other := sorted(link.keys() - _LINK):
        raise InputError(
            f"the link's {', '.join(other)} cannot be made of a recording, only arrivals, rate, "
            "delay and buffer: try the class in a scenario of the same link",
            file=str(recording),
            key=name,
        )
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / f"{name}.pcapng"
        pcapng.write(recording, capture, name)
        last = int(arrived["arrived_ns"].max())  # type: ignore[arg-type]
        table = _scenario(link, aqm, last, capture)
        for key, value in parsed(settings).items():
            assign(table, key, value, "--set")
        result = run(Scenario(table, origin=str(recording)), packets=journal)
    return result, {
        "queue": name,
        "aqm": link["aqm"],
        "arrivals": arrived.height,
        "marks": int((arrived["marked"] != "").sum()),
        "drops": int((arrived["fate"] == "dropped").sum()),
    }


def _scenario(link: Mapping[str, Any], aqm: str, last: int, capture: Path) -> dict[str, Any]:
    """A link like the recording's with another discipline, until the last arrival (ns)."""
    same = aqm == link["aqm"]
    return {
        "duration": f"{last + 1}ns",
        "seed": link["seed"] % 2**63,
        "link": [{"from": "A", "to": "B", "rate": link["rate"], "delay": link["delay"]}],
        "queue": [
            {
                "link": "A->B",
                "aqm": f"python:{aqm}" if ".py:" in aqm and not aqm.startswith("python:") else aqm,
                "buffer": link["buffer"],
                "params": dict(link["params"]) if same else {},
            }
        ],
        "traffic": [{"transport": "trace", "file": str(capture), "from": ["A"], "to": ["B"]}],
    }
