"""``compare``: queue disciplines side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.table import Table

from bluewater import _core, lab
from bluewater.cli import delays as waits
from bluewater.cli.console import (
    note,
    note_failures,
    out,
    print_json,
    show,
    show_overview,
)
from bluewater.cli.group import FAILED, example
from bluewater.cli.options import (
    Jobs,
    Json,
    On,
    Out,
    PictureFile,
    PictureSize,
    Reps,
    Seeds,
    Settings,
    Shared,
    TableFile,
    check_outputs,
    seeds,
)
from bluewater.lab import CORES, DEFAULT_OUT
from bluewater.progress import notes
from bluewater.results.overview import Overview
from bluewater.study.comparison.compare import FLOWS, Setup
from bluewater.study.comparison.delays import table as delay_table
from bluewater.study.execution.execute import HERE
from bluewater.study.scenarios.scenario import parsed
from bluewater.study.scenarios.tcp import PRESETS, STACKS, TCPS
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from bluewater.lab import Sweep
    from bluewater.results.result import Result


T = TypeVar("T")


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(compare)


@example(
    "bluewater compare red blue droptail --rate 45mbit --rtt 100ms --flows 400",
    "bluewater compare red red:max_p=0.02 red:preset=feng blue --flows 50",
    "bluewater compare blue red --buffer 100kB --no-ecn --duration 60s --reps 5",
    "bluewater compare sfb red --against cbr:10mbit --set queue.0.params.ecn=false",
    "bluewater compare cake fq-codel red --rate 50mbit --transport cubic --preset modern",
    "bluewater compare codel cake dualpi2 --rate 20mbit --flows 4 --transport quinn:cubic",
    "bluewater compare droptail codel --rate 20mbit --flows 10 --delays",
    "bluewater compare red blue --reps 10 --table table.tex --picture figure.pdf --size column",
)
def compare(
    aqms: Annotated[
        list[str],
        typer.Argument(
            help="Queue disciplines; `bluewater list` has them. With its own parameters: "
            "red:max_p=0.2,gentle=true; a class in Python: python:my.py:Mine."
        ),
    ],
    rate: Annotated[str, typer.Option(help="Rate of the bottleneck.")] = "45mbit",
    rtt: Annotated[
        list[str] | None,
        typer.Option(
            help="Round-trip time without queueing; repeat it to spread the flows over several.",
            show_default=str(Setup.rtt),
        ),
    ] = None,
    flows: Annotated[int, typer.Option(min=1, help="Bulk flows.")] = 100,
    buffer: Annotated[str, typer.Option(help="In bytes, packets (100p) or 1.5bdp.")] = "1bdp",
    duration: Annotated[str, typer.Option(help="Length of a run.")] = "30s",
    warmup: Annotated[
        str,
        typer.Option(
            help="Time at the start that the numbers leave out.",
            show_default="a third of the duration",
        ),
    ] = "",
    transport: Annotated[
        str,
        typer.Option(
            help=f"Which TCP: {', '.join(TCPS)}. `sack` is Reno's. `python:FILE:CLASS` is TCP "
            "with your own congestion controller. Or QUIC, as a stack has it: "
            f"{', '.join(STACKS)}, with its controller as in quinn:newreno."
        ),
    ] = "sack",
    preset: Annotated[
        str,
        typer.Option(
            metavar="|".join(PRESETS),
            help="Modern TCP, as in Linux 6.1 (linux) or as the RFCs recommend (modern): an "
            "initial "
            "window of ten, losses detected by time, packets of 1500 bytes.",
        ),
    ] = "",
    ecn: Annotated[bool, typer.Option(help="Connections and queues use ECN.")] = True,
    ecn_timeout: Annotated[
        bool, typer.Option(help="A mark at a window of one packet causes a timeout.")
    ] = False,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND:AMOUNT",
            help=f"Other traffic beside them: cubic:10 for ten flows ({', '.join(FLOWS)}), "
            "cbr:2mbit "
            "for datagrams that ignore congestion, web:20 for 20 web users, call:2 and game:1 for "
            "voice calls of 86 kb/s and games of 72 kb/s.",
        ),
    ] = None,
    delays: waits.Delays = False,
    settings: Settings = None,
    table: TableFile = None,
    picture: PictureFile = None,
    size: PictureSize = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="The seed, or the first of --reps.", show_default="1"),
    ] = None,
    seeds_: Seeds = None,
    reps: Reps = None,
    jobs: Jobs = CORES,
    on: On = HERE,
    share: Shared = "",
    out_: Out = DEFAULT_OUT,
    json: Json = False,
) -> None:
    """Compare queue disciplines on one link: a table, and a picture side by side.

    Without --preset connections are as in the papers: SACK, an initial window of two, packets of
    1000 bytes, one acknowledgement for each. What one takes today is `--transport cubic --preset
    modern`. Disciplines have their defaults, RED its authors' constants and thresholds
    of ours; `--set queue.0.params.preset=feng` shows the BLUE paper's.

    With --reps each number is the mean over seeds with half its 95 % interval. A star marks a
    number that differs from the first discipline's, by the interval of the differences seed by
    seed. The picture shows the first seed. For a paper: `--table table.tex --picture figure.pdf
    --size column`.
    """
    check_outputs(table, picture, size)
    setup = Setup(
        rate, tuple(rtt or Setup().trips), flows, buffer, duration, warmup, transport, ecn,
        ecn_timeout, tuple(against or ()), parsed(settings or []), preset, delays,
    )  # fmt: skip
    many = seeds(seed, seeds_, reps) or (1,)
    found = lab.compare(aqms, setup, seeds=many, jobs=jobs, on=on, share=share, out=out_)
    note_failures(found.failures)
    if not found.tables.entries:
        raise typer.Exit(FAILED)
    one = next(each for each in many if each in {entry.seed for entry in found.tables.entries})
    first = [(str(at["aqm"]), run) for at, run in found.results() if at["seed"] == one]
    asked = "" if (setup, one) == (Setup(), 1) else repr((setup, one))
    chosen = picture or out_ / _stem([name for name, _ in first], asked)
    told = [f"Seed {one}; the table has means over {len(many)} seeds."] if len(many) > 1 else []
    if size is not None and not told:
        told = [f"Seed {one}."]  # a picture for a paper has no title
    drawn = _draw(f"{setup.title}, seed {one}", first, chosen, size, told)
    every = delay_table((str(at["aqm"]), run) for at, run in found.results())
    all_kinds = not every.is_empty() and (delays or not against)
    shown = overview(found, first[0][0])
    if table is not None:
        shown.write(table)
    if json:
        print_json(
            [
                {
                    **run.summary,
                    "throughput_of": _rates(run),
                    "delays_of": _waits(run),
                    "delays": run.delays.to_dicts(),
                    "decision_hash": run.decision_hash,
                }
                for _, run in found.results()
            ]
        )
    else:
        show_overview(shown)
        for more in _beside(found, bool(against), every if all_kinds else None):
            show(more)
        if len(many) > 1:
            note(f"± half the 95 % interval of the mean over {len(many)} seeds")
            note(f"* {shown.starred}")
        out.print(str(drawn.resolve()), soft_wrap=True)
        if all_kinds:
            beside = drawn.with_name(f"{drawn.stem}-delays{picture.suffix if picture else ''}")
            waiting = waits.picture(setup.title, every, beside, size)
            out.print(str(waiting.resolve()), soft_wrap=True)
    if table is not None:
        note(f"table in {table.resolve()}")
    for remark in (*_twice(aqms), *found.remarks, *_presets(aqms, setup)):
        note(f"note: {remark}")
    if found.failures:
        raise typer.Exit(FAILED)


def _beside(found: Sweep, grouped: bool, delays: pl.DataFrame | None) -> Iterator[Table]:
    """Yields the tables by group of flows, and that of delays if they were measured."""
    if grouped:
        yield _by_group(found, "throughput of", _rates, _megabits)
    if delays is not None:
        yield waits.shown(delays)
    elif grouped:
        yield _by_group(found, "delay p50, p99 of", _waits, _median_and_tail)


def _twice(aqms: Sequence[str]) -> list[str]:
    again = [each for each in dict.fromkeys(aqms) if aqms.count(each) > 1]
    return [f"repeated names are run once: {', '.join(again)}"] if again else []


def _presets(aqms: Sequence[str], setup: Setup) -> list[str]:
    """A remark on disciplines with presets: the table shows their defaults."""
    if any(key.startswith("queue.0.params") for key in setup.settings or {}):
        return []
    sets = {
        entry["name"]: ", ".join(each["name"] for each in entry["presets"])
        for entry in _core.catalog()["aqms"]
    }
    found = [f"{aqm} ({sets[aqm]})" for aqm in dict.fromkeys(aqms) if sets.get(aqm)]
    if not found:
        return []
    return [f"these ran with their defaults; they also have presets: {', '.join(found)}"]


def _rates(run: Result) -> dict[str, float]:
    """The total throughput of each group of flows, bit/s."""
    rates: dict[str, float] = {}
    for group, rate in run.flows.select("group", "throughput_bps").iter_rows():
        rates[group] = rates.get(group, 0.0) + rate
    return rates


def _waits(run: Result) -> dict[str, dict[str, float]]:
    """Queueing delay of each group's packets, s; empty if it was not measured."""
    here = run.delays.filter(run.delays["queue"] == run.summary["queue"])
    names = ("delay_p50_s", "delay_p99_s")
    return {row["group"]: {name: row[name] for name in names} for row in here.to_dicts()}


