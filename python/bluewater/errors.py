"""Errors of input, with messages from which the user can fix it."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from bluewater import _core

if TYPE_CHECKING:
    from collections.abc import Iterable


class InputError(ValueError):
    """An input that cannot be used: a file, a key, a value.

    The attributes are those of :class:`bluewater.ScenarioError`; each is ``None`` if it does not
    apply. ``str(error)`` is the message without the hint.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        line: int | None = None,
        key: str | None = None,
        value: object = None,
        allowed: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.key = key
        self.value = value
        self.allowed = allowed
        self.hint = hint
        super().__init__(self._message())

    def name(self, key: str | None) -> None:
        """Renames the key to what the user typed."""
        if key is not None:
            self.key = key
            self.args = (self._message(),)

    def at(self, line: int | None) -> None:
        """Sets the line of the file."""
        self.line = line
        self.args = (self._message(),)

    def _message(self) -> str:
        where = self.file or ""
        if self.line is not None:
            where += f":{self.line}"
        parts = [f"{where}: {self.problem}" if where else self.problem]
        if self.key is not None:
            shown = f"{self.key} = {self.value!r}" if self.value is not None else self.key
            parts.append(f"  at {shown}")
        if self.allowed is not None:
            parts.append(f"  allowed: {self.allowed}")
        return "\n".join(parts)


class StorageError(InputError):
    """The results could not be written, for lack of space or permission."""


class DamagedWarning(UserWarning):
    """A damaged stored result was put aside; its run is made again."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during many runs; the finished ones are kept."""

    def __init__(self, kept: int, total: int) -> None:
        self.kept = kept
        self.total = total
        super().__init__(f"interrupted: {kept} of {total} runs are finished and kept")


def unknown(what: str, value: str, known: Iterable[str], **where: Any) -> InputError:
    """The error for a name that is not in ``known``, with the nearest name as the hint."""
    names = sorted(known)
    plain = {name.lower().replace("_", "-"): name for name in names}
    as_typed = value.lower().replace("_", "-")
    near = plain.get(as_typed)
    elsewhere = None if near else _core.elsewhere(value, names)
    if not near and not elsewhere:
        # Of equally near names prefer the one with the same letters: red for rde, not rem.
        close = [plain[each] for each in difflib.get_close_matches(as_typed, plain)]
        near = min(close, key=lambda each: sorted(each) != sorted(value), default=None)
    return InputError(
        f"unknown {what} '{value}'",
        allowed=", ".join(names) or "none",
        hint=f"did you mean '{near}'?" if near else elsewhere,
        **where,
    )
