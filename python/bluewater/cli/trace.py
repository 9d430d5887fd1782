"""``trace``: packet captures, measured and generated; rates of links over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from bluewater import rates, text
from bluewater import trace as traces
from bluewater.cli.console import note, out, print_json, table
from bluewater.cli.group import example
from bluewater.cli.options import Json, Out
from bluewater.errors import InputError
from bluewater.files import apart, read_text, write_text, writing
from bluewater.lab import DEFAULT_OUT
from bluewater.progress import of_one
from bluewater.results.remarks import of_capture
from bluewater.units import bits_per_second, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from bluewater.trace import Trace

_SHARES = (0.001, 0.01, 0.1, 0.5)
_LEVELS = (0.25, 0.5, 0.75, 1.0)
_FAR = 0.1
"""A generated load that is off by more than this share gets a note."""
_HELD = 0.01
"""A written mean rate that is off by more than this share gets a note."""
_PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmpv6", 132: "sctp"}


class _MeasureByDefault(TyperGroup):
    """``trace FILE`` is ``trace measure FILE``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, "--help"}:
            args = ["measure", *args]
        return super().parse_args(ctx, args)


def add(app: typer.Typer) -> None:
    """Adds the commands."""
    group = typer.Typer(
        cls=_MeasureByDefault,
        no_args_is_help=True,
        help="Measure a packet capture (`bluewater trace FILE`), or generate one.\n\n"
        "Examples:\n\n`bluewater trace my.pcap --window 1s --window 10s`\n\n"
        "`bluewater trace generate trace.pcapng --load 100mbit`",
    )
    group.command()(measure)
    group.command()(generate)
    group.command()(link)
    group.command()(fetch)
    app.add_typer(group, name="trace")


@example(
    "bluewater trace my.pcapng",
    "bluewater trace my.pcap --window 1s --window 10s --timeout 2s --json",
    "zcat my.pcap.gz | bluewater trace -",
)
def measure(
    file: Annotated[Path, typer.Argument(help="A capture, pcap or pcapng; - reads stdin.")],
    window: Annotated[
        list[str] | None,
        typer.Option(help="Length of a window; repeat it for several.", show_default="1s, 5s, 20s"),
    ] = None,
    timeout: Annotated[
        str, typer.Option(help="A flow ends after this long without a packet.")
    ] = traces.TIMEOUT,
    most_flows: Annotated[
        int,
        typer.Option(min=2, help="Most flows kept apart; beyond, the smallest are merged."),
    ] = traces.MOST_FLOWS,
    out_: Out = DEFAULT_OUT,
    json: Json = False,
) -> None:
    """Show how the bytes of a capture are spread over its flows, and whether that lasts.

    Prints the largest flows' share of all bytes, of each window, and of the next window. Pictures
    like Figs. 3 to 5 of the RED-PD paper, and the tables as Parquet, go into a folder below
    `--out`.
    """
    stdin = str(file) == "-"
    bar, update = of_one(str(file))
    try:
        with bar:
            found = traces.measure(
                None if stdin else file,
                windows=window or traces.WINDOWS,
                timeout=timeout,
                most_flows=most_flows,
                progress=update,
            )
    except InputError as refused:
        refused.name("--window" if refused.key == "windows" else None)
        raise
    if error := found.summary["error"]:
        note(f"{error}; the capture was measured up to there")
    if found.summary["packets"] == 0:
        raise InputError("no IP packets", file=str(file))
    if json:
        print_json(to_json(found))
    else:
        _print(found)
    folder = out_ / f"trace-{'stdin' if stdin else file.stem}"
    for path in _write(found, folder):
        note(str(path))


