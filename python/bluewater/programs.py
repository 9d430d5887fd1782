"""The compiled programs that are called from here."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from bluewater.errors import InputError


@cache
def find(name: str) -> str:
    """The path of a program such as ``bluewater-bench``.

    It is what ``BLUEWATER_BENCH`` names, else the source tree's, else the one in ``PATH``. In a
    source tree it is built first, which costs nothing if nothing has changed.
    """
    variable = name.upper().replace("-", "_")
    if chosen := os.environ.get(variable):
        return chosen
    tree = Path(__file__).parents[2]
    if (tree / "Cargo.toml").exists() and shutil.which("cargo"):
        build = ["cargo", "build", "--release", "--quiet", "--bin", name]
        if subprocess.run(build, cwd=tree, check=False).returncode == 0:
            target = tree / os.environ.get("CARGO_TARGET_DIR", "target")
            return str(target / "release" / name)
    if installed := shutil.which(name):
        return installed
    raise InputError(
        f"the program {name} is not there",
        hint=f"run this in the source tree with Rust installed, or set {variable} to its path",
    )
