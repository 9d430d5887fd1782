"""Asks an address for an echo, three times at most, and says `reached` if one comes.

``ping`` does it as a program without rights may (a datagram socket), ``raw`` by a raw socket.
"""

import contextlib
import socket
import struct
import sys

how, address = sys.argv[1:]
v6 = ":" in address
family, protocol = (
    (socket.AF_INET6, socket.IPPROTO_ICMPV6) if v6 else (socket.AF_INET, socket.IPPROTO_ICMP)
)
kind, answer = (128, 129) if v6 else (8, 0)
client = socket.socket(family, socket.SOCK_RAW if how == "raw" else socket.SOCK_DGRAM, protocol)
client.settimeout(0.5)
to = socket.getaddrinfo(address, None, family)[0][4]
# Type, code, checksum, identifier, number: the kernel makes the checksum of the others.
checksum = 0xFFFF ^ (kind << 8) ^ 0x4711 if how == "raw" and not v6 else 0
request = struct.pack("!BBHHH", kind, 0, checksum, 0x4711, 0)
for _ in range(3):
    with contextlib.suppress(OSError):
        client.sendto(request, to)
        while True:
            packet = client.recv(2048)
            if packet[20 if how == "raw" and not v6 else 0] == answer:
                print("reached")
                sys.exit()
sys.exit(1)
