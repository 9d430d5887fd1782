"""``why``: one packet's story."""

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
        typer.Argument(help="Packets, as `run --packets` writes them, or a gateway's recording."),
    ],
    number: Annotated[
        int | None,
        typer.Argument(
            min=0,
            metavar="[N]",
            help="Which packet: the number of its arrival at the queue, from 0.",
        ),
    ] = None,
    *,
    queue: Annotated[
        str | None,
        typer.Option(help="Which link, as `A->B`, `up`, `down`.", show_default="the first"),
    ] = None,
    flow: Annotated[int | None, typer.Option(min=0, help="Of this flow.")] = None,
    seq: Annotated[int | None, typer.Option(min=0, help="With this sequence number.")] = None,
    at: Annotated[
        str | None, typer.Option(help="The first that arrived then or later: 12.5s.")
    ] = None,
    which: Annotated[
        Literal["dropped", "marked", "sent"] | None, typer.Option(help="What became of it.")
    ] = None,
    json: Json = False,
) -> None:
    """Explain why a packet was sent, marked or dropped: queue state, probability, random draw.

    It is the Nth that arrived, or the first of all that the options leave. What a discipline's
    signals mean says `bluewater explain`.
    """
    at_s = None if at is None else seconds(at, "at")
    row, facts = story.find(file, number, queue=queue, flow=flow, seq=seq, at_s=at_s, which=which)
    if json:
        print_json(row)
    else:
        out.print(story.tell(row, facts), soft_wrap=True, markup=False, highlight=False)
