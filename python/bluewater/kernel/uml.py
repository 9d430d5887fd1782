"""A Linux kernel in user mode whose time is virtual, with a measurement as its first process.

No rights are needed. The kernel boots with the host's files as its root, read-only. Computing takes
none of its time, so the load of the machine changes nothing. Its random numbers come from a seed:
where it asks the host for some, a shim (``guest/clock.c``) answers.

A kernel of :mod:`bluewater.kernel.build` keeps virtual time by itself, has all that is needed built
in, and its queue disciplines draw what ours draw. Debian's ``user-mode-linux`` serves scripts
of ``crates/validation/reference``, which also read this file; the shim keeps its time.

Only the standard library is imported here: the first process reads this file, too.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

DEBIAN = "linux.uml"
MODULES = "/usr/lib/uml/modules"
GUEST = Path(__file__).resolve().parent / "guest"
LINE = 4000
"""Characters that a line of the kernel's console takes."""
PIPE = 1 << 20
"""Bytes that the pipe takes: what waits before it when the kernel halts is lost."""
LIBC = ctypes.CDLL(None, use_errno=True)
ROOT = 0xFFFFFFFF
"""The parent of an interface's first discipline."""


class NoResultError(Exception):
    """A kernel that gave no result; the text says why."""


# --- inside


def shell(command: str) -> str:
    """The output of a command."""
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


