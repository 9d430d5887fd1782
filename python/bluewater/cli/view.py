"""``gateway view``: shows a running gateway in the terminal."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.table import Table

from bluewater import programs
from bluewater.cli.console import out
from bluewater.errors import InputError

_PERIOD_S = 0.5
_PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp"}


def view(name: str) -> None:
    """Shows the gateway of this name until it ends or Ctrl-C."""
    before = _show(name)
    with Live(console=out, auto_refresh=False) as live:
        while True:
            time.sleep(_PERIOD_S)
            try:
                now = _show(name)
            except InputError:
                return
            # After an upgrade another process counts from 0.
            if now.get("pid") == before.get("pid"):
                live.update(picture(before, now), refresh=True)
            before = now


def picture(before: dict[str, Any], now: dict[str, Any]) -> Group:
    """Tables of both queues and of the flows that sent most between two answers to ``show``."""
    seconds = now["time_s"] - before["time_s"]
    queues = Table(box=None, padding=(0, 1), header_style="bold")
    for column in ("", "link", "aqm", "Mb/s", "queue", "delay", "drops/s", "marks/s", "signals"):
        queues.add_column(column, no_wrap=column != "signals")
    flows = Table(box=None, padding=(0, 1), header_style="bold")
    for column in ("", "flow, last second", "Mb/s", "drops", "marks"):
        flows.add_column(column, no_wrap=True)
    for old, new in zip(before["queues"], now["queues"], strict=True):
        sent = 8e-6 * (new["departures_bytes"] - old["departures_bytes"]) / seconds
        queues.add_row(
            new["queue"],
            f"{new['rate']} {new['delay']} {new['buffer']}",
            new["aqm"],
            f"{sent:.2f}",
            f"{new['backlog_packets']}p",
            "never" if new["delay_s"] is None else f"{1e3 * new['delay_s']:.1f} ms",
            _by_cause(old["drops"], new["drops"], seconds),
            _by_cause(old["marks"], new["marks"], seconds),
            " ".join(f"{key}={value:.3g}" for key, value in new["signals"].items()),
        )
        for flow in new["flows"]:
            flows.add_row(
                new["queue"],
                _named(flow),
                f"{8e-6 * flow['bytes']:.2f}",
                str(flow["drops"]),
                str(flow["marks"]),
            )
    return Group(queues, "", flows)


def _show(name: str) -> dict[str, Any]:
    program = programs.find("bluewater-gateway")
    done = subprocess.run(
        [program, "ctl", name, "show"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        error, _, hint = done.stderr.strip().removeprefix("error: ").partition("\nhint: ")
        raise InputError(error, hint=hint)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _by_cause(before: dict[str, int], now: dict[str, int], seconds: float) -> str:
    rates = {cause: (now[cause] - before[cause]) / seconds for cause in now}
    return " ".join(f"{cause} {rate:.0f}" for cause, rate in rates.items() if rate) or "0"


def _named(flow: dict[str, Any]) -> str:
    source, destination = (
        f"{address}:{port}" if port else address
        for address, port in zip((flow["source"], flow["destination"]), flow["ports"], strict=True)
    )
    protocol = _PROTOCOLS.get(flow["protocol"], flow["protocol"])
    return f"{protocol} {source} > {destination}"
