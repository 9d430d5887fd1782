"""``advise``: which queue discipline suits a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from bluewater import lab
from bluewater.cli import delays as waits
from bluewater.cli.console import note, out, print_json, show
from bluewater.cli.group import FAILED, example
from bluewater.cli.options import Jobs, Json, On, Out, Shared, TableFile, check_outputs
from bluewater.errors import InputError
from bluewater.lab import CORES, DEFAULT_OUT
from bluewater.progress import notes
from bluewater.results.overview import Column, Mean, Overview
from bluewater.study.advice.advise import FULL, Link, reasons, unmet
from bluewater.study.advice.boxes import (
    BOXES,
    LEFT_OUT,
    around,
    candidates,
    cautious,
    check_interface,
    commands,
    lengths,
    refused,
    shaper,
)
from bluewater.study.comparison.delays import table as delay_table
from bluewater.study.execution.execute import HERE
from bluewater.study.scenarios.tcp import TCPS
from bluewater.text import measured, number, other, sided
from bluewater.units import bits_per_second, duration_text, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from bluewater.results.stats import Estimate
    from bluewater.study.advice.advise import Ranked


_USUAL = ("linux", 5, "30s")
"""Box, seeds, and length of a run."""
_MANY = 2e8
"""From so many packets on, a minute or more of work, a note says so at once."""


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(advise)


@example(
    "bluewater advise --down 50mbit --up 10mbit --bulk 8 --calls 2 --box openwrt",
    "bluewater advise --rate 10mbit --bulk 20 --hostile 5mbit --box linux",
)
def advise(
    rate: Annotated[
        str,
        typer.Option(
            help="Rate of the link in one direction: traffic that leaves by --interface. For a "
            "home line give --down and --up.",
            show_default=Link.rate,
        ),
    ] = "",
    down: Annotated[str, typer.Option(help="Rate of the link towards you (downloads).")] = "",
    up: Annotated[str, typer.Option(help="Rate of the link away from you (uploads).")] = "",
    margin: Annotated[
        float | None,
        typer.Option(
            help="How much less than the link's rate the box shapes to, %; 0 only if no modem, "
            "queue or policer follows.",
            show_default="10 down, else 5; none in a docsis modem",
        ),
    ] = None,
    framing: Annotated[
        str | None,
        typer.Option(
            help="Framing, as `tc cake` writes it: pppoe-ptm, docsis, overhead 44 atm; raw if "
            "nothing is added.",
            show_default="not known",
        ),
    ] = None,
    rtt: Annotated[
        list[str] | None,
        typer.Option(
            help="Round-trip time without queueing; repeat it to spread the flows over several.",
            show_default=" and ".join(Link.rtt),
        ),
    ] = None,
    bulk: Annotated[int, typer.Option(min=1, help="Bulk TCP flows in each direction.")] = 8,
    transport: Annotated[
        str, typer.Option(help=f"Which TCP: {', '.join(TCPS)}. `sack` is Reno's.")
    ] = "cubic",
    calls: Annotated[int, typer.Option(min=0, help="Voice calls of 86 kb/s.")] = 2,
    games: Annotated[int, typer.Option(min=0, help="Games of 72 kb/s.")] = 1,
    hostile: Annotated[
        list[str] | None, typer.Option(help="Rate of a flow that ignores congestion.")
    ] = None,
    ecn: Annotated[bool, typer.Option(help="TCP uses ECN.")] = True,
    buffer: Annotated[str, typer.Option(help="Room of the queue: 1000p, 250kB.")] = "1000p",
    box: Annotated[
        str,
        typer.Option(
            help=f"What runs the queue: {', '.join(BOXES)} (all but {', '.join(LEFT_OUT)}, a lossy "
            "link). `linux` is 6.17 or newer, with DualPI2."
        ),
    ] = _USUAL[0],
    interface: Annotated[str, typer.Option(help="Interface in the printed commands.")] = "eth0",
    duration: Annotated[str, typer.Option(help="Length of a run.")] = _USUAL[2],
    reps: Annotated[int, typer.Option(min=2, help="Seeds.")] = _USUAL[1],
    delays: waits.Delays = False,
    table: TableFile = None,
    jobs: Jobs = CORES,
    on: On = HERE,
    share: Shared = "",
    out_: Out = DEFAULT_OUT,
    json: Json = False,
) -> None:
    """Recommend a queue discipline for a link, with reasons and the commands to type.

    Simulates every discipline that the box can run, at the rates of the printed commands and with
    the same random numbers. It ranks them by throughput and fairness of bulk flows, and by delay
    and loss of calls and games. The sign ~ marks a discipline as good as the first: it is worth
    less by under 0.1, as for a tenth of the throughput or 1 % of loss. A question mark means that
    these seeds cannot tell.
    """
    check_outputs(table, None, None)
    check_interface(interface)
    link = Link(
        _alone(rate, down or up), down, up, margin, framing, tuple(rtt or Link.rtt), bulk,
        transport, calls, games, tuple(hostile or ()), ecn, buffer,
    )  # fmt: skip
    if (packets := _packets(link, box, reps, duration)) > _MANY:
        tenth = duration_text(seconds(duration) / 10)
        note(
            f"note: this simulates about {number(packets / 1e6)} million packets, which may "
            f"take minutes; --duration {tenth} takes a tenth of that"
        )
    advice = lab.advise(
        link, box, reps=reps, duration=duration, jobs=jobs, on=on, share=share, out=out_
    )
    link = advice.link
    for failure in advice.failures:
        note(f"left out: {failure.task.label}: {failure.reason}")
    if not advice.ranked:
        raise typer.Exit(FAILED)
    with notes.status("drawing"):
        asked = (link, box, reps, duration)
        name = "advise" + other("" if asked == (Link(), *_USUAL) else repr(asked))
        pictures = advice.write(out_ / name)
    best = advice.ranked[0]
    why = {way: reasons(ranked, link, way) for way, ranked in advice.ways.items()}
    lack = unmet(advice.ways, link)
    typed = _typed(best.name, link, box, interface)
    _save(_overview(advice.ways, link), table)
    if json:
        told = [line for way in why.values() for line in way]
        found = {"link": link.title, "ranked": _rows(advice.ways), "reasons": told, "unmet": lack}
        print_json(found | typed)
        return
    for way, ranked in advice.ways.items():
        show(_table(ranked, link, way))
    if unclear := sum(each.undecided for each in advice.ranked):
        note(f"note: {unclear} with ?: {reps} seeds cannot place them; try --reps {4 * reps}")
    out.print(f"\nAdvice: [bold]{best.name}[/bold]")
    if lack:
        out.print(f"[bold]But {lack}.[/bold]")
    for way, told in why.items():
        out.print(f"{way.capitalize()}{': ' if way else ''}{'; '.join(told)}.")
    _print_typed(**typed)
    for remark in _remarks(best.name, link, box, interface):
        note(f"note: {remark}")
    measured_delays = delay_table(advice.results)
    if delays:
        out.print()
        show(waits.shown(measured_delays))
    out.print()
    for picture in pictures:
        out.print(str(picture.resolve()), soft_wrap=True)
    if delays:
        beside = out_ / f"{name}-delays"
        drawn = waits.picture(link.title, measured_delays, beside)
        out.print(str(drawn.resolve()), soft_wrap=True)


def _rows(ways: Mapping[str, Sequence[Ranked]]) -> list[dict[str, Any]]:
    return [
        {
            **({"way": way} if way else {}),
            "aqm": each.name,
            "as_good": each.as_good,
            "undecided": each.undecided,
            **vars(each.means),
        }
        for way, ranked in ways.items()
        for each in ranked
    ]


def _packets(link: Link, box: str, reps: int, duration: str) -> float:
    """About how many packets the candidates' runs send in all."""
    rate = sum(bits_per_second(link.shaped(way)) for way in link.ways)
    return rate / (8 * FULL) * seconds(duration, "duration") * reps * len(candidates(box))


