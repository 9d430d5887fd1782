"""Results on disk: one directory a run, written whole or not at all, named by its inputs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater.errors import InputError, StorageError
from bluewater.results import host
from bluewater.results.result import Result

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1
_TEMPORARY = ".tmp-"


def run_key(canonical: str, version: str) -> str:
    """The name of a run: 32 hexadecimal digits over its canonical scenario and the version."""
    return hashlib.sha256(f"{canonical}\0{version}".encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Store:
    """A folder of finished runs.

    An entry is made in a temporary folder beside its final place and renamed into it, so that an
    entry that exists is complete. Two processes may write the same entry: the first one wins, and
    as a run is a function of its inputs both hold the same.
    """

    root: Path

    def path(self, key: str) -> Path:
        """Where the entry of this name is, or would be."""
        return self.root / key[:2] / key

    def __contains__(self, key: str) -> bool:
        return self.path(key).is_dir()

    def prepare(self) -> None:
        """Makes the folder and removes what writers that no longer run have left half done."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.root, error) from error
        for left in self.root.glob(f"{_TEMPORARY}*"):
            if not _alive(int(left.name.rpartition("-")[2])):
                shutil.rmtree(left, ignore_errors=True)

    def write(self, key: str, result: Result) -> None:
        """Adds an entry atomically; an entry that is already there stays as it is."""
        final = self.path(key)
        temporary = self.root / f"{_TEMPORARY}{key}-{os.getpid()}"
        try:
            temporary.mkdir(parents=True)
            result.save(temporary)
            (temporary / "meta.json").write_text(_meta(key, result), encoding="utf-8")
            final.parent.mkdir(exist_ok=True)
            if not final.exists():
                temporary.rename(final)
        except (OSError, pl.exceptions.PolarsError) as error:
            if key not in self:
                raise _unwritable(self.root, error) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def read(self, key: str) -> Result:
        """The entry of this name."""
        return read_result(self.path(key))

    def remove(self, key: str) -> None:
        """Forgets an entry."""
        shutil.rmtree(self.path(key), ignore_errors=True)


def read_result(folder: Path) -> Result:
    """Reads one entry; its tables are read when asked for."""
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        scenario = (folder / "scenario.toml").read_text(encoding="utf-8")
        summary = pl.read_parquet(folder / "summary.parquet").row(0, named=True)
    except FileNotFoundError as error:
        raise InputError(
            "not the folder of a run: it holds no meta.json, scenario.toml or summary.parquet",
            file=str(folder),
            hint="`bluewater run FILE --out FOLDER` makes one",
        ) from error
    return Result(
        summary=summary,
        scenario=scenario,
        decision_hash=meta["decision_hash"],
        version=meta["version"],
        # Not a closure: results are sent to the processes that draw.
        load=partial(_table, folder),
    )


def _table(folder: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(folder / f"{name}.parquet")


def _meta(key: str, result: Result) -> str:
    meta: dict[str, Any] = {
        "format": FORMAT,
        "key": key,
        "version": result.version,
        "decision_hash": result.decision_hash,
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": host.facts(),
    }
    return json.dumps(meta, indent=2) + "\n"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _unwritable(root: Path, error: Exception) -> StorageError:
    # Polars passes the system's error on in words only.
    told = re.search(r"os error ([0-9]+)", str(error))
    number = error.errno if isinstance(error, OSError) else int(told[1]) if told else None
    reason = os.strerror(number) if number else str(error)
    return StorageError(
        f"cannot write results: {reason}",
        file=str(root),
        hint="finished runs are kept; make room or choose another folder with --out, then run the "
        "same command again to go on",
    )
