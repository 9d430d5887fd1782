"""Formulas of the papers as runs: an experiment of these has a value where others have a queue.

Such a run is a text with ``formula`` and its arguments::

    formula = "misclassification"
    levels = 2
    bins = 23
    nonresponsive = 8
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import tomli_w

from bluewater import _core
from bluewater.errors import InputError, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FORMULAS: Mapping[str, Callable[..., float]] = {"misclassification": _core.misclassification}


def evaluate(table: Mapping[str, Any], file: str) -> float:
    """The value of a formula; ``seed`` is nothing to it."""
    name = str(table["formula"])
    if name not in FORMULAS:
        raise unknown("formula", name, FORMULAS, file=file, key="formula")
    arguments = {key: value for key, value in table.items() if key not in ("formula", "seed")}
    try:
        return FORMULAS[name](**arguments)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(str(error), file=file, key="formula", value=arguments) from error


def check(table: Mapping[str, Any], file: str) -> str:
    """The canonical text of a run that can be made."""
    evaluate(table, file)
    return tomli_w.dumps({"formula": table["formula"], **dict(sorted(table.items()))})


def is_one(text: str) -> bool:
    """Whether a canonical text is a formula's."""
    return text.startswith("formula")


def digest(value: float) -> str:
    """16 hexadecimal digits, as the decision hash of a simulation."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
