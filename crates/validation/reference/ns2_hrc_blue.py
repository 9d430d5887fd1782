"""Makes ns2_hrc_blue.csv: HRC's network with the BLUE of its author's class for ns, and with RED.

It needs an ns-2 that has the class (docs/sources.md, Feng-ns); no such program is part of this
project. A row is a run: mean packets queued of the constant-rate flow and of all, in windows of
seconds.

    python3 ns2_hrc_blue.py NS > ns2_hrc_blue.csv
"""

import itertools
import subprocess
import sys
import tempfile

WINDOWS = ((20, 120), (0, 20), (0, 50), (0, 60), (0, 100), (0, 120))


def means(lines):
    """Means over time of a queue's trace, one pair a window."""
    area = [[0.0, 0.0] for _ in WINDOWS]
    held, last = [0, 0], 0.0
    for what, time, *_, flow in (line.split()[:8] for line in lines):
        if what not in "+-d":
            continue
        now = float(time)
        for sums, (start, end) in zip(area, WINDOWS, strict=True):
            span = max(0.0, min(now, end) - max(last, start))
            sums[:] = [x + span * n for x, n in zip(sums, held, strict=True)]
        step = 1 if what == "+" else -1
        held, last = [held[0] + step * (flow == "99"), held[1] + step], now
    return [
        x / (end - start) for sums, (start, end) in zip(area, WINDOWS, strict=True) for x in sums
    ]


if __name__ == "__main__":
    names = [f"{who}_{a}_{b}" for a, b in WINDOWS for who in ("udp", "all")]
    print("discipline,tcp,delay_ms,rate_mbps,seed," + ",".join(names))
    networks = [("Reno", 10, 10)] + [
        (tcp, delay, 5)
        for tcp, delay in (("Newreno", 10), ("Sack1", 10), ("Tahoe", 10), ("Reno", 50))
    ]
    with tempfile.NamedTemporaryFile(mode="r") as trace:
        for tcp, delay, seeds in networks:
            for seed, rate, aqm in itertools.product(
                range(1, seeds + 1), (2, 3, 4, 6, 8), ("Blue", "RED")
            ):
                arguments = (aqm, tcp, delay, rate, seed, trace.name)
                subprocess.run([sys.argv[1], "ns2_hrc_blue.tcl", *map(str, arguments)], check=True)
                trace.seek(0)
                row = (f"{x:.2f}" for x in means(trace))
                print(aqm.lower(), tcp, delay, rate, seed, *row, sep=",", flush=True)
