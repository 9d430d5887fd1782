"""Experiments: a base scenario, a sweep, two sizes, claims and plots, all in one TOML file.

Beside the keys of a scenario the file may hold ``seeds``, ``[sweep]`` (see
:mod:`bluewater.study.scenarios.sweep`), ``[sizes.NAME]``, ``[[unknown]]`` and ``[[reading]]`` (see
:mod:`bluewater.study.experiments.readings`), ``[[claim]]``, ``[[plot]]``, ``[[table]]`` and
``[about]``; a file with none of them is a scenario, one with only a sweep is a sweep.
"""

from __future__ import annotations

import copy
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from bluewater import _core, kinds
from bluewater.errors import InputError, unknown
from bluewater.files import PACKAGE, parse_table, read_text
from bluewater.results import aggregate
from bluewater.results.store import run_key
from bluewater.results.tables import COLUMNS, RESERVED, STANDARD, Blank, Entry
from bluewater.study.execution.task import Task
from bluewater.study.experiments import paper, readings
from bluewater.study.experiments.claims import Claim
from bluewater.study.experiments.lines import telling_lines
from bluewater.study.experiments.paper import Paper, Section
from bluewater.study.experiments.plot import Plot
from bluewater.study.experiments.readings import Reading, Unknown
from bluewater.study.experiments.templates import Names
from bluewater.study.scenarios.seeds import Seeds, as_written
from bluewater.study.scenarios.sweep import Axis, Cell, assign, expand, parse_axes
from bluewater.study.scenarios.typed import Table, read
from bluewater.units import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bluewater.kinds.kind import Kind
    from bluewater.results.store import Store


class About(Table, frozen=True):
    """The prose of an experiment.

    Attributes:
        paper: The source, as it is cited.
        figure: Its figure or table.
        question: The question of the experiment.
        account: The paper's account; never a measurement.
        finding: Our conclusion, in words; the claims carry the numbers.
        choices: Our choices where the paper is silent, and why.
    """

    paper: str = ""
    figure: str = ""
    question: str = ""
    account: str = ""
    finding: str = ""
    choices: tuple[str, ...] = ()


class SizeTable(Table, frozen=True):
    """``[sizes.NAME]``, as written in the file."""

    seeds: Seeds | None = None
    settings: dict[str, Any] = msgspec.field(name="set", default_factory=dict)
    axes: dict[str, list[Any]] = msgspec.field(name="sweep", default_factory=dict)
    readings: bool = True
    needs_full: tuple[str, ...] = ()


@dataclass(frozen=True)
class Size:
    """A size of an experiment: the part of its runs to make.

    Attributes:
        seeds: The seeds, all different.
        settings: Dotted keys of the base scenario that this size sets.
        axes: The points to keep, for each axis that is thinned.
        readings: Whether stated readings are run beside the standard one.
        needs_full: The claims that this size is too small for.
    """

    name: str
    seeds: tuple[int, ...]
    settings: Mapping[str, Any]
    axes: Mapping[str, Sequence[Any]]
    readings: bool = True
    needs_full: tuple[str, ...] = ()


class Sheet(Table, frozen=True):
    """A table of a report: the result of a query, with the query's column names.

    Attributes:
        reading: The reading whose runs it shows, or ``all``.
    """

    id: str
    title: str
    caption: str
    sql: str
    reading: str = STANDARD


class _Own(Table, frozen=True):
    """The keys of an experiment that a scenario does not have."""

    about: About = About()
    seeds: Seeds | None = None
    sweep: dict[str, Any] = msgspec.field(default_factory=dict)
    sizes: dict[str, SizeTable] = msgspec.field(default_factory=dict)
    unknown: tuple[Unknown, ...] = ()
    reading: tuple[Reading, ...] = ()
    view: dict[str, str] = msgspec.field(default_factory=dict)
    claim: tuple[Claim, ...] = ()
    plot: tuple[Plot, ...] = ()
    table: tuple[Sheet, ...] = ()


OWN_KEYS = frozenset(_Own.__struct_fields__)
"""The keys of an experiment that a scenario does not have."""


_NONE = Paper(cite="", title="", source="")
"""The paper of an experiment that belongs to no paper."""


