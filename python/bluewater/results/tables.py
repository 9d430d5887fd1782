"""The tables of an experiment and the SQL that claims and plots are made of.

``runs`` has a row per run: the axes of the sweep, ``reading`` if the experiment has readings,
``seed``, then the summary's columns. A claim's measure sees the runs of one reading at a time. The
other tables are :data:`~bluewater.results.result.TABLES`, each with axes, reading and seed before
its own columns, and the view ``sides``: per run the sums over TCP flows and over datagram flows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from bluewater import _core
from bluewater.errors import InputError
from bluewater.results.result import TABLES, height, of_lists, schema

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from bluewater.results.result import Columns, Result
    from bluewater.results.store import Store

Label: TypeAlias = "str | float | int | bool"
"""The label of a point of an axis."""

STANDARD = "standard"
"""The name of the reading that is the experiment's file as it stands."""


DATAGRAMS = tuple(each["name"] for each in _core.catalog()["transports"] if not each["answers"])
"""Transports that do not respond to congestion."""

_SET = {"aqm", "duration_s", "flows", "group", "queue", "transport"}
"""Columns with settings; an axis may have such a name, since it says the same in its own words."""

COLUMNS = frozenset(
    {"reading", "seed", *(c for t in ("summary", *TABLES) for c in schema(t) if c not in _SET)}
)
"""The names that an axis cannot have: its column would hide what was measured."""


RESERVED = ("runs", "sides", *TABLES)
"""The names that a view cannot have."""


@dataclass(frozen=True)
class Entry:
    """A finished run of an experiment: its place in the sweep and its key in the store.

    ``reading`` is ``None`` if the experiment has only one reading.
    """

    axes: Mapping[str, Label]
    seed: int
    key: str
    reading: str | None = None


