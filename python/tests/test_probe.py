"""``bluewater probe``: both ends over loopback, bytes of strangers, and a path with a queue."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from conftest import Cli
from hypothesis import given
from hypothesis import strategies as st

import bluewater
from bluewater import programs
from bluewater.errors import InputError
from bluewater.study.identify import candidates, infer, listener, probe, recording, sender, wire
from bluewater.study.identify.listener import Listener
from bluewater.study.identify.probe import Packets
from bluewater.study.identify.sender import Far
from bluewater.study.identify.wire import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the listener needs Linux")

HOST = "127.0.0.1"


@contextmanager
def listening(lines: list[str] | None = None) -> Iterator[int]:
    """A listener in a thread; its port."""
    end = threading.Event()
    failed: list[BaseException] = []

    def serve(made: Listener) -> None:
        try:
            while not end.is_set():
                made.step(0.02)
        except BaseException as error:
            failed.append(error)

    with closing(Listener(HOST, 0, (lines if lines is not None else []).append)) as made:
        thread = threading.Thread(target=serve, args=(made,))
        thread.start()
        try:
            yield made.port
        finally:
            end.set()
            thread.join()
    assert not failed


@contextmanager
def connected(port: int) -> Iterator[tuple[socket.socket, bytes, Verdict]]:
    """A stranger's connection, with the token and the verdict."""
    with socket.create_connection((HOST, port), 5) as link:
        name, verdict, token = wire.HELLO.unpack(link.recv(wire.HELLO.size, socket.MSG_WAITALL))
        assert name == wire.NAME
        yield link, token, Verdict(verdict)


@contextmanager
def served(port: int) -> Iterator[tuple[socket.socket, bytes]]:
    """A stranger's connection, once the stranger before is gone."""
    for _ in range(100):
        with connected(port) as (link, token, verdict):
            if verdict is Verdict.GO:
                yield link, token
                return
        time.sleep(0.02)
    pytest.fail("the listener serves nobody")


def is_served(port: int) -> bool:
    """Whether a sender gets its answer."""
    with Far(HOST, port) as far:
        return bool((far.send(probe.steady(1e6, 0.1)).arrived >= 0).all())


@pytest.mark.slow
def test_a_probe_over_loopback_has_no_queue(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_DRAINS_S", 0.2)
    monkeypatch.setattr(sender, "SHORTEST_S", 1.0)
    file = tmp_path / "path.csv"
    command = [sys.executable, "-m", "bluewater", "probe", "--listen", f"{HOST}:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        port = re.search(r"port (\d+)", process.stderr.readline())
        assert port
        place = f"{HOST}:{port[1]}"
        options = ["--rate", "20mbit", "--duration", "1s", "--to", str(file)]
        assert cli("probe", place, *options, keep_out=False).exit_code == 0
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 0
        lines = process.stderr.read().splitlines()
    made = recording.read(file)
    assert not made.lost.any()
    assert set(made.ecn) == {0, 1, 2}
    assert len(set(made.flow)) == 50
    assert lines == [f"{HOST}: {len(made.sent)} of {len(made.sent)} packets arrived", "ended"]
    with pytest.raises(InputError, match="nothing to identify"):
        bluewater.identify(file, jobs=1, progress=False)
    refused = cli("probe", place, keep_out=False)
    assert refused.exit_code == 2
    assert "cannot connect" in refused.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "needs HOST, or --listen"),
        (["host", "--listen", "1"], "needs HOST, or --listen"),
        (["--listen", "host:http"], "allowed: [ADDRESS:]PORT"),
        (["--listen", "70000"], "allowed: [ADDRESS:]PORT"),
        (["--listen", "192.0.2.1:5205"], "cannot listen"),
        (["::1"], "stands in brackets"),
        (["user@host"], "HOST[:PORT]"),
        (["host/path"], "HOST[:PORT]"),
        ([":5205"], "HOST"),
        (["host", "--duration", "1s"], "20 … 120 s"),
        (["host", "--rate", "1bit"], "0.2 … 100 Mb/s"),
        (["host:0"], "a port is missing"),
        (["--listen", "[2001:db8::1]:5205"], "[2001:db8::1]:5205"),
        ([f"{HOST}:1", "--to", "/proc/x.csv"], "cannot write"),
        ([f"{HOST}:1", "--to", "/tmp"], "cannot write"),
        (["[::1]:1"], "[::1]:1: cannot connect"),
    ],
)
def test_arguments_are_checked(arguments: list[str], told: str, cli: Cli) -> None:
    refused = cli("probe", *arguments, keep_out=False)
    assert refused.exit_code == 2
    assert told in refused.output


