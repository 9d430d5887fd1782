"""The fate of each packet of a gateway's recording, from the gateway's replay."""

from __future__ import annotations

import json
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any

from bluewater import programs
from bluewater.errors import InputError
from bluewater.results.writer import Writer

if TYPE_CHECKING:
    from pathlib import Path


def replay(recording: Path, path: Path) -> None:
    """Writes the packets of a recording to a Parquet file.

    Raises:
        InputError: It cannot be replayed, or the replay's decisions differ from the recorded ones.
        StorageError: The file cannot be written.
    """
    line = [programs.find("bluewater-gateway"), "replay", "--packets", str(recording)]
    with (
        Writer(path) as writer,
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(line, stdout=subprocess.PIPE, stderr=errors, text=True) as program,
    ):
        hashes = []
        for each in program.stdout or ():
            told = json.loads(each)
            if "packets" in told:
                writer.take(told["queue"], dict(told["packets"]))
            else:
                hashes.append(told["decision_hash"])
        if program.wait():
            errors.seek(0)
            said = errors.read().strip().removeprefix("error: ")
            silent = f"{line[0]} could not replay it and gave no reason (code {program.returncode})"
            raise InputError(said.removeprefix(f"{recording}: ") or silent, file=str(recording))
        writer.finish(
            {
                "links": _links(recording),
                "version": f"gateway {_version(line[0])}",
                "decision_hash": " ".join(hashes),
            }
        )


def _version(program: str) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return said.stdout.split()[-1]


def _links(recording: Path) -> list[dict[str, Any]]:
    """The links' settings, from a recording's head."""
    with recording.open("rb") as file:
        file.seek(8)
        length = int.from_bytes(file.read(4), "little")
        links: list[dict[str, Any]] = json.loads(file.read(length))["queues"]
        return links
