#!/usr/bin/env python3
"""Compares the experiments with those of a revision: ``.venv/bin/python scripts/same.py main``.

For whoever writes experiments shorter or moves them without meaning anything else: claims, plots,
tables and readings are compared with all names and rows filled in, and so are the keys of all runs
that each size plans, which takes some minutes. What differs is printed; the exit code is then 1.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bluewater.study.experiments import experiment
from bluewater.study.experiments.claims import Bound

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
FOLDER = "python/bluewater/experiments"


def told(name: str) -> dict[str, Any]:
    """What an experiment says, by where it says it; no place in a file is among it."""
    made = experiment.load(name)
    parts: dict[str, Any] = msgspec.to_builtins(made, enc_hook=_plain)
    del parts["file"]
    parts["paper"].pop("named")
    for kind in ("claims", "plots", "sheets", "readings"):
        for number, each in enumerate(parts.pop(kind)):
            parts[f"{kind} {each['id']}"] = (number, each)
    for size in made.sizes.values():
        parts[f"runs of {size.name}"] = [
            (task.key, task.label, entry.axes) for task, entry in made.plan(size)
        ]
    return parts


def _plain(value: object) -> object:
    return value.text if isinstance(value, Bound) else repr(value)


def differing(before: Path, after: Path) -> Iterator[str]:
    """Every part of an experiment that is not the same in two folders."""
    found = {}
    for folder in (before, after):
        os.environ["BLUEWATER_EXPERIMENTS"] = str(folder)
        found[folder] = {name: told(name) for name in experiment.known()}
    old, new = found[before], found[after]
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name, {}), new.get(name, {})
        for part in {**was, **now}:
            if was.get(part) != now.get(part):
                yield f"{name}: {part}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: same.py REVISION")
    command = ["git", "archive", sys.argv[1], FOLDER]
    archive = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tempfile.TemporaryDirectory() as held:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(held, filter="data")
        other = list(differing(Path(held) / FOLDER, ROOT / FOLDER))
    print("\n".join(other) or "the same")
    sys.exit(1 if other else 0)
