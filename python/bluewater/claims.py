"""Claims: statements of a paper, what was measured instead, and the verdict.

The rule. A claim's measure gives one number a seed. With three seeds or more:

- *reproduced*: the whole 95 % t-interval of the mean lies within ``holds``;
- *partly*: else, if the mean lies within ``holds`` or within ``partly``;
- *not reproduced*: else, or if any seed gives no number.

With one or two seeds an interval says nothing, so the mean alone is compared and the verdict is
*provisional*, unless the value is a formula's.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from bluewater.errors import InputError
from bluewater.keys import check_keys
from bluewater.stats import Estimate, estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bluewater.tables import Tables

MIN_SEEDS = 3
"""With fewer seeds a verdict is provisional."""

_NUMBER = r"-?[0-9.]+(?:[eE][-+]?[0-9]+)?"
_BOUND = re.compile(rf"(?P<relation><=|>=|<|>)\s*(?P<limit>{_NUMBER})")
_BETWEEN = re.compile(rf"between\s+(?P<low>{_NUMBER})\s+and\s+(?P<high>{_NUMBER})")


class Verdict(StrEnum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    PARTLY = "partly"
    NOT_REPRODUCED = "not reproduced"


@dataclass(frozen=True)
class Bound:
    """An interval of the real line, as written in an experiment."""

    text: str
    low: float
    high: float
    open: bool

    @classmethod
    def parse(cls, text: str, key: str, file: str) -> Bound:
        """Reads ``<= 0.01``, ``> 6`` or ``between 0.1 and 0.3`` (ends included)."""
        if found := _BOUND.fullmatch(text.strip()):
            limit = float(found["limit"])
            downwards = found["relation"].startswith("<")
            return cls(
                text,
                -math.inf if downwards else limit,
                limit if downwards else math.inf,
                open="=" not in found["relation"],
            )
        if found := _BETWEEN.fullmatch(text.strip()):
            return cls(text, float(found["low"]), float(found["high"]), open=False)
        raise InputError(
            "not a bound",
            file=file,
            key=key,
            value=text,
            allowed="'<= x', '< x', '>= x', '> x' or 'between x and y'",
        )

    def holds(self, value: float) -> bool:
        """Whether a number lies within."""
        if self.open:
            return self.low < value < self.high
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Claim:
    """A statement of a paper that a run bears out or does not.

    Attributes:
        id: Its name within the experiment.
        text: The statement in words.
        paper: The paper's value or words.
        measure: SQL over :mod:`bluewater.tables` that gives ``seed`` and ``value``.
        unit: The unit of the value.
        holds: Where the value must lie.
        partly: Where it may lie for the claim to hold in part.
        note: What to know about how it is measured.
        plot: The plot that shows it.
    """

    id: str
    text: str
    paper: str
    measure: str
    unit: str
    holds: Bound
    partly: Bound | None
    note: str
    plot: str

    @classmethod
    def parse(cls, table: Mapping[str, Any], file: str) -> Claim:
        """Reads one ``[[claim]]``."""
        required = {"id", "text", "paper", "measure", "holds"}
        optional = {"unit", "partly", "note", "plot"}
        check_keys(table, required, optional, "claim", file)
        key = f"claim.{table['id']}"
        partly = table.get("partly")
        return cls(
            id=table["id"],
            text=table["text"],
            paper=table["paper"],
            measure=table["measure"],
            unit=table.get("unit", ""),
            holds=Bound.parse(table["holds"], f"{key}.holds", file),
            partly=None if partly is None else Bound.parse(partly, f"{key}.partly", file),
            note=table.get("note", ""),
            plot=table.get("plot", ""),
        )


@dataclass(frozen=True)
class Finding:
    """A claim with what was measured.

    Attributes:
        measured: ``None`` if a seed gave no number.
        provisional: Too few seeds for an interval to count.
    """

    claim: Claim
    measured: Estimate | None
    verdict: Verdict
    provisional: bool
    values: Mapping[int, float | None]


def judge(claim: Claim, tables: Tables, file: str, *, exact: bool = False) -> Finding:
    """Measures a claim and decides on it; ``exact`` values do not depend on the seed."""
    key = f"claim.{claim.id}.measure"
    found = tables.query(claim.measure, ("seed", "value"), key, file)
    rows = dict(found.select("seed", "value").sort("seed").iter_rows())
    if len(rows) != found.height:
        raise InputError(
            "the measure gives more than one row a seed", file=file, key=key, value=claim.measure
        )
    seeds = sorted({entry.seed for entry in tables.entries})
    values = {seed: _number(rows.get(seed)) for seed in seeds}
    numbers = [value for value in values.values() if value is not None]
    provisional = len(seeds) < MIN_SEEDS and not exact
    if not numbers or len(numbers) != len(seeds):
        return Finding(claim, None, Verdict.NOT_REPRODUCED, provisional, values)
    measured = estimate(numbers)
    return Finding(
        claim, measured, decide(measured, claim.holds, claim.partly), provisional, values
    )


def decide(measured: Estimate, holds: Bound, partly: Bound | None) -> Verdict:
    """The rule of this module."""
    inside = holds.holds(measured.mean)
    if measured.count >= MIN_SEEDS:
        certain = holds.holds(measured.low) and holds.holds(measured.high)
    else:
        certain = inside
    if certain:
        return Verdict.REPRODUCED
    if inside or (partly is not None and partly.holds(measured.mean)):
        return Verdict.PARTLY
    return Verdict.NOT_REPRODUCED


def _number(value: object) -> float | None:
    if value is None:
        return None
    number = float(value)  # type: ignore[arg-type]
    return number if math.isfinite(number) else None
