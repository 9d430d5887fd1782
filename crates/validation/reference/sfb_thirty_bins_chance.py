"""What thirty bins can tell of one flow among a thousand, whatever SFB's parameters (Feng02 §V.B).

A bin's p_m goes by the bin's length alone (Fig. 14), and 999 TCP flows are alike. So a bin goes
to p_m = 1 if it holds more than some number of flows, where the nonresponsive one, which sends five
fair shares, counts as five; bin size, buffer, steps and round trip decide what number. One row for
each: how often the three bins of the flow, each of a tenth of all others by chance, are all above,
and how often those of a TCP flow are, in per cent.

    python sfb_thirty_bins_chance.py > sfb_thirty_bins_chance.csv
"""

from math import comb


def all_three(others: int, flow: int, least: int) -> float:
    """How often each of a flow's three bins holds more than ``least``, in per cent."""
    more = range(least + 1 - flow, others + 1)
    one = sum(comb(others, n) * 0.1**n * 0.9 ** (others - n) for n in more)
    return 100 * one**3


print("more_than,flow,tcp")
for least in range(80, 126):
    flow, tcp = all_three(999, 5, least), all_three(998, 1, least)
    print(least, f"{flow:.2f}", f"{tcp:.2f}", sep=",")
