"""The kinds of runs: what says of a table which it is, checks it, and makes it.

A kind takes the table of a run (a scenario, or what stands in its place), gives its *canonical
text*, from which alone the run follows, and makes a :class:`~bluewater.results.result.Result` of
such a text. A new kind is a module with a ``KIND``, and its name here.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from bluewater import _core
from bluewater.errors import InputError, unknown
from bluewater.files import check_depth, check_text, check_toml
from bluewater.kinds import formula, simulator, testbed, trace
from bluewater.kinds.named import check_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bluewater.kinds.kind import Kind
    from bluewater.results.packets import Packets
    from bluewater.results.result import Result

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


def checked(text: str, origin: str) -> tuple[Kind, str]:
    """The kind of a text, and its canonical text."""
    kind, given = _parsed(text, origin)
    if kind is simulator.KIND:
        return kind, _core.check(given, origin)
    return kind, given


def run(
    text: str,
    origin: str,
    progress: Callable[[float], object] | None = None,
    packets: Packets | None = None,
    keep: Callable[[Result], object] = lambda _: None,
) -> Result:
    """Makes the run that a text of any kind says, in this process; a simulation with packets.

    What ``keep`` does with the result is done before the file of packets is made of its parts.
    """
    kind, given = _parsed(text, origin)
    if packets is None:
        result = kind.run(given, origin, progress)
        keep(result)
        return result
    if kind is not simulator.KIND:
        raise InputError(
            "only the simulator writes packets down",
            file=origin,
            key="place",
            hint="the gateway records real packets: `bluewater gateway run --record`",
        )
    return simulator.run_with_packets(given, origin, progress, packets, keep)


def _parsed(text: str, origin: str) -> tuple[Kind, str]:
    """The kind of a text, and the text that it is run from."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError):
        check_toml(text, origin)
        table = {}  # the simulator says what is wrong, and in which line
    check_text(text, origin)
    check_depth(table, origin)
    kind = of(table, origin)
    # The simulator takes the text as it was written: its errors name lines.
    return kind, text if kind is simulator.KIND else kind.check(table, origin)
