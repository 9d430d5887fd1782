"""``replay``: replays a gateway's recording, or gives its arrivals to another discipline.

Without ``--aqm`` :mod:`bluewater.handover` passes it to the gateway; here it is documented.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bluewater import text
from bluewater.cli.console import note, out, print_json
from bluewater.cli.gateway import become
from bluewater.cli.group import example
from bluewater.cli.options import Json, Settings
from bluewater.cli.run import table, to_json
from bluewater.errors import InputError
from bluewater.files import check
from bluewater.programs import is_recording
from bluewater.results import remarks
from bluewater.results.packets import Packets
from bluewater.study.comparison.replay import LOST, not_recorded, on_length, on_recording


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(replay)


@example(
    "bluewater replay run.arr",
    "bluewater replay run.arr --aqm codel",
    "bluewater replay run.arr --aqm python:my.py:Mine --queue up --to mine.parquet",
)
def replay(
    recording: Annotated[
        Path, typer.Argument(help="The recording, written by the gateway's --record.")
    ],
    aqm: Annotated[
        str | None,
        typer.Option(help="Another discipline: a name, or a class in Python as python:FILE:CLASS."),
    ] = None,
    queue: Annotated[
        str | None, typer.Option(help="up or down; by default the first with arrivals.")
    ] = None,
    settings: Settings = None,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also write the fate of each packet, for `bluewater why`."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run recorded arrivals through the simulator's queue and compare the decisions.

    With `--aqm` another discipline gets the arrivals, on a link of the same rate, delay and buffer;
    `--set queue.0.params.NAME=VALUE` sets its parameters. No run is kept.

    Without `--aqm` the gateway replays its own discipline, with two more options: `--any-buffer`
    accepts a buffer far larger than the recording, which needs much memory; `--packets` prints the
    fate of each packet as JSON.
    """
    if aqm is None:
        also = {"--queue": queue, "--set": settings, "--to": to, "--json": json}
        if given := [name for name, value in also.items() if value]:
            raise InputError(
                f"{given[0]} needs --aqm: it is for another discipline than the recording's",
                hint="add --aqm NAME; `bluewater export RECORDING --to FILE` writes its packets",
            )
        check(recording)
        try:
            reason = "" if is_recording(recording) else "not a recording of a gateway"
        except OSError as error:
            reason = f"cannot read the file: {error.strerror}"
        if reason:
            raise InputError(reason, file=str(recording), hint=not_recorded(recording))
        become("replay", [str(recording)])
        return
    journal = None if to is None else Packets(to)
    result, recorded = on_recording(recording, aqm, queue, settings or [], journal)
    if json:
        print_json({**to_json(result), "recorded": recorded})
    else:
        out.print(table(result))
    for remark in remarks.of_queues(result):
        note(f"note: {remark}")
    arrivals, marks, drops = (f"{recorded[key]:,}" for key in ("arrivals", "marks", "drops"))
    note(
        f"recorded with {recorded['aqm']} at {recorded['queue']}: {marks} marks and {drops} drops "
        f"of {arrivals} arrivals in {text.number(float(recorded['length_s']))} s"
    )
    if remark := on_length(recorded):
        note(f"note: {remark}")
    note(f"note: {LOST}")
