"""Seeds that somebody asks for."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

from bluewater.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SEEDS = 2**64
_MOST = 10**6
"""As many are counted up; each is a run, so that nobody misses more."""


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
