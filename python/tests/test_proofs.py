"""What proofs and causes quote of kept runs is what those rows give."""

from __future__ import annotations

import csv
import math
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from test_quoted import quotes

from bluewater.results.stats import estimate
from bluewater.study.experiments import experiment, verdicts

REFERENCE = Path(__file__).parents[2] / "crates" / "validation" / "reference"

Row = dict[str, str]


@cache
def rows(name: str) -> list[Row]:
    with (REFERENCE / name).open(newline="") as file:
        return list(csv.DictReader(file))


def redpd(figure: str, number: str = "", **wanted: str) -> list[Row]:
    wanted |= {"figure": figure} | ({"number": number} if number else {})
    found = [row for row in rows("ns2_redpd.csv") if wanted.items() <= row.items()]
    assert found, (figure, number, wanted)
    return found


def mbps(row: Row) -> list[float]:
    return [float(each) for each in row["mbps"].split()]


def spread(values: Sequence[float], digits: int = 1) -> str:
    found = estimate(list(values))
    return f"{found.mean:.{digits}f} ± {found.half_width:.{digits}f}"


def ends(values: Sequence[float], digits: int = 0) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def listed(values: Iterator[float] | Sequence[float], digits: int) -> str:
    *most, last = (f"{each:.{digits}f}" for each in values)
    return f"{', '.join(most)} and {last}"


def back(share: str) -> str:
    return spread([float(row[share]) for row in rows("ns2_redpd_release.csv")])


def declared() -> list[float]:
    return [float(row["declared_s"]) for row in rows("ns2_redpd_declared.csv")]


def within(share: str) -> int:
    times = [float(row[share]) for row in rows("ns2_redpd_release.csv")]
    return sum(9 <= each <= 12.2 for each in times)


def cut(number: str) -> list[float]:
    return [float(row["cut_s"]) - 50 for row in redpd("11", number)]


def filtered(p: str) -> str:
    """What the filter takes of a quarter of f(R, p), in percent, by what leaves the queue."""
    sent = 0.25 * 0.008 * math.sqrt(1.5 / float(p)) / 0.04
    taken = [
        100 * (1 - mbps(row)[0] / (sent * (1 - float(row["ambient"]))))
        for row in redpd("13", f"0.25@{p}")
    ]
    assert min(taken) > 0
    return ends(taken, 1)


def gains(p: str, gamma: str) -> list[float]:
    share = {
        (row["seed"], row["p"], row["gamma"]): float(row["share"])
        for row in rows("ns2_redpd_fig13.csv")
    }
    seeds = [seed for seed, at, multiple in share if (at, multiple) == (p, gamma)]
    return [100 * (share[seed, p, gamma] / share[seed, p, "1"] - 1) for seed in seeds]


def short(rtt: str, seed: str) -> float:
    """Mb/s of a flow of 40 ms in Fig. 22."""
    (row,) = redpd("22", rtt_ms=rtt, seed=seed)
    return statistics.mean(mbps(row)[:2])


def apart(figure: str, number: str) -> list[float]:
    """By how many percent small packets get more than large ones."""
    found = (mbps(row) for row in redpd(figure, number))
    return [100 * (sum(each[8:]) / sum(each[:8]) - 1) for each in found]


def hrc(column: str, rate: str, tcp_flows: str = "10", udp_flows: str = "1") -> list[float]:
    """What the report's RED does in ns-2, a value a seed."""
    wanted = {"rate_mbps": rate, "tcp_flows": tcp_flows, "udp_flows": udp_flows}
    return [float(row[column]) for row in rows("ns2_hrc.csv") if wanted.items() <= row.items()]


ABOVE = ["1.5", "2", "3", "4", "6", "8"]


def below_max_th(column: str) -> str:
    return " | ".join(f"{100 * statistics.mean(hrc(column, rate)):.0f}" for rate in ABOVE)


def below_over_all() -> str:
    seeds = zip(*(hrc("average_below_max_th", rate) for rate in ABOVE), strict=True)
    return spread([100 * statistics.mean(each) for each in seeds])


