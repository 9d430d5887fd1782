"""Measures how often ``bluewater identify`` is right: ``python scripts/identify.py COUNT SEED``.

Makes recordings of queues with parameters, rates and delays drawn at random, one family after the
other, identifies each, and adds a row for each to docs/measured/identify.csv. With further
arguments, names of ``BESIDE``, one of these disturbs each recording, in turn. With ``foreign``
behind the seed the queues are of FOREIGN; with the name of a program, a kernel in user mode
(crates/validation/reference/linux_build.sh), they are the kernel's; with names of disciplines they
are these. ``python scripts/identify.py SEED,SEED`` counts the rows of seeds.
"""

from __future__ import annotations

import csv
import math
import random
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w

from bluewater.kernel import uml
from bluewater.study.identify import infer, path, probe
from bluewater.study.identify.candidates import FAMILIES
from bluewater.study.identify.recording import Recording
from bluewater.units import duration_text, seconds

if TYPE_CHECKING:
    from bluewater.study.identify.infer import Answer

OUT = Path(__file__).parents[1] / "docs/measured/identify.csv"
INSIDE = Path(__file__).with_name("identify_inside.py")
LINUX = {"preset": "linux"}
_TCP = {"transport": "cubic", "preset": "linux", "packet": "1500B", "start": "0s..1s"}
_PAGES = {"app": "web", "size": "24p", "shape": 1.2, "objects": 4, "off": "2s", "handshake": True}
JITTER = {"jitter ± 2 ms": 4e-3, "jitter ± 5 ms": 10e-3}
"""Delay behind the queue, uniform from 0 to these times, s; packets stay in order."""
TRAFFIC: dict[str, dict[str, Any]] = {
    "datagrams": {"transport": "cbr", "rate": "20kbit"},
    "web": _TCP | _PAGES,
    "1 TCP flow": _TCP,
    "2 TCP flows": _TCP | {"flows": 2},
}
"""Traffic beside the probe, with the path's delay each way: one web user, or bulk flows."""
LOST, MARKED = {"losses": 0.01}, {"marks": 0.05}
"""Random losses and marks in front of the queue."""
BESIDE = (*JITTER, *TRAFFIC, *LOST, *MARKED)
"""What disturbs a recording."""
KERNEL = (
    *("pfifo", "bfifo", "pfifo_head_drop", "sfq", "red", "choke", "sfb"),
    *("codel", "fq_codel", "pie", "fq_pie", "cake", "dualpi2"),
)
"""Disciplines of Linux."""
FOREIGN = (
    *("random-drop", "wred", "pi", "pi2", "rem", "avq", "gsp"),
    *("fred", "sred", "red-pd", "csfq", "m-choke", "curvy-red", "bernoulli"),
)
"""Disciplines that are no candidates."""
IN_PACKETS = "red packets"
"""RED that counts packets, not bytes as in Linux; gentle or not, with ECN or not."""
MAIN = {
    **dict.fromkeys(("red", "choke"), "min_th"),
    **dict.fromkeys(("codel", "cobalt", "fq-codel"), "interval"),
    **dict.fromkeys(("pie", "fq-pie", "ared", "dualpi2"), "target"),
    "sfb": "bin_size",
    "cake": "rtt",
}
"""The parameter that counts, by family; of the others it is the buffer."""
NEAR = 0.2
"""A value is near the true one within this share."""


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
        if family == IN_PACKETS:
            most = round(least * wide)
            buffer, w_q = self.packets(most, 3 * most), round(self.between(0.001, 0.02), 4)
            gentle, ecn = (self.random() < 0.5 for _ in range(2))
            own = linux["choke"] | {"w_q": w_q, "gentle": gentle, "ecn": ecn}
            return buffer, own
        shallow = self.packets(60, 600)
        if family == "red":
            return f"{round(4500 * least * wide)}B", LINUX | linux[family]
        if family in linux:
            return "1000p", LINUX | linux[family]
        return ("1000p", others[family]) if family in others else (shallow, {})

    def words(self, name: str, rate: float) -> tuple[str, str, str, dict[str, Any]]:
        """A discipline of Linux as ``tc`` has it; its family, buffer and parameters."""
        families = {"pfifo": "droptail", "bfifo": "droptail", "pfifo_head_drop": "drop-front"}
        family = families.get(name, name.replace("_", "-"))
        buffer, params = self.queue(family)
        given = {
            key: value.removesuffix("p").removesuffix("B")
            for key, value in params.items() if isinstance(value, str)
        }  # fmt: skip
        if name == "bfifo":
            buffer = f"{1400 * int(buffer[:-1])}B"
        elif name == "sfq":
            buffer = self.packets(40, 127)
        limit = f"{name} limit {buffer[:-1]}"
        if name in ("red", "choke"):
            least, most = int(given["min_th"]), int(given["max_th"])
            in_bytes = 1 if name == "red" else 1000
            burst = (2 * least + most) * in_bytes // 3000 + 1
            limit += (
                f" min {least} max {most} avpkt 1000 burst {burst}"
                f" probability {params['max_p']} bandwidth {round(rate)}bit"
            )
        elif name == "sfb":
            limit += f" target {given['bin_size']} max {given['bin_limit']}"
        elif name == "cake":
            limit = f"cake bandwidth {round(rate)}bit raw rtt {given['rtt']}"
        elif name == "dualpi2":
            limit += f" target {int(given['target'][:-2]) / 1000}ms"
        else:
            for key in ("target", "interval"):
                limit += f" {key} {given[key]}" if key in given else ""
        if name in ("red", "choke", "codel", "pie", "fq_pie") and self.random() < 0.5:
            limit += " ecn"
        return limit, family, buffer, params