def _typed(name: str, link: Link, box: str, interface: str) -> dict[str, Any]:
    """What to type, also if the line carries ATM cells; what to do before; how to undo it."""
    lines = commands(name, link, box, interface)
    cells = commands(name, cautious(link, box), box, interface)
    before, undo = around(lines, link, box, interface)
    cells = [] if cells == lines else cells
    return {"commands": lines, "commands_if_atm": cells, "before": before, "undo": undo}


def _print_typed(
    commands: Sequence[str], commands_if_atm: Sequence[str], before: str, undo: Sequence[str]
) -> None:
    if commands_if_atm:
        _listed("What to type on a line without ATM cells", commands)
        _listed("What to type on ADSL, or if you do not know the line", commands_if_atm)
    else:
        _listed("What to type", commands)
    if undo:
        _listed("To undo it", undo)
        note(f"note: {before}")


_CELLS = (
    "ADSL and some SHDSL lines carry ATM cells, in which 1500 bytes take 1749, and 40 take 106. "
    "This is such a line if the modem's page says ADSL or ATM, or has a VPI. The commands for it "
    "hold on all lines; without cells they cost 13 % of the rate. With --framing there is one "
    "answer, which is simulated: conservative for ADSL, pppoe-ptm for VDSL, docsis for cable, "
    "ethernet for fibre, raw if nothing is added"
)