@dataclass(frozen=True)
class Experiment:
    """An experiment as its file defines it.

    Attributes:
        paper: Its paper.
        section: The section of the paper, if the paper's file names one.
        unknowns: The open questions, of the experiment or its section.
        readings: The stated readings, the experiment's own before its section's.
        views: Queries that claims, plots and tables use as tables, by name; includes ``steps`` if
            flows join in steps.
    """

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
    paper: Paper = _NONE
    section: Section | None = None
    unknowns: tuple[Unknown, ...] = ()
    readings: tuple[Reading, ...] = ()
    views: Mapping[str, str] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether it evaluates a formula, whose value does not depend on the seed."""
        return "formula" in self.base

    def size(self, name: str) -> Size:
        """The size of this name."""
        if name not in self.sizes:
            raise unknown("size", name, self.sizes, file=self.file, key="--size")
        return self.sizes[name]

    def stated(self, claim: Claim) -> list[str]:
        """The names of the stated readings that a claim is judged under."""
        return [each.id for each in self.readings if not each.claims or claim.id in each.claims]

    @property
    def hindsight(self) -> set[str]:
        """The names of the readings that were chosen with the results in view."""
        return {each.id for each in self.readings if each.post_hoc}

    def try_queries(self, entries: Sequence[Entry], store: Store) -> set[str]:
        """Tries every query on empty tables, so that a wrong one fails before any run is made.

        Returns:
            The tables that the queries use, except ``runs``.

        Raises:
            InputError: A query fails, or lacks a required column.
        """
        tables = Blank(entries, store, self.views)
        for claim in self.claims:
            needed = ("seed", "value")
            tables.query(claim.measure, needed, f"claim.{claim.id}.measure", self.file)
        for plot in self.plots:
            for panel in plot.panels:
                tables.query(panel.sql, ("x", "y"), f"plot.{plot.id}.panel.sql", self.file)
        for sheet in self.sheets:
            tables.query(sheet.sql, (), f"table.{sheet.id}.sql", self.file)
        if self.paper.scorecard and "score" in self.views:
            tables.query("SELECT * FROM score", paper.SCORE, "view.score", self.file)
        return tables.asked

    def cells(self, size: Size, reading: Reading | None = None) -> list[Cell]:
        """The cells of the sweep at a size, in the standard reading or another."""
        if reading is None:
            return self.cells_with(size, [], "reading")
        kept = self._kept(size, reading)
        return self.cells_with(kept, reading.set_by(self.unknowns), f"reading.{reading.id}")

    def _kept(self, size: Size, reading: Reading) -> Size:
        """The part of a size that is run in a stated reading."""
        axes = dict(size.axes)
        for axis in self.axes:
            if axis.name in reading.axes:
                kept = axis.keep(reading.axes[axis.name], self.file, f"reading.{reading.id}.sweep")
                there = [point.label for point in kept.points]
                # A reading may need points that the full size leaves out of the standard reading.
                of_size = there if size.name == "full" else size.axes.get(axis.name, there)
                axes[axis.name] = [label for label in of_size if label in there]
        return replace(size, axes=axes, seeds=size.seeds[: reading.seeds])

    def cells_with(self, size: Size, set_: Sequence[Mapping[str, Any]], key: str) -> list[Cell]:
        """The cells of the sweep at a size, with an unknown's settings (``key`` names them)."""
        plain, conditional = readings.split(set_)
        base = copy.deepcopy(dict(self.base))
        for name, value in {**size.settings, **plain}.items():
            assign(base, name, value, self.file)
        for name in size.axes:
            if name not in {axis.name for axis in self.axes}:
                raise unknown(
                    "axis",
                    name,
                    (axis.name for axis in self.axes),
                    file=self.file,
                    key=f"sizes.{size.name}.sweep.{name}",
                )
        axes = [
            axis.keep(size.axes[axis.name], self.file, f"sizes.{size.name}.sweep")
            if axis.name in size.axes
            else axis
            for axis in self.axes
        ]
        return [
            readings.apply(cell, conditional, self.file, key)
            for cell in expand(base, axes, self.file)
        ]

    def plan(self, size: Size) -> list[tuple[Task, Entry]]:
        """Every run of a size, checked, with its key in a store.

        Leaves out a section's reading that changes no run here: it equals the standard one.
        """
        named = STANDARD if self.readings else None
        planned = standard = self.runs(self.cells(size), size, named)
        joint = self.section.readings if self.section else ()
        for reading in self.readings if size.readings else ():
            kept = self._kept(size, reading)
            runs = self.runs(self.cells(size, reading), kept, reading.id)
            if not {task.key for task, _ in runs} <= {task.key for task, _ in standard}:
                planned = planned + runs
            elif size.name == "full" and reading.id not in {each.id for each in joint}:
                raise InputError(
                    "the reading changes no run",
                    file=self.file,
                    key=f"reading.{reading.id}",
                    hint="an axis overrides `set`; a condition such as 'queue.0.aqm=sfb' makes its "
                    "settings override the axis",
                )
        return planned

    def runs(
        self, cells: Sequence[Cell], size: Size, reading: str | None
    ) -> list[tuple[Task, Entry]]:
        """Yields a run for each cell and seed."""
        planned = []
        marked = f"reading={reading}" if reading not in (None, STANDARD) else ""
        for cell in cells:
            where = ", ".join(filter(None, (marked, cell.label)))
            for seed, (kind, canonical) in zip(
                size.seeds, self._texts(cell, size, where), strict=True
            ):
                label = ", ".join(filter(None, (self.id, where, f"seed={seed}")))
                key = run_key(canonical, kind.version())
                task = Task(key, canonical, label, kind.name)
                planned.append((task, Entry(cell.axes, seed, key, reading)))
        return planned

    def _texts(self, cell: Cell, size: Size, where: str) -> Iterator[tuple[Kind, str]]:
        """The kind and the canonical texts of a cell's runs, one per seed.

        If the kind allows it, only the first is checked, and the others are derived from it.
        """
        # The title does not affect the run, so that two experiments may share it.
        table = {k: v for k, v in cell.scenario.items() if k != "title"}
        first: tuple[Kind, str] | None = None
        for seed in size.seeds:
            if first is not None and (seeded := first[0].seeded) is not None:
                yield first[0], seeded(first[1], seed)
                continue
            kind = kinds.of(table | {"seed": seed}, self.file)
            first = kind, _check(kind, table | {"seed": seed}, self.file, where)
            yield first


