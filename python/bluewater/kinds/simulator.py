"""Scenarios, simulated."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from bluewater import _core
from bluewater.errors import InputError
from bluewater.files import apart, check_text
from bluewater.kinds.kind import Kind
from bluewater.own import named
from bluewater.results.exports import pcapng
from bluewater.results.result import Result
from bluewater.results.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bluewater.results.packets import Packets


def at_line(error: _core.ScenarioError, line: int | None) -> _core.ScenarioError:
    """The same error at another line, or at none."""
    before, after = (
        f"{error.file}" if each is None else f"{error.file}:{each}" for each in (error.line, line)
    )
    moved = _core.ScenarioError(str(error).replace(before, after, 1))
    for name in ("file", "key", "value", "problem", "allowed", "hint"):
        setattr(moved, name, getattr(error, name))
    moved.line = line
    return moved


def check(table: Mapping[str, Any], file: str) -> str:
    """The canonical scenario, every default filled in."""
    try:
        text = tomli_w.dumps({k: v for k, v in named(table).items() if k != "place"})
    except (TypeError, AttributeError) as error:
        raise InputError(
            f"a table with what no file can hold: {error}",
            file=file,
            allowed="text as keys; text, numbers, booleans, lists and tables as values",
        ) from error
    check_text(text, file)
    try:
        return _core.check(text, file)
    except _core.ScenarioError as error:
        raise at_line(error, None) from None  # nobody has written that text


def seeded(text: str, seed: int) -> str:
    """The canonical scenario with another seed, which a queue is not built again to check."""
    return re.sub(r"^seed = \d+$", f"seed = {seed}", text, count=1, flags=re.MULTILINE)


def run(text: str, origin: str, progress: Callable[[float], object] | None) -> Result:
    """Simulates a scenario."""
    began = time.perf_counter()
    return Result.of(_core.run(text, origin, progress), began)


def run_with_packets(
    text: str,
    origin: str,
    progress: Callable[[float], object] | None,
    packets: Packets,
    keep: Callable[[Result], object],
) -> Result:
    """The same, and writes down what became of each packet, once the result is kept."""
    chosen = packets.selection()
    path = Path(packets.path)
    apart(path, Path(origin), key="packets")
    publish = pcapng.write if path.suffix == pcapng.SUFFIX else Path.replace
    began = time.perf_counter()
    with Writer(path, publish) as writer:
        made = _core.run(text, origin, progress, journal=writer.take, **chosen)
        result = Result.of(made, began)
        keep(result)
        about = ("scenario", "version", "decision_hash")
        writer.finish({name: getattr(result, name) for name in about})
    return result


KIND = Kind("simulator", lambda table: True, check, run, seeded=seeded)  # noqa: ARG005
