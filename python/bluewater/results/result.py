"""The result of one run; its tables become data frames at first use."""

from __future__ import annotations

import hashlib
import io
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from bluewater import _core
from bluewater.errors import InputError, unknown
from bluewater.results import host, html

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

FORMAT = 4
"""Version of the format of a run's folder. Older ones can be read: 1 has the summary as a table in
its own file, 1 and 2 have lengths in place of digests, 1 to 3 a Parquet file per table."""

SMALL_TABLES = "tables.json"
"""The file of every table of at most :data:`_SMALL` values that is not empty as declared."""

_SMALL = 2000
"""Most values of a table in that file: Parquet is faster for larger ones, and slower for small."""

Columns: TypeAlias = "Mapping[str, list[Any]]"
"""A table as lists."""

_DECLARED = {each["name"]: each for each in _core.tables()}

TABLES: Mapping[str, str] = {
    name: each["row"] for name, each in _DECLARED.items() if name != "summary"
}
"""Every table that a run may have beside its summary, with its description."""

SIMULATED = tuple(name for name in TABLES if _DECLARED[name]["simulated"])
"""The tables of a simulation and of a testbed run; a generated trace has the others."""

_TYPES: Mapping[str, pl.DataType] = {"count": pl.Int64(), "real": pl.Float64(), "text": pl.String()}


def schema(table: str) -> dict[str, pl.DataType]:
    """The declared columns of a table; a series has its signals besides."""
    return {
        name: _TYPES[column["kind"]]
        for column in _DECLARED[table]["columns"]
        for name in column["names"]
    }


def _table(name: str) -> cached_property[pl.DataFrame]:
    """A table as an attribute."""

    def load(result: Result) -> pl.DataFrame:
        return result.load(name)

    load.__doc__ = f"{_DECLARED[name]['row'].capitalize()}."
    return cached_property(load)


def _no_lists() -> Mapping[str, Columns]:
    """The list tables of a result whose tables are all frames."""
    return {}