def test_every_packet_is_stamped_with_its_ecn_field() -> None:
    packets = probe.packets(5e6, seconds=6.0)
    some = slice(0, None, 20)
    fewer = Packets(np.arange(len(packets.sent[some])) * 1e-4, *(
        each[some] for each in (packets.size, packets.ecn, packets.flow)
    ))  # fmt: skip
    with listening() as port, Far(HOST, port) as far:
        fates = far.send(fewer)
    assert (fates.ecn == fewer.ecn).all()
    assert not np.isnan(fates.sent).any()
    assert (np.diff(fates.sent) >= 0).all()
    delay = fates.arrived - fates.sent
    assert float(np.median(delay) - delay.min()) < 0.01
    assert fates.missed == 0


def test_an_ipv6_path_is_probed() -> None:
    try:
        made = Listener("::1", 0)
    except InputError:
        pytest.skip("there is no IPv6 here")
    end = threading.Event()

    def serve() -> None:
        while not end.is_set():
            made.step(0.02)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        packets = probe.steady(1e6, 0.2)
        with Far("::1", made.port) as far:
            fates = far.send(Packets(packets.sent, packets.size, packets.ecn + 2, packets.flow))
        assert (fates.ecn == 2).all()
    finally:
        end.set()
        thread.join()
        made.close()


def test_no_bottleneck_is_found_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "MOST", 4e6)
    with (
        listening() as port,
        Far(HOST, port) as far,
        pytest.raises(InputError, match=r"no bottleneck of a steady rate below 3\.6 Mb/s"),
    ):
        sender.find_rate(far)


def test_a_sender_is_one_at_a_time_from_an_address() -> None:
    with listening() as port, connected(port) as (_, _, verdict):
        assert verdict is Verdict.GO
        with connected(port) as (other, _, again):
            assert again is Verdict.BUSY
            assert not other.recv(1)
        with pytest.raises(InputError, match="the listener is busy"):
            Far(HOST, port)


@pytest.mark.parametrize(
    "plan",
    [
        (0, 1000, 1000),
        (wire.MOST_PACKETS + 1, 1000, 1000),
        (1000, 10**9, 1000),
        (1000, 1000, 10**18),
        (2**32 - 1, 2**32 - 1, 2**64 - 1),
    ],
)
def test_absurd_plans_are_refused(plan: tuple[int, int, int]) -> None:
    with listening() as port:
        with connected(port) as (link, _, _):
            link.sendall(wire.PLAN.pack(*plan))
            assert link.recv(1) == wire.VERDICT.pack(Verdict.TOO_MUCH)
            assert not link.recv(1)
        assert is_served(port)


def test_a_session_has_a_last_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MOST_ROUNDS", 2)
    packets = probe.steady(1e6, 0.1)
    with listening() as port, Far(HOST, port) as far:
        for _ in range(2):
            far.send(packets)
        with pytest.raises(InputError, match="refuses so many packets"):
            far.send(packets)


def test_a_silent_sender_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_IDLE_S", 0.2)
    with listening() as port:
        with connected(port) as (link, _, _):
            assert not link.recv(1)
        assert is_served(port)


def test_datagrams_without_the_token_do_not_count() -> None:
    with listening() as port, connected(port) as (link, token, _):
        link.sendall(wire.PLAN.pack(10, 1000, 1000))
        assert link.recv(1) == wire.VERDICT.pack(Verdict.GO)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            for data in (
                wire.HEAD.pack(bytes(16), 1, 1),
                wire.HEAD.pack(token, 1, 10),
                wire.HEAD.pack(token, 1, 3)[:-1],
                wire.HEAD.pack(token, 0, 4),
                wire.HEAD.pack(token, 1, 2),
                wire.HEAD.pack(token, 1, 2),
                b"",
            ):
                other.sendto(data, (HOST, port))
        time.sleep(0.2)
        link.sendall(wire.DONE)
        size = wire.REPLY.size + 10 * 9
        reply = link.recv(size, socket.MSG_WAITALL)
        arrived = np.frombuffer(reply, ">i8", 10, wire.REPLY.size)
        assert np.flatnonzero(arrived >= 0).tolist() == [2]


