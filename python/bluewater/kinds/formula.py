"""Formulas of the papers as runs: such an experiment has a value instead of a queue.

Such a run is a text with ``formula`` and its arguments::

    formula = "misclassification"
    levels = 2
    bins = 23
    nonresponsive = 8
"""

from __future__ import annotations

import hashlib
import tomllib
from typing import TYPE_CHECKING, Any

import tomli_w

from bluewater import _core
from bluewater.errors import InputError, unknown
from bluewater.kinds.kind import Kind, fingerprint
from bluewater.results.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

FORMULAS: Mapping[str, Callable[..., float]] = {"misclassification": _core.misclassification}


def evaluate(table: Mapping[str, Any], file: str) -> float:
    """The value of a formula, which does not depend on ``seed``."""
    name = str(table["formula"])
    if name not in FORMULAS:
        raise unknown("formula", name, FORMULAS, file=file, key="formula")
    arguments = {key: value for key, value in table.items() if key not in ("formula", "seed")}
    try:
        return FORMULAS[name](**arguments)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(str(error), file=file, key="formula", value=arguments) from error


def check(table: Mapping[str, Any], file: str) -> str:
    """Checks a table; returns its canonical text."""
    evaluate(table, file)
    return tomli_w.dumps({"formula": table["formula"], **dict(sorted(table.items()))})


def run(text: str, origin: str, progress: Callable[[float], object] | None) -> Result:  # noqa: ARG001
    """Evaluates a formula; the digest of its value serves as the decision hash."""
    value = evaluate(tomllib.loads(text), origin)
    digest = hashlib.sha256(repr(value).encode()).hexdigest()[:16]
    tables: dict[str, pl.DataFrame] = {}
    return Result({"value": value}, text, digest, version(), tables.__getitem__, names=())


def version() -> str:
    """The versions of the core, which has the formulas, and of this module."""
    return f"{_core.version()} formula {fingerprint(__file__)}"


KIND = Kind("formula", lambda table: "formula" in table, check, run, version=version)