@dataclass(frozen=True, repr=False)
class Result:
    """One run: its scenario, its tables, and its decision hash.

    Attributes:
        summary: One value per metric: the run's, then those of its primary queue.
        scenario: The canonical scenario as TOML, every default filled in.
        decision_hash: 16 hexadecimal digits over every drop, mark and departure.
        version: The version of the simulator.
        load: Loads a table by its name.
        names: The names of the tables beside the summary.
        lists: Loads all list tables at once, which is faster than frames.
        empty: Names of tables without rows.
        captures: Of each capture among the traffic its file, how many of its packets do not come
            at their recorded time and are longer than a frame of Ethernet, and the longest time
            without a packet: when it begins and how long it lasts, in nanoseconds.
        held: What users' controllers decided out of bounds, and the sender held in them: flow,
            attribute, after how many calls, and the time of the first, in nanoseconds.
        broken: Connections that their stack ended before their data did: flow, time in
            nanoseconds, the stack's reason.
    """

    summary: Mapping[str, Any]
    scenario: str
    decision_hash: str
    version: str
    load: Callable[[str], pl.DataFrame]
    names: Sequence[str] = SIMULATED
    lists: Callable[[], Mapping[str, Columns]] = _no_lists
    empty: Sequence[str] = ()
    captures: Sequence[tuple[str, *tuple[int, ...]]] = ()
    held: Sequence[tuple[int, str, int, int]] = ()
    broken: Sequence[tuple[int, int, str]] = ()

    @classmethod
    def of(
        cls,
        raw: Mapping[str, Any],
        began: float,
        captures: Sequence[tuple[str, *tuple[int, ...]]] = (),
    ) -> Result:
        """Makes a result from the simulator's columns; a missing table is empty.

        ``wall_s``, from ``began`` (of :func:`time.perf_counter`) until now, joins the summary.
        """
        tables = {name: raw[name] for name in TABLES if name in raw}
        return cls(
            summary=raw["summary"] | {"wall_s": time.perf_counter() - began},
            scenario=raw["scenario"],
            decision_hash=raw["decision_hash"],
            version=raw["version"],
            # Not closures: results are pickled when sent to other processes.
            load=partial(_made, tables),
            lists=partial(_lists, tables),
            captures=captures,
            held=raw.get("held", ()),
            broken=raw.get("broken", ()),
        )

    queues = _table("queues")
    classes = _table("classes")
    stations = _table("stations")
    flows = _table("flows")
    series = _table("series")
    groups = _table("groups")
    flow_series = _table("flow_series")
    control = _table("control")
    control_signals = _table("control_signals")
    delays = _table("delays")
    flow_delays = _table("flow_delays")
    transfers = _table("transfers")
    completions = _table("completions")
    slowdowns = _table("slowdowns")
    calls = _table("calls")
    links = _table("links")
    autorate = _table("autorate")
    skew = _table("skew")
    persistence = _table("persistence")

    def save(self, folder: Path | str, key: str = "") -> None:
        """Writes scenario, tables, summary and metadata to a folder.

        The folder is made if needed; :func:`bluewater.load` reads it. ``key`` names it in a store.
        """
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise InputError("a file, where a folder is needed", file=str(folder))
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self._files(key).items():
            (folder / name).write_bytes(content)

    def _files(self, key: str) -> dict[str, bytes]:
        files = {"scenario.toml": self.scenario.encode()}
        small: dict[str, Columns] = {}
        rows = {}
        lists = self.lists()
        for name in self.names:
            columns = lists.get(name)
            if columns is None or sum(map(len, columns.values())) > _SMALL:
                table = self.load(name)
                if table.width * table.height > _SMALL:
                    file = io.BytesIO()
                    table.write_parquet(file)
                    files[f"{name}.parquet"] = file.getvalue()
                    rows[name] = table.height
                    continue
                columns = table.to_dict(as_series=False)
            rows[name] = height(columns)
            if rows[name] or columns.keys() != schema(name).keys():
                small[name] = columns
        files[SMALL_TABLES] = json.dumps(small).encode()
        return files | {"meta.json": self._meta(key, files, rows)}

    def _meta(self, key: str, files: Mapping[str, bytes], rows: Mapping[str, int]) -> bytes:
        meta: dict[str, Any] = {
            "format": FORMAT,
            "key": key,
            "version": self.version,
            "decision_hash": self.decision_hash,
            "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "host": host.facts(),
            # These digests reveal a file cut by a crash or a full disk, and a changed one.
            "files": {name: digest(content) for name, content in files.items()},
            "tables": rows,
            "summary": dict(self.summary),
            "captures": self.captures,
            "held": self.held,
            "broken": self.broken,
        }
        # A line a key; with an indent Python's own encoder would take longer than the run.
        lines = (f"  {json.dumps(name)}: {json.dumps(it)}" for name, it in sealed(meta).items())
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()

    def __repr__(self) -> str:
        figures = html.figures(self.summary, self.decision_hash)
        shown = ", ".join(f"{name} {value}" for name, value in figures.items())
        return f"<Result {shown}>"

    def _repr_html_(self) -> str:
        series = self.load("series") if "series" in self.names else None
        figures = html.figures(self.summary, self.decision_hash)
        return html.page(figures, series, self.summary.get("queue", ""))

    def tables(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Every table with its name; the summary has a single row."""
        yield "summary", pl.DataFrame([dict(self.summary)])
        for name in self.names:
            yield name, self.load(name)


def digest(content: bytes) -> str:
    """A digest of a file's content: 32 hexadecimal digits."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def sealed(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata with their own digest under ``digest``."""
    rest = {name: value for name, value in meta.items() if name != "digest"}
    return rest | {"digest": digest(json.dumps(rest).encode())}


def frame(columns: Mapping[str, list[Any]], name: str) -> pl.DataFrame:
    """A data frame of a table's columns with the declared types; signals are numbers."""
    types = schema(name)
    return pl.DataFrame(
        [pl.Series(each, values, types.get(each, pl.Float64())) for each, values in columns.items()]
    )


def check_name(name: str) -> None:
    """Refuses a name that no table has."""
    if name not in TABLES:
        raise unknown("table", str(name), TABLES)


def measured(result: Result, name: str) -> pl.DataFrame:
    """A run's table, which must have rows.

    Raises:
        InputError: It has none; the hint names the keys of [measure] that it needs.
    """
    found = result.load(name) if name in result.names else pl.DataFrame()
    if found.is_empty():
        values = {"interval": '"100ms"'}
        keys = [f"`{key} = {values.get(key, 'true')}`" for key in _DECLARED[name]["needs"]]
        raise InputError(
            f"the run has no table {name!r}",
            hint=f"put {' and '.join(keys)} into [measure] and run it again" if keys else None,
        )
    return found


def height(columns: Columns) -> int:
    """The number of rows of a list table."""
    return max(map(len, columns.values()), default=0)


def of_lists(columns: Columns, name: str) -> pl.DataFrame:
    """A list table as a data frame."""
    return frame(columns, name) if height(columns) else without_rows(name, *columns)


def _made(raw: Mapping[str, Columns], name: str) -> pl.DataFrame:
    check_name(name)
    return of_lists(_columns(raw, name), name)


def _lists(raw: Mapping[str, Columns]) -> Mapping[str, Columns]:
    return {name: _columns(raw, name) for name in SIMULATED}


def _columns(raw: Mapping[str, Columns], name: str) -> Columns:
    return raw.get(name) or {column: [] for column in schema(name)}


@cache
def without_rows(name: str, *columns: str) -> pl.DataFrame:
    """A table without rows, with the declared types."""
    # Most runs have the same four empty tables, and each costs as much as one with rows.
    return frame({column: [] for column in columns}, name)
