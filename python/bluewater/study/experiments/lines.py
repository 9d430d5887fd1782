"""Finding the line of a key in a TOML text, for errors found after parsing."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bluewater.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_STRINGS = re.compile(r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'', re.DOTALL)
_HEADER = re.compile(r"(\[\[?)([^\[\]]+)\]")
_KEY = re.compile(r"(\"[^\"]*\"|[\w-]+)\s*[=.]")
_NAME = re.compile(r"\b(?:id|name) = [\"']([^\"']*)[\"']")

Place = tuple[set[str], ...]
"""A path in a TOML text: at each step a key or, in a list, a number from 0 and a name."""


@contextmanager
def telling_lines(text: str, file: str) -> Iterator[None]:
    """Adds the line to an error that names a key of ``file``, whose text is ``text``."""
    try:
        yield
    except InputError as error:
        if error.line is None and error.file == file and error.key is not None:
            error.at(_line_of(text, error.key))
        raise


def _line_of(text: str, key: str) -> int | None:
    """The line of a key, or else of the nearest table or list around it."""
    steps = key.split(".")
    nearest, line_of_it = 0, None
    for line, place in _places(text):
        depth = len(place)
        inside = depth <= len(steps) and all(map(set.__contains__, place, steps))
        if inside and depth > nearest:
            nearest, line_of_it = depth, line
    return line_of_it


def _places(text: str) -> list[tuple[int, Place]]:
    """Yields every line that begins a table, a key or an item of a list, with its path."""
    # Of a text that spans lines only the length matters.
    flat = _STRINGS.sub(lambda found: '""' + "\n" * found[0].count("\n"), text)
    found: list[tuple[int, Place]] = []
    counts: dict[str, int] = {}
    table: Place = ()
    key: Place = ()
    items = 0
    for line, written in enumerate(flat.splitlines(), 1):
        if header := _HEADER.match(written):
            table, key = _table(header[2], header[1] == "[[", counts, table), ()
            found.append((line, table))
        elif key and written.lstrip().startswith("{"):
            names = {str(items), *_NAME.findall(written)[:1]}
            items += 1
            found.append((line, (*key, names)))
            # A table that was made from a row has the row's name.
            found.append((line, (*table[:-1], names)))
        elif named := _KEY.match(written):
            key, items = (*table, *({step} for step in named[1].strip('"').split("."))), 0
            found.append((line, key))
            if table and (name := _NAME.match(written)):
                table[-1].add(name[1])
    return found


def _table(name: str, listed: bool, counts: dict[str, int], last: Place) -> Place:
    """The path of a table by its header; ``counts`` has the length of each list so far."""
    place: Place = ()
    path = ""
    steps = [step.strip().strip('"') for step in name.split(".")]
    for depth, step in enumerate(steps, 1):
        path += f".{step}"
        place = (*place, {step})
        if listed and depth == len(steps):
            counts[path] = counts.get(path, -1) + 1
            # Lists within it are counted anew.
            for inner in [each for each in counts if each.startswith(f"{path}.")]:
                del counts[inner]
            place = (*place, {str(counts[path])})
        elif path in counts:
            place = (*place, last[len(place)])
    return place
