"""The exit codes: 0 done, 1 a check failed, 2 bad input, 130 Ctrl-C."""

from __future__ import annotations

import re
import warnings
from difflib import get_close_matches
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from bluewater._core import ScenarioError
from bluewater.cli.console import note
from bluewater.errors import InputError, Interrupted, unknown
from bluewater.study.comparison.compare import by_sweep

if TYPE_CHECKING:
    from collections.abc import Callable

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130


class Command(TyperCommand):
    """A command that refuses an option given twice: the parser drops the first value silently."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the command line."""
        typed: dict[str, Any] = {}
        try:
            typed, _, given = self.make_parser(ctx).parse_args(args=list(args))
            single = [each for each in given if _takes_one(each)]
            for option in dict.fromkeys(each for each in single if single.count(each) > 1):
                raise InputError(
                    f"{option.opts[0]} takes one value, but is given twice",
                    hint=_several(ctx, option.opts[0]),
                )
            return super().parse_args(ctx, args)
        except _USAGE as error:
            options = {name for each in self.params for name in each.opts}
            told = _mistyped(error, typed, options, ctx.info_name)
            if told is None:
                error.ctx = error.ctx or ctx
                raise
            if "," in str(told.value):
                told.hint = _several(ctx, told.key or "") or told.hint
            if told.key is None:
                told.hint = f"{told.hint or ''} {_help(ctx)}".lstrip()
            raise told from error

    def invoke(self, ctx: Any) -> Any:
        """Runs the command; an error names an option as the user typed it."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            if error.file is None and error.line is None:
                error.name(next((each.opts[0] for each in self.params if _is(each, error)), None))
                if "," in str(error.problem if error.value is None else error.value):
                    error.hint = _several(ctx, error.key or "") or error.hint
            raise


def _several(ctx: Any, option: str) -> str | None:
    """The hint for several values of an option where `sweep` runs them."""
    return by_sweep(option.lstrip("-")) if ctx.info_name == "compare" else None


def _help(ctx: Any) -> str:
    return f"`{ctx.command_path} --help` lists all"


_USAGE: Any = typer.BadParameter.__mro__[1]
"""The base of the errors of a command line, of which typer exports this one alone."""

_ELSEWHERE = {
    "bandwidth": "rate", "bw": "rate", "speed": "rate", "bitrate": "rate",
    "latency": "rtt", "delay": "rtt", "ping": "rtt", "owd": "rtt",
    "limit": "buffer", "queue": "buffer", "qlen": "buffer", "length": "duration",
    "time": "duration", "seed": "seeds", "runs": "reps", "repeat": "reps", "parallel": "flows",
    "connections": "flows", "congestion": "transport", "cc": "transport", "tcp": "transport",
    "output": "out", "outdir": "out", "threads": "jobs", "workers": "jobs", "cores": "jobs",
    "download": "down", "upload": "up", "overhead": "framing", "linklayer": "framing",
    "dev": "interface", "hostile": "against", "plot": "picture", "param": "set", "csv": "table",
    "table": "csv",
}  # fmt: skip
"""What other programs call options, or other commands of this one."""


_SWEEP = "`bluewater sweep FILE --reps 5` runs several seeds side by side;"
_BY_OTHERS = {
    **{("run", option): _SWEEP for option in ("reps", "runs", "repeat", "seeds")},
    ("run", "jobs"): f"--threads divides one run; {_SWEEP}",
    **{
        (command, option): hint
        for option in ("picture", "plot", "size")
        for command, hint in (
            ("run", "`bluewater plot` draws the newest run, with --size for a paper;"),
            ("sweep", "[[plot]] in the file and `bluewater reproduce FILE` draw pictures;"),
        )
    },
    **{("plot", option): "did you mean --out?" for option in ("picture", "table", "csv")},
}
"""What another command does, or another option alone, for an option that a command lacks."""


def _mistyped(
    error: Any, typed: dict[str, Any], options: set[str], command: str | None
) -> InputError | None:
    """An error of the command line in the words of all others; None if it says enough."""
    message = str(getattr(error, "message", "") or "")
    if name := getattr(error, "option_name", None) if "such option" in message else None:
        bare = {each.lstrip("-"): each for each in options if each.startswith("--")}
        meant = _ELSEWHERE.get(name.lstrip("-"), "")
        near = [meant] if meant in bare else get_close_matches(name.lstrip("-"), bare)
        hint = f"did you mean {' or '.join(bare[each] for each in near)}?" if near else None
        if not near and "set" in bare:
            hint = "keys of a scenario go with --set, as in --set network.rate=10mbit;"
        hint = _BY_OTHERS.get((command or "", name.lstrip("-")), hint)
        return InputError(f"there is no option {name}", hint=hint)
    param = getattr(error, "param", None)
    if param and re.search(_NO_NUMBER, message):
        least = getattr(param if hasattr(param, "min") else param.type, "min", None)
        kind = "a number" if re.search("valid (number|float)", message) else "a whole number"
        return InputError(
            "not allowed",
            key=param.opts[0],
            value=typed.get(param.name),
            allowed=kind if least is None else f"{kind}, {least} or more",
        )
    if param and (among := re.search("is not one of (.*[^.])", message)):
        value, known = str(typed.get(param.name)), re.findall("'([^']+)'", among[1])
        return unknown("value", value, known, key=param.opts[0])
    if extra := re.search(r"unexpected extra argument.* \((.*)\)$", message):
        switch = {"yes", "no", "true", "false", "on", "off"} & {*extra[1].lower().split()}
        hint = "switches take no value, as in --ecn and --no-ecn;" if switch else None
        return InputError(f"nothing takes '{extra[1]}'", hint=hint)
    return None


_NO_NUMBER = "valid (integer|number|float)|greater than|less than|in the range"
"""What typer says of a number, in its versions."""


def _is(param: Any, error: InputError) -> bool:
    """Whether the error's key, a Python argument, is this option."""
    key = param.opts[0].lstrip("-").replace("-", "_")
    return bool(param.param_type_name == "option" and error.key == key)


