#!/usr/bin/env python3
"""Search the worst attack on every queue discipline and write the tables of docs/attacks.md.

An attack is tried with the fresh seeds that the search checks it with, then with one thing changed.
Runs are kept in OUT, so that an interrupted search continues.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import bluewater
from bluewater import InputError
from bluewater.lab.attacks import Runs
from bluewater.lab.making import Maker
from bluewater.results.stats import estimate
from bluewater.study.execution.execute import HERE
from bluewater.study.search.attack import group
from bluewater.units import bits_per_second

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bluewater.lab.attacks import Attack, Measured
    from bluewater.study.search.attack import Moves, Threat

MEASURED = Path(__file__).parents[1] / "docs/measured"
DEFENCES = ("fq-codel", "cake", "sfb")
PACKET = 1500
SEEDS = range(4, 9)
"""The fresh seeds with which the search checks what it found."""


def percent(values: Iterable[float]) -> str:
    """Mean and interval of shares, in per cent."""
    made = estimate([100 * value for value in values])
    return f"{made.mean:.0f} ± {made.half_width or 0:.0f}"


def lost(measured: Measured) -> str:
    """The goodput that an attack costs."""
    return percent(run.damage for run in measured.runs)


def words(moves: Moves, threat: Threat) -> str:
    """What an attacker does, in few words."""
    made = group(moves, threat)
    flows = "one flow" if made["flows"] == 1 else f"{made['flows']} flows"
    if moves.turns > 1:
        flows = f"{made['flows']} of {moves.turns * made['flows']} flows at a time"
    rate = made["flows"] * bits_per_second(made["rate"]) / 1e6
    when = f", together {rate:.1f} Mb/s"
    if moves.period:
        when = f", {1000 * moves.burst:.0f} ms at {rate:.1f} Mb/s every {moves.period:.2f} s"
    packets = f"; {moves.packet}-byte packets" if moves.packet < PACKET else ""
    dscp = f"; {moves.dscp.upper()}" if moves.dscp else ""
    return flows + when + packets + ("; ECN-capable" if moves.ecn else "") + dscp


def found(made: Attack) -> str:
    """A row of what was found."""
    assert made.found.moves is not None
    attack = words(made.found.moves, made.threat)
    rate = 100 * made.found.mean("load").mean
    constant = 100 * made.beside[1].mean("damage").mean
    return f"| `{made.aqm}` | {attack} | {rate:.1f} | {lost(made.found)} | {constant:.0f} |\n"


def helped(made: Attack, maker: Maker) -> str:
    """A row of what would help."""

    def damage(aqm: str, **changed: str) -> str:
        threat = replace(made.threat, **changed)
        (runs,) = Runs(aqm, made.measure, threat, maker).effects([made.found.moves], SEEDS)
        return percent(run.damage for run in runs)

    try:
        in_bytes = damage(f"{made.aqm}:mode=bytes")
    except InputError:
        in_bytes = "–"
    cells = [lost(made.found), damage(made.aqm, min_rto="200ms"), in_bytes, *map(damage, DEFENCES)]
    return f"| `{made.aqm}` | " + " | ".join(cells) + " |\n"


def write(name: str, heads: str, rows: list[str]) -> None:
    """Writes a table."""
    cells = heads.split("|")
    table = f"| {' | '.join(cells)} |\n{'|---' * len(cells)}|\n" + "".join(rows)
    (MEASURED / f"{name}.md").write_text(table, encoding="utf-8")


def main() -> None:
    """Attacks every discipline and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/attacks"))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    rows: list[str] = []
    helps: list[str] = []
    names = [each["name"] for each in bluewater.catalog()["aqms"]]
    with Maker(options.out, "", options.jobs, HERE, "what would help", True) as maker:
        for aqm in names:
            if aqm == "bernoulli":
                continue  # no discipline: a lossy link
            made = bluewater.attack(aqm, jobs=options.jobs, out=options.out, progress=False)
            rows.append(found(made))
            helps.append(helped(made, maker))
            print(rows[-1], helps[-1], sep="", end="", flush=True)
    head = "discipline|worst attack found|its mean rate, % of the link|goodput lost, %"
    write("attacks", f"{head}|lost to a constant flow, %", rows)
    under = "|".join(f"under `{aqm}`" for aqm in DEFENCES)
    write("defences", f"attack on|as found|least timeout 200 ms|counting bytes|{under}", helps)


if __name__ == "__main__":
    main()
