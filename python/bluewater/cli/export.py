"""``export``: one result in the format of another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bluewater import lab
from bluewater.cli.console import out
from bluewater.cli.group import example
from bluewater.errors import InputError
from bluewater.files import apart
from bluewater.results import exports
from bluewater.results.exports import qlog


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(export)


@example(
    "bluewater export --to my.flent.gz",
    "bluewater export results/runs/3f/3f0c… --to my.flent.gz --queue 'A->B'",
    "bluewater export my.parquet --to my.pcapng",
    "bluewater export --packets my.parquet --to my.qlog",
)
def export(
    result: Annotated[
        Path | None,
        typer.Argument(
            help="The folder of a run, as `run` prints it; a file of packets, as `run --packets` "
            "writes it; or a gateway's recording.",
            show_default="the newest run",
        ),
    ] = None,
    *,
    to: Annotated[
        Path, typer.Option("--to", help="The file to write; its ending chooses the format.")
    ],
    queue: Annotated[
        str | None,
        typer.Option(help="Which link, as `A->B`.", show_default="the primary queue, or all"),
    ] = None,
    packets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For `.qlog` of a run: its file of packets, written by `run --packets`.",
        ),
    ] = None,
) -> None:
    """Write a run, or its packets, in the format of another program, and print the file's path.

    Of a run: `.flent.gz` for Flent has throughput of each group of flows, backlog, drops and marks
    over time; it needs `interval` and `groups = true` in `[measure]`. `.speedtest.json` is the
    summary of Cloudflare's speed test; it needs `interval` and `flows = true`. `.qlog` for qvis has
    windows and round trips of the flows if the run has these, with `control = true` all values of
    their congestion controls, and with `--packets` their packets.

    Of packets: `.pcapng` for Wireshark has the fate of each packet as its comment, `.tr` is ns-2's
    trace of one link, `.mahimahi` the log of its mm-link, and `.qlog` says when packets were sent,
    lost and acknowledged. `.parquet` makes a gateway's recording readable by `why`.
    """
    for read in (result, packets):
        if read is not None:
            apart(to, read, key="--to")
    ending = exports.ending(to)
    if packets is not None and ending != qlog.SUFFIX:
        raise InputError(
            "only .qlog of a run takes packets beside it", key="--packets", allowed="--to FILE.qlog"
        )
    if packets is not None:
        qlog.write(lab.load(result or lab.newest()), to, queue, packets)
    elif ending in exports.OF_RUNS and not (
        result and ending in exports.OF_PACKETS and result.is_file()
    ):
        exports.OF_RUNS[ending](lab.load(result or lab.newest()), to, queue)
    elif result is None:
        raise InputError(
            f"{ending} is made from packets, not from a run",
            allowed="`bluewater export PACKETS --to FILE`",
            hint="`bluewater run my.toml --packets my.parquet` writes them",
        )
    else:
        exports.OF_PACKETS[ending](result, to, queue)
    out.print(str(to), soft_wrap=True, markup=False)
