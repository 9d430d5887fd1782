"""Scenarios with real packets: the kernel's TCP through the gateway, measured like the simulator.

Such a run is a scenario with ``place = "testbed"``. The gateway supports a part of the scenarios: a
dumbbell of one node on each side, the queue of its bottleneck, one group of bulk TCP flows, and
datagrams at constant rates. It takes real time on a real machine: no two runs are the same.
"""

from __future__ import annotations

import json
import subprocess
import time
import tomllib
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from bluewater import _core, programs
from bluewater.errors import InputError
from bluewater.kinds.kind import Kind, fingerprint
from bluewater.kinds.simulator import Simulation
from bluewater.results.result import Result, schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MARK = 'place = "testbed"\n'
_SACK = {"sack": "true", "newreno": "false"}
"""Whether the kernel's Reno uses SACK, by the transport of the scenario."""
_QUEUE = {"link", "aqm", "buffer", "params"}
_TAKEN = {"name", "flows", "transport", "rate", "ecn"}
"""Keys of a group with the same meaning as in the simulator."""
_UP_TO_TCP = {"start", "stop", "step", "identity", "rekey", "from", "to"}
"""Keys that the kernel's TCP ignores, like every key of a transport's own."""
_WITH_CBR = {"jitter"}
"""Keys without a meaning on the testbed's network."""
_KINDS = ("tcp", "cbr")
_PACKET = 1500
"""Packet length of a datagram, in bytes."""


def check(table: Mapping[str, Any], file: str) -> str:
    """Checks a scenario for the testbed; returns its canonical text."""
    canonical = Simulation.of(table, file).canonical
    scenario = tomllib.loads(canonical)
    network, queues, traffic = scenario["network"], scenario["queue"], scenario["traffic"]
    measure = scenario["measure"]
    given = table.get("network", {})
    tcp = sum(group["transport"] != "cbr" for group in traffic)
    for wrong, key, value, allowed in (
        (given.keys() - {"preset", "rate", "delay"}, "network", given, "rate and delay"),
        (network.get("preset") != "dumbbell", "network.preset", network.get("preset"), "dumbbell"),
        (len(queues) != 1, "queue", len(queues), "one queue"),
        (queues[0]["link"] != "A->B", "queue.0.link", queues[0]["link"], "A->B"),
        *(
            (True, f"queue.0.{k}", queues[0][k], "nothing")
            for k in sorted(queues[0].keys() - _QUEUE)
        ),
        ("switch" in scenario, "switch", len(scenario.get("switch", ())), "no shared buffer"),
        *((v and k != "interval", f"measure.{k}", v, "interval") for k, v in measure.items()),
        *(each for i, group in enumerate(traffic) for each in _group(f"traffic.{i}", group)),
        (tcp > 1, "traffic", f"{tcp} groups of TCP", "one, and cbr beside it"),
    ):
        if wrong:
            raise InputError(
                "not on the testbed", file=file, key=key, value=value, allowed=str(allowed)
            )
    return _MARK + canonical


def _group(name: str, group: Mapping[str, Any]) -> list[tuple[bool, str, Any, Any]]:
    """Checks of a group of flows: whether it fails, key, value, and what is allowed."""
    transport = group["transport"]
    allowed = {"transport": [*_SACK, "cbr"], "app": ["infinite"], "packet": ["1500B"]}
    if transport == "cbr":
        allowed |= {"start": ["0s"], "gaps": ["constant"]}
        absent = group.keys() - _WITH_CBR
    else:
        absent = (group.keys() & _common()) - _UP_TO_TCP
    absent -= _TAKEN | allowed.keys()
    return [
        *((group[k] not in v, f"{name}.{k}", group[k], ", ".join(v)) for k, v in allowed.items()),
        *((True, f"{name}.{k}", group[k], "nothing") for k in sorted(absent)),
    ]


@cache
def _common() -> frozenset[str]:
    """The keys of all groups; other keys belong to one transport or application."""
    return frozenset(json.loads(_core.schema())["$defs"]["TrafficSpec"]["properties"])


