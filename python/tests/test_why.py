"""The account of one packet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from test_packets import scenario

import bluewater
from bluewater import Packets
from bluewater.results import why

if TYPE_CHECKING:
    from pathlib import Path


def test_what_a_coin_decided_is_told(tmp_path: Path) -> None:
    file = tmp_path / "blue.parquet"
    bluewater.run(scenario("blue"), packets=file)
    row, facts = why.find(file, which="marked")
    story = why.tell(row, facts)
    assert row["coin"] < row["p"]
    assert f"packet {row['n']} at A->B (blue)" in story
    assert "< p = " in story
    assert "marked (CE): the algorithm's signal" in story
    assert story.index("arrives") < story.index("marked (CE)") < story.index("sent after")
    row, facts = why.find(file, which="dropped")
    assert "dropped: the buffer had no room" in why.tell(row, facts)
    first, _ = why.find(file)
    assert first["n"] == 0
    calm, facts = why.find(file, at_s=4.0, flow=3, which="sent")
    assert calm["flow"] == 3
    assert calm["arrived_ns"] >= 4 * 10**9


def test_every_algorithm_has_a_story(tmp_path: Path) -> None:
    told = set()
    for entry in bluewater.catalog()["aqms"]:
        file = tmp_path / f"{entry['name']}.parquet"
        run = scenario(entry["name"]) | {"duration": "2s"}
        bluewater.run(run, packets=Packets(file, every=7))
        fates = {"sent", "dropped"} & set(pl.read_parquet(file)["fate"])
        assert "sent" in fates
        told |= fates
        for which in fates:
            row, facts = why.find(file, which=which)
            story = why.tell(row, facts)
            assert f"({entry['name']})" in story
            assert f"rule: {entry['rule']}." in story
            assert "None" not in story
    assert told == {"sent", "dropped"}


def packets_of(aqm: str, folder: Path, **params: Any) -> pl.DataFrame:
    file = folder / f"{aqm}.parquet"
    bluewater.run(scenario(aqm, **params), packets=file)
    return pl.read_parquet(file)


HIT = pl.col("coin") < pl.col("p")
SIGNALLED = (pl.col("marked") != "") | pl.col("dropped").is_in(["early", "penalty"])


def test_the_bins_of_sfb_say_why(tmp_path: Path) -> None:
    # Bins so small that they are often full, and one flow that ignores its signals.
    found = packets_of("sfb", tmp_path, bins=5, bin_size="4p", increment=0.2)
    least = pl.min_horizontal("then_bin_p_1", "then_bin_p_2")
    full = pl.max_horizontal("found_bin_length_1", "found_bin_length_2") > pl.col("found_bin_limit")
    judged = found.filter(pl.col("p").is_not_null())
    assert judged.height > 1000
    assert judged.select((least == pl.col("p")).all()).item(), "the coin is thrown for the least"
    mute = found.filter((pl.col("dropped") == "early") & pl.col("p").is_null())
    assert mute.height > 20
    assert mute.select(full.all()).item(), "else it is dropped since a bin is full"
    convicted = found.filter(pl.col("dropped") == "penalty")
    assert convicted.height > 20
    assert convicted.select((least == 1).all()).item()
    assert set(found["found_bin_1"]) == set(found["found_bin_2"]) == set(range(5))
    bins = found.select("flow", "found_bin_1", "found_bin_2").unique()
    assert bins.height == found["flow"].n_unique(), "a flow keeps its bins"


def test_what_was_not_marked_says_why(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"mark_ecnth": 0.001}, "is not below mark_ecnth"),
        ({"ecn": False}, "ecn = false"),
    ]
    for params, told in cases:
        found = packets_of("pie", tmp_path, target="1ms", **params)
        capable = (pl.col("dropped") == "early") & (pl.col("ecn") == "ect0")
        lost = found.filter(capable & (pl.col("p") >= 0.001))["n"]
        assert len(lost) > 10
        row, facts = why.find(tmp_path / "pie.parquet", lost[0])
        assert told in why.tell(row, facts)
    (kept,) = found.filter(pl.col("fate") == "sent").head(1)["n"]
    assert "not marked" not in why.tell(*why.find(tmp_path / "pie.parquet", kept))


def test_what_fred_knows_of_the_flow_says_why(tmp_path: Path) -> None:
    found = packets_of("fred", tmp_path)
    qlen, strikes = pl.col("found_flow_qlen"), pl.col("found_flow_strikes")
    greedy = (
        (qlen >= pl.col("found_maxq"))
        | (qlen > 2 * pl.col("found_avgcq"))
        | ((qlen >= pl.col("found_avgcq")) & (strikes > 1))
    )
    held = found.filter(pl.col("dropped") == "penalty")
    assert held.height > 100
    assert held.select(greedy.all()).item()
    struck = held.select((pl.col("then_flow_strikes") - strikes).unique())
    assert struck.to_series().to_list() == [1]


def test_what_red_pd_knows_of_the_flow_says_why(tmp_path: Path) -> None:
    found = packets_of("red-pd", tmp_path)
    held = found.filter(pl.col("dropped") == "penalty")
    assert held.height > 100
    assert (held["p"] == held["found_flow_p"]).all()
    assert (held["found_flow_monitored"] == 1).all()


def test_what_a_policer_drops_is_policed(tmp_path: Path) -> None:
    file, run = tmp_path / "policed.parquet", scenario("droptail")
    run["queue"][0] |= {"prefilter": "policer", "prefilter_params": {"rate": "5mbit"}}
    policed = bluewater.run(run, packets=file).summary["drops_policed"]
    found = pl.read_parquet(file).filter(pl.col("dropped") == "policed")
    assert found.height == policed > 100
    (capable,) = found.filter(pl.col("ecn") == "ect0").head(1)["n"]
    story = why.tell(*why.find(file, capable))
    assert "the policer's bucket held fewer bytes than the packet has" in story
    assert "a policer drops packets whether or not they are ECN-capable" in story


def test_no_coin_is_said_only_where_none_was_drawn(tmp_path: Path) -> None:
    for aqm, coins, told in [
        ("cake", 0, "no random draw: the rule alone"),
        ("curvy-red", 2, "2 random draws, none of them against one"),
    ]:
        found = packets_of(aqm, tmp_path)
        rows = found.filter(SIGNALLED & pl.col("p").is_null() & (pl.col("coins") == coins))
        assert rows.height > 0, told
        assert told in why.tell(*why.find(tmp_path / f"{aqm}.parquet", rows["n"][0]))


def test_choke_names_both_packets(tmp_path: Path) -> None:
    found = packets_of("choke", tmp_path)
    killed = found.filter(pl.col("dropped") == "penalty")
    assert killed.height > 100
    flows = dict(found.select("n", "flow").iter_rows())
    for n, other, flow in killed.select("n", "with", "flow").iter_rows():
        assert flows[other] == flow
        assert other != n
    pairs = dict(killed.select("n", "with").iter_rows())
    assert all(pairs[other] == n for n, other in pairs.items())
    first, second = sorted((killed["n"][0], killed["with"][0]))
    stories = [why.tell(*why.find(tmp_path / "choke.parquet", n)) for n in (first, second)]
    assert f"as packet {second} arrived" in stories[0]
    assert f"with packet {first}" in stories[1]


@pytest.mark.parametrize(
    ("aqm", "params", "of", "first"),
    [
        ("red", {}, "p_b", 1),
        ("red", {"spacing": "uniform-exact"}, "p_b", 0),
        ("ared", {}, "p_b", 1),
        ("ared-feng", {}, "p_b", 1),
        ("red-penalty-box", {}, "p_b", 1),
        ("wred", {}, "class_p_b", 1),
    ],
)
def test_the_probability_of_red_by_hand(
    tmp_path: Path, aqm: str, params: dict[str, Any], of: str, first: int
) -> None:
    """p_a = p_b/(1 − count·p_b) (FJ93 Fig. 2), p_b being that of the average with the packet."""
    found = packets_of(aqm, tmp_path, **params)
    p_b, count = pl.col(f"then_{of}"), pl.col("found_count")
    judged = found.filter(pl.col("p").is_not_null())
    assert judged.height > 1000
    assert judged["found_count"].n_unique() > 10
    by_hand = pl.when(count * p_b < 1).then((p_b / (1 - count * p_b)).clip(upper_bound=1))
    differences = judged.select((by_hand.otherwise(1) - pl.col("p")).abs())
    assert differences.max().item() < 1e-12
    signalled = judged.filter(pl.col("coin") < pl.col("p"))
    assert signalled.height > 50
    assert (signalled["then_count"] == first).all(), "the next packet is the first since it"


def test_the_probability_of_fred_by_hand(tmp_path: Path) -> None:
    found = packets_of("fred", tmp_path, min_q=1)
    p_b, count = pl.col("found_p_b"), pl.col("found_count")
    judged = found.filter(pl.col("p").is_not_null() & (pl.col("found_packets") > 0))
    assert judged.height > 20
    differences = judged.filter(pl.col("p") < 1).select(
        (p_b / (1 - count * p_b) - pl.col("p")).abs()
    )
    assert differences.max().item() < 1e-12


def test_the_next_signal_of_codel_by_hand(tmp_path: Path) -> None:
    """drop_next = now + interval/√count where the state is entered, else by the same step."""
    found = packets_of("codel", tmp_path, target="1ms", interval="20ms")
    marked = found.filter((pl.col("marked") == "early") & (pl.col("left_dropping") == 1))
    assert marked.height > 50
    due = pl.col("left_drop_next_s") - 0.02 / pl.col("left_count").sqrt()
    early = marked.filter(pl.col("marked_ns") / 1e9 < due - 1e-8)
    assert early.is_empty(), "no signal comes before it is due"
    above = found.filter(pl.col("left_first_above_s") > 0)
    assert above.height > marked.height


@pytest.mark.parametrize(
    ("aqm", "params", "total", "p"),
    [
        ("pi2", {}, "found_sum_classic", "then_p_c"),
        ("dualpi2", {}, "found_sum_c", "then_p_c"),
        ("pie", {"derandomise": True, "target": "1ms"}, "found_accumulated", "then_p_d"),
        ("docsis-pie", {"target": "1ms"}, "found_accumulated", "then_drop_prob"),
        ("csfq", {}, "found_flow_rate", "then_fair_rate"),
        ("cobalt", {"target": "1ms"}, "found_drop_next_s", "then_p_drop"),
    ],
)
def test_what_a_rule_names_is_there(
    tmp_path: Path, aqm: str, params: dict[str, Any], total: str, p: str
) -> None:
    found = packets_of(aqm, tmp_path, **params)
    assert found[total].n_unique() > 50
    assert p in found.columns
    told = why.tell(*why.find(tmp_path / f"{aqm}.parquet", found["n"][-1]))
    assert total.removeprefix("found_") in told


def waiting(found: pl.DataFrame) -> list[int]:
    """What waits of each packet's own queue as it arrives, by the arrivals and ends of all."""
    counts = []
    inside: list[tuple[int, int]] = []  # when it leaves, its queue
    for row in found.sort("n").iter_rows(named=True):
        # DRR gives a queue as a flow's first packet comes.
        now, queue = row["arrived_ns"], row["then_flow_queue"]
        inside = [each for each in inside if each[0] > now]
        counts.append(sum(of == queue for _, of in inside))
        left = row["left_ns"]
        inside.append((10**18 if left is None else left, queue))
    return counts


