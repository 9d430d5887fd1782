"""``plot``: a picture of one result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bluewater import lab
from bluewater.cli.console import out
from bluewater.cli.group import example
from bluewater.errors import InputError
from bluewater.files import check


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(plot)


@example(
    "bluewater plot",
    "bluewater plot results/runs/3f/3f0c…",
    "bluewater plot FOLDER --out picture",
    "bluewater shell --rate 10mbit --aqm blue --log run.log -- COMMAND; bluewater plot run.log",
)
def plot(
    result: Annotated[
        Path | None,
        typer.Argument(
            help="The folder of a run, as `run` prints it, or a gateway's log.",
            show_default="the newest run",
        ),
    ] = None,
    out_: Annotated[
        Path | None, typer.Option("--out", help="Where to write, without an ending, or a folder.")
    ] = None,
) -> None:
    """Plot queue length, drops, marks and signals of a run or a gateway over time.

    Writes PNG, SVG and PDF, and the points as CSV; prints their paths.
    """
    from bluewater.plots import log, run  # noqa: PLC0415
    from bluewater.plots.draw import draw  # noqa: PLC0415
    from bluewater.plots.files import save  # noqa: PLC0415

    result = result or lab.newest()
    check(result)
    if result.suffix == ".toml":
        raise InputError(
            "a scenario, and no result",
            file=str(result),
            hint=f"`bluewater run {result}` prints the folder of its run, which is plotted",
        )
    if result.is_file():
        found = log.read_log(result)
        shown, stem = log.panels(found), result.with_suffix("")
        figure = draw(found.title, "trace", run.TIME, shown, min(2, len(shown)), "none")
    else:
        made = lab.load(result)
        shown, stem = run.panels(made), result / "plot"
        figure = run.figure(made, shown)
    if out_ is not None:
        stem = out_ / stem.name if out_.is_dir() else out_
    for path in save(figure, shown, stem):
        out.print(str(path), soft_wrap=True, markup=False)
