"""The exit codes: 0 done, 1 a check failed, 2 bad input, 130 Ctrl-C."""

from __future__ import annotations

import warnings
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from bluewater._core import ScenarioError
from bluewater.cli.console import note
from bluewater.errors import InputError, Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130


class Group(TyperGroup):
    """Turns what a command raises into a message on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
        warnings.showwarning = _warned  # type: ignore[assignment]
        try:
            return super().invoke(ctx)
        except (InputError, ScenarioError) as error:
            note(f"error: {error}")
            if error.hint and error.hint not in str(error):
                note(f"hint: {error.hint}")
            raise typer.Exit(BAD_INPUT) from error
        except Interrupted as error:
            note(str(error))
            note("hint: run the same command again to go on from there")
            raise typer.Exit(INTERRUPTED) from error
        except KeyboardInterrupt as error:
            note("interrupted")
            raise typer.Exit(INTERRUPTED) from error
        except BrokenPipeError as error:
            raise typer.Exit(0) from error
        except OSError as error:
            where = f": {error.filename}" if error.filename else ""
            note(f"error: {error.strerror or error}{where}")
            note("hint: finished runs are kept; --out names another folder for what is written")
            raise typer.Exit(BAD_INPUT) from error


def _warned(message: Warning | str, *_: object) -> None:
    note(f"warning: {message}")


def example(*lines: str) -> Callable[[Any], Any]:
    """Adds examples to the help of a command."""

    def add(function: Any) -> Any:
        shown = "\n\n".join(f"`{line}`" for line in lines)
        # Lines that stay indented would be shown as a quotation.
        function.__doc__ = f"{cleandoc(function.__doc__)}\n\nExamples:\n\n{shown}"
        return function

    return add
