"""The same packets at our queue discipline: a scenario whose traffic is a capture of them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import polars as pl
import tomli_w

from bluewater import lab
from bluewater.kernel.fates import Fate
from bluewater.kernel.frames import frames
from bluewater.kernel.settings import OFFSET, START, Setting
from bluewater.results import why

if TYPE_CHECKING:
    from pathlib import Path

    from bluewater.kernel.build import Kernel

SNAP = 128
"""Bytes that the capture has of each packet."""
LONGEST = 1514
"""The longest packet of an interface, by which the kernel's disciplines reckon."""


def fates(setting: Setting, kernel: Kernel, folder: Path) -> list[Fate]:
    """What becomes of each packet; the scenario and the packets stay in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "packets.pcap").write_bytes(capture(setting))
    file = folder / "scenario.toml"
    file.write_text(tomli_w.dumps(scenario(setting, kernel)))
    lab.run(file, packets=folder / "packets.parquet")
    columns = ["left_ns", "marked", "ecn", "fate"]
    rows = pl.read_parquet(folder / "packets.parquet").sort("n").select(columns).rows()
    begin = START + OFFSET
    # Not the last one, of the first group.
    return [
        # Nobody sees a mark on what came with one.
        Fate(
            left - begin if fate == "sent" else None,
            bool(marked) and ecn != "ce" and fate == "sent",
        )
        for left, marked, ecn, fate in rows[:-1]
    ]


def explained(folder: Path, number: int) -> str:
    """What `bluewater why` says about a packet."""
    row, facts = why.find(folder / "packets.parquet", number)
    return "\n".join(why.story(row, facts))


def scenario(setting: Setting, kernel: Kernel) -> dict[str, Any]:
    """The scenario of a setting, as in files."""
    params = dict(setting.params)
    if setting.aqm == "cake":
        params["root"] = "newton-from-16" if kernel.has_exact_roots else "newton"
    if setting.aqm == "fq" and kernel.has_fast_path:
        params["preset"] = "linux"
    end_ms = sum(int(phase.split(":")[0]) for phase in setting.phases.split()) + 5000
    # A discipline takes the first group's packets as usual: one of the longest, when all is over.
    last = {
        "transport": "cbr",
        "rate": "1kbit",
        "packet": f"{LONGEST}B",
        "start": f"{end_ms - 1}ms",
    }
    return {
        "seed": setting.seed,
        "duration": f"{end_ms}ms",
        "link": [{"from": "A", "to": "B", "rate": setting.rate, "delay": "0s", **setting.link}],
        "queue": [
            {"link": "A->B", "aqm": setting.aqm, "buffer": setting.buffer, "params": params}
        ],
        "traffic": [
            {"from": ["A"], "to": ["B"], **last},
            {
                "from": ["A"], "to": ["B"], "transport": "trace", "file": "packets.pcap",
                "start": f"{START + OFFSET}ns",
            },
        ],
    }  # fmt: skip


def capture(setting: Setting) -> bytes:
    """The packets of a setting as a pcap file with nanoseconds."""
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 16, 1)]
    for at, _, frame in frames(setting):
        begin = frame[:SNAP]
        parts += [struct.pack("<IIII", *divmod(at, 10**9), len(begin), len(frame)), begin]
    return b"".join(parts)
