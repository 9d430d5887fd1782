"""What the runs of ns2_fig5.csv give in the simulator, with 1000 and with 1040 bytes on the wire.

ns-2 puts 40 bytes of header around 1000 bytes of data; the experiments of Feng02 have packets of
1000 bytes in all. With 1040 bytes a source's rate, which is that of its data, grows by the header
as well, and buffers are in packets as in ns-2. One row a run of the simulator, seed 1; whatever
else is that of the experiments. It needs the package:

    python red_blue_fig5_wire.py > red_blue_fig5_wire.csv
"""

import csv
from pathlib import Path

import bluewater

MIXED = ["10ms", "15ms", "20ms", "25ms", "30ms"]
RED = {"R1": 0.0002, "R3": 0.02, "R4": 0.2}
BLUE = {"freeze_time": "100ms", "increment": 0.02, "decrement": 0.002}

with Path(__file__).with_name("ns2_fig5.csv").open(newline="") as file:
    rows = list(csv.DictReader(file))

print("configuration,buffer,access_ms,sources,packet,seed,loss,utilisation")
for row in rows:
    name, access, source = row["configuration"], row["access_ms"], row["sources"]
    queue = {"aqm": "blue", "params": BLUE}
    if name in RED:
        queue = {"aqm": "red", "params": {"preset": "feng", "w_q": RED[name]}}
    for packet in (1000, 1040):
        pareto = {"app": "pareto", "on": "2s", "off": "3s", "shape": 1.5, "unsent": "withdraw"}
        if source != "withdraw":
            pareto |= {"rate": f"{float(source) * packet / 1000:g}kbit", "unsent": "backlog"}
        hosts = {"transport": "sack", "flows": 1000, "packet": f"{packet}B", "start": "0s..1s"}
        ecn = {"ecn": True, "ecn_timeout": False, "ecn_on_retransmit": True}
        delay = MIXED if access == "mixed" else f"{access}ms"
        whole = bluewater.run(
            {
                "seed": 1,
                "duration": "200s",
                "warmup": "100s",
                "network": {"preset": "feng", "access_delay": delay},
                "queue": [{"buffer": f"{row['buffer']}p"} | queue],
                "traffic": [pareto | hosts | ecn],
            }
        ).summary
        got = (name, row["buffer"], access, source, packet, 1)
        print(*got, f"{whole['loss']:.7f}", f"{whole['utilisation']:.5f}", sep=",", flush=True)
