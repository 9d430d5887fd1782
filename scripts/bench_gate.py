#!/usr/bin/env python3
"""Gate on the simulator's cost: instructions per delivered packet, counted by callgrind.

Counts repeat exactly where times do not. The cost is the difference of a long and a short run over
the difference of their packets, so that set-up does not count; set-up has a bound of its own.
Compares with benches/baseline.json and fails above +3 %. After a change that is worth its cost, or
that made things cheaper, run it with --update and commit the baseline with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASELINE = ROOT / "benches" / "baseline.json"
TOLERANCE = 0.03
SHORT, LONG = 3, 8  # simulated seconds
CASES = [(mode, n) for mode in ("folded", "every-hop") for n in (100, 1000)]
# 10 ms at 3.2 GHz and one instruction a cycle, with the start of the program.
SETUP_FLOWS, SETUP_BOUND = 4000, 32_000_000


def build() -> Path:
    """The benchmark program, built as releases are."""
    command = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "bluewater-sim"]
    subprocess.run([*command, "--bin", "bluewater-bench"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "bluewater-bench"


def count(program: Path, n: int, mode: str, seconds: int) -> tuple[int, int]:
    """Instructions and delivered packets of a run."""
    with tempfile.NamedTemporaryFile() as out:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}"]
        run = subprocess.run(
            [*command, str(program), str(n), mode, str(seconds)],
            capture_output=True,
            text=True,
            check=True,
        )
    found = re.search(r"Collected : (\d+)", run.stderr)
    if found is None:
        raise RuntimeError(f"callgrind counted nothing:\n{run.stderr}")
    return int(found[1]), json.loads(run.stdout)["packets"]


def cost(program: Path, mode: str, n: int) -> float:
    """Instructions per delivered packet."""
    short, long = (count(program, n, mode, seconds) for seconds in (SHORT, LONG))
    return (long[0] - short[0]) / (long[1] - short[1])


def compiler() -> str:
    """The compiler's version: another one gives other counts."""
    command = ["rustc", "--version"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the baseline")
    update: bool = parser.parse_args().update
    if shutil.which("valgrind") is None:
        if os.environ.get("CI"):
            print("error: valgrind is not there, and CI has to measure", file=sys.stderr)
            return 2
        print("SKIPPED, NOTHING WAS MEASURED: install valgrind to gate on cost", file=sys.stderr)
        return 0
    program = build()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        setup = pool.submit(count, program, SETUP_FLOWS, "folded", 0)
        costs = list(pool.map(lambda case: cost(program, *case), CASES))
    measured = {f"{mode} {n}": round(each, 1) for (mode, n), each in zip(CASES, costs, strict=True)}
    if update:
        text = json.dumps({"rustc": compiler(), "instructions_per_packet": measured}, indent=2)
        BASELINE.parent.mkdir(exist_ok=True)
        BASELINE.write_text(text + "\n")
    baseline = json.loads(BASELINE.read_text())
    if baseline["rustc"] != compiler():
        print(f"note: the baseline is of {baseline['rustc']}, this is {compiler()}")
    print("instructions per delivered packet, common workload")
    print(f"{'mode, flows':16} {'baseline':>9} {'now':>9} {'change':>8}")
    failed = False
    for case, now in measured.items():
        before = baseline["instructions_per_packet"].get(case)
        change = now / before - 1 if before else float("inf")
        failed |= change > TOLERANCE
        verdict = "  TOO MUCH" if change > TOLERANCE else ""
        print(f"{case:16} {before or 0:9.1f} {now:9.1f} {change:+8.1%}{verdict}")
    instructions = setup.result()[0]
    failed |= instructions > SETUP_BOUND
    print(f"set-up of {SETUP_FLOWS} flows: {instructions / 1e6:.1f} M of {SETUP_BOUND / 1e6:.0f} M")
    if failed:
        print("If the cost is worth it: scripts/bench_gate.py --update, and say why in the commit.")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
