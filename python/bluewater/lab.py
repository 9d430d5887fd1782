"""The laboratory from Python: what the command line does, with results as objects.

Every function here is ``bluewater.NAME``. Runs are kept in a folder (``out``, ``results`` if not
given) and used again; without one, :func:`run` keeps nothing.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bluewater import kinds
from bluewater.arguments import NAMES, NUMBER, NUMBERS, PATH, TEXT, Kind, checked, with_fields
from bluewater.errors import InputError
from bluewater.progress import of_runs
from bluewater.results import aggregate, remarks
from bluewater.results.overview import Overview
from bluewater.results.packets import Packets
from bluewater.results.result import Result
from bluewater.results.store import Store, read_result, run_key
from bluewater.results.tables import Tables
from bluewater.study import compare as side_by_side
from bluewater.study import experiment, scenario
from bluewater.study.advise import Link, Measured, Ranked, rank
from bluewater.study.advise import scenario as scenario_for
from bluewater.study.boxes import candidates, settings
from bluewater.study.compare import Setup
from bluewater.study.execute import HERE, engine, execute
from bluewater.study.experiment import About, Experiment, Size, distinct
from bluewater.study.reproduce import Plan
from bluewater.study.reproduce import reproduce as make
from bluewater.study.scenario import Scenario
from bluewater.study.sweep import Axis, Point, parse_axes
from bluewater.units import bits_per_second, duration_text, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl
    from matplotlib.figure import Figure

    from bluewater.aqm import Aqm
    from bluewater.results.tables import Entry, Label
    from bluewater.study.reproduce import Outcome
    from bluewater.study.scenario import Source
    from bluewater.study.task import Failure, Task

DEFAULT_OUT = Path("results")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


SOURCE = Kind(
    (Scenario, str, PathLike, Mapping), "a Scenario, a path, TOML text, or a mapping of its keys"
)
PICTURED = Kind((Result, str, PathLike), "a Result, or the folder of one")
_JOURNAL = Kind((Packets, str, PathLike), "a path, or Packets")
_SETUP = Kind((Setup,), 'a Setup; its fields go by name, as in rate="10mbit"')
_LINK = Kind((Link,), 'a Link; its fields go by name, as in rate="10mbit"')
_MAKING = {"jobs": NUMBER, "on": TEXT, "share": TEXT, "out": PATH}
"""Arguments that say where and how many runs are made."""
_ALGORITHM = Kind((str, type), "names, and classes of one's own")


@checked(source=SOURCE, seed=NUMBER, out=PATH, packets=_JOURNAL, share=TEXT)
def run(
    source: Source,
    *,
    seed: int | None = None,
    out: Path | str | None = None,
    progress: Callable[[float], object] | None = None,
    packets: Packets | Path | str | None = None,
    share: str = "",
) -> Result:
    """Runs one scenario in this process.

    Args:
        source: A scenario, the path of its file, its TOML text, or a mapping of its keys.
        seed: Replaces the scenario's.
        out: A folder of results: the run is kept there, and used again if it is there.
        progress: Called now and then with the fraction done, 0 to 1.
        packets: A Parquet file for what becomes of each packet, or of some; the run is made anew.
        share: Where it is kept as well, as for :func:`sweep`; with ``out``.

    Raises:
        ScenarioError: The scenario is not valid.
        InputError: The file cannot be read.
    """
    if out is None:
        if share:
            raise InputError(
                "a run is shared from a folder", key="share", value=share, hint='give out="results"'
            )
        return scenario.run(source, seed=seed, progress=progress, packets=packets)
    chosen = _scenario(source)
    if seed is not None:
        chosen = chosen.with_(seed=distinct([seed], "seed")[0])
    store = Store(Path(out) / "runs", share)
    store.prepare()
    kind = kinds.of(chosen.table, chosen.origin)
    key = run_key(chosen.canonical, kind.version())
    store.sync([key])
    if key not in store or packets is not None:
        store.write(key, scenario.run(chosen, progress=progress, packets=packets))
    store.remember(key)
    return store.read(key)


@checked(source=SOURCE, seed=NUMBER)
def testbed(source: Source, *, seed: int | None = None) -> Result:  # noqa: PT028 - no test
    """Makes a run with real packets: the kernel's TCP through the gateway, on this machine.

    Args:
        source: A scenario that the [testbed](gateway.md#testbed) can make.
        seed: Replaces the scenario's.

    Raises:
        InputError: The testbed cannot do it, or this machine does not allow it.
        ScenarioError: The scenario is not valid.
    """
    chosen = _scenario(source).with_(place="testbed")
    if reason := kinds.KINDS["testbed"].missing():
        raise InputError(f"no run with real packets can be made here: {reason}")
    return scenario.run(chosen, seed=seed)


@dataclass(frozen=True)
class Sweep:
    """Many runs: the cells of a sweep, each for every seed.

    Attributes:
        name: What it is called.
        axes: The names of its axes.
        tables: Its tables, over all runs.
        failures: Runs that could not be made; everything here is of the others.
    """

    name: str
    axes: tuple[str, ...]
    tables: Tables = field(repr=False)
    failures: tuple[Failure, ...] = ()

    @property
    def runs(self) -> pl.DataFrame:
        """A row a run: the axes, ``seed``, then the summary's columns."""
        return self.tables.runs

    def table(self, name: str) -> pl.DataFrame:
        """A table of all runs, such as ``flows`` or ``series``: the axes, ``seed``, its columns."""
        return self.tables.table(name)

    def results(self) -> list[tuple[dict[str, Label], Result]]:
        """Each run with its place: axes and seed."""
        return [
            ({**entry.axes, "seed": entry.seed}, result)
            for entry, result in zip(self.tables.entries, self.tables.results, strict=True)
        ]

    def summary(self, metrics: Sequence[str] | None = None) -> pl.DataFrame:
        """A row a cell and metric: mean over seeds, and ``low`` and ``high`` of its 95 % interval.

        Args:
            metrics: Columns of the summary; all that were measured if not given.
        """
        return aggregate.summarise(self.runs, self._axes, metrics)

    def differences(
        self, axis: str, against: Label, metrics: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Paired differences, seed by seed, to one point of an axis, with intervals and effects.

        Args:
            axis: The axis whose points are compared.
            against: The point that the others are compared with.
            metrics: Columns of the summary; all that were measured if not given.
        """
        return aggregate.differences(self.runs, self._axes, axis, against, metrics)

    @property
    def remarks(self) -> list[str]:
        """What a reader should know: seeds that change nothing, runs that lost everything."""
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
    ) -> Figure:
        """Draws a metric over the cells.

        Args:
            y: A column of the summary; of ``kind="ellipse"`` the vertical one.
            x: An axis; the last numeric one if not given, else the last. Of ``ellipse`` the
                horizontal metric.
            line: The axis, or axes, that have a line for each point; all others if not given. Of
                ``heat`` the vertical axis.
            kind: ``lines`` through means with the 95 % interval as a band, ``heat``, ``box`` and
                ``cdf`` over the runs of each line, ``ellipse`` of one deviation for each line.
            path: Where to write PNG, SVG, PDF and CSV; without an ending.

        Raises:
            InputError: There is no such metric or axis, or ``line`` leaves out an axis: runs of its
                points would be taken for seeds of one cell.
        """
        from bluewater.plots import sweep as plots  # noqa: PLC0415 - matplotlib takes long

        return plots.draw(self, y, x, line, kind, Path(path) if path else None)

    def write(self, folder: Path | str) -> list[Path]:
        """Writes ``runs`` as Parquet and CSV, ``summary.csv``, and every table as Parquet."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / "runs.parquet", folder / "runs.csv", folder / "summary.csv"]
        self.runs.write_parquet(written[0])
        self.runs.write_csv(written[1])
        self.summary().write_csv(written[2])
        kept = [name for name in self.tables.present if not self.tables.known_empty(name)]
        self.tables.read(kept)
        for name in kept:
            if not (table := self.table(name)).is_empty():
                written.append(folder / f"{name}.parquet")
                table.write_parquet(written[-1])
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
        """A row a cell: means over seeds of the metrics that matter most, as texts."""
        return Overview.of(self.summary(), self._axes)

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


_PICTURED = 60
"""Cells up to which a notebook shows a picture: with more, nobody tells the lines apart."""


@checked(size=TEXT, source=SOURCE, seeds=NUMBERS, reps=NUMBER, **_MAKING)
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

    Finished runs are kept: the same call goes on where it was stopped.

    Args:
        source: A scenario, or one with ``[sweep]``.
        axes: Axes beside those of the scenario, as under ``[sweep]``: a dotted key with its values,
            or a name with named variants.
        seeds: The seeds; those of the scenario if not given.
        reps: So many seeds from 1 on, in place of ``seeds``.
        size: One of the file's sizes.
        jobs: Runs made at the same time.
        on: Where the runs are made: ``here``, ``dask`` (processes of this machine),
            ``dask=ADDRESS`` (the cluster of a scheduler), or ``slurm`` (job arrays).
        share: Where finished runs are kept as well and looked for first, for machines that share
            no folder: any address of fsspec, as ``s3://bucket/folder``.
        out: The folder of results.
        progress: Whether a bar is shown, in a terminal or a notebook.

    Raises:
        InputError: The axes or seeds cannot be used.
        ScenarioError: The scenario is not valid.
        Interrupted: Ctrl-C; what was finished is kept.
    """
    engine(on, jobs)  # what is wrong with it is said before anything is planned
    made = _experiment(source, axes)
    chosen = made.size(size)
    if (wanted := _seeds(seeds, reps)) is not None:
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
    return Sweep(made.id, names, Tables(entries, store, made.views), tuple(failures))


def make_all(
    tasks: Sequence[Task],
    store: Store,
    jobs: int,
    title: str,
    progress: bool = True,
    on: str = HERE,
) -> list[Failure]:
    """Makes what the store lacks of some runs, with a bar."""
    held = sum(task.key in store for task in tasks)
    with of_runs(tasks, held, title, progress) as on_progress:
        return execute(tasks, store, jobs, on_progress, on)


@checked(aqms=NAMES, setup=_SETUP, seeds=NUMBERS, reps=NUMBER, **_MAKING)
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
        aqms: Their names, or classes of one's own.
        setup: The link and its load.
        seeds: Each discipline is run for each of them; seed 1 if not given.
        reps: So many seeds from 1 on, in place of ``seeds``.
        jobs: Runs made at the same time.
        on: Where the runs are made, as for :func:`sweep`.
        share: Where they are kept as well, as for :func:`sweep`.
        out: The folder of results.
        progress: Whether a bar is shown.
        keys: Fields of :class:`~bluewater.Setup` that are set: ``rate="10mbit"``.

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
    wanted = _seeds(seeds, reps)
    size = Size("given", (1,) if wanted is None else wanted, {}, {})
    return carry_out(made, size, jobs, Store(Path(out) / "runs", share), progress, on)


@dataclass(frozen=True)
class Advice:
    """The queue disciplines that a box can run, ranked for a link.

    Attributes:
        link: The link.
        ranked: The candidates, the advice first.
        failures: Runs that could not be made; their disciplines are left out.
        results: Each run of the ranked, in their order, with its discipline.
    """

    link: Link
    ranked: tuple[Ranked, ...]
    failures: tuple[Failure, ...] = ()
    results: tuple[tuple[str, Result], ...] = field(default=(), repr=False)

    def write(self, stem: Path | str) -> Path:
        """Draws throughput against delay; gives the PNG of ``stem``, beside SVG, PDF and CSV."""
        from bluewater.plots import advise as plots  # noqa: PLC0415 - matplotlib takes long

        return plots.write(self.ranked, self.link.title, Path(stem))


@checked(link=_LINK, box=TEXT, reps=NUMBER, first_seed=NUMBER, duration=TEXT, **_MAKING)
def advise(
    link: Link | None = None,
    box: str = "linux",
    *,
    reps: int = 5,
    first_seed: int = 1,
    duration: str = "30s",
    jobs: int = CORES,
    on: str = HERE,
    share: str = "",
    out: Path | str = DEFAULT_OUT,
    progress: bool = True,
    **keys: Any,
) -> Advice:
    """Ranks the queue disciplines that a box can run for a link and those who use it.

    Args:
        link: The link.
        box: One of :data:`~bluewater.study.boxes.BOXES`.
        reps: How many seeds, at least 2.
        first_seed: The first of them.
        duration: Length of a run, of which the first third is not counted.
        jobs: Runs made at the same time.
        on: Where the runs are made, as for :func:`sweep`.
        share: Where they are kept as well, as for :func:`sweep`.
        out: The folder of results.
        progress: Whether a bar is shown.
        keys: Fields of :class:`~bluewater.study.advise.Link` that are set: ``rate="10mbit"``.

    Raises:
        InputError: A name or quantity cannot be used.
    """
    if reps < 2:
        raise InputError(
            "no interval without two seeds", key="reps", value=reps, allowed="2 or more"
        )
    chosen = with_fields(link or Link(), keys, "advise()")
    rate = bits_per_second(chosen.rate)
    warmup = duration_text(seconds(duration, "duration") / 3)
    names = candidates(box)
    axes = (Axis("aqm", tuple(Point(name, settings(name, box)) for name in names)),)
    base = scenario_for(chosen, duration, warmup)
    made = Experiment("advise", "advise", chosen.title, About(), base, axes, {}, (), ())
    size = Size("given", tuple(range(first_seed, first_seed + reps)), {}, {})
    found = carry_out(made, size, jobs, Store(Path(out) / "runs", share), progress, on)
    measured: dict[str, list[Measured]] = {}
    for place, result in found.results():
        measured.setdefault(str(place["aqm"]), []).append(Measured.of(result, rate))
    whole = {name: runs for name, runs in measured.items() if len(runs) == reps}
    if whole and all(run.throughput <= 1 for runs in whole.values() for run in runs):
        raise InputError(
            "nothing comes through in this time",
            key="duration",
            value=duration,
            hint="it has to be many round trips",
        )
    ranked = tuple(rank(whole)) if whole else ()
    runs = [(str(place["aqm"]), run) for place, run in found.results()]
    ordered = tuple((each.name, run) for each in ranked for name, run in runs if name == each.name)
    return Advice(chosen, ranked, found.failures, ordered)


def distinct_names(aqms: Sequence[str | type[Aqm]]) -> list[str | type[Aqm]]:
    """The names, each once."""
    return list(dict.fromkeys(aqms))


@checked(name=TEXT, size=TEXT, seeds=NUMBERS, reps=NUMBER, **_MAKING)
def reproduce(
    name: str | None = None,
    *,
    size: str = "full",
    seeds: Sequence[int] | None = None,
    reps: int | None = None,
    jobs: int = CORES,
    on: str = HERE,
    share: str = "",
    out: Path | str = DEFAULT_OUT,
    report: bool = True,
    progress: bool = True,
) -> list[Outcome]:
    """Reproduces a paper's experiments and judges their claims.

    Args:
        name: An experiment (``feng/fig6-8``), a paper (``feng``, ``Feng02``), or all.
        size: ``full``, which is the paper's, or ``quick``.
        seeds: The seeds; those of the experiments if not given.
        reps: So many seeds from 1 on, in place of ``seeds``.
        jobs: Runs made at the same time.
        on: Where the runs are made: ``here``, ``dask`` (processes of this machine),
            ``dask=ADDRESS`` (the cluster of a scheduler), or ``slurm`` (job arrays).
        share: Where finished runs are kept as well and looked for first, for machines that share
            no folder: any address of fsspec, as ``s3://bucket/folder``.
        out: The folder of results.
        report: Whether ``report.html`` is written there.
        progress: Whether a bar is shown.
    """
    engine(on, jobs)
    made = plan(name, size, _seeds(seeds, reps))
    store = Store(Path(out) / "runs", share)
    store.sync(task.key for task in made.tasks)
    held = sum(task.key in store for task in made.tasks)
    with of_runs(made.tasks, held, "starting", progress) as on_progress:
        outcomes = make(made, store, jobs, on_progress, on)
    if report:
        from bluewater.report import write_report  # noqa: PLC0415 - matplotlib takes long

        write_report(outcomes, Path(out), jobs)
    return outcomes


def plan(name: str | None, size: str, seeds: tuple[int, ...] | None) -> Plan:
    """All runs of the experiments that a name means."""
    sized = [(each, each.size(size)) for each in experiment.select(name)]
    if seeds is not None:
        sized = [(each, replace(chosen, seeds=seeds)) for each, chosen in sized]
    return Plan.of(sized)


@checked(folder=PATH)
def load(folder: Path | str) -> Result:
    """The run that is kept in a folder, as :meth:`Result.save` or a command made it.

    Raises:
        InputError: It is none, or damaged.
    """
    return read_result(Path(folder))


def newest(out: Path | str = DEFAULT_OUT) -> Path:
    """The folder of the run that was asked for last; of a sweep its last one.

    Raises:
        InputError: There is none.
    """
    store = Store(Path(out) / "runs")
    key = store.newest()
    if key is None:
        raise InputError(
            "no runs here", file=str(store.root), hint="`bluewater run FILE` makes one"
        )
    return store.path(key)


@checked(result=PICTURED, path=PATH)
def plot(result: Result | Path | str, path: Path | str | None = None) -> Figure:
    """Draws queue lengths, drops, marks and signals of a run over time.

    Args:
        result: A run, or the folder of one.
        path: Where to write PNG, SVG, PDF and CSV; without an ending.

    Raises:
        InputError: The run has no series: its scenario has no ``[measure]`` with an ``interval``.
    """
    from bluewater.plots import run as plots  # noqa: PLC0415 - matplotlib takes long
    from bluewater.plots.files import save  # noqa: PLC0415

    found = load(result) if isinstance(result, Path | str) else result
    panels = plots.panels(found)
    figure = plots.figure(found, panels)
    if path is not None:
        save(figure, panels, Path(path))
    return figure


def _scenario(source: Source) -> Scenario:
    if isinstance(source, Scenario):
        return source
    return Scenario.parse(*scenario.to_text(source))


def _experiment(source: Source, axes: Mapping[str, Any] | None) -> Experiment:
    text, origin = scenario.to_text(source)
    name = "sweep" if origin.startswith("<") else Path(origin).stem
    made = experiment.parse(text, origin, name)
    if axes:
        made = replace(made, axes=(*made.axes, *parse_axes(axes, origin)))
        experiment.check_names(made)
    return made


def _seeds(seeds: Sequence[int] | None, reps: int | None) -> tuple[int, ...] | None:
    if reps is None:
        return None if seeds is None else distinct(list(seeds), "seeds")
    if seeds is not None:
        raise InputError("seeds cannot go with reps", hint="name every seed in seeds")
    if reps < 1:
        raise InputError("no run would be made", key="reps", value=reps, allowed="1 or more")
    return tuple(range(1, reps + 1))