@pytest.mark.parametrize("aqm", ["fq-codel", "fq-pie", "cake", "sfq", "drr", "fq"])
def test_the_queue_of_a_flow_says_what_waits_in_it(tmp_path: Path, aqm: str) -> None:
    found = packets_of(aqm, tmp_path)
    # Two packets at one instant: which was first is not in their times.
    alone = found.sort("n").with_columns(mine=pl.Series(waiting(found)))
    times = pl.concat([found["arrived_ns"], found["left_ns"].drop_nulls()]).value_counts()
    once = times.filter(pl.col("count") == 1)["arrived_ns"]
    judged = alone.filter(pl.col("arrived_ns").is_in(once.implode()))
    assert judged.height > 1000
    assert judged.filter(pl.col("mine") > 2).height > 100
    assert (judged["mine"] == judged["found_flow_packets"]).all()
    told = why.tell(*why.find(tmp_path / f"{aqm}.parquet", judged["n"][-1]))
    assert f"its queue {judged['then_flow_queue'][-1]:.0f}" in told


def test_what_another_drives_out_has_its_own_queue(tmp_path: Path) -> None:
    """As the longest queue gives way the arriving packet is of another."""
    found = packets_of("fq-codel", tmp_path, target="1s", interval="10s")
    out = found.filter((pl.col("dropped") == "overflow") & (pl.col("with") > pl.col("n")))
    assert out.height > 100
    others = found.select(pl.col("n").alias("with"), driver="found_flow_queue")
    beside = out.join(others, on="with")
    apart = beside.filter(pl.col("driver") != pl.col("found_flow_queue"))
    assert apart.height > 20
    assert (apart["left_flow_queue"] == apart["found_flow_queue"]).all()
    longest = apart["left_flow_bytes"] <= apart["left_longest"]
    assert longest.all()


