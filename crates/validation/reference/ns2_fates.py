"""One connection whose packets have the same fates in ns-2.35 and in the simulator, drawn.

    python3 ns2_fates.py rows > ns2_fates.csv
    python3 ns2_fates.py PROGRAM [CASES [DROPPED [MARKED]]]

The first writes when ns-2 (ns2_fates.tcl) sends which packet, in some cases. The second draws as
many cases as are asked for, 100 of them, with shares of packets dropped and marked (0.05 and 0.05),
asks PROGRAM, which is target/release/bluewater-fates, and says of each case that differs which
packet is the first. Keys of TCP may stand behind the name of the program, apart by a blank:
'target/release/bluewater-fates recovery="standard"'.
"""

import random
import subprocess
import sys
from pathlib import Path

SECONDS = 30
FATES = 150
# Selective acknowledgements are longer in ns-2; times count as other ones from here on, s.
APART = 0.0008
# Lost of so many, marked of so many, with a SYN lost or not: the rows that are kept.
SHARES = [(0.05, 0.0), (0.05, 0.05), (0.1, 0.2), (0.2, 0.0), (0.05, 0.4), (0.2, 0.2), (0.3, 0.3)]
KEPT = [(*shares, "s") for shares in [*SHARES, (0.02, 0.7)]]
KEPT += [(0.05, 0.05, "d"), (0.1, 0.3, "dd")]


def fates(seed, dropped, marked, begin="s"):
    """Fates from the SYN on, which is sent or dropped."""
    rng = random.Random(seed)
    drawn = (rng.random() for _ in range(FATES))
    return begin + "".join(
        "d" if u < dropped else "m" if u < dropped + marked else "s" for u in drawn
    )


def ns2(case, seed):
    """When ns-2 sends which packet, s; the seed, above 0, is that of its clock's phase."""
    script = Path(__file__).parent / "ns2_fates.tcl"
    made = subprocess.run(
        ["ns", script, str(SECONDS), str(seed), case], capture_output=True, text=True, check=True
    )
    words = (line.split() for line in made.stdout.splitlines())
    return [(float(at), int(number)) for at, number in words]


def ours(program, cases):
    """The same of ours, of each case."""
    made = subprocess.run(
        program, input="\n".join(cases) + "\n", capture_output=True, text=True, check=True
    )
    for line in made.stdout.splitlines():
        pairs = (word.split(":") for word in line.split())
        yield [(int(at) / 1e9, int(number)) for at, number in pairs]


def first_apart(one, other):
    """The place of the first packet that is another, or at another time."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((k for k, (a, b) in pairs if a[1] != b[1] or abs(a[0] - b[0]) > APART), None)


def rows():
    """Writes the rows that are kept."""
    print("case,dropped,marked,fates,sent")
    for number, (dropped, marked, begin) in enumerate(KEPT):
        case = fates(number, dropped, marked, begin)
        sent = " ".join(
            f"{at:.6f}:{number}" for at, number in ns2(case, number + 1)[: len(case) + 20]
        )
        print(f"{number},{dropped},{marked},{case},{sent}")


def compare(program, cases=100, dropped=0.05, marked=0.05):
    """Whether all cases are the same."""
    drawn = [fates(seed, dropped, marked) for seed in range(cases)]
    same = 0
    for seed, (case, here) in enumerate(zip(drawn, ours(program, drawn), strict=True)):
        there = ns2(case, seed + 1)
        place = first_apart(there, here)
        if place is None:
            same += 1
        else:
            print(f"case {seed}, packet {place}: ns-2 {there[place]}, here {here[place]}; {case}")
    print(f"{same} of {cases} are the same")
    return same == cases


if sys.argv[1:] == ["rows"]:
    rows()
elif 2 <= len(sys.argv) <= 5:
    numbers = [kind(text) for kind, text in zip([int, float, float], sys.argv[2:], strict=False)]
    sys.exit(not compare(sys.argv[1].split(" ", 1), *numbers))
else:
    sys.exit(__doc__)
