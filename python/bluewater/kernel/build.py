"""Building a kernel in user mode from a tree of sources, which it leaves as it is."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bluewater.errors import InputError
from bluewater.kernel.uml import GUEST

if TYPE_CHECKING:
    from collections.abc import Sequence

TOOLS = {
    "make": "make", "cc": "gcc libc6-dev", "flex": "flex", "bison": "bison", "bc": "bc",
    "ip": "iproute2", "tc": "iproute2",
}  # fmt: skip
"""The programs that building and measuring need, with their packages of Debian and Ubuntu."""
_OTHERS = {"sch_api", "sch_generic", "sch_netem"}
"""Files of net/sched that keep the kernel's random numbers: no disciplines, or none under test."""


class NotBuiltError(Exception):
    """The sources do not compile; the text is the end of the compiler's."""


@dataclass(frozen=True)
class Kernel:
    """A kernel that was built.

    Attributes:
        folder: Where it was built.
        version: Its version.
        modules: Its queue disciplines, such as ``sch_codel``.
        has_exact_roots: Whether CAKE has the first roots of CoDel exact, as since Linux 6.12.
        has_fast_path: Whether FQ has a path past its flows, as since Linux 6.7.
    """

    folder: Path
    version: str
    modules: frozenset[str]
    has_exact_roots: bool
    has_fast_path: bool

    @property
    def program(self) -> Path:
        """What boots."""
        return self.folder / "build/linux"

    @property
    def digest(self) -> str:
        """A name for what it does: sixteen hexadecimal digits over the program."""
        return hashlib.sha256(self.program.read_bytes()).hexdigest()[:16]


def cache() -> Path:
    """Where kernels are built unless the user names a folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bluewater/kernel"


def check_tools() -> None:
    """Looks for all programs that are needed.

    Raises:
        InputError: Some are missing.
    """
    way = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [name for name in TOOLS if not shutil.which(name, path=way)]
    if missing:
        packages = " ".join(dict.fromkeys(TOOLS[name] for name in missing))
        raise InputError(
            f"programs are missing: {', '.join(missing)}",
            hint=f"on Debian and Ubuntu: `sudo apt-get install {packages}`",
        )


def build(tree: Path, out: Path | None = None, jobs: int | None = None) -> Kernel:
    """Builds a kernel, again only what has changed.

    Args:
        tree: A kernel's source tree, or a tarball of one.
        out: Where it is built; by default a folder of the tree's own in :func:`cache`.
        jobs: How many compilers run side by side; by default one for each processor.

    Raises:
        InputError: That is no such tree, or a program is missing.
        NotBuiltError: It does not compile.
    """
    check_tools()
    tree = tree.resolve()
    if out is None:
        name = hashlib.sha256(bytes(tree)).hexdigest()[:8]
        out = cache() / f"{tree.name.split('.tar')[0]}-{name}"
    out = out.resolve()
    source = _unpacked(tree, out / "source") if tree.is_file() else tree
    check(source)
    objects = out / "build"
    objects.mkdir(parents=True, exist_ok=True)
    with (out / "build.log").open("w") as log:
        _make(source, out, log, ["allnoconfig", f"KCONFIG_ALLCONFIG={GUEST / 'config'}"])
    compile_(source, out, jobs)
    chosen = set(re.findall(r"CONFIG_NET_(SCH_\w+)=y", (objects / ".config").read_text()))
    cake = (source / "net/sched/sch_cake.c").read_text()
    # In CAKE's file since Linux 7.0.
    chosen |= {"sch_cake_mq"} if '"cake_mq"' in cake else set()
    return Kernel(
        out,
        _version(source),
        frozenset(name.lower() for name in chosen),
        "inv_sqrt_cache[REC_INV_SQRT_CACHE] = {\n" in cake,
        "fastpath" in (source / "net/sched/sch_fq.c").read_text(),
    )


def compile_(source: Path, out: Path, jobs: int | None = None) -> None:
    """Compiles what has changed since a tree was configured in a folder.

    Raises:
        NotBuiltError: It does not compile.
    """
    with (out / "build.log").open("a") as log:
        _make(source, out, log, [f"-j{jobs or os.cpu_count() or 1}", *_flags(source), "linux"])


def _make(source: Path, out: Path, log: IO[str], what: Sequence[str]) -> None:
    command = ["make", "-C", str(source), f"O={out / 'build'}", "ARCH=um", *what]
    # The same sources make the same program.
    environment = {**os.environ, "KBUILD_BUILD_TIMESTAMP": "0", "KBUILD_BUILD_VERSION": "1"}
    made = subprocess.run(command, stdout=log, stderr=log, env=environment, check=False)
    if made.returncode:
        lines = _errors(Path(log.name).read_text())
        raise NotBuiltError("\n".join([*lines, f"all of it: {log.name}"]))


def _unpacked(tarball: Path, to: Path) -> Path:
    """The tree of a tarball, unpacked again only if the file is another."""
    about = tarball.stat()
    is_of, this = to.with_name("unpacked"), f"{tarball} {about.st_size} {about.st_mtime_ns}"
    if not (to.exists() and is_of.exists() and is_of.read_text() == this):
        part = to.with_name("unpacking")
        for each in (part, to, to.with_name("build")):
            shutil.rmtree(each, ignore_errors=True)
        try:
            with tarfile.open(tarball) as archive:
                archive.extractall(part, filter="tar")
        except tarfile.TarError as error:
            raise InputError(f"no tarball: {error}", file=str(tarball)) from None
        inside = list(part.iterdir())
        (inside[0] if len(inside) == 1 else part).rename(to)
        is_of.write_text(this)
    return to


def check(source: Path) -> None:
    """Refuses folders that are no kernel's, or that hold a build; a tarball may be anything.

    Raises:
        InputError: It is no such tree.
    """
    if source.is_file():
        return
    if not (source / "arch/um").is_dir() or not (source / "net/sched").is_dir():
        raise InputError(
            "not the sources of a Linux kernel",
            file=str(source),
            allowed="a tree with arch/um and net/sched, or a tarball of one",
            hint="on Debian, `apt-get install linux-source-6.1` puts one into /usr/src",
        )
    if (source / ".config").exists() or (source / "include/config").exists():
        raise InputError(
            "the tree holds a build, and kernels build elsewhere from clean trees only",
            file=str(source),
            hint="`make mrproper` there, or name another work tree: `git worktree add ../clean`",
        )


def _flags(source: Path) -> list[str]:
    """Has the compiler read files of ours first: our draws, the line, and the clock."""
    names = sorted(path.stem for path in (source / "net/sched").glob("sch_*.c"))
    before = {name: "draws.h" for name in names if name not in _OTHERS}
    before |= {"flow_dissector": "draws.h", "sch_api": "line.h", "time": "clock.h"}
    return [f"CFLAGS_{name}.o=-include {GUEST / file}" for name, file in before.items()]


def _errors(log: str) -> list[str]:
    """The lines that say why it failed."""
    lines = log.splitlines()
    return [line for line in lines if re.search(r"\b[Ee]rror\b|undefined reference", line)][
        :5
    ] or lines[-5:]


def _version(source: Path) -> str:
    head = dict(
        re.findall(
            r"^(VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)", (source / "Makefile").read_text(), re.M
        )
    )
    return ".".join(head.get(part, "0") for part in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))
