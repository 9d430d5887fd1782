"""Which keys a table of an experiment may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bluewater.errors import InputError, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping


def check_keys(
    table: Mapping[str, Any], required: set[str], optional: set[str], what: str, file: str
) -> None:
    """Refuses a table that lacks a key or has one that is not known."""
    where = f"{what}.{table['id']}" if isinstance(table.get("id"), str) else what
    for key in sorted(required - set(table)):
        raise InputError(
            f"the key '{key}' is missing",
            file=file,
            key=where,
            allowed=", ".join(sorted(required | optional)),
        )
    for key in table:
        if key not in required | optional:
            raise unknown("key", key, required | optional, file=file, key=f"{where}.{key}")
