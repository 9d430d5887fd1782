"""Checking the files that a scenario names: the simulator would wait forever for a FIFO."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater.files import check
from bluewater.own import LANGUAGE, PLACES, split

if TYPE_CHECKING:
    from collections.abc import Mapping

_OWN = re.compile(f"{LANGUAGE}.*:", re.IGNORECASE)
"""A class with its file; the simulator says that a class is missing."""
_KEYS = {"file", "rate_trace", "delay_trace"}
"""The keys that name files, relative to the scenario's folder."""


def check_files(table: Mapping[str, Any], origin: str) -> None:
    """Refuses a scenario that names a path which :func:`~bluewater.files.check` refuses.

    Raises:
        InputError: A named path is no regular file.
    """
    folder = Path(origin).parent
    for key, value in _texts(table, ""):
        last = key.rpartition(".")[2]
        if last in _KEYS:
            check(folder / value, key=key)
        elif last in PLACES and _OWN.match(value):
            check(folder / split(value, key)[0], key=key)


def _texts(value: Any, key: str) -> list[tuple[str, str]]:
    """Every text in a table, by its dotted key."""
    if isinstance(value, str):
        return [(key.removeprefix("."), value)]
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return [each for name, inner in items for each in _texts(inner, f"{key}.{name}")]
