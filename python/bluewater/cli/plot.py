"""``plot``: a picture of one result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bluewater.cli.console import out
from bluewater.cli.group import example
from bluewater.results.store import read_result


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(plot)


@example(
    "bluewater plot results/runs/3f/3f0c…",
    "bluewater plot FOLDER --out picture",
    "bluewater shell --rate 10mbit --aqm blue --log run.log -- COMMAND; bluewater plot run.log",
)
def plot(
    result: Annotated[
        Path,
        typer.Argument(help="The folder of a run, as `run` prints it, or a gateway's log."),
    ],
    out_: Annotated[
        Path | None, typer.Option("--out", help="Where to write, without an ending.")
    ] = None,
) -> None:
    """Plot queue length, drops, marks and signals of a run or a gateway over time.

    Writes PNG, SVG and PDF, and the points as CSV; prints their paths.
    """
    from bluewater.plots import log, run  # noqa: PLC0415
    from bluewater.plots.draw import draw  # noqa: PLC0415
    from bluewater.plots.files import save  # noqa: PLC0415

    if result.is_file():
        found = log.read_log(result)
        shown, title, stem = log.panels(found), found.title, result.with_suffix("")
    else:
        made = read_result(result)
        shown, stem = run.panels(made), result / "plot"
        summary = made.summary
        title = f"{summary['aqm']}, seed {summary['seed']}, decision hash {made.decision_hash}"
    figure = draw(title, "trace", run.TIME, shown, min(2, len(shown)), "none")
    for path in save(figure, shown, out_ or stem):
        out.print(str(path), soft_wrap=True, markup=False)
