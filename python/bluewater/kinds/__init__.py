"""The kinds of runs: each recognises, checks and makes its runs.

A kind takes the table of a run (a scenario or similar), converts it to its *canonical text*, which
alone determines the run, and makes a :class:`~bluewater.results.result.Result` from such a text. A
run that was read and checked is :class:`~bluewater.kinds.kind.Prepared`. A new kind is a module
with a ``KIND``, and its name here.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from bluewater.errors import unknown
from bluewater.files import check_depth, check_text, check_toml
from bluewater.kinds import formula, simulator, testbed, trace
from bluewater.kinds.kind import Prepared
from bluewater.kinds.named import check_files
from bluewater.kinds.simulator import Simulation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bluewater.kinds.kind import Kind

KINDS: Mapping[str, Kind] = {
    each.name: each for each in (formula.KIND, trace.KIND, testbed.KIND, simulator.KIND)
}
"""Every kind by its name; the simulator takes every table that no other kind owns."""


def of(table: Mapping[str, Any], file: str) -> Kind:
    """The kind of a run by its table."""
    check_files(table, file)
    place = table.get("place", "simulator")
    if place not in ("simulator", "testbed"):
        raise unknown("place", str(place), ("simulator", "testbed"), file=file, key="place")
    return next(each for each in KINDS.values() if each.owns(table))


def prepare(table: Mapping[str, Any], origin: str) -> Prepared:
    """The run of a table."""
    kind = of(table, origin)
    if kind is simulator.KIND:
        return Simulation.of(table, origin)
    return Prepared(kind, kind.check(table, origin), origin)


def read(text: str, origin: str) -> tuple[dict[str, Any], Prepared]:
    """Parses a text to its table and its run; errors name lines of the text."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError):
        check_toml(text, origin)
        table = {}  # the simulator reports the error with its line
    check_text(text, origin)
    check_depth(table, origin)
    if of(table, origin) is simulator.KIND:
        return table, Simulation(text, origin)
    return table, prepare(table, origin)
