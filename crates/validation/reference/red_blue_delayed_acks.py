"""RED and BLUE at 10 Mb/s before hosts that delay acknowledgements (Feng02 Fig. 13).

What feng/fig13-simulated d says of such hosts: its reading `altq` with acknowledgements delayed by
100 and 200 ms, each connection by a timer of its own, and up to 160 connections. One row a run of
the simulator. It needs the package:

    python red_blue_delayed_acks.py > red_blue_delayed_acks.csv
"""

import itertools

import bluewater

RED = {"mode": "bytes", "min_th": "10kB", "max_th": "40kB", "max_p": 1.0, "w_q": 0.002}
BLUE = {"freeze_time": "50ms", "increment": 0.01, "decrement": 0.001}
QUEUES = {
    "RED": {"aqm": "red", "params": RED | {"above_max": "drop"}},
    "BLUE": {"aqm": "blue", "params": BLUE},
}
TCP = {"transport": "sack", "packet": "1500B", "start": "0s..1s", "ecn": True}
LINK = {"preset": "dumbbell", "rate": "10mbit", "delay": "1ms", "access_delay": "100us"}

print("queue,delayed_ack_ms,connections,seed,throughput_percent,loss_percent")
for (name, queue), wait, connections, seed in itertools.product(
    QUEUES.items(), (100, 200), (20, 40, 80, 120, 160), (1, 2, 3)
):
    flows = {"flows": connections, "delayed_ack": f"{wait}ms", "ecn_on_retransmit": True}
    whole = bluewater.run(
        {
            "seed": seed,
            "duration": "90s",
            "warmup": "40s",
            "network": LINK,
            "queue": [{"buffer": "50kB"} | queue],
            "traffic": [TCP | flows],
        }
    ).summary
    throughput, loss = whole["throughput_bps"] / 1e5, 100 * whole["loss"]
    print(name, wait, connections, seed, f"{throughput:.3f}", f"{loss:.4f}", sep=",", flush=True)
