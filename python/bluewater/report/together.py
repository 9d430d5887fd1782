"""How many claims of a paper hold together, by how far one reading has to reach.

A claim is counted as reproduced if any reading meets it, so that two claims of one figure may stand
on two networks. Here each counts only by the reading that the others have, too: as the experiments
stand, the best of a section's readings for all of the section, the best for all of a figure, and a
reading a claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bluewater.results.tables import STANDARD
from bluewater.study.experiments.claims import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bluewater.study.experiments.readings import Reading

COLUMNS = (
    "as they stand",
    "one reading a section",
    "one reading a figure",
    "a reading a claim",
)

_STANDARD = None
"""The standard reading, which is not declared."""

Pair = tuple["Mapping[str, Any]", "Mapping[str, Any]"]
"""An experiment's section of the page, and a finding of it."""


def together(papers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row a paper: its claims, and how many hold together; ours are left out."""
    rows = []
    for paper in papers:
        pairs = [
            (section, finding)
            for section in paper["sections"]
            for finding in section["findings"]
            if finding["claim"].origin == "paper"
        ]
        # A size that is too small has no verdict.
        judged = [pair for pair in pairs if pair[1]["verdict"] is not Verdict.NEEDS_FULL]
        if judged and not paper["own"]:
            counts = [
                sum(_meets(pair, _STANDARD) for pair in judged),
                sum(_best(group, own=False) for group in _grouped(judged, by_section=True)),
                sum(_best(group, own=True) for group in _grouped(judged, by_section=False)),
                sum(
                    finding["verdict"] in (Verdict.REPRODUCED, Verdict.STATED)
                    for _, finding in judged
                ),
            ]
            rows.append({"name": paper["cite"], "claims": len(judged), "counts": counts})
    if len(rows) > 1:
        sums = [sum(column) for column in zip(*(row["counts"] for row in rows), strict=True)]
        claims = sum(row["claims"] for row in rows)
        rows.append({"name": "all papers", "claims": claims, "counts": sums})
    return rows


def _grouped(pairs: Sequence[Pair], *, by_section: bool) -> list[list[Pair]]:
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        experiment = pair[0]["experiment"]
        named = experiment.section if by_section else None
        found.setdefault(f"§{named.id}" if named else experiment.id, []).append(pair)
    return list(found.values())


def _best(pairs: Sequence[Pair], *, own: bool) -> int:
    """The most claims of a group that one reading meets.

    ``own``: an experiment's own readings count as well, not its section's alone.
    """
    readings: dict[str, Reading | None] = {STANDARD: _STANDARD}
    for section, _ in pairs:
        experiment = section["experiment"]
        joint = experiment.section.readings if experiment.section else ()
        # A section's own is told by all its claims, an experiment's copy of it by those here.
        readings |= {each.id: each for each in (*(experiment.readings if own else ()), *joint)}
    return max(sum(_meets(pair, each) for pair in pairs) for each in readings.values())


def _meets(pair: Pair, reading: Reading | None) -> bool:
    """Whether a claim is met in a reading.

    One that changes no run of the experiment is the standard one there; what a reading was not
    stated for it does not meet.
    """
    _, finding = pair
    verdicts = {each["reading"]: each["verdict"] for each in finding["readings"]}
    fallback = None if reading and reading.claims else verdicts[STANDARD]
    return verdicts.get(reading.id if reading else STANDARD, fallback) is Verdict.REPRODUCED
