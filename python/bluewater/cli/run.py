"""``run``: one scenario."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from bluewater import lab, text
from bluewater.cli.console import note, out, print_json
from bluewater.cli.group import example
from bluewater.cli.options import Json, Out, Resume, Settings
from bluewater.errors import InputError
from bluewater.files import read_stdin, writing
from bluewater.lab import DEFAULT_OUT
from bluewater.progress import of_one
from bluewater.results import remarks
from bluewater.results.packets import Packets
from bluewater.results.result import Result
from bluewater.study.scenarios.scenario import Scenario, parsed, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(run)


@example(
    "bluewater run my.toml",
    "bluewater run my.toml --set queue.0.aqm=blue --set duration=60s --json",
    "bluewater run my.toml --dry-run",
    "bluewater run my.toml --packets my.parquet --packets-time 10s..12s",
)
def run(
    file: Annotated[Path, typer.Argument(help="A scenario as TOML; - reads stdin.")],
    settings: Settings = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Replace the seed.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the scenario, and print it with every default.")
    ] = False,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write the tables as CSV into this folder."),
    ] = None,
    packets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the fate of each packet: Parquet for `bluewater why`, or .pcapng for "
            "Wireshark.",
        ),
    ] = None,
    packets_flows: Annotated[
        str | None, typer.Option(help="Write only packets of these flows, such as 0-3,7.")
    ] = None,
    packets_time: Annotated[
        str | None,
        typer.Option(help="Write only packets that arrive in this span, such as 10s..12.5s."),
    ] = None,
    packets_every: Annotated[int, typer.Option(min=1, help="Write one packet in this many.")] = 1,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Simulate parts of a large network side by side, on up to N threads. By default "
            "several where that saves time.",
        ),
    ] = None,
    out_: Out = DEFAULT_OUT,
    json: Json = False,
    resume: Resume = True,
) -> None:
    """Run one scenario and keep its result.

    A scenario is a network, queues on its links and traffic; `bluewater list` shows the names that
    it can use. With `--dry-run` it is only checked and printed with every default. A kept run is
    shown without simulating it again, unless you add `--packets`.
    """
    if csv is not None and csv.exists() and not csv.is_dir():
        raise InputError("a file, where a folder is needed", file=str(csv), key="--csv")
    journal = _journal(packets, packets_flows, packets_time, packets_every)
    text, origin = (read_stdin(), "<stdin>") if str(file) == "-" else to_text(file)
    changes = parsed(settings or []) | ({} if seed is None else {"seed": seed})
    chosen = Scenario.parse(text, origin, changes)
    if journal is not None:
        _named(lambda: journal.check(chosen.canonical))
    if dry_run:
        print(chosen.canonical, end="")
        return
    bar, update = of_one(origin)
    kept: list[str] = []
    try:
        with bar:
            result = lab.run(
                chosen,
                out=out_,
                progress=update,
                packets=journal,
                resume=resume,
                threads=threads,
                told=kept.append,
            )
        if csv is not None:
            _write_csv(result, csv)
        if packets is not None:
            tells = (
                ""
                if packets.suffix == ".pcapng"
                else f"; `bluewater why {packets} N` explains packet N"
            )
            note(f"packets in {packets}{tells}")
        if json:
            print_json(to_json(result))
        else:
            out.print(table(result))
        for remark in remarks.of_run(result):
            note(f"note: {remark}")
    finally:
        for line in kept:
            note(line)


def _journal(path: Path | None, flows: str | None, time: str | None, every: int) -> Packets | None:
    """The selection of packets to write, checked before the run."""
    if path is None:
        if flows is not None or time is not None or every != 1:
            raise InputError(
                "packets are selected, but no file is named for them", allowed="--packets FILE"
            )
        return None
    chosen = Packets(path, flows, time, every)
    _named(chosen.selection)
    return chosen


def _named(check: Callable[[], object]) -> None:
    """Runs a check of a selection; an error names the option."""
    try:
        check()
    except InputError as error:
        error.name(error.key and f"--packets-{error.key}")
        raise


def _write_csv(result: Result, folder: Path) -> None:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in result.tables():
            table.write_csv(folder / f"{name}.csv")
    note(f"CSV in {folder}")


def to_json(result: Result) -> dict[str, Any]:
    """A run as stable JSON."""
    return {
        "decision_hash": result.decision_hash,
        "version": result.version,
        "summary": dict(result.summary),
        "queues": result.queues.to_dicts(),
        "flows": result.flows.to_dicts(),
        "transfers": result.transfers.to_dicts(),
        "delays": result.delays.to_dicts(),
        "scenario": result.scenario,
    }


def _transfers(result: Result) -> Iterator[tuple[str, str]]:
    for row in result.transfers.iter_rows(named=True):
        if row["completed"]:
            times = map(text.number, (row["time_mean_s"], row["time_p99_s"]))
            told = f"{row['completed']:,} of {row['began']:,} completed, "
            yield f"{row['group']}: {row['kind']}s", told + "mean {}, p99 {} s".format(*times)


def _delays(result: Result) -> Iterator[tuple[str, str]]:
    """Each group's delays as rows; groups may share a name."""
    several = result.queues.height > 1
    for row in result.delays.iter_rows(named=True):
        at = f", {row['queue']}" if several and row["queue"] else ""
        middle, late = map(text.milliseconds, (row["delay_p50_s"], row["delay_p99_s"]))
        yield f"{row['group']}: {row['kind']}{at}", f"p50 {middle}, p99 {late}"