def _megabits(rates: list[float]) -> str:
    return f"{number(fmean(rates) / 1e6)} Mb/s"


def _median_and_tail(waits: list[dict[str, float]]) -> str:
    median, tail = (
        number(1e3 * fmean([each[name] for each in waits]))
        for name in ("delay_p50_s", "delay_p99_s")
    )
    return f"{median}, {tail} ms"


def _by_group(
    found: Sweep, title: str, of: Callable[[Result], dict[str, T]], shown: Callable[[list[T]], str]
) -> Table:
    """A table of one quantity by discipline and group of flows; means over seeds."""
    every: dict[str, dict[str, list[T]]] = {}
    for at, run in found.results():
        for group, value in of(run).items():
            every.setdefault(str(at["aqm"]), {}).setdefault(group, []).append(value)
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column(title, style="cyan", no_wrap=True)
    # A group that delivered nothing has no delay.
    names = list(dict.fromkeys(group for groups in every.values() for group in groups))
    for group in names:
        table.add_column(group, justify="right")
    for aqm, groups in every.items():
        table.add_row(aqm, *(shown(groups[name]) if name in groups else "–" for name in names))
    return table


def _stem(names: list[str], asked: str) -> str:
    from bluewater.plots.run import stem  # noqa: PLC0415 - matplotlib takes long

    return stem(names, asked)


