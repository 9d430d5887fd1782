"""Making, loading and drawing one run."""

from __future__ import annotations

import tomllib
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bluewater import kinds
from bluewater.arguments import FLAG, NUMBER, PATH, TEXT, Argument, checked
from bluewater.errors import InputError
from bluewater.lab.making import CORES, DEFAULT_OUT, SOURCE
from bluewater.results.packets import Packets
from bluewater.results.result import Result
from bluewater.results.store import Store, read_result, run_folder
from bluewater.study.scenarios import scenario
from bluewater.study.scenarios.scenario import Scenario
from bluewater.study.scenarios.seeds import distinct
from bluewater.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from bluewater.study.scenarios.scenario import Source


_PICTURED = Argument((Result, str, PathLike), "a Result, or the folder of one")
_JOURNAL = Argument((Packets, str, PathLike), "a path, or Packets")


@checked(
    source=SOURCE,
    seed=NUMBER,
    out=PATH,
    packets=_JOURNAL,
    share=TEXT,
    resume=FLAG,
    threads=NUMBER,
)
def run(
    source: Source,
    *,
    seed: int | None = None,
    out: Path | str | None = None,
    progress: Callable[[float], object] | None = None,
    packets: Packets | Path | str | None = None,
    share: str = "",
    resume: bool = True,
    threads: int | None = None,
    told: Callable[[str], object] = lambda _: None,
) -> Result:
    """Runs one scenario in this process.

    Args:
        source: A scenario, the path of its file, its TOML text, or a mapping of its keys.
        seed: Replaces the scenario's.
        out: A folder of results: the run is kept there, and used again if it is there.
        progress: Called now and then with the fraction done, 0 to 1.
        packets: A Parquet file, or a selection, for the fate of each packet; makes the run anew.
        share: A shared store of finished runs, as for :func:`sweep`; it needs ``out``.
        resume: Whether to use a kept run; else it is made again.
        threads: On how many the parts of a large network are simulated side by side, at most; no
            more than there are processors. By default several where that saves time. The result
            is the same.
        told: Called with a line that says where the run is kept, and whether it was found there;
            and if it was not divided among ``threads``.

    Raises:
        ScenarioError: The scenario is not valid.
        InputError: The file cannot be read.
    """
    if threads is not None:
        if threads < 1:
            raise InputError("no thread", key="threads", value=threads, allowed="1 or more")
        threads = min(threads, CORES)
    chosen = scenario.of(source, _seeded(seed)).prepared
    journal = Packets(packets) if isinstance(packets, str | PathLike) else packets
    if out is None:
        if share:
            raise InputError(
                "a shared run is also kept in a folder, and none is given",
                key="share",
                value=share,
                hint='give out="results"',
            )
        return chosen.run(progress, journal, threads=threads)
    store, key = Store(Path(out) / "runs", share), chosen.key
    store.prepare()
    if resume:
        store.sync([key])
    else:
        store.remove(key)

    def keep(made: Result) -> None:
        store.write(key, made)
        told(f"kept in {store.path(key)}")

    if key in store and journal is None:
        told(f"kept run found: {store.path(key)}")
    else:
        chosen.run(progress, journal, keep, threads)
        if (threads or 1) > 1 and chosen.threads == 1:
            told("on one thread: this run is not divided among several")
    store.remember(key)
    return store.read(key)


def _seeded(seed: int | None) -> dict[str, int]:
    """The seed as a setting of the scenario; no setting for None."""
    return {} if seed is None else {"seed": distinct([seed], "seed")[0]}


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
    chosen = scenario.of(source, {"place": "testbed", **_seeded(seed)})
    if reason := kinds.KINDS["testbed"].missing():
        raise InputError(f"no run with real packets can be made here: {reason}")
    return chosen.prepared.run()


@checked(folder=PATH)
def load(folder: Path | str) -> Result:
    """Loads a run from its folder, written by :meth:`Result.save` or a command.

    A key of a run, as in the table of a sweep, names its folder in ``results``.

    Raises:
        InputError: The folder holds no run, or a damaged one.
    """
    return read_result(run_folder(Path(folder), DEFAULT_OUT))


def newest(out: Path | str = DEFAULT_OUT) -> Path:
    """The folder of the newest run: the last one that a command made or found.

    Raises:
        InputError: The results hold no run.
    """
    store = Store(Path(out) / "runs")
    key = store.newest()
    if key is None:
        raise InputError(
            "no runs here", file=str(store.root), hint="`bluewater run FILE` makes one"
        )
    return store.path(key)


_SAMPLES = 400
"""Sampling interval of a run that is simulated again to be drawn."""


def with_series(result: Result, told: Callable[[str], object] = lambda _: None) -> Result:
    """The run with its series; simulated again with the same decisions if it kept none.

    ``told`` is then called with a remark.
    """
    table = tomllib.loads(result.scenario)
    simulated = kinds.of(table, "the run").name == "simulator"
    if result.series.height or not simulated or "interval" in table.get("measure", {}):
        return result
    interval = duration_text(result.summary["duration_s"] / _SAMPLES)
    told(f"the run kept no series: simulating it again with interval = {interval} in [measure]")
    table.setdefault("measure", {})["interval"] = interval
    made = Scenario(table, origin="the run").prepared.run()
    if made.decision_hash != result.decision_hash:
        raise InputError(
            "the run kept no series, and simulating it again gives other decisions",
            hint=f"version {result.version} made it: run its scenario again",
        )
    return made


@checked(result=_PICTURED, path=PATH, size=TEXT, queue=TEXT)
def plot(
    result: Result | Path | str,
    path: Path | str | None = None,
    *,
    size: str | None = None,
    queue: str | None = None,
) -> Figure:
    """Draws queue lengths, drops, marks and signals of a run over time.

    A run without a series is simulated again to get one.

    Args:
        result: A run, or the folder of one.
        path: A file that ends in ``.png``, ``.svg``, ``.pdf`` or ``.pgf``; or a name without an
            ending, for PNG and the points as CSV.
        size: For a paper: ``column`` is 3.5 inches wide, ``page`` 7.16; without a title, and with
            the first seven panels in a column.
        queue: The queue to draw, by its link (``A->B``); by default all.
    """
    from bluewater.plots import run as plots  # noqa: PLC0415 - matplotlib takes long
    from bluewater.plots.files import save  # noqa: PLC0415

    found = with_series(load(result) if isinstance(result, Path | str) else result)
    panels = plots.fitting(plots.panels(found, queue), size)
    figure = plots.figure(found, panels, size, queue)
    if path is not None:
        save(figure, panels, Path(path))
    return figure
