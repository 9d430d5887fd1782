"""Files that the user names: those that cannot be read are refused before anything waits for them.

Every file argument of a command or function passes :func:`check` before it is opened.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from polars.exceptions import PolarsError

from bluewater.errors import InputError, StorageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

PACKAGE = Path(__file__).parent
"""The folder of this package."""

_LISTED = "check the path; `bluewater list` shows the experiments that `reproduce` can run"

_FROM_IT = "write its output to a file first"

_DEEPEST = 64
"""Deepest nesting of a table: copying, writing and reading it stop at little more."""


PICTURES = (".png", ".svg", ".pdf", ".pgf")
"""Endings of files that a picture can be written to."""


def check(path: Path, **where: Any) -> None:
    """Refuses a name that is not UTF-8, and a path that is no regular file.

    A FIFO or a terminal may never answer. Pipes of a shell, as in ``<(command)``, are fine because
    they have a writer. A missing or unreadable file is reported when it is opened.

    Raises:
        InputError: The path is refused; ``where`` adds the place that names it.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            "the file's name is not UTF-8", file=_shown(path), hint="rename it", **where
        ) from error
    check_kind(path, **where)


def check_kind(path: Path, hint: str = _FROM_IT, **where: Any) -> None:
    """Refuses a path that is no regular file, whatever its name."""
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
    """The path that a new file replaces: links are followed.

    Devices and FIFOs are refused: replacing one as root would break it for the whole system.

    Raises:
        InputError: The path is a device, a FIFO, or a link to itself.
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
    """Refuses to overwrite the input, under whatever name.

    Raises:
        InputError: Input and output are the same file.
    """
    try:
        same = path.samefile(read)
    except OSError:
        return
    if same:
        raise InputError(
            f"it would overwrite the input {read}",
            file=str(path),
            hint="name another file",
            **where,
        )


def check_ending(path: Path, known: Collection[str], what: str) -> None:
    """Refuses a file whose ending names no format.

    Raises:
        InputError: The ending is unknown; the message lists the known ones.
    """
    if path.suffix.lower() not in known:
        raise InputError(
            f"the file's ending is no format of {what}",
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
        raise InputError(
            "the file is not UTF-8 text", file=str(path), hint=of_capture(path), **where
        ) from error
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number else str(error)
        raise InputError(
            f"cannot read the file: {reason}",
            file=str(path),
            hint=_meant(path) if hint == _LISTED else hint,
            **where,
        ) from error


def of_capture(path: Path) -> str | None:
    """The hint for a packet capture where another file is needed; None for other files."""
    if not path.name.lower().endswith((".pcap", ".pcapng")):
        return None
    return (
        f"a packet capture: `bluewater trace {path}` describes it, and [[traffic]] with "
        f'transport = "trace" and file = "{path}" plays it'
    )


def _meant(path: Path) -> str:
    """The hint for a scenario that is not there: an experiment, a run's folder, or a run's key."""
    if (PACKAGE / "experiments" / f"{path}.toml").is_file():
        return f"`bluewater reproduce {path}` runs this experiment"
    if (path / "scenario.toml").is_file():
        return f"the folder of a run: `bluewater run {path / 'scenario.toml'}` runs its scenario"
    if _KEY.fullmatch(str(path)):
        folder = Path("results", "runs", path.name[:2], path.name)
        return f"the key of a run, whose folder is {folder} below --out: its scenario.toml runs"
    return _LISTED


_KEY = re.compile("[0-9a-f]{32}")


def read_stdin() -> str:
    """The text on stdin; refused for the same reasons as a file's."""
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise InputError("it is not UTF-8 text", file="<stdin>") from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns every failure to write into one kind of error; Polars has several for a full disk.

    Raises:
        StorageError: A write failed; the message names ``path`` and the reason.
    """
    try:
        yield
    except (OSError, PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise StorageError(f"cannot write {path}: {reason}") from error


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A temporary path beside a file, with the same ending, which replaces the file at the end.

    The replacement is atomic, because another command may be reading the file. The folder is made
    if needed.

    Raises:
        StorageError: The file cannot be written.
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


def check_writable(path: Path) -> None:
    """Refuses a path that :func:`whole` could not write, before long work is done for it.

    Raises:
        InputError: The path is no regular file.
        StorageError: No file can be written there.
    """
    path = place(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with TemporaryFile(dir=path.parent):
            pass


def write_text(path: Path, text: str) -> None:
    """Writes a file atomically, by :func:`whole`."""
    with whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


_YAML = re.compile(r"---|[\w.-]+ ?:(\s|$)|- ")
_PYTHON = re.compile(r"(import|from|class|def)\s+\w")


def check_toml(text: str, origin: str) -> None:
    """Refuses a text that is plainly in another format, since TOML's own error would say little.

    Raises:
        InputError: The text is in another format; the message names it.
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
        hint = "name your own class as in `bluewater compare FILE.py:CLASS`"
    else:
        hint = 'scenarios are TOML: `duration = "60s"`, then tables as [network] and [[queue]]'
    if found:
        raise InputError(f"it looks like {found}, and is not TOML", file=origin, hint=hint)


def parse_table(text: str, origin: str) -> dict[str, Any]:
    """Parses TOML; a syntax error becomes an :class:`InputError`."""
    try:
        table = tomllib.loads(text)
    except ValueError as error:  # a number of thousands of digits raises no TOMLDecodeError
        check_toml(text, origin)
        raise InputError(f"not valid TOML: {error}", file=origin) from error
    except RecursionError as error:
        raise _too_deep(origin) from error
    check_text(text, origin)
    check_depth(table, origin)
    return table


def check_text(text: str, origin: str) -> None:
    """Refuses text that is not UTF-8, as arguments of a command may be.

    Raises:
        InputError: A text has bytes that are not UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError("it is not UTF-8 text", file=origin) from error


def check_depth(table: dict[str, Any], origin: str) -> None:
    """Refuses a table that is nested too deeply to walk through, such as by a key of many parts.

    Raises:
        InputError: The table is nested too deeply.
    """
    level: list[Any] = [table]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise _too_deep(origin)


def _too_deep(origin: str) -> InputError:
    return InputError(f"more than {_DEEPEST} nested lists or tables", file=origin)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
