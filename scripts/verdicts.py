#!/usr/bin/env python3
"""Keeps the verdicts of a full size: ``scripts/verdicts.py results``, which `make verdicts` calls.

Reads ``claims.json`` of each experiment in the folder, as ``bluewater reproduce --size full`` wrote
it, and writes ``verdicts.json`` beside the experiments. An experiment without a full size in the
folder has no verdict there.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bluewater import _core
from bluewater.files import write_text
from bluewater.study.experiments import experiment
from bluewater.study.experiments.verdicts import FILE, Verdicts, gather


def lines(found: Verdicts) -> str:
    """It as JSON with a line for each paper and each claim, so that a difference is read."""

    def plain(value: object) -> str:
        return msgspec.json.encode(value).decode()

    table = ",\n".join(f"  {plain(row)}" for row in found.table)
    claims = ",\n".join(f"  {plain(name)}: {plain(each)}" for name, each in found.claims.items())
    head = "".join(f' "{key}": {plain(getattr(found, key))},\n' for key in ("core", "date", "runs"))
    return f'{{\n{head} "table": [\n{table}\n ],\n "claims": {{\n{claims}\n }}\n}}\n'


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: verdicts.py RESULTS")
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    found = gather(Path(sys.argv[1]), _core.version(), day)
    if not found.claims:
        sys.exit(f"{sys.argv[1]}: no experiment of the full size")
    write_text(experiment.root() / FILE, lines(found))