def queue_below_half() -> str:
    most = max(max(hrc("packets_below_max_th", rate)) for rate in ABOVE)
    return "less than half of the time, at each rate and in each seed" if most < 0.5 else f"{most}"


def by_mix(rate: str) -> list[float]:
    """By how much UDP differs between the mixes of Fig. 16 under the report's RED, Mb/s."""
    mixes = [hrc("udp_mbps", rate, *mix) for mix in (("1", "1"), ("10", "1"), ("10", "5"))]
    return [max(each) - min(each) for each in zip(*mixes, strict=True)]


def blue_by_red(tcp: str, delay: str, column: str = "udp_20_120") -> list[float]:
    """The UDP flow's queue under a port of the author's BLUE by that under RED, a value a seed."""
    sums: dict[str, dict[str, float]] = {}
    for row in rows("ns2_hrc_blue.csv"):
        if (row["tcp"], row["delay_ms"]) == (tcp, delay):
            seed = sums.setdefault(row["seed"], {"blue": 0.0, "red": 0.0})
            seed[row["discipline"]] += float(row[column])
    return [each["blue"] / each["red"] for each in sums.values()]


OTHERS = [("Newreno", "10"), ("Sack1", "10"), ("Tahoe", "10"), ("Reno", "50")]


def other_blue_by_red() -> str:
    return ends([statistics.mean(blue_by_red(*each)) for each in OTHERS], 2)


def other_blue_spread() -> str:
    return "± " + ends([estimate(blue_by_red(*each)).half_width or 0.0 for each in OTHERS], 2)


LOADS = ["20", "40", "80", "160"]


def late_acks(column: str, name: str, **hosts: str) -> dict[str, list[float]]:
    """What hosts that acknowledge late do of one queue, by load and TCP, means over seeds."""
    wanted = {"queue": name} | hosts
    file = "red_blue_delayed_acks.csv" if hosts else "ns2_late_acks.csv"
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows(file):
        if wanted.items() <= row.items():
            key = (row["connections"], row.get("tcp", ""))
            found.setdefault(key, []).append(float(row[column]))
    return {
        load: [statistics.mean(each) for key, each in found.items() if key[0] == load]
        for load in LOADS
    }


ALTQ = "RED, ALTQ's"
ONE_PACKET = {"delayed_ack_ms": "200", "min_window": "1"}


def used_alone(name: str) -> list[float]:
    by_load = late_acks("throughput_percent", name, **ONE_PACKET)
    return [mean for each in by_load.values() for mean in each]


def used_late(name: str) -> str:
    return ends(used_alone(name))


def lost_late(name: str, load: str) -> list[float]:
    return late_acks("loss_percent", name, **ONE_PACKET)[load]


def used_late_in_ns2(name: str, loads: Sequence[str] = LOADS) -> str:
    used = late_acks("throughput_percent", name)
    return listed([used[load][0] for load in loads], 0)


def beyond_red(wait: str) -> str:
    hosts = {"delayed_ack_ms": wait, "min_window": "1", "tcp": "sack"}
    used = [late_acks("throughput_percent", name, **hosts) for name in ("BLUE", "RED")]
    return listed([used[0][load][0] - used[1][load][0] for load in LOADS[:3]], 1)


def udp_queued(discipline: str, tcp: str, rtt: str) -> int:
    return round(
        statistics.mean(
            float(row["udp_packets"])
            for row in rows("hrc_model.csv")
            if (row["discipline"], row["tcp"], row["rtt_ms"], row["rate_mbps"])
            == (discipline, tcp, rtt, "0.8")
        )
    )


def by_flows(column: str, *settings: tuple[str, str]) -> list[float]:
    return [
        statistics.mean(
            float(row[column])
            for row in rows("hrc_model_flows.csv")
            if (row["flows"], row["mbps"]) == each
        )
        for each in settings
    ]


ONE = [("1", "2"), ("1", "4"), ("1", "8")]
EACH = [("5", "2"), ("5", "4"), ("5", "8")]
TOGETHER = [("5", "0.4"), ("5", "0.8"), ("5", "1.6")]


