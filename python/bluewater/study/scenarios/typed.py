"""Reading TOML tables into declared structs; errors name file, key and value."""

from __future__ import annotations

import re
import types
import typing
from typing import Any, Literal, TypeVar

import msgspec

from bluewater.errors import InputError, unknown

T = TypeVar("T")


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of an experiment's tables; undeclared keys are refused."""


def read(table: Any, kind: type[T], file: str, key: str = "") -> T:
    """Converts a table to a ``kind``; ``key`` is the table's place in the file."""
    try:
        return msgspec.convert(table, kind, dec_hook=_own)
    except msgspec.ValidationError as error:
        raise _told(error, table, kind, file, key) from error


def _own(kind: type[T], value: Any) -> T:
    """Converts a value for a type that is no table."""
    return kind(value)  # type: ignore[call-arg]


_PATH = re.compile(r"(?P<problem>.*?)(?: - at `(?P<path>[^`]*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[([0-9]+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`")


def _told(error: msgspec.ValidationError, table: Any, kind: Any, file: str, key: str) -> InputError:
    found = _PATH.fullmatch(str(error))
    assert found is not None
    node, expected, names = table, kind, [key] if key else []
    for key_of, index_of in _STEP.findall(found["path"] or ""):
        # The path does not name an item of a mapping.
        unnamed = index_of == "..."
        name = _unfit(node, _below(expected, index_of)) if unnamed else key_of
        index = "" if unnamed else index_of
        node = node[int(index)] if index else node[name]
        expected = _below(expected, name)
        # Name an item of a list by its own name if it has one.
        own = node.get("id", node.get("name")) if index and isinstance(node, dict) else None
        names.append(own if isinstance(own, str) else index or name)
    where: dict[str, Any] = {"file": file, "key": ".".join(names) or None}
    if isinstance(error.__cause__, InputError):
        cause = error.__cause__
        return InputError(
            cause.problem, **where, value=cause.value, allowed=cause.allowed, hint=cause.hint
        )
    if found_name := _UNKNOWN.fullmatch(found["problem"]):
        name = found_name["name"]
        where["key"] = ".".join([*names, name])
        return unknown("key", name, _keys(expected), **where)
    if found_name := _MISSING.fullmatch(found["problem"]):
        return InputError(
            f"the key '{found_name['name']}' is missing",
            **where,
            allowed=", ".join(sorted(_keys(expected))),
        )
    return InputError("not a value", **where, value=node, allowed=_words(expected))


def _unfit(table: dict[str, Any], kind: Any) -> str:
    """The first key whose value has the wrong type."""
    for key, value in table.items():
        try:
            msgspec.convert(value, kind, dec_hook=_own)
        except msgspec.ValidationError:
            return key
    raise AssertionError("every value has its type")


def _alternatives(kind: Any) -> list[Any]:
    """The types that a value may have, without None for a missing key."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return [each for each in typing.get_args(kind) if each is not types.NoneType]
    return [kind]


def _below(kind: Any, name: str) -> Any:
    """The type of a key of a table, or of the items of a list."""
    (kind, *_) = _alternatives(kind)
    if _is_table(kind):
        return {each.encode_name: each.type for each in msgspec.structs.fields(kind)}.get(name, Any)
    arguments = typing.get_args(kind)
    return arguments[-1 if name else 0] if arguments else Any


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _keys(kind: Any) -> list[str]:
    (kind, *_) = _alternatives(kind)
    return [each.encode_name for each in msgspec.structs.fields(kind)] if _is_table(kind) else []


_WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def _words(kind: Any) -> str:
    """The allowed values, in words."""
    told = []
    for each in _alternatives(kind):
        if typing.get_origin(each) is typing.Annotated:
            inner, meta = typing.get_args(each)
            limits = [(meta.ge, "from"), (meta.le, "to"), (meta.min_length, "at least")]
            told.append(
                " ".join(
                    [_words(inner), *(f"{word} {end}" for end, word in limits if end is not None)]
                )
            )
            continue
        origin = typing.get_origin(each) or each
        if origin is Literal:
            told += [repr(value) for value in typing.get_args(each)]
        elif _is_table(each):
            told.append(f"a table with {', '.join(_keys(each))}")
        elif origin in (tuple, list):
            item = _below(each, "")
            told.append("a list" if item is Any else f"a list, of {_words(item)} each")
        elif origin is dict:
            told.append("a table")
        else:
            told.append(_WORDS.get(each, "another kind of value"))
    return " or ".join(told)
