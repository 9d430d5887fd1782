"""``why``: explains why one packet was sent, marked or dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bluewater.cli.console import out, print_json
from bluewater.cli.group import example
from bluewater.cli.options import Json
from bluewater.results import why as story
from bluewater.units import seconds


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(why)


@example(
    "bluewater run my.toml --packets my.parquet",
    "bluewater why my.parquet 4711",
    "bluewater why my.parquet --flow 3 --at 12.5s --which dropped",
    "bluewater why run.arr 4711 --queue down",
)
def why(
    file: Annotated[
        Path,
        typer.Argument(
            help="A file of packets, written by `run --packets`, or a gateway's recording."
        ),
    ],
    number: Annotated[
        int | None,
        typer.Argument(
            min=0,
            metavar="[N]",
            help="The packet: the number of its arrival at the queue, from 0.",
        ),
    ] = None,
    *,
    queue: Annotated[
        str | None,
        typer.Option(help="The queue's link: `A->B`, `up` or `down`.", show_default="the first"),
    ] = None,
    flow: Annotated[int | None, typer.Option(min=0, help="Only packets of this flow.")] = None,
    seq: Annotated[
        int | None, typer.Option(min=0, help="Only packets with this sequence number.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="Only packets that arrived then or later: 12.5s.")
    ] = None,
    which: Annotated[
        Literal["dropped", "marked", "sent"] | None,
        typer.Option(help="Only packets with this fate."),
    ] = None,
    json: Json = False,
) -> None:
    """Explain why a packet was sent, marked or dropped: queue state, probability, random draw.

    The packet is the Nth arrival, or the first that fits all options. `bluewater explain` says what
    a discipline's signals mean.
    """
    at_s = None if at is None else seconds(at, "at")
    row, facts = story.find(file, number, queue=queue, flow=flow, seq=seq, at_s=at_s, which=which)
    if json:
        print_json(row)
    else:
        out.print(story.tell(row, facts), soft_wrap=True, markup=False, highlight=False)
