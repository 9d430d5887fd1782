"""Whether SFB with 10 x 3 bins finds one flow among 1000 (Feng02 §V.B, feng/sred-memory a).

The flow sends 0.5 Mb/s of 100, five times what each of 999 TCP flows would get. The paper gives no
network and no parameters for it. One row a run of the simulator, for round trips without queue,
buffers, bin sizes (in N-th parts of the buffer; the paper's other bins have 1.5), steps, and seeds,
each of which is a hash of its own: the share of the flow's packets and of the TCP flows' packets
that the penalty took from 20 s to 40 s. It needs the package, and some minutes:

    python sfb_thirty_bins.py > sfb_thirty_bins.csv
"""

import itertools

import bluewater

LEVELS, BINS = 3, 10


def taken(
    access: float, buffer: int, size: float, steps: tuple[float, float], seed: int
) -> list[float]:
    """What the penalty took of the flow's packets, and of those of TCP, in per cent."""
    flow = {
        "transport": "cbr",
        "rate": "0.5mbit",
        "gaps": "poisson",
        "ecn": False,
        "start": "0s..1s",
    }
    tcp = {
        "transport": "sack",
        "flows": 999,
        "ecn": True,
        "ecn_on_retransmit": True,
        "start": "0s..1s",
    }
    params = {
        "levels": LEVELS,
        "bins": BINS,
        "bin_size": f"{round(size * buffer / BINS)}p",
        "increment": steps[0],
        "decrement": steps[1],
    }
    flows = bluewater.run(
        {
            "seed": seed,
            "duration": "40s",
            "warmup": "20s",
            "network": {
                "preset": "feng-10ms",
                "rate": "100mbit",
                "access_rate": "1gbit",
                "access_delay": f"{access}ms",
            },
            "queue": [{"aqm": "sfb", "buffer": f"{buffer}p", "params": params}],
            "traffic": [{"name": "tcp"} | tcp, {"name": "cbr"} | flow],
        }
    ).flows
    sides = [flows.filter(flows["transport"] == name) for name in ("cbr", "sack")]
    return [100 * side["drops_penalty"].sum() / side["arrivals"].sum() for side in sides]


print("round_trip_ms,buffer_packets,bin_size,increment,decrement,seed,flow,tcp")
for access, buffer, size, steps, seed in itertools.product(
    (1, 10, 45),
    (200, 1000, 3000),
    (0.5, 1.0, 1.5),
    ((0.005, 0.001), (0.02, 0.002), (0.1, 0.0001)),
    (1, 2, 3),
):
    flow, tcp = taken(access, buffer, size, steps, seed)
    row = (20 + 4 * access, buffer, size, *steps, seed)
    print(*row, f"{flow:.1f}", f"{tcp:.1f}", sep=",", flush=True)