def _check(kind: Kind, table: Mapping[str, Any], file: str, cell: str) -> str:
    try:
        return kind.check(table, file)
    except _core.ScenarioError as error:
        # The line would be one of this cell's generated text, not of the user's file.
        raise InputError(
            error.problem + (f" (in the cell {cell})" if cell else ""),
            file=file,
            key=error.key,
            value=_unquoted(error.value),
            allowed=error.allowed,
            hint=error.hint,
        ) from error


def _unquoted(value: Any) -> Any:
    """Removes the quotation marks of a value that is quoted as in a file."""
    quoted = isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"'
    return value[1:-1] if quoted else value


def parse(
    text: str,
    file: str,
    name: str,
    folder: Path | None = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Experiment:
    """Reads an experiment, a sweep or a plain scenario.

    Args:
        text: The TOML.
        file: Its name in messages. A real file may use the names in the ``paper.toml`` beside it.
        name: The name of the experiment, ``PAPER/NAME``.
        folder: Its paper's folder, if it belongs to a paper.
        settings: Dotted keys to set after names are filled in.
    """
    of = paper.load(folder) if folder else _NONE
    beside = paper.load(Path(file).resolve().parent) if not folder and Path(file).is_file() else of
    with telling_lines(text, file):
        written = parse_table(text, file)
        table = Names.of(written, file, beside.named).filled(written)
        for key, value in settings.items():
            assign(table, key, value, file)
        return _made(table, file, name, of)


def _made(table: dict[str, Any], file: str, name: str, of: Paper) -> Experiment:
    base = {key: value for key, value in table.items() if key not in OWN_KEYS}
    own = read({key: value for key, value in table.items() if key in OWN_KEYS}, _Own, file)
    seeds = (table.get("seed", 1),) if own.seeds is None else own.seeds
    default = Size("full", as_written(seeds, "seeds", file), {}, {})
    sizes = {size: _size(size, entry, default, file) for size, entry in own.sizes.items()}
    title = base.get("title", name)
    if not isinstance(title, str):
        raise InputError("not a value", file=file, key="title", value=title, allowed="text")
    short = name.rpartition("/")[2]
    section = of.section(short)
    made = Experiment(
        id=name,
        file=file,
        title=title,
        about=own.about,
        base=base,
        axes=parse_axes(own.sweep, file),
        sizes={"full": default, **sizes},
        claims=_ours(own.claim) if of.own else own.claim,
        plots=own.plot,
        sheets=own.table,
        paper=of,
        section=section,
        unknowns=(*own.unknown, *(section.unknowns if section else ())),
        readings=(*own.reading, *(_joint(section, short) if section else ())),
        views=_views(_steps(base), own.view, of, file),
    )
    check_names(made)
    return made


def _ours(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """The question of an experiment without a paper."""
    return tuple(msgspec.structs.replace(each, origin="ours") for each in claims)


def _views(
    given: Mapping[str, str], own: Mapping[str, str], of: Paper, file: str
) -> dict[str, str]:
    """All views of an experiment, each after those that it may use."""
    for name in own:
        if name in of.views:
            raise InputError(
                "a view of the paper has this name",
                file=file,
                key=f"view.{name}",
                allowed=f"a name that is none of {', '.join(of.views)}",
            )
    return {**given, **own, **of.views}


def _steps(base: Mapping[str, Any]) -> dict[str, str]:
    """The view ``steps``, if flows join in steps: the series with the step of each sample.

    A sample covers the interval before it, so the interval's middle decides. Wrong keys are
    reported when the scenario is checked.
    """
    try:
        middle = seconds(base["measure"]["interval"]) / 2
        (every,) = {seconds(group["step"]["every"]) for group in base["traffic"] if "step" in group}
    except (InputError, KeyError, TypeError, ValueError):
        return {}
    since = f"(time_s - {middle:g})"
    step = f"FLOOR({since} / {every:g}) AS step, MOD({since}, {every:g}) AS since_s"
    return {"steps": f"SELECT *, {step} FROM series"}


def _joint(section: Section, experiment: str) -> list[Reading]:
    """A section's readings, with the claims of this experiment that they are judged for."""
    found = []
    for reading in section.readings:
        parts = [claim.partition("/") for claim in reading.claims]
        own = tuple(claim for name, _, claim in parts if name == experiment)
        if own or not reading.claims:
            found.append(msgspec.structs.replace(reading, claims=own))
    return found


def check_names(made: Experiment) -> None:
    """Refuses duplicate names, reserved names, and references to unknown names."""
    readings.check(made.unknowns, made.readings, made.file)
    claims = [claim.id for claim in made.claims]
    for claim in claims:
        if claims.count(claim) > 1:
            raise InputError("two claims have this name", file=made.file, key="claim", value=claim)
    named = [(f"reading.{each.id}.claims", each.claims) for each in made.readings]
    named += [(f"sizes.{each.name}.needs_full", each.needs_full) for each in made.sizes.values()]
    for key, ids in named:
        for claim in ids:
            if claim not in claims:
                raise unknown("claim", claim, claims, file=made.file, key=key)
    there = ["all", STANDARD, *(each.id for each in made.readings)]
    for kind, shown in (("plot", made.plots), ("table", made.sheets)):
        for each in shown:
            if each.reading not in there:
                key = f"{kind}.{each.id}.reading"
                raise unknown("reading", each.reading, there, file=made.file, key=key)
    places = [plot.id for plot in made.plots] + [sheet.id for sheet in made.sheets]
    for name in places:
        if places.count(name) > 1:
            raise InputError(
                "two plots or tables have this name",
                file=made.file,
                key=f"plot.{name}",
                allowed="a unique name, because files are named after it",
            )
    for stated in made.claims:
        _check_shown(stated, made)
    _check_columns(made)


def _check_columns(made: Experiment) -> None:
    """Refuses views and axes whose names the results use already."""
    for name in made.views:
        if name in RESERVED or not name.isidentifier():
            raise InputError(
                "a view cannot have this name",
                file=made.file,
                key=f"view.{name}",
                allowed=f"a word of letters, digits and _, except {', '.join(RESERVED)}",
            )
    for axis in made.axes:
        if axis.name in COLUMNS or axis.name in aggregate.COLUMNS:
            raise InputError(
                "the results have a column of this name",
                file=made.file,
                key=f"sweep.{axis.name}",
                allowed="another name for the axis",
                hint=f'as in {axis.name}_set = {{ key = "…", values = […] }}',
            )
    _check_kept(made)


def _check_kept(made: Experiment) -> None:
    """Refuses readings that keep points of a missing axis, except a section's readings."""
    joint = {each.id for each in made.section.readings} if made.section else set()
    axes = [axis.name for axis in made.axes]
    for each in made.readings:
        for name in each.axes:
            if name not in axes and each.id not in joint:
                key = f"reading.{each.id}.sweep.{name}"
                raise unknown("axis", name, axes, file=made.file, key=key)


def _check_shown(claim: Claim, made: Experiment) -> None:
    """Refuses a claim that refers to a missing plot or panel."""
    plots = {plot.id: plot for plot in made.plots}
    key = f"claim.{claim.id}"
    there = plots if claim.drawn else [*plots, *(sheet.id for sheet in made.sheets)]
    if (claim.plot or claim.drawn) and claim.plot not in there:
        raise unknown("plot", claim.plot, there, file=made.file, key=f"{key}.plot")
    if claim.drawn is None:
        return
    titles = [panel.title for panel in plots[claim.plot].panels]
    if claim.drawn.panel and claim.drawn.panel not in titles:
        name = claim.drawn.panel
        raise unknown("panel", name, titles, file=made.file, key=f"{key}.drawn.panel")


def _size(name: str, table: SizeTable, default: Size, file: str) -> Size:
    seeds = default.seeds
    if table.seeds is not None:
        seeds = as_written(table.seeds, f"sizes.{name}.seeds", file)
    return Size(name, seeds, table.settings, table.axes, table.readings, table.needs_full)


def root() -> Path:
    """The folder of experiments: ``BLUEWATER_EXPERIMENTS``, or else the package's own."""
    return Path(os.environ.get("BLUEWATER_EXPERIMENTS") or PACKAGE / "experiments")


def known() -> dict[str, Path]:
    """Every experiment's file by its name, ``PAPER/NAME``."""
    folder = root()
    files = sorted(
        (path for path in folder.glob("*/*.toml") if path.name != paper.FILE),
        key=lambda path: (path.parent.name, _natural(path)),
    )
    return {f"{path.parent.name}/{path.stem}": path for path in files}


def _natural(path: Path) -> tuple[int, str]:
    digits = "".join(c if c.isdigit() else " " for c in path.stem).split()
    return (int(digits[0]) if digits else 1000, path.stem)


def _covers(several: str, one: str) -> bool:
    """Whether a name covers several figures, such as ``feng/fig6-8``, and ``other`` is one."""
    figure, figures = (
        re.fullmatch(r"(.*fig)(\d+)", one),
        re.fullmatch(r"(.*fig)(\d+)-(\d+)", several),
    )
    if not figure or not figures or figure[1] != figures[1]:
        return False
    return int(figures[2]) <= int(figure[2]) <= int(figures[3])


def load(name: str) -> Experiment:
    """The experiment of this name."""
    files = known()
    if name not in files:
        papers = {known_name.partition("/")[0] for known_name in files}
        wrong = unknown("experiment", name, {*files, *papers})
        if whole := next((each for each in files if _covers(each, name)), None):
            wrong.hint = f"'{whole}' includes it"
        raise wrong
    path = files[name]
    return parse(read_text(path), str(path), name, path.parent)


def of_file(file: str) -> Experiment:
    """Loads a user's experiment; as for :func:`known` ones, its folder is its paper's."""
    path = Path(file)
    folder = path.resolve().parent
    return parse(read_text(path), file, f"{folder.name}/{path.stem}", folder)


def select(name: str | None) -> list[Experiment]:
    """The experiments named by ``PAPER/NAME`` or ``PAPER``; without a name all but the suites.

    A paper is named by its folder or its citation; a name that ends in ``.toml`` is a file.
    """
    if name is not None and name.endswith(".toml"):
        return [of_file(name)]
    if name is None:
        apart = suites()
        return [load(each) for each in known() if each.partition("/")[0] not in apart]
    wanted, slash, rest = name.partition("/")
    name = cited().get(wanted.lower(), wanted) + slash + rest
    names = [each for each in known() if each.partition("/")[0] == name]
    return [load(chosen) for chosen in names] if names else [load(name)]


def suites() -> dict[str, Paper]:
    """The suites of tests by their folders' names."""
    return {folder.name: found for folder, found in _papers().items() if found.suite}


def _papers() -> dict[Path, Paper]:
    return {
        folder: paper.load(folder) for folder in {path.parent: None for path in known().values()}
    }


def cited() -> dict[str, str]:
    """The folder of each paper by its short name in small letters."""
    return {found.cite.lower(): folder.name for folder, found in _papers().items()}
