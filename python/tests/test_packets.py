"""A file of packets, and what is told of one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import tomli_w
from test_aqm import Blue

import bluewater
from bluewater import InputError, Packets
from bluewater.aqm import keys
from bluewater.results import packets, why, writer
from bluewater.study.replay import on_recording

if TYPE_CHECKING:
    from conftest import Cli


def scenario(aqm: str, **params: Any) -> dict[str, Any]:
    return {
        "duration": "8s",
        "network": {"preset": "dumbbell", "rate": "10mbit", "delay": "10ms"},
        "queue": [{"aqm": aqm, "buffer": "40p", "params": params}],
        "traffic": [
            {"transport": "sack", "flows": 10, "start": "0s..1s", "ecn": True},
            {"transport": "cbr", "rate": "2mbit"},
        ],
    }


@pytest.mark.parametrize("aqm", ["red", "blue", "codel", "fq-codel"])
def test_a_file_holds_every_packet_and_the_run_is_the_same(tmp_path: Path, aqm: str) -> None:
    plain = bluewater.run(scenario(aqm))
    file = tmp_path / "deep" / "all.parquet"
    made = bluewater.run(scenario(aqm), packets=file)
    assert made.decision_hash == plain.decision_hash
    rows, facts = packets.open_(file)
    found = rows.collect()
    assert facts.decision_hash == plain.decision_hash
    assert found["n"].to_list() == list(range(plain.summary["arrivals"]))
    fates = dict(found["fate"].value_counts().iter_rows())
    assert fates.get("dropped", 0) == plain.summary["drops"]
    assert fates["sent"] == plain.summary["departures"]
    marked = found.filter(pl.col("marked") != "")
    assert marked.height == plain.summary["marks"]
    sent = found.filter(pl.col("fate") == "sent")
    assert sent["delay_s"].mean() == pytest.approx(plain.summary["delay_mean_s"], rel=1e-9)
    assert [path.name for path in file.parent.iterdir()] == ["all.parquet"]


def test_parts_make_one_file_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, parts = tmp_path / "whole.parquet", tmp_path / "parts.parquet"
    bluewater.run(scenario("red"), packets=whole)
    monkeypatch.setattr(writer, "_PART", 500)
    bluewater.run(scenario("red"), packets=parts)
    assert pl.read_parquet(parts).equals(pl.read_parquet(whole))


def test_a_selection_and_none_at_all(tmp_path: Path) -> None:
    file = tmp_path / "some.parquet"
    bluewater.run(scenario("red"), packets=Packets(file, flows="0-2,10", time="2s..3s", every=5))
    found = pl.read_parquet(file)
    assert found.height > 20
    assert set(found["flow"]) <= {0, 1, 2, 10}
    assert (found["n"] % 5 == 0).all()
    assert found["arrived_ns"].is_between(2 * 10**9, 3 * 10**9).all()
    bluewater.run(scenario("red"), packets=Packets(file, flows="4000000000"))
    assert pl.read_parquet(file).is_empty()
    with pytest.raises(InputError, match="no such packet"):
        why.find(file, 0)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"flows": "a-b"}, "not flows"),
        ({"flows": "5000000000"}, "not flows"),
        ({"time": "3s"}, "not a span"),
        ({"time": "3s..1s"}, "ends before"),
        ({"time": "1s..1s"}, "ends before"),
        ({"flows": "7-3"}, "ends before"),
        ({"time": "x..1s"}, "not a duration"),
        ({"every": 0}, "not a count"),
    ],
)
def test_a_silly_selection_is_refused_before_the_run(
    tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        bluewater.run(scenario("red"), packets=Packets(tmp_path / "x.parquet", **options))
    assert not list(tmp_path.iterdir())


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
    calm, facts = why.find(file, at_s=4.0, flow=3, which="sent")
    assert calm["flow"] == 3
    assert calm["arrived_ns"] >= 4 * 10**9


def test_every_algorithm_has_a_story(tmp_path: Path) -> None:
    for entry in bluewater.catalog()["aqms"]:
        file = tmp_path / f"{entry['name']}.parquet"
        run = scenario(entry["name"]) | {"duration": "2s"}
        bluewater.run(run, packets=Packets(file, every=7))
        for which in ("sent", "dropped"):
            try:
                row, facts = why.find(file, which=which)
            except InputError:
                continue
            story = why.tell(row, facts)
            assert f"({entry['name']})" in story
            assert "None" not in story


def test_the_command_line(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "my.toml"
    file.write_text(tomli_w.dumps(scenario("red")))
    target = tmp_path / "my.parquet"
    made = cli("run", str(file), "--packets", str(target), "--packets-time", "1s..4s")
    assert made.exit_code == 0, made.stderr
    told = cli("why", str(target), "--which", "marked", keep_out=False)
    assert told.exit_code == 0, told.stderr
    assert "the coin is" in told.stdout
    row = json.loads(cli("why", str(target), "--which", "marked", "--json", keep_out=False).stdout)
    assert row["marked"] == "early"
    assert f"packet {row['n']} " in told.stdout
    again = cli("why", str(target), str(row["n"]), keep_out=False)
    assert again.stdout == told.stdout
    for arguments, problem in [
        (["why", str(file), "1"], "not a file of packets"),
        (["why", str(target), "1", "--queue", "B->A"], "no packets of this queue"),
        (["run", str(file), "--packets-every", "3"], "without a file"),
    ]:
        refused = cli(*arguments, keep_out=arguments[0] == "run")
        assert refused.exit_code != 0
        assert problem in refused.stderr
        assert "Traceback" not in refused.stderr


def varint(value: int) -> bytes:
    return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])


def sized(value: dict[str, Any]) -> bytes:
    text = json.dumps(value).encode()
    return len(text).to_bytes(4, "little") + text


def recording(hashes: tuple[str, str] | None = None, **more: str) -> bytes:
    """Arrivals of 1000 bytes, one each millisecond, a tenth of them down: half of those up fit."""
    link = {
        "rate": "4mbit", "delay": "1ms", "buffer": "20p", "aqm": "red", "mean_packet": 1000,
        "seed": 7, "params": {"w_q": "0.1", "min_th": "5p", "max_th": "15p"},
    }  # fmt: skip
    queues = [{"queue": name, **link, **more} for name in ("up", "down")]
    made = b"bwarr\0\0\1" + sized({"queues": queues})
    for n in range(3000):
        down, ecn = n % 10 == 9, (0, 2)[n % 2]
        made += varint(1_000_000) + varint(1000 << 3 | down << 2 | ecn)
        made += (n % 5).to_bytes(4, "little")
    return (
        made if hashes is None else made + varint(5) + varint(0) + sized({"decision_hash": hashes})
    )


def test_a_recording_answers_by_its_replay(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "run.arr"
    file.write_bytes(recording())
    rows, facts = packets.open_(file)
    found = rows.collect()
    assert dict(found["queue"].value_counts().iter_rows()) == {"up": 2700, "down": 300}
    assert found.filter(pl.col("queue") == "down")["n"].to_list() == list(range(300))
    assert set(found["flow"]) == set(range(5))
    up = found.filter(pl.col("queue") == "up")
    # What arrives is sent, dropped, or waits: 2 ms each, of 3 s.
    assert up.filter(pl.col("fate") == "sent").height == pytest.approx(1500, abs=10)
    judged = up.filter(pl.col("coin").is_not_null() & (pl.col("dropped") != "overflow"))
    signalled = (judged["dropped"] == "early") | (judged["marked"] == "early")
    assert (signalled == (judged["coin"] < judged["p"])).all()
    assert signalled.sum() > 500
    assert len(facts.decision_hash.split()) == 2
    told = cli("why", str(file), "--which", "marked", keep_out=False)
    assert told.exit_code == 0, told.stderr
    assert "at up (red): flow " in told.stdout
    assert "room for 20p" in told.stdout
    assert "marked (CE): the algorithm's signal" in told.stdout
    assert "at down (red)" in cli("why", str(file), "0", "--queue", "down", keep_out=False).stdout


def test_a_class_is_tried_on_what_a_gateway_recorded(tmp_path: Path, cli: Cli) -> None:
    """With the recording's own discipline, what came of its packets is what comes of them."""
    file, kept = tmp_path / "run.arr", tmp_path / "own.parquet"
    file.write_bytes(recording())

    def on_recorded(aqm: str, *more: str) -> dict[str, Any]:
        made = cli("replay", str(file), "--aqm", aqm, "--json", *more, keep_out=False)
        assert made.exit_code == 0, made.stderr
        answer: dict[str, Any] = json.loads(made.stdout)
        return answer

    mine = tmp_path / "mine.py"
    mine.write_text(keys(Blue)["code"])
    own = on_recorded(f"{mine}:Blue", "--to", str(kept))
    ours = on_recorded("blue")
    assert own["decision_hash"] == ours["decision_hash"]
    assert own["summary"]["arrivals"] == 2700
    assert pl.read_parquet(kept).height == 2700
    red = on_recorded("red")
    up = packets.open_(file)[0].filter(pl.col("queue") == "up").collect()
    marked = up.filter(pl.col("marked") == "early").height
    dropped = up.filter(pl.col("fate") == "dropped").height
    recorded = {"queue": "up", "aqm": "red", "arrivals": 2700, "marks": marked, "drops": dropped}
    assert red["recorded"] == own["recorded"] == recorded
    assert red["summary"]["marks"] == pytest.approx(marked, rel=0.1)
    assert red["summary"]["drops"] == pytest.approx(dropped, rel=0.02)
    other = on_recorded("red", "--queue", "down", "--set", "queue.0.params.max_p=0.5")
    assert other["summary"]["arrivals"] == 300
    assert "max_p = 0.5" in other["scenario"]
    told = cli("replay", str(file), "--aqm", "droptail", keep_out=False)
    assert f"recorded with red at up: {marked} marks and {dropped:,} drops of 2,700" in told.stderr