STRANGE = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda plan, rest: wire.PLAN.pack(*plan) + rest,
        st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)),
        st.binary(max_size=50),
    ),
    st.builds(lambda rest: wire.PLAN.pack(100, 100, 100) + rest, st.binary(max_size=50)),
)


def test_bytes_of_strangers_end_nothing() -> None:
    with listening() as port, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:

        @given(STRANGE, st.binary(max_size=100), st.booleans())
        def strange(told: bytes, datagram: bytes, reads: bool) -> None:
            with served(port) as (link, token), suppress(OSError):
                link.sendall(told)
                other.sendto(datagram, (HOST, port))
                other.sendto(token + datagram, (HOST, port))
                if reads:
                    link.settimeout(0.02)
                    link.recv(100)

        strange()
        with served(port):
            pass


@contextmanager
def answering(speak: Callable[[socket.socket], None]) -> Iterator[int]:
    """A host that is no listener: says what it wants to one connection."""
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            link, _ = server.accept()
            with link:
                link.settimeout(5)
                with suppress(OSError):
                    speak(link)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


HELLO = wire.HELLO.pack(wire.NAME, Verdict.GO, bytes(16))
GO = wire.VERDICT.pack(Verdict.GO)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"", "closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9, "no listener of this version"),
        (HELLO, "closed the connection"),
        (HELLO + b"\xff", "refuses so many packets"),
        (HELLO + GO + wire.REPLY.pack(10**9, 0) + bytes(10**5), "makes no sense"),
        (HELLO + GO + wire.REPLY.pack(10, 0) + bytes(79), "closed the connection"),
        (HELLO + GO + wire.REPLY.pack(10, 0) + bytes(80) + b"\x04" * 10, "makes no sense"),
    ],
)
def test_answers_of_strangers_are_refused(answer: bytes, told: str) -> None:
    def speak(link: socket.socket) -> None:
        link.sendall(answer)
        link.shutdown(socket.SHUT_WR)
        while link.recv(1000):
            pass

    def use(port: int) -> None:
        with Far(HOST, port) as far:
            far.send(probe.steady(1e6, 0.01))

    with answering(speak) as port, pytest.raises(InputError, match=told):
        use(port)


ARRIVALS: dict[str, Callable[[int], NDArray[Any]]] = {
    "random": lambda count: np.random.default_rng(1).integers(-(2**63), 2**63 - 1, count),
    "an hour late": lambda count: np.arange(count) * 10**6 + (np.arange(count) > 9) * 36 * 10**11,
    "backwards": lambda count: (count - np.arange(count)) * 3 * 10**6,
    "years": lambda count: np.arange(count) * 10**15,
}


@pytest.mark.parametrize("name", ARRIVALS)
def test_impossible_arrivals_are_refused(name: str) -> None:
    packets = probe.steady(5e6, 1.5)

    def use(port: int) -> None:
        with Far(HOST, port) as far:
            far.send(packets)

    speak = replying(packets, ARRIVALS[name](len(packets.sent)))
    with answering(speak) as port, pytest.raises(InputError, match="makes no sense"):
        use(port)


def test_a_listener_loses_no_more_than_is_missing() -> None:
    packets = probe.steady(1e6, 0.1)
    count = len(packets.sent)
    with answering(replying(packets, np.arange(count), 10**9)) as port, Far(HOST, port) as far:
        assert far.send(packets).missed == 0


def replying(
    packets: Packets, arrived: NDArray[Any], missed: int = 0
) -> Callable[[socket.socket], None]:
    """A listener that says that packets arrived at these times, ns."""
    count = len(packets.sent)

    def speak(link: socket.socket) -> None:
        link.sendall(HELLO + GO)
        link.recv(wire.PLAN.size, socket.MSG_WAITALL)
        link.recv(len(wire.DONE), socket.MSG_WAITALL)
        link.sendall(wire.REPLY.pack(count, missed) + arrived.astype(">i8").tobytes())
        link.sendall(bytes(count))

    return speak


