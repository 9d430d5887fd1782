"""``plot``: a picture of one result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bluewater import lab
from bluewater.cli.console import note, out
from bluewater.cli.group import example
from bluewater.cli.options import PictureSize, check_outputs
from bluewater.errors import InputError
from bluewater.files import check
from bluewater.results.store import run_folder


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(plot)


@example(
    "bluewater plot",
    "bluewater plot results/runs/3f/3f0c…",
    "bluewater plot FOLDER --out picture",
    "bluewater plot FOLDER --out figure.pdf --size column",
    "bluewater shell --rate 10mbit --aqm blue --log run.log -- COMMAND; bluewater plot run.log",
)
def plot(
    result: Annotated[
        Path | None,
        typer.Argument(
            help="The folder of a run, as `run` prints it; its key, if it is in results; or a "
            "gateway's log.",
            show_default="the newest run",
        ),
    ] = None,
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="A file that ends in .png, .svg, .pdf or .pgf; a name without an ending, for PNG "
            "and the points as CSV; or a folder.",
        ),
    ] = None,
    size: PictureSize = None,
    queue: Annotated[
        str | None, typer.Option(help="Draw one queue of a run, by its link: A->B.")
    ] = None,
) -> None:
    """Plot queue length, drops, marks and signals of a run or a gateway over time.

    Writes a PNG and the points as CSV; prints their paths. A run that kept no series is simulated
    again with one. With `control = true` under [measure] there are also the window and rate of each
    flow, orange behind phases that send more than is known to fit, blue behind those that send
    less. For a paper: `--out figure.pdf --size column`. That has room for seven panels.
    """
    from bluewater.plots import log, run  # noqa: PLC0415
    from bluewater.plots.draw import draw  # noqa: PLC0415
    from bluewater.plots.files import save  # noqa: PLC0415

    check_outputs(None, None, size)
    result = run_folder(result, lab.DEFAULT_OUT) if result else lab.newest()
    check(result)
    if result.suffix == ".toml":
        raise InputError(
            "a scenario, where the folder of a run is needed",
            file=str(result),
            hint=f"`bluewater run {result}` makes its run and prints the folder; plot that",
        )
    if result.suffix in (".parquet", ".arr"):
        raise InputError(
            "a file of packets, where the folder of a run is needed",
            file=str(result),
            hint=f"`bluewater why {result} N` explains a packet, `bluewater export {result} --to "
            "FILE` converts it",
        )
    if result.is_file():
        if queue is not None:
            raise InputError(
                "a gateway's log has both ways in each panel",
                key="queue",
                value=queue,
                hint="leave it out",
            )
        found = log.read_log(result)
        whole, stem = log.panels(found), result.with_suffix("")
        shown = run.fitting(whole, size)
        in_a_row = min(2, len(shown))
        figure = draw(found.title, "trace", run.TIME, shown, in_a_row, "none", size=size)
    else:
        made = lab.with_series(lab.load(result), note)
        whole, stem = run.panels(made, queue), result / "plot"
        shown = run.fitting(whole, size)
        figure = run.figure(made, shown, size, queue)
        names = made.queues["queue"].to_list()
        if len(shown) < len(whole) and queue is None and len(names) > 1:
            note(f"note: --queue draws one of {', '.join(names)}")
    if len(shown) < len(whole):
        left = ", ".join(panel.title for panel in whole[len(shown) :])
        note(f"note: no room for {left}")
    if out_ is not None:
        stem = out_ / stem.name if out_.is_dir() else out_
    for path in save(figure, shown, stem):
        out.print(str(path), soft_wrap=True, markup=False)