def _takes_one(param: Any) -> bool:
    return param.param_type_name == "option" and not (
        param.multiple or param.is_flag or param.count
    )


def take_one_value(app: typer.Typer) -> None:
    """Makes every command refuse an option given twice; call it after adding all commands."""
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            take_one_value(group.typer_instance)


def tell(error: InputError | ScenarioError) -> None:
    """Says on stderr what is wrong with the input."""
    note(f"error: {error}")
    if error.hint and error.hint not in str(error):
        note(f"hint: {error.hint}")


class Group(TyperGroup):
    """Turns what a command raises into a message on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
        warnings.showwarning = _warned  # type: ignore[assignment]
        try:
            return super().invoke(ctx)
        except (InputError, ScenarioError) as error:
            tell(error)
            raise typer.Exit(BAD_INPUT) from error
        except _USAGE as error:
            # Typer would box it; without arguments a group shows its help.
            if not (message := error.format_message()) or "NoArgs" in type(error).__name__:
                raise
            note(f"error: {message[:1].lower()}{message[1:].rstrip('.')}")
            note(f"hint: {_help(error.ctx or ctx)}")
            raise typer.Exit(BAD_INPUT) from error
        except Interrupted as error:
            note(str(error))
            note("hint: the same command continues from there")
            raise typer.Exit(INTERRUPTED) from error
        except KeyboardInterrupt as error:
            note("interrupted")
            raise typer.Exit(INTERRUPTED) from error
        except BrokenPipeError as error:
            raise typer.Exit(0) from error
        except OSError as error:
            where = f": {error.filename}" if error.filename else ""
            note(f"error: {error.strerror or error}{where}")
            if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
                note("hint: check the path")
            else:
                note("hint: finished runs are kept; --out names another folder to write to")
            raise typer.Exit(BAD_INPUT) from error


def _warned(message: Warning | str, *_: object) -> None:
    note(f"warning: {message}")


def example(*lines: str) -> Callable[[Any], Any]:
    """Adds examples to the help of a command."""

    def add(function: Any) -> Any:
        shown = "\n\n".join(f"`{line}`" for line in lines)
        # Markdown would show indented lines as code.
        function.__doc__ = f"{cleandoc(function.__doc__)}\n\nExamples:\n\n{shown}"
        return function

    return add
