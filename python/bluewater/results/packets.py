"""What became of each packet of a run, in one Parquet file; :mod:`bluewater.results.why` tells it.

A row is a packet that arrived at a managed queue; ``n`` counts them at each queue from 0. The file
says in its metadata what made it: the scenario, the version, the decision hash.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from polars.exceptions import PolarsError

from bluewater.errors import InputError, StorageError
from bluewater.units import seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from bluewater.results.result import Result

_KEY = "bluewater"
_PART = 200_000
"""Rows that are kept in memory before they are written."""

_TYPES = {
    "n": pl.Int64, "arrived_ns": pl.Int64, "flow": pl.Int64, "connection": pl.Int64,
    "seq": pl.Int64, "bytes": pl.Int64, "found_packets": pl.Int64, "found_bytes": pl.Int64,
    "coins": pl.Int64, "marked_ns": pl.Int64, "left_ns": pl.Int64, "kind": pl.String,
    "ecn": pl.String, "marked": pl.String, "fate": pl.String, "dropped": pl.String,
}  # fmt: skip
"""The other columns are numbers that may be missing."""


@dataclass(frozen=True)
class Packets:
    """Where packets are written down, and which.

    Attributes:
        path: A Parquet file, or pcapng if its name ends so.
        flows: Of these flows, as ``0-3,7``; of all if not given.
        time: Those that arrive within, as ``10s..12.5s``.
        every: Of all arrivals at a queue those whose number is a multiple of this.
    """

    path: Path | str
    flows: str | None = None
    time: str | None = None
    every: int = 1

    def selection(self) -> dict[str, Any]:
        """The selection for the core; raises :class:`~bluewater.errors.InputError`."""
        if self.every < 1:
            raise InputError("not a count", key="every", value=self.every, allowed="1 or more")
        chosen: dict[str, Any] = {"every": self.every}
        if self.flows is not None:
            chosen["flows"] = [_flows(part) for part in self.flows.split(",")]
        if self.time is not None:
            first, dots, last = self.time.partition("..")
            if not dots:
                raise InputError(
                    "not a span of time", key="time", value=self.time, allowed="as 10s..12.5s"
                )
            span = tuple(round(seconds(each, "time") * 1e9) for each in (first, last))
            if span[0] > span[1]:
                raise InputError("ends before it begins", key="time", value=self.time)
            chosen["time"] = span
        return chosen


def _flows(text: str) -> tuple[int, int]:
    first, _, last = text.strip().partition("-")
    if not first.isdecimal() or not (last or first).isdecimal() or int(last or first) > 2**32 - 1:
        raise InputError("not flows", key="flows", value=text, allowed="numbers, as 0-3,7")
    return int(first), int(last or first)


class Writer:
    """Writes packets as they come, in parts, and at the end one file of them.

    Args:
        path: The file.
        publish: Makes it of a Parquet file of all packets.
    """

    def __init__(self, path: Path, publish: Callable[[Path, Path], object] = Path.replace) -> None:
        self._path, self._publish = path, publish
        self._frames: list[pl.DataFrame] = []
        self._rows = 0
        self._parts: list[Path] = []
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def take(self, queue: str, columns: Mapping[str, list[Any]]) -> None:
        """Takes some packets of a queue."""
        if not columns["n"]:
            return
        types = {name: _TYPES.get(name, pl.Float64) for name in columns}
        frame = pl.DataFrame(columns, schema=types, strict=False)
        self._frames.append(frame.select(pl.lit(queue).alias("queue"), pl.all()))
        self._rows += frame.height
        if self._rows >= _PART:
            self._write_part()

    def finish(self, result: Result) -> None:
        """Writes the file."""
        self._write_part()
        facts = {
            "scenario": result.scenario,
            "version": result.version,
            "decision_hash": result.decision_hash,
        }
        parts = [pl.scan_parquet(part) for part in self._parts]
        whole = pl.concat(parts, how="diagonal") if parts else pl.LazyFrame(schema=_EMPTY)
        new = self._folder / "whole.parquet"
        try:
            whole.sink_parquet(new, metadata={_KEY: json.dumps(facts)})
            self._publish(new, self._path)
        except OSError as error:
            raise StorageError(f"cannot write {self._path}: {error.strerror}") from error

    def _write_part(self) -> None:
        if not self._frames:
            return
        part = self._folder / f"{len(self._parts):06}.parquet"
        try:
            pl.concat(self._frames, how="diagonal").write_parquet(part)
        except OSError as error:
            raise StorageError(f"cannot write {self._path}: {error.strerror}") from error
        self._parts.append(part)
        self._frames, self._rows = [], 0


_EMPTY = {"queue": pl.String, **_TYPES, "p": pl.Float64, "coin": pl.Float64, "delay_s": pl.Float64}


@dataclass(frozen=True)
class Facts:
    """What a file of packets says of its run.

    Attributes:
        scenario: The canonical scenario.
        version: Of the core that made it.
        decision_hash: The run's.
    """

    scenario: str
    version: str
    decision_hash: str

    @cached_property
    def queues(self) -> dict[str, dict[str, Any]]:
        """The queues' tables in the scenario by their links: ``aqm``, ``buffer``, ``params`` …."""
        return {table["link"]: table for table in tomllib.loads(self.scenario)["queue"]}


def open_(path: Path) -> tuple[pl.LazyFrame, Facts]:
    """The packets of a file, to be looked into, and what it says of its run.

    Raises:
        InputError: It is none of ours, or cannot be read.
    """
    try:
        facts = json.loads(pl.read_parquet_metadata(path)[_KEY])
        return pl.scan_parquet(path), Facts(**facts)
    except (OSError, PolarsError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            "not a file of packets",
            file=str(path),
            hint="`bluewater run my.toml --packets my.parquet` makes one",
        ) from error


def of_queue(rows: pl.LazyFrame, queue: str | None, file: Path) -> pl.LazyFrame:
    """Those of a queue, or all if none is named.

    Raises:
        InputError: There are none of this queue.
    """
    if queue is None:
        return rows
    names = rows.select("queue").unique(maintain_order=True).collect()["queue"].to_list()
    if queue not in names:
        raise InputError(
            "no packets of this queue",
            file=str(file), key="queue", value=queue, allowed=", ".join(names) or "none",
        )  # fmt: skip
    return rows.filter(pl.col("queue") == queue)
