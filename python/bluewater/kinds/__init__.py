"""The kinds of runs: what says of a table which it is, checks it, and makes it.

A kind takes the table of a run (a scenario, or what stands in its place), gives its *canonical
text*, from which alone the run follows, and makes a :class:`~bluewater.results.result.Result` of
such a text; one that is read and checked is :class:`~bluewater.kinds.kind.Prepared`. A new kind is
a module with a ``KIND``, and its name here.
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
"""Every kind by its name; the simulator takes what no other does."""


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
    """The table that a text says, and its run; errors name lines of the text."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError):
        check_toml(text, origin)
        table = {}  # the simulator says what is wrong, and in which line
    check_text(text, origin)
    check_depth(table, origin)
    if of(table, origin) is simulator.KIND:
        return table, Simulation(text, origin)
    return table, prepare(table, origin)
