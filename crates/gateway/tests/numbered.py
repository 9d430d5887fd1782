"""Sends numbered datagrams of three flows to another host, and notes those that come from there.

numbered.py TO DATAGRAMS_A_SECOND SECONDS READY OTHER_READY > RESULT
"""

import contextlib
import json
import socket
import struct
import sys
import threading
import time
from pathlib import Path

PAYLOAD = 472
FORCE_BUFFER = 33  # SO_RCVBUFFORCE
ENOUGH = 8 << 20

to, rate, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
ready, other = map(Path, sys.argv[4:])
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ENOUGH)
with contextlib.suppress(PermissionError):
    receiver.setsockopt(socket.SOL_SOCKET, FORCE_BUFFER, ENOUGH)
receiver.bind(("", 9000))
receiver.settimeout(2)
came = []


def receive() -> None:
    """Until nothing comes for a while: flow, number and time of each."""
    with contextlib.suppress(TimeoutError):
        while True:
            came.append((*struct.unpack("!BI", receiver.recv(2048)[:5]), time.monotonic()))


ready.touch()
while not other.exists():
    time.sleep(0.01)
thread = threading.Thread(target=receive)
thread.start()
senders = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
first = time.monotonic()
total = int(rate * seconds)
for number in range(total):
    time.sleep(max(0, first + number / rate - time.monotonic()))
    flow = number % len(senders)
    senders[flow].sendto(struct.pack("!BI", flow, number).ljust(PAYLOAD, b"\0"), (to, 9000))
thread.join()
json.dump({"sent": total, "first": first, "came": came}, sys.stdout)
