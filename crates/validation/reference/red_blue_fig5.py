"""How much more buffer R1 needs than BLUE to lose as little, on Feng02's Fig. 5, however read.

What feng/fig5 e rests on: each combination of the delays, sources and programs of RED that are
declared open, RED's R1 with 100, 200 and 500 kB, and B1 to B4 with 100 kB, with what is open of
BLUE (L, and p_m at the start) one at a time. One row a run of the simulator, 1000 sources, seed 1.
It needs the package:

    python red_blue_fig5.py > red_blue_fig5.csv
"""

import itertools

import bluewater

DELAYS = {
    "10 to 30": ["10ms", "15ms", "20ms", "25ms", "30ms"],
    "10": "10ms",
    "11": "11ms",
    "20": "20ms",
}
RATES = ("110", "117", "120", "122.5", "10000")
SOURCES = {"withdraw": {"unsent": "withdraw"}} | {
    rate: {"rate": f"{rate}kbit", "unsent": "backlog"} for rate in RATES
}
R1 = {"preset": "feng", "w_q": 0.0002}
RED = {"as published": {}, "ns-2's rules": {"ns2_rules": True}}
BLUE = {
    "B1": {"freeze_time": "10ms", "increment": 0.0025, "decrement": 0.00025},
    "B2": {"freeze_time": "100ms", "increment": 0.0025, "decrement": 0.00025},
    "B3": {"freeze_time": "10ms", "increment": 0.02, "decrement": 0.002},
    "B4": {"freeze_time": "100ms", "increment": 0.02, "decrement": 0.002},
}
OPEN = {
    "as printed": {},
    "L at 50 %": {"threshold": "50%"},
    "L at 75 %": {"threshold": "75%"},
    "p_m begins at 1": {"initial": 1.0},
}
QUEUES = [
    ("R1", program, buffer, {"aqm": "red", "params": R1 | rules})
    for (program, rules), buffer in itertools.product(RED.items(), (100, 200, 500))
] + [
    (name, variant, 100, {"aqm": "blue", "params": steps | extra})
    for (name, steps), (variant, extra) in itertools.product(BLUE.items(), OPEN.items())
]


def run(queue, buffer, access, source, packet):
    """Loss and use of the link in a run, as text."""
    pareto = {"app": "pareto", "on": "2s", "off": "3s", "shape": 1.5} | source
    hosts = {"transport": "sack", "flows": 1000, "packet": packet, "start": "0s..1s"}
    ecn = {"ecn": True, "ecn_timeout": False, "ecn_on_retransmit": True}
    whole = bluewater.run(
        {
            "seed": 1,
            "duration": "200s",
            "warmup": "100s",
            "network": {"preset": "feng", "access_delay": access},
            "queue": [{"buffer": buffer} | queue],
            "traffic": [pareto | hosts | ecn],
        }
    ).summary
    return f"{whole['loss']:.7f}", f"{whole['utilisation']:.5f}"


if __name__ == "__main__":
    print("configuration,variant,buffer,access_ms,sources,seed,loss,utilisation")
    for (delay, access), (kind, source) in itertools.product(DELAYS.items(), SOURCES.items()):
        for name, variant, buffer, queue in QUEUES:
            found = run(queue, f"{buffer}kB", access, source, "1000B")
            print(name, variant, buffer, delay, kind, 1, *found, sep=",", flush=True)
