"""``probe``: what a real path does to packets, for ``identify``."""

from __future__ import annotations

import os
import select
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from bluewater import lab
from bluewater.cli.console import note
from bluewater.cli.group import example
from bluewater.errors import InputError
from bluewater.study.identify.listener import Listener
from bluewater.study.identify.wire import PORT


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(probe)


@example(
    f"bluewater probe --listen {PORT}",
    "bluewater probe host.example",
    "bluewater probe host.example --rate 10mbit --to path.csv",
)
def probe(
    host: Annotated[
        str | None,
        typer.Argument(metavar="HOST[:PORT]", help="Where `bluewater probe --listen` runs."),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="[ADDRESS:]PORT", help="Be the far end, for TCP and UDP, until Ctrl-C."
        ),
    ] = None,
    to: Annotated[Path, typer.Option(metavar="FILE", help="Where the recording goes.")] = Path(
        "probe.csv"
    ),
    rate: Annotated[
        str | None,
        typer.Option(help="The bottleneck's rate, such as 10mbit.", show_default="found"),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            help="About how long to probe, such as 30s.",
            show_default="30s, and less above 10 Mb/s",
        ),
    ] = None,
) -> None:
    """Record what the path to a host does to packets.

    The recording is for `bluewater identify`. Datagrams overload the path for seconds: use it only
    on paths of your own. Neither end needs root. The far end needs Linux.
    """
    if (host is None) == (listen is None):
        raise InputError("a probe needs HOST, or --listen", hint="`bluewater probe --help`")
    if listen is not None:
        _listen(*_place(listen if ":" in listen else f":{listen}", "--listen"))
        return
    name, port = _place(host or "", "HOST")
    if port == 0:
        raise InputError("a port is missing", key="HOST", value=host, allowed="1 … 65535")
    if not name:
        raise InputError("HOST is missing", key="HOST", value=host, allowed="HOST[:PORT]")
    made = lab.probe(name, to, port=port, rate=rate, duration=duration)
    note(f"recording: {made.resolve()}")
    note(f"hint: `bluewater identify {to}`")


def _place(text: str, key: str) -> tuple[str, int]:
    """Name and port; an address of IPv6 stands in brackets."""
    try:
        parts = urlsplit(f"//{text}")
        if parts.netloc != text or parts.username is not None:
            raise ValueError
        port = parts.port
    except ValueError:
        allowed = "[ADDRESS:]PORT" if key == "--listen" else "HOST[:PORT]"
        raise InputError(
            "not an address and a port", key=key, value=text.removeprefix(":"), allowed=allowed,
            hint="an address of IPv6 stands in brackets, as [::1]:5205",
        ) from None  # fmt: skip
    return parts.hostname or "", PORT if port is None else port


def _listen(address: str, port: int) -> None:
    with closing(Listener(address, port, _log)) as listener:
        _log(f"listening at port {listener.port} of TCP and UDP; Ctrl-C ends")
        try:
            while True:
                listener.step()
        except KeyboardInterrupt:
            _log("ended")


def _log(text: str) -> None:
    """Writes a line to stderr, unless nobody reads there: a listener must not wait for that."""
    ready = select.poll()
    ready.register(_STDERR, select.POLLOUT)
    with suppress(OSError):
        if ready.poll(0):
            os.write(_STDERR, f"{text}\n".encode())


_STDERR = 2
