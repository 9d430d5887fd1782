"""``attack``: the worst traffic for a queue discipline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bluewater import lab
from bluewater.cli.console import note, note_failures, out, print_json, show, table
from bluewater.cli.group import FAILED, INTERRUPTED, example
from bluewater.cli.options import Jobs, Json, On, Out, Settings, Shared
from bluewater.lab import CORES, DEFAULT_OUT
from bluewater.study.execution.execute import HERE
from bluewater.study.scenarios.scenario import parsed
from bluewater.study.scenarios.tcp import TCPS
from bluewater.study.search.attack import MEASURES, Threat
from bluewater.text import measured, other

if TYPE_CHECKING:
    from bluewater.lab import Attack

_SCALES = {"delay": (1e3, "ms")}
"""Factor and unit of a measure; the others are shares, in %."""


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(attack)


@example(
    "bluewater attack red",
    "bluewater attack droptail --min-rto 200ms --load 0.1",
    "bluewater attack fq-codel --measure starve --load 1 --identities 2000",
    "bluewater attack sfb --measure penalty --runs 500 --jobs 8",
)
def attack(
    queue: Annotated[
        str,
        typer.Argument(
            help="A queue discipline; with its own parameters: red:max_p=0.2; a class in Python: "
            "my.py:Mine."
        ),
    ],
    measure: Annotated[
        str,
        typer.Option(
            help="What the damage is: "
            + "; ".join(f"{name} ({meaning})" for name, meaning in MEASURES.items())
            + "."
        ),
    ] = "throughput",
    load: Annotated[
        float, typer.Option(help="The attack's mean rate at most, as a share of the link's.")
    ] = Threat.load,
    identities: Annotated[
        int, typer.Option(help="Flows that the attacker can spoof, all together.")
    ] = Threat.identities,
    duration: Annotated[str, typer.Option(help="Length of the attack.")] = Threat.duration,
    peak: Annotated[
        float, typer.Option(help="Rate of a burst at most, as a multiple of the link's.")
    ] = Threat.peak,
    rate: Annotated[str, typer.Option(help="Rate of the link.")] = Threat.rate,
    rtt: Annotated[
        list[str] | None,
        typer.Option(
            help="The victims' round-trip time without queueing; repeat it to spread them.",
            show_default=", ".join(Threat.rtt),
        ),
    ] = None,
    flows: Annotated[int, typer.Option(help="Victims: bulk TCP flows.")] = Threat.flows,
    buffer: Annotated[
        str, typer.Option(help="In bytes, packets (100p) or 1.5bdp.")
    ] = Threat.buffer,
    transport: Annotated[
        str, typer.Option(help=f"The victims' TCP: {', '.join(TCPS)}. `sack` is Reno's.")
    ] = Threat.transport,
    min_rto: Annotated[
        str,
        typer.Option(
            help="The victims' least retransmission timeout: RFC 6298 has 1s, Linux 200ms."
        ),
    ] = Threat.min_rto,
    ecn: Annotated[bool, typer.Option(help="The victims use ECN.")] = Threat.ecn,
    warmup: Annotated[
        str, typer.Option(help="Time before the attack, in which the victims are alone.")
    ] = Threat.warmup,
    settings: Settings = None,
    runs: Annotated[int, typer.Option(min=1, help="Attacks to try.")] = 300,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Try no more after this time, s.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search and of its runs.")] = 1,
    reps: Annotated[int, typer.Option(min=2, help="Fresh seeds that check the result.")] = 5,
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
        rate, tuple(rtt or Threat.rtt), flows, buffer, transport, min_rto, ecn, warmup, duration,
        load, identities, peak, parsed(settings or []),
    )  # fmt: skip
    found = lab.attack(
        queue, threat, measure=measure, runs=runs, seconds=seconds, seed=seed, reps=reps, jobs=jobs,
        on=on, share=share, out=out_,
    )  # fmt: skip
    asked = (threat, runs, seconds, seed, reps)
    usual = (Threat(), 300, None, 1, 5)
    suffix = other("" if asked == usual else repr(asked))
    plain = queue.replace("/", "-").replace(":", "-")
    path = to or out_ / f"attack-{plain}-{measure}{suffix}.toml"
    found.write(path)
    note_failures(found.failures)
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
    columns = ("", "mean rate, share of the link", MEASURES[found.measure], "damage")
    rows = []
    for each in (*found.beside, found.found):
        value, damage, load = (
            _shown(each.mean(what), *_scale(found.measure if what != "load" else ""))
            for what in ("value", "damage", "load")
        )
        rows.append([each.name, load, value, damage])
    show(table(f"{found.aqm}: {found.threat.title}", columns, rows))
    out.print(f"\nWorst found of {found.tried}: {found.words}.", soft_wrap=True)
    if found.remark:
        out.print(f"{found.remark[0].upper()}{found.remark[1:]}.", soft_wrap=True)
    if found.complete and not found.is_real:
        out.print("The damage is not real: its interval over fresh seeds contains 0.")
    elif found.complete and not found.beats_constant:
        out.print(
            "A constant rate with the whole budget does as much damage, as far as seeds show."
        )


def _scale(measure: str) -> tuple[float, str]:
    return _SCALES.get(measure, (100, "%"))


def _shown(estimate: Any, scale: float, unit: str) -> str:
    half = estimate.half_width
    return measured(scale * estimate.mean, None if half is None else scale * half, unit)


def _json(found: Attack, path: Path) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for each in (*found.beside, found.found):
        rows.append({"name": each.name, "moves": None if each.moves is None else vars(each.moves)})
        for what in ("value", "damage", "load"):
            mean = each.mean(what)
            rows[-1][what] = {"mean": mean.mean, "half_width": mean.half_width}
    return {
        "aqm": found.aqm, "measure": found.measure, "words": found.words, "remark": found.remark,
        "attacks": rows, "tried": found.tried, "complete": found.complete,
        "real": found.is_real, "beats_constant": found.beats_constant,
        "scenario": str(path), "decision_hash": found.decision_hash,
    }  # fmt: skip
