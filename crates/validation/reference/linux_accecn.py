#!/usr/bin/env python3
# ruff: noqa
"""Record what AccECN of a Linux kernel's TCP tells and counts, acknowledgement by acknowledgement.

Needs what `python/bluewater/kernel/uml.py` needs, and a kernel that `linux_build.sh` built.

    linux_accecn.py --kernel PROGRAM [--only TEXT] > linux_accecn.csv

One connection over the network of `linux_tcp.py`, 50 Mb/s and 20 ms, both ends with net.ipv4.tcp_ecn 3. Marks
come at random (netem's `loss … ecn`) or above a step of 1 ms (CoDel's `ce_threshold`); on the way back
acknowledgements are lost at random from 0.1 s on. `option` is net.ipv4.tcp_ecn_option of both ends: 0 none, 2 whenever it
fits, as by default. A row has

- `received` and `counted`: the marks that the receiver saw, and those that the sender took them for;
- `came`: what came to the receiver in order of time and what it answered: d a data segment, c one with CE,
  two digits an acknowledgement: the field ACE and how much of AccECN's option it has (0 to 3 counters, 9 none);
  a T stands before one that came 30 ms or more after what was before it;
- `acks`: each acknowledgement that came to the sender: its field ACE, a point, and for how many segments it
  was the first. Equal ones in a row are written once, with how many behind an x.

`came` begins with the three segments of the handshake: SYN's and SYN-ACK's flags AE, CWR and ECE as a number,
with the field ECN of IP behind it, and what the third segment had in ACE.
"""

import argparse
import mmap
import os
import signal
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python/bluewater/kernel"))
import uml as kernel
import linux_tcp as tcp

COLUMNS = ["setting", "cc", "option", "qdisc", "lost", "seed", "seconds", "mbps", "timeouts",
           "received", "counted", "came", "acks"]  # fmt: skip
FULL = 1500  # packets of `came` that are kept


def settings():
    random = lambda percent: f"netem loss {percent}% ecn limit 1000"
    step = "codel limit 1000 target 400ms interval 400ms ecn ce_threshold 1ms"
    for option in [0, 2]:
        for cc, name, qdisc in [
            ("reno", "no marks", "pfifo limit 60"),
            ("dctcp", "no marks", "pfifo limit 60"),
            ("reno", "1 % marked", random(1)),
            ("dctcp", "1 % marked", random(1)),
            ("dctcp", "5 % marked", random(5)),
            ("dctcp", "20 % marked", random(20)),
            ("dctcp", "step of 1 ms", step),
        ]:
            for lost in [0, 20, 40]:
                yield {"setting": name, "cc": cc, "option": option, "qdisc": qdisc, "lost": lost}


# --- inside


def tap(interface):
    taken = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    taken.setsockopt(socket.SOL_SOCKET, 33, 1 << 28)  # SO_RCVBUFFORCE
    taken.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
    taken.bind((interface, 3))
    return taken


