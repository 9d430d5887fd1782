"""Command lines that are the gateway's own: this process becomes ``bluewater-gateway``.

The words are passed unchanged, including ``--``, which a parser in between would remove.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn

from bluewater import programs

_NAME = "bluewater-gateway"
_BAD_INPUT = 2
# Subcommands of ``bluewater gateway``; without one it is ``run``.
_SUBCOMMANDS = ("bench", "bypass", "ctl", "join")
_TOLD_HERE = {"--aqm", "--help", "--to", "--queue", "--set", "--json"}
"""With one of these options Python handles ``replay``, not the gateway's program."""
_HELP = """\
Usage: bluewater gateway --lan IF --wan IF --rate RATE [OPTIONS]
       bluewater gateway COMMAND ...

Commands:
  ctl    Query or change a running gateway or shell: ctl NAME show, ctl NAME set --rate 20mbit,
         ctl NAME save
  view   Show a running gateway or shell in the terminal: view NAME
  join   Run another command at an end of a shell's link: join NAME -- COMMAND
  bypass Let packets pass by a bridge of the kernel while no gateway runs: bypass FILE
  bench  Measure how precise and how fast this machine is

Without a command:

"""


def task(arguments: list[str]) -> list[str] | None:
    """The program's arguments for a command line; None if Python handles the command."""
    match arguments:
        case ["replay", *rest] if _TOLD_HERE & {word.partition("=")[0] for word in _own(rest)}:
            pass
        case ["replay", file] if not file.startswith("-") and not _is_recording(file):
            pass
        case ["shell" | "replay", *_]:
            return arguments
        case ["testbed", *rest] if not rest or rest[0].startswith("-"):
            return arguments
        case ["gateway", "view", *_]:
            pass
        case ["gateway", name, *rest] if name in _SUBCOMMANDS:
            return [name, *rest]
        case ["gateway", *rest]:
            return ["run", *rest]
    return None


def _is_recording(file: str) -> bool:
    """Whether it is one. Python refuses other files, without building the program first."""
    try:
        return programs.is_recording(Path(file))
    except (OSError, ValueError):
        return False


def _own(words: list[str]) -> list[str]:
    """The arguments before ``--``."""
    return words[: words.index("--")] if "--" in words else words


def become(arguments: list[str]) -> None:
    """Replaces this process with the program.

    Raises:
        InputError: The program is not installed.
    """
    if arguments == ["run"]:
        _usage(arguments)
    asks = {"-h", "--help"} & set(_own(arguments))
    with programs.as_they_are() if asks else nullcontext():
        program = programs.find(_NAME)
    if arguments in (["run", "-h"], ["run", "--help"]):
        print(_HELP, end="")
        arguments = ["run", "--help"]
    sys.stdout.flush()
    os.execv(program, [program, *arguments])


def _usage(arguments: list[str]) -> NoReturn:
    """Prints the commands on stderr if the command line names none."""
    import subprocess  # noqa: PLC0415

    print(_HELP, end="", file=sys.stderr, flush=True)
    with programs.as_they_are():
        program = programs.find(_NAME)
    subprocess.run([program, *arguments, "--help"], stdout=sys.stderr, check=False)
    sys.exit(_BAD_INPUT)


def try_to(arguments: list[str]) -> None:
    """Replaces this process if the command is the gateway's; returns if not, or without it."""
    if (mine := task(arguments)) is not None:
        from bluewater.errors import InputError  # noqa: PLC0415

        try:
            become(mine)
        except (InputError, OSError):
            # The Python command line reports the missing program in the usual form.
            return
