"""Names and rows, which save an experiment from repetition.

``[named]`` in an experiment, or in the ``paper.toml`` of its folder, gives names to values. A text
that is exactly ``{NAME}`` stands for the value; within a list, a named list is spliced in. A table
with ``as = "NAME"`` has the keys of the table with this name, and its own keys override them.

A table in a list may have ``over``, a list of rows, and then stands for one table per row. Each
``{NAME}`` in its texts is the row's value of this name, or else the named value. The row's other
keys are set in the table::

    [[claim]]
    text = "{aqm}: the mean delay is below {limit} ms."
    holds = "< {limit}"
    over = [
      { id = "a1", aqm = "codel", limit = 10 },
      { id = "a2", aqm = "pie", limit = 30, note = "Its target is 15 ms." },
    ]
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bluewater.errors import InputError, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_AS = "as"
_OVER = "over"
_NAME = re.compile(r"\{([A-Za-z][\w-]*)\}")
_DEEPEST = 64

_NOTHING: Mapping[str, Any] = MappingProxyType({})

Path = tuple[str | int, ...]
"""The path of a value in a file: keys, and numbers from 0 in lists."""


class Names:
    """The named values of a file, which are filled into its tables.

    Args:
        named: Values by name; the file's override its paper's.
        file: The file's name in messages.
    """

    def __init__(self, named: Mapping[str, Any], file: str) -> None:
        self.named = named
        self._file = file

    @classmethod
    def of(cls, table: dict[str, Any], file: str, shared: Mapping[str, Any] = _NOTHING) -> Names:
        """Takes ``[named]`` out of a file's table; its names override the paper's.

        Raises:
            InputError: ``named`` is no table.
        """
        own = table.pop("named", {})
        if not isinstance(own, dict):
            raise InputError(
                "no names", file=file, key="named", value=own, allowed="a table: names and values"
            )
        return cls({**shared, **own}, file)

    def filled(self, value: Any, path: Path = (), row: Mapping[str, Any] | None = None) -> Any:
        """Replaces the names and rows in a value of the file.

        Args:
            value: Any value of TOML.
            path: Its path in the file.
            row: The row to fill in, if the value is part of a table with ``over``.

        Raises:
            InputError: A name is unknown, or its value does not fit in this place.
        """
        if isinstance(value, str):
            return self._text_filled(value, path, row)
        if isinstance(value, list):
            return [
                item
                for number, each in enumerate(value)
                for item in self._items(each, (*path, number), row)
            ]
        if isinstance(value, dict):
            whole = self._with_base(value, path)
            return {key: self.filled(each, (*path, key), row) for key, each in whole.items()}
        return value

    def _items(self, each: Any, path: Path, row: Mapping[str, Any] | None) -> Iterator[Any]:
        """The values that an item of a list stands for."""
        if isinstance(each, dict) and isinstance(each.get(_OVER), list):
            yield from self._rows(each, path, row or {})
            return
        found = self.filled(each, path, row)
        if isinstance(each, str) and isinstance(found, list):
            yield from found
        else:
            yield found

    def _rows(
        self, table: Mapping[str, Any], path: Path, outer: Mapping[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """Repeats a table with ``over`` for each row; ``outer`` is the row around the table."""
        template = self._with_base(table, path)
        rows = template.pop(_OVER)
        if not rows:
            raise self._wrong("no row", (*path, _OVER), value=rows, allowed="one row or more")
        for number, row in enumerate(rows):
            place = (*path, _OVER, number)
            if not isinstance(row, dict):
                raise self._wrong("no row", place, value=row, allowed="a table of names and values")
            based = {**template, **self._base(row, place)}
            used = self._used(based, set())
            own = {
                key: self.filled(each, (*place, key))
                for key, each in row.items()
                if not _is_as(key, each)
            }
            for name in sorted(used - own.keys() - outer.keys() - self.named.keys()):
                if any(name in each for each in rows):
                    raise self._wrong(f"the row lacks '{name}', which other rows have", place)
            made = {
                key: self.filled(each, (*path, key), {**outer, **own})
                for key, each in based.items()
                if key not in own or key in used
            }
            yield {**made, **{key: each for key, each in own.items() if key not in used}}

    def _with_base(self, table: Mapping[str, Any], path: Path) -> dict[str, Any]:
        own = {key: each for key, each in table.items() if not _is_as(key, each)}
        return {**self._base(table, path), **own}

    def _base(self, table: Mapping[str, Any], path: Path) -> dict[str, Any]:
        """The table that ``as`` names, not filled in; empty without ``as``."""
        name = table.get(_AS)
        if not isinstance(name, str):
            return {}
        base = self._of_name(name, (*path, _AS))
        if not isinstance(base, dict):
            raise self._wrong("no table", (*path, _AS), value=name, allowed="the name of a table")
        return self._with_base(base, (*path, _AS, name))

    def _text_filled(self, text: str, path: Path, row: Mapping[str, Any] | None) -> Any:
        if whole := _NAME.fullmatch(text):
            return self._value(whole[1], path, row)
        return text if row is None else _NAME.sub(lambda n: self._word(n[1], path, row), text)

    def _word(self, name: str, path: Path, row: Mapping[str, Any]) -> str:
        value = self._value(name, path, row)
        if isinstance(value, dict | list):
            raise self._wrong(
                "the name's value cannot be part of a text",
                path,
                value=f"{{{name}}}",
                allowed="text and numbers",
            )
        return str(value)

    def _value(self, name: str, path: Path, row: Mapping[str, Any] | None) -> Any:
        if row is not None and name in row:
            return row[name]
        return self.filled(self._of_name(name, path, row), (*path, name), row)

    def _of_name(self, name: str, path: Path, row: Mapping[str, Any] | None = None) -> Any:
        if len(path) > _DEEPEST:
            raise self._wrong("a name that stands for itself", path[:2], value=name)
        if name not in self.named:
            raise unknown(
                "name", name, {*(row or {}), *self.named}, file=self._file, key=_key(path)
            )
        return self.named[name]

    def _used(self, value: Any, seen: set[str]) -> set[str]:
        """Every name in the texts of a value, and in the values that they name."""
        if isinstance(value, str):
            for name in set(_NAME.findall(value)) - seen:
                seen.add(name)
                self._used(self.named.get(name), seen)
        elif isinstance(value, dict | list):
            for each in value.values() if isinstance(value, dict) else value:
                self._used(each, seen)
        return seen

    def _wrong(self, problem: str, path: Path, **more: Any) -> InputError:
        return InputError(problem, file=self._file, key=_key(path), **more)


def _key(path: Path) -> str:
    return ".".join(map(str, path))


def _is_as(key: str, value: Any) -> bool:
    return key == _AS and isinstance(value, str)
