"""Raw frames at the interface eth0, in hexadecimal, a line each.

``send`` takes them from standard input, each with the header of the virtio specification (§5.1.6)
that says what is left undone; ``flood`` sends the first one as often as it can for so many seconds.
``receive`` writes those with our sender's address to standard output, VLAN tags in their place.
"""

import contextlib
import socket
import struct
import sys
import time

SOL_PACKET, PACKET_AUXDATA, PACKET_VNET_HDR = 263, 8, 15
ETH_P_ALL = 3
PACKET_OUTGOING = 4
SENDER = bytes.fromhex("020000000099")


def sending() -> socket.socket:
    """A socket for frames with headers."""
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    raw.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    raw.bind(("eth0", 0))
    return raw


def send() -> None:
    """Sends each line."""
    raw = sending()
    for line in sys.stdin:
        raw.send(bytes.fromhex(line))
        time.sleep(0.01)


def flood(seconds: float) -> None:
    """Sends the first line for some time."""
    raw = sending()
    frame = bytes.fromhex(sys.stdin.readline())
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(50):
            # There may be no room now.
            with contextlib.suppress(OSError):
                raw.send(frame)


def receive() -> None:
    """Writes down what comes."""
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
    raw.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    raw.bind(("eth0", ETH_P_ALL))
    while True:
        frame, controls, _, (_, _, kind, *_) = raw.recvmsg(1 << 17, 256)
        if kind == PACKET_OUTGOING or frame[6:12] != SENDER:
            continue
        for level, number, data in controls:
            if (level, number) == (SOL_PACKET, PACKET_AUXDATA):
                status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", data[:20])
                if status & 1 << 4:
                    tag = struct.pack("!HH", tpid if status & 1 << 6 else 0x8100, tci)
                    frame = frame[:12] + tag + frame[12:]
        print(frame.hex(), flush=True)


if sys.argv[1] == "send":
    send()
elif sys.argv[1] == "flood":
    flood(float(sys.argv[2]))
else:
    receive()
