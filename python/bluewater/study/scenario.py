"""Scenarios: reading them from files, text or tables, and running one."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import tomli_w

from bluewater import kinds
from bluewater.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bluewater.results.result import Result

Scenario: TypeAlias = "Path | str | Mapping[str, Any]"
"""A path, the TOML text itself, or the same structure as a mapping."""


def read_text(path: Path) -> str:
    """The text of a file, or an :class:`InputError` that says why it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(
            f"cannot read the file: {reason}",
            file=str(path),
            hint="check the path; `bluewater list` shows the experiments that can be named instead",
        ) from error
    except UnicodeDecodeError as error:
        raise InputError("the file is not UTF-8 text", file=str(path)) from error


def parse_table(text: str, origin: str) -> dict[str, Any]:
    """Parses TOML; what is wrong with its syntax becomes an :class:`InputError`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not valid TOML: {error}", file=origin) from error


def to_text(scenario: Scenario) -> tuple[str, str]:
    """The TOML text of a scenario and the name to use for it in messages."""
    if isinstance(scenario, Path):
        return read_text(scenario), str(scenario)
    if isinstance(scenario, str):
        looks_like_path = "\n" not in scenario and "=" not in scenario
        return to_text(Path(scenario)) if looks_like_path else (scenario, "<string>")
    return tomli_w.dumps(dict(scenario)), "<dict>"


def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> Result:
    """Runs one scenario in this process.

    Args:
        scenario: A path, TOML text, or a mapping of the same structure.
        seed: Replaces the seed of the scenario.
        progress: Called now and then with the fraction done, 0 to 1.

    Raises:
        ScenarioError: The scenario is not valid.
        InputError: The file cannot be read.
    """
    text, origin = to_text(scenario)
    if seed is not None:
        text = tomli_w.dumps(parse_table(text, origin) | {"seed": seed})
    return kinds.run(text, origin, progress)
