#!/usr/bin/env python3
"""What the experiments' texts quote of our own runs, compared with the runs of a full size.

A text that quotes a number says nothing when the simulator changes. `scripts/quoted/PAPER.toml`
has, for each number that a text takes from runs of the full size, the query that gives it and how
the text says it:

    [[quoted]]
    at = "cmu/fig4"            # whose text and runs they are; `runs` names another's
    in = "finding"             # where: finding, a claim with its evidence, `reading NAME`, docs
    says = "leaves Reno 74 %"  # as it stands there
    claim = "d"                # what is measured: that of a claim, or `sql` with a row a seed
    reading = "standard"       # in which reading; this one if nothing is said
    form = "leaves Reno {0.mean:.0f} %"

A form has an estimate a group of rows, in their order: its mean, the `half` of its interval, the
`least` and the `most` of its seeds. `bluewater reproduce PAPER --size full --out results` for the
papers, then `scripts/quoted.py results`, and `make suites`, then `scripts/quoted.py
results/suites`: what differs is printed, and the exit code is 1. An experiment without runs is
left out; if all are, the exit code is 1 as well.
"""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater.results.stats import estimate
from bluewater.results.store import Store
from bluewater.results.tables import STANDARD, Blank, Tables
from bluewater.study.experiments import experiment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bluewater.study.experiments.experiment import Experiment

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "scripts" / "quoted"
DOCS = ROOT / "docs" / "experiments.md"
EVIDENCE = ROOT / "docs" / "evidence.md"


@dataclass(frozen=True)
class Quoted:
    """A phrase with numbers of ours, where it stands and where its numbers come from."""

    at: str
    where: str
    says: str
    form: str
    claim: str = ""
    sql: str = ""
    reading: str = STANDARD
    runs: str = ""

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Quoted:
        """Of a table of the file."""
        return cls(where=table["in"], **{k: v for k, v in table.items() if k != "in"})

    def measure(self, of: Experiment) -> str:
        """The query."""
        if self.sql:
            return self.sql
        return next(each.measure for each in of.claims if each.id == self.claim)


@dataclass(frozen=True)
class Number:
    """Of a group of rows: what a form may say of it."""

    mean: float
    half: float
    least: float
    most: float


def every() -> list[Quoted]:
    """Every phrase, paper by paper."""
    return [
        Quoted.of(table)
        for path in sorted(FOLDER.glob("*.toml"))
        for table in tomllib.loads(path.read_text())["quoted"]
    ]


def text(of: Experiment, where: str) -> str:
    """What stands there, with single spaces."""
    if where == "docs":
        return " ".join(DOCS.read_text("utf-8").split())
    if where == "finding":
        return " ".join(of.about.finding.split())
    if where.startswith("reading "):
        name = where.removeprefix("reading ")
        return " ".join(next(each.why for each in of.readings if each.id == name).split())
    made = next(each for each in of.claims if each.id == where)
    proof = made.contradicted.why if made.contradicted else ""
    parts = (made.note, made.cause, made.authors, made.basis, made.fitted, proof)
    return " ".join(" ".join((*parts, evidence(of.id, made.id))).split())


def evidence(name: str, claim: str) -> str:
    """What the page of evidence says of a claim."""
    _, _, there = EVIDENCE.read_text("utf-8").partition(f"### {name} {claim}\n")
    return re.split(r"^##", there, maxsplit=1, flags=re.MULTILINE)[0]


def told(quoted: Quoted, of: Experiment, tables: Tables) -> str:
    """What the runs say, in the words of the text."""
    sql = quoted.measure(of)
    there = tables.of(quoted.reading)
    if not there.entries:
        return f"(runs are missing: none of the reading {quoted.reading})"
    found = there.query(sql, ("seed", "value"), "sql", "scripts/quoted")
    groups: dict[tuple[object, ...], list[float]] = {}
    for row in found.iter_rows(named=True):
        group = tuple(v for k, v in row.items() if k not in ("seed", "value"))
        groups.setdefault(group, []).append(float(row["value"]))
    numbers = []
    for values in groups.values():
        made = estimate(values)
        numbers.append(Number(made.mean, made.half_width or 0.0, min(values), max(values)))
    try:
        return quoted.form.format(*numbers)
    except IndexError:  # of a reading there may be no runs, or not all
        return f"(runs are missing: {len(numbers)} groups of rows for {quoted.form})"


@cache
def blank(name: str) -> tuple[Experiment, Tables]:
    """An experiment with its tables before any run, on which a query can be tried."""
    of = experiment.load(name)
    entries = [entry for _, entry in of.plan(replace(of.size("quick"), seeds=(1,), readings=False))]
    return of, Blank(entries, Store(Path()), of.views)


def try_query(quoted: Quoted) -> None:
    """Tries its query without runs."""
    of, tables = blank(quoted.runs or quoted.at)
    tables.query(quoted.measure(of), ("seed", "value"), "sql", "scripts/quoted")


def differing(folder: Path) -> Iterator[str]:
    """What the texts say otherwise than these runs."""
    store = Store(folder / "runs")
    tables: dict[str, tuple[Experiment, Tables]] = {}
    compared = False
    for quoted in every():
        name = quoted.runs or quoted.at
        if name not in tables:
            of = experiment.load(name)
            entries = [entry for _, entry in of.plan(of.size("full"))]
            there = [entry for entry in entries if entry.key in store]
            if there and len(there) < len(entries):
                yield f"{name}: runs are missing, those that are there are taken"
            elif not there:
                print(f"{name}: there are no runs of it", file=sys.stderr)
            entries = there
            asked = of.try_queries(entries, store) if entries else set()
            tables[name] = of, Tables(entries, store, of.views, asked)
        of, whole = tables[name]
        if not whole.entries:
            continue
        compared = True
        if (found := told(quoted, of, whole)) != quoted.says:
            yield f"{quoted.at} {quoted.where}: '{quoted.says}', and the runs: '{found}'"
    if not compared:
        yield f"{folder}: no runs of this version that a text quotes"


def main() -> int:
    """Prints what differs."""
    lines = list(differing(Path(sys.argv[1] if len(sys.argv) > 1 else "results")))
    print("\n".join(lines) or "every number is that of the runs")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
