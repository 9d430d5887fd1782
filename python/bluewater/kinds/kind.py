"""What a kind of runs is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bluewater.results.result import Result


@dataclass(frozen=True)
class Kind:
    """A kind of runs.

    Attributes:
        name: Its name.
        owns: Whether a run's table is of this kind.
        check: The canonical text of a table; the file is for messages. Raises
            :class:`~bluewater.errors.InputError` or :class:`~bluewater.ScenarioError`.
        run: Makes the run of a canonical text, named by an origin, and tells its progress, 0 to 1.
        alone: Whether it measures real time, and so runs after all others, with no other.
        missing: Why no such run can be made on this machine, if so.
    """

    name: str
    owns: Callable[[Mapping[str, Any]], bool]
    check: Callable[[Mapping[str, Any], str], str]
    run: Callable[[str, str, Callable[[float], object] | None], Result]
    alone: bool = False
    missing: Callable[[], str | None] = lambda: None
