"""Remarks on results whose numbers do not mean what they seem to."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from bluewater import _core, units

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bluewater.results.result import Result


def of_run(result: Result) -> list[str]:
    """Remarks on one run, each a sentence."""
    captures = [f"{file}: {told}" for file, *odd in result.captures for told in of_capture(*odd)]
    return [
        *of_queues(result), *_late(result), *captures, *_held(result),
        *_broken(result),
    ]  # fmt: skip


def of_queues(result: Result) -> list[str]:
    """Those of them that are about its queues."""
    told, scenario = [], tomllib.loads(result.scenario)
    if "queues" in result.names:
        queues = result.load("queues")
        unused = queues.filter(queues["arrivals"] == 0)["queue"].to_list()
        if len(unused) > _FEW:
            of = f"{len(unused)} of {queues.height} queues in the measured window"
            told.append(f"nothing arrived at {of}: {', '.join(unused[:_FEW])} …")
        else:
            told.extend(f"nothing arrived at {name} in the measured window" for name in unused)
        told.extend(
            f"every packet that arrived at {queue['queue']} was dropped"
            + _too_small(scenario, queue["queue"])
            for queue in queues.iter_rows(named=True)
            if queue["drops"] == queue["arrivals"] > 0
        )
    told.extend(_out_of_reach(scenario))
    return told


def _too_small(scenario: Mapping[str, Any], link: str) -> str:
    """The buffer of the queue at a link and the shortest packet, where it holds none of them."""
    packets = [each["packet"] for each in scenario.get("traffic", ()) if "packet" in each]
    shortest = min(packets, key=units.size_bytes, default=None)
    for queue in scenario.get("queue", ()):
        if queue["link"] == link and shortest is not None:
            room = _bytes(queue["buffer"], units.size_bytes(shortest))
            if room is not None and room < units.size_bytes(shortest):
                return f": its buffer holds {queue['buffer']}, and a packet has {shortest} or more"
    return ""


_FEW = 3
"""Queues that are named one by one."""


def _late(result: Result) -> Iterator[str]:
    """Whether flows would start after the run."""
    flows = result.load("flows") if "flows" in result.names else None
    if flows is not None and "start_s" in flows.columns:
        late = flows.filter(flows["start_s"] >= result.summary["duration_s"])
        groups = ", ".join(late["group"].unique(maintain_order=True).to_list())
        if groups:
            count = f"{late.height} flow{'s' if late.height > 1 else ''}"
            yield f"{count} would start after the end of the run: {groups}"


def _held(result: Result) -> Iterator[str]:
    """What users' controllers decided out of bounds: an attribute with the flow that was first."""
    for name in dict.fromkeys(name for _, name, _, _ in result.held):
        rows = sorted((ns, flow, calls) for flow, each, calls, ns in result.held if each == name)
        first, flow, calls = rows[0]
        times = "1 call" if calls == 1 else f"{calls:,} calls"
        others = len(rows) - 1
        more = f"; so did {others} other flow{'s' if others > 1 else ''}" if others else ""
        yield (
            f"the controller of flow {flow} left {name} outside its bounds in {times}, first at "
            f"{first / 1e9:.9f} s{more}. The sender used the nearest bound; {_BOUNDS[name]}"
        )


def _broken(result: Result) -> Iterator[str]:
    """Connections that ended before their data did: the first for each reason."""
    for why in dict.fromkeys(why for _, _, why in result.broken):
        rows = sorted((ns, flow) for flow, ns, each in result.broken if each == why)
        first, flow = rows[0]
        others = len(rows) - 1
        more = f", and {others} more" if others else ""
        yield f"the connection of flow {flow} broke at {first / 1e9:.3f} s{more}: {why}"


_BOUNDS = {
    "cwnd": "cwnd is from the group's min_window to 2⁴⁰ bytes",
    "ssthresh": "ssthresh is from 0 on",
    "pacing": "pacing is 0 for none, or at least a packet in 100,000 s",
    "burst": "burst is at most 65,535 packets",
    "timer": "timer is later than the call",
}
"""The bounds of what controllers decide. In Python a wrong ``ssthresh`` or ``timer`` ends a run."""


def of_capture(
    reordered: int, oversized: int, silent_from_ns: int = 0, silent_ns: int = 0
) -> Iterator[str]:
    """Remarks on a capture: packets with another time, packets that may be several, silence."""
    if silent_ns >= _SILENT_NS:
        begin, end = (f"{ns / 1e9:,.6g} s" for ns in (silent_from_ns, silent_from_ns + silent_ns))
        yield (
            f"there is no packet from {begin} to {end} of the capture. If its clock was set "
            "meanwhile, later packets come too late by that much"
        )
    if reordered:
        yield (
            f"{_packets(reordered)} recorded out of order, or after the clock was set, and counted "
            "at the time of the packet before"
        )
    if oversized:
        yield (
            f"{_packets(oversized)} longer than a frame of Ethernet, {_LONGEST} B. Unless the "
            "network has jumbo frames, each stands for several that the recording host merged, and "
            "counts as one: queues see too few packets, too long, at once. Record with "
            "`ethtool -K DEVICE gro off gso off tso off`, or at another machine"
        )


_LONGEST = 1522
_SILENT_NS = 10_000_000_000
"""A capture without a packet for this long gets a remark."""


def _packets(count: int) -> str:
    return "1 packet is" if count == 1 else f"{count:,} packets are"


def _out_of_reach(scenario: Mapping[str, Any]) -> Iterator[str]:
    """A remark for each queue with a threshold above its buffer."""
    traffic = scenario.get("traffic", ())
    packet = units.size_bytes(traffic[0]["packet"]) if traffic else 1000
    for queue in scenario.get("queue", ()):
        room = _bytes(queue["buffer"], packet)
        if room is None or queue["aqm"] not in _SIZES:
            continue
        settings = queue.get("params", {})
        above = [
            f"{name} = {settings[name]}"
            for name in _SIZES[queue["aqm"]]
            if (size := _bytes(settings.get(name, "none"), packet)) is not None and size > room
        ]
        if above:
            yield (
                f"{queue['aqm']} at {queue['link']} never reaches {', '.join(above)}: "
                f"its buffer holds {queue['buffer']}"
            )


_SIZES: Mapping[str, list[str]] = {
    aqm["name"]: [each["name"] for each in aqm["parameters"] if each["kind"] == "size"]
    for aqm in _core.catalog()["aqms"]
}
"""The parameters of each discipline that are queue lengths."""


def _bytes(size: str, packet: int) -> int | None:
    """A size in bytes, given in bytes or in packets."""
    if size == "none" or size.endswith(("%", "bdp")):
        return None
    return int(size[:-1]) * packet if size.endswith("p") else units.size_bytes(size)


def of_seeds(runs: Iterable[tuple[str, Sequence[Result]]]) -> list[str]:
    """Remarks on groups of runs that differ only in their seed."""
    alike = [
        name
        for name, results in runs
        if len(results) > 1 and len({each.decision_hash for each in results}) == 1
    ]
    if not alike:
        return []
    shown = ", ".join(filter(None, alike[:3])) + (", …" if len(alike) > 3 else "")
    where = f" ({shown})" if shown else ""
    return [
        f"the seed changes nothing here{where}: every seed gave the same decisions, so an interval "
        'of ±0 says nothing. Draw the starts from a range, such as start = "0s..1s"'
    ]
