"""A run to make, and what becomes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bluewater.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Task:
    """A run to make.

    Attributes:
        key: Its name in the store.
        text: Its canonical scenario.
        label: A name for people.
        kind: Of which of :data:`bluewater.kinds.KINDS` it is.
    """

    key: str
    text: str
    label: str
    kind: str = "simulator"


@dataclass(frozen=True)
class Failure:
    """A run that could not be made, and why.

    Attributes:
        skipped: Whether this machine does not allow it, so that it was not tried.
    """

    task: Task
    reason: str
    skipped: bool = False


@dataclass(frozen=True)
class Progress:
    """Something happened to a task: ``fraction`` of it is done, at 1 it is finished."""

    task: Task
    fraction: float
    failure: Failure | None = None


@dataclass(frozen=True)
class Shard:
    """One of ``count`` parts of all runs, counted from 1: every ``count``-th run.

    Which runs are in it depends on what is planned, and not on what has been made.
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str, key: str = "--shard") -> Shard:
        """The shard that a text such as ``2/5`` means."""
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise InputError(
                "not a part of all runs",
                key=key,
                value=text,
                allowed="I/N with I from 1 to N, as in 2/5",
            )
        return cls(int(found[1]), int(found[2]))

    def of(self, tasks: Sequence[Task]) -> list[Task]:
        """Its part of these."""
        return list({task.key: task for task in tasks}.values())[self.number - 1 :: self.count]