def _remarks(name: str, link: Link, box: str, interface: str) -> Iterator[str]:
    """What to know of the candidates, and of rates and lengths in the commands."""
    if (safe := cautious(link, box)) != link:
        yield _CELLS
    yield from lengths(name, safe, box, interface)
    if box == "bluewater":
        yield from (f"{left} is no candidate: it {why}" for left, why in LEFT_OUT.items())
    for each in candidates(box):
        if why := refused(each, link, box):
            yield f"{each} is no candidate: {why}"
    below = [
        f"{link.shaped(way)} of {rate} {way}".rstrip()
        for way, rate in link.ways.items()
        if bits_per_second(link.shaped(way)) < bits_per_second(rate)
    ]
    if below and box != "docsis":
        yield (
            f"the commands shape below the link's rate ({', '.join(below)}), so that packets wait "
            "here and not in a modem; without a modem use --margin 0"
        )
    if any(shaper(name, link, way, box)[1] != (link.framing or "") for way in link.ways):
        yield (
            f"the shaper of {name} cannot count PTM's 65 bytes for 64, so the commands give it "
            "64/65 of the rate"
        )
    if len(link.ways) > 1:
        yield "each direction is simulated alone, without the acknowledgements of the other"
    if box != "docsis":
        yield "where the link's rate varies (LTE, satellite), packets also wait in the modem"


def _listed(head: str, lines: Sequence[str]) -> None:
    out.print(f"\n{head}:")
    for line in lines:
        out.print(f"  {line}", markup=False, soft_wrap=True, highlight=False)


def _alone(rate: str, way: str) -> str:
    """The rate of a link with one direction, or the default."""
    if rate and way:
        raise InputError(
            "--rate cannot go with --down or --up: it is that of a link with one direction",
            hint="--down towards you, --up away from you",
        )
    return rate or Link.rate


def _heads(link: Link) -> tuple[str, str]:
    """The heads of delay and loss: of calls and games, or of TCP if there are none."""
    if link.calls or link.games:
        return "delay 99 %, calls, games", "loss of these"
    return "delay 99 %", "loss, TCP"


_UNITS = {"throughput": (1e-6, "Mb/s"), "delay": (1e3, "ms"), "loss": (100, "%"), "jain": (1, "")}
"""For each column the factor to its unit."""


def _overview(ways: Mapping[str, Sequence[Ranked]], link: Link) -> Overview:
    """The ranking as a table for a spreadsheet or a paper."""
    heads = ("throughput", *_heads(link), "Jain")
    units = [unit for _, unit in _UNITS.values()]
    columns = [
        *([Column("way", kind="text")] if len(ways) > 1 else []),
        Column("discipline", kind="text"),
        Column("as good", kind="text"),
        *map(Column, heads, units),
        Column("worth less"),
    ]
    rows = [
        [
            *([way] if len(ways) > 1 else []),
            each.name,
            "?" if each.undecided else "yes" if each.as_good else "no",
            *(_scaled(each.mean(name), factor) for name, (factor, _) in _UNITS.items()),
            _scaled(each.behind, 1) if place else None,
        ]
        for way, ranked in ways.items()
        for place, each in enumerate(ranked)
    ]
    return Overview(columns, rows)


def _save(overview: Overview, table: Path | None) -> None:
    if table is not None:
        overview.write(table)
        note(f"table in {table.resolve()}")


def _scaled(found: Estimate, factor: float) -> Mean:
    return Mean(factor * found.mean, factor * found.low, factor * found.high)


def _table(ranked: Sequence[Ranked], link: Link, way: str) -> Table:
    title = f"{way.capitalize()}: {link.ways[way]}" if way else link.title
    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    for column in ("", "throughput", *_heads(link), "Jain", "worth less"):
        table.add_column(column, justify="left" if not column else "right")
    for place, each in enumerate(ranked):
        sign = "~" if place and each.as_good else "?" if each.undecided else ""
        cells = []
        for name, (scale, unit) in _UNITS.items():
            found = each.mean(name)
            cells.append(sided(found.mean, found.low, found.high, scale, unit))
        behind = measured(each.behind.mean, each.behind.half_width, "") if place else "–"
        table.add_row(each.name + sign, *cells, behind)
    return table
