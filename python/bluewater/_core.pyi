from collections.abc import Callable
from typing import Any, final

__all__ = ["ScenarioError", "catalog", "check", "run", "schema", "sfb_shapes", "state", "version"]

@final
class ScenarioError(ValueError):
    file: str | None
    line: int | None
    key: str | None
    value: str | None
    allowed: str | None
    hint: str | None

def run(
    text: str, origin: str = "<string>", progress: Callable[[float], object] | None = None
) -> dict[str, Any]: ...
def check(text: str, origin: str = "<string>") -> str: ...
def schema() -> str: ...
def catalog() -> dict[str, list[dict[str, Any]]]: ...
def state(aqm: str, buffer: str = "100p") -> dict[str, int]: ...
def sfb_shapes(
    bins: int, nonresponsive: int
) -> tuple[list[tuple[int, int, float]], tuple[int, int]]: ...
def version() -> str: ...
