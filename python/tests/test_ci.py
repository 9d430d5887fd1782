"""Where everything is to be tried (`CI`, set and not empty, as in scripts) skipping is failing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("1", 1)])
def test_what_is_skipped_fails_only_there(tmp_path: Path, ci: str, code: int) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_it.py").write_text("import pytest\n\n\ndef test_it():\n    pytest.skip('')\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, str(tmp_path)], env=os.environ | {"CI": ci}, capture_output=True, check=False
    )
    assert done.returncode == code, done.stdout
