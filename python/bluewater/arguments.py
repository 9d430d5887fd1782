"""Checks of the arguments of public functions, before any work is done."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import wraps
from numbers import Integral
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

from bluewater.errors import InputError, unknown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D", bound="DataclassInstance")


class Argument(NamedTuple):
    """The types that an argument may have, and look-alikes that it may not."""

    types: tuple[type, ...]
    allowed: str
    but: tuple[type, ...] = ()

    def check(self, name: str, value: object, of: str) -> None:
        """Refuses a value of the wrong type; ``of`` names the function for the message."""
        if isinstance(value, self.but) or not isinstance(value, self.types):
            raise InputError(f"not what {of} takes", key=name, value=value, allowed=self.allowed)


PATH = Argument((str, PathLike), "a path")
MAPPING = Argument((Mapping,), "a mapping")
NUMBER = Argument((Integral,), "a whole number", (bool,))
FLAG = Argument((bool,), "True or False")
NUMBERS = Argument((Iterable,), "a sequence of whole numbers", (str, bytes))
NAMES = Argument((Iterable,), "a sequence of names", (str, bytes))
TEXT = Argument((str,), "text")


def texts(name: str, value: object, of: str) -> tuple[str, ...]:
    """The texts of an argument; a single text counts as one, not as its letters."""
    if isinstance(value, str):
        return (value,)
    given = tuple(value) if isinstance(value, Iterable) else (value,)
    if not all(isinstance(each, str) for each in given):
        raise InputError(f"not what {of} takes", key=name, value=value, allowed="text, or several")
    return given


def with_fields(made: D, given: Mapping[str, object], of: str) -> D:
    """Copies a dataclass with some fields set by keyword arguments of the function ``of``."""
    known = [field.name for field in fields(made)]
    for name in given:
        if name not in known:
            raise unknown(f"argument of {of}", name, known, key=name)
    return replace(made, **given)


def checked(**kinds: Argument) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function refuse arguments of the wrong type; None is fine if it is the default.

    Raises:
        InputError: It names the argument, what was given and what is allowed.
    """

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*given: P.args, **named: P.kwargs) -> R:
            for name, value in signature.bind(*given, **named).arguments.items():
                if name in kinds and not (
                    value is None and signature.parameters[name].default is None
                ):
                    kinds[name].check(name, value, f"{function.__name__}()")
            return function(*given, **named)

        return call

    return wrap
