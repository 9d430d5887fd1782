"""What formats of flows over time begin and end with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bluewater.errors import InputError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from bluewater.results.result import Result


def of_flows(result: Result) -> pl.DataFrame:
    """The samples of a run's flows.

    Raises:
        InputError: There are none.
    """
    if "flow_series" not in result.names or (samples := result.load("flow_series")).is_empty():
        raise InputError(
            "the run has no samples of flows",
            hint='put `interval = "100ms"` and `flows = true` into [measure] and run it again',
        )
    return samples


def write_text(path: Path, text: str) -> None:
    """Writes a file, and its folder if it is not there.

    Raises:
        StorageError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error
