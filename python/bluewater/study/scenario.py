"""Scenarios: from files, text, tables or code; changed; and run."""

from __future__ import annotations

import copy
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import tomli_w

from bluewater import kinds
from bluewater._core import ScenarioError
from bluewater.arguments import MAPPING, PATH, TEXT
from bluewater.errors import InputError
from bluewater.files import parse_table, read_text
from bluewater.kinds.simulator import at_line
from bluewater.own import named
from bluewater.results.packets import Packets
from bluewater.study.sweep import assign, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bluewater.results.result import Result


class Scenario:
    """A scenario, checked when it is made and never changed.

    Its keys are those of [scenario files](formats.md#scenario-files); quantities are text with
    their unit, as there.

    Args:
        table: The keys as one mapping.
        origin: What it is called in messages; captures are looked for beside it.
        keys: More of them, by name.

    Raises:
        ScenarioError: It is not valid; says key, value and what is allowed.

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

    __slots__ = ("_canonical", "_origin", "_table")

    _canonical: str
    _origin: str
    _table: dict[str, Any]

    def __init__(
        self, table: Mapping[str, Any] | None = None, /, *, origin: str = "<scenario>", **keys: Any
    ) -> None:
        MAPPING.check("table", {} if table is None else table, "Scenario()")
        whole = copy.deepcopy(dict(named(plain({**(table or {}), **keys}))))
        object.__setattr__(self, "_origin", origin)
        object.__setattr__(self, "_table", whole)
        object.__setattr__(self, "_canonical", kinds.of(whole, origin).check(whole, origin))

    @classmethod
    def load(cls, path: Path | str) -> Scenario:
        """The scenario of a TOML file."""
        PATH.check("path", path, "Scenario.load()")
        path = Path(path)
        return cls.parse(read_text(path), str(path))

    @classmethod
    def parse(cls, text: str, origin: str = "<string>") -> Scenario:
        """The scenario that a TOML text says."""
        TEXT.check("text", text, "Scenario.parse()")
        table = parse_table(text, origin)
        kinds.checked(text, origin)  # Errors in what is written name its lines.
        return cls(table, origin=origin)

    def with_(self, settings: Mapping[str, Any] | None = None, /, **keys: Any) -> Scenario:
        """Another scenario with some keys set: dotted ones in a mapping, those at the top by name.

        A number in a dotted key is an index into a list: ``{"queue.0.buffer": "50p"}``.
        """
        MAPPING.check("settings", {} if settings is None else settings, "with_()")
        table = self.table
        for key, value in {**(settings or {}), **keys}.items():
            assign(table, key, value, self._origin)
        return Scenario(table, origin=self._origin)

    @property
    def table(self) -> dict[str, Any]:
        """A copy of its keys as they were given."""
        return copy.deepcopy(self._table)

    @property
    def canonical(self) -> str:
        """The TOML text with every default filled in: scenarios are equal if these are."""
        return self._canonical

    @property
    def origin(self) -> str:
        """What it is called in messages."""
        return self._origin

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a scenario does not change; with_({name}=…) makes another one")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (self._table, self._origin))

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


def changed(text: str, settings: Sequence[str], origin: str) -> str:
    """The scenario with ``KEY=VALUE`` set each; the text stays as it is if there are none."""
    if not settings:
        return text
    table = parse_table(text, origin)
    for key, value in parsed(settings).items():
        assign(table, key, value, origin)
    return tomli_w.dumps(table)


@contextmanager
def lines_of(text: str, source: str, origin: str) -> Iterator[None]:
    """Has errors about ``source``, which :func:`changed` made of ``text``, name lines of ``text``.

    An error that ``text`` alone has not, or with another value, is one of a setting, and has none.
    """
    try:
        yield
    except ScenarioError as error:
        raise error if source == text else at_line(error, _line(error, text, origin)) from None


def _line(error: ScenarioError, text: str, origin: str) -> int | None:
    try:
        kinds.checked(text, origin)
    except ScenarioError as own:
        if (own.key, own.value) == (error.key, error.value):
            return own.line
    except InputError:
        pass
    return None


def parsed(settings: Sequence[str]) -> dict[str, Any]:
    """Dotted keys and their values, from ``KEY=VALUE`` each."""
    found = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise InputError("not a setting", key="--set", value=setting, allowed="KEY=VALUE")
        found[key.strip()] = _literal(value.strip())
    return found


def _literal(value: str) -> Any:
    """A TOML value, or the text itself where it is none, as in ``20ms``."""
    try:
        return parse_table(f"value = {value}", "--set")["value"]
    except InputError:
        return value


def run(
    scenario: Source,
    *,
    seed: int | None = None,
    progress: Callable[[float], object] | None = None,
    packets: Packets | Path | str | None = None,
    keep: Callable[[Result], object] = lambda _: None,
) -> Result:
    """Runs one scenario in this process.

    Args:
        scenario: A scenario, a path, TOML text, or a mapping of the same structure.
        seed: Replaces the seed of the scenario.
        progress: Called now and then with the fraction done, 0 to 1.
        packets: A Parquet file for what becomes of each packet, or of some.
        keep: Called with the result, before the file of packets is made.

    Raises:
        ScenarioError: The scenario is not valid.
        InputError: The file cannot be read.
    """
    text, origin = to_text(scenario)
    source = text if seed is None else changed(text, [f"seed={seed}"], origin)
    with lines_of(text, source, origin):
        if packets is not None and not isinstance(packets, Packets):
            packets = Packets(packets)
        return kinds.run(source, origin, progress, packets, keep)
