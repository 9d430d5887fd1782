"""RED and BLUE at 10 Mb/s before hosts that delay acknowledgements (Feng02 Fig. 13).

What feng/fig13-simulated d says of such hosts: its reading `late-acks`, with acknowledgements delayed
by 100 and 200 ms, SACK and Reno, a RED that marks or drops above max_th, paths of 0.1 and 1 ms, windows
of one and of two packets at the least. One row a run of the simulator. It needs the package:

    python red_blue_delayed_acks.py > red_blue_delayed_acks.csv
"""

import itertools

import bluewater

RED = {"preset": "feng", "mode": "bytes", "min_th": "10kB", "max_th": "40kB", "max_p": 1.0}
BLUE = {"freeze_time": "50ms", "increment": 0.01, "decrement": 0.001}
QUEUES = {
    "RED, drops": {"aqm": "red", "params": RED | {"w_q": 0.002, "above_max": "drop"}},
    "RED, marks": {"aqm": "red", "params": RED | {"w_q": 0.002}},
    "BLUE": {"aqm": "blue", "params": BLUE},
}
TCP = {"packet": "1500B", "start": "0s..1s", "ecn": True, "ecn_on_retransmit": True}
LINK = {"preset": "dumbbell", "rate": "10mbit", "access_delay": "100us"}

print("queue,tcp,delay,delayed_ack_ms,min_window,connections,seed,throughput_percent,loss_percent")
for delay, tcp, wait, window in itertools.product(
    ("1ms", "100us"), ("sack", "reno"), (200, 100), (1, 2)
):
    if wait == 100 and (delay, tcp) != ("1ms", "sack"):
        continue
    for (name, queue), connections, seed in itertools.product(
        QUEUES.items(), (20, 40, 80, 160), (1, 2, 3)
    ):
        flows = {"transport": tcp, "flows": connections, "delayed_ack": f"{wait}ms"}
        whole = bluewater.run(
            {
                "seed": seed,
                "duration": "90s",
                "warmup": "40s",
                "network": LINK | {"delay": delay},
                "queue": [{"buffer": "50kB"} | queue],
                "traffic": [TCP | flows | {"min_window": window}],
            }
        ).summary
        throughput, loss = whole["throughput_bps"] / 1e5, 100 * whole["loss"]
        row = (f'"{name}"', tcp, delay, wait, window, connections, seed)
        print(*row, f"{throughput:.3f}", f"{loss:.4f}", sep=",", flush=True)
