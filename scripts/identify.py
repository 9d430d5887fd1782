"""Measures how often ``bluewater identify`` is right: ``python scripts/identify.py COUNT SEED``.

Makes recordings of queues with parameters, rates and delays drawn at random, one family after the
other, identifies each, and adds a row for each to docs/measured/identify.csv.
"""

from __future__ import annotations

import csv
import math
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bluewater.study.identify import infer, path, probe
from bluewater.study.identify.recording import Recording

OUT = Path(__file__).parents[1] / "docs/measured/identify.csv"
LINUX = {"preset": "linux"}


class Draw(random.Random):
    """Values of parameters, evenly spread over their logarithms."""

    def between(self, low: float, high: float) -> float:
        """A value of this range."""
        return math.exp(self.uniform(math.log(low), math.log(high)))

    def packets(self, low: float, high: float) -> str:
        """A number of packets."""
        return f"{round(self.between(low, high))}p"

    def time(self, low_ms: float, high_ms: float) -> str:
        """A time."""
        return f"{round(1000 * self.between(low_ms, high_ms))}us"

    def queue(self, family: str) -> tuple[str, dict[str, Any]]:
        """Buffer and parameters of a family."""
        least, wide = round(self.between(8, 60)), self.uniform(2.5, 3.5)
        most, size = round(self.between(0.03, 0.3), 3), round(self.between(10, 50))
        codel = {"target": self.time(3, 30), "interval": self.time(50, 250)}
        linux: dict[str, dict[str, Any]] = {
            "red": {"min_th": f"{1500 * least}B", "max_th": f"{round(1500 * least * wide)}B"},
            "choke": {"min_th": f"{least}p", "max_th": f"{round(least * wide)}p"},
            "sfb": {"bin_size": f"{size}p", "bin_limit": f"{size * 5 // 4}p"},
            "codel": codel,
            "fq-codel": codel,
            "pie": {"target": self.time(8, 60)},
        }
        for name in ("red", "choke"):
            linux[name] |= {"max_p": most}
        linux |= dict.fromkeys(("fq-pie", "dualpi2"), linux["pie"])
        others = {"cobalt": codel, "ared": {"target": self.time(4, 30)}}
        others |= {"cake": {"rtt": self.time(20, 300)}}
        shallow = self.packets(60, 600)
        if family == "red":
            return f"{round(4500 * least * wide)}B", LINUX | linux[family]
        if family in linux:
            return "1000p", LINUX | linux[family]
        return ("1000p", others[family]) if family in others else (shallow, {})


def recorded(draw: Draw, family: str, folder: Path) -> tuple[Recording, dict[str, Any]]:
    """A recording of a family, and what its queue is."""
    rate, base, seed = draw.between(2e6, 2e7), draw.between(0.002, 0.15), draw.randrange(1, 10**6)
    buffer, params = draw.queue(family)
    packets = probe.packets(rate * draw.uniform(0.93, 1.07), seed=seed)
    path.capture(packets, folder / "probe.pcapng")
    queue = path.Queue(family, buffer, rate, params)
    text = path.scenario(queue, folder / "probe.pcapng", packets.sent[-1], seed)
    seen = path.run(text, int(packets.flow.max()) + 1)
    arrived = seen.sent + seen.waited + seen.size * 8 / rate + base
    about = {"rate_bps": round(rate), "delay_s": round(base, 4), "buffer": buffer, "params": params}
    after = np.where(seen.marked, 3, seen.ecn)
    made = Recording(seen.sent, seen.size, seen.ecn, seen.flow, arrived, after)
    return made, about


def main(count: int, seed: int) -> None:
    """Measures so many recordings."""
    draw = Draw(seed)
    families = [each.name for each in infer.FAMILIES]
    draw.shuffle(families)
    new = not OUT.exists()
    columns = "seed,family,rate_bps,delay_s,buffer,params,answer,misfit,found"
    with OUT.open("a") as out, tempfile.TemporaryDirectory() as folder:
        rows = csv.writer(out, lineterminator="\n")
        if new:
            print(columns, file=out)
        for n in range(count):
            family = families[n % len(families)]
            recording, about = recorded(draw, family, Path(folder))
            began = time.monotonic()
            answer = infer.identify(recording)
            named = " or ".join(answer.families) or "unknown"
            found = " ".join(f"{p.name}={p.value}" for p in answer.parameters)
            about["params"] = " ".join(f"{key}={value}" for key, value in about["params"].items())
            rows.writerow([seed, family, *about.values(), named, round(answer.misfit, 3), found])
            out.flush()
            took = time.monotonic() - began
            print(f"{n + 1}/{count} {family}: {named}, {took:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