@dataclass(frozen=True)
class Tables:
    """The tables of an experiment, each read from the store at first use.

    Attributes:
        views: Queries by name, which other queries use as tables; a view may use earlier ones.
        together: Tables to read along with the first of them, so that each run is opened once.
    """

    entries: Sequence[Entry]
    store: Store
    views: Mapping[str, str] = field(default_factory=dict)
    together: Collection[str] = ()

    def of(self, reading: str) -> Tables:
        """The tables of one reading's runs."""
        return self.parts.get(reading) or replace(self, entries=[])

    @cached_property
    def parts(self) -> dict[str, Tables]:
        """The tables of each reading that has runs, in their order."""
        own: dict[str, list[Entry]] = {}
        for entry in self.entries:
            own.setdefault(entry.reading or STANDARD, []).append(entry)
        if len(own) == 1:
            return dict.fromkeys(own, self)
        return {reading: replace(self, entries=entries) for reading, entries in own.items()}

    @cached_property
    def results(self) -> list[Result]:
        """The result of each entry."""
        return [self.store.read(entry.key) for entry in self.entries]

    @cached_property
    def runs(self) -> pl.DataFrame:
        """The table ``runs``, with a row per run."""
        return self.at(None)

    def at(self, queue: str | None) -> pl.DataFrame:
        """The table ``runs`` with the metrics of a queue, in place of each run's first."""
        rows = []
        for entry, result in zip(self.entries, self.results, strict=True):
            told = dict(result.summary)
            if queue is not None:
                own = result.queues.filter(pl.col("queue") == queue)
                told |= own.row(0, named=True) if own.height else dict.fromkeys(own.columns)
            place = _place(entry)
            rows.append(place | {k: v for k, v in told.items() if k not in place})
        return pl.DataFrame(rows, infer_schema_length=None)

    def table(self, name: str) -> pl.DataFrame:
        """One of :data:`~bluewater.results.result.TABLES` over all runs."""
        if name == "runs":
            return self.runs
        if name not in self._made:
            self.read({name, *self.together})
        return self._made[name]

    def read(self, names: Collection[str]) -> None:
        """Reads these tables unless they were read before, opening each run once."""
        parts = {name: _Parts(name) for name in names if name not in self._made}
        for result in self.results if parts else ():
            lists = result.lists()
            for name, part in parts.items():
                part.add(result, lists.get(name))
        for name, part in parts.items():
            whole = part.whole()
            repeated = pl.all().repeat_by(pl.Series(part.heights, dtype=pl.UInt32)).explode()
            place = self._places.select(repeated).drop_nulls("seed")
            own = whole.select(pl.exclude(place.columns))
            self._made[name] = pl.concat([place, own], how="horizontal")

    @cached_property
    def _places(self) -> pl.DataFrame:
        """The columns that place each run in the sweep, a row per run."""
        return pl.DataFrame([_place(entry) for entry in self.entries], infer_schema_length=None)

    @cached_property
    def _made(self) -> dict[str, pl.DataFrame]:
        return {}

    def query(self, sql: str, needed: Sequence[str], key: str, file: str) -> pl.DataFrame:
        """Runs one query; its result must have the ``needed`` columns."""
        there = {name: partial(self.table, name) for name in ("runs", *self.present)}
        if "flows" in there:
            there["sides"] = partial(self._view, "sides", self._sides, there, file)
        for name, text in self.views.items():
            there[name] = partial(self._view, name, text, dict(there), file)
        return _query(there, sql, needed, key, file)

    def _view(
        self, name: str, sql: str, there: Mapping[str, Callable[[], pl.DataFrame]], file: str
    ) -> pl.DataFrame:
        """The result of a view, computed once."""
        if name not in self._made:
            self._made[name] = _query(there, sql, (), f"view.{name}", file)
        return self._made[name]

    @property
    def _sides(self) -> str:
        """The view that every experiment has, with a row per run.

        It has the sums over flows that respond to congestion beside those over flows that do not.
        """
        place = ", ".join(f'"{name}"' for name in _place(self.entries[0]))
        sums = ", ".join(
            f"SUM(CASE WHEN transport {of} {DATAGRAMS} THEN {column} END) AS {side}_{column}"
            for side, of in (("tcp", "NOT IN"), ("udp", "IN"))
            for column in ("throughput_bps", "arrivals", "drops", "marks")
        )
        counts = f"""COUNT(CASE WHEN transport NOT IN {DATAGRAMS} THEN 1 END) AS tcp_flows,
            COUNT(CASE WHEN transport IN {DATAGRAMS} THEN 1 END) AS udp_flows"""
        return f"SELECT {place}, {counts}, {sums} FROM flows GROUP BY {place}"

    @property
    def present(self) -> list[str]:
        """The names of the runs' tables, except ``runs``."""
        kept = self.results[0].names
        return [name for name in TABLES if name in kept]

    def known_empty(self, name: str) -> bool:
        """Whether a run's metadata say that a table is empty."""
        return all(name in result.empty for result in self.results)


@dataclass
class _Parts:
    """A table of many runs while it is being read.

    Small tables of consecutive runs become one frame, because a frame per run would take as long as
    the runs themselves.

    Attributes:
        heights: The number of rows of each run.
    """

    name: str
    heights: list[int] = field(default_factory=list)
    _frames: list[pl.DataFrame] = field(default_factory=list)
    _waiting: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, result: Result, columns: Columns | None) -> None:
        """Adds a run's table, from lists in memory or by loading it."""
        if columns is None or columns.keys() != self._waiting.keys():
            self._make()
        if columns is None:
            self._frames.append(result.load(self.name))
            self.heights.append(self._frames[-1].height)
            return
        self.heights.append(height(columns))
        for column, values in columns.items():
            self._waiting.setdefault(column, []).extend(values)
        if height(self._waiting) > _LONG:
            self._make()

    def _make(self) -> None:
        if self._waiting:
            self._frames.append(of_lists(self._waiting, self.name))
            self._waiting = {}

    def whole(self) -> pl.DataFrame:
        """The whole table."""
        self._make()
        return pl.concat(self._frames, how="diagonal_relaxed")


_LONG = 50_000
"""At this many rows lists become a frame, which takes a quarter of their memory."""


