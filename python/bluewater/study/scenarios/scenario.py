"""Scenarios: made from files, text, tables or code; changed; prepared to run."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import tomli_w

from bluewater import kinds
from bluewater._core import ScenarioError
from bluewater.arguments import MAPPING, PATH, TEXT
from bluewater.errors import InputError
from bluewater.files import parse_table, read_text
from bluewater.kinds.simulator import at_line
from bluewater.own import named
from bluewater.study.scenarios.sweep import assign, plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bluewater.kinds.kind import Prepared


class Scenario:
    """A scenario, checked when it is made and immutable.

    Its keys are those of [scenario files](formats.md#scenario-files); quantities are text with
    their unit, as there.

    Args:
        table: The keys as one mapping.
        origin: Its name in messages; captures are searched in its folder.
        keys: More keys, by name.

    Raises:
        ScenarioError: It is not valid; the message has key, value and what is allowed.

    Example:
        ```python
        import bluewater

        base = bluewater.Scenario(
            duration="20s", warmup="5s",
            network={"preset": "dumbbell", "rate": "10mbit", "delay": "20ms"},
            queue=[{"aqm": "blue", "buffer": "100p"}],
            traffic=[{"flows": 60, "transport": "sack", "start": "0s..2s", "ecn": True}],
        )
        red = base.with_({"queue.0.aqm": "red"}, seed=2)
        ```
    """

    __slots__ = ("_prepared", "_table")

    _prepared: Prepared
    _table: dict[str, Any]

    def __init__(
        self, table: Mapping[str, Any] | None = None, /, *, origin: str = "<scenario>", **keys: Any
    ) -> None:
        MAPPING.check("table", {} if table is None else table, "Scenario()")
        whole = copy.deepcopy(dict(named(plain({**(table or {}), **keys}))))
        self._set(whole, kinds.prepare(whole, origin))

    def _set(self, table: dict[str, Any], prepared: Prepared) -> None:
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "_prepared", prepared)

    @classmethod
    def load(cls, path: Path | str) -> Scenario:
        """The scenario of a TOML file."""
        PATH.check("path", path, "Scenario.load()")
        path = Path(path)
        return cls.parse(read_text(path), str(path))

    @classmethod
    def parse(
        cls,
        text: str,
        origin: str = "<string>",
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> Scenario:
        """Parses a TOML text, with some dotted keys set.

        An error names the line of the text, unless a setting causes it.
        """
        TEXT.check("text", text, "Scenario.parse()")
        if not settings:
            made = cls.__new__(cls)
            made._set(*kinds.read(text, origin))
            return made
        table = parse_table(text, origin)
        for key, value in settings.items():
            assign(table, key, value, origin)
        try:
            return cls(table, origin=origin)
        except ScenarioError as error:
            raise at_line(error, _line(error, text, origin)) from None

    def with_(self, settings: Mapping[str, Any] | None = None, /, **keys: Any) -> Scenario:
        """Returns a scenario with some keys set: dotted keys in a mapping, top-level keys by name.

        A number in a dotted key is an index into a list: ``{"queue.0.buffer": "50p"}``.
        """
        MAPPING.check("settings", {} if settings is None else settings, "with_()")
        table = self.table
        for key, value in {**(settings or {}), **keys}.items():
            assign(table, key, value, self.origin)
        return Scenario(table, origin=self.origin)

    @property
    def table(self) -> dict[str, Any]:
        """A copy of its keys as they were given."""
        return copy.deepcopy(self._table)

    @property
    def canonical(self) -> str:
        """The TOML text with every default filled in; equal scenarios have equal texts."""
        return self._prepared.canonical

    @property
    def origin(self) -> str:
        """Its name in messages."""
        return self._prepared.origin

    @property
    def prepared(self) -> Prepared:
        """Its prepared run: the check has built the simulation, which the run uses."""
        return self._prepared

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a scenario is immutable; with_({name}=…) makes another one")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (self._table, self.origin))

    def __repr__(self) -> str:
        whole = tomllib.loads(self.canonical)
        if "queue" not in whole:
            return f"<Scenario {', '.join(whole)}>"
        queues = ", ".join(f"{queue['aqm']} at {queue['link']}" for queue in whole["queue"])
        flows = sum(group["flows"] for group in whole["traffic"])
        return f"<Scenario {queues}, {flows} flows, {whole['duration']}, seed {whole['seed']}>"


def _again(table: Mapping[str, Any], origin: str) -> Scenario:
    return Scenario(table, origin=origin)


Source: TypeAlias = "Scenario | Path | str | Mapping[str, Any]"
"""A scenario, the path of its file, its TOML text, or the same structure as a mapping."""


def to_text(scenario: Source) -> tuple[str, str]:
    """The TOML text of a scenario and the name to use for it in messages."""
    if isinstance(scenario, Scenario):
        return tomli_w.dumps(scenario.table), scenario.origin
    if isinstance(scenario, Path):
        return read_text(scenario), str(scenario)
    if isinstance(scenario, str):
        looks_like_path = "\n" not in scenario and "=" not in scenario
        return to_text(Path(scenario)) if looks_like_path else (scenario, "<string>")
    return tomli_w.dumps(named(plain(scenario))), "<dict>"


def of(source: Source, settings: Mapping[str, Any]) -> Scenario:
    """A scenario with some dotted keys set."""
    if isinstance(source, Scenario):
        return source.with_(settings) if settings else source
    return Scenario.parse(*to_text(source), settings)


def _line(error: ScenarioError, text: str, origin: str) -> int | None:
    try:
        kinds.read(text, origin)
    except ScenarioError as own:
        if (own.key, own.value) == (error.key, error.value):
            return own.line
    except InputError:
        pass
    return None


def parsed(settings: Sequence[str]) -> dict[str, Any]:
    """Parses settings ``KEY=VALUE`` to dotted keys and their values."""
    found = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise InputError(
                "not a setting",
                key="--set",
                value=setting,
                allowed="KEY=VALUE, as in network.rate=10mbit",
            )
        key = key.strip()
        if key in found:
            raise InputError(
                f"{key} is set twice", key="--set", value=setting, hint="leave one of them out"
            )
        found[key] = _literal(value.strip())
    return found


def _literal(value: str) -> Any:
    """Parses a TOML value; a text that is none, such as ``20ms``, stays a text."""
    try:
        return parse_table(f"value = {value}", "--set")["value"]
    except InputError:
        return value