@cache
def missing() -> str | None:
    """Why this machine cannot make such runs; empty if it can."""
    try:
        program = programs.find("bluewater-gateway")
    except InputError as error:
        return str(error)
    probe = [program, "shell", "--rate", "1mbit", "--quiet", "--", "true"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    return _complaint(done) if done.returncode else None


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The error message of a failed program; never empty."""
    said = done.stderr.strip().removeprefix("error: ")
    return said or f"{done.args[0]} failed with code {done.returncode} and said nothing"


@cache
def version() -> str:
    """The versions of the core, which checks scenarios, of the gateway, and of this module."""
    try:
        program = programs.find("bluewater-gateway")
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        gateway = said.stdout.split()[-1]
    except (InputError, OSError, IndexError):
        gateway = "missing"  # without a gateway no run is made
    return f"{_core.version()} gateway {gateway} testbed {fingerprint(__file__)}"


def run(text: str, origin: str, progress: Callable[[float], object] | None) -> Result:  # noqa: ARG001
    """Makes a run, with the simulator's tables."""
    began = time.perf_counter()
    scenario = tomllib.loads(text)
    arguments = _arguments(scenario)
    done = subprocess.run(
        [programs.find("bluewater-gateway"), "testbed", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise InputError(_complaint(done))
    raw = tables(scenario, json.loads(done.stdout))
    return Result.of(raw | {"scenario": text, "version": version()}, began)


def _arguments(scenario: Mapping[str, Any]) -> list[str]:
    network, queue, traffic = scenario["network"], scenario["queue"][0], scenario["traffic"]
    words = {
        "rate": network.get("rate", "10mbit"),
        "delay": network.get("delay", "20ms"),
        "buffer": queue["buffer"],
        "aqm": queue["aqm"],
        # The way back has room for every acknowledgement.
        "down-aqm": "droptail",
        "down-buffer": "10000p",
        "seed": scenario["seed"],
        "flows": 0,
        "congestion": "reno",
        "duration": scenario["duration"],
        "warmup": scenario["warmup"],
        "interval": scenario["measure"].get("interval", "0s"),
    }
    more = [f"--param={key}={_text(value)}" for key, value in queue.get("params", {}).items()]
    for group in traffic:
        if group["transport"] == "cbr":
            datagrams = group["rate"] + (",ect" if group["ecn"] else "")
            more += [f"--udp={datagrams}"] * group["flows"]
        else:
            words |= {"flows": group["flows"], "sack": _SACK[group["transport"]]}
            more += ["--ecn"] if group["ecn"] else []
    return [*(f"--{key}={value}" for key, value in words.items()), *more]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def tables(scenario: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    """The gateway's measurements in the simulator's tables and names."""
    up = {**measured["queues"][0], "queue": "A->B"}
    decision_hash = up.pop("decision_hash")
    flows = _flows(scenario["traffic"], measured["flows"], up)
    up["jain"] = _jain([flow["goodput_bps"] for flow in flows if flow["transport"] != "cbr"])
    series = [
        {name: value for name, value in row.items() if name not in _OF_LOGS} | {"queue": "A->B"}
        for row in measured["series"]
    ]
    summary = {
        "seed": scenario["seed"],
        "flows": sum(group["flows"] for group in scenario["traffic"]),
        "connected": measured["connected"],
        **up,
    }
    return {
        "summary": summary,
        "queues": _columns([up]),
        "flows": _columns(flows),
        "series": _columns(series),
        "decision_hash": decision_hash,
    }


_OF_LOGS = {"departures_bytes", "delay_mean_s"}
"""Keys of a gateway's sample that the simulator's series lacks."""


def _jain(goodputs: list[float]) -> float | None:
    """Jain's index of the connections, without the datagrams, whose rates are set."""
    squares = sum(each * each for each in goodputs)
    return sum(goodputs) ** 2 / (len(goodputs) * squares) if len(goodputs) > 1 and squares else None


def _flows(
    traffic: list[Mapping[str, Any]], measured: list[Mapping[str, Any]], queue: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """A row a flow, in the order of the scenario; the gateway has the datagrams last."""
    kinds = {kind: iter([f for f in measured if f["transport"] == kind]) for kind in _KINDS}
    rows: list[dict[str, Any]] = []
    for group in traffic:
        transport = group["transport"]
        of_kind = kinds["cbr" if transport == "cbr" else "tcp"]
        # A failed connection has no row.
        for flow in islice(of_kind, group["flows"]):
            row = dict.fromkeys(schema("flows")) | _met(flow, queue)
            row |= {"flow": len(rows), "group": group["name"], "transport": transport}
            rows.append(row | {"goodput_bps": flow["goodput_bps"]})
    return rows


def _met(flow: Mapping[str, Any], queue: Mapping[str, Any]) -> dict[str, Any]:
    """A datagram flow's packets at the queue, as its ends count them; unknown for TCP."""
    if flow["transport"] != "cbr":
        return {}
    sent, received = flow["sent"], flow["received"]
    # More may arrive in the window than is sent in it: packets queued when it began.
    drops = max(sent - received, 0)
    return {
        "throughput_bps": 8 * _PACKET * received / queue["measured_s"],
        "loss": drops / sent if sent else 0.0,
        "arrivals": sent,
        "drops": drops,
        "marks": flow["marked"],
    }


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {key: [row[key] for row in rows] for key in (rows[0] if rows else {})}


KIND = Kind(
    "testbed",
    lambda table: table.get("place") == "testbed",
    check,
    run,
    alone=True,
    version=version,
    missing=lambda: missing(),  # noqa: PLW0108 - tests put another in its place
)
