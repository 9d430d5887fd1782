"""Bluewater: a laboratory for active queue management.

>>> import bluewater
>>> result = bluewater.run("scenario.toml")  # doctest: +SKIP
>>> result.summary["loss"], result.series  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bluewater._core import ScenarioError, catalog, schema
    from bluewater.errors import InputError
    from bluewater.results.result import Result
    from bluewater.study.scenario import run

    __version__: str

__all__ = ["InputError", "Result", "ScenarioError", "catalog", "run", "schema"]

# Loaded when they are asked for: the gateway's commands need none of it, and tables take long.
_HOME = {
    "InputError": "errors",
    "Result": "results.result",
    "ScenarioError": "_core",
    "catalog": "_core",
    "run": "study.scenario",
    "schema": "_core",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("bluewater._core").version()
    if home := _HOME.get(name):
        return getattr(import_module(f"bluewater.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
