"""A run to make, and its events and failure."""

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
        kind: Its kind, one of :data:`bluewater.kinds.KINDS`.
    """

    key: str
    text: str
    label: str
    kind: str = "simulator"


@dataclass(frozen=True)
class Failure:
    """A run that could not be made, and why.

    Attributes:
        skipped: Whether it was not tried, because this machine does not allow it.
    """

    task: Task
    reason: str
    skipped: bool = False


@dataclass(frozen=True)
class Progress:
    """Progress of a task: the ``fraction`` that is done; at 1 it is finished."""

    task: Task
    fraction: float
    failure: Failure | None = None


@dataclass(frozen=True)
class Shard:
    """One of ``count`` parts of all runs, counted from 1: every ``count``-th run.

    The runs of a shard depend on the plan, not on the runs that exist already.
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str, key: str = "--shard") -> Shard:
        """Parses a text such as ``2/5``."""
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
        """The shard's part of these tasks."""
        return list({task.key: task for task in tasks}.values())[self.number - 1 :: self.count]
