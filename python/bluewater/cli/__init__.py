"""The command line, ``bluewater``."""

from __future__ import annotations

from typing import Annotated

import typer

from bluewater import _core
from bluewater.cli import (
    advise,
    attack,
    bench,
    compare,
    doctor,
    explain,
    explore,
    export,
    gateway,
    identify,
    info,
    kernel,
    plot,
    probe,
    replay,
    reproduce,
    run,
    suite,
    sweep,
    trace,
    tune,
    why,
)
from bluewater.cli.console import out
from bluewater.cli.group import Group, take_one_value

app = typer.Typer(
    cls=Group,
    name="bluewater",
    help="A laboratory for active queue management: reproduce papers, compare algorithms, run "
    "scenarios.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(_core.version())
        raise typer.Exit


@app.callback()
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


for module in (
    reproduce,
    suite,
    explore,
    export,
    compare,
    advise,
    tune,
    attack,
    identify,
    probe,
    run,
    why,
    sweep,
    plot,
    info,
    explain,
    trace,
    gateway,
    replay,
    kernel,
    bench,
    doctor,
):
    module.add(app)
take_one_value(app)


def main() -> None:
    """Runs the command line."""
    app()