def test_cake_says_tin_and_kind_of_flow(tmp_path: Path) -> None:
    found = packets_of("cake", tmp_path)
    udp = found.filter(pl.col("kind") == "datagram")
    assert set(found["found_flow_tin"]) == {0.0}
    # 2 Mb/s of 10 are more than an eleventh of them: a bulk flow, all the time.
    assert udp.filter(pl.col("found_flow_state") == 3).height > 0.9 * udp.height
    assert set(found["found_flow_state"]) > {0.0, 1.0, 3.0}
    # 10 Mb/s / 8 / 4096 s, shared by as many of its host's eleven flows as are bulk flows.
    shares = {(305 << 16) // bulk / 65_536 for bulk in range(1, 12)}
    assert set(found["found_flow_share"]) <= shares
    assert found["found_flow_share"].n_unique() > 5
    file = tmp_path / "cake.parquet"
    told = why.tell(*why.find(file, udp["n"][-1]))
    assert "(tin 0, set " in told
    assert ", bulk, deficit " in told
    assert "there: sojourn " in told


def crowd(aqm: str, **params: Any) -> dict[str, Any]:
    """Twice what the link takes, most of it from who does not listen, of each ECN codepoint."""
    traffic = [
        {"transport": "sack", "flows": 20, "start": "0s..1s", "ecn": True},
        {"transport": "prague", "flows": 5, "start": "0s..1s", "ecn": True},
        {"transport": "cbr", "flows": 2, "rate": "6mbit"},
    ]
    return {**scenario(aqm, **params), "duration": "4s", "traffic": traffic}


def packets_in_crowd(aqm: str, folder: Path, **params: Any) -> pl.DataFrame:
    file = folder / f"{aqm}.parquet"
    bluewater.run(crowd(aqm, **params), packets=file)
    return pl.read_parquet(file)


def test_each_packet_has_its_own_coin_in_cobalt(tmp_path: Path) -> None:
    """BLUE draws once a packet as it leaves, and drops all but the last in the queue."""
    found = packets_in_crowd("cobalt", tmp_path, increment=0.2, target="1ms")
    judged = found.filter(pl.col("coin").is_not_null())
    assert judged["coin"].n_unique() == judged.height, "no two share one"
    assert judged.height > 2000
    assert (judged["p"] == judged["left_p_drop"]).all()
    assert (judged["coin_ns"] == judged["left_ns"]).all()
    hit = judged.filter(HIT & (pl.col("left_ns") == pl.col("coin_ns")))
    dropped = hit.filter(pl.col("dropped") == "early")
    assert dropped.height > 500
    assert (
        found.filter(pl.col("dropped") == "early")
        .filter(~HIT & (pl.col("ecn") != "not-ect"))["n"]
        .is_empty()
    ), "CoDel marks what can be marked"
    spared = hit.filter(pl.col("fate") == "sent")["n"].implode()
    behind = found.sort("n").with_columns(next=pl.col("arrived_ns").shift(-1))
    alone = behind.filter(pl.col("n").is_in(spared)).drop_nulls("next")
    assert alone.height > 20
    assert (alone["next"] >= alone["coin_ns"]).all()


def test_the_probability_of_pi2_is_that_of_the_packet(tmp_path: Path) -> None:
    """Scalable packets meet p_cl, all others and all in overload p_c (RFC 9332)."""
    found = packets_in_crowd("pi2", tmp_path, signals="random", target="5ms")
    own = found.filter(pl.col("coin_ns") == pl.col("left_ns"))
    assert own.filter(pl.col("fate") == "sent").height > 1000
    overload = pl.col("left_p_c") >= 0.25
    scalable = pl.col("ecn").is_in(["ect1", "ce"]) & ~overload
    p = pl.when(scalable).then("left_p_cl").otherwise("left_p_c")
    assert own.select((p == pl.col("p")).all()).item()
    assert own["coin"].n_unique() == own.height
    assert own.select(scalable.n_unique()).item() == 2


@pytest.mark.parametrize(
    ("aqm", "params"),
    [
        ("red", {"w_q": 0.01, "min_th": "5p", "max_th": "39p", "max_p": 0.02}),
        ("wred", {"w_q": 0.01, "min_th": "5p", "max_th": "39p", "max_p": 0.02}),
        ("csfq", {}),
        ("pie", {"target": "15ms"}),
        ("fred", {"w_q": 0.01, "min_th": "3p", "max_th": "39p", "max_p": 0.02, "min_q": 1}),
        ("pi", {}),
    ],
)
def test_a_coin_is_told_also_of_what_did_not_fit(
    tmp_path: Path, aqm: str, params: dict[str, Any]
) -> None:
    """Else the share of signals among packets with a coin would be more than their probability."""
    found = packets_in_crowd(aqm, tmp_path, **params)
    over = found.filter((pl.col("coins") > 0) & (pl.col("dropped") == "overflow"))
    assert over.height > 5
    assert ((found["coins"] > 0) == found["p"].is_not_null()).all()
    judged = found.filter(pl.col("p").is_not_null())
    assert judged["p"].is_between(0, 1).all()
    hits, expected, variance = judged.select(
        HIT.sum(),
        pl.col("p").sum().alias("sum"),
        (pl.col("p") * (1 - pl.col("p"))).sum().alias("v"),
    ).row(0)
    assert abs(hits - expected) < 5 * variance**0.5


def test_the_probability_of_csfq_by_hand(tmp_path: Path) -> None:
    """max(0, 1 - α/r) (SSZ98 Fig. 3)."""
    found = packets_in_crowd("csfq", tmp_path)
    by_hand = (1 - pl.col("found_fair_rate") / pl.col("then_flow_rate")).clip(lower_bound=0)
    assert found.select((by_hand - pl.col("p")).abs().max()).item() < 1e-12
    assert found.filter(pl.col("p") == 0).height > 1000
    assert found.filter(pl.col("p") > 0).height > 1000


def test_what_codel_decided_by_is_there_before_it_decided(tmp_path: Path) -> None:
    """RFC 8289 §5.5: while dropping, a packet is signalled from drop_next on, and no other is."""
    found = packets_of("codel", tmp_path, target="1ms", interval="20ms")
    turned = found.filter((pl.col("turn_dropping") == 1) & (pl.col("left_dropping") == 1))
    due = turned["left_ns"] >= (turned["turn_drop_next_s"] * 1e9).round()
    signalled = turned.select(SIGNALLED).to_series()
    assert signalled.sum() > 50
    assert (~signalled).sum() > 50
    assert (due == signalled).all()
    row, facts = why.find(
        tmp_path / "codel.parquet", turned.filter(pl.col("marked") != "")["n"][-1]
    )
    told = why.tell(row, facts)
    assert told.index("its turn: ") < told.index("marked (CE)") < told.index("as it left: ")
    assert f"drop_next_s {row['turn_drop_next_s']:.9f}" in told


def test_what_leaves_nobody_behind_has_its_sums(tmp_path: Path) -> None:
    found = packets_in_crowd("pi2", tmp_path, target="1ms")
    dropped = found.filter(pl.col("dropped") == "early")
    assert dropped.height > 100
    assert dropped["left_sum_classic"].null_count() == 0
    first = dropped.filter(pl.col("turn_sum_classic").is_not_null())
    assert first.height > 100
    assert first.select((pl.col("turn_sum_classic") + pl.col("turn_p_c") > 1).all()).item()


@pytest.mark.parametrize(
    ("aqm", "params", "of"),
    [
        ("wred", {"min_th": "2p", "min_th_high": "11p", "max_th": "12p"}, "found_class_p_b"),
        ("fred", {"min_th": "2p", "max_th": "12p"}, "found_p_b"),
    ],
)
def test_what_stands_beside_an_aged_average_is_of_it(
    tmp_path: Path, aqm: str, params: dict[str, Any], of: str
) -> None:
    """WRED's lowest class is that of codepoint 0; FRED decides by what was found."""
    file = tmp_path / "idle.parquet"
    bursts = {
        "transport": "cbr", "app": "periodic", "flows": 24, "rate": "1mbit", "on": "20ms",
        "off": "33ms",
    }  # fmt: skip
    own = crowd(aqm, w_q=0.05, max_p=0.1, **params)
    bluewater.run({**own, "traffic": [bursts]}, packets=file)
    found = pl.read_parquet(file)
    idle = found.filter((pl.col("found_packets") == 0) & (pl.col("found_avg") > 2))
    assert idle.height > 10, "nobody came to an idle link that had been busy"
    avg = pl.col("found_avg")
    by_hand = pl.when(avg < 2).then(0.0).when(avg < 12).then(0.1 * (avg - 2) / 10).otherwise(1.0)
    assert found.select((by_hand - pl.col(of)).abs().max()).item() < 1e-12


@pytest.mark.slow
def test_every_ecn_capable_packet_that_is_dropped_says_why(tmp_path: Path) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        (entry["name"], {}) for entry in bluewater.catalog()["aqms"]
    ]
    cases += [
        ("red", {"above_max": "drop", "max_th": "6p", "min_th": "2p", "w_q": 0.1}),
        ("cobalt", {"increment": 0.2}),
        ("pie", {"mode": "bytes"}),
        ("fred", {"max_th": "6p", "min_th": "2p", "w_q": 0.1}),
        ("pi2", {"target": "1ms", "signals": "random"}),
        ("sfb", {"mark_up_to": 0.5, "increment": 0.2}),
        ("docsis-pie", {"target": "1ms"}),
    ]
    capable = pl.col("dropped").is_in(["early", "penalty"]) & (pl.col("ecn") != "not-ect")
    told = set()
    for aqm, params in cases:
        lost = packets_in_crowd(aqm, tmp_path, **params).filter(capable)
        for (n,) in lost.group_by("dropped", HIT, maintain_order=True).first().select("n").rows():
            story = why.tell(*why.find(tmp_path / f"{aqm}.parquet", n))
            assert "not marked: " in story, f"{aqm} {params}: {story}"
            told.add(aqm)
    assert told >= {"red", "cobalt", "pie", "fred", "pi2", "dualpi2", "csfq", "sfb", "choke"}


def test_a_signal_at_the_head_is_told_when_it_came(tmp_path: Path) -> None:
    """Not as the packet's turn, which comes later."""
    found = packets_in_crowd("blue", tmp_path, signal="head")
    waited = found.filter((pl.col("marked") != "") & (pl.col("marked_ns") < pl.col("left_ns")))
    assert waited.height > 20
    assert waited.select((HIT & (pl.col("coin_ns") == pl.col("marked_ns"))).all()).item()
    told = why.tell(*why.find(tmp_path / "blue.parquet", waited["n"][0]))
    assert told.index("the random draw is") < told.index("marked (CE)") < told.index("as it left")
    assert "its turn" not in told
    spared = found.filter(HIT & ~SIGNALLED & (pl.col("fate") == "sent"))
    told = why.tell(*why.find(tmp_path / "blue.parquet", spared["n"][0]))
    assert "signal, which another packet gets" in told