def filter_below() -> str:
    sums: dict[str, list[int]] = {}
    for row in rows("ns2_redpd_below.csv"):
        assert int(row["filtered"]) > 0
        packets, taken = sums.get(row["rtt_ms"], [0, 0])
        sums[row["rtt_ms"]] = [packets + int(row["packets"]), taken + int(row["filtered"])]
    return listed([100 * taken / packets for packets, taken in sums.values()], 2)


def red_losses(max_ths: Sequence[str]) -> Iterator[float]:
    for wanted in max_ths:
        yield statistics.mean(
            100 * float(row["loss"])
            for row in rows("ns2_red_steps.csv")
            if (row["access_ms"], row["buffer"], row["max_th"]) == ("mixed", "200", wanted)
            and row["queue"] == "RED"
        )


def tfrc(queue: str, numbers: str) -> list[float]:
    """What TFRC of 120 ms gets over what TCP gets in Fig. 20, by the number of flows of a kind."""
    means = []
    for number in numbers.split():
        found = [mbps(row) for row in redpd("20", number, queue=queue)]
        n = int(number)
        means.append(
            statistics.mean(sum(each[3 * n :]) / sum(each[2 * n : 3 * n]) for each in found)
        )
    return means


def own_tfrc(queue: str, seed: str, rtt: str, flows: str = "") -> float:
    """The same by the authors' own script, of 30 or 120 ms, the mean over its numbers of flows."""
    return statistics.mean(
        float(row[f"tfrc_{rtt}_mbps"]) / float(row[f"tcp_{rtt}_mbps"])
        for row in rows("ns2_redpd_tfrc.csv")
        if (row["queue"], row["seed"]) == (queue, seed) and flows in ("", row["flows"])
    )


SEEDS = [str(seed) for seed in range(1, 11)]


def lost_to_filter(kind: str) -> str:
    """What flows of 30 ms lose to RED-PD by the same script, the mean over its numbers."""

    def gets(queue: str, seed: str) -> list[float]:
        chosen = [r for r in rows("ns2_redpd_tfrc.csv") if (r["queue"], r["seed"]) == (queue, seed)]
        return [float(row[f"{kind}_30_mbps"]) for row in chosen]

    def lost(seed: str) -> float:
        pairs = zip(gets("RED-PD", seed), gets("RED", seed), strict=True)
        return statistics.mean(100 * (1 - filtered / plain) for filtered, plain in pairs)

    return spread([lost(seed) for seed in SEEDS])


def turns() -> list[float]:
    """By how much RED is on one side of an even share and RED-PD on the other."""
    found = [min(own_tfrc("RED", s, "120") - 1, 1 - own_tfrc("RED-PD", s, "120")) for s in SEEDS]
    assert min(found) > 0
    return found


def deteriorates(queue: str) -> str:
    return spread(
        [own_tfrc(queue, s, "30", "8") - own_tfrc(queue, s, "30", "32") for s in SEEDS], 2
    )


