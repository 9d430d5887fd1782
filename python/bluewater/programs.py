"""Finding and building the compiled programs that Python calls."""

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
    """Takes programs as they are, unbuilt: reading results must not wait for a compiler."""
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

    It is the path in ``BLUEWATER_BENCH``, else the source tree's program, else the one installed
    with the package, else the one in ``PATH``. A source tree builds it if it is missing or older
    than its sources, except within :func:`as_they_are`.

    Raises:
        InputError: There is no such program.
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
            hint=f"`cargo build --release --locked --bin {name}` builds it, in some minutes",
        )
    raise InputError(
        f"the program {name} is not installed",
        hint=f"run this in the source tree with Rust installed, or set {variable} to its path",
    )


_RECORDING = b"bwarr"


def is_recording(path: Path) -> bool:
    """Whether a file begins as a gateway's recording does; raises :class:`OSError`."""
    with path.open("rb") as file:
        return file.read(len(_RECORDING)) == _RECORDING


def _is_current(program: Path) -> bool:
    """Whether a program exists and is newer than all its sources, which cargo lists."""
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
