"""A network beyond a host, of one name server and one web server, and whoever asks them."""

import socket
import sys
import threading
import time


def serve() -> None:
    """Every name is 198.51.100.1; every connection to port 80 is told where it comes from."""

    def names() -> None:
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("203.0.113.1", 53))
        while True:
            query, client = server.recvfrom(512)
            end = query.index(0, 12) + 5
            is_a = query[end - 4 : end - 2] == b"\x00\x01"
            count = b"\x00\x01" if is_a else b"\x00\x00"
            head = query[:2] + b"\x81\x80\x00\x01" + count + bytes(4)
            answer = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04" + bytes([198, 51, 100, 1])
            server.sendto(head + query[12:end] + (answer if is_a else b""), client)

    threading.Thread(target=names, daemon=True).start()
    listener = socket.create_server(("198.51.100.1", 80))
    while True:
        stream, (address, _) = listener.accept()
        stream.sendall(address.encode())
        stream.close()


def ask(host: str, port: int) -> None:
    """Prints the least time of three connections in ms, the address, and what was answered."""
    best, said, at = 1e9, b"", ""
    for _ in range(3):
        at = socket.gethostbyname(host)
        began = time.monotonic()
        with socket.create_connection((at, port), timeout=5) as stream:
            best = min(best, time.monotonic() - began)
            said = stream.recv(100) if port == 80 else b""
    print(f"{1e3 * best:.1f} {at} {said.decode()}")


def knock(host: str, *ports: str) -> None:
    """Prints what becomes of a connection to each port."""
    for port in ports:
        try:
            socket.create_connection((host, int(port)), timeout=2).close()
            print(port, "connected")
        except OSError as error:
            print(port, type(error).__name__)


if sys.argv[1] == "serve":
    serve()
elif sys.argv[1] == "knock":
    knock(*sys.argv[2:])
else:
    ask(sys.argv[2], int(sys.argv[3]))
