"""Papers: their citation, their sections, and the sections' unknowns.

A paper is the file ``paper.toml`` in the folder of its experiments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from bluewater.errors import InputError
from bluewater.files import parse_table, read_text
from bluewater.study.experiments.lines import telling_lines
from bluewater.study.experiments.readings import Reading, Unknown, check
from bluewater.study.experiments.templates import Names
from bluewater.study.scenarios.typed import Table, read

if TYPE_CHECKING:
    from pathlib import Path

FILE = "paper.toml"

SCORE = ("discipline", "test", "seed", "delay_s", "goodput_bps")
"""The columns of the view ``score``, with which an experiment takes part in a scorecard."""


class Section(Table, frozen=True):
    """A section of a paper, whose experiments share one network, one TCP and one method.

    Attributes:
        id: Its number or name.
        title: Its subject.
        experiments: The names of its experiments' files.
        unknowns: The unknowns of all of them (``[[section.unknown]]``).
        readings: Readings that all of them are judged under (``[[section.reading]]``).
    """

    id: str
    title: str
    experiments: tuple[str, ...]
    unknowns: tuple[Unknown, ...] = msgspec.field(name="unknown", default=())
    readings: tuple[Reading, ...] = msgspec.field(name="reading", default=())


class Paper(Table, frozen=True):
    """A paper.

    Attributes:
        cite: The short name it is cited by.
        title: Its title.
        source: Authors, where it appeared, and when.
        own: Whether it is no paper but a set of our own questions.
        suite: Whether it is a suite of tests, which is run only by its name.
        scorecard: The baseline of the table over all its tests, which its experiments' views
            ``score`` define.
        views: Queries that all of its experiments may use, after their own (``[view]``).
        named: Values that its experiments may use by name (``[named]``), see
            :mod:`bluewater.study.experiments.templates`.
        sections: ``[[section]]``.
    """

    cite: str
    title: str
    source: str
    own: bool = False
    suite: bool = False
    scorecard: str = ""
    views: dict[str, str] = msgspec.field(name="view", default_factory=dict)
    named: dict[str, Any] = msgspec.field(default_factory=dict)
    sections: tuple[Section, ...] = msgspec.field(name="section", default=())

    def section(self, experiment: str) -> Section | None:
        """The section of the experiment with this file name."""
        return next((each for each in self.sections if experiment in each.experiments), None)


def load(folder: Path) -> Paper:
    """The paper of a folder of experiments; without ``paper.toml`` it has the folder's name."""
    path = folder / FILE
    if not path.exists():
        return Paper(cite=folder.name, title=folder.name, source="")
    file, text = str(path), read_text(path)
    with telling_lines(text, file):
        return _parse(text, file, {each.stem for each in folder.glob("*.toml")} - {path.stem})


def _parse(text: str, file: str, there: set[str]) -> Paper:
    table = parse_table(text, file)
    names = Names.of(table, file)
    paper = read(names.filled(table) | {"named": names.named}, Paper, file)
    placed: set[str] = set()
    for section in paper.sections:
        key = f"section.{section.id}.experiments"
        for name in section.experiments:
            if name not in there or name in placed:
                raise InputError(
                    "an experiment in two sections" if name in placed else "no such experiment",
                    file=file,
                    key=key,
                    value=name,
                    allowed=", ".join(sorted(there - placed)),
                )
            placed.add(name)
        check(section.unknowns, section.readings, file)
        for reading in section.readings:
            for claim in reading.claims:
                if claim.partition("/")[0] not in section.experiments:
                    raise InputError(
                        "not a claim of the section",
                        file=file,
                        key=f"section.{section.id}.reading.{reading.id}.claims",
                        value=claim,
                        allowed="EXPERIMENT/CLAIM of the section's experiments",
                    )
    return paper
