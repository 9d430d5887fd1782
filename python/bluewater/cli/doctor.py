"""``doctor``: whether the installation works."""

from __future__ import annotations

from dataclasses import asdict

import typer

from bluewater import doctor as examine
from bluewater.cli.console import note, out, print_json
from bluewater.cli.group import FAILED, example
from bluewater.cli.options import Json


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(doctor)


@example("bluewater doctor", "bluewater doctor --json")
def doctor(json: Json = False) -> None:
    """Check the installation, and print how to fix each problem."""
    found = []
    for check in examine.checks():
        found.append(check)
        if json:
            continue
        mark = "[green]ok[/green]  " if check.ok else "[red]no[/red]  "
        out.print(f"{mark} [cyan]{check.name}[/cyan]: ", end="")
        out.print(check.found, markup=False, soft_wrap=True)
        if not check.ok:
            note(f"     hint: {check.hint}")
    if json:
        print_json([asdict(check) for check in found])
    if any(not check.ok and check.required for check in found):
        raise typer.Exit(FAILED)
