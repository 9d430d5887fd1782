"""Probing the queue of a scenario in virtual time."""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w

from bluewater.errors import InputError
from bluewater.results.packets import Facts
from bluewater.study.identify import path, probe
from bluewater.study.identify.recording import Recording
from bluewater.units import duration_text

if TYPE_CHECKING:
    from bluewater.study.identify.probe import Packets
    from bluewater.study.scenarios.scenario import Scenario

_FIRST_GUESS = 1e9
"""Rate for which the first trains are made, bit/s: any path spreads them."""


def probed(scenario: Scenario) -> Recording:
    """What the first queue of a scenario does to the probe, beside the scenario's own traffic.

    Raises:
        InputError: The scenario has no queue, or its link varies.
    """
    canonical = tomllib.loads(scenario.canonical)
    if not canonical.get("queue"):
        raise InputError("nothing to probe", file=scenario.origin, key="queue",
                         hint="add a [[queue]] with aqm and buffer")  # fmt: skip
    name = canonical["queue"][0]["link"]
    link = Facts("", "", scenario.canonical).link(name)
    if link is None:
        raise InputError(
            "a link that varies cannot be probed here", file=scenario.origin, key="link", value=name
        )

    def sent(packets: Packets) -> Recording:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "probe.pcapng"
            path.capture(packets, file)
            seen = path.run(
                _with_probe(scenario.table, name, file, float(packets.sent[-1])),
                int(packets.flow.max()) + 1,
                queue=name,
            )
        through = seen.size * 8 / link.rate_bps + link.delay_ns * 1e-9
        arrived = seen.sent + seen.waited + through
        after = np.where(seen.marked, 3, seen.ecn)
        return Recording(seen.sent, seen.size, seen.ecn, seen.flow, arrived, after)

    plain = not canonical["queue"][0].keys() & {"shaper", "class"}
    rate = link.rate_bps if plain else _dispersal(sent(probe.trains(_FIRST_GUESS)))
    return sent(probe.packets(rate))


def _dispersal(recording: Recording) -> float:
    """Rate at which the packets of trains arrive, bit/s: the median over pairs of neighbours."""
    gaps = np.diff(np.sort(recording.arrived[~recording.lost]))
    return probe.FULL * 8 / float(np.median(gaps[gaps > 0]))


def _with_probe(table: dict[str, Any], name: str, file: Path, end: float) -> str:
    """The scenario with the probe as its first traffic, as long as the probe."""
    given = {key: value for key, value in table.items() if key not in ("warmup", "measure")}
    begin, _, until = name.partition("->")
    ways = {} if "network" in table else {"from": [begin], "to": [until]}
    given["duration"] = duration_text(end + path.AFTER_S)
    given["traffic"] = [
        {"transport": "trace", "file": str(file), "name": "probe", **ways},
        *table.get("traffic", ()),
    ]
    return tomli_w.dumps(given)