@example(
    "bluewater trace generate trace.pcapng",
    "bluewater trace generate trace.pcap --load 1gbit --duration 10s --seed 7",
)
def generate(
    file: Annotated[
        Path, typer.Argument(help="The file to write: classic pcap if named .pcap, else pcapng.")
    ],
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 1,
    duration: Annotated[str, typer.Option(help="Length of the trace.")] = "60s",
    load: Annotated[str, typer.Option(help="Average rate of all flows together.")] = "10mbit",
    size_shape: Annotated[
        float, typer.Option(help="Shape of the Pareto distribution of flow sizes.")
    ] = 0.8,
    least: Annotated[int, typer.Option(help="Data of the smallest flow, bytes.")] = 100,
    most: Annotated[int, typer.Option(help="Data of the largest flow, bytes.")] = 100_000_000,
    rate_shape: Annotated[
        float, typer.Option(help="Shape of the Pareto distribution of flow rates.")
    ] = 1.2,
    slowest: Annotated[str, typer.Option(help="Rate of the slowest flow.")] = "100kbit",
    fastest: Annotated[str, typer.Option(help="Rate of the fastest flow.")] = "100mbit",
    ecn: Annotated[float, typer.Option(help="Share of flows that are ECN-capable, 0 to 1.")] = 0.0,
) -> None:
    """Generate a capture of flows with heavy-tailed sizes and rates.

    The same options give the same bytes on every machine. Packets are IPv4 and TCP, headers alone.
    """
    options = {
        "seed": seed,
        "duration": duration,
        "load": load,
        "size_shape": size_shape,
        "least": least,
        "most": most,
        "rate_shape": rate_shape,
        "slowest": slowest,
        "fastest": fastest,
        "ecn": ecn,
    }
    wanted, length = bits_per_second(load, "load"), seconds(duration, "duration")
    bar, update = of_one(str(file))
    with bar:
        packets, size = traces.generate(file, options, update)
    offered = 8 * size / length
    note(f"{packets:,} packets of {size:,} bytes on the wire: {text.rate(offered)}")
    if abs(offered / wanted - 1) > _FAR:
        note(
            f"note: {load} is the mean over many traces; a few large flows dominate one of "
            f"{duration}. "
            "A longer --duration, a smaller --most or another --seed comes closer"
        )
    out.print(str(file), soft_wrap=True, markup=False)


@example(
    "bluewater trace link cellular lte.csv --mean 12mbit --seed 7",
    "bluewater trace link lte.csv lte.mahi",
    "bluewater trace link Verizon-LTE.down lte.csv",
)
def link(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FROM",
            help="A model (cellular, leo, wifi, fade, shared), or a file: CSV, TOML, mahimahi's "
            "lines.",
        ),
    ],
    file: Annotated[
        Path, typer.Argument(metavar="TO", help="The file to write: CSV if named .csv.")
    ],
    form: Annotated[
        str | None,
        typer.Option("--form", help="csv or mahimahi; by default the file's ending decides."),
    ] = None,
    mean: Annotated[str, typer.Option(help="Mean rate of a model.")] = "10mbit",
    length: Annotated[
        str, typer.Option(help="Length of a model's round, after which it repeats.")
    ] = "60s",
    seed: Annotated[int, typer.Option(min=0, help="Seed of a model.")] = 1,
) -> None:
    """Make or convert the rate of a link over time, for `rate_trace` and `--rate-trace`.

    Mahimahi's format has a line for each 1500 bytes that may be sent: the millisecond from the
    start.
    """
    wanted = form or ("csv" if file.suffix == ".csv" else "mahimahi")
    if source in rates.MODELS:
        made = rates.make(source, mean=mean, length=length, seed=seed, form=wanted)
    else:
        apart(file, Path(source))
        made = rates.convert(read_text(Path(source), hint=None), wanted, source)
    write_text(file, made.text)
    note(f"{made.mean_bps / 1e6:.3f} Mb/s in the mean of {made.length_s:g} s")
    asked = bits_per_second(mean, "mean") if source in rates.MODELS else made.mean_bps
    kept = rates.convert(made.text, wanted).mean_bps
    if asked and abs(kept / asked - 1) > _HELD:
        note(f"note: {wanted} cannot hold {text.rate(asked)}: the file has {text.rate(kept)}")
    out.print(str(file), soft_wrap=True, markup=False)


