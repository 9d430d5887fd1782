#!/usr/bin/env python3
"""Soak: a gateway at full load both ways for long; does its memory stay, do its accounts hold?

Bulk TCP with ECN in both directions of a `shell` through BLUE: what is ECN-capable is marked, and
the buffer overflows. Fails if memory after the first minute grows by more than 1 MB, if a packet is
not accounted for, or if a way had no marks or no drops.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LINK = "--rate 100mbit --delay 5ms --buffer 500kB --aqm blue --ecn"
FLOWS = 16  # each way
SETTLED = 60  # s
MOST_GROWTH = 1.0  # MB
NOT_STARTED = 2  # the shell's exit code


def resident(pid: int) -> float | None:
    """Memory of a process in MB; nothing once it has ended, until somebody asks how."""
    status = Path(f"/proc/{pid}/status").read_text()
    kib = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(kib[0]) * 1024 / 1e6 if kib else None


def command(gateway: str, seconds: int, log: Path) -> list[str]:
    """The shell, its log, and at both ends a receiver and a sender."""
    program = shlex.quote(gateway)
    bulk = f"{program} bulk --flows {FLOWS} --time {seconds}s"
    near = f"{program} sink & {bulk} $BLUEWATER_FAR; code=$?; kill $!; exit $code"
    far = [f"--far={program} sink", f"--far={bulk} $BLUEWATER_NEAR"]
    return [gateway, "shell", *LINK.split(), f"--log={log}", *far, "--", "sh", "-c", near]


def measure(pid: int, seconds: int) -> list[float]:
    """Memory of a process in MB, each second until the senders end, or it does."""
    memory = []
    end = time.monotonic() + seconds
    while time.monotonic() < end - 1:
        time.sleep(1)
        if (now := resident(pid)) is None:
            break
        memory.append(now)
    return memory


def main() -> int:
    """Measures, prints, and tells by its exit code whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gateway", help="the program")
    parser.add_argument("seconds", type=int, nargs="?", default=3600, help="default: 3600")
    options = parser.parse_args()
    if options.seconds <= SETTLED:
        parser.error(f"seconds: {options.seconds}; allowed: more than {SETTLED}")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with subprocess.Popen(command(options.gateway, options.seconds, log)) as shell:
            memory = measure(shell.pid, options.seconds)
        if shell.returncode == NOT_STARTED:
            return NOT_STARTED
        ways = json.loads(log.read_text().splitlines()[-1])["summary"]
    wrong = [] if shell.returncode == 0 else [f"exit code {shell.returncode}"]
    first, settled, last = memory[0], memory[min(SETTLED, len(memory) - 1)], memory[-1]
    most = max(memory[SETTLED:], default=settled)
    if most - settled > MOST_GROWTH:
        wrong.append(f"memory grew by {most - settled:.2f} MB")
    for way in ways:
        print(
            f"{way['queue']}: {way['arrivals']} packets in {way['measured_s']:.0f} s, "
            f"{way['drops']} dropped, {way['marks']} marked, "
            f"{way['throughput_bps'] / 1e6:.2f} Mb/s, "
            f"{way['lost_before']} lost before, conserved: {way['conserved']}"
        )
        if not (way["conserved"] and way["drops"] and way["marks"]):
            wrong.append(f"{way['queue']}: conservation, drops and marks were expected")
    print(
        f"memory: {first:.2f} MB at first, {settled:.2f} MB after {SETTLED} s, "
        f"{last:.2f} MB at the end, {max(memory):.2f} MB at most"
    )
    print("; ".join(wrong) or "all as it should be", f"(exit code {shell.returncode})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
