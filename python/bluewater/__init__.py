"""Bluewater: a laboratory for active queue management.

>>> import bluewater
>>> result = bluewater.run("scenario.toml")  # doctest: +SKIP
>>> result.summary["loss"], result.series  # doctest: +SKIP
"""

from bluewater._core import ScenarioError, catalog, schema
from bluewater._core import version as _version
from bluewater.errors import InputError
from bluewater.results.result import Result
from bluewater.study.scenario import run

__version__ = _version()

__all__ = ["InputError", "Result", "ScenarioError", "catalog", "run", "schema"]