def enter(namespace: str) -> None:
    """Enters a network namespace."""
    with Path("/run/netns", namespace).open() as f:
        if LIBC.setns(f.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
    LIBC.prctl(29, 1)  # PR_SET_TIMERSLACK, 1 ns


def load(path: str, instead: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """A module of the kernel; what `instead` names is called by other names."""
    image = Path(path).read_bytes()
    for called, other in instead:
        name = b"\0%s\0" % called
        if image.count(name) != 1:
            raise ValueError(f"{path} does not call {called!r}")
        image = image.replace(name, (b"\0%s" % other).ljust(len(name), b"\0"))
    if LIBC.syscall(175, image, ctypes.c_ulong(len(image)), b""):  # init_module
        raise OSError(ctypes.get_errno(), path)


def prepare(
    modules: Iterable[str], instead: Mapping[str, Sequence[tuple[bytes, bytes]]] | None = None
) -> None:
    """Mounts what programs need, and loads those of the modules that the kernel has not built in.

    `instead` is as for `load`, by the module.
    """
    for kind, where in [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")]:
        if LIBC.mount(b"none", where.encode(), kind.encode(), 0, None):
            raise OSError(ctypes.get_errno(), where)
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    for name in modules:
        path = f"{MODULES}/{os.uname().release}/kernel/{name}.ko"
        if Path(path).exists():
            load(path, (instead or {}).get(name, ()))
    LIBC.prctl(29, 1)  # PR_SET_TIMERSLACK, 1 ns


def draws(seed: int, stream: int = 0, skip: int = 0) -> None:
    """What queue disciplines draw begins anew, with a stream of our generator (guest/draws.h).

    So does what the hash of flows draws, its key.
    """
    for to in Path("/sys/module").glob("*/parameters/draws"):
        to.write_text(f"{seed} {stream} {skip}\n")


def whole_quanta() -> None:
    """CAKE rounds nothing (guest/draws.h)."""
    Path("/sys/module/sch_cake/parameters/whole").write_text("y\n")


def attribute(kind: int, value: bytes) -> bytes:
    """An attribute of a netlink message."""
    return (struct.pack("=HH", 4 + len(value), kind) + value).ljust(4 + len(value) + 3 & ~3, b"\0")


def qdisc(
    interface: str, parent: int, handle: int, name: str, options: Iterable[tuple[int, bytes]]
) -> None:
    """Makes a queue discipline that `tc` does not know, of attributes in bytes (RTM_NEWQDISC)."""
    index = socket.if_nametoindex(interface)
    body = struct.pack("=BxxxiIII", 0, index, handle, parent, 0)
    body += attribute(1, name.encode() + b"\0")
    body += attribute(0x8002, b"".join(attribute(k, v) for k, v in options))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.send(struct.pack("=IHHII", 16 + len(body), 36, 0x505, 1, 0) + body)
        error = struct.unpack_from("=i", netlink.recv(1 << 16), 16)[0]
    if error:
        raise OSError(-error, f"qdisc {name}")


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes in a netlink message."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:length]
        data = data[length + 3 & ~3 :]
    return found


def statistics(interface: str, handle: int) -> dict[str, list[int]]:
    """What a discipline counts (RTM_GETQDISC): ``sent``, ``queue``, and its own words."""
    body = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(interface), handle, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.send(struct.pack("=IHHII", 16 + len(body), 38, 9, 1, 0) + body)
        answer = netlink.recv(1 << 20)
    length, kind = struct.unpack_from("=IH", answer)
    if kind != 36:
        raise OSError(-struct.unpack_from("=i", answer, 16)[0], "statistics")
    found = attributes(attributes(answer[36:length])[7])  # TCA_STATS2
    own = found.get(4, b"")
    return {
        "sent": list(struct.unpack_from("=QI", found[1])),
        "queue": list(struct.unpack_from("=5I", found[3])),
        "own": list(struct.unpack_from(f"={len(own) // 4}I", own)),
    }


def dualpi2(words: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """The attributes for words as of tc-dualpi2(8), which `tc` has since 6.16; at least one."""

    def micro(time: str) -> bytes:
        return struct.pack("=I", round(float(time.removesuffix("ms")) * 1000))

    def number(text: str) -> bytes:
        return struct.pack("=I", int(text))

    def byte(text: str | int) -> bytes:
        return struct.pack("=B", int(text))

    valued: dict[str, tuple[int, Callable[[str], bytes]]] = {
        "limit": (1, number), "target": (3, micro), "tupdate": (4, micro),
        "memory_limit": (2, number), "step_packets": (7, number), "step_thresh": (8, micro),
        "min_qlen_step": (9, number),
        "coupling_factor": (10, byte), "classic_protection": (13, byte),
    }  # fmt: skip
    flags = {
        "overflow": (11, 0), "drop_on_overload": (11, 1),
        "drop_dequeue": (12, 0), "drop_enqueue": (12, 1),
        "l4s_ect": (14, 1), "any_ect": (14, 3), "no_split_gso": (15, 0), "split_gso": (15, 1),
    }  # fmt: skip
    word = iter(["split_gso", *words])
    for name in word:
        if name in flags:
            kind, value = flags[name]
            yield kind, byte(value)
        else:
            kind, convert = valued[name]
            yield kind, convert(next(word))


def cake(words: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """The attributes for words as of tc-cake(8), for ``cake_mq``, which `tc` has since 7.0."""
    sorted_by = ("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence")
    isolated = (
        "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost",
        "triple-isolate",
    )  # fmt: skip
    word = iter(words)
    for name in word:
        if name == "bandwidth":
            yield 2, struct.pack("=Q", int(next(word).removesuffix("kbit")) * 125)
        elif name == "rtt":
            micro = int(next(word).removesuffix("ms")) * 1000
            yield from ((7, struct.pack("=I", micro)), (8, struct.pack("=I", micro // 20)))
        elif name == "memlimit":
            yield 10, struct.pack("=I", int(next(word).removesuffix("mb")) << 20)
        elif name == "ingress":
            yield 15, struct.pack("=I", 1)
        elif name in sorted_by:
            yield 3, struct.pack("=I", sorted_by.index(name))
        else:
            yield 5, struct.pack("=I", isolated.index(name))


def batch(program: str, commands: str) -> None:
    """Has `ip` or `tc` execute commands."""
    subprocess.run(
        f"{program} -batch -",
        input=commands,
        text=True,
        shell=True,
        check=True,
        capture_output=True,
    )


def write(name: str, value: object) -> None:
    """Sets a variable of net.ipv4."""
    Path("/proc/sys/net/ipv4", name).write_text(f"{value}\n")


def whole_segments(interfaces: Iterable[str]) -> None:
    """Ends segmentation offloads (ETHTOOL_STSO, _SGSO, _SGRO)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for name in interfaces:
            for command in [0x1F, 0x24, 0x2C]:
                value = ctypes.create_string_buffer(struct.pack("=II", command, 0))
                request = struct.pack("=16sQ16x", name.encode(), ctypes.addressof(value))
                fcntl.ioctl(s, 0x8946, request)  # SIOCETHTOOL


def watch(interface: str) -> socket.socket:
    """What leaves by the interface, with the time."""
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 28)  # SO_RCVBUFFORCE
    tap.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
    tap.bind((interface, 3))
    return tap


def datagram(frame: bytes) -> tuple[int, int]:
    """The number in a datagram over IPv4, and the second byte of its IP header."""
    (number,) = struct.unpack_from("!I", frame, 42)
    return number, frame[15]


def captured(tap: socket.socket) -> dict[int, tuple[int, int]]:
    """When each datagram left, ns, and the second byte of its IP header, by the number in it."""
    return {number: all_[-1] for number, all_ in segments(tap, datagram).items()}


def segments(
    tap: socket.socket, read: Callable[[bytes], tuple[int, int]]
) -> dict[int, list[tuple[int, int]]]:
    """When each segment of each packet left, ns, and the byte with its DSCP and ECN."""
    found: dict[int, list[tuple[int, int]]] = {}
    while True:
        try:
            frame, extra, _, _ = tap.recvmsg(128, 64, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return found
        number, byte = read(frame)
        seconds, ns = struct.unpack("=qq", extra[0][2])
        found.setdefault(number, []).append((seconds * 1_000_000_000 + ns, byte))


def wait_until(ns: int) -> None:
    """Sleeps to the nanosecond, which no number of seconds is."""
    when = struct.pack("=qq", *divmod(ns, 1_000_000_000))
    LIBC.clock_nanosleep(1, 1, when, None)  # CLOCK_MONOTONIC, TIMER_ABSTIME


# --- outside


def shim(folder: str) -> str:
    """Compiles what stands before the C library of the kernel's process."""
    path = f"{folder}/clock.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", path, GUEST / "clock.c"], check=True)
    return path


def run(
    setting: dict[str, Any], folder: str, program: str | Path, kernel: str | Path = DEBIAN,
    timeout: int | None = None,
) -> Any:  # fmt: skip
    """Measures a setting by `program` under a kernel that has measured no other before.

    `kernel` is Debian's, or one of :mod:`bluewater.kernel.build`. It has `timeout` seconds of
    processor time, and thirty times as many by the clock.

    Raises:
        NoResultError: It gave no result.
    """
    virtual = str(kernel) != DEBIAN
    told = f"{folder}/setting.json"
    Path(told).write_text(json.dumps({**setting, "virtual": virtual}))
    environment = {
        "LD_PRELOAD": shim(folder), "SEED": str(setting["seed"]), "PATH": os.environ["PATH"],
        "HOME": folder, "TMPDIR": "/dev/shm", **setting.get("environment", {}),
    }  # fmt: skip
    # lpj and the initcalls: these would wait for the clock without sleeping.
    command = [
        str(kernel), "mem=2048M", "root=/dev/root", "rootfstype=hostfs", "ro", "quiet", "panic=-1",
        "lpj=1000000",
        "initcall_blacklist=raid6_select_algo,calibrate_xor_blocks",
        "con=null", "con0=null,fd:1", f"init={os.path.realpath(sys.executable)}", f"SETTING={told}",
        *(["time-travel=inf-cpu"] if virtual else []), "--", "-IS", str(Path(program).resolve()),
    ]  # fmt: skip
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, start_new_session=True, pipesize=PIPE,
    ) as process:  # fmt: skip
        if timeout:
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (timeout, timeout))
        try:
            output, _ = process.communicate(timeout=timeout and 30 * timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
    if process.returncode == -9:
        raise NoResultError(f"no end within {timeout} s of processor time")
    if setting.get("debug"):
        print(output, end="")
    return row(output)


def row(output: str) -> Any:
    """What a kernel's first process found, in what the kernel printed.

    Raises:
        NoResultError: Nothing.
    """
    lines = output.splitlines()
    if "END" in lines:
        return json.loads("".join(line[4:] for line in lines if line.startswith("ROW ")))
    last = [line for line in lines if not line.startswith("ROW ")][-12:]
    raise NoResultError("\n".join(last).strip() or "it printed nothing")


def main(inside: Callable[[Any], Any], outside: Callable[[], None] | None = None) -> None:
    """Measures what the setting says if this is the kernel's first process, else calls `outside`.

    What `inside` returns is the row.
    """
    if os.getpid() != 1:
        if outside:
            outside()
        return
    try:
        setting = json.loads(Path(os.environ["SETTING"]).read_text())
        text = json.dumps(inside(setting))
        for at in range(0, len(text), LINE):
            print("ROW " + text[at : at + LINE], flush=True)
        print("END", flush=True)
    except BaseException as e:
        print("FAILED", repr(e), getattr(e, "stderr", ""), flush=True)
    LIBC.reboot(0x4321FEDC)  # power off
