"""Whether RED leaves a link of 10 Mb/s idle, and loses more than BLUE (Feng02 Fig. 13).

What feng/fig13-simulated c rests on. One row a run of the simulator: the testbed of
feng/fig13 for path delays each way, retransmissions that are ECN-capable (RFC 2481) or not
(RFC 3168), and RED that marks ECN-capable packets above max_th, as the paper's text, or drops
them there, as ALTQ's. It needs the package:

    python red_blue_ethernet.py > red_blue_ethernet.csv
"""

import itertools

import bluewater

RED = {"mode": "bytes", "min_th": "10kB", "max_th": "40kB", "max_p": 1.0, "w_q": 0.002}
QUEUES = {
    "RED": {"aqm": "red", "params": RED},
    "RED, drops above max_th": {"aqm": "red", "params": RED | {"above_max": "drop"}},
    "BLUE": {
        "aqm": "blue",
        "params": {"freeze_time": "50ms", "increment": 0.01, "decrement": 0.001},
    },
}

print("queue,delay_ms,ecn_on_retransmit,connections,seed,throughput_percent,loss_percent")
for (name, queue), delay, again, connections, seed in itertools.product(
    QUEUES.items(), (0.1, 1, 10), (False, True), (20, 40, 80), (1, 2, 3)
):
    flows = {"transport": "sack", "flows": connections, "packet": "1500B", "start": "0s..1s"}
    whole = bluewater.run(
        {
            "seed": seed,
            "duration": "90s",
            "warmup": "40s",
            "network": {
                "preset": "dumbbell",
                "rate": "10mbit",
                "delay": f"{delay}ms",
                "access_delay": "100us",
            },
            "queue": [{"buffer": "50kB"} | queue],
            "traffic": [flows | {"ecn": True, "ecn_on_retransmit": again}],
        }
    ).summary
    row = (delay, str(again).lower(), connections, seed)
    throughput, loss = whole["throughput_bps"] / 1e5, 100 * whole["loss"]
    print(f'"{name}"', *row, f"{throughput:.3f}", f"{loss:.4f}", sep=",", flush=True)
