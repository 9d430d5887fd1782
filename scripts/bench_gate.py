#!/usr/bin/env python3
"""Gate on cost: instructions per packet, counted by callgrind.

Of the simulator, for each delivered packet: the difference of a long and a short run over the
difference of their packets, so that set-up does not count; set-up has a bound of its own. Of each
queue discipline, for a packet that is sent and those that arrive meanwhile, without what drives it
(crates/aqm/examples/steady.rs). Counts repeat exactly where times do not.

Compares with benches/baseline.json and fails above the tolerance; a discipline that is not in it is
shown and passes. After a change that is worth its cost, or that made things cheaper, run it with
--update and commit the baseline with the reason. --table writes the documentation's table, with
times if the machine is calm; on a busy one the times of what costs as much as before stay.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASELINE = ROOT / "benches" / "baseline.json"
TABLE = ROOT / "docs" / "measured" / "cost.md"
SIMULATOR, DISCIPLINES = "instructions_per_packet", "instructions_per_packet_of_disciplines"
# A discipline is a few dozen lines of code: one decision of the compiler about inlining shows.
TOLERANCE = {SIMULATOR: 0.03, DISCIPLINES: 0.06}

SHORT, LONG = 3, 8  # simulated seconds
CASES = [(mode, n) for mode in ("folded", "every-hop") for n in (100, 1000)]
# 10 ms at 3.2 GHz and one instruction a cycle, with the start of the program.
SETUP_FLOWS, SETUP_BOUND = 4000, 32_000_000

MANY = "overload:10000"  # flows
LOADS = ("partial", "overload", "crowd", MANY)
# Besides the catalogue at its defaults: name of the load, and what is measured under it.
MORE = {
    "partial": ["red,max_p=0.1", "sfb,levels=8,bins=16"],
    "crowd": ["red-pd,target_rtt=1s,least_drop_rate=0.1"],
    MANY: ["drr", "fq", "fq-codel", "fq-pie", "cake", "red-pd", "csfq"],
}
COUNTED = 10_000  # packets
NOTHING = "nothing"  # the driving itself
CALM = 1.5  # a load under which times tell something
RUNS = 8  # of which the least time counts; where memory lies makes CAKE 54 or 77 ns


def build(package: str, *target: str) -> Path:
    """A program, built as releases are."""
    command = ["cargo", "build", "--release", "--locked", "--quiet", "-p", package, *target]
    subprocess.run(command, cwd=ROOT, check=True)
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    return (built / "examples" if "--example" in target else built) / target[-1]


def callgrind(out: str, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """A run that is counted."""
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
    run = [*valgrind, *map(str, command)]
    return subprocess.run(run, capture_output=True, text=True, check=True)


# --- the simulator


def count(program: Path, n: int, mode: str, seconds: int) -> tuple[int, int]:
    """Instructions and delivered packets of a run."""
    with tempfile.NamedTemporaryFile() as out:
        run = callgrind(out.name, program, str(n), mode, str(seconds))
    found = re.search(r"Collected : (\d+)", run.stderr)
    if found is None:
        raise RuntimeError(f"callgrind counted nothing:\n{run.stderr}")
    return int(found[1]), json.loads(run.stdout)["packets"]


def cost(program: Path, mode: str, n: int) -> float:
    """Instructions per delivered packet."""
    short, long = (count(program, n, mode, seconds) for seconds in (SHORT, LONG))
    return (long[0] - short[0]) / (long[1] - short[1])


def simulator(pool: ThreadPoolExecutor) -> tuple[dict[str, float], int]:
    """The cost of each case, and the instructions of a set-up."""
    program = build("bluewater-sim", "--bin", "bluewater-bench")
    setup = pool.submit(count, program, SETUP_FLOWS, "folded", 0)
    costs = pool.map(lambda case: cost(program, *case), CASES)
    named = {f"{mode} {n}": round(each, 1) for (mode, n), each in zip(CASES, costs, strict=True)}
    return named, setup.result()[0]


# --- the queue disciplines


def under(load: str, program: Path, names: list[str]) -> dict[str, float]:
    """Instructions per packet of queue disciplines, without the driving."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        toggle = ("--toggle-collect=steady::counted", "--dump-after=steady::counted")
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *toggle]
        command = [*valgrind, str(program), "count", load, *names]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        done = run.stdout.split()
        dumps = [Path(f"{out}.{number}") for number in range(1, len(done) + 1)]
        counts = [re.search(r"^summary: (\d+)$", dump.read_text(), re.MULTILINE) for dump in dumps]
    costs = [int(found[1]) / COUNTED for found in counts if found]
    named = dict(zip(done, costs, strict=True))
    driving = named.pop(NOTHING)
    return {f"{name} {load}": round(each - driving, 1) for name, each in named.items()}


