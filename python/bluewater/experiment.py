"""Experiments: a base scenario, a sweep, two sizes, claims and plots, all in one TOML file.

Beside the keys of a scenario the file may hold ``seeds``, ``[sweep]`` (see
:mod:`bluewater.sweep`), ``[sizes.NAME]``, ``[[claim]]``, ``[[plot]]`` and ``[about]``; a file with
none of them is a scenario, one with only a sweep is a sweep.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater import _core, formula, testbed, trace
from bluewater.claims import Claim
from bluewater.errors import InputError, unknown
from bluewater.execute import Task
from bluewater.keys import check_keys
from bluewater.plots.spec import Plot
from bluewater.scenario import parse_table, read_text, to_text
from bluewater.store import run_key
from bluewater.sweep import Axis, Cell, assign, expand, parse_axes
from bluewater.tables import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OWN_KEYS = {"about", "seeds", "sweep", "sizes", "claim", "plot", "table"}
"""The keys of an experiment that a scenario does not have."""


@dataclass(frozen=True)
class About:
    """The prose of an experiment.

    Attributes:
        paper: The source, as it is cited.
        figure: Which of its figures or tables.
        question: What the experiment asks.
        account: What the paper says; never what was measured.
        finding: What we make of it, in words; the claims carry the numbers.
        choices: What was chosen where the paper is silent, and why.
    """

    paper: str = ""
    figure: str = ""
    question: str = ""
    account: str = ""
    finding: str = ""
    choices: tuple[str, ...] = ()

    @classmethod
    def parse(cls, table: Mapping[str, Any], file: str) -> About:
        """Reads ``[about]``."""
        check_keys(table, set(), {f.name for f in fields(cls)}, "about", file)
        return cls(**{**table, "choices": tuple(table.get("choices", ()))})


@dataclass(frozen=True)
class Size:
    """How much of an experiment is run.

    Attributes:
        seeds: The seeds, all different.
        settings: Dotted keys of the base scenario that this size sets.
        axes: The points kept of an axis, for the axes that are thinned.
    """

    name: str
    seeds: tuple[int, ...]
    settings: Mapping[str, Any]
    axes: Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Sheet:
    """A table of a report: what a query gives, its columns as they are named there."""

    id: str
    title: str
    caption: str
    sql: str

    @classmethod
    def parse(cls, table: Mapping[str, Any], file: str) -> Sheet:
        """Reads one ``[[table]]``."""
        check_keys(table, {f.name for f in fields(cls)}, set(), "table", file)
        return cls(**table)


@dataclass(frozen=True)
class Experiment:
    """An experiment as it is written in its file."""

    id: str
    file: str
    title: str
    about: About
    base: Mapping[str, Any]
    axes: tuple[Axis, ...]
    sizes: Mapping[str, Size]
    claims: tuple[Claim, ...]
    plots: tuple[Plot, ...]
    sheets: tuple[Sheet, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether it evaluates a formula, for which one seed is as good as any."""
        return "formula" in self.base

    def size(self, name: str) -> Size:
        """The size of this name."""
        if name not in self.sizes:
            raise unknown("size", name, self.sizes, file=self.file, key="sizes")
        return self.sizes[name]

    def cells(self, size: Size) -> list[Cell]:
        """The cells of the sweep at a size."""
        base = dict(self.base)
        for key, value in size.settings.items():
            assign(base, key, value, self.file)
        for name in size.axes:
            if name not in {axis.name for axis in self.axes}:
                raise unknown(
                    "axis",
                    name,
                    (axis.name for axis in self.axes),
                    file=self.file,
                    key=f"sizes.{size.name}.sweep",
                )
        axes = [
            axis.keep(size.axes[axis.name], self.file) if axis.name in size.axes else axis
            for axis in self.axes
        ]
        return list(expand(base, axes, self.file))

    def plan(self, size: Size) -> list[tuple[Task, Entry]]:
        """Every run of a size, checked, with its name in a store."""
        version = _core.version()
        planned = []
        for cell in self.cells(size):
            for seed in size.seeds:
                label = ", ".join(filter(None, (self.id, cell.label, f"seed={seed}")))
                # The title says nothing about the run: two experiments may share it.
                table = {k: v for k, v in cell.scenario.items() if k != "title"} | {"seed": seed}
                canonical = _check(table, self.file, cell.label)
                key = run_key(canonical, version)
                task = Task(key, canonical, label, alone=testbed.is_one(canonical))
                planned.append((task, Entry(cell.axes, seed, key)))
        return planned


