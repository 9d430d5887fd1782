"""``list``: queue disciplines, transports and experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bluewater import _core
from bluewater.cli.console import out, print_json, table
from bluewater.cli.group import example
from bluewater.cli.options import Json
from bluewater.study.experiments.experiment import known, load

if TYPE_CHECKING:
    import typer


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("list")(list_all)


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
    out.print(table("Queue disciplines", ("name", "what it does", "source"), aqms))
    for title, kind in (
        ("Transports", "transports"),
        ("Applications", "apps"),
        ("Networks", "presets"),
    ):
        words = [(entry["name"], entry["summary"]) for entry in catalog[kind]]
        out.print(table(title, ("name", "what it is"), words))
    experiments = [load(name) for name in known()]
    rows = [(each.id, each.title, str(len(each.claims))) for each in experiments]
    out.print(table("Experiments", ("name", "question", "claims"), rows))
