"""The files that a scenario names: the simulator opens them, and would wait for a FIFO."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater.files import check
from bluewater.own import LANGUAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEYS = {"file", "rate_trace", "delay_trace"}
"""Those that name files, from the folder of the scenario on."""


def check_files(table: Mapping[str, Any], origin: str) -> None:
    """Refuses what :func:`~bluewater.files.check` does.

    Raises:
        InputError: One of them is none.
    """
    folder = Path(origin).parent
    for key, value in _texts(table, ""):
        last = key.rpartition(".")[2]
        if last in _KEYS:
            check(folder / value, key=key)
        elif last in ("aqm", "transport") and value.startswith(LANGUAGE):
            check(folder / value.removeprefix(LANGUAGE).rpartition(":")[0], key=key)


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
