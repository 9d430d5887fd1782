"""Generated traces: such a run is, like a scenario, a text that determines it.

For example::

    [trace]
    seed = 1
    duration = "60s"
    windows = ["1s", "5s", "20s"]
    timeout = "64s"

with the other options of the generator beside them.
"""

from __future__ import annotations

import hashlib
import json
import time
import tomllib
from typing import TYPE_CHECKING, Any

import tomli_w

from bluewater import _core, trace
from bluewater.kinds.kind import Kind, fingerprint
from bluewater.results.result import Result
from bluewater.trace import TIMEOUT, WINDOWS, Trace, input_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def check(table: Mapping[str, Any], file: str) -> str:
    """Checks the options of a generated trace; returns the canonical text."""
    given = {"seed": table.get("seed", 1), **table["trace"]}
    given = {"windows": list(WINDOWS), "timeout": TIMEOUT, **given}
    options, windows, timeout = _split(given)
    try:
        _core.check_generated(windows, timeout, **options)
    except ValueError as error:
        raise input_error(error, given, file) from error
    return tomli_w.dumps({"trace": dict(sorted(given.items()))})


def run(text: str, origin: str, progress: Callable[[float], object] | None) -> Result:  # noqa: ARG001
    """Generates and measures a trace."""
    began = time.perf_counter()
    options, windows, timeout = _split(tomllib.loads(text)["trace"])
    found = Trace.parse(_core.measure_generated(windows, timeout, progress, **options))
    tables = {name: table for name, table in found.tables() if name in ("skew", "persistence")}
    return Result(
        {**found.summary, "wall_s": time.perf_counter() - began},
        text,
        _digest(found),
        version(),
        tables.__getitem__,
        tuple(tables),
    )


def _digest(trace: Trace) -> str:
    """16 hexadecimal digits over all measured values."""
    tables = {name: table.to_dict(as_series=False) for name, table in trace.tables()}
    text = json.dumps([trace.summary, tables])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _split(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str], str]:
    options = dict(given)
    return options, options.pop("windows"), options.pop("timeout")


def version() -> str:
    """The versions of the core and of the code that makes its tables."""
    return f"{_core.version()} trace {fingerprint(__file__, trace.__file__)}"


KIND = Kind("trace", lambda table: "trace" in table, check, run, version=version)
