"""Packet captures: the spread of bytes over flows (Mahajan01 §3), measured or generated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater import _core, files
from bluewater.arguments import texts
from bluewater.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

WINDOWS = ("1s", "5s", "20s")
TIMEOUT = "64s"
MOST_FLOWS = 1 << 20


@dataclass(frozen=True)
class Trace:
    """The measured flows of a capture.

    Attributes:
        summary: Packets, bytes, flows, and unreadable packets; ``error`` names the place of damage
            in the file, if any.
        flows: The flows with the most bytes.
        windows: A row per length of windows.
        skew: Shares of the largest flows, of the whole and by length of windows.
        persistence: Their shares in the next window.
    """

    summary: Mapping[str, Any]
    flows: pl.DataFrame
    windows: pl.DataFrame
    skew: pl.DataFrame
    persistence: pl.DataFrame

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Trace:
        """Makes frames of columns."""
        return cls(
            raw["summary"],
            pl.DataFrame(raw["flows"]),
            pl.DataFrame(raw["windows"]),
            pl.DataFrame(
                raw["skew"], schema_overrides={"window_s": pl.Float64, "next_share": pl.Float64}
            ),
            pl.DataFrame(raw["persistence"]),
        )

    def tables(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Every table with its name."""
        yield "flows", self.flows
        yield "windows", self.windows
        yield "skew", self.skew
        yield "persistence", self.persistence


def measure(
    path: Path | None,
    *,
    windows: Sequence[str] = WINDOWS,
    timeout: str = TIMEOUT,
    most_flows: int = MOST_FLOWS,
    top: int = MOST_FLOWS,
    progress: Callable[[float], object] | None = None,
) -> Trace:
    """Measures a capture (pcap or pcapng) in bounded memory.

    Args:
        path: The file; ``None`` reads stdin.
        windows: Lengths of the windows.
        timeout: After a longer silence a flow counts as a new one.
        most_flows: Most flows kept apart; beyond, the smallest are merged.
        top: Number of flows to list.
        progress: Called now and then with the fraction of the file that was read.

    Raises:
        InputError: The file is no capture. A damaged capture is measured up to the damage.
        OSError: The file cannot be opened.
    """
    if path is not None:
        files.check(path)
        path.open("rb").close()  # raises an error that names the file
    try:
        raw = _core.measure_trace(
            path, list(texts("windows", windows, "measure()")), timeout, most_flows, top, progress
        )
    except ValueError as error:
        given = {"windows": ", ".join(windows), "timeout": timeout}
        raise input_error(error, given) from error
    return Trace.parse(raw)


def generate(
    path: Path, options: Mapping[str, Any], progress: Callable[[float], object] | None = None
) -> tuple[int, int]:
    """Generates a trace into a file: classic pcap if the name ends in .pcap, else pcapng.

    Returns packets and bytes on the wire. The file is written atomically.
    """
    check_options(options)
    with files.whole(path) as temporary:
        return _core.generate_trace(temporary, progress, **options)


def check_options(options: Mapping[str, Any], file: str | None = None) -> None:
    """Refuses options that the generator cannot take."""
    try:
        _core.check_generated([], TIMEOUT, **options)
    except ValueError as error:
        raise input_error(error, options, file) from error


def input_error(
    error: ValueError, given: Mapping[str, Any] | None = None, file: str | None = None
) -> InputError:
    """The core's message about a file or an option, as an :class:`InputError`."""
    match error.args:
        case (name, int(offset), problem):
            return InputError(f"byte {offset}: {problem}", file=name)
        case (key, allowed):
            value = (given or {}).get(key)
            return InputError("not a value", file=file, key=key, value=value, allowed=allowed)
    raise error
