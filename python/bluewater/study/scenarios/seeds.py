"""Parsing and checking seeds."""

from __future__ import annotations

import re
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec

from bluewater.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SEEDS = 2**64
_MOST = 10**6
"""Most seeds of a range or a count; each is a run, so nobody needs more."""

_RANGE = re.compile(r"([0-9]{1,20})(?:\s*-\s*([0-9]{1,20}))?")
_LIST = "whole numbers and ranges separated by commas, as in 1,2,3 or 1-5"


Seeds: TypeAlias = tuple[Annotated[int, msgspec.Meta(ge=0)], ...] | str
"""Seeds as a file lists them: numbers, or a text such as ``1-20``."""


def as_written(seeds: Seeds, key: str, file: str) -> tuple[int, ...]:
    """The seeds in a file's ``key``."""
    return listed(seeds, key, file) if isinstance(seeds, str) else distinct(seeds, key, file)


def distinct(seeds: Sequence[Any], key: str, file: str | None = None) -> tuple[int, ...]:
    """Refuses repeated seeds: a repeated run would count as an independent one."""
    if not seeds:
        raise InputError(
            "the list of seeds is empty", file=file, key=key, value=[], allowed="one or more"
        )
    for seed in seeds:
        whole = isinstance(seed, Integral) and not isinstance(seed, bool)
        if not whole or not 0 <= int(seed) < _SEEDS:
            raise InputError(
                "not a seed", file=file, key=key, value=seed, allowed="whole numbers, 0 … 2^64 - 1"
            )
    if len(set(seeds)) != len(seeds):
        raise InputError(
            "seeds repeat",
            file=file,
            key=key,
            value=list(seeds),
            allowed="seeds that are all different",
            hint="repeated seeds give identical runs, and so an interval that is too narrow",
        )
    return tuple(map(int, seeds))


def listed(text: str, key: str, file: str | None = None) -> tuple[int, ...]:
    """Parses numbers and ranges, both ends included, such as ``1,2,3`` or ``1-5``.

    Raises:
        InputError: The text is no such list, repeats a seed, or has too many.
    """
    where: dict[str, Any] = {"file": file, "key": key, "value": text}
    ranges = []
    for part in text.split(","):
        found = _RANGE.fullmatch(part.strip())
        if not found:
            raise InputError("not a list of seeds", allowed=_LIST, **where)
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            raise InputError(
                "not a list of seeds",
                allowed=_LIST,
                hint=f"a range goes up: {last}-{first}",
                **where,
            )
        ranges.append(range(first, last + 1))
    # Not len(), which overflows for the longest ranges.
    if sum(each.stop - each.start for each in ranges) > _MOST:
        raise InputError("too many seeds", allowed=f"{_MOST} at most", **where)
    return distinct([seed for each in ranges for seed in each], key, file)


def counted(first: int, reps: int, keys: tuple[str, str]) -> tuple[int, ...]:
    """Counts up ``count`` seeds from the first; ``keys`` names both arguments in messages.

    Raises:
        InputError: The count is 0 or too large, or a seed is out of range.
    """
    if not 1 <= reps <= _MOST:
        raise InputError("not a number of seeds", key=keys[1], value=reps, allowed=f"1 … {_MOST}")
    for seed in (first, first + reps - 1):
        distinct([seed], keys[0])
    return tuple(range(first, first + reps))
