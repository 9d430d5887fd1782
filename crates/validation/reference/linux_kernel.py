# ruff: noqa
"""Boot a Linux kernel whose time is virtual, and run a measurement as its first process.

Needs Debian's packages user-mode-linux, iproute2, ethtool and a C compiler; no rights. The kernel boots
with the host's files as its root, read-only, and the program that measures as its first process. Its time
is virtual (`linux_clock.c`): computing takes none of it, so that the load of the machine changes little.
Its random numbers come from the seed: where it asks the host for some, a shim answers.

A kernel that was built by `linux_build.sh` keeps virtual time by itself (VIRTUAL), has all that is needed
built in, and its queue disciplines draw what ours draw (`draws`).
"""

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

KERNEL = "linux.uml"
VIRTUAL = False  # whether it is one of linux_build.sh
MODULES = "/usr/lib/uml/modules"
CLOCK = Path(__file__).with_name("linux_clock.c")


# --- inside


def shell(command):
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


LIBC = ctypes.CDLL(None, use_errno=True)


def enter(namespace):
    with open(f"/run/netns/{namespace}") as f:
        if LIBC.setns(f.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
    LIBC.prctl(29, 1)  # PR_SET_TIMERSLACK, 1 ns


def load(path, instead=()):
    """A module of the kernel; what `instead` names is called by other names."""
    with open(path, "rb") as f:
        image = f.read()
    for called, other in instead:
        name = b"\0%s\0" % called
        if image.count(name) != 1:
            raise ValueError(f"{path} does not call {called}")
        image = image.replace(name, (b"\0%s" % other).ljust(len(name), b"\0"))
    if LIBC.syscall(175, image, ctypes.c_ulong(len(image)), b""):  # init_module
        raise OSError(ctypes.get_errno(), path)


def prepare(modules, instead={}):
    """Mounts what programs need, and loads those of the modules that the kernel does not have built in;
    `instead` as for `load`, by the module."""
    for kind, where in [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")]:
        if LIBC.mount(b"none", where.encode(), kind.encode(), 0, None):
            raise OSError(ctypes.get_errno(), where)
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    for name in modules:
        path = f"{MODULES}/{os.uname().release}/kernel/{name}.ko"
        if os.path.exists(path):
            load(path, instead.get(name, ()))
    LIBC.prctl(29, 1)  # PR_SET_TIMERSLACK, 1 ns


def draws(seed):
    """What queue disciplines draw begins anew (linux_draws.c)."""
    Path("/sys/module/draws/parameters/seed").write_text(f"{seed}\n")


def whole_quanta():
    """CAKE rounds nothing (linux_draws.c)."""
    Path("/sys/module/draws/parameters/whole").write_text("y\n")


def attribute(kind, value):
    return (struct.pack("=HH", 4 + len(value), kind) + value).ljust(4 + len(value) + 3 & ~3, b"\0")


def qdisc(interface, parent, handle, name, options):
    """Makes a queue discipline that `tc` does not know, of attributes that are in bytes (RTM_NEWQDISC)."""
    index = socket.if_nametoindex(interface)
    body = struct.pack("=BxxxiIII", 0, index, handle, parent, 0)
    body += attribute(1, name.encode() + b"\0")
    body += attribute(0x8002, b"".join(attribute(k, v) for k, v in options))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.send(struct.pack("=IHHII", 16 + len(body), 36, 0x505, 1, 0) + body)
        error = struct.unpack_from("=i", netlink.recv(1 << 16), 16)[0]
    if error:
        raise OSError(-error, f"qdisc {name}")


def batch(program, commands):
    subprocess.run(f"{program} -batch -", input=commands, text=True, shell=True, check=True)


def write(name, value):
    Path("/proc/sys/net/ipv4", name).write_text(f"{value}\n")


def whole_segments(interfaces):
    """Ends segmentation offloads (ETHTOOL_STSO, _SGSO, _SGRO)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for name in interfaces:
            for command in [0x1F, 0x24, 0x2C]:
                value = ctypes.create_string_buffer(struct.pack("=II", command, 0))
                request = struct.pack("=16sQ16x", name.encode(), ctypes.addressof(value))
                fcntl.ioctl(s, 0x8946, request)  # SIOCETHTOOL


# --- outside


def run(setting, folder, program):
    """Measures a setting by `program` under a kernel of its own: what another left in its memory would
    count."""
    shim, told = f"{folder}/clock.so", f"{folder}/setting.json"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", shim, CLOCK], check=True)
    Path(told).write_text(json.dumps(setting))
    environment = {
        "LD_PRELOAD": shim, "SEED": str(setting["seed"]), "PATH": os.environ["PATH"], "HOME": folder,
        "TMPDIR": "/dev/shm", **setting.get("environment", {}),
    }  # fmt: skip
    # lpj and the initcalls: these would wait for the clock without sleeping.
    command = [
        KERNEL, "mem=2048M", "root=/dev/root", "rootfstype=hostfs", "ro", "quiet", "panic=-1",
        "lpj=1000000", "initcall_blacklist=raid6_select_algo,calibrate_xor_blocks",
        "con=null", "con0=null,fd:1", "init=/usr/bin/python3", f"SETTING={told}",
        *(["time-travel=inf-cpu"] if VIRTUAL else []), "--", "-IS", str(Path(program).resolve()),
    ]  # fmt: skip
    kernel = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    if setting.get("debug"):
        print(kernel.stdout, end="")
    for line in kernel.stdout.splitlines():
        if line.startswith("ROW "):
            return json.loads(line[4:])
    sys.exit(f"no row:\n{kernel.stdout}")


def main(inside, outside):
    """Measures what the setting says if this is the kernel's first process: what `inside` returns is
    the row; else `outside`."""
    if os.getpid() != 1:
        return outside()
    try:
        setting = json.loads(Path(os.environ["SETTING"]).read_text())
        print("ROW " + json.dumps(inside(setting)), flush=True)
    except BaseException as e:
        print("FAILED", repr(e), getattr(e, "stderr", ""), flush=True)
    LIBC.reboot(0x4321FEDC)  # power off
