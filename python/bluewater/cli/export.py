"""``export``: one result in the format of another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bluewater import lab
from bluewater.cli.console import out
from bluewater.cli.group import example
from bluewater.results import flent


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(export)


@example(
    "bluewater export --to my.flent.gz",
    "bluewater export results/runs/3f/3f0c… --to my.flent.gz --queue 'A->B'",
)
def export(
    result: Annotated[
        Path | None,
        typer.Argument(
            help="The folder of a run, as `run` prints it.", show_default="the newest run"
        ),
    ] = None,
    *,
    to: Annotated[Path, typer.Option("--to", help="What to write: a name in .flent.gz.")],
    queue: Annotated[
        str | None, typer.Option(help="Which link, as `A->B`.", show_default="the primary queue")
    ] = None,
) -> None:
    """Write a run for Flent: goodput of each group of flows, backlog, drops and marks over time.

    The run needs `interval` and `groups = true` in `[measure]`. Prints the file's path.
    """
    flent.write(lab.load(result or lab.newest()), to, queue)
    out.print(str(to), soft_wrap=True, markup=False)
