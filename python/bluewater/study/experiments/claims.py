"""Claims: statements of a paper, what was measured instead, and the verdict.

A claim is measured in the standard reading of an experiment and in each of its stated readings. The
measure gives one number a seed. In one reading, with three seeds or more, it is

- *reproduced* if the whole 95 % t-interval of the mean lies within ``holds``;
- *partly* else, if the mean lies within ``holds`` or within ``partly``;
- *not reproduced* else, or if any seed gives no number.

With one or two seeds an interval says nothing, so the mean alone is compared and the verdict is
*provisional*, unless the value is a formula's.

The verdict of the claim is the first of these that is true:

- *needs full size*: the size says that it is too small for this claim, or leaves out the stated
  readings of a claim that the standard one does not reproduce;
- *reproduced*, in the standard reading;
- *reproduced under a stated reading*, which is named;
- *contradicted*: the claim comes with a proof against the sentence as the paper words it;
- *partly*, in any reading, the standard one first;
- *not reproduced*.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from bluewater.errors import InputError
from bluewater.results.stats import Estimate, estimate
from bluewater.results.tables import STANDARD
from bluewater.study.scenarios.typed import Table

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from bluewater.results.tables import Tables

MIN_SEEDS = 3
"""With fewer seeds a verdict is provisional."""

AS_WRITTEN = "As it was first written for the paper's words, not moved since."
"""Where the bound of a paper's claim comes from whose file says nothing else."""

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_BOUND = re.compile(rf"(?P<relation><=|>=|<|>)\s*(?P<limit>{_NUMBER})")
_BETWEEN = re.compile(rf"between\s+(?P<low>{_NUMBER})\s+and\s+(?P<high>{_NUMBER})")


class Verdict(StrEnum):
    """What became of a claim, the best first."""

    REPRODUCED = "reproduced"
    STATED = "reproduced under a stated reading"
    PARTLY = "partly"
    CONTRADICTED = "contradicted"
    NOT_REPRODUCED = "not reproduced"
    NEEDS_FULL = "needs full size"


class Bound:
    """An interval of the real line, as written in an experiment.

    ``<= 0.01``, ``> 6`` or ``between 0.1 and 0.3`` (ends included).
    """

    def __init__(self, text: str) -> None:
        self.text = text
        written = text.strip() if isinstance(text, str) else ""
        if found := _BOUND.fullmatch(written):
            limit = float(found["limit"])
            downwards = found["relation"].startswith("<")
            self.low = -math.inf if downwards else limit
            self.high = limit if downwards else math.inf
            self.open = "=" not in found["relation"]
        elif found := _BETWEEN.fullmatch(written):
            self.low, self.high, self.open = float(found["low"]), float(found["high"]), False
            if self.low > self.high:
                raise InputError(
                    "a bound that no number meets", value=text, allowed="the lower end first"
                )
        else:
            raise InputError(
                "not a bound",
                value=text,
                allowed="'<= x', '< x', '>= x', '> x' or 'between x and y', as text",
            )

    @property
    def told(self) -> str:
        """It as it is written for people."""
        return self.text.strip().replace("<=", "≤").replace(">=", "≥")

    def holds(self, value: float) -> bool:
        """Whether a number lies within."""
        if self.open:
            return self.low < value < self.high
        return self.low <= value <= self.high


class Contradiction(Table, frozen=True):
    """Why the sentence of a claim cannot be true as the paper words it.

    Attributes:
        by: What shows it.
        why: The proof, in steps that a sceptic can follow.
    """

    by: Literal["arithmetic", "the paper itself"]
    why: str


By: TypeAlias = Literal["times", "less", "after", "within", "percent"]


class Drawn(Table, frozen=True):
    """Where a claim stands in its plot.

    Attributes:
        panel: The title of the panel, if not of all.
        x: At which x, if not at every one; two numbers are the ends of a stretch.
        paper: The paper's number, in the axis' unit.
        axis: Which axis its value is a number of.
        scale: How many units of the axis a unit of its value is.
        of: What its value is compared with: a line of the plot, or a number.
        by: How: so many times it, so many percent less, so much after it, or at most so far from
            it, as a difference (``within``) or in percent.
    """

    panel: str = ""
    x: float | str | tuple[float, float] | None = None
    paper: float | None = None
    axis: Literal["x", "y"] = "y"
    scale: float = 1.0
    of: float | str | None = None
    by: By = "times"

    def __post_init__(self) -> None:
        if self.by != "times" and self.of is None:
            raise InputError(
                "compared with nothing", key="drawn.by", value=self.by, allowed="with `of`"
            )
        if self.axis == "x" and isinstance(self.of, str):
            raise InputError(
                "a line has no numbers of the x axis",
                key="drawn.of",
                value=self.of,
                allowed="a number",
            )


