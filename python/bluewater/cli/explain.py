"""``explain``: a queue discipline's rule, parameters, signals and state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bluewater import _core
from bluewater.cli.console import escaped, note, out, print_json, table
from bluewater.cli.group import example
from bluewater.cli.options import Json
from bluewater.errors import InputError, unknown
from bluewater.lab import DEFAULT_OUT
from bluewater.own import LANGUAGE
from bluewater.own import entry as own_entry
from bluewater.text import percent

if TYPE_CHECKING:
    from collections.abc import Collection

_WITH_BINS = ("sfb", "sfred")
"""Queue disciplines with bins, for which `explain` advises on their number."""

_DRAWN_LEVELS = 9
"""Most levels in the picture, as in Feng02 Fig. 17."""


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(explain)


@example(
    "bluewater explain blue",
    "bluewater explain red --json",
    "bluewater explain sfb --bins 46 --nonresponsive 8",
)
def explain(
    aqm: Annotated[
        str, typer.Argument(help="A queue discipline, such as blue, or python:FILE:CLASS.")
    ],
    buffer: Annotated[
        str, typer.Option(help="Buffer for which its memory is counted: 100p or 200kB.")
    ] = "100p",
    bins: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, help="Total number of bins, for advice on sfb."),
    ] = None,
    nonresponsive: Annotated[
        int | None,
        typer.Option(min=0, max=1_000_000, help="Expected nonresponsive flows, for advice on sfb."),
    ] = None,
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out", help=f"Folder for the picture of that advice. [default: {DEFAULT_OUT}]"
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Explain a queue discipline: parameters, presets, signals, and its memory.

    With --bins and --nonresponsive it advises how many levels sfb should have. It draws the
    probability that sfb misclassifies a flow, for up to nine levels, as PNG, SVG, PDF and CSV;
    with --json only if --out names a folder.
    """
    catalog = _core.catalog()
    disciplines = {entry["name"]: entry for entry in catalog["aqms"]}
    entries = {entry["name"]: entry for entry in catalog["filters"]} | disciplines
    if aqm.startswith(LANGUAGE) or ".py" in aqm:
        entries[aqm] = own_entry(aqm)
    if aqm not in entries:
        having = [
            name
            for name, entry in entries.items()
            if aqm in {each["name"] for each in (*entry["parameters"], *entry["signals"])}
        ]
        if having:
            raise InputError(
                f"'{aqm}' is not a queue discipline, but a parameter or a signal of some",
                allowed=", ".join(having),
                hint=f"`bluewater explain {having[0]}` explains it",
            )
        raise _no_discipline(aqm, entries)
    asked = (bins, nonresponsive, out_)
    if aqm not in _WITH_BINS and asked != (None, None, None):
        raise InputError(
            f"{aqm} has no bins",
            key="--bins",
            allowed="--bins, --nonresponsive and --out with " + " or ".join(_WITH_BINS),
        )
    entry = dict(entries[aqm])
    if aqm in disciplines:  # the memory of a Python object is not known
        entry["state"] = _state(aqm, buffer)
    advised = None
    if asked != (None, None, None):
        if bins is None or (nonresponsive is None and out_ is None):
            raise InputError(
                "advice on sfb needs the number of bins and of nonresponsive flows",
                key="--bins" if bins is None else "--nonresponsive",
                hint="as in --bins 46 --nonresponsive 8",
            )
        advised = None if nonresponsive is None else _core.sfb_shapes(bins, nonresponsive)
    if json:
        if advised:
            entry["shapes"] = [
                {"levels": levels, "bins": each, "misclassified": p}
                for levels, each, p in advised[0]
            ]
            entry["best"] = dict(zip(("levels", "bins"), advised[1], strict=True))
        print_json(entry)
    elif advised:
        _print_advice(advised, bins or 0, nonresponsive or 0)
    elif out_ is None:
        _print_entry(entry, buffer)
    if bins is not None and (out_ is not None or not json):
        _draw(bins, (out_ or DEFAULT_OUT) / f"sfb-{bins}-bins", quiet=json)


