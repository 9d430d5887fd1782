"""How fast the simulator is: instructions and processor time per delivered packet.

The work is done by the program ``bluewater-bench N MODE SECONDS``, which runs the common workload
(N infinite TCP flows through RED on the BLUE paper's network) and prints JSON:
``packets``, ``packets_per_cpu_second`` and ``peak_rss_mb``. Instructions are counted around it, by
``perf stat`` where the machine lets it count, else by Callgrind, else not at all.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater import programs
from bluewater.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

FLOWS = (100, 400, 1000, 4000)
MODES = ("every-hop", "folded")
_COLLECTED = re.compile(r"Collected\s*:\s*([0-9]+)")


@dataclass(frozen=True)
class Row:
    """One measured workload."""

    n: int
    mode: str
    packets: int
    instructions_per_packet: float | None
    packets_per_cpu_second: float
    peak_rss_mb: float | None


def program() -> str:
    """The path of ``bluewater-bench``."""
    return programs.find("bluewater-bench")


@cache
def counter() -> str | None:
    """The tool that counts instructions here: ``perf``, ``callgrind`` or none."""
    if shutil.which("perf"):
        with tempfile.NamedTemporaryFile("r") as counts:
            probe = subprocess.run([*_perf(counts.name), "true"], capture_output=True, check=False)
            if probe.returncode == 0 and _perf_count(Path(counts.name).read_text()) is not None:
                return "perf"
    return "callgrind" if shutil.which("valgrind") else None


def measure(n: int, mode: str, seconds: int) -> Row:
    """Runs one workload, once for the time and once for the instructions."""
    command = [program(), str(n), mode, str(seconds)]
    reply, _ = _run(command)
    count = _instructions(command, counter())
    packets = int(reply["packets"])
    return Row(
        n=n,
        mode=mode,
        packets=packets,
        instructions_per_packet=None if count is None else round(count / packets, 1),
        packets_per_cpu_second=float(reply["packets_per_cpu_second"]),
        peak_rss_mb=reply["peak_rss_mb"],
    )


def _instructions(command: Sequence[str], tool: str | None) -> int | None:
    if tool == "perf":
        with tempfile.NamedTemporaryFile("r") as counts:
            _run([*_perf(counts.name), *command])
            return _perf_count(Path(counts.name).read_text())
    if tool == "callgrind":
        valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        _, said = _run([*valgrind, *command])
        found = _COLLECTED.search(said)
        return int(found[1]) if found else None
    return None


def _perf(output: str) -> list[str]:
    return ["perf", "stat", "-e", "instructions:u", "-x", ",", "-o", output]


def _perf_count(text: str) -> int | None:
    for line in text.splitlines():
        value, _, rest = line.partition(",")
        if "instructions" in rest and value.isdecimal():
            return int(value)
    return None


def modes() -> tuple[str, ...]:
    """The modes that the program has."""
    probes = {
        mode: subprocess.run([program(), "1", mode, "1"], capture_output=True, check=False)
        for mode in MODES
    }
    return tuple(mode for mode, probe in probes.items() if probe.returncode == 0)


def _run(command: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Runs a workload; returns its reply and its stderr."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InputError(f"the benchmark failed: {done.stderr.strip()}", value=" ".join(command))
    return json.loads(done.stdout), done.stderr
