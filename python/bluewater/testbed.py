"""Scenarios with real packets: the kernel's TCP through the gateway, measured as the simulator is.

Such a run is a scenario with ``place = "testbed"``. The gateway can do a part of what scenarios
say: a dumbbell of one node on each side, the queue of its bottleneck, and one group of TCP flows
that always have something to send. Real time and a real machine: no two runs of it are the same.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from functools import cache
from typing import TYPE_CHECKING, Any

from bluewater import programs
from bluewater.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACES = ("simulator", "testbed")
_MARK = 'place = "testbed"\n'
_SACK = {"sack": "true", "newreno": "false"}
"""Whether the kernel's Reno uses SACK, by the transport that comes closest."""


def is_one(text: str) -> bool:
    """Whether a canonical text is one of these."""
    return text.startswith(_MARK)


def check(canonical: str, file: str) -> str:
    """The canonical text of a run that can be made, from that of the simulator."""
    scenario = tomllib.loads(canonical)
    network, queues, traffic = scenario["network"], scenario["queue"], scenario["traffic"]
    first = traffic[0]
    for wrong, key, value, allowed in (
        (network.keys() - {"preset", "rate", "delay"}, "network", network, "rate and delay"),
        (network.get("preset") != "dumbbell", "network.preset", network.get("preset"), "dumbbell"),
        (len(queues) != 1, "queue", len(queues), "one queue"),
        ("prefilter" in queues[0], "queue.0.prefilter", "", "none"),
        (queues[0]["link"] != "A->B", "queue.0.link", queues[0]["link"], "A->B"),
        (len(traffic) != 1, "traffic", len(traffic), "one group"),
        (first["transport"] not in _SACK, "traffic.0.transport", first["transport"], list(_SACK)),
        (first["app"] != "infinite", "traffic.0.app", first["app"], "infinite"),
        (first["packet"] != "1500B", "traffic.0.packet", first["packet"], "1500B"),
    ):
        if wrong:
            raise InputError(
                "not on the testbed", file=file, key=key, value=value, allowed=str(allowed)
            )
    return _MARK + canonical


@cache
def missing() -> str | None:
    """Why no such run can be made here, if so."""
    try:
        program = programs.find("bluewater-gateway")
    except InputError as error:
        return str(error)
    probe = [program, "shell", "--rate", "1mbit", "--quiet", "--", "true"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    return done.stderr.strip().removeprefix("error: ") if done.returncode else None


def measure(text: str) -> dict[str, Any]:
    """Makes a run: its tables as columns, as the simulator gives them, and its decision hash."""
    scenario = tomllib.loads(text)
    arguments = _arguments(scenario)
    done = subprocess.run(
        [programs.find("bluewater-gateway"), "testbed", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise InputError(done.stderr.strip().removeprefix("error: "))
    return tables(scenario, json.loads(done.stdout))


def _arguments(scenario: Mapping[str, Any]) -> list[str]:
    network, queue, traffic = scenario["network"], scenario["queue"][0], scenario["traffic"][0]
    words = {
        "rate": network.get("rate", "10mbit"),
        "delay": network.get("delay", "20ms"),
        "buffer": queue["buffer"],
        "aqm": queue["aqm"],
        # Acknowledgements never wait for room.
        "down-aqm": "droptail",
        "down-buffer": "10000p",
        "seed": scenario["seed"],
        "flows": traffic["flows"],
        "congestion": "reno",
        "sack": _SACK[traffic["transport"]],
        "duration": scenario["duration"],
        "warmup": scenario["warmup"],
        "interval": scenario["measure"].get("interval", "0s"),
    }
    params = [f"--param={key}={_text(value)}" for key, value in queue.get("params", {}).items()]
    ecn = ["--ecn"] if traffic["ecn"] else []
    return [*(f"--{key}={value}" for key, value in words.items()), *params, *ecn]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def tables(scenario: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    """What the gateway measured, with the simulator's tables and names."""
    up = {**measured["queues"][0], "queue": "A->B"}
    decision_hash = up.pop("decision_hash")
    traffic = scenario["traffic"][0]
    flows = [
        {"flow": flow["flow"], "group": traffic["name"], "transport": traffic["transport"]}
        | {"goodput_bps": flow["goodput_bps"]}
        for flow in measured["flows"]
    ]
    goodputs = [flow["goodput_bps"] for flow in flows]
    squares = sum(each * each for each in goodputs)
    jain = sum(goodputs) ** 2 / (len(goodputs) * squares) if squares else None
    series = [{**row, "queue": "A->B"} for row in measured["series"]]
    summary = {
        "seed": scenario["seed"],
        "flows": traffic["flows"],
        "connected": measured["connected"],
        **up,
        "jain": jain,
    }
    return {
        "summary": summary,
        "queues": _columns([up]),
        "flows": _columns(flows),
        "series": _columns(series),
        "decision_hash": decision_hash,
    }


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {key: [row[key] for row in rows] for key in (rows[0] if rows else {})}
