"""The result of one run, with its tables made into frames when they are first asked for."""

from __future__ import annotations

import io
import time
import tomllib
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater import _core, formula, testbed, trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

TABLES = ("queues", "flows", "series", "groups", "transfers", "completions")


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
    names: Sequence[str] = TABLES

    @classmethod
    def compute(
        cls, text: str, origin: str, progress: Callable[[float], object] | None = None
    ) -> Result:
        """Runs a scenario in this process; ``wall_s`` joins what the core measured."""
        began = time.perf_counter()
        if formula.is_one(text):
            value = formula.evaluate(tomllib.loads(text), origin)
            return cls(
                {"value": value},
                text,
                formula.digest(value),
                _core.version(),
                dict[str, pl.DataFrame]().__getitem__,
                names=(),
            )
        if trace.is_one(text):
            found = trace.evaluate(text, progress)
            return cls(
                {**found.summary, "wall_s": time.perf_counter() - began},
                text,
                trace.digest(found),
                _core.version(),
                dict(found.tables()).__getitem__,
                trace.TABLES,
            )
        if testbed.is_one(text):
            raw: dict[str, Any] = {key: {} for key in TABLES} | testbed.measure(text)
            raw |= {"scenario": text, "version": _core.version()}
        else:
            raw = _core.run(text, origin, progress)
        return cls(
            summary=raw["summary"] | {"wall_s": time.perf_counter() - began},
            scenario=raw["scenario"],
            decision_hash=raw["decision_hash"],
            version=raw["version"],
            load=lambda table: frame(raw[table]),
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
            yield name, getattr(self, name)


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
