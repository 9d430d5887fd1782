"""Real packets: ``gateway``, ``shell`` and ``testbed`` hand over to the gateway.

They are defined here only so that `--help` lists them: :mod:`bluewater.handover` passes the command
line to the gateway's own program.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from bluewater import handover
from bluewater.cli.group import example
from bluewater.errors import InputError

# The gateway parses all options itself, --help too.
_HAND_OVER = {
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
}
VIEW = """Usage: bluewater gateway view NAME

Show a running gateway or shell in the terminal, until Ctrl-C: throughput, queue, delay, drops and
marks, signals, and the flows that sent most. NAME is its --name, or else its process number."""

_Arguments = Annotated[
    list[str] | None, typer.Argument(help="Options of the program; --help lists them.")
]


def become(command: str, arguments: list[str] | None) -> None:
    """Replaces this process with the gateway's program, for one of its commands."""
    handover.become(handover.task([command, *(arguments or [])]) or [])


def add(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (gateway, shell, experiment):
        name = "testbed" if command is experiment else None
        app.command(name, context_settings=_HAND_OVER)(command)


@example(
    "bluewater gateway --lan eth1 --wan eth2 --rate 50mbit --delay 10ms --aqm pie",
    "bluewater gateway ctl NAME set --rate 20mbit --aqm sfb",
    "bluewater gateway view NAME",
)
def gateway(arguments: _Arguments = None) -> None:
    """Put an emulated link with any queue discipline between two interfaces, until Ctrl-C.

    `ctl` queries or changes a running gateway or shell, `view` shows it in the terminal, `join`
    runs another command behind a shell's link, `bypass` lets packets pass while no gateway runs.
    `bench` measures how precise and how fast this machine is.
    """
    match arguments:
        case ["view", "-h" | "--help"]:
            typer.echo(VIEW)
        case ["view", name] if not name.startswith("-"):
            # Drawing takes a while to load.
            from bluewater.cli.view import view  # noqa: PLC0415

            view(name)
        case ["view", *rest]:
            raise InputError(
                f"gateway view takes one name: {' '.join(rest) or 'none given'}",
                hint="bluewater gateway view NAME, where NAME is its --name, or else its process "
                "number",
            )
        case _:
            become("gateway", arguments)


@example("bluewater shell --rate 10mbit --delay 20ms --buffer 50kB --aqm sfb -- COMMAND")
def shell(arguments: _Arguments = None) -> None:
    """Run a command behind an emulated link, without root where user namespaces are allowed."""
    become("shell", arguments)


@example("bluewater testbed feng/fig13 --quick", "bluewater testbed --rate 10mbit --aqm blue --ecn")
def experiment(arguments: _Arguments = None) -> None:
    """Measure real packets between network namespaces: an experiment and its claims, or one link.

    With the name of an experiment it does what `reproduce` does.
    """
    if arguments and not arguments[0].startswith("-"):
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "bluewater", "reproduce", *arguments])
    become("testbed", arguments)