def as_recorded(file: Path, queue: dict[str, Any], **more: Any) -> pl.DataFrame:
    """Writes the packets of a simulation as those of a gateway's recording."""
    table = scenario(queue["aqm"], **queue.get("params", {}))
    table["traffic"][0]["start"] = "43.7ms..1s"
    table["traffic"][1]["start"] = "50ms"
    bluewater.run(table, packets=file)
    link = {
        "queue": "up", "rate": "10mbit", "delay": "10ms", "buffer": "40p", "seed": 1,
        "mean_packet": 1000, "params": {}, **queue, **more,
    }  # fmt: skip
    rows = pl.read_parquet(file).filter(pl.col("queue") == "A->B")
    rows = rows.with_columns(queue=pl.lit("up"))
    facts = {"version": "x", "decision_hash": "a b", "links": [link]}
    rows.write_parquet(file, metadata={writer.KEY: json.dumps(facts)})
    return rows


@pytest.mark.parametrize(
    "queue", [{"aqm": "pi2", "params": {"signals": "recur"}}, {"aqm": "codel"}]
)
def test_the_recording_s_own_discipline_decides_as_it_did(
    queue: dict[str, Any], tmp_path: Path
) -> None:
    """These draw no random numbers, so that nothing is decided otherwise."""
    recorded = as_recorded(tmp_path / "run.parquet", queue)
    on_recording(tmp_path / "run.parquet", queue["aqm"], journal=Packets(tmp_path / "to.parquet"))
    again = pl.read_parquet(tmp_path / "to.parquet")
    assert recorded["arrived_ns"][0] > 40e6
    assert (recorded["dropped"] == "early").sum() > 100
    decided = ["arrived_ns", "bytes", "ecn", "marked", "marked_ns", "dropped"]
    assert again.select(decided).equals(recorded.select(decided))
    left = recorded["fate"] != "queued"
    ends = [rows.filter(left).select("left_ns", "fate") for rows in (again, recorded)]
    assert ends[0].equals(ends[1])


