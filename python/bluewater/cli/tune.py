"""``tune``: the Pareto front of a discipline's parameters."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bluewater import lab
from bluewater.cli.console import note, out, print_json, show, table
from bluewater.cli.group import example
from bluewater.cli.options import (
    Buffer,
    Ecn,
    Fresh,
    Jobs,
    Json,
    On,
    Out,
    PictureFile,
    Preset,
    SearchSeed,
    Seconds,
    Shared,
    Transport,
)
from bluewater.errors import InputError
from bluewater.files import PICTURES, check_ending
from bluewater.lab import CORES, DEFAULT_OUT
from bluewater.progress import notes
from bluewater.results.quantities import quantity
from bluewater.study.advice.boxes import tuned
from bluewater.study.comparison.compare import Setup
from bluewater.study.execution.execute import HERE
from bluewater.text import other, sided

if TYPE_CHECKING:
    from bluewater.lab import Tuning
    from bluewater.lab.tuning import Tuned
    from bluewater.study.scenarios.scenario import Source

_PLACES = {
    "on": "on the front: no point found is better in one objective and worse in none",
    "in": "in the front's intervals: a point is better, but not beyond the intervals over seeds",
    "off": "off the front: a point is better in one objective, beyond the interval, and worse in "
    "none",
}


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(tune)


@example(
    "bluewater tune codel --param target=500us..50ms --param interval",
    "bluewater tune pie --rate 10mbit --rate 100mbit --rtt 20ms --rtt 100ms --flows 2 --flows 20",
    "bluewater tune ared --minimise delay.p99 --minimise loss --maximise utilisation",
    "bluewater tune sfb --scenario home.toml --scenario office.toml --maximise jain --quantile 0.5",
)
def tune(
    queue: Annotated[str, typer.Argument(help="A queue discipline.")],
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=RANGE]",
            help="A parameter to search: target, target=1ms..50ms, ecn=true,false. Repeat it for "
            "several.",
            show_default="each number, from a tenth of its default to ten times it",
        ),
    ] = None,
    minimise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC",
            help="A column of the tables summary and queues to make small; delay.p99 is "
            "delay_p99_s.",
            show_default="delay.p99, if --maximise is not given",
        ),
    ] = None,
    maximise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC",
            help="A column to make large.",
            show_default="utilisation, if --minimise is not given",
        ),
    ] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option(help="Rate of a link; repeat it for several.", show_default="20mbit"),
    ] = None,
    rtt: Annotated[
        list[str] | None,
        typer.Option(
            help="Round-trip time of a link without queueing; repeat it for several.",
            show_default="20ms, 100ms",
        ),
    ] = None,
    flows: Annotated[
        list[int] | None,
        typer.Option(
            min=1, help="Bulk flows of a link; repeat it for several.", show_default="2, 20"
        ),
    ] = None,
    scenario: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="In place of these, a scenario whose first queue gets the discipline; repeat it.",
        ),
    ] = None,
    buffer: Buffer = "1bdp",
    duration: Annotated[str, typer.Option(help="Length of a run.")] = "20s",
    transport: Transport = "cubic",
    preset: Preset = "linux",
    ecn: Ecn = True,
    quantile: Annotated[
        float, typer.Option(help="The link that counts: 1 is the worst, 0.5 the median.")
    ] = 1.0,
    runs: Annotated[int, typer.Option(min=1, help="Sets of parameters to try.")] = 100,
    search_reps: Annotated[int, typer.Option(min=1, help="Seeds for each of them.")] = 2,
    seconds: Seconds = None,
    seed: SearchSeed = 1,
    reps: Fresh = 5,
    picture: PictureFile = None,
    jobs: Jobs = CORES,
    on: On = HERE,
    share: Shared = "",
    out_: Out = DEFAULT_OUT,
    json: Json = False,
) -> None:
    """Search a queue discipline's parameters for several objectives over a range of links.

    The links are all combinations of `--rate`, `--rtt` and `--flows`, or scenarios. Optuna proposes
    parameters (`pip install 'bluewater[search]'`), and the worst link counts. The front is checked
    with fresh seeds, beside the defaults. Where `tc` has words for the parameters, its line stands
    below.

    Runs are kept: the same command continues an interrupted search. Without `--seconds` the result
    does not depend on the machine or on `--jobs`.
    """
    if picture is not None:
        check_ending(picture, PICTURES, "a picture")
    if scenario and (rate or rtt or flows):
        raise InputError("--scenario cannot go with --rate, --rtt and --flows: it has its own link")
    grid = itertools.product(rate or ["20mbit"], rtt or ["20ms", "100ms"], flows or [2, 20])
    links: list[Setup | Source] = [
        Setup(one, trip, count, buffer, duration, transport=transport, ecn=ecn, preset=preset)
        for one, trip, count in grid
    ]
    found = lab.tune(
        queue, [*scenario] if scenario else links, params=param or (), minimise=minimise or (),
        maximise=maximise or (), quantile=quantile, runs=runs, search_reps=search_reps,
        seconds=seconds, seed=seed, reps=reps, jobs=jobs, on=on, share=share, out=out_,
    )  # fmt: skip
    asked = (param, minimise, maximise, scenario or links, quantile, runs, search_reps, seed, reps)
    path = picture or out_ / f"tune-{queue}{other(repr(asked))}"
    with notes.status("drawing"):
        found.write(path)
    if json:
        print_json(_json(found))
    else:
        _show(found)
    note(f"picture: {path.resolve()}{'' if path.suffix else '.png'}")


def _rows(found: Tuning) -> list[tuple[str, Tuned]]:
    return [
        *((str(n), each) for n, each in enumerate(found.front, 1)),
        ("defaults", found.defaults),
    ]


def _show(found: Tuning) -> None:
    shown = [quantity(each.metric) for each in found.objectives]
    names = [each.name for each in found.knobs]
    rows = []
    for name, each in _rows(found):
        cells = []
        for place, what in enumerate(shown):
            mean = each.mean(place)
            cells.append(sided(mean.mean, mean.low, mean.high, what.factor, what.unit))
        rows.append([name, *(str(each.params.get(knob, "–")) for knob in names), *cells])
    links = f"{len(found.links)} links" if len(found.links) > 1 else "one link"
    title = f"{found.aqm}: Pareto front of {len(found.tried)} sets on {links}"
    show(table(title, ("", *names, *(each.head for each in shown)), rows))
    out.print(f"\nThe defaults are {_PLACES[found.place]}.", soft_wrap=True)
    lines = [(name, line) for name, each in _rows(found) if (line := tuned(found.aqm, each.params))]
    if lines:
        out.print("\nFor `tc qdisc`, below a shaper or at a link's own rate:")
    for name, line in lines:
        out.print(f"  {name}: {line}", markup=False, soft_wrap=True, highlight=False)


def _json(found: Tuning) -> dict[str, object]:
    rows = []
    for name, each in _rows(found):
        means = {}
        for place, what in enumerate(found.objectives):
            mean = each.mean(place)
            means[what.metric] = {"mean": mean.mean, "half_width": mean.half_width}
        line = tuned(found.aqm, each.params)
        rows.append({"name": name, "params": dict(each.params), "tc": line or None, **means})
    return {
        "aqm": found.aqm, "links": list(found.links), "defaults": found.place, "front": rows,
        "tried": len(found.tried),
    }  # fmt: skip
