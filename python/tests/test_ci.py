"""No test is left out unnoticed: where everything is to be tried (`CI`) skipping is failing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(("ci", "code"), [("", 0), ("1", 1)])
def test_what_is_skipped_fails_only_there(tmp_path: Path, ci: str, code: int) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_it.py").write_text("import pytest\n\n\ndef test_it():\n    pytest.skip('')\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, str(tmp_path)], env=os.environ | {"CI": ci}, capture_output=True, check=False
    )
    assert done.returncode == code, done.stdout


CRATES = Path(__file__).parents[2] / "crates"


@pytest.mark.skipif(not CRATES.is_dir(), reason="the crates are not here")
def test_each_file_of_rust_tests_is_in_their_program() -> None:
    programs = list(CRATES.glob("*/tests/all.rs"))
    assert len(programs) > 5
    for program in programs:
        files = {path.stem for path in program.parent.glob("*.rs") if path != program}
        folders = {path.parent.name for path in program.parent.glob("*/mod.rs")}
        listed = re.findall(r"^mod (\w+);$", program.read_text("utf-8"), re.MULTILINE)
        assert files | folders == set(listed), program