def _no_discipline(name: str, entries: Collection[str]) -> InputError:
    """The error for a name of something else."""
    error = unknown("queue discipline", name, entries)
    if name.partition(":")[0] in entries:
        error.hint = f"`bluewater explain {name.partition(':')[0]}` has its parameters"
    elif name.endswith(".toml"):
        error.hint = f"a scenario: `bluewater run {name} --dry-run` prints it with every default"
    elif name in {each["name"] for each in _core.catalog()["transports"]}:
        error.hint = f"`{name}` is a transport of [[traffic]]: `bluewater list` says what each is"
    return error


def _state(aqm: str, buffer: str) -> dict[str, int]:
    try:
        return _core.state(aqm, buffer)
    except ValueError as error:
        raise InputError(
            f"not a buffer of {aqm}",
            key="--buffer",
            value=buffer,
            allowed="packets (100p) or bytes (200kB)",
        ) from error


def _print_entry(entry: dict[str, Any], buffer: str) -> None:
    out.print(f"[bold]{entry['name']}[/bold]  [dim]{escaped(entry['source'])}[/dim]")
    out.print(f"{entry['summary']}\n", markup=False)
    rows = [
        (
            parameter["name"],
            _shown(parameter["default"]),
            _shown(parameter["unit"]),
            _shown(parameter["allowed"]),
            parameter["doc"],
            _shown(parameter["source"]),
        )
        for parameter in entry["parameters"]
    ]
    columns = ("parameter", "default", "unit", "allowed", "meaning", "source")
    out.print(table("Parameters", columns, rows) if rows else "It has no parameters.\n")
    if entry.get("live"):
        live = ", ".join(entry["live"])
        out.print(f"[[queue.change]] may change during a run: {live}.\n", markup=False)
    if entry["presets"]:
        presets = [(preset["name"], preset["settings"]) for preset in entry["presets"]]
        out.print(table("Presets", ("preset =", "stands for"), presets))
    if entry["signals"]:
        signals = [(each["name"], each["unit"], each["doc"]) for each in entry["signals"]]
        named = ("signal", "unit", "meaning")
        out.print(table("Signals, as columns of a time series", named, signals))
    state = entry.get("state")
    if state is None:
        return
    flows = (
        f"{state['per_flow']} for each of up to {state['flows']} flows, " if state["flows"] else ""
    )
    out.print(
        f"It remembers {state['queue']} bytes for the queue, {flows}"
        f"{state['per_packet']} for each queued packet, with a buffer of {buffer}.",
        markup=False,
        soft_wrap=True,
    )


def _print_advice(
    advised: tuple[list[tuple[int, int, float]], tuple[int, int]], bins: int, flows: int
) -> None:
    shapes, best = advised
    rows = [
        (str(levels), str(each), percent(p), "best" if (levels, each) == best else "")
        for levels, each, p in shapes
    ]
    title = f"Responsive flows misclassified, {bins} bins, {flows} nonresponsive flows"
    out.print(table(title, ("levels", "bins in each", "misclassified", ""), rows))
    out.print(f"levels = {best[0]}, bins = {best[1]}", markup=False)


def _draw(bins: int, stem: Path, *, quiet: bool) -> None:
    """Feng02 Fig. 17."""
    import polars as pl  # noqa: PLC0415

    from bluewater.plots.draw import Drawable, draw  # noqa: PLC0415
    from bluewater.plots.files import save  # noqa: PLC0415
    from bluewater.study.experiments.plot import Scale  # noqa: PLC0415

    step = max(1, bins // 200)
    points = [
        (flows, p, f"{levels} level{'s' if levels > 1 else ''}")
        for flows in range(0, bins + 1, step)
        for levels, _, p in _core.sfb_shapes(bins, flows)[0][:_DRAWN_LEVELS]
    ]
    frame = pl.DataFrame(points, schema=["x", "y", "line"], orient="row")
    probability = Scale("Probability of misclassification", low=0, high=1)
    panel = Drawable(f"{bins} bins in all", frame, probability)
    title = "Responsive flows that SFB takes for nonresponsive ones"
    figure = draw(title, "trace", Scale("Nonresponsive flows"), [panel], 1, "none")
    for path in save(figure, [panel], stem):
        if quiet:
            note(str(path))
        else:
            out.print(str(path), soft_wrap=True, markup=False)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "–" if value in (None, "") else str(value)
