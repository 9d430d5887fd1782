"""Scenarios, simulated."""

from __future__ import annotations

import re
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import tomli_w

from bluewater import _core, sources
from bluewater.errors import InputError
from bluewater.files import apart, check_text
from bluewater.kinds.kind import Kind, Prepared
from bluewater.own import LANGUAGE, named, uninterrupted, with_texts
from bluewater.results.exports import pcapng
from bluewater.results.result import Result
from bluewater.results.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bluewater.results.packets import Packets


def at_line(error: _core.ScenarioError, line: int | None) -> _core.ScenarioError:
    """The error with another line, or without one."""
    before, after = (
        f"{error.file}" if each is None else f"{error.file}:{each}" for each in (error.line, line)
    )
    moved = _core.ScenarioError(str(error).replace(before, after, 1))
    for name in ("file", "key", "value", "problem", "allowed", "hint"):
        setattr(moved, name, getattr(error, name))
    moved.line = line
    return moved


class Simulation(Prepared):
    """A scenario with its simulation, which is built once.

    Args:
        text: The scenario as the user wrote it: errors name its lines.
        origin: Its name in messages.
    """

    _newest: ClassVar[Callable[[], Simulation | None]] = lambda: None

    def __init__(self, text: str, origin: str) -> None:
        built, self._took = _built(text, origin)
        super().__init__(KIND, built.canonical, origin)
        self._built = [built]
        # Only the newest scenario keeps its simulation, a megabyte: there may be many scenarios.
        if (before := Simulation._newest()) is not None:
            before._built.clear()
        Simulation._newest = weakref.ref(self)

    @classmethod
    def of(cls, table: Mapping[str, Any], origin: str) -> Simulation:
        """Makes the scenario of a table; errors name no lines, because there is no file."""
        try:
            text = tomli_w.dumps({k: v for k, v in named(table).items() if k != "place"})
        except (TypeError, AttributeError) as error:
            raise InputError(
                f"a table with what no file can hold: {error}",
                file=origin,
                allowed="text as keys; text, numbers, booleans, lists and tables as values",
            ) from error
        check_text(text, origin)
        try:
            return cls(text, origin)
        except _core.ScenarioError as error:
            raise at_line(error, None) from None

    def run(
        self,
        progress: Callable[[float], object] | None = None,
        packets: Packets | None = None,
        keep: Callable[[Result], object] = lambda _: None,
        threads: int | None = 1,
    ) -> Result:
        """Simulates the scenario; a second run, or one after other scenarios, builds it again."""
        if packets is None:
            result = self._made(progress, threads)
            keep(result)
            return result
        packets.check(self.canonical)
        chosen = packets.selection()
        path = Path(packets.path)
        apart(path, Path(self.origin), key="packets")
        publish = pcapng.write if path.suffix == pcapng.SUFFIX else Path.replace
        with Writer(path, publish) as writer:
            result = self._made(progress, threads, journal=writer.take, **chosen)
            keep(result)
            about = ("scenario", "version", "decision_hash")
            writer.finish({name: getattr(result, name) for name in about})
        return result

    def _made(
        self, progress: Callable[[float], object] | None, threads: int | None, **journal: Any
    ) -> Result:
        """The result, whose wall-clock time includes building the simulation."""
        try:
            built, took = self._built.pop(), self._took
        except IndexError:
            built, took = _build(self.canonical, self.origin)
        began = time.perf_counter() - took
        self.threads = built.divide(threads) if threads != 1 else 1
        with sources.running(), uninterrupted():
            outcome = built.run(progress, **journal)
        return Result.of(outcome, began, built.captures)


def _built(text: str, origin: str) -> tuple[_core.Prepared, float]:
    """The simulation of a scenario that contains all that its classes use."""
    if LANGUAGE not in text:
        return _build(text, origin)
    began = time.perf_counter()
    sources.forget()
    found = with_texts(text, origin)
    try:
        built, _ = _build(found, origin)
    except _core.ScenarioError:
        if found != text:
            _build(text, origin)  # names the line
        raise
    whole = with_texts(built.canonical, origin)
    if whole != built.canonical:
        built, _ = _build(whole, origin)
    return built, time.perf_counter() - began


def _build(text: str, origin: str) -> tuple[_core.Prepared, float]:
    """The simulation, and the time to build it, s."""
    began = time.perf_counter()
    with uninterrupted():
        return _core.Prepared(text, origin), time.perf_counter() - began


def seeded(text: str, seed: int) -> str:
    """The canonical scenario with another seed, without building a queue to check it."""
    return re.sub(r"^seed = \d+$", f"seed = {seed}", text, count=1, flags=re.MULTILINE)


KIND = Kind(
    "simulator",
    owns=lambda table: True,  # noqa: ARG005
    check=lambda table, origin: Simulation.of(table, origin).canonical,
    run=lambda text, origin, progress: Simulation(text, origin).run(progress),
    seeded=seeded,
)
