"""``list`` and ``explain``: what there is and what its parameters mean."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from bluewater import _core
from bluewater.cli.console import out, print_json
from bluewater.cli.group import example
from bluewater.cli.options import Json
from bluewater.errors import unknown
from bluewater.experiment import known, load


def add(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("list")(list_all)
    app.command()(explain)


@example("bluewater list", "bluewater list --json")
def list_all(json: Json = False) -> None:
    """List the algorithms, transports and experiments."""
    catalog = _core.catalog()
    if json:
        print_json(
            {
                "aqms": [entry["name"] for entry in catalog["aqms"]],
                "transports": [entry["name"] for entry in catalog["transports"]],
                "experiments": list(known()),
            }
        )
        return
    aqms = [(entry["name"], entry["summary"], entry["source"]) for entry in catalog["aqms"]]
    out.print(_table("Queue disciplines", ("name", "what it does", "source"), aqms))
    for title, kind in (
        ("Transports", "transports"),
        ("Applications", "apps"),
        ("Networks", "presets"),
    ):
        words = [(entry["name"], entry["summary"]) for entry in catalog[kind]]
        out.print(_table(title, ("name", "what it is"), words))
    experiments = [load(name) for name in known()]
    rows = [(each.id, each.title, str(len(each.claims))) for each in experiments]
    out.print(_table("Experiments", ("name", "what it asks", "claims"), rows))


@example("bluewater explain blue", "bluewater explain red --json")
def explain(
    aqm: Annotated[str, typer.Argument(help="A queue discipline, such as blue.")],
    json: Json = False,
) -> None:
    """Explain a queue discipline: parameters with units, ranges, defaults and sources."""
    entries = {entry["name"]: entry for entry in _core.catalog()["aqms"]}
    if aqm not in entries:
        raise unknown("queue discipline", aqm, entries)
    entry = entries[aqm]
    if json:
        print_json(entry)
        return
    out.print(f"[bold]{entry['name']}[/bold]  [dim]{_escaped(entry['source'])}[/dim]")
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
    out.print(_table("Parameters", columns, rows) if rows else "It has no parameters.\n")
    if entry["presets"]:
        presets = [(preset["name"], preset["settings"]) for preset in entry["presets"]]
        out.print(_table("Presets", ("preset =", "stands for"), presets))
    if entry["signals"]:
        signals = [(signal["name"], signal["doc"]) for signal in entry["signals"]]
        out.print(_table("Signals, as columns of a time series", ("signal", "meaning"), signals))


def _table(title: str, columns: tuple[str, ...], rows: list[Any]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1))
    for number, column in enumerate(columns):
        table.add_column(column, style="cyan" if number == 0 else "", no_wrap=number == 0)
    for row in rows:
        table.add_row(*map(_escaped, row))
    return table


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "–" if value in (None, "") else str(value)