def segments(taken):
    """What was seen: its time, whether it leaves, the field ECN, flags with AE, number, acknowledgement,
    bytes of data, and options by kind."""
    while True:
        try:
            frame, extra, _, where = taken.recvmsg(160, 64, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        if frame[12:14] != b"\x08\0" or frame[23] != 6:
            continue
        seconds, ns = struct.unpack("=qq", extra[0][2])
        t = frame[34:]
        seq, ack, flags = struct.unpack_from("!IIH", t, 4)
        head = 4 * (flags >> 12)
        options, at = {}, 20
        while at < head and t[at]:
            length = 1 if t[at] == 1 else t[at + 1]
            options[t[at]] = t[at + 2 : at + length]
            at += length
        data = struct.unpack_from("!H", frame, 16)[0] - 20 - head
        yield (
            seconds * 10**9 + ns,
            where[2] == 4,
            frame[15] & 3,
            flags & 0x1FF,
            seq,
            ack,
            data,
            options,
        )


def ace(flags):
    return (flags & 0x100) >> 6 | (flags & 0xC0) >> 6


def counters(options):
    found = [options[kind] for kind in [172, 174] if kind in options]
    return len(found[0]) // 3 if found else 9


def came(taken):
    words, last = [], 0
    for at, leaves, field, flags, _, _, data, options in segments(taken):
        if flags & 2:
            words.append(f"{ace(flags)}{field} ")
        elif leaves:
            words.append(f"{'T' * (at - last >= 30_000_000)}{ace(flags)}{counters(options)}")
        elif data:
            words.append("c" if field == 3 else "d")
        else:
            words.append(f"{ace(flags)} ")
        last = at
        if len(words) == FULL:
            break
    return "".join(words)


def acks(taken):
    """Of each acknowledgement ACE, and for how many segments it was the first."""
    una, first, beyond, told = None, None, set(), []
    for _, leaves, _, flags, _, ack, _, options in segments(taken):
        if leaves:
            continue
        if flags & 2:
            first, una = ack, 0
            continue
        number = lambda at: ((at - first) % 2**32) // tcp.PAYLOAD
        had, before = una, len(beyond)
        after = number(ack) if (ack - first) % 2**32 < 2**31 else una
        newly = max(0, after - una) - sum(una <= n < after for n in beyond)
        una = max(una, after)
        beyond = {n for n in beyond if n >= una}
        block = options.get(5, b"")
        for left, right in struct.iter_unpack("!II", block):
            for n in range(number(left), number(right)):
                if n >= una and n not in beyond and number(right) < 2**20:
                    beyond.add(n)
                    newly += 1
        word = f"{ace(flags)}.{newly}"
        if told and told[-1][0] == word:
            told[-1][1] += 1
        else:
            told.append([word, 1])
    return " ".join(word + f"x{times}" * (times > 1) for word, times in told)


def host(s, namespace, interface):
    tcp.be_host(s, namespace, interface)
    kernel.write("tcp_ecn_option", s["option"])


def receive(s, results):
    host(s, "rcv", "r0")
    listener = socket.create_server(("10.0.1.1", 5000))
    connection, _ = listener.accept()

    def count(*_):
        results[0] = struct.unpack_from("=I", connection.getsockopt(6, socket.TCP_INFO, 280), 248)[
            0
        ]

    signal.signal(signal.SIGUSR1, count)
    tcp.drain(connection)
    count()
    while True:
        signal.pause()


def send(s, results):
    host(s, "snd", "s0")
    flow = socket.socket()
    flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, s["cc"].encode())
    flow.connect(("10.0.1.1", 5000))

    def count(*_):
        info = flow.getsockopt(6, socket.TCP_INFO, 280)
        results[1], results[2] = struct.unpack_from("=II", info, 192)[::-1]

    end = time.monotonic() + s["seconds"]
    flow.settimeout(0.01)
    while time.monotonic() < end:
        try:
            flow.send(tcp.BUFFER[: 1 << 18])
        except TimeoutError:
            pass
    count()
    results[3] = results[2]
    time.sleep(s["rest"])  # for what is in the buffers
    count()
    while True:
        signal.pause()


def inside(s):
    kernel.prepare([])
    tcp.build_network(s)
    results = memoryview(mmap.mmap(-1, 4096)).cast("Q")
    taps = []
    for namespace, interface in [("rcv", "r0"), ("snd", "s0")]:
        ready, told = os.pipe()
        pid = os.fork()
        if pid == 0:
            kernel.enter(namespace)
            taken = tap(interface)
            os.write(told, b".")
            signal.signal(signal.SIGUSR2, lambda *_: None)
            signal.pause()
            text = came(taken) if namespace == "rcv" else acks(taken)
            Path(f"/tmp/{namespace}").write_text(text)
            os._exit(0)
        os.read(ready, 1)
        taps.append(pid)
    children = []
    for work in [receive, send]:
        children.append(os.fork())
        if children[-1] == 0:
            try:
                work(s, results)
            finally:
                os._exit(1)
        time.sleep(0.1)
    # The connection is there: a SYN that is sent again would ask for no ECN.
    kernel.batch(
        "tc",
        f"qdisc change dev m0 root netem delay {s['rtt_ms']}ms limit 1000000 loss {s['lost']}%",
    )
    time.sleep(s["seconds"] + s["rest"] + 1)
    os.kill(children[0], signal.SIGUSR1)
    time.sleep(0.1)
    timeouts = tcp.counters(s, *children)["timeouts"]
    for pid in taps:
        os.kill(pid, signal.SIGUSR2)
        os.waitpid(pid, 0)
    text = [Path(f"/tmp/{name}").read_text() for name in ["rcv", "snd"]]
    mbps = results[3] * tcp.PAYLOAD * 8e-6 / s["seconds"]
    return {**s, "mbps": round(mbps, 3), "timeouts": timeouts, "received": results[0],
            "counted": results[1], "came": text[0], "acks": text[1]}  # fmt: skip


# --- outside


def outside():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--only", default="")
    arguments.add_argument("--option", type=int, help="only these")
    arguments.add_argument("--kernel", required=True)
    options = arguments.parse_args()
    print(",".join(COLUMNS))
    for s in settings():
        s = {
            **s,
            "rate_mbps": 50,
            "rtt_ms": 20,
            "burst": 1,
            "ecn": 3,
            "seed": 1,
            "seconds": 8,
            "rest": 10,
        }
        if options.option not in [None, s["option"]] or options.only not in " ".join(
            map(str, s.values())
        ):
            continue
        with tempfile.TemporaryDirectory() as folder:
            row = kernel.run(s, folder, __file__, options.kernel)
        print(",".join(str(row[c]) for c in COLUMNS), flush=True)


if __name__ == "__main__":
    kernel.main(inside, outside)