def test_the_recording_s_mean_packet_is_told(tmp_path: Path) -> None:
    queue = {"aqm": "red", "params": {"mode": "bytes", "min_th": "5p", "max_th": "30p"}}
    hashes = []
    for mean in (1000, 250):
        as_recorded(tmp_path / "run.parquet", queue, mean_packet=mean)
        hashes.append(on_recording(tmp_path / "run.parquet", "red")[0].decision_hash)
    assert hashes[0] != hashes[1]


def test_who_looks_at_what_is_not_carried_over_is_refused(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "run.parquet"
    as_recorded(file, {"aqm": "codel"})
    for aqm in ("wred", "cake"):
        found = cli("replay", str(file), "--aqm", aqm, keep_out=False)
        assert found.exit_code == 2
        assert f"{aqm} decides by codepoints or hosts" in found.stderr
    settings = found.stderr.partition("without them: ")[2].split()
    found = cli("replay", str(file), "--aqm", "cake", *settings, keep_out=False)
    assert found.exit_code == 0, found.stderr
    assert "codepoints and hosts are not carried over" in found.stderr


def test_a_class_is_looked_for_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").mkdir()
    as_recorded(tmp_path / "there" / "run.parquet", {"aqm": "codel"})
    (tmp_path / "mine.py").write_text(keys(Blue)["code"])
    monkeypatch.chdir(tmp_path)
    result, _ = on_recording(Path("there/run.parquet"), "mine.py:Blue")
    assert result.summary["aqm"].endswith(":Blue")


def test_what_cannot_be_tried_on_a_recording_is_said(tmp_path: Path, cli: Cli) -> None:
    file, varying = tmp_path / "run.arr", tmp_path / "varying.arr"
    rows = tmp_path / "rows.parquet"
    file.write_bytes(recording())
    varying.write_bytes(recording(framing="ethernet"))
    bluewater.run(scenario("red"), packets=rows)
    for arguments, problem in [
        ((varying, "--aqm", "blue"), "the link's framing cannot be made of a recording"),
        ((file, "--aqm", "blue", "--queue", "side"), "no packets of this queue"),
        ((file, "--aqm", "nowhere.py:Blue"), "nowhere.py"),
        ((file, "--aqm", "bleu"), "did you mean `blue`"),
        ((rows, "--aqm", "blue"), "no recording of a gateway"),
    ]:
        refused = cli("replay", *map(str, arguments), keep_out=False)
        assert refused.exit_code == 2, refused.output
        assert problem in refused.stderr
        assert "Traceback" not in refused.stderr


def test_a_recording_whose_decisions_are_others_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.arr"
    file.write_bytes(recording())
    hashes = packets.open_(file)[1].decision_hash.split()
    # The end is a moment of its own: nothing happens in 5 ns.
    file.write_bytes(recording((hashes[0], hashes[1])))
    assert packets.open_(file)[1].decision_hash.split() == hashes
    file.write_bytes(recording((hashes[0], "0" * 16)))
    with pytest.raises(InputError, match="down: other decisions"):
        packets.open_(file)
    file.write_bytes(recording()[:60])
    with pytest.raises(InputError, match="breaks off inside its head"):
        packets.open_(file)


def test_a_recording_is_replayed_once_for_many_questions(tmp_path: Path, cli: Cli) -> None:
    file, kept = tmp_path / "run.arr", tmp_path / "kept.parquet"
    file.write_bytes(recording())
    made = cli("export", str(file), "--to", str(kept), keep_out=False)
    assert made.exit_code == 0, made.stderr
    assert pl.read_parquet(kept).equals(packets.open_(file)[0].collect())
    answers = [cli("why", str(each), "77", keep_out=False).stdout for each in (file, kept)]
    assert answers[0] == answers[1] != ""


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


def test_no_coin_is_said_only_where_none_was_drawn(tmp_path: Path) -> None:
    for aqm, coins, told in [
        ("cake", 0, "no coin: the rule alone"),
        ("curvy-red", 2, "of 2 random numbers none was drawn for one"),
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


@pytest.mark.parametrize("aqm", ["fq-codel", "fq-pie", "cake", "sfq", "drr"])
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
            assert "not marked, for " in story, f"{aqm} {params}: {story}"
            told.add(aqm)
    assert told >= {"red", "cobalt", "pie", "fred", "pi2", "dualpi2", "csfq", "sfb", "choke"}


def test_a_signal_at_the_head_is_told_when_it_came(tmp_path: Path) -> None:
    """Not as the packet's turn, which comes later."""
    found = packets_in_crowd("blue", tmp_path, signal="head")
    waited = found.filter((pl.col("marked") != "") & (pl.col("marked_ns") < pl.col("left_ns")))
    assert waited.height > 20
    assert waited.select((HIT & (pl.col("coin_ns") == pl.col("marked_ns"))).all()).item()
    told = why.tell(*why.find(tmp_path / "blue.parquet", waited["n"][0]))
    assert told.index("the coin is") < told.index("marked (CE)") < told.index("as it left")
    assert "its turn" not in told
    spared = found.filter(HIT & ~SIGNALLED & (pl.col("fate") == "sent"))
    told = why.tell(*why.find(tmp_path / "blue.parquet", spared["n"][0]))
    assert "signal, which another packet gets" in told
