"""The result of one run, with its tables made into frames when they are first asked for."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

TABLES: Mapping[str, str] = {
    "queues": "a row per managed queue; the first is the primary one",
    "flows": "a row per flow",
    "series": "a row per queue and sampling instant, warm-up included",
    "groups": "a row per group of flows, queue and sampling instant",
    "transfers": "a row per group with transfers and kind of them",
    "completions": "a row per group, kind of transfer and length of time",
    "skew": "a row per share of flows and length of windows",
    "persistence": "a row per share of bytes and length of windows",
}
"""Every table that a run may have beside its summary, and what it holds."""

SIMULATED = tuple(TABLES)[:6]
"""The tables of a simulation, and of a run on the testbed; the others are a generated trace's."""


@dataclass(frozen=True)
class Result:
    """One run: what was asked, what came out, and how to know it again.

    Attributes:
        summary: One value a metric: the run's, then those of its primary queue.
        scenario: The canonical scenario as TOML, every default filled in.
        decision_hash: 16 hexadecimal digits over every drop, mark and departure.
        version: The version of the simulator.
        load: Gives a table by its name.
        names: The tables that there are beside the summary.
    """

    summary: Mapping[str, Any]
    scenario: str
    decision_hash: str
    version: str
    load: Callable[[str], pl.DataFrame]
    names: Sequence[str] = SIMULATED

    @classmethod
    def of(cls, raw: Mapping[str, Any], began: float) -> Result:
        """Makes one of columns as the simulator gives them; a table that is not there is empty.

        ``wall_s``, from ``began`` (of :func:`time.perf_counter`) until now, joins the summary.
        """
        return cls(
            summary=raw["summary"] | {"wall_s": time.perf_counter() - began},
            scenario=raw["scenario"],
            decision_hash=raw["decision_hash"],
            version=raw["version"],
            load=lambda table: frame(raw.get(table, {})),
        )

    @cached_property
    def queues(self) -> pl.DataFrame:
        """A row per managed queue; the first is the primary one."""
        return self.load("queues")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """A row per flow."""
        return self.load("flows")

    @cached_property
    def series(self) -> pl.DataFrame:
        """A row per queue and sampling instant, warm-up included; no rows if not asked for."""
        return self.load("series")

    @cached_property
    def groups(self) -> pl.DataFrame:
        """A row per group, queue and sampling instant; no rows if not asked for."""
        return self.load("groups")

    @cached_property
    def skew(self) -> pl.DataFrame:
        """A row per share of flows and length of windows; of a generated trace alone."""
        return self.load("skew")

    @cached_property
    def persistence(self) -> pl.DataFrame:
        """A row per share of bytes and length of windows; of a generated trace alone."""
        return self.load("persistence")

    @cached_property
    def transfers(self) -> pl.DataFrame:
        """A row per group with transfers and kind of them; no rows if there are none."""
        return self.load("transfers")

    @cached_property
    def completions(self) -> pl.DataFrame:
        """How long transfers took: a row per group, kind and length of time."""
        return self.load("completions")

    def save(self, folder: Path) -> None:
        """Writes the scenario and every table (Parquet) into an existing folder."""
        (folder / "scenario.toml").write_text(self.scenario, encoding="utf-8")
        for name, table in self.tables():
            path = folder / f"{name}.parquet"
            if table.is_empty():
                path.write_bytes(_empty(tuple(table.schema.items())))
            else:
                table.write_parquet(path)

    def tables(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Every table with its name; the summary is one of a single row."""
        yield "summary", pl.DataFrame([dict(self.summary)])
        for name in self.names:
            yield name, self.load(name)


@cache
def _empty(schema: tuple[tuple[str, pl.DataType], ...]) -> bytes:
    """The file of a table without rows: most runs have the same four, and each costs as another."""
    file = io.BytesIO()
    pl.DataFrame(schema=schema).write_parquet(file)
    return file.getvalue()


def frame(columns: Mapping[str, list[Any]]) -> pl.DataFrame:
    """A frame from columns; one that is null throughout is a column of numbers."""
    made = pl.DataFrame(dict(columns), strict=False)
    return made.with_columns(pl.col(pl.Null).cast(pl.Float64)) if pl.Null in made.dtypes else made