def known(program: Path) -> list[str]:
    """All of the catalogue."""
    command = [str(program), "names"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def disciplines(pool: ThreadPoolExecutor) -> dict[str, float]:
    """Instructions per packet of each queue discipline under each load."""
    program = build("bluewater-aqm", "--example", "steady")
    names = known(program)
    jobs = [(load, cases_under(load, names)) for load in LOADS]
    costs = pool.map(lambda job: under(job[0], program, [NOTHING, *job[1]]), jobs)
    return {name: each for some in costs for name, each in some.items()}


def cases_under(load: str, names: list[str]) -> list[str]:
    """What is measured under a load."""
    return [*([] if load in ("crowd", MANY) else names), *MORE.get(load, [])]


def times(load: str, program: Path, names: list[str]) -> dict[str, float]:
    """Nanoseconds per packet, without the driving: the least of some runs through all cases."""
    command = [str(program), "time", load, NOTHING, *names]
    least: dict[str, float] = {}
    for _ in range(RUNS):
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        for name, each in map(str.split, run.stdout.splitlines()):
            least[name] = min(float(each), least.get(name, math.inf))
    driving = least.pop(NOTHING)
    return {f"{name} {load}": each - driving for name, each in least.items()}


def write_table(costs: dict[str, float]) -> None:
    """Write instructions for the documentation, and on a calm machine times."""
    busy = os.getloadavg()[0]
    if busy < CALM:
        program = build("bluewater-aqm", "--example", "steady")
        names = known(program)
        taken: dict[str, float] = {}
        for load in LOADS:
            taken |= times(load, program, cases_under(load, names))
        when = f"{processor()}, load {busy:.1f}"
    else:
        print(
            f"busy, load {busy:.1f}: no times are taken, those there stay where nothing changed",
            file=sys.stderr,
        )
        taken, when = kept(TABLE.read_text(encoding="utf-8"), costs)
    TABLE.write_text(table(costs, taken, when), encoding="utf-8")


TITLES = ("discipline", "instructions", "overload", "ns", "overload")


def table(costs: dict[str, float], taken: dict[str, float], when: str) -> str:
    """The table: a row a discipline, with times where there are some."""
    rows = [list(TITLES), ["---"] * len(TITLES)]
    for name in dict.fromkeys(case.split(" ")[0] for case in costs):
        full = "crowd" if f"{name} crowd" in costs else "overload"
        cells = [
            f"{values[f'{name} {load}']:.{digits}f}" if f"{name} {load}" in values else "–"
            for values, digits in ((costs, 0), (taken, 1))
            for load in ("partial", full)
        ]
        rows.append([name.replace(",", ", "), *cells])
    lines = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"{lines}\n{compiler()}; times: {when}.\n"


def kept(text: str, costs: dict[str, float]) -> tuple[dict[str, float], str]:
    """The times of a table that are still of the same code, and where they were taken."""
    taken: dict[str, float] = {}
    row = re.compile(r"^\| (.+?)" + r" \| ([0-9.]+|–)" * 4 + r" \|$", re.MULTILINE)
    for name, *cells in row.findall(text):
        case = name.replace(", ", ",")
        for place, load in enumerate(("partial", "crowd" if case in MORE["crowd"] else "overload")):
            before, ns = cells[place], cells[place + 2]
            now = costs.get(f"{case} {load}")
            if now is None or "–" in (before, ns):
                continue
            if abs(now / float(before) - 1) <= TOLERANCE[DISCIPLINES]:
                taken[f"{case} {load}"] = float(ns)
    when = re.search(r"times: (.*)\.$", text, re.MULTILINE)
    return taken, when[1] if when else "none"


def processor() -> str:
    """What the times were taken on."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()


# --- verdicts


def compiler() -> str:
    """The compiler's version: another one gives other counts."""
    command = ["rustc", "--version"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def compare(kind: str, measured: dict[str, float], baseline: dict[str, float]) -> bool:
    """Print costs beside those of the baseline; whether one is too much."""
    width = max(map(len, measured))
    print(f"{kind.replace('_', ' ')}\n{'':{width}} {'baseline':>9} {'now':>9} {'change':>8}")
    failed = False
    for case, now in measured.items():
        before = baseline.get(case)
        if before is None:
            print(f"{case:{width}} {'new':>9} {now:9.1f}")
            continue
        change = now / before - 1
        too_much = change > TOLERANCE[kind]
        failed |= too_much
        verdict = "  TOO MUCH" if too_much else ""
        print(f"{case:{width}} {before:9.1f} {now:9.1f} {change:+8.1%}{verdict}")
    return failed


def main() -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the baseline")
    parser.add_argument("--table", action="store_true", help="write the documentation's table")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        if os.environ.get("CI") or arguments.table:
            print("error: valgrind is not there, and this has to measure", file=sys.stderr)
            return 2
        print("SKIPPED, NOTHING WAS MEASURED: install valgrind to gate on cost", file=sys.stderr)
        return 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        of_disciplines = disciplines(pool)
        if arguments.table:
            write_table(of_disciplines)
            return 0
        of_simulator, setup = simulator(pool)
    measured = {SIMULATOR: of_simulator, DISCIPLINES: of_disciplines}
    if arguments.update:
        BASELINE.parent.mkdir(exist_ok=True)
        BASELINE.write_text(json.dumps({"rustc": compiler(), **measured}, indent=2) + "\n")
    baseline = json.loads(BASELINE.read_text())
    if baseline["rustc"] != compiler():
        print(f"note: the baseline is of {baseline['rustc']}, this is {compiler()}")
    failures = [compare(kind, costs, baseline[kind]) for kind, costs in measured.items()]
    print(f"set-up of {SETUP_FLOWS} flows: {setup / 1e6:.1f} M of {SETUP_BOUND / 1e6:.0f} M")
    failed = any(failures) or setup > SETUP_BOUND
    if failed:
        print("If the cost is worth it: scripts/bench_gate.py --update, and say why in the commit.")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
