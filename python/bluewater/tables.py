"""The tables of an experiment and the SQL that claims and plots are made of.

``runs`` has a row per run: the axes of the sweep, ``reading`` if the experiment has readings,
``seed``, then the summary's columns. A claim's measure sees the runs of one reading at a time.
``queues`` has a row per run and queue, ``flows`` one per run and flow, ``series`` one per run,
queue and sampling instant, ``groups`` one per group besides; ``transfers`` has one per run, group
and kind of transfer, ``completions`` one per length of time besides: the axes, ``seed``, then the
table's own columns. Runs of a generated trace have ``skew`` and ``persistence`` in place of those.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import polars as pl

from bluewater.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bluewater.result import Result
    from bluewater.store import Store
    from bluewater.sweep import Label

TABLES = (
    *("runs", "queues", "flows", "series", "groups"),
    *("transfers", "completions", "skew", "persistence"),
)


STANDARD = "standard"
"""The reading that an experiment's file is without any other."""


@dataclass(frozen=True)
class Entry:
    """A finished run of an experiment: where it lies in the sweep and where it is stored.

    ``reading`` is that of what the paper leaves open; ``None`` where nothing is read in two ways.
    """

    axes: Mapping[str, Label]
    seed: int
    key: str
    reading: str | None = None


@dataclass(frozen=True)
class Tables:
    """The tables, each read from the store when it is first asked for."""

    entries: Sequence[Entry]
    store: Store

    def of(self, reading: str) -> Tables:
        """The tables of the runs of one reading alone."""
        return self.parts.get(reading) or Tables([], self.store)

    @cached_property
    def parts(self) -> dict[str, Tables]:
        """The tables of each reading that there are runs of, the first one first."""
        own: dict[str, list[Entry]] = {}
        for entry in self.entries:
            own.setdefault(entry.reading or STANDARD, []).append(entry)
        if len(own) == 1:
            return dict.fromkeys(own, self)
        return {reading: Tables(entries, self.store) for reading, entries in own.items()}

    @cached_property
    def results(self) -> list[Result]:
        """The result of each entry."""
        return [self.store.read(entry.key) for entry in self.entries]

    @cached_property
    def runs(self) -> pl.DataFrame:
        """One row a run."""
        return pl.DataFrame(
            [
                _place(entry) | {k: v for k, v in result.summary.items() if k not in _place(entry)}
                for entry, result in zip(self.entries, self.results, strict=True)
            ],
            infer_schema_length=None,
        )

    @cached_property
    def queues(self) -> pl.DataFrame:
        """One row a run and queue."""
        return self._every("queues")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row a run and flow."""
        return self._every("flows")

    @cached_property
    def series(self) -> pl.DataFrame:
        """One row a run, queue and sampling instant."""
        return self._every("series")

    @cached_property
    def groups(self) -> pl.DataFrame:
        """One row a run, queue, sampling instant and group of flows."""
        return self._every("groups")

    @cached_property
    def skew(self) -> pl.DataFrame:
        """One row a run, share of flows and length of windows."""
        return self._every("skew")

    @cached_property
    def persistence(self) -> pl.DataFrame:
        """One row a run, share of bytes and length of windows."""
        return self._every("persistence")

    @cached_property
    def transfers(self) -> pl.DataFrame:
        """One row a run, group and kind of transfer."""
        return self._every("transfers")

    @cached_property
    def completions(self) -> pl.DataFrame:
        """One row a run, group, kind and length of time."""
        return self._every("completions")

    def _every(self, table: str) -> pl.DataFrame:
        frames: list[pl.DataFrame] = [
            result.load(table).select(
                *(pl.lit(value).alias(name) for name, value in _place(entry).items()),
                pl.exclude(*_place(entry)),
            )
            for entry, result in zip(self.entries, self.results, strict=True)
        ]
        return pl.concat(frames, how="diagonal_relaxed")

    def query(self, sql: str, needed: Sequence[str], key: str, file: str) -> pl.DataFrame:
        """Runs one query; its result must have the ``needed`` columns."""
        there = {name: partial(getattr, self, name) for name in ("runs", *self.present)}
        return _query(there, sql, needed, key, file)

    @property
    def present(self) -> list[str]:
        """The tables that its runs have, ``runs`` aside."""
        kept = {path.stem for path in self.store.path(self.entries[0].key).glob("*.parquet")}
        return [name for name in TABLES if name in kept]


@dataclass(frozen=True)
class Frames:
    """Tables at hand, queried as those of an experiment."""

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
    context = pl.SQLContext()
    for name, table in tables.items():
        if re.search(rf"\b{name}\b", sql):
            context.register(name, table())
    try:
        found = context.execute(sql, eager=True)
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
            f"the query gives no column {', '.join(missing)}",
            file=file,
            key=key,
            value=sql.strip(),
            allowed=f"columns {', '.join(needed)}",
        )
    return found.with_columns(pl.col(pl.Decimal).cast(pl.Float64))


def _place(entry: Entry) -> dict[str, Label]:
    reading = {} if entry.reading is None else {"reading": entry.reading}
    return {**entry.axes, **reading, "seed": entry.seed}
