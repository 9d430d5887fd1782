"""One run: made, kept, found again, drawn."""

from __future__ import annotations

import tomllib
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bluewater import kinds
from bluewater.arguments import FLAG, NUMBER, PATH, TEXT, Argument, checked
from bluewater.errors import InputError
from bluewater.lab.making import DEFAULT_OUT, SOURCE
from bluewater.results.packets import Packets
from bluewater.results.result import Result
from bluewater.results.store import Store, read_result
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


@checked(source=SOURCE, seed=NUMBER, out=PATH, packets=_JOURNAL, share=TEXT, resume=FLAG)
def run(
    source: Source,
    *,
    seed: int | None = None,
    out: Path | str | None = None,
    progress: Callable[[float], object] | None = None,
    packets: Packets | Path | str | None = None,
    share: str = "",
    resume: bool = True,
    told: Callable[[str], object] = lambda _: None,
) -> Result:
    """Runs one scenario in this process.

    Args:
        source: A scenario, the path of its file, its TOML text, or a mapping of its keys.
        seed: Replaces the scenario's.
        out: A folder of results: the run is kept there, and used again if it is there.
        progress: Called now and then with the fraction done, 0 to 1.
        packets: A Parquet file for what becomes of each packet, or of some; the run is made anew.
        share: Where it is kept as well, as for :func:`sweep`; with ``out``.
        resume: Whether a run that is kept is used; else it is made again.
        told: Called with a line that says where the run is kept, and whether it was there.

    Raises:
        ScenarioError: The scenario is not valid.
        InputError: The file cannot be read.
    """
    chosen = scenario.of(source, _seeded(seed)).prepared
    journal = Packets(packets) if isinstance(packets, str | PathLike) else packets
    if out is None:
        if share:
            raise InputError(
                "a run is shared from a folder", key="share", value=share, hint='give out="results"'
            )
        return chosen.run(progress, journal)
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
        chosen.run(progress, journal, keep)
    store.remember(key)
    return store.read(key)


def _seeded(seed: int | None) -> dict[str, int]:
    """The setting that a seed is."""
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


_SAMPLES = 400
"""Of a run that is made again to be drawn."""


def with_series(result: Result, told: Callable[[str], object] = lambda _: None) -> Result:
    """A run with its series: where it kept none it is simulated again, which decides the same.

    ``told`` is given a remark where that is so.
    """
    table = tomllib.loads(result.scenario)
    simulated = kinds.of(table, "the run").name == "simulator"
    if result.series.height or not simulated or "interval" in table.get("measure", {}):
        return result
    interval = duration_text(result.summary["duration_s"] / _SAMPLES)
    told(f"the run kept no series: simulated again with interval = {interval} under [measure]")
    table.setdefault("measure", {})["interval"] = interval
    made = Scenario(table, origin="the run").prepared.run()
    if made.decision_hash != result.decision_hash:
        raise InputError(
            "the run kept no series, and simulated again it decides otherwise",
            hint=f"it is of version {result.version}: run its scenario again",
        )
    return made


@checked(result=_PICTURED, path=PATH, size=TEXT)
def plot(
    result: Result | Path | str, path: Path | str | None = None, *, size: str | None = None
) -> Figure:
    """Draws queue lengths, drops, marks and signals of a run over time.

    A run that kept no series is simulated again with one.

    Args:
        result: A run, or the folder of one.
        path: A file that ends in ``.png``, ``.svg``, ``.pdf`` or ``.pgf``; or a name without an
            ending, for PNG and the points as CSV.
        size: For a paper: ``column`` is 3.5 inches wide, ``page`` 7.16; without a title.
    """
    from bluewater.plots import run as plots  # noqa: PLC0415 - matplotlib takes long
    from bluewater.plots.files import save  # noqa: PLC0415

    found = with_series(load(result) if isinstance(result, Path | str) else result)
    panels = plots.panels(found)
    figure = plots.figure(found, panels, size)
    if path is not None:
        save(figure, panels, Path(path))
    return figure