def _check(table: Mapping[str, Any], file: str, cell: str) -> str:
    if "formula" in table:
        return formula.check(table, file)
    if "trace" in table:
        return trace.check(table, file)
    place = table.get("place", "simulator")
    if place not in testbed.PLACES:
        raise unknown("place", place, testbed.PLACES, file=file, key="place")
    text, _ = to_text({key: value for key, value in table.items() if key != "place"})
    try:
        canonical = _core.check(text, file)
        return testbed.check(canonical, file) if place == "testbed" else canonical
    except _core.ScenarioError as error:
        # Its line is one of the text made for this cell, which nobody has written.
        raise InputError(
            (error.allowed or "not a scenario") + (f" (in the cell {cell})" if cell else ""),
            file=file,
            key=error.key,
            value=error.value,
            hint=error.hint,
        ) from error


def parse(text: str, file: str, name: str) -> Experiment:
    """Reads an experiment, a sweep or a plain scenario."""
    table = parse_table(text, file)
    base = {key: value for key, value in table.items() if key not in OWN_KEYS}
    seeds = table.get("seeds", [table.get("seed", 1)])
    default = Size("full", _seeds(seeds, "seeds", file), {}, {})
    sizes = {
        size: _parse_size(size, entry, default, file)
        for size, entry in table.get("sizes", {}).items()
    }
    return Experiment(
        id=name,
        file=file,
        title=table.get("title", name),
        about=About.parse(table.get("about", {}), file),
        base=base,
        axes=parse_axes(table.get("sweep", {}), file),
        sizes={"full": default, **sizes},
        claims=tuple(Claim.parse(entry, file) for entry in table.get("claim", [])),
        plots=tuple(Plot.parse(entry, file) for entry in table.get("plot", [])),
        sheets=tuple(Sheet.parse(entry, file) for entry in table.get("table", [])),
    )


def _parse_size(name: str, table: Mapping[str, Any], default: Size, file: str) -> Size:
    check_keys(table, set(), {"seeds", "set", "sweep"}, f"sizes.{name}", file)
    return Size(
        name,
        _seeds(table["seeds"], f"sizes.{name}.seeds", file) if "seeds" in table else default.seeds,
        table.get("set", {}),
        table.get("sweep", {}),
    )


def _seeds(seeds: Any, key: str, file: str) -> tuple[int, ...]:
    whole = isinstance(seeds, list) and all(type(seed) is int and seed >= 0 for seed in seeds)
    if not whole or not seeds:
        raise InputError(
            "not a list of seeds", file=file, key=key, value=seeds, allowed="whole numbers from 0"
        )
    return distinct(seeds, key, file)


def distinct(seeds: Sequence[int], key: str, file: str | None = None) -> tuple[int, ...]:
    """The seeds, refused if one comes twice: a repeated run would pass for an independent one."""
    if len(set(seeds)) != len(seeds):
        raise InputError(
            "seeds repeat",
            file=file,
            key=key,
            value=list(seeds),
            allowed="seeds that are all different",
            hint="repeated seeds give identical runs, and so an interval that is too narrow",
        )
    return tuple(seeds)


def root() -> Path:
    """The folder of experiments: ``BLUEWATER_EXPERIMENTS``, else the package's own."""
    return Path(os.environ.get("BLUEWATER_EXPERIMENTS") or Path(__file__).parent / "experiments")


def known() -> dict[str, Path]:
    """Every experiment's file by its name, ``PAPER/NAME``."""
    folder = root()
    files = sorted(folder.glob("*/*.toml"), key=lambda path: (path.parent.name, _natural(path)))
    return {f"{path.parent.name}/{path.stem}": path for path in files}


def _natural(path: Path) -> tuple[int, str]:
    digits = "".join(c if c.isdigit() else " " for c in path.stem).split()
    return (int(digits[0]) if digits else 1000, path.stem)


def load(name: str) -> Experiment:
    """The experiment of this name."""
    files = known()
    if name not in files:
        papers = {known_name.partition("/")[0] for known_name in files}
        raise unknown("experiment", name, {*files, *papers})
    path = files[name]
    return parse(read_text(path), str(path), name)


def select(name: str | None) -> list[Experiment]:
    """The experiments meant by ``PAPER/NAME``, by ``PAPER``, or all of them."""
    names = [known_name for known_name in known() if name in (None, known_name.partition("/")[0])]
    return [load(chosen) for chosen in names] if names else [load(name or "")]
