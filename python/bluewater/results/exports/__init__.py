"""Runs and their packets in the formats of other programs, chosen by the file's ending."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bluewater.errors import InputError
from bluewater.results import packets
from bluewater.results.exports import flent, mahimahi, ns2, pcapng, qlog, speedtest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bluewater.results.result import Result

OF_RUNS: dict[str, Callable[[Result, Path, str | None], None]] = {
    flent.SUFFIX: flent.write,
    qlog.SUFFIX: qlog.write,
    speedtest.SUFFIX: speedtest.write,
}
"""Formats of a run, by the ending of their names."""

OF_PACKETS: dict[str, Callable[[Path, Path, str | None], None]] = {
    pcapng.SUFFIX: pcapng.write,
    mahimahi.SUFFIX: mahimahi.write,
    ns2.SUFFIX: ns2.write,
    qlog.SUFFIX: qlog.write_packets,
    ".parquet": packets.write,
}
"""Formats of the packets of a run, or of a gateway's recording."""


def ending(path: Path) -> str:
    """The ending of a name, which chooses the format.

    Raises:
        InputError: No format has this ending.
    """
    known = dict.fromkeys((*OF_RUNS, *OF_PACKETS))
    for each in known:
        if path.name.endswith(each):
            return each
    raise InputError("unknown format", file=str(path), allowed="a name in " + ", ".join(known))
