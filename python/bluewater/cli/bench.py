"""``bench``: the table of the common workload."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from bluewater import bench as workload
from bluewater import text
from bluewater.cli.console import note, out, print_json
from bluewater.cli.group import example
from bluewater.cli.options import Json
from bluewater.progress import notes
from bluewater.results import host


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(bench)


@example("bluewater bench", "bluewater bench --json --flows 1000 --mode every-hop")
def bench(
    flows: Annotated[list[int] | None, typer.Option(help="Numbers of flows.")] = None,
    mode: Annotated[list[str] | None, typer.Option(help="every-hop or folded.")] = None,
    seconds: Annotated[int, typer.Option(min=1, help="Simulated seconds.")] = 60,
    json: Json = False,
) -> None:
    """Measure instructions, processor time and memory per delivered packet."""
    tool = workload.counter()
    if tool is None:
        note("instructions are not counted: install linux-perf or valgrind")
    else:
        note(f"instructions counted by {tool}, on {host.processor()}")
    rows = []
    for n in flows or workload.FLOWS:
        for each in mode or workload.modes():
            with notes.status(f"{n} flows, {each}"):
                rows.append(workload.measure(n, each, seconds))
    if json:
        print_json([asdict(row) for row in rows])
        return
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for column in ("flows", "mode", "packets", "instructions/packet", "packets/cpu s", "peak MB"):
        table.add_column(column, justify="left" if column == "mode" else "right")
    for row in rows:
        table.add_row(
            str(row.n),
            row.mode,
            f"{row.packets:,}",
            text.number(row.instructions_per_packet, 4),
            f"{row.packets_per_cpu_second:,.0f}",
            text.number(row.peak_rss_mb),
        )
    out.print(table)
