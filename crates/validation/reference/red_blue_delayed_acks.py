"""RED and BLUE at 10 Mb/s before hosts that delay acknowledgements (Feng02 Fig. 13).

What feng/fig13-simulated d says of such hosts: acknowledgements delayed by 100 and 200 ms, each
connection by a timer of its own, before RED as it is published and as ALTQ has it, with windows of
one and of two packets at the least. One row a run of the simulator. It needs the package:

    python red_blue_delayed_acks.py > red_blue_delayed_acks.csv
"""

import itertools

import bluewater

RED = {"preset": "feng", "mode": "bytes", "min_th": "10kB", "max_th": "40kB", "max_p": 1.0}
BLUE = {"freeze_time": "50ms", "increment": 0.01, "decrement": 0.001}
QUEUES = {
    "RED": {"aqm": "red", "params": RED | {"w_q": 0.002}},
    "RED, ALTQ's": {
        "aqm": "red",
        "params": RED | {"w_q": 0.002, "above_max": "drop", "ns2_rules": True},
    },
    "BLUE": {"aqm": "blue", "params": BLUE},
}
TCP = {"packet": "1500B", "start": "0s..1s", "ecn": True, "ecn_on_retransmit": True}
LINK = {"preset": "dumbbell", "rate": "10mbit", "delay": "1ms", "access_delay": "100us"}
HOSTS = [("sack", 200, 1), ("reno", 200, 1), ("sack", 100, 1), ("sack", 200, 2)]

print("queue,tcp,delayed_ack_ms,min_window,connections,seed,throughput_percent,loss_percent")
for (tcp, wait, window), (name, queue), connections, seed in itertools.product(
    HOSTS, QUEUES.items(), (20, 40, 80, 160), (1, 2, 3)
):
    flows = {"transport": tcp, "flows": connections, "delayed_ack": f"{wait}ms"}
    whole = bluewater.run(
        {
            "seed": seed,
            "duration": "90s",
            "warmup": "40s",
            "network": LINK,
            "queue": [{"buffer": "50kB"} | queue],
            "traffic": [TCP | flows | {"min_window": window}],
        }
    ).summary
    throughput, loss = whole["throughput_bps"] / 1e5, 100 * whole["loss"]
    row = (f'"{name}"', tcp, wait, window, connections, seed)
    print(*row, f"{throughput:.3f}", f"{loss:.4f}", sep=",", flush=True)
