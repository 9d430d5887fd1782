"""Two captures, one from each end of a path, as a recording of `identify`."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from conftest import Cli

from bluewater.errors import InputError
from bluewater.study.identify import captures, recording

COUNT = 900
"""Packets at 1 ms, of which every 50th is lost behind the first hundred."""
DELAY = 0.02
Row = tuple[float, int, int, int]
"""Time, number, ECN field, size."""


def rows() -> tuple[list[Row], list[Row]]:
    """What passes both ends: the packets of a flow that fill a queue, then drain."""
    sent = [(k * 1e-3, k, k % 3, 1000) for k in range(COUNT)]
    left, arrived = 0.0, []
    for at, number, ecn, size in sent:
        if number > 100 and number % 50 == 0:
            continue
        left = max(left, at) + 1.2e-3
        arrived.append((left + DELAY, number, 3 if ecn and number % 7 == 0 else ecn, size))
    return sent, arrived


def packet(
    row: Row, payload: bytes | None = None, *, ident: int | None = None, nat: int = 1
) -> bytes:
    _, number, ecn, size = row
    body = payload if payload is not None else struct.pack(">Q", number)
    ident = number if ident is None else ident
    ip = struct.pack(">BBHHHBBH", 0x45, ecn, size, ident & 0xFFFF, 0x4000, 64, 17, 0)
    ends = bytes([10, 0, 0, nat, 10, 0, 9, 9])
    return ip + ends + struct.pack(">HHHH", 1000 + nat, 5000, size - 20, 0) + body.ljust(32, b".")


def ethernet(data: bytes) -> bytes:
    return bytes(12) + b"\x81\x00\x00\x05\x08\x00" + data


def pcap(path: Path, frames: list[tuple[float, bytes]], order: str = "<", link: int = 101) -> Path:
    head = struct.pack(order + "IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, link)
    body = (
        struct.pack(order + "IIII", *divmod(round(at * 1e9), 10**9), len(data), len(data)) + data
        for at, data in sorted(frames)
    )
    path.write_bytes(head + b"".join(body))
    return path


def pcapng(path: Path, frames: list[tuple[float, bytes]]) -> Path:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    blocks = [
        block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
        block(1, struct.pack("<HHIHHI", 1, 0, 0, 9, 1, 9) + struct.pack("<HH", 0, 0)),
    ]
    for at, data in frames:
        time = round(at * 1e9)
        head = struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(data), len(data))
        blocks.append(block(6, head + data))
    path.write_bytes(b"".join(blocks))
    return path


@pytest.mark.parametrize("form", ["pcap", "big-endian", "pcapng"])
def test_packets_of_both_ends_are_matched(form: str, tmp_path: Path) -> None:
    sent, arrived = rows()
    near, far = tmp_path / "near", tmp_path / "far"
    other = (0.5, packet((0, 7, 0, 600), b"elsewhere"))  # of a flow that does not pass the path
    pcap(
        near, [(100 + row[0], packet(row)) for row in sent] + [(100.5, b"\x45" + bytes(50)), other]
    )
    behind = [(500 + row[0], packet(row, nat=2)) for row in arrived]
    if form == "pcapng":
        pcapng(far, [(at, ethernet(data)) for at, data in behind])
    elif form == "pcap":
        pcap(far, [(at, ethernet(data)) for at, data in behind], link=1)
    else:
        pcap(far, behind, order=">")
    made = captures.read(near, far)
    assert made.sent.size == COUNT
    assert set(np.flatnonzero(made.lost)) == set(range(150, COUNT, 50))
    assert (made.size == 1000).all()
    assert (made.ecn == np.arange(COUNT) % 3).all()
    there = ~made.lost
    assert (made.marked == (there & (made.ecn > 0) & (np.arange(COUNT) % 7 == 0))).all()
    expected = np.array([row[0] for row in arrived]) - made.sent[there]
    delay = (made.arrived - made.sent)[there]
    assert delay - delay.min() == pytest.approx(expected - expected.min(), abs=1e-6)


def refused(near: Path, far: Path) -> str:
    with pytest.raises(InputError) as error:
        captures.read(near, far)
    return str(error.value)


def test_packets_of_the_other_way_do_not_count(tmp_path: Path) -> None:
    sent, arrived = rows()

    def back(at: float, number: int) -> tuple[float, bytes]:
        data = packet((0, number, 0, 600), b"answer %d" % number)
        return at, data[:12] + data[16:20] + data[12:16] + data[20:]

    answers = range(0, COUNT, 3)
    near = [(row[0], packet(row)) for row in sent] + [back(k * 1e-3 + DELAY, k) for k in answers]
    far = [(row[0], packet(row)) for row in arrived] + [back(k * 1e-3, k) for k in answers]
    made = captures.read(pcap(tmp_path / "near", near), pcap(tmp_path / "far", far))
    assert made.sent.size == COUNT
    assert set(made.flow) == {0}


def test_captures_that_cannot_be_matched_are_refused(tmp_path: Path) -> None:
    sent, arrived = rows()
    near = pcap(tmp_path / "near", [(row[0], packet(row)) for row in sent])
    far = pcap(tmp_path / "far", [(row[0], packet(row, b"others")) for row in arrived])
    assert "0 UDP packets are in both captures" in refused(near, far)
    same = [
        pcap(tmp_path / f"same{k}", [(row[0], packet(row, b"same", ident=0)) for row in each])
        for k, each in enumerate((sent, arrived))
    ]
    assert "900 of 900 packets look like another one" in refused(*same)
    cut = tmp_path / "cut"
    cut.write_bytes(near.read_bytes()[:-5])
    assert "cut" in refused(cut, far)
    cut.write_bytes(b"sent_s,bytes\n1,2\n")
    assert "neither pcap nor pcapng" in refused(cut, far)


def test_the_command_writes_the_recording_of_captures(cli: Cli, tmp_path: Path) -> None:
    sent, arrived = rows()
    near = pcap(tmp_path / "near.pcap", [(row[0], packet(row)) for row in sent])
    far = pcap(tmp_path / "far.pcap", [(row[0], packet(row)) for row in arrived])
    to = tmp_path / "path.csv"
    done = cli("identify", str(near), "--arrived", str(far), "--to", str(to), keep_out=False)
    assert done.exit_code == 0, done.output
    assert recording.read(to).lost.sum() == len(range(150, COUNT, 50))
