"""What the runs of ns2_fig5.csv give in the simulator, with 1000 and with 1040 bytes on the wire.

ns-2 puts 40 bytes of header around 1000 bytes of data; the experiments of Feng02 have packets of
1000 bytes in all. With 1040 bytes a source's rate, which is that of its data, grows by the header
as well, and buffers are in packets as in ns-2. One row a run of the simulator, seed 1; whatever
else is that of the experiments. It needs the package:

    python red_blue_fig5_wire.py > red_blue_fig5_wire.csv
"""

import csv
from pathlib import Path

from red_blue_fig5 import BLUE, DELAYS, run

RED = {"R1": 0.0002, "R3": 0.02, "R4": 0.2}

with Path(__file__).with_name("ns2_fig5.csv").open(newline="") as file:
    rows = list(csv.DictReader(file))

print("configuration,buffer,access_ms,sources,packet,seed,loss,utilisation")
for row in rows:
    name, access, source = row["configuration"], row["access_ms"], row["sources"]
    queue = {"aqm": "blue", "params": BLUE["B4"]}
    if name in RED:
        queue = {"aqm": "red", "params": {"preset": "feng", "w_q": RED[name]}}
    for packet in (1000, 1040):
        sources = {"unsent": "withdraw"}
        if source != "withdraw":
            sources = {"rate": f"{float(source) * packet / 1000:g}kbit", "unsent": "backlog"}
        delay = DELAYS["10 to 30"] if access == "mixed" else f"{access}ms"
        found = run(queue, f"{row['buffer']}p", delay, sources, f"{packet}B")
        print(name, row["buffer"], access, source, packet, 1, *found, sep=",", flush=True)
