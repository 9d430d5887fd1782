"""Results on disk: one folder per run, written atomically, named by a hash of the run's inputs."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import shutil
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import polars as pl

from bluewater.errors import DamagedWarning, InputError, StorageError
from bluewater.files import check_kind
from bluewater.results.result import (
    SMALL_TABLES,
    TABLES,
    Result,
    check_name,
    digest,
    of_lists,
    schema,
    sealed,
    without_rows,
)
from bluewater.results.share import Share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bluewater.results.result import Columns

_TEMPORARY = ".tmp-"
_LAST = "last"
"""The file in a store that names the newest run: the last one that a command made or found."""
_FORGOTTEN_S = 86_400
"""Seconds after which a temporary folder counts as abandoned if its writer cannot be checked."""

_LONGEST = 255
"""Most bytes of a file's name, on every common file system."""


def run_key(canonical: str, version: str) -> str:
    """The name of a run: 32 hexadecimal digits over its canonical scenario and the version."""
    return hashlib.sha256(f"{canonical}\0{version}".encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Store:
    """A folder of finished runs.

    An entry is made in a temporary folder beside its final place and then renamed, so that every
    entry is complete. Several processes and machines may write the same entry: the first one wins,
    and all would write the same, since a run is a function of its inputs.

    Attributes:
        root: The folder.
        share: The address of a store for machines that do not see the folder; every added entry is
            copied there. See :class:`~bluewater.results.share.Share`.
    """

    root: Path
    share: str = ""

    def __post_init__(self) -> None:
        """Refuses an address in place of a folder: runs would go into a folder called ``s3:``."""
        _check_local(self.root)

    def path(self, key: str) -> Path:
        """The folder of the entry with this name, whether it exists or not."""
        return self.root / key[:2] / key

    def __contains__(self, key: str) -> bool:
        return self.path(key).is_dir()

    def prepare(self) -> None:
        """Makes the folder, and removes temporary folders of writers that have ended.

        A writer on another machine cannot be checked: its temporary folder goes after a day.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.root, error) from error
        for left in self.root.glob(f"{_TEMPORARY}*"):
            if _is_left(left):
                shutil.rmtree(left, ignore_errors=True)

    def sync(self, keys: Iterable[str]) -> None:
        """Copies undamaged entries between the folder and the shared store, in both directions."""
        keys = list(dict.fromkeys(keys))
        self.put_aside(keys)
        if not self.share:
            return
        share = Share(self.share)
        there = set(share.held(keys))
        self.prepare()
        for key in keys:
            if key in self and key not in there:
                share.write(key, self.files(key))
            elif key in there and key not in self and (files := share.read(key)):
                self.add(key, files)
                self.put_aside([key])

    def write(self, key: str, result: Result) -> None:
        """Adds an entry atomically; an existing entry stays as it is."""
        self._enter(key, lambda folder: result.save(folder, key))
        if self.share:
            Share(self.share).write(key, self.files(key))

    def remember(self, key: str) -> None:
        """Marks this run as the newest, whether it was made or found."""
        temporary = self.root / f"{_TEMPORARY}{_here()}-{os.getpid()}-{uuid4().hex[:12]}.last"
        with suppress(OSError):  # a read-only folder
            temporary.write_text(key, encoding="ascii")
            temporary.replace(self.root / _LAST)

    def newest(self) -> str | None:
        """The newest run: the last one that a command made or found, or else the last one made.

        The time of its files decides, not the folder's, which changes with every picture.
        """
        made = {
            path.parent.name: path.stat().st_mtime_ns for path in self.root.glob("??/*/meta.json")
        }
        with suppress(OSError):
            marked = self.root / _LAST
            key = marked.read_text(encoding="ascii")
            if key in made:
                made[key] = max(made[key], marked.stat().st_mtime_ns)
        return max(made, key=lambda key: (made[key], key), default=None)

    def files(self, key: str) -> dict[str, bytes]:
        """The files of an entry, by name."""
        return {path.name: path.read_bytes() for path in self.path(key).iterdir()}

    def add(self, key: str, files: Mapping[str, bytes]) -> None:
        """Adds an entry from the :meth:`files` of another store, as :meth:`write` does a result."""

        def fill(folder: Path) -> None:
            folder.mkdir()
            for name, content in files.items():
                (folder / name).write_bytes(content)

        self._enter(key, fill)

    def _enter(self, key: str, fill: Callable[[Path], object]) -> None:
        final = self.path(key)
        temporary = self.root / f"{_TEMPORARY}{_here()}-{os.getpid()}-{uuid4().hex[:12]}"
        try:
            fill(temporary)
            final.parent.mkdir(exist_ok=True)
            if not final.exists():
                temporary.rename(final)
        except OSError as error:
            if key not in self:
                raise _unwritable(self.root, error) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def read(self, key: str) -> Result:
        """The entry of this name."""
        return read_result(self.path(key), key)

    def put_aside(self, keys: Iterable[str]) -> None:
        """Moves damaged entries of these names into the folder ``damaged``, with a warning each.

        An entry is damaged if a file is missing or differs from what was written, as after a crash
        or on a full disk, or if it is another run under this name.
        """
        for key in keys:
            if key in self and (problem := _damage(self.path(key), key)):
                self._move_aside(key, problem)

    def _move_aside(self, key: str, problem: str) -> None:
        folder = self.root / "damaged"
        try:
            folder.mkdir(exist_ok=True)
            aside = folder / key
            if aside.exists():
                aside = folder / f"{key}-{uuid4().hex[:8]}"
            self.path(key).rename(aside)
        except OSError as error:
            if key not in self:
                return  # another process was faster
            raise _unwritable(self.root, error) from error
        warnings.warn(
            f"{problem}: the stored run is damaged, and is made again (put aside as {aside})",
            DamagedWarning,
            stacklevel=3,
        )

    def remove(self, key: str) -> None:
        """Deletes an entry."""
        shutil.rmtree(self.path(key), ignore_errors=True)


def _check_local(folder: Path) -> None:
    first = folder.parts[0] if folder.parts else ""
    if len(first) > 2 and first.endswith(":"):
        raise InputError(
            "an address, where a folder of this machine is needed",
            file=str(folder),
            hint="--share ADDRESS (share= in Python) also keeps runs at an address; --out is a "
            "folder",
        )
    if "\0" in str(folder) or any(len(os.fsencode(part)) > _LONGEST for part in folder.parts):
        raise InputError(
            "the name is too long for a file system, or has a null character",
            key="out",
            value=str(folder),
        )


def run_folder(run: Path, out: Path) -> Path:
    """The folder of a run that is named by its folder, or by its key in the results ``out``."""
    kept = Store(out / "runs").path(run.name)
    return kept if len(run.parts) == 1 and not run.exists() and kept.is_dir() else run


def read_result(folder: Path, key: str = "") -> Result:
    """Reads one entry, checking its name if one is given; tables are read at first use."""
    _check_local(folder)
    for name in ("meta.json", "scenario.toml"):
        check_kind(folder / name)
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        scenario = (folder / "scenario.toml").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError) as error:
        runs = sorted(path.parent for path in folder.glob("runs/??/*/meta.json"))
        raise InputError(
            "not the folder of a run: it holds no meta.json or no scenario.toml"
            if folder.exists()
            else "no such folder",
            file=str(folder),
            hint=f"it holds {len(runs)}, such as {runs[0]}"
            if runs
            else "`bluewater run FILE` makes one, and prints its name",
        ) from error
    except (ValueError, RecursionError) as error:
        raise _damaged(_damage(folder) or str(folder), error) from error
    try:
        _check_seal(meta, key)
        digests = {} if _is_old(meta) else meta["files"]
        decision_hash, version = meta["decision_hash"], meta["version"]
        rows = meta["tables"] if meta["format"] > 3 else dict.fromkeys(_parquet(folder))
        if meta["format"] == 1:
            summary = _table(folder, digests, "summary").row(0, named=True)
        else:
            summary = meta["summary"]
        captures, held = meta.get("captures", ()), meta.get("held", ())
        broken = meta.get("broken", ())
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(str(folder / "meta.json"), error) from error
    _check(folder / "scenario.toml", scenario.encode(), digests)
    return Result(
        summary=summary,
        scenario=scenario,
        decision_hash=decision_hash,
        version=version,
        # Not a closure: results are pickled for the processes that draw.
        load=partial(_load, folder, digests),
        names=list(rows),
        lists=partial(_lists, folder, digests),
        empty=[name for name, number in rows.items() if number == 0],
        captures=[(str(file), *map(int, counts)) for file, *counts in captures],
        held=[(int(flow), str(name), int(calls), int(ns)) for flow, name, calls, ns in held],
        broken=[(int(flow), int(ns), str(why)) for flow, ns, why in broken],
    )


def _parquet(folder: Path) -> list[str]:
    return [name for name in TABLES if (folder / f"{name}.parquet").exists()]


def _lists(folder: Path, digests: Mapping[str, str]) -> Mapping[str, Columns]:
    """The small tables, all from one file: reading one takes as long as reading all."""
    if SMALL_TABLES not in digests:
        return {}
    path = folder / SMALL_TABLES
    try:
        content = path.read_bytes()
        _check(path, content, digests)
        return dict(json.loads(content))
    except (OSError, ValueError, TypeError) as error:
        raise _damaged(str(path), error) from error


def _load(folder: Path, digests: Mapping[str, str], name: str) -> pl.DataFrame:
    """One table; empty if this kind of run does not have it."""
    check_name(name)
    if digests and f"{name}.parquet" not in digests:
        columns = _lists(folder, digests).get(name)
        return without_rows(name, *schema(name)) if columns is None else of_lists(columns, name)
    return _table(folder, digests, name)


def _table(folder: Path, digests: Mapping[str, str], name: str) -> pl.DataFrame:
    path = folder / f"{name}.parquet"
    try:
        content = path.read_bytes()
        _check(path, content, digests)
        return pl.read_parquet(content)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _damaged(str(path), error) from error


def _check(path: Path, content: bytes, digests: Mapping[str, str]) -> None:
    if path.name in digests and digest(content) != digests[path.name]:
        raise _damaged(str(path), ValueError("the file changed after it was written"))


def _damage(folder: Path, key: str = "") -> str | None:
    """The damaged file of an entry, if there is one.

    With ``key`` it also checks that the entry is that run: folders or objects that somebody merges
    may be mixed up, and another run's results look just as good.
    """
    path = folder / "meta.json"
    try:
        check_kind(path)
        meta = json.loads(path.read_text(encoding="utf-8"))
        _check_seal(meta, key)
        for name, written in meta["files"].items():
            path = folder / name
            check_kind(path)
            if (path.stat().st_size if _is_old(meta) else digest(path.read_bytes())) != written:
                return str(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return str(path)
    return None


def _is_old(meta: Mapping[str, Any]) -> bool:
    """Whether the metadata have lengths in place of digests."""
    return int(meta["format"]) < 3


def _check_seal(meta: Mapping[str, Any], key: str) -> None:
    if not _is_old(meta) and meta["digest"] != sealed(meta)["digest"]:
        raise ValueError("the file changed after it was written")
    if key and meta["key"] != key:
        raise ValueError(f"it is the run {meta['key']}, under another run's name")


def _damaged(file: str, error: Exception) -> InputError:
    return InputError(
        f"a stored run that is damaged: {error}",
        file=file,
        hint="repeat the command that made it: it puts this folder aside and makes the run again",
    )


@cache
def _here() -> str:
    """A name, without hyphens, for the machine or container whose process numbers these are."""
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _is_left(folder: Path) -> bool:
    """Whether the writer of a temporary folder has ended."""
    _, where, pid, *_ = f"{folder.name}--".split("-")
    if where == _here() and pid.isdecimal():
        return not _alive(int(pid))
    try:
        return time.time() - folder.stat().st_mtime > _FORGOTTEN_S
    except OSError:
        return False  # it is gone


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _unwritable(root: Path, error: OSError) -> StorageError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return StorageError(
        f"cannot write results: {reason}",
        file=str(root),
        hint="finished runs are kept; make room or choose another folder with --out, then run the "
        "same command again to continue"
        if error.errno in _FULL
        else "--out names another folder",
    )


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Reasons why a folder that was writable no longer is."""