def test_a_listener_that_speaks_slowly_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "_CONNECTS_S", 0.3)

    def speak(link: socket.socket) -> None:
        for byte in HELLO:
            link.send(bytes([byte]))
            time.sleep(0.1)

    with answering(speak) as port, pytest.raises(InputError, match=r"takes too long|timed out"):
        Far(HOST, port)


def test_a_sender_ends_soon_behind_its_listener() -> None:
    def speak(link: socket.socket) -> None:
        link.sendall(HELLO + GO)
        link.recv(wire.PLAN.size, socket.MSG_WAITALL)

    begin = time.monotonic()
    with (
        answering(speak) as port,
        Far(HOST, port) as far,
        pytest.raises(InputError, match="closed the connection"),
    ):
        far.send(probe.steady(1e6, 10))
    assert time.monotonic() - begin < 5


def test_an_address_of_ipv4_within_ipv6_is_ipv4() -> None:
    packets = probe.steady(1e6, 0.1)
    marked = Packets(packets.sent, packets.size, packets.ecn + 2, packets.flow)
    with listening() as port:
        try:
            far = Far(f"{wire.MAPPED}{HOST}", port)
        except InputError:
            pytest.skip("there is no IPv6 here")
        with far:
            assert (far.send(marked).ecn == 2).all()


@pytest.mark.parametrize("broken", [False, True])
def test_nobody_has_to_read_what_a_listener_says(broken: bool) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    with suppress(BlockingIOError):
        while True:
            os.write(write, bytes(4096))
    os.set_blocking(write, True)
    if broken:
        os.close(read)
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
    command = [sys.executable, "-m", "bluewater", "probe", "--listen", f"{HOST}:{port}"]
    with subprocess.Popen(command, stderr=write) as process:
        try:
            for _ in range(300):
                with suppress(InputError):
                    assert is_served(port)
                    break
                assert process.poll() is None
                time.sleep(0.1)
            assert is_served(port)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(5) == 0


def test_a_stranger_fills_no_log() -> None:
    lines: list[str] = []
    with listening(lines) as port:
        for _ in range(2 * listener._LINES):
            with served(port) as (link, _):
                link.sendall(wire.PLAN.pack(0, 0, 0))
                assert link.recv(1) == wire.VERDICT.pack(Verdict.TOO_MUCH)
    assert len(lines) == listener._LINES


def test_a_listener_without_descriptors_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_REST_S", 0.2)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with closing(Listener(HOST, 0)) as made, socket.socket() as link:
        last = max(made._ready.fileno(), link.fileno())
        spare = [os.open("/dev/null", os.O_RDONLY)]
        while spare[-1] < last:
            spare.append(os.open("/dev/null", os.O_RDONLY))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(spare) + 1, before[1]))
        try:
            link.connect((HOST, made.port))
            begin, steps = time.monotonic(), 0
            while time.monotonic() - begin < 0.5:
                made.step(0.05)
                steps += 1
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            for each in spare:
                os.close(each)
        assert steps < 30
        for _ in range(10):
            made.step(0.05)
        assert len(link.recv(wire.HELLO.size)) == wire.HELLO.size


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="needs root and iproute2")
def test_a_queue_between_namespaces_is_found(tmp_path: Path) -> None:
    """CoDel explains the recording, and no other family does at its defaults."""
    scripts = Path(__file__).parents[2] / "scripts"
    gateway = programs.find("bluewater-gateway")
    subprocess.run(
        [
            *(sys.executable, scripts / "probe.py", gateway, "codel", "--record"),
            *("--duration", "20s", "--folder", tmp_path),
        ],
        check=True,
    )
    seen = recording.read(tmp_path / "codel.csv")
    observed, basics = infer.observe(seen)
    assert basics.rate == pytest.approx(5e6 * 1400 / 1414, rel=0.005)
    # A machine that stops for a moment looks as if others had sent.
    assert basics.cross is None or basics.cross.share < 0.02
    families = [each for each in candidates.FAMILIES if each.ecn or not observed.ecn]
    starts = [(each, candidates.starts(each, observed.room)[0]) for each in families]
    with infer.simulator(seen, observed, 1, 2) as made:
        misfits = made.misfits([observed.candidate(*each) for each in starts])
    best = families[int(np.argmin(misfits))]
    assert best.name == "codel", dict(zip([each.name for each in families], misfits, strict=True))
