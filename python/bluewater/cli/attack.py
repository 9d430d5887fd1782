"""``attack``: the worst traffic for a queue discipline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bluewater import lab
from bluewater.cli.console import note, out, print_json, show, table
from bluewater.cli.group import FAILED, INTERRUPTED, example
from bluewater.cli.options import (
    Buffer,
    Ecn,
    Fresh,
    Jobs,
    Json,
    On,
    Out,
    Preset,
    SearchSeed,
    Seconds,
    Settings,
    Shared,
    Transport,
)
from bluewater.lab import CORES, DEFAULT_OUT
from bluewater.study.execution.execute import HERE
from bluewater.study.scenarios.scenario import parsed
from bluewater.study.search.attack import MEASURES, Threat
from bluewater.text import measured, other

if TYPE_CHECKING:
    from bluewater.lab import Attack

_MEANT = "; ".join(f"{name} ({meaning})" for name, meaning in MEASURES.items())


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(attack)


@example(
    "bluewater attack red",
    "bluewater attack droptail --min-rto 200ms --load 0.1",
    "bluewater attack fq-codel --measure starve --load 1 --identities 2000",
    "bluewater attack sfb --measure penalty --load 1 --jobs 8",
)
def attack(
    queue: Annotated[
        str,
        typer.Argument(help="A queue discipline, as red or red:max_p=0.2; or python:my.py:Mine."),
    ],
    measure: Annotated[str, typer.Option(help=f"What the damage is: {_MEANT}.")] = "throughput",
    load: Annotated[
        float, typer.Option(help="Mean rate at most, as a share of the link's.")
    ] = Threat.load,
    identities: Annotated[int, typer.Option(help="Spoofed flows at most.")] = Threat.identities,
    peak: Annotated[
        float, typer.Option(help="A burst's rate at most, as a multiple of the link's.")
    ] = Threat.peak,
    duration: Annotated[
        str, typer.Option(help="Length of a run; the attack lasts from the warm-up to its end.")
    ] = Threat.duration,
    warmup: Annotated[str, typer.Option(help="Time before the attack.")] = Threat.warmup,
    rate: Annotated[str, typer.Option(help="Rate of the link.")] = Threat.rate,
    rtt: Annotated[
        list[str] | None,
        typer.Option(
            help="The victims' round-trip time without queueing; repeat it to spread them.",
            show_default=", ".join(Threat.rtt),
        ),
    ] = None,
    flows: Annotated[int, typer.Option(min=1, help="Victims: bulk TCP flows.")] = Threat.flows,
    buffer: Buffer = Threat.buffer,
    transport: Transport = Threat.transport,
    preset: Preset = Threat.preset,
    min_rto: Annotated[
        str, typer.Option(help="The victims' least timeout: RFC 6298 has 1s, Linux 200ms.")
    ] = Threat.min_rto,
    ecn: Ecn = Threat.ecn,
    settings: Settings = None,
    runs: Annotated[int, typer.Option(min=1, help="Attacks to try.")] = 300,
    seconds: Seconds = None,
    seed: SearchSeed = 1,
    reps: Fresh = 5,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the scenario of the attack goes.",
            show_default="attack-QUEUE-MEASURE.toml below --out",
        ),
    ] = None,
    jobs: Jobs = CORES,
    on: On = HERE,
    share: Shared = "",
    out_: Out = DEFAULT_OUT,
    json: Json = False,
) -> None:
    """Search traffic that breaks a queue discipline, within an attacker's budget.

    The attacker varies bursts (period, length, rate), mean rate, spoofed flows and how long each
    lasts, packet lengths, ECN, and for CAKE and WRED the DSCP. Optuna proposes the attacks (`pip
    install 'bluewater[search]'`). The worst is reduced to what 90 % of its damage needs, checked
    with fresh seeds, and compared with a constant rate. Its scenario is written as TOML.

    Runs are kept: the same command continues an interrupted search. Ctrl-C shows the worst attack
    so far. Without `--seconds` the result does not depend on the machine or on `--jobs`.
    """
    threat = Threat(
        rate, tuple(rtt or Threat.rtt), flows, buffer, duration, warmup, transport, ecn,
        settings=parsed(settings or []), preset=preset, min_rto=min_rto, load=load,
        identities=identities, peak=peak,
    )  # fmt: skip
    found = lab.attack(
        queue, threat, measure=measure, runs=runs, seconds=seconds, seed=seed, reps=reps, jobs=jobs,
        on=on, share=share, out=out_,
    )  # fmt: skip
    asked = (threat, runs, seconds, seed, reps)
    suffix = other("" if asked == (Threat(settings={}), 300, None, 1, 5) else repr(asked))
    plain = queue.replace("/", "-").replace(":", "-")
    path = to or out_ / f"attack-{plain}-{measure}{suffix}.toml"
    found.write(path)
    if json:
        print_json(_json(found, path))
    else:
        _show(found)
    note(f"scenario of the attack: {path.resolve()} (decision hash {found.decision_hash})")
    if not found.complete:
        note(f"interrupted after {found.tried} attacks: this one is neither reduced nor checked")
        note("hint: the same command continues from there")
        raise typer.Exit(INTERRUPTED)
    if not found.is_real:
        raise typer.Exit(FAILED)


def _show(found: Attack) -> None:
    scale, unit = (1e3, "ms") if found.measure == "delay" else (100, "%")
    rows = []
    for each in (*found.beside, found.found):
        row = [each.name]
        for what, factor, of in (
            ("load", 100, "%"),
            ("value", scale, unit),
            ("damage", scale, unit),
        ):
            mean = each.mean(what)
            half = mean.half_width
            row.append(measured(factor * mean.mean, None if half is None else factor * half, of))
        rows.append(row)
    columns = ("", "mean rate, share of the link", MEASURES[found.measure], "damage")
    show(table(f"{found.aqm}: {found.threat.title}", columns, rows))
    out.print(f"\nWorst found of {found.tried}: {found.words}.", soft_wrap=True)
    if found.remark:
        out.print(f"{found.remark[0].upper()}{found.remark[1:]}.", soft_wrap=True)
    if found.complete and not found.is_real:
        out.print("The damage is not real: its interval over fresh seeds contains 0.")
    elif found.complete and not found.beats_constant:
        out.print("A constant rate with the whole budget does as much, as far as seeds show.")


def _json(found: Attack, path: Path) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for each in (*found.beside, found.found):
        rows.append({"name": each.name, "moves": None if each.moves is None else vars(each.moves)})
        for what in ("value", "damage", "load"):
            mean = each.mean(what)
            rows[-1][what] = {"mean": mean.mean, "half_width": mean.half_width}
    return {
        "aqm": found.aqm, "measure": found.measure, "words": found.words, "remark": found.remark,
        "attacks": rows, "tried": found.tried, "complete": found.complete, "real": found.is_real,
        "beats_constant": found.beats_constant, "scenario": str(path),
        "decision_hash": found.decision_hash,
    }  # fmt: skip