@example("bluewater trace fetch traces.toml verizon --into traces")
def fetch(
    table_: Annotated[
        Path,
        typer.Argument(metavar="TABLE", help="TOML: for each [NAME] its url and sha256."),
    ],
    name: Annotated[str, typer.Argument(help="The trace to fetch, a NAME of the table.")],
    into: Annotated[Path, typer.Option(help="The folder to write into.")] = Path(),
) -> None:
    """Fetch a public trace that your own table names, and verify its checksum.

    Bluewater comes without tables and traces: most public traces have their own licences.
    """
    out.print(str(rates.fetch(table_, name, into)), soft_wrap=True, markup=False)


def to_json(found: Trace) -> dict[str, Any]:
    """A measured capture as stable JSON; the thousand largest of its flows."""
    return {
        "summary": dict(found.summary),
        "windows": found.windows.to_dicts(),
        "skew": found.skew.to_dicts(),
        "persistence": found.persistence.to_dicts(),
        "flows": found.flows.head(1000).to_dicts(),
    }


def _write(found: Trace, folder: Path) -> list[Path]:
    from bluewater.plots.trace import draw_all  # noqa: PLC0415

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for name, frame in found.tables():
            written.append(folder / f"{name}.parquet")
            frame.write_parquet(written[-1])
    return [*written, *draw_all(found, folder)]


def _print(found: Trace) -> None:
    _print_summary(found)
    windows = ["whole", *found.windows["window"]]
    shown = _by_window(
        found.skew,
        ("flow_share", _SHARES),
        windows,
        lambda row: f"{text.percent(row['byte_share'])} / {text.percent(row['packet_share'])}",
    )
    out.print(table("Bytes / packets of the largest flows", ("flows", *windows), shown))
    shown = _by_window(
        found.persistence,
        ("byte_share", _LEVELS),
        windows[1:],
        lambda row: text.percent(row["next_share"]),
    )
    title = "Share of bytes that the largest flows of a window carry in the next"
    out.print(table(title, ("of this window", *windows[1:]), shown))
    rows = [
        (
            f"{row['source']} {row['source_port']}",
            f"{row['destination']} {row['destination_port']}",
            _PROTOCOLS.get(row["protocol"], str(row["protocol"])),
            f"{row['packets']:,}",
            f"{row['bytes']:,}",
            text.percent(row["bytes"] / found.summary["bytes"]),
            text.number(row["last_s"] - row["first_s"]),
        )
        for row in found.flows.head(10).iter_rows(named=True)
    ]
    columns = ("from", "to", "protocol", "packets", "bytes", "share", "lasts (s)")
    out.print(table("Largest flows", columns, rows))


def _by_window(
    frame: pl.DataFrame,
    rows: tuple[str, Sequence[float]],
    windows: Sequence[str],
    cell: Callable[[dict[str, Any]], str],
) -> list[list[str]]:
    """A row for each of the shares wanted, a column for each length of windows."""
    key, wanted = rows
    cells = {(row["window"], round(row[key], 9)): cell(row) for row in frame.iter_rows(named=True)}
    return [
        [text.percent(each), *(cells.get((window, each), "–") for window in windows)]
        for each in wanted
    ]


def _print_summary(found: Trace) -> None:
    summary = found.summary
    out.print(
        f"{summary['flows']:,} flows, {summary['packets']:,} packets, {summary['bytes']:,} bytes "
        f"in {text.number(summary['duration_s'])} s: {text.rate(summary['load_bps'])}"
    )
    for key, what in {
        "not_ip_packets": "packets are not IP, and belong to no flow",
        "unread": "packets have an unknown link layer, and are left out",
        "merged_flows": f"flows were merged, of {summary['merged_largest']:,} bytes at most: "
        "--most-flows tells more apart",
    }.items():
        if summary[key]:
            note(f"{summary[key]:,} {what}")
    silence = (round(1e9 * summary[key]) for key in ("silence_from_s", "silence_s"))
    for told in of_capture(summary["reordered"], summary["oversized"], *silence):
        note(told)
