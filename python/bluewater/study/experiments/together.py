"""How many claims of a paper hold, and how.

Each claim counts once, by what its verdict rests on. A claim counts as reproduced if any reading
meets it, so that two claims of one figure may stand on two networks. Therefore two more counts
have the claims that hold as the experiments stand, and in the best single reading of each section.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bluewater.results.tables import STANDARD
from bluewater.study.experiments.claims import Verdict, only_in_hindsight

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bluewater.study.experiments.claims import Finding
    from bluewater.study.experiments.experiment import Experiment
    from bluewater.study.experiments.readings import Reading

COLUMNS = (
    "claims",
    "as they stand",
    "another reading",
    "only in hindsight",
    "fitted otherwise",
    "open",
    "contradicted",
    "as they stand, fitted or not",
    "one reading a section",
)
"""What a row counts: all claims; six counts that add up to them; and two that count again."""
ONCE = COLUMNS[:-2]

ALL = "all papers"


@dataclass(frozen=True)
class Judged:
    """A claim of a paper with its verdicts.

    Attributes:
        readings: The verdict in each measured reading.
    """

    experiment: Experiment
    verdict: Verdict
    fitted: bool
    readings: Mapping[str, Verdict]


Row = tuple[str, tuple[int, ...]]
"""A paper's citation, with the counts of :data:`COLUMNS`."""


def of_findings(experiment: Experiment, findings: Iterable[Finding]) -> list[Judged]:
    """The judged claims of an experiment's paper, without ours."""
    return [
        Judged(
            experiment,
            each.verdict,
            bool(each.claim.fitted),
            {found.reading: found.verdict for found in each.readings},
        )
        for each in findings
        if each.claim.origin == "paper"
    ]


def together(claims: Sequence[Judged]) -> list[Row]:
    """A row per paper, most claims first, and one for all; without suites and our questions."""
    papers: dict[str, list[Judged]] = {}
    for each in claims:
        paper = each.experiment.paper
        # A size that is too small gives no verdict.
        if not paper.own and not paper.suite and each.verdict is not Verdict.NEEDS_FULL:
            papers.setdefault(paper.cite, []).append(each)
    rows = [(name, _counts(judged)) for name, judged in papers.items()]
    rows.sort(key=lambda row: -row[1][0])
    if len(rows) > 1:
        sums = zip(*(counts for _, counts in rows), strict=True)
        rows.append((ALL, tuple(sum(column) for column in sums)))
    return rows


def _counts(judged: Sequence[Judged]) -> tuple[int, ...]:
    stand = [each for each in judged if each.verdict is Verdict.REPRODUCED]
    sections: dict[str, list[Judged]] = {}
    for each in judged:
        named = each.experiment.section
        sections.setdefault(f"§{named.id}" if named else each.experiment.id, []).append(each)
    stated = [each for each in judged if each.verdict is Verdict.STATED]
    supported = [each for each in stated if not _hindsight(each)]
    return (
        len(judged),
        sum(not each.fitted for each in stand),
        sum(not each.fitted for each in supported),
        len(stated) - len(supported),
        sum(each.fitted for each in (*stand, *supported)),
        sum(each.verdict in (Verdict.PARTLY, Verdict.NOT_REPRODUCED) for each in judged),
        sum(each.verdict is Verdict.CONTRADICTED for each in judged),
        len(stand),
        sum(map(_best, sections.values())),
    )


def _best(judged: Sequence[Judged]) -> int:
    """The greatest number of a section's claims that one reading meets."""
    section = judged[0].experiment.section
    readings = (None, *(section.readings if section else ()))
    return max(sum(_meets(each, reading) for each in judged) for reading in readings)


def _hindsight(claim: Judged) -> bool:
    """Whether no reading meets it that was chosen without the results in view."""
    met = (name for name, verdict in claim.readings.items() if verdict is Verdict.REPRODUCED)
    return only_in_hindsight(met, claim.experiment.hindsight)


def _meets(claim: Judged, reading: Reading | None) -> bool:
    """Whether a reading meets a claim.

    A reading that changes no run of the experiment counts as the standard one. A reading that is
    not judged for the claim does not meet it.
    """
    fallback = None if reading and reading.claims else claim.readings[STANDARD]
    name = reading.id if reading else STANDARD
    return claim.readings.get(name, fallback) is Verdict.REPRODUCED
