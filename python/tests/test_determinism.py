"""The release build, from Python and from the command line, decides as the Rust tests do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bluewater

TESTS = Path(__file__).parents[2] / "crates/sim/tests"
PINNED = sorted((TESTS / "golden").glob("*.toml"))

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(not PINNED, reason="the pinned scenarios are not here"),
]


def pin(file: Path) -> str:
    """The hash that the Rust tests name."""
    table = (TESTS / "golden.rs").read_text("utf-8")
    found = re.search(rf'\("{file.stem}", "([0-9a-f]{{16}})"\)', table)
    assert found is not None, file.stem
    return found[1]


@pytest.mark.parametrize("file", PINNED, ids=lambda file: file.stem)
def test_python_decides_as_rust(file: Path) -> None:
    assert bluewater.run(file).decision_hash == pin(file)


def test_the_command_line_decides_as_rust(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bluewater", "run", str(PINNED[0]), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["decision_hash"] == pin(PINNED[0])
