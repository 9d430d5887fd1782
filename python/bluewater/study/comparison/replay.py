"""Another discipline on what a gateway recorded: its arrivals at a link of the same rate."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater import _core
from bluewater.errors import InputError
from bluewater.files import apart
from bluewater.results import packets
from bluewater.results.exports import pcapng
from bluewater.study.scenarios.scenario import Scenario, parsed
from bluewater.study.scenarios.sweep import assign

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bluewater.results.packets import Packets
    from bluewater.results.result import Result

_LINK = {"queue", "rate", "delay", "buffer", "aqm", "mean_packet", "seed", "params", "policer"}
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
    if journal is not None:
        apart(Path(journal.path), recording, key="--to")
    try:
        rows, facts = packets.open_(recording)
    except InputError as error:
        error.hint = _RECORDED
        raise
    if not facts.links:
        raise InputError("no recording of a gateway", file=str(recording), hint=_RECORDED)
    arrived = packets.collected(packets.of_queue(rows, queue, recording), recording)
    if arrived.is_empty():
        raise InputError("nothing arrived", file=str(recording))
    name = queue or arrived["queue"][0]
    arrived = arrived.filter(pl.col("queue") == name)
    link = facts.queues[name]
    courses = link.pop("courses", None) or {}
    varying = {f"varying {of}" for of, course in courses.items() if course is not None}
    if other := sorted((link.keys() - _LINK) | varying):
        raise InputError(
            f"the link's {', '.join(other)} cannot be made of a recording, only arrivals, rate, "
            "delay and buffer: try the class in a scenario of the same link",
            file=str(recording),
            key=name,
        )
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / f"{name}.pcapng"
        pcapng.write(recording, capture, name)
        table = _scenario(link, aqm, arrived, capture)
        for key, value in parsed(settings).items():
            assign(table, key, value, "--set")
        _check_labels(table["queue"][0], recording)
        # By its name alone: files are looked for from the working directory.
        result = Scenario(table, origin=recording.name).prepared.run(packets=journal)
    return result, {
        "queue": name,
        "aqm": link["aqm"],
        "arrivals": arrived.height,
        "marks": int((arrived["marked"] != "").sum()),
        "drops": int((arrived["fate"] == "dropped").sum()),
    }


_RECORDED = "`bluewater gateway … --record run.arr` makes one"

LOST = (
    "of the recording's packets codepoints and hosts are not carried over, nor the numbers of "
    "flows, by which hashes differ; random numbers are others"
)
"""What a capture does not have, and a discipline that is not the gateway's own object."""

_FLOWS_ALONE = {"diffserv": ("besteffort",), "isolation": ("flowblind", "flows")}
"""Parameters of CAKE with which it looks at no codepoint and at no host."""


def _check_labels(queue: Mapping[str, Any], recording: Path) -> None:
    """Refuses a discipline that decides by what is not carried over."""
    given = queue.get("params", {})
    labels = {each["name"]: each["labels"] for each in _core.catalog()["aqms"]}
    spared = queue["aqm"] == "cake" and all(
        given.get(name) in allowed for name, allowed in _FLOWS_ALONE.items()
    )
    if labels.get(queue["aqm"]) and not spared:
        settings = " ".join(
            f"--set queue.0.params.{name}={each[-1]}" for name, each in _FLOWS_ALONE.items()
        )
        raise InputError(
            f"{queue['aqm']} decides by codepoints or hosts of packets, which are not carried over",
            file=str(recording),
            key="queue.0.aqm",
            hint=f"CAKE without them: {settings}"
            if queue["aqm"] == "cake"
            else "`bluewater replay` without --aqm has them, with the gateway's own discipline",
        )


def _scenario(
    link: Mapping[str, Any], aqm: str, arrived: pl.DataFrame, capture: Path
) -> dict[str, Any]:
    """A link like the recording's with another discipline, by the recording's clock.

    Timers of a discipline tick from 0 on, so that it matters when the first packet arrives. The end
    is that of the last packet.
    """
    same = aqm == link["aqm"]
    policer = link.get("policer")
    before = {"prefilter": "policer", "prefilter_params": dict(policer)} if policer else {}
    times = arrived["arrived_ns"], arrived["left_ns"]
    end = max(int(each.max() or 0) for each in times) + 1  # type: ignore[arg-type]
    begin = int(arrived["arrived_ns"].min() or 0)  # type: ignore[arg-type]
    ways = {"from": ["A"], "to": ["B"]}
    # The first group's packets are those that a discipline is told to expect; it never sends one.
    expected = {
        "transport": "cbr", "rate": "1kbit", "packet": f"{link.get('mean_packet', 1000)}B",
        "start": f"{end + 1}ns", **ways,
    }  # fmt: skip
    recorded = {
        "transport": "trace", "file": str(capture),
        "start": f"{begin}ns", **ways,
    }  # fmt: skip
    return {
        "duration": f"{end}ns",
        "seed": link["seed"] % 2**63,
        "link": [{"from": "A", "to": "B", "rate": link["rate"], "delay": link["delay"]}],
        "queue": [
            {
                "link": "A->B",
                "aqm": f"python:{aqm}" if ".py:" in aqm and not aqm.startswith("python:") else aqm,
                "buffer": link["buffer"],
                "params": dict(link["params"]) if same else {},
                **before,
            }
        ],
        "traffic": [expected, recorded],
    }
