"""``identify``: which queue discipline a path has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bluewater import lab
from bluewater.cli.console import note, out, print_json, show, table
from bluewater.cli.group import example
from bluewater.cli.options import Jobs, Json, SearchSeed
from bluewater.errors import InputError
from bluewater.lab import CORES
from bluewater.lab.identification import recorded
from bluewater.study.identify import recording
from bluewater.text import number
from bluewater.units import seconds

if TYPE_CHECKING:
    from bluewater.study.identify.infer import Answer, Parameter


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(identify)


@example(
    "bluewater identify path.csv",
    "bluewater identify my.toml",
    "bluewater identify my.toml --to path.csv",
    "bluewater identify sent.pcap --arrived arrived.pcap",
)
def identify(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDING",
            help="A CSV file of packets sent and received; or a scenario (.toml), whose first "
            "queue is probed in virtual time; or a packet capture from the sending end.",
        ),
    ],
    arrived: Annotated[
        Path | None,
        typer.Option(metavar="CAPTURE", help="The packet capture from the other end."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the recording of a scenario or of captures; no answer."
        ),
    ] = None,
    seed: SearchSeed = 1,
    jobs: Jobs = CORES,
    json: Json = False,
) -> None:
    """Find the queue discipline of a path from what it did to packets.

    Candidates with many parameters are simulated with the recorded packets and compared with what
    happened to them. The answer is a discipline with its parameters and 95 % intervals, several
    that cannot be told apart, or *unknown*.
    """
    if to is not None:
        if path.suffix != ".toml" and arrived is None:
            raise InputError(
                "--to is for a scenario that is probed, or for captures", key="--to", value=str(to)
            )
        recording.write(recorded(path, arrived), to)
        note(f"recording: {to.resolve()}")
        return
    found = lab.identify(path, arrived=arrived, seed=seed, jobs=jobs)
    if json:
        print_json(_json(found))
    else:
        _show(found)


def _show(found: Answer) -> None:
    names = " or ".join(found.families)
    out.print(f"Queue discipline: [bold]{names or 'unknown'}[/bold]", highlight=False)
    if not found.families:
        out.print(
            f"No candidate explains the recording; the nearest is {found.queue.aqm} (misfit "
            f"{number(found.misfit)}).",
            soft_wrap=True,
        )
    rows = [
        ("rate", f"{number(found.rate / 1e6, 4)} Mb/s", "read off"),
        ("longest time in queue", f"{number(found.longest * 1e3)} ms", "read off"),
        ("delay without queue", f"{number(found.base * 1e3)} ms", "with the clocks' difference"),
        *(
            [("other traffic", f"{number(100 * found.cross)} %", "of what passes under load")]
            if found.cross
            else []
        ),
        *(
            (f"marks on {name.upper()}", f"{number(100 * share)} %", "of packets that arrived")
            for name, share in found.marked.items()
        ),
        *((each.name, *_bounded(each)) for each in found.parameters if found.families),
    ]
    show(table("", ("", "value", "95 % interval"), rows))
    chances = ", ".join(f"{name} {_percent(each)}" for name, each in found.probabilities)
    out.print(f"\nProbabilities among candidates: {chances}; misfit {number(found.misfit)}.",
              soft_wrap=True)  # fmt: skip
    for each in found.remarks:
        out.print(f"Remark: {each}.", soft_wrap=True)


def _bounded(of: Parameter) -> tuple[str, str]:
    """Value and interval; a value that the recording does not bound at all is not shown."""
    if of.low is None and of.high is None:
        return "not known", "any"
    low, high = (_in_ms(each) if each else "any" for each in (of.low, of.high))
    return _in_ms(of.value), f"{low} … {high}"


def _in_ms(value: str) -> str:
    """Times of a table have one unit, whatever scenario files would write."""
    return f"{number(seconds(value) * 1e3)} ms" if value.endswith("s") else value


def _percent(probability: float) -> str:
    return f"{number(100 * probability)} %" if probability >= 1e-3 else "< 0.1 %"


def _json(found: Answer) -> dict[str, Any]:
    return {
        "families": list(found.families), "known": found.known, "misfit": found.misfit,
        "probabilities": dict(found.probabilities), "rate_bps": found.rate, "base_s": found.base,
        "longest_s": found.longest, "cross": found.cross, "marked": found.marked,
        "queue": {"aqm": found.queue.aqm, "buffer": found.queue.buffer,
                  "params": dict(found.queue.params)},
        "parameters": [vars(each) for each in found.parameters],
        "remarks": list(found.remarks),
    }  # fmt: skip
