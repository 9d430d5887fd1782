"""``plot``: a picture of one result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bluewater.cli.console import out
from bluewater.cli.group import example
from bluewater.store import read_result


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(plot)


@example("bluewater plot results/runs/3f/3f0c…", "bluewater plot FOLDER --out picture")
def plot(
    result: Annotated[Path, typer.Argument(help="The folder of a run, as `run` prints it.")],
    out_: Annotated[
        Path | None, typer.Option("--out", help="Where to write, without an ending.")
    ] = None,
) -> None:
    """Plot queue length, drops, marks and signals of a run over time.

    Writes PNG, SVG and PDF, and the points as CSV; prints their paths.
    """
    from bluewater.plots.draw import draw  # noqa: PLC0415
    from bluewater.plots.files import save  # noqa: PLC0415
    from bluewater.plots.run import TIME, panels  # noqa: PLC0415

    run = read_result(result)
    shown = panels(run)
    title = f"{run.summary['aqm']}, seed {run.summary['seed']}, decision hash {run.decision_hash}"
    figure = draw(title, "trace", TIME, shown, min(2, len(shown)), "none")
    for path in save(figure, shown, out_ or result / "plot"):
        out.print(str(path), soft_wrap=True, markup=False)
