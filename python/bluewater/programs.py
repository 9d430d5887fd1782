"""The compiled programs that are called from here."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUILDING = [True]
"""Whether a program may be built."""


@contextmanager
def as_they_are() -> Iterator[None]:
    """Has programs be taken as they are: who wants to read waits for no compiler."""
    before, _BUILDING[0] = _BUILDING[0], False
    find.cache_clear()
    try:
        yield
    finally:
        _BUILDING[0] = before
        find.cache_clear()


@cache
def find(name: str) -> str:
    """The path of a program such as ``bluewater-bench``.

    It is what ``BLUEWATER_BENCH`` names, else the source tree's, else the one that was installed
    with the package, else the one in ``PATH``. In a source tree it is built if it is not there or
    older than what it was made of, but for :func:`as_they_are`.

    Raises:
        InputError: There is none.
    """
    variable = name.upper().replace("-", "_")
    if chosen := os.environ.get(variable):
        return chosen
    tree = Path(__file__).parents[2]
    if (tree / "Cargo.toml").exists():
        target = tree / os.environ.get("CARGO_TARGET_DIR", "target")
        program = target / "release" / name
        if _is_current(program) or (_BUILDING[0] and _build(tree, name)):
            return str(program)
        if not _BUILDING[0] and program.exists():
            return str(program)
    import platform  # noqa: PLC0415
    import shutil  # noqa: PLC0415
    import sysconfig  # noqa: PLC0415

    if installed := shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name):
        return installed
    from bluewater.errors import InputError  # noqa: PLC0415

    if name == "bluewater-gateway" and platform.system() != "Linux":
        raise InputError("real packets need Linux", hint="the simulator runs everywhere")
    if not _BUILDING[0] and (tree / "Cargo.toml").exists():
        raise InputError(
            f"the program {name} is not built",
            hint=f"`cargo build --release --locked --bin {name}` does it, in some minutes",
        )
    raise InputError(
        f"the program {name} is not there",
        hint=f"run this in the source tree with Rust installed, or set {variable} to its path",
    )


def _is_current(program: Path) -> bool:
    """Whether a program is there and not older than any of its sources, which cargo lists."""
    try:
        made = program.stat().st_mtime
        listed = program.with_name(f"{program.name}.d").read_text()
        sources = listed.partition(": ")[2].replace("\\ ", "\0").split()
        return all(Path(path.replace("\0", " ")).stat().st_mtime <= made for path in sources)
    except OSError:
        return False


def _build(tree: Path, name: str) -> bool:
    import shutil  # noqa: PLC0415
    import subprocess  # noqa: PLC0415

    if not shutil.which("cargo"):
        return False
    print(f"building {name}, which takes some minutes the first time", file=sys.stderr)
    build = ["cargo", "build", "--release", "--locked", "--quiet", "--bin", name]
    return subprocess.run(build, cwd=tree, check=False).returncode == 0
