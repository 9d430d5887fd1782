#!/usr/bin/env python3
"""Prints a version's section of the changelog, the text of a release: ``notes.py 0.1.0``."""

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def section(text: str, version: str) -> str:
    """What stands below the version's heading; empty if there is none."""
    found = re.search(rf"^## \[{re.escape(version)}\].*\n((?:(?!## ).*\n?)*)", text, re.MULTILINE)
    return found[1].strip() if found else ""


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: notes.py VERSION")
    wanted = sys.argv[1].removeprefix("v")
    notes = section(CHANGELOG.read_text(encoding="utf-8"), wanted)
    if not notes:
        sys.exit(f"{CHANGELOG.name}: no section [{wanted}], or nothing in it")
    print(notes)
