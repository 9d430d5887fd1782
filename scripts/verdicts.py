#!/usr/bin/env python3
"""Keeps the verdicts of a full size: ``scripts/verdicts.py results``, which `make verdicts` calls.

Reads ``claims.json`` of each experiment in the folder, as ``bluewater reproduce --size full`` wrote
it, and writes ``verdicts.json`` beside the experiments. An experiment without a full size in the
folder has no verdict there.

``scripts/verdicts.py --keep [results]`` keeps what is measured of all other experiments and derives
their verdicts anew: what is fitted, what is contradicted, and the counts. It names the claims that
need runs, because their bound changed.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bluewater import _core
from bluewater.files import write_text
from bluewater.study.experiments import experiment
from bluewater.study.experiments.verdicts import FILE, NONE, Verdicts, gather, kept, merged


def lines(found: Verdicts) -> str:
    """It as JSON with a line for each paper and each claim, so that a difference is read."""

    def plain(value: object) -> str:
        return msgspec.json.encode(value).decode()

    table = ",\n".join(f"  {plain(row)}" for row in found.table)
    claims = ",\n".join(f"  {plain(name)}: {plain(each)}" for name, each in found.claims.items())
    head = "".join(f' "{key}": {plain(getattr(found, key))},\n' for key in ("core", "date"))
    return f'{{\n{head} "table": [\n{table}\n ],\n "claims": {{\n{claims}\n }}\n}}\n'


if __name__ == "__main__":
    keep, arguments = "--keep" in sys.argv, [each for each in sys.argv[1:] if each != "--keep"]
    if len(arguments) + keep < 1 or len(arguments) > 1:
        sys.exit("usage: verdicts.py RESULTS, or verdicts.py --keep [RESULTS]")
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    found = gather(Path(arguments[0]), _core.version(), day) if arguments else NONE
    if arguments and not found.claims:
        sys.exit(f"{arguments[0]}: no experiment of the full size")
    if keep:
        found = merged(kept(), found)
        for name in sorted(kept().claims.keys() - found.claims.keys()):
            print(f"needs runs: {name}")
    write_text(experiment.root() / FILE, lines(found))
