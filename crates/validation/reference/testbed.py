#!/usr/bin/env python3
# ruff: noqa
"""Rates and round trips on a testbed of real hosts, as rows of CSV.

Sarpkaya, Fund and Panwar, "To adopt or not to adopt L4S-compatible congestion control?" (PAM 2025): Linux senders,
100 Mb/s, ten runs of a minute with iperf3, of which these are the means. Needs the folder `Data` of the repository
fatihsarpkaya/L4S-PAM2025, which the authors publish.

    testbed.py DATA > testbed.csv

The queue is an htb class: bfifo of so many BDPs, fq as one queue that marks what waited (`step`), DualPI2. One flow
of Prague, or so many, shares it with as many or others of the second kind. The rates are sums.
"""

import json
import statistics
import sys
from pathlib import Path

QUEUES = {"fifo": "FIFO_none", "step": "single_queue_FQ_{ms}", "dualpi2": "DualPI2_{ms}"}
ONE = "1vs1 flow experiments/Prague vs Classic"
MANY = "Multiple-flow Experiments/cubic_ECN_Prague_1_vs_N_N_vs_1_N_vs_N"
# The second kind, the names of its files and of its flows, and the round trip.
KINDS = {
    "cubic": ("cubic_noecn", "cubic", 10, 0),
    "cubic+ecn": ("cubic_ecn", "cubic", 10, 1),
    "bbr+ecn": ("bbrv3_ecn", "bbr3", 10, 1),
    "bbr+low": ("ecnlow-bbrv3", "ecnlow-bbr3", 2, 1),
}
ROWS = [
    (kind, queue, bdps, 1, 1)
    for kind, queues in {
        "cubic": ["fifo", "step"], "cubic+ecn": ["fifo", "dualpi2"],
        "bbr+ecn": ["fifo", "step", "dualpi2"], "bbr+low": ["dualpi2"],
    }.items()
    for queue in queues
    for bdps in ([0.5, 1, 2] if queue == "fifo" else [1, 2] if queue == "step" else [2])
] + [("cubic+ecn", "dualpi2", 2, n, m) for n, m in [(1, 10), (5, 5), (10, 10), (25, 25)]]  # fmt: skip


def mean(data, name, of):
    found = [value for key, value in data.items() if key.rsplit("_", 1)[0] == name]
    if len(found) != 10:
        raise ValueError(f"{len(found)} runs of {name} in {of}")
    return statistics.mean(found)


def main(folder):
    print("queue,bdps,rtt_ms,second,flows,others,first_mbps,second_mbps,first_ms,second_ms")
    for kind, queue, bdps, n, m in ROWS:
        files, flow, rtt, ecn = KINDS[kind]
        setting = f"{bdps:.1f}_100_{rtt}_{QUEUES[queue].format(ms=rtt // 2)}_0_3_{ecn}"
        if n + m > 2:
            setting += f"_{n}_{m}"
        values = []
        for what in ["tput", "srtt"]:
            for name, end in [("prague", "tx_L4S"), (flow, "tx_legacy")]:
                path = f"{MANY}_{what}_data.json" if n + m > 2 else f"{ONE}/{files}_{what}_{end}"
                path += "" if n + m > 2 else "_2ms.json" if rtt == 2 else ".json"
                values.append(
                    mean(json.loads((folder / path).read_text()), f"{name}_{setting}", path)
                )
        print(queue, bdps, rtt, kind, n, m, *(f"{value:.2f}" for value in values), sep=",")


main(Path(sys.argv[1]))
