"""Bluewater: a laboratory for active queue management.

>>> import bluewater
>>> result = bluewater.run("scenario.toml")  # doctest: +SKIP
>>> result.summary["loss"], result.series  # doctest: +SKIP
>>> bluewater.compare(["red", "blue"], seeds=[1, 2, 3]).summary()  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bluewater._core import ScenarioError, catalog, schema
    from bluewater.errors import DamagedWarning, InputError, Interrupted, StorageError
    from bluewater.lab import (
        Advice,
        Attack,
        Sweep,
        Tuning,
        advise,
        attack,
        compare,
        identify,
        load,
        newest,
        plot,
        probe,
        reproduce,
        run,
        sweep,
        testbed,
        tune,
    )
    from bluewater.laws import Finding, check
    from bluewater.results.packets import Packets
    from bluewater.results.result import Result
    from bluewater.study.advice.advise import Link
    from bluewater.study.comparison.compare import Setup
    from bluewater.study.scenarios.scenario import Scenario
    from bluewater.study.search.attack import Threat

    __version__: str

__all__ = [
    "Advice",
    "Attack",
    "DamagedWarning",
    "Finding",
    "InputError",
    "Interrupted",
    "Link",
    "Packets",
    "Result",
    "Scenario",
    "ScenarioError",
    "Setup",
    "StorageError",
    "Sweep",
    "Threat",
    "Tuning",
    "advise",
    "attack",
    "catalog",
    "check",
    "compare",
    "identify",
    "load",
    "newest",
    "plot",
    "probe",
    "reproduce",
    "run",
    "schema",
    "sweep",
    "testbed",
    "tune",
]

# Loaded at first use: the gateway's commands need none of them, and importing tables takes long.
_HOME = {
    name: home
    for home, names in {
        "_core": "ScenarioError catalog schema",
        "errors": "DamagedWarning InputError Interrupted StorageError",
        "lab": "Advice Attack Sweep Tuning advise attack compare identify load newest plot "
        "probe reproduce run sweep testbed tune",
        "laws": "Finding check",
        "results.packets": "Packets",
        "results.result": "Result",
        "study.advice.advise": "Link",
        "study.comparison.compare": "Setup",
        "study.scenarios.scenario": "Scenario",
        "study.search.attack": "Threat",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("bluewater._core").version()
    if home := _HOME.get(name):
        return getattr(import_module(f"bluewater.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