def recorded(
    draw: Draw, family: str, folder: Path, beside: str = "", kernel: str = ""
) -> tuple[Recording, dict[str, Any]]:
    """A recording of a family, or of a discipline of a kernel, and what its queue is."""
    rate, base, seed = draw.between(2e6, 2e7), draw.between(0.002, 0.15), draw.randrange(1, 10**6)
    words = ""
    if kernel:
        byte = round(8e9 / rate)  # ns
        rate = 8e9 / byte
        words, family, buffer, params = draw.words(family, rate)
    else:
        buffer, params = draw.queue(family)
        family = family.split()[0]
    sent = probe.packets(rate * draw.uniform(0.93, 1.07), seed=seed)
    chance = np.random.default_rng(seed)
    there = chance.random(sent.sent.size) >= LOST.get(beside, 0.0)
    kept = probe.Packets(sent.sent[there], sent.size[there], sent.ecn[there], sent.flow[there])
    if kernel:
        seen = through(kernel, words, byte, kept, seed)
    else:
        path.capture(kept, folder / "probe.pcapng")
        queue = path.Queue(family, buffer, rate, params)
        text = path.scenario(queue, folder / "probe.pcapng", kept.sent[-1], seed)
        if beside in TRAFFIC:
            table = tomllib.loads(text)
            table["link"][0]["delay"] = duration_text(base)
            table["traffic"].append(TRAFFIC[beside] | {"from": ["A"], "to": ["B"]})
            text = tomli_w.dumps(table)
        seen = path.run(text, int(sent.flow.max()) + 1)
    arrived, after = np.full(sent.sent.size, np.nan), sent.ecn.copy()
    # What CAKE shapes leaves it on a faster line.
    took = 0 if words.startswith("cake") else seen.size * 8 / rate
    arrived[there] = seen.sent + seen.waited + took + base
    after[there] = np.where(seen.marked, 3, seen.ecn)
    if beside in MARKED:
        after = np.where((after > 0) & (chance.random(after.size) < MARKED[beside]), 3, after)
    if beside in JITTER:
        order = np.argsort(arrived, kind="stable")
        late = arrived + chance.uniform(0, JITTER[beside], arrived.size)
        late = np.fmax.accumulate(late[order])
        arrived[order] = np.where(np.isnan(arrived[order]), np.nan, late)
    about = {
        "family": family, "rate_bps": round(rate), "delay_s": round(base, 4), "buffer": buffer,
        "params": params, "words": words,
    }  # fmt: skip
    return Recording(sent.sent, sent.size, sent.ecn, sent.flow, arrived, after), about


def through(kernel: str, words: str, byte: int, sent: probe.Packets, seed: int) -> path.Seen:
    """What a kernel's discipline does to packets.

    Args:
        kernel: The program.
        words: The discipline in the words of ``tc``.
        byte: Time of a byte on the line, ns.
        sent: The packets.
        seed: Of what the discipline draws.
    """
    at = np.rint(sent.sent * 1e9).astype(int)
    packets = np.stack([at, sent.size, sent.ecn, sent.flow], axis=1).tolist()
    # CAKE is the line by itself.
    own = 0 if words.startswith("cake") else byte
    setting = {"words": words, "byte": own, "packets": packets, "seed": seed}
    with tempfile.TemporaryDirectory() as folder:
        left = uml.run(setting, folder, INSIDE, kernel)
    when, ecn = (
        np.array([left.get(str(n), (math.nan, bits))[k] for n, bits in enumerate(sent.ecn)])
        for k in (0, 1)
    )
    marked = (ecn == 3) & (sent.ecn != 3)
    return path.Seen(sent.sent, sent.size, sent.ecn, sent.flow, when * 1e-9 - sent.sent, marked)


