"""The verdicts of the full size, kept beside the experiments.

``make verdicts`` writes them from the runs of a full size. Reports of smaller sizes and the
documentation quote them.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from bluewater.study.experiments import experiment
from bluewater.study.experiments.claims import Bound, Measured, Verdict, conclude, is_fitted
from bluewater.study.experiments.together import Judged, together
from bluewater.study.scenarios.typed import Table

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from bluewater.study.experiments.claims import Claim
    from bluewater.study.experiments.together import Row

FILE = "verdicts.json"


class Kept(Table, frozen=True):
    """The full size's result for a claim.

    Attributes:
        origin: Whose claim it is: the paper's or ours.
        text: The claim in words.
        holds: The bound, as in its file.
        under: The readings that decide the verdict, unless it is the standard one.
        value: The mean in the deciding reading.
        spread: Half of its interval.
        fitted: Whether it is reproduced, and yet no evidence.
        readings: The verdict in each reading.
    """

    origin: str
    text: str
    verdict: str
    under: tuple[str, ...]
    value: float | None
    spread: float | None
    unit: str
    holds: str
    fitted: bool
    readings: dict[str, str]

    @property
    def told(self) -> str:
        """The verdict, with the readings that decide it."""
        under = f" ({', '.join(self.under)})" if self.under else ""
        return f"{self.verdict}{under}{', fitted' if self.fitted else ''}"

    @property
    def measured(self) -> str:
        """The value with its spread and unit."""
        return Bound(self.holds).beside(self.value, self.spread, self.unit)


class Verdicts(Table, frozen=True):
    """The kept results of a full size.

    Attributes:
        core: The versions of the core that made the runs.
        date: The day of the last runs.
        table: How many claims hold, by paper.
        claims: Each claim's result, by ``EXPERIMENT CLAIM``.
    """

    core: str
    date: str
    table: tuple[tuple[str, tuple[int, ...]], ...]
    claims: dict[str, Kept]

    def of(self, name: str, claim: Claim) -> Kept | None:
        """The kept result of a claim, unless its bound has changed."""
        kept = self.claims.get(f"{name} {claim.id}")
        return kept if kept and kept.holds == claim.holds.text else None

    def rows(self, papers: Collection[str]) -> list[Row]:
        """The table's rows of the named papers; with the sum if all are named."""
        rows = [row for row in self.table if row[0] in papers]
        return list(self.table) if len(rows) > 1 and len(rows) == len(self.table) - 1 else rows


NONE = Verdicts(core="", date="", table=(), claims={})


def kept() -> Verdicts:
    """The kept verdicts; empty without a file, as for your own experiments."""
    return _read(experiment.root() / FILE)


@cache
def _read(path: Path) -> Verdicts:
    if not path.is_file():
        return NONE
    return msgspec.json.decode(path.read_bytes(), type=Verdicts)


def gather(folder: Path, core: str, date: str) -> Verdicts:
    """Collects the verdicts of a full size from a folder of results.

    Args:
        folder: The folder of ``bluewater reproduce --out``.
        core: The version of the core that made the runs.
        date: The day to write.
    """
    claims: dict[str, Kept] = {}
    for name in experiment.known():
        path = folder / name.replace("/", "-") / "claims.json"
        if not path.is_file():
            continue
        made = json.loads(path.read_text("utf-8"))
        if made["size"] != "full":
            continue
        claims |= {f"{name} {each['id']}": _kept(each) for each in made["claims"]}
    return judged(Verdicts(core=core, date=date, table=(), claims=claims))


def judged(held: Verdicts) -> Verdicts:
    """The same measurements, with verdicts and counts by what the experiments' files say now.

    A claim whose bound or whose readings changed needs runs, and is left out.
    """
    claims: dict[str, Kept] = {}
    counted: list[Judged] = []
    for name in experiment.known():
        of = experiment.load(name)
        for claim in of.claims:
            found = held.of(name, claim)
            if found is None:
                continue
            readings = {key: Verdict(value) for key, value in found.readings.items()}
            measured = [Measured(key, None, value, {}) for key, value in readings.items()]
            verdict, under = conclude(claim, measured)
            if under and tuple(under) != found.under:
                continue  # the value that is kept is another reading's
            claims[f"{name} {claim.id}"] = msgspec.structs.replace(
                found,
                origin=claim.origin,
                text=claim.text,
                verdict=str(verdict),
                under=tuple(under),
                fitted=is_fitted(claim, verdict, under, of.hindsight),
            )
            if claim.origin == "paper":
                counted.append(Judged(of, verdict, bool(claim.fitted), readings))
    return msgspec.structs.replace(held, table=tuple(together(counted)), claims=claims)


def merged(before: Verdicts, after: Verdicts) -> Verdicts:
    """Verdicts of some experiments in the place of those that were kept, and all judged anew."""
    fresh = {name.partition(" ")[0] for name in after.claims}
    old = {name: each for name, each in before.claims.items() if name.split()[0] not in fresh}
    cores = dict.fromkeys((*before.core.split(", "), after.core)) if fresh else (before.core,)
    return judged(
        Verdicts(
            core=", ".join(cores),
            date=after.date if fresh else before.date,
            table=(),
            claims=old | after.claims,
        )
    )


def _kept(each: Mapping[str, object]) -> Kept:
    readings: Sequence[Mapping[str, object]] = each["readings"]  # type: ignore[assignment]
    under: Sequence[str] = each["under"]  # type: ignore[assignment]
    decisive = next((r for r in readings if r["reading"] in under), readings[0])
    return msgspec.convert(
        {
            "origin": each["origin"],
            "text": each["text"],
            "verdict": each["verdict"],
            "under": under,
            "value": decisive["measured"],
            "spread": decisive["spread"],
            "unit": each["unit"],
            "holds": each["holds"],
            "fitted": False,
            "readings": {str(r["reading"]): r["verdict"] for r in readings},
        },
        Kept,
    )
