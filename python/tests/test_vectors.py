from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "crates" / "aqm" / "vectors"

pytestmark = pytest.mark.skipif(not VECTORS.is_dir(), reason="the crates are not here")


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(VECTORS / "check.py"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_another_implementation_agrees_with_the_vectors() -> None:
    page = (ROOT / "docs" / "embed.md").read_text("utf-8")
    printed = re.search(r"check\.py\n```\n\n```text\n(.*?)```", page, re.S)
    assert printed
    assert checked(VECTORS).stdout == printed[1]


@pytest.mark.parametrize(
    ("name", "key", "value"), [("droptail", "drop", []), ("codel", "mark", []), ("codel", "ecn", 0)]
)
def test_another_decision_is_found(tmp_path: Path, name: str, key: str, value: object) -> None:
    shutil.copytree(VECTORS, tmp_path, dirs_exist_ok=True)
    file = (tmp_path / name).with_suffix(".json")
    cases = json.loads(file.read_text("utf-8"))
    event = next(e for e in cases[0]["events"] if e.get(key) and (key != "ecn" or "out" in e))
    event[key] = value
    file.write_text(json.dumps(cases), "utf-8")
    done = checked(tmp_path)
    assert done.returncode == 1
    assert f"{name}, at {event['t']} ns" in done.stderr
