"""The Debian package of the gateway."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb: not on Debian")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deb")
    made = subprocess.run(
        [ROOT / "scripts/deb.sh", shutil.which("true") or "true", folder],
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(made.stdout.strip())


def test_the_package_has_a_program_and_a_unit_that_calls_it(package: Path, tmp_path: Path) -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert package.name.startswith(f"bluewater-gateway_{version}_")
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path / "root"], check=True)
    unit = tmp_path / "root/usr/lib/systemd/system/bluewater-gateway@.service"
    called = re.findall(r"^Exec\w+=(/usr/bin\S+)", unit.read_text(), re.MULTILINE)
    assert len(called) == 2
    for path in called:
        assert (tmp_path / "root" / path[1:]).stat().st_mode & 0o777 == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="dpkg installs as root alone")
def test_services_stay_as_they_are_until_the_package_is_purged(
    package: Path, tmp_path: Path
) -> None:
    root, programs = tmp_path / "root", tmp_path / "bin"
    for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "run/systemd/system"):
        (root / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    programs.mkdir()
    systemctl = programs / "systemctl"
    systemctl.write_text(
        f"""#!/bin/sh
echo "$*" >> {tmp_path}/asked
[ "$1" != list-units ] || echo 'bluewater-gateway@home.service loaded active running'
"""
    )
    systemctl.chmod(0o755)

    def dpkg(*arguments: str | Path) -> tuple[str, list[str]]:
        """What dpkg prints, and what it asked of systemd."""
        asked = tmp_path / "asked"
        asked.write_text("")
        done = subprocess.run(
            ["dpkg", "--root", root, "--force-script-chrootless", *arguments],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}:/usr/sbin:/sbin"},
        )
        return done.stdout, asked.read_text().splitlines()

    enabled = root / "etc/systemd/system/multi-user.target.wants/bluewater-gateway@home.service"
    dpkg("--install", package)
    (root / "etc/bluewater/home.toml").write_text('rate = "10mbit"\n')
    enabled.parent.mkdir(parents=True)
    enabled.symlink_to("/usr/lib/systemd/system/bluewater-gateway@.service")

    text, asked = dpkg("--install", package)
    assert "on with the old program: bluewater-gateway ctl home upgrade" in text
    assert not [what for what in asked if "stop" in what or "restart" in what]
    assert enabled.is_symlink()

    _, asked = dpkg("--remove", "bluewater-gateway")
    assert asked[0] == "stop bluewater-gateway@*.service"
    assert enabled.is_symlink()

    dpkg("--purge", "bluewater-gateway")
    assert not enabled.is_symlink()
    assert (root / "etc/bluewater/home.toml").exists(), "what users wrote is theirs"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("lintian"), reason="no lintian")
def test_lintian_finds_nothing(package: Path) -> None:
    # The program of this test is another one.
    others = "undeclared-elf-prerequisites,mismatched-override"
    done = subprocess.run(
        ["lintian", "--allow-root", "--suppress-tags", others, package],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout + done.stderr, done.returncode) == ("", 0)