def _draw(
    title: str, first: list[tuple[str, Result]], path: Path, size: str | None, told: list[str]
) -> Path:
    from bluewater.plots.draw import draw  # noqa: PLC0415
    from bluewater.plots.files import save  # noqa: PLC0415
    from bluewater.plots.run import TIME, side_by_side  # noqa: PLC0415

    with notes.status("drawing"):
        # In a column each discipline has a row: its queue, and its signal beside it.
        panels, width = side_by_side(first, 1) if size == "column" else side_by_side(first)
        figure = draw(title, "trace", TIME, panels, width, "none", told, size, narrow=2)
        drawn = [panel for panel in panels if panel is not None]
        if not figure.fits:
            high = f"{figure.get_figheight():.1f}"
            note(f"note: the picture is {high} inches high, too much for a page: name fewer")
        return save(figure, drawn, path)[0]


METRICS = (
    "loss", "mark_rate", "utilisation", "queue_mean_packets", "delay_mean_s", "delay_p95_s",
    "delay_p99_s", "jain",
)  # fmt: skip
"""The columns of the table."""


def overview(found: Sweep, base: str) -> Overview:
    """The table; with several seeds a star marks a number that differs from ``base``."""
    over = found.summary(METRICS)
    decisions: dict[str, set[str]] = {}
    for at, run in found.results():
        decisions.setdefault(str(at["aqm"]), set()).add(run.decision_hash)
    # If the seed changes nothing, an interval of ±0 says nothing.
    apart = {
        (row["aqm"], row["metric"])
        for row in found.differences("aqm", base, METRICS).to_dicts()
        if row["significant"] and len(decisions[row["aqm"]]) > 1
    }
    made = Overview.of(over, ["aqm"], METRICS, stars=apart)
    columns = [replace(made.columns[0], head="discipline"), *made.columns[1:]]
    starred = f"differs from {base}: the 95 % interval of the differences excludes 0"
    return replace(made, columns=columns, starred=starred)
