"""Files that somebody names: what nobody could read is refused here, before anything waits for it.

Every file that a command or a function is given is opened behind :func:`check`.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from polars.exceptions import PolarsError

from bluewater.errors import InputError, StorageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

PACKAGE = Path(__file__).parent
"""The folder of this package."""

_LISTED = "check the path; `bluewater list` shows the experiments that can be named instead"

_FROM_IT = "write what comes from it to a file first"

_DEEPEST = 64
"""What copies, writes and reads a table later goes no deeper than some more."""


PICTURES = (".png", ".svg", ".pdf", ".pgf")
"""Endings of files that a picture can be written to."""


def check(path: Path, **where: Any) -> None:
    """Refuses a name that is no text, and what is no file: a FIFO or a terminal may never answer.

    Pipes that a shell has put up, as by ``<(command)``, have somebody who writes to them. What is
    not there or may not be read is left to whoever opens it.

    Raises:
        InputError: It is none; ``where`` says more of the place that names it.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            "the file's name is not UTF-8", file=_shown(path), hint="rename it", **where
        ) from error
    check_kind(path, **where)


def check_kind(path: Path, hint: str = _FROM_IT, **where: Any) -> None:
    """The same of what is called as it may be, as in a folder of ours."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return
    of_a_shell = stat.S_ISFIFO(mode) and not os.path.lexists(os.path.realpath(path))
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or of_a_shell):
        kind = "a FIFO" if stat.S_ISFIFO(mode) else "a device or a socket"
        raise InputError(
            f"{kind}, where a file is needed",
            file=str(path),
            hint=hint,
            **where,
        )


def place(path: Path, **where: Any) -> Path:
    """Where a file is put that takes the place of what is there: where a link leads to.

    A device or a FIFO stays what it is: as root it would be replaced for the whole system.

    Raises:
        InputError: It is one.
    """
    check_kind(path, "name a file", **where)
    if path.is_fifo():  # of a shell, as in >(command)
        raise InputError(
            "a pipe, where a file is needed", file=str(path), hint="name a file", **where
        )
    try:
        return path.resolve() if path.is_symlink() else path
    except RuntimeError as error:
        raise InputError("a link that leads to itself", file=str(path), **where) from error


def apart(path: Path, read: Path, **where: Any) -> None:
    """Refuses to write over what is read, under whatever name.

    Raises:
        InputError: Both are one file.
    """
    try:
        same = path.samefile(read)
    except OSError:
        return
    if same:
        raise InputError(
            f"it would be written over {read}, which is read",
            file=str(path),
            hint="name another file",
            **where,
        )


def check_ending(path: Path, known: Collection[str], what: str) -> None:
    """Refuses a file whose ending names no format.

    Raises:
        InputError: It names the endings that do.
    """
    if path.suffix.lower() not in known:
        raise InputError(
            f"the file's ending names no format of {what}",
            file=str(path),
            allowed=f"a file that ends in {', '.join(known)}",
            hint=f"{path}{next(iter(known))}" if not path.suffix else None,
        )


def _shown(path: Path) -> str:
    return str(path).encode("utf-8", "backslashreplace").decode()


def read_text(path: Path, hint: str | None = _LISTED, **where: Any) -> str:
    """The text of a file, or an :class:`InputError` that says why it cannot be read."""
    check(path, **where)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError("the file is not UTF-8 text", file=str(path), **where) from error
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number else str(error)
        raise InputError(
            f"cannot read the file: {reason}", file=str(path), hint=hint, **where
        ) from error


def read_stdin() -> str:
    """The text that comes on stdin, refused as that of a file is."""
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise InputError("it is not UTF-8 text", file="<stdin>") from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Has what cannot be written be one kind of error; Polars tells of a full disk by several.

    Raises:
        StorageError: It names ``path`` and the reason.
    """
    try:
        yield
    except (OSError, PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise StorageError(f"cannot write {path}: {reason}") from error


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A name with the same ending beside a file, for what becomes it at the end.

    It does so whole or not at all: another command may be reading what is there. Its folder is made
    if there is none.

    Raises:
        StorageError: It cannot be written.
    """
    path = place(path)
    temporary = path.with_name(f".{os.getpid()}-{uuid4().hex[:8]}-{path.name}")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a file, :func:`whole` or not at all."""
    with whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


_YAML = re.compile(r"---|[\w.-]+ ?:(\s|$)|- ")
_PYTHON = re.compile(r"(import|from|class|def)\s+\w")


def check_toml(text: str, origin: str) -> None:
    """Refuses a text that is plainly of another format, of whose first line TOML says little.

    Raises:
        InputError: It is; the message names the format.
    """
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    found = (
        "JSON" if first.startswith("{")
        else "XML or HTML" if first.startswith("<")
        else "Python" if _PYTHON.match(first)
        else "YAML" if _YAML.match(first)
        else None
    )  # fmt: skip
    if found == "Python":
        hint = "a class of one's own is named as in `bluewater compare FILE.py:CLASS`"
    else:
        hint = 'scenarios are TOML: `duration = "60s"`, then tables as [network] and [[queue]]'
    if found:
        raise InputError(f"it looks like {found}, and is not TOML", file=origin, hint=hint)


def parse_table(text: str, origin: str) -> dict[str, Any]:
    """Parses TOML; what is wrong with its syntax becomes an :class:`InputError`."""
    try:
        table = tomllib.loads(text)
    except ValueError as error:  # a number of thousands of digits is no error of TOML's
        check_toml(text, origin)
        raise InputError(f"not valid TOML: {error}", file=origin) from error
    except RecursionError as error:
        raise _too_deep(origin) from error
    check_text(text, origin)
    check_depth(table, origin)
    return table


def check_text(text: str, origin: str) -> None:
    """Refuses what stands for bytes that are no text, as an argument of a command may have it.

    Raises:
        InputError: There are such.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError("it is not UTF-8 text", file=origin) from error


def check_depth(table: dict[str, Any], origin: str) -> None:
    """Refuses a table that goes too deep for what walks through it, as by a key of many parts.

    Raises:
        InputError: It does.
    """
    level: list[Any] = [table]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise _too_deep(origin)


def _too_deep(origin: str) -> InputError:
    return InputError(f"more than {_DEEPEST} lists or tables in each other", file=origin)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
