"""What thirty hashes of SFB with 10 x 3 bins do to one flow among 1000 and to the others.

The runs of feng/sred-memory a in its reading `steep`, one for each of thirty seeds, each a hash:
the share of the flow's packets that the penalty took from 20 s to 60 s, in per cent, and how many
of the 999 TCP flows got less than a tenth of a fair share. It needs the package, and a minute:

    python sfb_thirty_bins_hashes.py > sfb_thirty_bins_hashes.csv
"""

import bluewater

ALL = {"start": "0s..1s"}
TCP = {"name": "tcp", "transport": "sack", "flows": 999, "ecn": True, "ecn_on_retransmit": True}
CBR = {"name": "cbr", "transport": "cbr", "rate": "0.5mbit", "gaps": "poisson", "ecn": False}
BINS = {"levels": 3, "bins": 10, "increment": 0.1, "decrement": 0.0001}

print("seed,flow,tcp_shut_out")
for seed in range(1, 31):
    flows = bluewater.run(
        {
            "seed": seed,
            "duration": "60s",
            "warmup": "20s",
            "network": {"preset": "feng-10ms", "rate": "100mbit", "access_rate": "1gbit"},
            "queue": [{"aqm": "sfb", "buffer": "1000p", "params": BINS}],
            "traffic": [TCP | ALL, CBR | ALL],
        }
    ).flows
    cbr, tcp = (flows.filter(flows["transport"] == name) for name in ("cbr", "sack"))
    taken = 100 * cbr["drops_penalty"].sum() / cbr["arrivals"].sum()
    print(seed, f"{taken:.1f}", (tcp["goodput_bps"] < 1e4).sum(), sep=",", flush=True)
