"""``compare``: queue disciplines side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from bluewater import text
from bluewater.cli.console import note, notes, out, print_json, progress
from bluewater.cli.group import FAILED, example
from bluewater.cli.options import CORES, DEFAULT_OUT, Jobs, Json, Out, store
from bluewater.study.compare import Setup, axis, scenario
from bluewater.study.execute import execute
from bluewater.study.experiment import About, Experiment, Size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bluewater.results.result import Result


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(compare)


@example(
    "bluewater compare red blue droptail --rate 45mbit --rtt 100ms --flows 400",
    "bluewater compare blue red --buffer 100kB --no-ecn --duration 60s",
)
def compare(
    aqms: Annotated[
        list[str], typer.Argument(help="Queue disciplines; `bluewater list` has them.")
    ],
    rate: Annotated[str, typer.Option(help="Rate of the bottleneck.")] = "45mbit",
    rtt: Annotated[str, typer.Option(help="Round-trip time without queueing.")] = "100ms",
    flows: Annotated[int, typer.Option(min=1, help="TCP connections that always have data.")] = 100,
    buffer: Annotated[str, typer.Option(help="In bytes, packets (100p) or 1.5bdp.")] = "1bdp",
    duration: Annotated[str, typer.Option(help="Length of a run.")] = "30s",
    warmup: Annotated[str, typer.Option(help="Left out of the numbers.")] = "10s",
    transport: Annotated[str, typer.Option(help="reno, newreno, sack, cubic or dctcp.")] = "sack",
    ecn: Annotated[bool, typer.Option(help="Connections and queues use ECN.")] = True,
    ecn_timeout: Annotated[
        bool, typer.Option(help="A mark at a window of one packet causes a timeout.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="The seed of every run.")] = 1,
    jobs: Jobs = CORES,
    out_: Out = DEFAULT_OUT,
    json: Json = False,
) -> None:
    """Compare queue disciplines on one link: a table, and a picture side by side."""
    setup = Setup(rate, rtt, flows, buffer, duration, warmup, transport, ecn, ecn_timeout)
    results = _run(setup, aqms, seed, jobs, out_)
    from bluewater.plots.draw import draw  # noqa: PLC0415
    from bluewater.plots.files import save  # noqa: PLC0415
    from bluewater.plots.run import TIME, side_by_side  # noqa: PLC0415

    with notes.status("drawing"):
        title = f"{flows} {transport} flows, {rate}, {rtt} round trip, {buffer} buffer, seed {seed}"
        panels = side_by_side(results)
        figure = draw(title, "trace", TIME, panels, len(results), "row")
        stem = out_ / f"compare-{'-'.join(aqms)}"
        picture = save(figure, panels, stem)[0]
    if json:
        print_json(
            [{**result.summary, "decision_hash": result.decision_hash} for _, result in results]
        )
    else:
        out.print(_table(results))
        out.print(str(picture.resolve()), soft_wrap=True)


def _run(
    setup: Setup, aqms: list[str], seed: int, jobs: int, folder: Any
) -> list[tuple[str, Result]]:
    experiment = Experiment(
        "compare", "compare", "", About(), scenario(setup), (axis(aqms),), {}, (), ()
    )
    plan = experiment.plan(Size("given", (seed,), {}, {}))
    tasks = [task for task, _ in plan]
    runs = store(folder)
    held = sum(task.key in runs for task in tasks)
    with progress(tasks, held, "comparing") as on_progress:
        failures = execute(tasks, runs, jobs, on_progress)
    for failure in failures:
        note(f"failed: {failure.task.label}: {failure.reason}")
    if failures:
        raise typer.Exit(FAILED)
    return [(str(entry.axes["aqm"]), runs.read(entry.key)) for _, entry in plan]


_COLUMNS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "loss": lambda s: text.percent(s["loss"]),
    "marked": lambda s: text.percent(s["mark_rate"]),
    "utilisation": lambda s: text.percent(s["utilisation"]),
    "queue, packets": lambda s: text.number(s["queue_mean_packets"]),
    "delay mean": lambda s: text.milliseconds(s["delay_mean_s"]),
    "p95": lambda s: text.milliseconds(s["delay_p95_s"]),
    "p99": lambda s: text.milliseconds(s["delay_p99_s"]),
    "Jain": lambda s: text.number(s["jain"]),
}


def _table(results: list[tuple[str, Result]]) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("", style="cyan", no_wrap=True)
    for column in _COLUMNS:
        table.add_column(column, justify="right")
    for name, result in results:
        table.add_row(name, *(shown(result.summary) for shown in _COLUMNS.values()))
    return table
