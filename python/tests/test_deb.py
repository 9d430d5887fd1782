"""The Debian package of the gateway."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb: not on Debian")
def test_the_package_has_a_program_and_a_unit_that_calls_it(tmp_path: Path) -> None:
    program = tmp_path / "gateway"
    program.write_text("#!/bin/sh\n")
    made = subprocess.run(
        [ROOT / "scripts/deb.sh", program, tmp_path], capture_output=True, text=True, check=True
    )
    package = made.stdout.strip()
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert Path(package).name.startswith(f"bluewater-gateway_{version}_")
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path / "root"], check=True)
    unit = tmp_path / "root/usr/lib/systemd/system/bluewater-gateway@.service"
    called = re.findall(r"^Exec\w+=(/usr/bin\S+)", unit.read_text(), re.MULTILINE)
    assert len(called) == 2
    for path in called:
        assert (tmp_path / "root" / path[1:]).stat().st_mode & 0o777 == 0o755
