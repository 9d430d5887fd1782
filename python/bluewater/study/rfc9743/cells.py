"""Runs, their cells, and the readings from which a run's verdict follows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from bluewater.study.rfc9743.paths import QUEUE
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from bluewater.results.result import Result
    from bluewater.study.rfc9743.senders import Sender


class Force(StrEnum):
    """What the RFC demands of a run."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    PROSE = "prose"
    OURS = "ours"


class Verdict(StrEnum):
    """The verdict on a run; the best first."""

    HOLDS = "holds"
    PARTLY = "partly"
    NOT = "does not"
    UNJUDGED = "not judged"


@dataclass(frozen=True)
class Reading:
    """A measured value beside its bounds.

    Attributes:
        rule: The rule, as in ``V-util``.
        value: What was measured; ``nan`` if nothing could be.
        sense: Whether the value may be at most or at least a bound.
        holds: The bound of the verdict *holds*.
        partly: The bound of the verdict *partly*; ``None`` if there is none.
        unit: The unit of value and bounds.
        cell: Where it was measured.
        reason: Why it is not judged.
    """

    rule: str
    value: float
    sense: Literal["<=", ">="]
    holds: float
    partly: float | None = None
    unit: str = ""
    cell: str = ""
    reason: str = ""

    @classmethod
    def none(cls, rule: str, reason: str) -> Reading:
        """A reading without a value, and why."""
        return cls(rule, math.nan, "<=", math.nan, reason=reason)

    def _within(self, bound: float | None) -> bool:
        if bound is None:
            return False
        return self.value <= bound if self.sense == "<=" else self.value >= bound

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows from value and bounds."""
        if self.reason or math.isnan(self.value):
            return Verdict.UNJUDGED
        if self._within(self.holds):
            return Verdict.HOLDS
        return Verdict.PARTLY if self._within(self.partly) else Verdict.NOT

    @property
    def beyond(self) -> float:
        """How far the value is beyond the bound, for ranking; negative inside."""
        far = self.value - self.holds if self.sense == "<=" else self.holds - self.value
        return far / abs(self.holds) if self.holds and math.isfinite(self.holds) else far

    @property
    def text(self) -> str:
        """The value with its unit."""
        if math.isnan(self.value):
            return f"not judged: {self.reason}"
        shown = "never" if math.isinf(self.value) else number(self.value)
        return shown if math.isinf(self.value) else f"{shown} {self.unit}".rstrip()


def mean(readings: Sequence[Reading]) -> Reading:
    """One reading of several seeds: values and bounds are means, of those that are judged."""
    readings = [each for each in readings if not each.reason] or readings
    count = len(readings)
    partly = [each.partly for each in readings if each.partly is not None]
    return replace(
        readings[0],
        value=sum(each.value for each in readings) / count,
        holds=sum(each.holds for each in readings) / count,
        partly=sum(partly) / count if len(partly) == count else None,
    )


@dataclass(frozen=True)
class View:
    """What the rules read of one simulated run."""

    result: Result

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        """The summary, of the run and of the bottleneck."""
        return self.result.summary

    def flows(self, group: str) -> list[dict[str, Any]]:
        """The rows of a group's flows."""
        return self.result.flows.filter(pl.col("group") == group).to_dicts()

    def goodput(self, *groups: str) -> float:
        """The goodput of these groups together, bit/s; of all without a name."""
        table = self.result.flows.select("group", "goodput_bps").iter_rows()
        return float(sum(rate for group, rate in table if not groups or group in groups))

    def per_flow(self, group: str) -> float:
        """The mean goodput of a group's flows, bit/s."""
        rates = [row["goodput_bps"] for row in self.flows(group)]
        return float(sum(rates) / len(rates))

    def loss(self, group: str) -> float:
        """The share of a group's packets that the bottleneck dropped."""
        rows = self.flows(group)
        arrivals, drops = (sum(row[each] for row in rows) for each in ("arrivals", "drops"))
        return min(1.0, drops / arrivals) if arrivals else 0.0

    def series(
        self, *groups: str, column: str = "goodput_bps", since: float = 0.0
    ) -> list[list[float]]:
        """The samples of each flow of these groups from a time on; of all without a name."""
        table = self.result.flow_series.filter(pl.col("time_s") > since + 1e-9)
        if groups:
            table = table.filter(pl.col("group").is_in(groups))
        table = table.sort("flow", "time_s")
        return [
            part[column].fill_null(0.0).to_list()
            for part in table.partition_by("flow", maintain_order=True)
        ]

    def total(self, *groups: str, since: float = 0.0) -> list[float]:
        """The goodput of these groups together, sample by sample."""
        return [sum(each) for each in zip(*self.series(*groups, since=since), strict=True)]

    def queue(self, column: str) -> list[float]:
        """Samples of the bottleneck's queue."""
        table = self.result.series.filter(pl.col("queue") == QUEUE).sort("time_s")
        return [float(each) for each in table[column].to_list()]

    def delay(self, group: str) -> float:
        """The mean wait of a group's packets in the bottleneck's queue, s."""
        table = self.result.delays.filter(
            (pl.col("group") == group) & (pl.col("kind") == "queueing") & (pl.col("queue") == QUEUE)
        )
        return float(table["delay_mean_s"][0] or 0.0) if table.height else 0.0

    def transfer(self, group: str, column: str) -> float:
        """A time of a group's transfers, s; infinite if none came to its end."""
        table = self.result.transfers.filter(pl.col("group") == group)
        value = table[column][0] if table.height else None
        return math.inf if value is None else float(value)


Views = dict[str, View]


@dataclass(frozen=True)
class Cell:
    """A setting of a run: simulations, and the readings that follow from them.

    Attributes:
        label: Its name within the run.
        scenarios: Scenarios by name.
        judge: Makes readings of the results of one seed.
        missing: Why the cell does not apply to the candidate.
    """

    label: str
    scenarios: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    judge: Callable[[Views], Iterable[Reading]] = lambda _: ()
    missing: str = ""


@dataclass(frozen=True)
class Setting:
    """What a run is made for.

    Attributes:
        candidate: The controller under test.
        quick: Whether the size is quick.
    """

    candidate: Sender
    quick: bool

    def some(self, full: Sequence[Any], quick: Sequence[Any]) -> Sequence[Any]:
        """The points of an axis at this size."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Run:
    """One of the suite's runs.

    Attributes:
        id: Its number, as in ``R01``.
        title: What it is.
        section: The section of RFC 9743.
        force: What the RFC demands.
        rule: The rule in words.
        cells: Makes its cells.
    """

    id: str
    title: str
    section: str
    force: Force
    rule: str
    cells: Callable[[Setting], Iterator[Cell]]