def size(text: str) -> float:
    """A value as a number, for comparison; packets as so many full ones' bytes."""
    if text.endswith("s"):
        return seconds(text)
    return float(text.rstrip("pB")) * (probe.FULL if text.endswith("p") else 1)


def main_of(family: str, answer: Answer, about: dict[str, Any]) -> tuple[str, ...]:
    """The main parameter: name, true value, found one and its interval, if the family is right."""
    name = MAIN.get(family, "buffer")
    true = about["buffer"] if name == "buffer" else about["params"][name]
    if answer.queue.aqm != family:
        return name, true, "", "", ""
    found = next(each for each in answer.parameters if each.name == name)
    return name, true, found.value, found.low or "", found.high or ""


COLUMNS = (
    "seed,beside,family,rate_bps,delay_s,buffer,params,answer,misfit,found,main,true,value,low,high"
)


def measure(count: int, seed: int, besides: list[str]) -> None:
    """Measures so many recordings, undisturbed if nothing is named."""
    draw = Draw(seed)
    foreign = besides[:1] == ["foreign"]
    kernel = besides[0] if besides and Path(besides[0]).is_file() else ""
    families = list(FOREIGN if foreign else KERNEL if kernel else (f.name for f in FAMILIES))
    draw.shuffle(families)
    names = besides[foreign or bool(kernel) :]
    allowed = [*families, IN_PACKETS, *BESIDE]
    if unknown := set(names) - set(allowed):
        sys.exit(f"error: {', '.join(sorted(unknown))}: allowed: {', '.join(allowed)}")
    families = [each for each in [*families, IN_PACKETS] if each in names] or families
    besides = [each for each in names if each in BESIDE] or [""]
    new = not OUT.exists()
    with OUT.open("a") as out, tempfile.TemporaryDirectory() as folder:
        rows = csv.writer(out, lineterminator="\n")
        if new:
            print(COLUMNS, file=out)
        for n in range(count):
            family = families[n % len(families)]
            beside = besides[n % len(besides)]
            recording, about = recorded(draw, family, Path(folder), beside, kernel)
            family, words = about.pop("family"), about.pop("words")
            began = time.monotonic()
            answer = infer.identify(recording)
            named = " or ".join(answer.families) or "unknown"
            found = " ".join(f"{p.name}={p.value}" for p in answer.parameters)
            last = main_of(family, answer, about)
            params = " ".join(f"{key}={value}" for key, value in about["params"].items())
            about["params"] = words or params
            misfit = round(answer.misfit, 3)
            rows.writerow([seed, beside, family, *about.values(), named, misfit, found, *last])
            out.flush()
            took = time.monotonic() - began
            print(f"{n + 1}/{count} {family} {beside}: {named}, {took:.0f} s", file=sys.stderr)


def counted(seeds: list[str]) -> None:
    """Prints the answers by what disturbs and by family, and how far parameters are off."""
    with OUT.open() as file:
        rows = [row for row in csv.DictReader(file) if row["seed"] in seeds]
    for kind in dict.fromkeys(row["beside"] for row in rows):
        some = [row for row in rows if row["beside"] == kind]
        named = Counter((row["family"], row["answer"]) for row in some)
        for (family, answer), count in sorted(named.items()):
            print(f"| `{family}` | {answer} | {count} |")
        answered = [row for row in some if row["answer"] != "unknown"]
        right = [row for row in answered if row["family"] in row["answer"].split(" or ")]
        alone = sum(row["family"] == row["answer"] for row in right)
        bounded = [row for row in right if row["value"] and (row["low"] or row["high"])]
        near = sum(abs(size(row["value"]) / size(row["true"]) - 1) <= NEAR for row in bounded)
        inside = sum(
            (size(row["low"]) if row["low"] else 0)
            <= size(row["true"])
            <= (size(row["high"]) if row["high"] else math.inf)
            for row in bounded
        )
        print(f"{kind or 'alone'}: {len(some)} recordings, {len(right)} right ({alone} alone), "
              f"{len(some) - len(answered)} unknown, {len(answered) - len(right)} wrong; "
              f"{near} of {len(bounded)} parameters near, {inside} in their intervals")  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) == 2:
        counted(sys.argv[1].split(","))
    else:
        measure(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
