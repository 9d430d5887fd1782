"""Replaying a gateway's recorded arrivals to another discipline, on a link of the same rate."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater import _core, text
from bluewater.errors import InputError
from bluewater.files import apart, of_capture
from bluewater.results import packets
from bluewater.results.exports import pcapng
from bluewater.study.scenarios.scenario import Scenario, parsed
from bluewater.study.scenarios.sweep import assign

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bluewater.results.packets import Packets
    from bluewater.results.result import Result

_LINK = {
    *("queue", "rate", "delay", "buffer", "aqm", "mean_packet", "seed", "params"),
    *("policer", "shaper", "shaper_peak", "wash"),
}
"""Properties of a link that a scenario can copy; a capture does not show the others' effects."""


def on_recording(
    recording: Path,
    aqm: str,
    queue: str | None = None,
    settings: Sequence[str] = (),
    journal: Packets | None = None,
) -> tuple[Result, dict[str, int | float | str]]:
    """Runs a discipline on the arrivals of a recording.

    Args:
        recording: A gateway's recording.
        aqm: The discipline: a name, or a Python class as a scenario names it.
        queue: ``up`` or ``down``; by default the first with arrivals.
        settings: Settings ``KEY=VALUE`` of the scenario.
        journal: The file for the fate of each packet.

    Returns:
        The run; and the recording's queue, its discipline, the fate of its packets, the time from
        the first to the last of them, and the longest time between two, in seconds.

    Raises:
        InputError: The file is no recording, or a scenario cannot reproduce its link.
    """
    if journal is not None:
        apart(Path(journal.path), recording, key="--to")
    try:
        rows, facts = packets.open_(recording)
    except InputError as error:
        error.hint = not_recorded(recording)
        raise
    if not facts.links:
        raise InputError(
            "not a recording of a gateway", file=str(recording), hint=not_recorded(recording)
        )
    arrived = packets.collected(packets.of_queue(rows, queue, recording), recording)
    if arrived.is_empty():
        raise InputError("the recording has no arrivals in this direction", file=str(recording))
    name = queue or arrived["queue"][0]
    arrived = arrived.filter(pl.col("queue") == name)
    link = facts.queues[name]
    courses = link.pop("courses", None) or {}
    varying = {f"varying {of}" for of, course in courses.items() if course is not None}
    if other := sorted((link.keys() - _LINK) | varying):
        raise InputError(
            f"a replay to another discipline cannot reproduce the link's {', '.join(other)}, only "
            "arrivals, rate, delay and buffer: use a scenario of the same link",
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
        # A name without a folder, so that a class's file is found from the working directory.
        result = Scenario(table, origin=recording.name).prepared.run(packets=journal)
    return result, {
        "queue": name,
        "aqm": link["aqm"],
        "arrivals": arrived.height,
        "marks": int((arrived["marked"] != "").sum()),
        "drops": int((arrived["fate"] == "dropped").sum()),
        **_length(arrived["arrived_ns"]),
    }


def _length(arrived: pl.Series) -> dict[str, float]:
    """How long packets arrived, and the longest time without one, in seconds."""
    gaps = arrived.sort().diff().drop_nulls()
    return {"length_s": int(gaps.sum()) / 1e9, "gap_s": int(gaps.max() or 0) / 1e9}  # type: ignore[arg-type]


def on_length(recorded: Mapping[str, Any]) -> str:
    """A remark on a recording that is short, or mostly silent; else empty."""
    length, gap, arrivals = recorded["length_s"], recorded["gap_s"], recorded["arrivals"]
    if gap > length / 2:
        return f"no packet arrived for {text.number(gap)} s of {text.number(length)} s"
    if length < _SHORT_S or arrivals < _FEW:
        return (
            f"the recording is short for delays and shares: {arrivals:,} arrivals in "
            f"{text.number(length)} s"
        )
    return ""


_SHORT_S = 1
"""Control loops of disciplines and senders take some round trips to settle."""

_FEW = 1000
"""A 99th percentile needs ten packets beyond it."""


def not_recorded(path: Path) -> str:
    """The hint for a file that is no recording of a gateway."""
    capture = of_capture(path)
    makes = "`bluewater gateway … --record run.arr` makes one"
    return f"{makes}. This is {capture}" if capture else makes


LOST = (
    "the replay lacks the packets' DSCPs and hosts, numbers flows anew (so hashes differ), and "
    "draws other random numbers"
)
"""Information that a capture lacks, or that only the gateway's own queue has."""

_FLOWS_ALONE = {"diffserv": ("besteffort",), "isolation": ("flowblind", "flows")}
"""Parameters with which CAKE ignores DSCPs and hosts."""


def _check_labels(queue: Mapping[str, Any], recording: Path) -> None:
    """Refuses a discipline that uses information which the replay lacks."""
    given = queue.get("params", {})
    about = {each["name"]: each for each in _core.catalog()["aqms"]}.get(queue["aqm"], {})
    needed = about.get("labels_with")
    spared = (
        given.get(needed, "none") == "none"
        if needed
        else queue["aqm"] == "cake"
        and all(given.get(name) in allowed for name, allowed in _FLOWS_ALONE.items())
    )
    if about.get("labels") and not spared:
        settings = " ".join(
            f"--set queue.0.params.{name}={each[-1]}" for name, each in _FLOWS_ALONE.items()
        )
        raise InputError(
            f"{queue['aqm']} uses the packets' DSCPs or hosts, which a replay lacks",
            file=str(recording),
            key="queue.0.aqm",
            hint=f"CAKE ignores them with {settings}"
            if queue["aqm"] == "cake"
            else "`bluewater replay` without --aqm has them, for the recording's own discipline",
        )


def _scenario(
    link: Mapping[str, Any], aqm: str, arrived: pl.DataFrame, capture: Path
) -> dict[str, Any]:
    """A link like the recording's with another discipline, on the recording's clock.

    Times are not shifted, because a discipline's timers start at 0. The run ends with the last
    packet.
    """
    same = aqm == link["aqm"]
    policer = link.get("policer")
    before = {"prefilter": "policer", "prefilter_params": dict(policer)} if policer else {}
    shaper = dict(link.get("shaper") or {})
    if peak := link.get("shaper_peak"):
        shaper |= {"peakrate": peak["rate"], "minburst": peak["burst"]}
    behind = {"shaper": shaper} if shaper else {}
    times = arrived["arrived_ns"], arrived["left_ns"]
    end = max(int(each.max() or 0) for each in times) + 1  # type: ignore[arg-type]
    begin = int(arrived["arrived_ns"].min() or 0)  # type: ignore[arg-type]
    ways = {"from": ["A"], "to": ["B"]}
    # Disciplines take their mean packet from the first group, so this one exists, but sends none.
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
                **behind,
            }
        ],
        "traffic": [expected, recorded],
    }
