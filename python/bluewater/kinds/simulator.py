"""Scenarios, simulated."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import tomli_w

from bluewater import _core
from bluewater.kinds.kind import Kind
from bluewater.results.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def check(table: Mapping[str, Any], file: str) -> str:
    """The canonical scenario, every default filled in."""
    return _core.check(tomli_w.dumps({k: v for k, v in table.items() if k != "place"}), file)


def run(text: str, origin: str, progress: Callable[[float], object] | None) -> Result:
    """Simulates a scenario."""
    began = time.perf_counter()
    return Result.of(_core.run(text, origin, progress), began)


KIND = Kind("simulator", lambda table: True, check, run)  # noqa: ARG005