class Claim(Table, frozen=True):
    """A statement of a paper that a run bears out or does not.

    Attributes:
        id: Its name within the experiment.
        text: The statement in words.
        paper: The paper's value or words.
        measure: SQL over :mod:`bluewater.results.tables` that gives ``seed`` and ``value``.
        unit: The unit of the value.
        holds: Where the value must lie.
        partly: Where it may lie for the claim to hold in part.
        bound: Where the bound comes from: the paper's words, or ours.
        origin: Who says it: the paper, or we.
        note: What to know about how it is measured.
        fitted: What was chosen or changed after the result was known, or why the measure cannot
            fail, if either is so: then that the claim is met is no evidence.
        plot: The plot that shows it.
        drawn: Where its bound and the paper's number are drawn in that plot.
        authors: What the authors' own program does where it was run, if the reader should know it
            beside the verdict: that it does not meet the bound, above all.
        cause: Why it is not reproduced, in a line, where that is known.
        contradicted: The proof against it, if there is one.
    """

    id: str
    text: str
    paper: str
    measure: str
    holds: Bound
    unit: str = ""
    partly: Bound | None = None
    bound: str = ""
    origin: Literal["paper", "ours"] = "paper"
    note: str = ""
    fitted: str = ""
    plot: str = ""
    drawn: Drawn | None = None
    authors: str = ""
    cause: str = ""
    contradicted: Contradiction | None = None

    @property
    def basis(self) -> str:
        """Where the bound comes from, for each claim of a paper."""
        return self.bound or (AS_WRITTEN if self.origin == "paper" else "")


@dataclass(frozen=True)
class Measured:
    """A claim in one reading.

    Attributes:
        reading: Its name.
        estimate: ``None`` if a seed gave no number.
        verdict: One of *reproduced*, *partly* and *not reproduced*.
        values: A number a seed.
    """

    reading: str
    estimate: Estimate | None
    verdict: Verdict
    values: Mapping[int, float | None]


@dataclass(frozen=True)
class Finding:
    """A claim with what was measured.

    Attributes:
        readings: The standard reading first, then those that were stated.
        verdict: That of the claim.
        under: The stated readings that it is reproduced, or partly met, under, if it is so only
            there.
        provisional: Too few seeds for an interval to count.
        hindsight: The readings that were chosen with the results in view.
    """

    claim: Claim
    readings: Sequence[Measured]
    verdict: Verdict
    under: Sequence[str]
    provisional: bool
    hindsight: Collection[str] = ()

    @property
    def measured(self) -> Estimate | None:
        """What the standard reading gave."""
        return self.readings[0].estimate

    @property
    def decisive(self) -> Measured:
        """What the verdict rests on: the standard reading, or the first that is named."""
        return next((r for r in self.readings if r.reading in self.under), self.readings[0])

    @property
    def fitted(self) -> bool:
        """Whether it is reproduced, and yet no evidence."""
        return is_fitted(self.claim, self.verdict, self.under, self.hindsight)

    @property
    def refuted(self) -> bool:
        """Whether a run shows what the file proves to be impossible."""
        return self.claim.contradicted is not None and any(
            each.verdict is Verdict.REPRODUCED for each in self.readings
        )


def judge(
    claim: Claim,
    tables: Tables,
    file: str,
    *,
    readings: Sequence[str] = (),
    exact: bool = False,
    needs_full: bool = False,
    unread: bool = False,
    hindsight: Collection[str] = (),
) -> Finding:
    """Measures a claim and decides on it.

    Args:
        claim: The claim.
        tables: The runs of all readings.
        file: Where the claim is written.
        readings: The stated readings that the claim is judged under.
        exact: Whether values do not depend on the seed.
        needs_full: Whether the size is too small for the claim.
        unread: Whether the size leaves out stated readings of the claim.
        hindsight: The readings that were chosen with the results in view.
    """
    found = [measure(claim, tables.of(reading), file, reading) for reading in (STANDARD, *readings)]
    verdict, under = conclude(claim, found)
    if needs_full or (unread and verdict is not Verdict.REPRODUCED):
        verdict, under = Verdict.NEEDS_FULL, []
    few = len(found[0].values) < MIN_SEEDS and not exact
    provisional = few and verdict is not Verdict.NEEDS_FULL
    return Finding(claim, found, verdict, under, provisional, hindsight)


def is_fitted(
    claim: Claim, verdict: Verdict, under: Sequence[str], hindsight: Collection[str]
) -> bool:
    """Whether a claim is reproduced, and yet no evidence.

    Its file says so, or each reading that reproduces it was chosen with the results in view.
    """
    if verdict is Verdict.STATED:
        return bool(claim.fitted) or all(name in hindsight for name in under)
    return verdict is Verdict.REPRODUCED and bool(claim.fitted)


def conclude(claim: Claim, found: Sequence[Measured]) -> tuple[Verdict, list[str]]:
    """The verdict on a claim by those of its readings, and the readings that it rests on."""

    def stated(verdict: Verdict) -> list[str]:
        return [each.reading for each in found[1:] if each.verdict is verdict]

    if found[0].verdict is Verdict.REPRODUCED:
        return Verdict.REPRODUCED, []
    if under := stated(Verdict.REPRODUCED):
        return Verdict.STATED, under
    if claim.contradicted is not None:
        return Verdict.CONTRADICTED, []
    if found[0].verdict is Verdict.PARTLY:
        return Verdict.PARTLY, []
    if under := stated(Verdict.PARTLY):
        return Verdict.PARTLY, under
    return Verdict.NOT_REPRODUCED, []


def measure(claim: Claim, tables: Tables, file: str, reading: str) -> Measured:
    """Measures a claim in one reading, whose runs these are."""
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
    if not numbers or len(numbers) != len(seeds):
        return Measured(reading, None, Verdict.NOT_REPRODUCED, values)
    measured = estimate(numbers)
    return Measured(reading, measured, decide(measured, claim.holds, claim.partly), values)


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