class Blank(Tables):
    """Tables with the right columns and no rows, on which queries can be tried before any run.

    Here a series has the signals of every discipline, and the summary a formula's columns too.
    """

    @cached_property
    def runs(self) -> pl.DataFrame:
        """An empty list: there are no runs."""
        return self._without_rows(
            "summary", {**schema("queues"), **_signals(), "value": pl.Float64()}
        )

    @property
    def present(self) -> list[str]:
        """The names of all tables."""
        return list(TABLES)

    @cached_property
    def asked(self) -> set[str]:
        """The names of the tables that the tried queries used, except ``runs``."""
        return set()

    def table(self, name: str) -> pl.DataFrame:
        """A table without rows."""
        if name == "runs":
            return self.runs
        self.asked.add(name)
        return self._without_rows(name, _signals() if name == "series" else {})

    def _without_rows(self, name: str, more: Mapping[str, pl.DataType]) -> pl.DataFrame:
        place = pl.DataFrame([_place(entry) for entry in self.entries], infer_schema_length=None)
        own = {**schema(name), **more}
        free = {column: kind for column, kind in own.items() if column not in place.columns}
        return place.clear().with_columns(
            pl.lit(None, dtype=kind).alias(column) for column, kind in free.items()
        )


@cache
def _signals() -> dict[str, pl.DataType]:
    signals = (s["name"] for aqm in _core.catalog()["aqms"] for s in aqm["signals"])
    return dict.fromkeys(signals, pl.Float64())


@dataclass(frozen=True)
class Frames:
    """Tables in memory that are queried like an experiment's."""

    frames: Mapping[str, pl.DataFrame]

    def query(self, sql: str, needed: Sequence[str], key: str, file: str) -> pl.DataFrame:
        """Runs one query; its result must have the ``needed`` columns."""
        there = {name: partial(self.frames.__getitem__, name) for name in self.frames}
        return _query(there, sql, needed, key, file)


def _query(
    tables: Mapping[str, Callable[[], pl.DataFrame]],
    sql: str,
    needed: Sequence[str],
    key: str,
    file: str,
) -> pl.DataFrame:
    # Only names after FROM or JOIN: a column may have the name of another table.
    used = {name for name in tables if re.search(rf"(?i)\b(FROM|JOIN)\s+{name}\b", sql)}
    if opened := _READS.search(_DECIMAL.sub(_quoted, sql)):
        raise InputError(
            "a query reads no files",
            file=file,
            key=key,
            value=opened[0].strip(),
            allowed=f"tables {', '.join(tables)}",
        )
    context = pl.SQLContext()
    for name in used:
        context.register(name, tables[name]())
    try:
        found = context.execute(_with_floats(sql), eager=True)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"the query fails: {error}",
            file=file,
            key=key,
            value=sql.strip(),
            hint=f"tables: {', '.join(tables)}; `bluewater sweep FILE` writes them as Parquet",
        ) from error
    missing = [column for column in needed if column not in found.columns]
    if missing:
        raise InputError(
            f"the query has no column {', '.join(missing)}",
            file=file,
            key=key,
            value=sql.strip(),
            allowed=f"columns {', '.join(needed)}",
        )
    return found.with_columns(pl.col(pl.Decimal).cast(pl.Float64))


# Text, names and comments stay unchanged; the last group is a number with a point.
_DECIMAL = re.compile(
    r"""'(?:[^']|'')*'|"[^"]*"|--[^\n]*|/\*.*?\*/|(?<![\w.])(\d+\.\d*|\.\d+)(?![\w.])""", re.DOTALL
)

# A file of somebody else may have the query: Polars would open any path for it.
_READS = re.compile(r"""(?i)\bread_\w+"?\s*(?=\()""")


def _quoted(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else ""


def _with_floats(sql: str) -> str:
    """A query whose numbers with a point are floats.

    Polars would read them as decimals, whose quotients have seven places: 1e-7 would become 0.
    """
    return _DECIMAL.sub(lambda found: found[0] + ("e0" if found[1] else ""), sql)


def _place(entry: Entry) -> dict[str, Label]:
    reading = {} if entry.reading is None else {"reading": entry.reading}
    return {**entry.axes, **reading, "seed": entry.seed}
