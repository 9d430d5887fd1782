"""``advise``: which queue discipline suits a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from bluewater import lab
from bluewater.cli import delays as waits
from bluewater.cli.console import note, out, print_json, show
from bluewater.cli.group import FAILED, example
from bluewater.cli.options import Jobs, Json, On, Out, Shared
from bluewater.lab import CORES, DEFAULT_OUT
from bluewater.progress import notes
from bluewater.study.advise import Link, reasons
from bluewater.study.boxes import BOXES, LEFT_OUT, commands
from bluewater.study.delays import table as delay_table
from bluewater.study.execute import HERE
from bluewater.study.tcp import TCPS
from bluewater.text import measured, other, sided

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.study.advise import Ranked


_USUAL = ("linux", 5, "30s")
"""Box, seeds, and length of a run."""


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(advise)


@example(
    "bluewater advise --rate 50mbit --rtt 20ms --rtt 80ms --bulk 8 --calls 2 --box openwrt",
    "bluewater advise --rate 10mbit --bulk 20 --hostile 5mbit --box linux",
)
def advise(
    rate: Annotated[str, typer.Option(help="Rate of the link.")] = "50mbit",
    rtt: Annotated[
        list[str] | None,
        typer.Option(
            help="Round-trip time without queueing; more of them spread the flows.",
            show_default=" and ".join(Link.rtt),
        ),
    ] = None,
    bulk: Annotated[int, typer.Option(min=1, help="TCP flows that always have data.")] = 8,
    transport: Annotated[
        str, typer.Option(help=f"Which TCP: {', '.join(TCPS)}. `sack` is Reno's.")
    ] = "cubic",
    calls: Annotated[int, typer.Option(min=0, help="Voice calls of 86 kb/s.")] = 2,
    games: Annotated[int, typer.Option(min=0, help="Games of 72 kb/s.")] = 1,
    hostile: Annotated[
        list[str] | None, typer.Option(help="Rate of a flow that yields to nothing.")
    ] = None,
    ecn: Annotated[bool, typer.Option(help="TCP uses ECN.")] = True,
    buffer: Annotated[str, typer.Option(help="Room of the queue: 1000p, 250kB.")] = "1000p",
    box: Annotated[
        str,
        typer.Option(
            help=f"What runs it: {', '.join(BOXES)} (all but {', '.join(LEFT_OUT)}, which is none "
            "for a link). `linux` is 6.17 or newer, with DualPI2."
        ),
    ] = _USUAL[0],
    interface: Annotated[str, typer.Option(help="For the lines to type.")] = "eth0",
    duration: Annotated[str, typer.Option(help="Length of a run.")] = _USUAL[2],
    reps: Annotated[int, typer.Option(min=2, help="Seeds.")] = _USUAL[1],
    delays: waits.Delays = False,
    jobs: Jobs = CORES,
    on: On = HERE,
    share: Shared = "",
    out_: Out = DEFAULT_OUT,
    json: Json = False,
) -> None:
    """Say which queue discipline suits a link, why, and what to type for it.

    All that the box can run are simulated on the link with the same random numbers, and ranked by
    throughput, delay and loss of what is interactive, and fairness together. A star says that a
    discipline is as good as the first (worth less by under 0.1: a tenth of the throughput, 1 % of
    loss), a question mark that the seeds cannot tell whether it is worth less.
    """
    link = Link(
        rate, tuple(rtt or Link.rtt), bulk, transport, calls, games, tuple(hostile or ()), ecn,
        buffer,
    )  # fmt: skip
    advice = lab.advise(
        link, box, reps=reps, duration=duration, jobs=jobs, on=on, share=share, out=out_
    )
    for failure in advice.failures:
        note(f"left out: {failure.task.label}: {failure.reason}")
    if not advice.ranked:
        raise typer.Exit(FAILED)
    with notes.status("drawing"):
        asked = (link, box, reps, duration)
        name = "advise" + other("" if asked == (Link(), *_USUAL) else repr(asked))
        picture = advice.write(out_ / name)
    best = advice.ranked[0]
    why, lines = reasons(advice.ranked, link), commands(best.name, link, box, interface)
    if json:
        rows = [
            {
                "aqm": each.name,
                "as_good": each.as_good,
                "undecided": each.undecided,
                **vars(each.means),
            }
            for each in advice.ranked
        ]
        print_json({"link": link.title, "ranked": rows, "reasons": why, "commands": lines})
        return
    show(_table(advice.ranked, link))
    if box == "bluewater":
        for name, why_not in LEFT_OUT.items():
            note(f"note: {name} is left out: it {why_not}")
    if unclear := sum(each.undecided for each in advice.ranked):
        note(f"note: {unclear} with ?: {reps} seeds do not tell; --reps {4 * reps} would tell more")
    out.print(f"\n[bold]{best.name}[/bold]: " + "; ".join(why) + ".")
    out.print("\nWhat to type:")
    for line in lines:
        out.print(f"  {line}", markup=False, soft_wrap=True, highlight=False)
    note(
        f"note: {link.rate} is what the link carries; where a modem behind it has a queue of its "
        "own, type a rate of 90 to 95 %, or packets wait there"
    )
    measured_delays = delay_table(advice.results)
    if delays:
        out.print()
        show(waits.shown(measured_delays))
    out.print(f"\n{picture.resolve()}", soft_wrap=True)
    if delays:
        beside = picture.with_name(f"{picture.stem}-delays")
        drawn = waits.picture(link.title, measured_delays, beside)
        out.print(str(drawn.resolve()), soft_wrap=True)


def _table(ranked: Sequence[Ranked], link: Link) -> Table:
    table = Table(title=link.title, title_justify="left", box=None, header_style="bold")
    live = link.calls or link.games
    concerned = (
        ("delay 99 %, calls, games", "loss of these") if live else ("delay 99 %", "loss, TCP")
    )
    for column in ("", "throughput", *concerned, "Jain", "worth less"):
        table.add_column(column, justify="left" if not column else "right")
    for place, each in enumerate(ranked):
        star = "*" if place and each.as_good else "?" if each.undecided else ""
        parts = [("throughput", 1e-6, "Mb/s"), ("delay", 1e3, "ms"), ("loss", 100, "%")]
        cells = []
        for name, scale, unit in (*parts, ("jain", 1, "")):
            found = each.mean(name)
            cells.append(sided(found.mean, found.low, found.high, scale, unit))
        behind = measured(each.behind.mean, each.behind.half_width, "") if place else "–"
        table.add_row(each.name + star, *cells, behind)
    return table
