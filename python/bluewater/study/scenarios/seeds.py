"""Seeds that somebody asks for."""

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
"""As many are counted up or stand in a range; each is a run, so that nobody misses more."""

_RANGE = re.compile(r"([0-9]{1,20})(?:\s*-\s*([0-9]{1,20}))?")
_LIST = "whole numbers and ranges separated by commas, as in 1,2,3 or 1-5"


Seeds: TypeAlias = tuple[Annotated[int, msgspec.Meta(ge=0)], ...] | str
"""As a file has them: each, or a text such as ``1-20``."""


def as_written(seeds: Seeds, key: str, file: str) -> tuple[int, ...]:
    """The seeds that a file's ``key`` lists."""
    return listed(seeds, key, file) if isinstance(seeds, str) else distinct(seeds, key, file)


def distinct(seeds: Sequence[Any], key: str, file: str | None = None) -> tuple[int, ...]:
    """The seeds, refused if one comes twice: a repeated run would pass for an independent one."""
    if not seeds:
        raise InputError("there is no seed", file=file, key=key, value=[], allowed="one or more")
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
    """The seeds of a text: numbers and ranges, both ends included, as ``1,2,3`` or ``1-5``.

    Raises:
        InputError: It is no such list, or names a seed twice or too many.
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
    # Not len(), which has no room for the longest.
    if sum(each.stop - each.start for each in ranges) > _MOST:
        raise InputError("too many seeds", allowed=f"{_MOST} at most", **where)
    return distinct([seed for each in ranges for seed in each], key, file)


def counted(first: int, reps: int, keys: tuple[str, str]) -> tuple[int, ...]:
    """So many seeds from the first on; ``keys``: what these two are called.

    Raises:
        InputError: There are none, too many, or they are no seeds.
    """
    if not 1 <= reps <= _MOST:
        raise InputError("not a number of seeds", key=keys[1], value=reps, allowed=f"1 … {_MOST}")
    for seed in (first, first + reps - 1):
        distinct([seed], keys[0])
    return tuple(range(first, first + reps))
