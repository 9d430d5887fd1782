"""The interface of a kind of runs."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater import _core
from bluewater.errors import InputError
from bluewater.results.store import run_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bluewater.results.packets import Packets
    from bluewater.results.result import Result


@dataclass(frozen=True)
class Kind:
    """A kind of runs.

    Attributes:
        name: Its name.
        owns: Whether a run's table is of this kind.
        check: Converts a table to its canonical text; the file is for messages. Raises
            :class:`~bluewater.errors.InputError` or :class:`~bluewater.ScenarioError`.
        run: Makes the run of a canonical text, named by an origin, and reports progress, 0 to 1.
        alone: Whether it measures real time, and so runs alone, after all others.
        missing: Why this machine cannot make such runs; empty if it can.
        version: The version of the code that makes such runs, which is part of a result's key.
        seeded: Replaces the seed in a canonical text, if a check for one seed holds for all.
    """

    name: str
    owns: Callable[[Mapping[str, Any]], bool]
    check: Callable[[Mapping[str, Any], str], str]
    run: Callable[[str, str, Callable[[float], object] | None], Result]
    alone: bool = False
    missing: Callable[[], str | None] = lambda: None
    version: Callable[[], str] = _core.version
    seeded: Callable[[str, int], str] | None = None


class Prepared:
    """A run that was read and checked, and can be made.

    Attributes:
        kind: Its kind.
        canonical: The text that alone determines the run.
        origin: Its name in messages.
        threads: On how many it was made last.
    """

    threads = 1

    def __init__(self, kind: Kind, canonical: str, origin: str) -> None:
        self.kind = kind
        self.canonical = canonical
        self.origin = origin

    @cached_property
    def key(self) -> str:
        """Its name in a store."""
        return run_key(self.canonical, self.kind.version())

    def run(
        self,
        progress: Callable[[float], object] | None = None,
        packets: Packets | None = None,
        keep: Callable[[Result], object] = lambda _: None,
        threads: int | None = 1,  # noqa: ARG002 - of a simulation
    ) -> Result:
        """Makes the run in this process.

        Args:
            progress: Called now and then with the fraction done, 0 to 1.
            packets: The packets to write to a file, if the run is a simulation.
            keep: Called with the result, before the file of packets is finished.
            threads: On how many at most a simulation runs; None: on as many as save time.
        """
        if packets is not None:
            raise InputError(
                "only the simulator writes packets down",
                file=self.origin,
                key="place",
                hint="the gateway records real packets: `bluewater gateway run --record`",
            )
        result = self.kind.run(self.canonical, self.origin, progress)
        keep(result)
        return result


@cache
def fingerprint(*files: str) -> str:
    """A hash over the code of Python files, without comments, docstrings and layout."""
    parts = [_code(Path(file).read_text(encoding="utf-8")) for file in files]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _code(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [each for each in node.body if not _is_text(each)]
    return ast.unparse(tree)


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is only a string, as a docstring is."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
