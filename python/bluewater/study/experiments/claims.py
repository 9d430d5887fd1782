"""Claims: statements of a paper, the measured values, and the verdicts.

A claim is measured in the standard reading of an experiment and in each of its stated readings. The
measure gives one number per seed. In one reading, with three seeds or more, the claim is

- *reproduced* if the whole 95 % t-interval of the mean lies within ``holds``;
- otherwise *partly*, if the mean lies within ``holds`` or within ``partly``;
- otherwise *not reproduced*; also if any seed gives no number.

With one or two seeds an interval says nothing: only the mean is compared, and the verdict is
*provisional*, unless the value is a formula's.

The verdict of the claim is the first of these that is true:

- *needs full size*: the size declares itself too small for this claim, or the standard reading does
  not reproduce the claim and the size leaves out its stated readings;
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

from bluewater import text
from bluewater.errors import InputError
from bluewater.results.stats import Estimate, estimate
from bluewater.results.tables import STANDARD
from bluewater.study.scenarios.typed import Table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from bluewater.results.tables import Tables

MIN_SEEDS = 3
"""With fewer seeds a verdict is provisional."""

AS_WRITTEN = "As it was first written for the paper's words, not moved since."
"""The default source of a bound, for a paper's claim whose file names no other."""

_MORE_DIGITS = 7
"""With how many digits more a value may be written beside its bound."""

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_BOUND = re.compile(rf"(?P<relation><=|>=|<|>)\s*(?P<limit>{_NUMBER})")
_BETWEEN = re.compile(rf"between\s+(?P<low>{_NUMBER})\s+and\s+(?P<high>{_NUMBER})")


class Verdict(StrEnum):
    """The verdict on a claim; the best first."""

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
                    "no number meets this bound", value=text, allowed="the lower end first"
                )
        else:
            raise InputError(
                "not a bound",
                value=text,
                allowed="'<= x', '< x', '>= x', '> x' or 'between x and y', as text",
            )

    @property
    def told(self) -> str:
        """The interval as text for people."""
        return self.text.strip().replace("<=", "≤").replace(">=", "≥")

    def holds(self, value: float) -> bool:
        """Whether a number lies within the interval."""
        if self.open:
            return self.low < value < self.high
        return self.low <= value <= self.high

    def beside(self, mean: float | None, half_width: float | None, unit: str) -> str:
        """A value as text, with digits enough to show which bounds it and its interval keep."""
        if mean is None:
            return text.measured(None, None, unit)
        half = half_width or 0.0
        for more in range(_MORE_DIGITS):
            near, wide = float(text.number(mean, 3 + more)), float(text.number(half, 2 + more))
            if self._kept(near, wide) == self._kept(mean, half):
                break
        return text.measured(mean, half_width, unit, more)

    def _kept(self, mean: float, half: float) -> list[bool]:
        return [self.holds(each) for each in (mean - half, mean, mean + half)]


class Contradiction(Table, frozen=True):
    """Why the sentence of a claim cannot be true as the paper words it.

    Attributes:
        by: The kind of proof.
        why: The proof, in steps that a sceptic can follow.
    """

    by: Literal["arithmetic", "the paper itself"]
    why: str


By: TypeAlias = Literal["times", "less", "after", "within", "percent"]


