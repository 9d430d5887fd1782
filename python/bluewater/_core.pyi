from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, final

__all__ = [
    "Driven",
    "Episodes",
    "Prepared",
    "ScenarioError",
    "catalog",
    "check_generated",
    "controlled",
    "convert_rates",
    "datagrams",
    "elsewhere",
    "events",
    "framing",
    "generate_trace",
    "measure_generated",
    "measure_trace",
    "misclassification",
    "model_rates",
    "on_wire",
    "packet_kinds",
    "quantity",
    "random",
    "schema",
    "sfb_shapes",
    "state",
    "tables",
    "version",
    "write_commented",
]

@final
class ScenarioError(ValueError):
    file: str | None
    line: int | None
    key: str | None
    value: str | None
    problem: str
    allowed: str | None
    hint: str | None

@final
class Prepared:
    def __new__(cls, text: str, origin: str = "<string>") -> Prepared: ...
    @property
    def canonical(self) -> str: ...
    @property
    def captures(self) -> list[tuple[str, int, int, int, int]]: ...
    def divide(self, threads: int | None) -> int: ...
    def run(
        self,
        progress: Callable[[float], object] | None = None,
        journal: Callable[[str, dict[str, list[Any]]], object] | None = None,
        flows: Sequence[tuple[int, int]] = ...,
        time: tuple[int, int] = ...,
        every: int = 1,
        columns: Sequence[str] = ...,
    ) -> dict[str, Any]: ...

def controlled(
    text: str, origin: str = "<string>"
) -> tuple[str, list[tuple[int, str, int, float, float, int, int]]]: ...
def elsewhere(word: str, names: Sequence[str]) -> str | None: ...
def events() -> dict[str, list[tuple[str, str]]]: ...
def schema() -> str: ...
def catalog() -> dict[str, list[dict[str, Any]]]: ...
def tables() -> list[dict[str, Any]]: ...
def packet_kinds() -> list[dict[str, Any]]: ...
def state(aqm: str, buffer: str = "100p") -> dict[str, int]: ...
def framing(text: str) -> tuple[int, int, str]: ...
def on_wire(text: str, length: int) -> int: ...
def sfb_shapes(
    bins: int, nonresponsive: int
) -> tuple[list[tuple[int, int, float]], tuple[int, int]]: ...
def misclassification(levels: int, bins: int, nonresponsive: int) -> float: ...
def measure_trace(
    path: str | PathLike[str] | None,
    windows: Sequence[str],
    timeout: str,
    most_flows: int,
    top: int,
    progress: Callable[[float], object] | None = None,
) -> dict[str, Any]: ...
def datagrams(
    path: str | PathLike[str], most: int
) -> list[tuple[int, int, int, bytes, bytes, bytes, list[int]]]: ...
def measure_generated(
    windows: Sequence[str],
    timeout: str,
    progress: Callable[[float], object] | None = None,
    **options: str | float,
) -> dict[str, Any]: ...
def check_generated(windows: Sequence[str], timeout: str, **options: str | float) -> None: ...
def convert_rates(text: str, form: str) -> tuple[str, float, float]: ...
def model_rates(model: str, mean: str, length: str, seed: int) -> str: ...
def generate_trace(
    path: str | PathLike[str],
    progress: Callable[[float], object] | None = None,
    **options: str | float,
) -> tuple[int, int]: ...
def random() -> float: ...

@final
class Driven:
    def __new__(
        cls,
        class_: tuple[str, str, str],
        settings: Sequence[tuple[str, str]],
        packets: int,
        rate: int,
        now: int,
    ) -> Driven: ...
    def arrive(self, now: int, size: int, flow: int, ecn: int) -> list[tuple[str, int]]: ...
    def depart(self, now: int) -> tuple[int | None, list[tuple[str, int]]]: ...
    def wait(self, until: int) -> list[tuple[str, int]]: ...
    def signals(self, now: int) -> list[tuple[str, float]]: ...
    def books(self) -> list[tuple[int, int]]: ...
    def copy(self) -> Driven: ...

@final
class Episodes:
    def __new__(
        cls,
        texts: Sequence[str],
        count: int,
        step: int,
        names: Sequence[str],
        chosen: Sequence[tuple[str, str]] = ...,
    ) -> Episodes: ...
    @staticmethod
    def observed(sends: bool) -> list[tuple[str, str]]: ...
    def reset(self, place: int, which: int, seed: int) -> None: ...
    def step(self, actions: Any, observed: Any, over: Any) -> None: ...
    def rates(self, which: int) -> list[int]: ...
    def decision_hash(self, place: int) -> str | None: ...

def quantity(kind: str, text: str) -> tuple[int, str]: ...
def version() -> str: ...
def write_commented(
    path: str | PathLike[str],
    rows: Iterable[
        tuple[
            int,
            int,
            int,
            tuple[bytes, bytes],
            tuple[int, int],
            tuple[int, int | None, bool] | None,
            str,
        ]
    ],
) -> None: ...