def _stations(result: Result) -> Iterator[tuple[str, str]]:
    """Stations of access points as rows; of many, those with the most airtime."""
    stations = result.stations
    kept = stations
    if stations.height > _MOST_QUEUES:
        kept = stations.top_k(_MOST_QUEUES, by="airtime_s")
        yield "stations", f"{kept.height} of {stations.height}, by airtime"
    several = stations["queue"].n_unique() > 1
    for row in kept.iter_rows(named=True):
        at = f", {row['queue']}" if several else ""
        got, rate = text.rate(row["throughput_bps"]), text.rate(row["rate_bps"])
        share, mean = text.percent(row["airtime_share"]), text.number(row["aggregate_mean"])
        yield (
            f"station {row['station']}{at}",
            f"{got} at {rate}, airtime {share}, {mean} packets an aggregate",
        )


def table(result: Result) -> Table:
    """A table with a column for each managed queue, then the whole run's figures.

    Of many queues it has those with the longest delay.
    """
    made = Table(box=None, show_header=False, padding=(0, 1))
    made.add_column(style="cyan", no_wrap=True)
    kept = result.queues
    if kept.height > _MOST_QUEUES:
        kept = kept.top_k(_FEW_QUEUES, by="delay_p99_s")
    queues = [_queue(row) for row in kept.iter_rows(named=True)]
    for _ in queues:
        made.add_column()
    if len(queues) < result.queues.height:
        made.add_row("queues", f"{len(queues)} of {result.queues.height}, by queueing delay (p99)")
    summary = result.summary
    span, whole = text.number(summary["measured_s"]), text.number(summary["duration_s"])
    for name in queues[0]:
        made.add_row(name, *(queue[name] for queue in queues))
        if name == "queue":
            made.add_row("measured", f"{span} s of {whole} s")
    for name, value in (
        *_stations(result),
        *_transfers(result),
        *_delays(result),
        ("decision hash", result.decision_hash),
        ("took", f"{text.number(summary['wall_s'])} s"),
    ):
        made.add_row(name, value)
    return made


_MOST_QUEUES = 8
"""Queues that have a column each; of more there are ``_FEW_QUEUES``."""
_FEW_QUEUES = 3


def _queue(row: dict[str, Any]) -> dict[str, str]:
    drops = ", ".join(
        f"{row[f'drops_{cause}']:,} {cause}"
        for cause in ("overflow", "early", "penalty", "policed")
        if row[f"drops_{cause}"]
    )
    throughput, packets = text.rate(row["throughput_bps"]), text.number(row["queue_mean_packets"])
    return {
        "queue": f"{row['queue']} ({row['aqm']})",
        "arrivals": f"{row['arrivals']:,}",
        "loss": text.percent(row["loss"]) + (f"  ({drops})" if drops else ""),
        "marked": text.percent(row["mark_rate"]),
        "throughput": f"{throughput}  ({text.percent(row['utilisation'])})",
        "queue length": f"mean {packets}, p99 {text.number(row['queue_p99_packets'])} packets",
        "queueing delay": f"mean {text.milliseconds(row['delay_mean_s'])}, "
        f"p99 {text.milliseconds(row['delay_p99_s'])}",
        "fairness (Jain)": text.number(row["jain"])
        + ("  (fewer than two bulk flows all the time)" if row["jain"] is None else ""),
    }