class Drawn(Table, frozen=True):
    """The place of a claim in its plot.

    Attributes:
        panel: The title of the panel, if the claim is not drawn in all.
        x: Its x, if not every x; two numbers are the ends of a stretch.
        paper: The paper's number, in the axis' unit.
        axis: The axis that its value belongs to.
        scale: The factor from the value's unit to the axis' unit.
        of: The reference that its value is compared with: a line of the plot, or a number.
        by: How it is compared: as a multiple of the reference, as percent less, as a difference
            after it, or as the greatest distance from it, absolute (``within``) or in percent.
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
                "`by` needs a reference to compare with",
                key="drawn.by",
                value=self.by,
                allowed="with `of`",
            )
        if self.axis == "x" and isinstance(self.of, str):
            raise InputError(
                "a line has no numbers of the x axis",
                key="drawn.of",
                value=self.of,
                allowed="a number",
            )


class Claim(Table, frozen=True):
    """A statement of a paper that runs support or contradict.

    Attributes:
        id: Its name within the experiment.
        text: The statement in words.
        paper: The paper's value or words.
        measure: SQL over :mod:`bluewater.results.tables` that gives ``seed`` and ``value``.
        unit: The unit of the value.
        holds: The bound: the interval for the value.
        partly: A wider interval, in which the claim holds in part.
        bound: The source of the bound: the paper's words, or ours.
        origin: Whose claim it is: the paper's or ours.
        note: A remark on the measure.
        fitted: The choice or change that was made when the result was known, or why the measure
            cannot fail, if there is one; meeting the bound is then no evidence.
        plot: The plot that shows it.
        drawn: Where that plot draws its bound and the paper's number.
        authors: The result of the authors' own program, if it matters for the verdict; above all if
            it does not meet the bound.
        cause: Why it is not reproduced, in a line, if known.
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
        """The source of the bound of a paper's claim."""
        return self.bound or (AS_WRITTEN if self.origin == "paper" else "")

    def shown(self, found: Estimate | None) -> str:
        """A measured value as text."""
        mean, half_width = (found.mean, found.half_width) if found else (None, None)
        return self.holds.beside(mean, half_width, self.unit)


@dataclass(frozen=True)
class Measured:
    """A claim in one reading.

    Attributes:
        reading: Its name.
        estimate: ``None`` if a seed gave no number.
        verdict: One of *reproduced*, *partly* and *not reproduced*.
        values: One number per seed.
    """

    reading: str
    estimate: Estimate | None
    verdict: Verdict
    values: Mapping[int, float | None]


@dataclass(frozen=True)
class Finding:
    """A claim with its measured values and its verdict.

    Attributes:
        readings: The standard reading first, then the stated ones.
        verdict: The verdict on the claim.
        under: The stated readings in which it is reproduced or holds in part, if the standard
            reading does not decide.
        provisional: Whether there are too few seeds for an interval.
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
        """The result in the standard reading."""
        return self.readings[0].estimate

    @property
    def decisive(self) -> Measured:
        """The result that decides the verdict: the standard reading's, or the first named one's."""
        return next((r for r in self.readings if r.reading in self.under), self.readings[0])

    @property
    def fitted(self) -> bool:
        """Whether it is reproduced, and yet no evidence."""
        return is_fitted(self.claim, self.verdict, self.under, self.hindsight)

    @property
    def refuted(self) -> bool:
        """Whether a run meets a claim that its file proves impossible."""
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
    """Measures a claim and finds its verdict.

    Args:
        claim: The claim.
        tables: The runs of all readings.
        file: The claim's file, for messages.
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
        return bool(claim.fitted) or only_in_hindsight(under, hindsight)
    return verdict is Verdict.REPRODUCED and bool(claim.fitted)


def only_in_hindsight(under: Iterable[str], hindsight: Collection[str]) -> bool:
    """Whether each reading that reproduces a claim was chosen with the results in view."""
    return all(name in hindsight for name in under)


def conclude(claim: Claim, found: Sequence[Measured]) -> tuple[Verdict, list[str]]:
    """The verdict on a claim from its readings' verdicts, and the readings that decide it."""

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
    """Measures a claim in one reading, on that reading's runs."""
    key = f"claim.{claim.id}.measure"
    found = tables.query(claim.measure, ("seed", "value"), key, file)
    rows = dict(found.select("seed", "value").sort("seed").iter_rows())
    if len(rows) != found.height:
        raise InputError(
            "the measure gives more than one row per seed", file=file, key=key, value=claim.measure
        )
    seeds = sorted({entry.seed for entry in tables.entries})
    values = {seed: _number(rows.get(seed)) for seed in seeds}
    numbers = [value for value in values.values() if value is not None]
    if not numbers or len(numbers) != len(seeds):
        return Measured(reading, None, Verdict.NOT_REPRODUCED, values)
    measured = estimate(numbers)
    return Measured(reading, measured, decide(measured, claim.holds, claim.partly), values)


def decide(measured: Estimate, holds: Bound, partly: Bound | None) -> Verdict:
    """The verdict in one reading, by the rule in this module's description."""
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
