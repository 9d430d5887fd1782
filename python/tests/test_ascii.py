"""A terminal that knows ASCII alone, in a locale that Python leaves as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SWEEP

pytestmark = pytest.mark.core

_ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def told(folder: Path, *line: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bluewater", *line],
        cwd=folder, env={**os.environ, **_ASCII}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:].decode()
    return done.stdout.decode("ascii")


@pytest.mark.slow
def test_what_ascii_lacks_is_a_question_mark(tmp_path: Path) -> None:
    assert "?" in told(tmp_path, "explain", "red")
    assert "feng/fig6-8" in told(tmp_path, "list")


def test_a_folder_s_name_is_not_ascii(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP)
    told(tmp_path, "sweep", "sweep.toml", "--jobs", "1", "--out", "o 4 ü")
    written = {path.name for path in (tmp_path / "o 4 ü" / "sweep").iterdir()}
    assert {"runs.parquet", "runs.csv", "summary.csv", "series.parquet"} <= written
