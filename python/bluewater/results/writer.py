"""Writing the packets of a run to one Parquet file during the run."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater.files import place, writing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

KEY = "bluewater"
"""The metadata key under which a file has the facts of its run."""

_PART = 200_000
"""Rows to collect in memory before writing them."""

_TYPES = {
    "n": pl.Int64, "arrived_ns": pl.Int64, "flow": pl.Int64, "connection": pl.Int64,
    "seq": pl.Int64, "bytes": pl.Int64, "found_packets": pl.Int64, "found_bytes": pl.Int64,
    "coins": pl.Int64, "marked_ns": pl.Int64, "left_ns": pl.Int64, "with": pl.Int64,
    "kind": pl.String, "ecn": pl.String, "marked": pl.String, "fate": pl.String,
    "dropped": pl.String,
}  # fmt: skip
"""Columns with declared types; all others are numbers that may be missing."""

COLUMNS = {"queue": pl.String, **_TYPES, "p": pl.Float64, "coin": pl.Float64, "delay_s": pl.Float64}
"""The declared columns, even if no packet is written."""

OPTIONAL = {"coins", "with"}
"""Declared columns that only some disciplines have."""


class Writer:
    """Writes packets in parts during the run, and joins the parts into one file at the end.

    Args:
        path: The file.
        publish: Makes that file from a Parquet file of all packets.
    """

    def __init__(self, path: Path, publish: Callable[[Path, Path], object] = Path.replace) -> None:
        path = place(path)
        self._path, self._publish = path, publish
        self._frames: list[pl.DataFrame] = []
        self._rows = 0
        self._parts: list[Path] = []
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))

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
        """Adds some packets of a queue."""
        if not columns["n"]:
            return
        types = {name: _TYPES.get(name, pl.Float64) for name in columns}
        frame = pl.DataFrame(columns, schema=types, strict=False)
        self._frames.append(frame.select(pl.lit(queue).alias("queue"), pl.all()))
        self._rows += frame.height
        if self._rows >= _PART:
            self._write_part()

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Writes the file, with the facts of its run as metadata."""
        self._write_part()
        parts = [pl.scan_parquet(part) for part in self._parts]
        whole = pl.concat(parts, how="diagonal") if parts else pl.LazyFrame(schema=COLUMNS)
        new = self._folder / "whole.parquet"
        with writing(self._path):
            whole.sink_parquet(new, metadata={KEY: json.dumps(facts)})
            self._publish(new, self._path)

    def _write_part(self) -> None:
        if not self._frames:
            return
        part = self._folder / f"{len(self._parts):06}.parquet"
        with writing(self._path):
            pl.concat(self._frames, how="diagonal").write_parquet(part)
        self._parts.append(part)
        self._frames, self._rows = [], 0
