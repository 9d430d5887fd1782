"""Many runs: the cells of a sweep, each for every seed."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import polars as pl

from bluewater.arguments import NAMES, NUMBER, NUMBERS, TEXT, Argument, checked, with_fields
from bluewater.errors import InputError, unknown
from bluewater.files import writing
from bluewater.lab.making import CORES, DEFAULT_OUT, MAKING, SOURCE, chosen_seeds, make_all
from bluewater.results import aggregate, remarks
from bluewater.results.overview import Overview
from bluewater.results.store import Store
from bluewater.results.tables import Tables
from bluewater.study.comparison import compare as side_by_side
from bluewater.study.comparison.compare import Setup
from bluewater.study.execution.execute import HERE, engine
from bluewater.study.experiments import experiment
from bluewater.study.experiments.experiment import About, Experiment, Size
from bluewater.study.scenarios import scenario
from bluewater.study.scenarios.sweep import parse_axes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.figure import Figure

    from bluewater.aqm import Aqm
    from bluewater.results.result import Result
    from bluewater.results.tables import Entry, Label
    from bluewater.study.execution.task import Failure
    from bluewater.study.scenarios.scenario import Source

_SETUP = Argument((Setup,), 'a Setup; its fields go by name, as in rate="10mbit"')
_ALGORITHM = Argument((str, type), "names, and your own classes")


@dataclass(frozen=True)
class Sweep:
    """Many runs: the cells of a sweep, each for every seed.

    Attributes:
        name: Its name.
        axes: The names of its axes.
        tables: Its tables, over all runs.
        failures: Runs that could not be made; every table leaves them out.
        units: The units of the axes that have one.
        queue: The queue whose metrics :attr:`runs` has, as :meth:`at` chose it; empty for the first
            queue of each run.
    """

    name: str
    axes: tuple[str, ...]
    tables: Tables = field(repr=False)
    failures: tuple[Failure, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    queue: str = ""

    @cached_property
    def runs(self) -> pl.DataFrame:
        """The table of runs: the axes, ``seed``, then the summary's columns."""
        return self.tables.at(self.queue) if self.queue else self.tables.runs

    @cached_property
    def queues(self) -> list[str]:
        """The queues of its first run, by their links."""
        first = self.tables.results[:1]
        return [
            name for run in first if "queues" in run.names for name in run.queues["queue"].to_list()
        ]

    def at(self, queue: str) -> Sweep:
        """The same runs with the metrics of another queue, such as ``A->B``.

        Raises:
            InputError: The first run has no such queue.
        """
        if queue not in self.queues:
            raise unknown("queue", queue, self.queues, key="queue")
        return replace(self, queue=queue)

    def table(self, name: str) -> pl.DataFrame:
        """A table of all runs, such as ``flows`` or ``series``: the axes, ``seed``, its columns."""
        return self.tables.table(name)

    def results(self) -> list[tuple[dict[str, Label], Result]]:
        """Yields each run with its values of axes and seed."""
        return [
            ({**entry.axes, "seed": entry.seed}, result)
            for entry, result in zip(self.tables.entries, self.tables.results, strict=True)
        ]

    def summary(self, metrics: Sequence[str] | None = None) -> pl.DataFrame:
        """Means over seeds with the ends of their 95 % intervals: a row per cell and metric.

        Args:
            metrics: Columns of the summary; by default all that were measured.
        """
        return aggregate.summarise(self.runs, self._axes, metrics)

    def differences(
        self, axis: str, against: Label, metrics: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Paired differences, seed by seed, to one point of an axis, with intervals and effects.

        Args:
            axis: The axis whose points are compared.
            against: The point of reference.
            metrics: Columns of the summary; by default all that were measured.
        """
        return aggregate.differences(self.runs, self._axes, axis, against, metrics)

    @property
    def remarks(self) -> list[str]:
        """Warnings about the results: seeds that change nothing, runs that lost every packet."""
        groups: dict[str, list[Result]] = {}
        for entry, result in zip(self.tables.entries, self.tables.results, strict=True):
            place = {**entry.axes, **({"reading": entry.reading} if entry.reading else {})}
            label = ", ".join(f"{name}={value}" for name, value in place.items())
            groups.setdefault(label, []).append(result)
        simulated = [(name, found) for name, found in groups.items() if "queues" in found[0].names]
        own = [
            f"{name}: {told}" if name else told
            for name, found in simulated
            for told in remarks.of_run(found[0])
        ]
        return remarks.of_seeds(simulated) + own

    def plot(
        self,
        y: str,
        x: str | None = None,
        *,
        line: str | Sequence[str] | None = None,
        kind: Literal["lines", "heat", "box", "cdf", "ellipse"] = "lines",
        path: Path | str | None = None,
        size: Literal["column", "page"] | None = None,
    ) -> Figure:
        """Draws a metric over the cells.

        Args:
            y: A column of the summary; for ``kind="ellipse"`` the vertical one.
            x: An axis; by default the last numeric one, or else the last. For ``ellipse`` the
                horizontal metric.
            line: The axis, or axes, with a line for each point; by default all others. For
                ``heat`` the vertical axis.
            kind: ``lines`` draws means with their 95 % intervals as a band, ``heat`` colours the
                cells, ``box`` and ``cdf`` show the runs of each line, ``ellipse`` the 95 %
                confidence region of each line's mean (Hotelling's T²; three runs or more).
            path: A file that ends in ``.png``, ``.svg``, ``.pdf`` or ``.pgf``; or a name without an
                ending, for PNG and the points as CSV.
            size: For a paper: ``column`` is 3.5 inches wide, ``page`` 7.16; without a title.

        Raises:
            InputError: There is no such metric or axis; or ``line`` omits an axis, whose points
                would then count as seeds of one cell.
        """
        from bluewater.plots import sweep as plots  # noqa: PLC0415 - matplotlib takes long

        return plots.draw(self, y, x, line, kind, None if path is None else Path(path), size)

    def write(self, folder: Path | str) -> list[Path]:
        """Writes ``runs`` as Parquet and CSV, ``summary.csv``, and every table as Parquet.

        ``runs`` also has the key of each run, which names its folder, and its decision hash.
        """
        folder = Path(folder)
        with writing(folder):
            return self._write(folder)

    def _write(self, folder: Path) -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / "runs.parquet", folder / "runs.csv", folder / "summary.csv"]
        runs = self.runs.with_columns(
            pl.Series("key", [entry.key for entry in self.tables.entries], pl.String),
            pl.Series("decision_hash", [run.decision_hash for run in self.tables.results]),
        )
        _put(runs.write_parquet, written[0])
        _put(runs.write_csv, written[1])
        _put(self.summary().write_csv, written[2])
        kept = [name for name in self.tables.present if not self.tables.known_empty(name)]
        self.tables.read(kept)
        for name in kept:
            if not (table := self.table(name)).is_empty():
                written.append(folder / f"{name}.parquet")
                _put(table.write_parquet, written[-1])
        return written

    @cached_property
    def _axes(self) -> list[str]:
        reading = ["reading"] if "reading" in self.runs.columns else []
        return [*self.axes, *reading]

    def __repr__(self) -> str:
        count = len(self.tables.entries)
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<Sweep {self.name} over {', '.join(self.axes) or 'seeds'}: {count} runs{failed}>"

    @property
    def overview(self) -> Overview:
        """The most important metrics: a row per cell, means over seeds with intervals.

        ``overview.write("table.tex")`` writes it as LaTeX, ``.md`` as Markdown, ``.csv`` as CSV.
        """
        return Overview.of(self.summary(), self._axes, units=self.units)

    def _repr_html_(self) -> str:
        shown = self.overview
        picture = ""
        if self.axes and 1 < len(shown.rows) <= _PICTURED and "delay_mean_s" in self.runs.columns:
            figure: Any = self.plot("delay_mean_s")
            png = b64encode(figure._repr_png_()).decode()
            picture = (
                f"<img alt='mean delay over {escape(self.axes[-1])}' style='max-width:640px' "
                f"src='data:image/png;base64,{png}'>"
            )
        return f"<div><p>{escape(repr(self))}</p>{picture}{shown.html()}</div>"


def _put(write: Callable[[IO[bytes]], object], path: Path) -> None:
    """Writes a table to a file opened here, because Polars takes only names in UTF-8."""
    with path.open("wb") as file:
        write(file)


_PICTURED = 60
"""Most cells for which a notebook shows a picture; more lines cannot be told apart."""


@checked(size=TEXT, source=SOURCE, seeds=NUMBERS, reps=NUMBER, **MAKING)
def sweep(
    source: Source,
    axes: Mapping[str, Any] | None = None,
    *,
    seeds: Sequence[int] | None = None,
    reps: int | None = None,
    size: str = "full",
    jobs: int = CORES,
    on: str = HERE,
    share: str = "",
    out: Path | str = DEFAULT_OUT,
    progress: bool = True,
) -> Sweep:
    """Runs a scenario at every point of its axes, for every seed.

    Finished runs are kept: the same call continues an interrupted sweep.

    Args:
        source: A scenario, with or without ``[sweep]``.
        axes: Axes beside those of the scenario, as under ``[sweep]``: a dotted key with its values,
            or a name with named variants.
        seeds: The seeds; by default those of the scenario.
        reps: Number of seeds, counting up from 1, in place of ``seeds``.
        size: A size that the file declares.
        jobs: Parallel runs.
        on: Where the runs are made: ``here``, ``dask`` (processes of this machine),
            ``dask=ADDRESS`` (the cluster of a scheduler), or ``slurm`` (job arrays).
        share: A second store of finished runs, searched first, for machines that share no folder:
            any fsspec address, such as ``s3://bucket/folder``.
        out: The folder of results.
        progress: Whether a bar is shown, in a terminal or a notebook.

    Raises:
        InputError: The axes or seeds cannot be used.
        ScenarioError: The scenario is not valid.
        Interrupted: Ctrl-C; what was finished is kept.
    """
    engine(on, jobs)  # reports a wrong engine before the planning, which takes time
    made = _experiment(source, axes)
    chosen = made.size(size)
    if (wanted := chosen_seeds(seeds, reps)) is not None:
        chosen = replace(chosen, seeds=wanted)
    return carry_out(made, chosen, jobs, Store(Path(out) / "runs", share), progress, on)


def carry_out(
    made: Experiment, size: Size, jobs: int, store: Store, progress: bool = True, on: str = HERE
) -> Sweep:
    """Makes the runs of an experiment at a size, without judging anything."""
    plan = made.plan(size)
    store.sync(task.key for task, _ in plan)
    failures = make_all([task for task, _ in plan], store, jobs, made.id, progress, on)
    failed = {failure.task.key for failure in failures}
    entries: list[Entry] = [entry for _, entry in plan if entry.key not in failed]
    if entries:
        store.remember(entries[-1].key)
    names = tuple(axis.name for axis in made.axes)
    units = {axis.name: axis.unit for axis in made.axes if axis.unit}
    return Sweep(made.id, names, Tables(entries, store, made.views), tuple(failures), units)


@checked(aqms=NAMES, setup=_SETUP, seeds=NUMBERS, reps=NUMBER, **MAKING)
def compare(
    aqms: Sequence[str | type[Aqm]],
    setup: Setup | None = None,
    *,
    seeds: Sequence[int] | None = None,
    reps: int | None = None,
    jobs: int = CORES,
    on: str = HERE,
    share: str = "",
    out: Path | str = DEFAULT_OUT,
    progress: bool = True,
    **keys: Any,
) -> Sweep:
    """Runs queue disciplines on one link, with the same random numbers.

    Args:
        aqms: Their names, with parameters if wanted (``"red:max_p=0.2,gentle=true"``), or your own
            classes, as objects or as ``"FILE.py:CLASS"``.
        setup: The link and its load.
        seeds: Each discipline is run for each of them; by default seed 1.
        reps: Number of seeds, counting up from 1, in place of ``seeds``.
        jobs: Parallel runs.
        on: Where the runs are made, as for :func:`sweep`.
        share: A shared store of finished runs, as for :func:`sweep`.
        out: The folder of results.
        progress: Whether a bar is shown.
        keys: Fields of :class:`~bluewater.Setup` to set: ``rate="10mbit"``.

    Raises:
        InputError: A name or quantity cannot be used.
    """
    aqms = list(aqms)
    for each in aqms:
        _ALGORITHM.check("aqms", each, "compare()")
    if not aqms:
        raise InputError("nothing to compare", key="aqms", value=[], allowed="one or more")
    engine(on, jobs)
    chosen = with_fields(setup or Setup(), keys, "compare()")
    axes = (side_by_side.axis(distinct_names(aqms)),)
    made = Experiment(
        "compare", "compare", chosen.title, About(), side_by_side.scenario(chosen), axes, {}, (), ()
    )
    wanted = chosen_seeds(seeds, reps)
    size = Size("given", (1,) if wanted is None else wanted, {}, {})
    try:
        return carry_out(made, size, jobs, Store(Path(out) / "runs", share), progress, on)
    except InputError as error:
        raise side_by_side.as_asked(error, chosen, len(axes[0].points) > 1) from error


def distinct_names(aqms: Sequence[str | type[Aqm]]) -> list[str | type[Aqm]]:
    """The distinct names, in order."""
    return list(dict.fromkeys(aqms))


def _experiment(source: Source, axes: Mapping[str, Any] | None) -> Experiment:
    text, origin = scenario.to_text(source)
    name = "sweep" if origin.startswith("<") else Path(origin).stem
    made = experiment.parse(text, origin, name)
    if axes:
        made = replace(made, axes=(*made.axes, *parse_axes(axes, origin)))
        experiment.check_names(made)
    return made