def window(p: float) -> float:
    """The mean window where each packet is marked with p: one more, or half where any is marked."""
    chance = {1: 1.0}
    for _ in range(200):
        after: dict[int, float] = {}
        for size, share in chance.items():
            spared = (1 - p) ** size
            for then, of in ((size + 1, spared), (max(1, size // 2), 1 - spared)):
                after[then] = after.get(then, 0) + share * of
        chance = {size: share for size, share in after.items() if share > 1e-9}
    return sum(size * share for size, share in chance.items())


def marked_for(packets: float) -> float:
    """The p, in hundredths, from which on windows are no larger in the mean."""
    return next(p / 100 for p in range(1, 100) if window(p / 100) <= packets)


def needed() -> list[int]:
    """With how many kB R1 loses no more than BLUE's mean with 100; 0 if with none of three."""
    lost: dict[tuple[str, ...], float] = {}
    for row in rows("red_blue_fig5.csv"):
        names = ("access_ms", "sources", "configuration", "variant", "buffer")
        lost[tuple(row[name] for name in names)] = float(row["loss"])
    kinds = sorted({key[:2] for key in lost})
    variants = sorted({key[3] for key in lost if key[2] == "B1"})
    programs = sorted({key[3] for key in lost if key[2] == "R1"})
    found = []
    for kind in kinds:
        for variant in variants:
            blue = statistics.mean(lost[*kind, f"B{i}", variant, "100"] for i in (1, 2, 3, 4))
            found += [
                next(
                    (
                        b
                        for b in (100, 200, 500)
                        if lost[*kind, "R1", of, str(b)] <= max(blue, 1e-4)
                    ),
                    0,
                )
                for of in programs
            ]
    return found


def blue_uses() -> list[float]:
    """The least of what BLUE uses of the link in Fig. 11 in ns-2, in %, a value a seed."""
    least: dict[str, float] = {}
    for row in rows("ns2_fig11.csv"):
        if row["configuration"].startswith("B"):
            used = 100 * float(row["utilisation"])
            least[row["seed"]] = min(used, least.get(row["seed"], 100.0))
    return list(least.values())


def red_uses(*configurations: str) -> str:
    """The same of RED, means over two seeds, from the least to the most."""
    used: dict[tuple[str, str], list[float]] = {}
    for row in rows("ns2_fig11.csv"):
        if row["configuration"] in configurations:
            key = (row["configuration"], row["connections"])
            used.setdefault(key, []).append(100 * float(row["utilisation"]))
    return ends([statistics.mean(each) for each in used.values()])


def best_red() -> float:
    kept = rows("ns2_fig11.csv")
    return max(100 * float(row["utilisation"]) for row in kept if row["configuration"][0] == "R")


def matched() -> str:
    """For how many paths and sources R1 of ns-2 with 200 packets loses no more than B4 with 100."""
    lost = {
        (row["access_ms"], row["sources"], row["configuration"], row["buffer"]): float(row["loss"])
        for row in rows("ns2_fig5.csv")
    }
    kinds = {key[:2] for key in lost}
    met = [lost[*kind, "R1", "200"] <= lost[*kind, "B4", "100"] for kind in kinds]
    return f"{sum(met)} of {len(met)}"


def apart_from_ns2(packet: str) -> str:
    """How many losses of Fig. 5 differ from ns-2's, with a packet of so many bytes on the wire."""
    names = ("configuration", "buffer", "access_ms", "sources")
    ours = {
        tuple(row[name] for name in names): float(row["loss"])
        for row in rows("red_blue_fig5_wire.csv")
        if row["packet"] == packet
    }
    theirs = {
        tuple(row[name] for name in names): float(row["loss"]) for row in rows("ns2_fig5.csv")
    }
    assert ours.keys() == theirs.keys()
    differ = [
        not (abs(loss - ours[key]) <= 0.005 or max(loss, ours[key]) <= 1.15 * min(loss, ours[key]))
        for key, loss in theirs.items()
    ]
    return f"{sum(differ)} of {len(differ)}"


def b4_in_fig5(access: str, sources: str, digits: int) -> str:
    """What B4 loses with 100 packets in ns-2, and here with 1000 and with 1040 bytes, as a row."""
    wanted = {"configuration": "B4", "buffer": "100", "access_ms": access, "sources": sources}
    kept = [*rows("ns2_fig5.csv"), *rows("red_blue_fig5_wire.csv")]
    found = [float(row["loss"]) for row in kept if wanted.items() <= row.items()]
    return " | ".join(f"{100 * loss:.{digits}f}" for loss in found)


def looks(gamma: float) -> float:
    """The share of looks, in %, that identify a flow of gamma f(R, p) by equation 4, at small p."""
    drop = 1 - math.exp(-0.6 * gamma)
    hits = (math.comb(5, k) * drop**k * (1 - drop) ** (5 - k) for k in (3, 4, 5))
    return 100 * sum(hits)


def overflows(access: str, buffer: str, limit: str, within: str) -> list[float]:
    """In how many per cent of the intervals ns-2's queue overflows under the steps of Fig. 6."""
    return [
        float(row["overflows"]) / 6
        for row in rows("ns2_blue_steps.csv")
        if (row["access_ms"], row["buffer"], row["l_percent"], row["within_s"])
        == (access, buffer, limit, within)
    ]


HASHES = "sfb_thirty_bins_hashes.csv"


def hashes(found: bool) -> list[int]:
    """TCP flows that are shut out in the hashes where the flow is found, or where it is not."""
    return [
        int(row["tcp_shut_out"])
        for row in rows(HASHES)
        if (float(row["flow"]) >= 50) is found and int(row["tcp_shut_out"]) > 0
    ]


def small_more(figure: str, number: str) -> str:
    return ends(apart(figure, number))


def long_trips() -> list[float]:
    """By how many percent TCP flows with large packets get more, of the longer round trip."""
    kept = rows("ns2_redpd_bytes_tcp.csv")
    return [100 * (float(row["long_large_over_small"]) - 1) for row in kept]


def again() -> list[float]:
    """By how many percent a flow of 40 ms gets more at R = 170 ms than at 80."""
    return sorted(100 * (short("170", seed) / short("80", seed) - 1) for seed in "12345")


def sooner() -> list[float]:
    return [one - two for one, two in zip(cut("1@2"), cut("2@2"), strict=True)]


def slightly_less() -> list[float]:
    held = (mbps(row) for row in redpd("15", queue="RED-PD", test="0"))
    return sorted(sum(each[6:9]) / sum(each[:3]) for each in held)


def greatest() -> list[float]:
    return [max(mbps(row)[9:]) for row in redpd("15", queue="RED-PD", test="1")]


QUOTED: list[tuple[str, str, Callable[[], str], str]] = [
    # experiment, claim, what the rows give, and how the text says it
    (
        "redpd/fig11-12",
        "a",
        lambda: f"{min(cut('1@1.5')):g} to {max(cut('1@1.5')):g}",
        "38 to 45.5",
    ),
    (
        "redpd/fig11-12",
        "a",
        lambda: (
            ("four" if sum(each < 44.1 for each in cut("1@1.5")) == 4 else "other") + " of the five"
        ),
        "four of the five",
    ),
    ("redpd/fig11-12", "b", lambda: back("back_80_s"), "11.4 ± 0.7"),
    ("redpd/fig11-12", "b", lambda: back("back_85_s"), "12.4 ± 0.8"),
    ("redpd/fig11-12", "b", lambda: back("back_90_s"), "13.0 ± 0.8"),
    ("redpd/fig11-12", "b", lambda: back("back_95_s"), "14.5 ± 0.9"),
    ("redpd/fig11-12", "b", lambda: back("released_s"), "18.6 ± 1.2"),
    ("redpd/fig11-12", "b", lambda: f"{within('back_90_s')} of the 40", "17 of the 40"),
    ("redpd/fig11-12", "b", lambda: f"{within('back_80_s')} at four fifths", "23 at four fifths"),
    ("redpd/fig11-12", "c", lambda: spread(sooner()), "2.2 ± 2.2"),
    ("redpd/fig13", "a", lambda: spread(gains("0.01", "4"), 0), "12 ± 4"),
    ("redpd/fig13", "a", lambda: spread(gains("0.01", "2"), 0), "8 ± 2"),
    ("redpd/fig13", "a", lambda: spread(gains("0.05", "4"), 0), "20 ± 3"),
    ("redpd/fig13", "b", lambda: filtered("0.01"), "0.6 to 1.3"),
    ("redpd/fig13", "b", lambda: filtered("0.03"), "3.3 to 4.4"),
    ("redpd/fig13", "b", lambda: filtered("0.05"), "6.4 to 8.0"),
    ("redpd/fig16", "a", lambda: spread(declared()), "3.3 ± 0.3"),
    ("redpd/fig16", "a", lambda: ends(declared(), 1), "2.0 to 6.3"),
    ("redpd/fig22", "b", lambda: listed(again(), 1), "0.8, 2.6, 8.6, 16.2 and 20.7"),
    ("redpd/fig22", "f", filter_below, "0.16, 0.14 and 0.19"),
    ("redpd/bytes", "a", lambda: small_more("bytes", "0.7"), "6 to 8"),
    ("redpd/bytes", "a", lambda: small_more("bytes", "0.9"), "25 to 34"),
    ("redpd/bytes", "a", lambda: small_more("bytes", "1.2"), "37 to 39"),
    ("redpd/bytes", "a", lambda: small_more("bytes-p", "1.4@0.01"), "2 to 3"),
    ("redpd/bytes", "a", lambda: small_more("bytes-p", "1.4@0.05"), "8 to 11"),
    ("redpd/bytes", "a", lambda: listed(apart("bytes-p", "1.4@0.1"), 0), "27 and 28"),
    ("redpd/bytes", "a", lambda: ends(long_trips()), "18 to 36"),
    ("redpd/fig15", "b", lambda: listed(greatest(), 2), "1.06 and 1.09"),
    ("redpd/fig15", "c", lambda: listed(slightly_less(), 2), "0.66 and 0.69"),
    ("redpd/fig20-21", "a", lambda: deteriorates("RED"), "0.22 ± 0.01"),
    ("redpd/fig20-21", "a", lambda: deteriorates("RED-PD"), "0.23 ± 0.09"),
    ("redpd/fig20-21", "c", lambda: lost_to_filter("tfrc"), "12.2 ± 1.1"),
    ("redpd/fig20-21", "c", lambda: lost_to_filter("tcp"), "28.3 ± 0.7"),
    ("redpd/fig20-21", "e", lambda: spread(turns(), 3), "0.022 ± 0.007"),
    (
        "redpd/fig20-21",
        "e",
        lambda: " and ".join(
            f"{statistics.mean(own_tfrc(queue, s, '120') for s in SEEDS):.2f} with {queue}"
            for queue in ("RED", "RED-PD")
        ),
        "1.02 with RED and 0.92 with RED-PD",
    ),
    ("redpd/fig20-21", "e", lambda: listed(tfrc("RED", "12 16"), 2), "0.87 and 0.73"),
    (
        "redpd/fig20-21",
        "g",
        lambda: listed(tfrc("RED", "4 8 12 16"), 2),
        "1.06, 0.97, 0.87 and 0.73",
    ),
    (
        "cmu/fig15",
        "a",
        lambda: f"{udp_queued('red', 'reno', '40')} | {udp_queued('a-choke', 'reno', '40')}",
        "53 | 23",
    ),
    (
        "cmu/fig15",
        "a",
        lambda: f"{udp_queued('red', 'newreno', '40')} | {udp_queued('a-choke', 'newreno', '40')}",
        "53 | 19",
    ),
    (
        "cmu/fig15",
        "a",
        lambda: f"{udp_queued('red', 'reno', '270')} | {udp_queued('a-choke', 'reno', '270')}",
        "51 | 26",
    ),
    ("cmu/fig4", "f", lambda: spread(blue_by_red("Reno", "10"), 2), "0.67 ± 0.03"),
    ("cmu/fig4", "f", other_blue_by_red, "0.65 to 0.68"),
    ("cmu/fig4", "f", other_blue_spread, "± 0.05 to 0.10"),
    ("cmu/fig4", "f", lambda: spread(blue_by_red("Reno", "10", "udp_0_20"), 2), "0.59 ± 0.06"),
    (
        "cmu/fig15",
        "d",
        lambda: below_max_th("average_below_max_th"),
        "80 | 60 | 40 | 29 | 20 | 14",
    ),
    (
        "cmu/fig15",
        "d",
        lambda: below_max_th("packets_below_max_th"),
        "45 | 38 | 38 | 38 | 37 | 36",
    ),
    ("cmu/fig15", "d", below_over_all, "40.6 ± 0.3"),
    (
        "cmu/fig15",
        "d",
        lambda: below_max_th("packets_up_to_max_th"),
        "58 | 62 | 63 | 62 | 62 | 61",
    ),
    (
        "cmu/fig15",
        "d",
        lambda: f"above {max(max(hrc('average_most', rate)) for rate in ABOVE):.1f} packets",
        "above 100.5 packets",
    ),
    (
        "cmu/fig15",
        "d",
        queue_below_half,
        "less than half of the time, at each rate and in each seed",
    ),
    ("cmu/fig16", "d", lambda: spread(by_mix("1"), 3), "0.166 ± 0.006"),
    ("cmu/fig16", "d", lambda: f"{statistics.mean(by_mix('1.5')):.3f}", "0.028"),
    ("cmu/fig16", "c", lambda: listed(by_flows("tcp_mbps", *ONE), 2), "0.57, 0.62 and 0.70"),
    ("cmu/fig16", "c", lambda: listed(by_flows("tcp_mbps", *EACH), 2), "0.39, 0.44 and 0.48"),
    ("cmu/fig16", "c", lambda: listed(by_flows("tcp_mbps", *TOGETHER), 2), "0.33, 0.34 and 0.37"),
    (
        "feng/fig13-simulated",
        "d",
        lambda: f"| {used_late('RED')} % | {used_late('BLUE')} % |",
        "| 93 to 97 % | 98 to 100 % |",
    ),
    (
        "feng/fig13-simulated",
        "d",
        lambda: f"to {max(lost_late('RED', '160')):.1f} %",
        "to 1.8 %",
    ),
    (
        "feng/fig13-simulated",
        "d",
        lambda: "at most {:.1f} % with SACK and {:.1f} % with Reno".format(
            *(max(lost_late("BLUE", load)[i] for load in LOADS) for i in (0, 1))
        ),
        "at most 0.1 % with SACK and 0.7 % with Reno",
    ),
    ("feng/fig13-simulated", "d", lambda: used_late_in_ns2("RED/Short"), "84, 85, 89 and 92"),
    ("feng/fig13-simulated", "d", lambda: used_late_in_ns2("Blue"), "97, 96, 98 and 100"),
    ("feng/fig13-simulated", "d", lambda: used_late_in_ns2("RED", LOADS[:3]), "98, 97 and 98"),
    (
        "feng/fig13-simulated",
        "d",
        lambda: f"with ALTQ's rule | here | {min(used_alone(ALTQ)):.1f} % and more",
        "with ALTQ's rule | here | 99.5 % and more",
    ),
    ("feng/fig13-simulated", "d", lambda: beyond_red("100"), "0.9, 0.1 and 0.7"),
    (
        "feng/sred-memory",
        "a",
        lambda: f"{len(hashes(True))} hashes of {len(rows(HASHES))}",
        "4 hashes of 30",
    ),
    ("feng/sred-memory", "a", lambda: ends([each / 9.99 for each in hashes(True)]), "28 to 39"),
    (
        "feng/sred-memory",
        "a",
        lambda: f"{len(hashes(False))} others up to {max(hashes(False)) / 9.99:.0f} % ",
        "10 others up to 34 % ",
    ),
    ("feng/fig11", "a2", lambda: spread(blue_uses()), "97.6 ± 0.2"),
    ("feng/fig11", "a2", lambda: red_uses("R2", "R3", "R4"), "78 to 85"),
    ("feng/fig11", "a2", lambda: f"R1 with {best_red():.1f} %", "R1 with 96.1 %"),
    ("feng/fig5", "e", matched, "12 of 12"),
    ("redpd/fig22", "f", lambda: f"{looks(0.5):.0f} % of all looks", "11 % of all looks"),
    (
        "redpd/fig22",
        "f",
        lambda: f"at three quarters at {looks(0.75):.0f} %",
        "at three quarters at 25 %",
    ),
    (
        "feng/fig5",
        "e",
        lambda: "| combinations | {} | {} | {} | {} |".format(
            *(needed().count(kb) for kb in (100, 200, 500, 0))
        ),
        "| combinations | 72 | 103 | 11 | 6 |",
    ),
    ("feng/fig6-8", "e", lambda: f"{window(0.12):.1f} packets", "3.2 packets"),
    ("feng/fig6-8", "e", lambda: f"it is {marked_for(4 / 3):.2f}", "it is 0.64"),
    (
        "feng/fig6-8",
        "e",
        lambda: f"takes {math.ceil(marked_for(4 / 3) / 0.02)} overflows",
        "takes 32 overflows",
    ),
    ("feng/fig6-8", "e", lambda: ends(overflows("mixed", "200", "0", "1"), 1), "8.3 to 9.3"),
    ("feng/fig6-8", "e", lambda: ends(overflows("10", "400", "75", "5"), 1), "0.3 to 0.7"),
    ("feng/fig6-8", "e", lambda: ends(overflows("10", "400", "75", "1"), 1), "3.0 to 3.8"),
    ("feng/fig6-8", "e", lambda: ends(overflows("10", "400", "0", "5"), 1), "8.0 to 9.0"),
    ("report/fig2-5", "e", lambda: f"{window(0.08):.1f} packets", "4.0 packets"),
    ("report/fig2-5", "e", lambda: f"it is {marked_for(1.5):.1f},", "it is 0.5,"),
    (
        "feng/fig9-10",
        "e",
        lambda: ", ".join(f"{each:.1f}" for each in red_losses(["40", "20"])),
        "4.7, 0.9",
    ),
]


@pytest.mark.parametrize(("name", "claim", "found", "said"), QUOTED)
def test_a_text_says_what_the_rows_give(
    name: str, claim: str, found: Callable[[], str], said: str
) -> None:
    made = next(each for each in experiment.load(name).claims if each.id == claim)
    proof = made.contradicted.why if made.contradicted else ""
    evidence = quotes.evidence(name, claim)
    text = " ".join((made.note, made.cause, made.authors, made.basis, made.paper, proof, evidence))
    text = " ".join(text.split())
    assert found() == said
    assert said in text, text


def test_evidence_states_each_claim_and_its_verdict() -> None:
    names = re.findall(r"^### (\S+) (\S+)$", quotes.EVIDENCE.read_text("utf-8"), re.MULTILINE)
    assert names
    for name, letter in names:
        claim = next(each for each in experiment.load(name).claims if each.id == letter)
        held = verdicts.kept().of(name, claim)
        assert held is not None
        text, found, *_ = quotes.evidence(name, letter).strip().split("\n\n")
        assert text == f"*{claim.text}*"
        assert found.startswith(f"**{held.verdict.capitalize()}"), (name, letter)
        assert all(f"`{each}`" in found for each in held.under), (name, letter)


def test_the_rows_that_evidence_and_authors_name_are_kept() -> None:
    for name in experiment.known():
        for claim in experiment.load(name).claims:
            text = claim.authors + quotes.evidence(name, claim.id)
            for file in re.findall(r"[\w-]+\.csv", text):
                assert (REFERENCE / file).exists(), (name, claim.id, file)


def test_ties_say_what_the_rows_give() -> None:
    page = (REFERENCE.parents[2] / "docs" / "algorithms" / "blue.md").read_text("utf-8")
    text = page[page.index("- **Ties.**") :]

    def of(column: str, first: str, gap: str = "4", windows: str = "0") -> list[float]:
        wanted = {"first": first, "gap_ms": gap, "windows": windows}
        return [float(r[column]) for r in rows("blue_ties.csv") if wanted.items() <= r.items()]

    tied = 100 * statistics.mean(of("same_instant", "departure"))
    assert f"{tied:.0f} % of the idle events are such ties" in text
    for name, column, digits in (
        ("idle events", "idle_events", 0),
        ("`p_m`", "p_m", 3),
        ("packets waiting", "packets", 0),
    ):
        both = [spread(of(column, first), digits) for first in ("departure", "arrival")]
        assert f"| {name} | {' | '.join(both)} |" in text
    apart = [
        statistics.mean(of("p_m", "departure", gap, "10"))
        - statistics.mean(of("p_m", "arrival", gap, "10"))
        for gap in ("1", "2", "4")
    ]
    assert f"differs by {max(map(abs, apart)):.3f} at most" in text


def test_fig_5_in_ns_2_says_what_the_rows_give() -> None:
    page = (REFERENCE.parents[2] / "docs" / "validation-ns2.md").read_text("utf-8")
    section = page.partition("## Fig. 5 of Feng02")[2].partition("\n## ")[0]
    assert f"**{apart_from_ns2('1000')} losses**" in section
    assert f"**{apart_from_ns2('1040')}** differ" in section
    for access, sources, digits in (
        ("11", "withdraw", 3),
        ("mixed", "withdraw", 3),
        ("mixed", "10000", 1),
        ("20", "122.5", 1),
        ("20", "10000", 2),
        ("mixed", "117", 1),
    ):
        assert f" | {b4_in_fig5(access, sources, digits)} |" in section, (access, sources)
