"""What becomes of the packets of a gateway's recording, and what else would have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from test_aqm import Blue
from test_packets import scenario

import bluewater
from bluewater import InputError, Packets
from bluewater.own import keys
from bluewater.results import packets, writer
from bluewater.study.comparison.replay import on_length, on_recording

if TYPE_CHECKING:
    from conftest import Cli


def varint(value: int) -> bytes:
    return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])


def sized(value: dict[str, Any]) -> bytes:
    text = json.dumps(value).encode()
    return len(text).to_bytes(4, "little") + text


def recording(hashes: tuple[str, str] | None = None, **more: Any) -> bytes:
    """Arrivals of 1000 bytes, one each millisecond, a tenth of them down: half of those up fit."""
    link = {
        "rate": "4mbit", "delay": "1ms", "buffer": "20p", "aqm": "red", "mean_packet": 1000,
        "seed": 7, "params": {"w_q": "0.1", "min_th": "5p", "max_th": "15p"},
        # What a gateway always writes, of values that vary; of such a link nothing can be made.
        "courses": {"rate": None, "delay": None, "loss": None},
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


@pytest.mark.parametrize("aqm", [each["name"] for each in bluewater.catalog()["aqms"]])
def test_each_discipline_s_recording_tells_of_its_packets(
    aqm: str, tmp_path: Path, cli: Cli
) -> None:
    """Its values stand in the order of the simulator: those of the packet's own queue come last."""
    file = tmp_path / "run.arr"
    file.write_bytes(recording(aqm=aqm, params={}))
    told = cli("why", str(file), "77", "--queue", "up", keep_out=False)
    if told.exit_code == 0:
        order = packets.open_(file)[0].collect_schema().names()
        assert "its queue" in told.stdout or not any("flow_queue" in name for name in order)
    else:
        assert told.exit_code == 2, told.exception
        assert told.stderr.startswith("error: "), told.stderr


@pytest.mark.slow
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
    # 2700 packets, a millisecond between two.
    recorded = {
        "queue": "up", "aqm": "red", "arrivals": 2700, "marks": marked, "drops": dropped,
        "length_s": pytest.approx(3, abs=0.01), "gap_s": pytest.approx(0.001, abs=0.001),
    }  # fmt: skip
    assert red["recorded"] == own["recorded"] == recorded
    assert red["summary"]["marks"] == pytest.approx(marked, rel=0.1)
    assert red["summary"]["drops"] == pytest.approx(dropped, rel=0.02)
    other = on_recorded("red", "--queue", "down", "--set", "queue.0.params.max_p=0.5")
    assert other["summary"]["arrivals"] == 300
    assert "max_p = 0.5" in other["scenario"]
    told = cli("replay", str(file), "--aqm", "droptail", keep_out=False)
    assert f"recorded with red at up: {marked} marks and {dropped:,} drops of 2,700" in told.stderr
    assert "arrivals in 3 s" in told.stderr
    assert "is short" not in told.stderr
    assert "no packet arrived" not in told.stderr


SHORT = "the recording is short for delays and shares: "


@pytest.mark.parametrize(
    ("length_s", "gap_s", "arrivals", "told"),
    [
        (60.0, 0.1, 5000, ""),
        (45.0, 40.0, 5000, "no packet arrived for 40 s of 45 s"),
        (0.25, 0.01, 5000, f"{SHORT}5,000 arrivals in 0.25 s"),
        (60.0, 1.0, 200, f"{SHORT}200 arrivals in 60 s"),
        (0.0, 0.0, 1, f"{SHORT}1 arrivals in 0 s"),
    ],
)
def test_a_short_or_silent_recording_is_told(
    length_s: float, gap_s: float, arrivals: int, told: str
) -> None:
    assert on_length({"length_s": length_s, "gap_s": gap_s, "arrivals": arrivals}) == told


def as_recorded(file: Path, queue: dict[str, Any], **more: Any) -> pl.DataFrame:
    """Writes the packets of a simulation as those of a gateway's recording."""
    table = scenario(queue["aqm"], **queue.get("params", {}))
    table["traffic"][0]["start"] = "43.7ms..1s"
    table["traffic"][1]["start"] = "50ms"
    bluewater.run(table, packets=file)
    link = {
        "queue": "up", "rate": "10mbit", "delay": "10ms", "buffer": "40p", "seed": 1,
        "mean_packet": 1000, "params": {}, "courses": dict.fromkeys(("rate", "delay", "loss")),
        **queue, **more,
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


def test_the_recording_s_policer_stands_before_any_discipline(tmp_path: Path) -> None:
    """8 Mb/s arrive; of what 2 Mb/s and a burst let pass, the link of 4 Mb/s sends everything."""
    file = tmp_path / "run.arr"
    file.write_bytes(recording(policer={"rate": "2mbit", "burst": "15kB"}))
    result, _ = on_recording(file, "droptail", "up")
    queue = result.summary
    passed = (2e6 / 8 * 3.0 + 15_000) / 1000
    assert queue["arrivals"] - queue["drops_policed"] == pytest.approx(passed, abs=2)
    assert queue["drops"] == queue["drops_policed"]


def test_the_recording_s_mean_packet_is_told(tmp_path: Path) -> None:
    queue = {"aqm": "red", "params": {"mode": "bytes", "min_th": "5p", "max_th": "30p"}}
    hashes = []
    for mean in (1000, 250):
        as_recorded(tmp_path / "run.parquet", queue, mean_packet=mean)
        hashes.append(on_recording(tmp_path / "run.parquet", "red")[0].decision_hash)
    assert hashes[0] != hashes[1]


@pytest.mark.slow
def test_who_looks_at_what_is_not_carried_over_is_refused(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "run.parquet"
    as_recorded(file, {"aqm": "codel"})
    looking = [each["name"] for each in bluewater.catalog()["aqms"] if each["labels"]]
    looking = [name for name in looking if name not in ("codel", "fq-codel")]
    assert {*looking} >= {"wred", "cake"}
    for aqm in sorted(looking, key=lambda name: name == "cake"):
        found = cli("replay", str(file), "--aqm", aqm, keep_out=False)
        assert found.exit_code == 2
        assert f"{aqm} uses the packets' DSCPs or hosts" in found.stderr
    settings = found.stderr.partition("ignores them with ")[2].split()
    found = cli("replay", str(file), "--aqm", "cake", *settings, keep_out=False)
    assert found.exit_code == 0, found.stderr
    assert "the replay lacks the packets' DSCPs and hosts" in found.stderr


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
        ((varying, "--aqm", "blue"), "cannot reproduce the link's framing"),
        ((file, "--aqm", "blue", "--queue", "side"), "no packets of this queue"),
        ((file, "--aqm", "nowhere.py:Blue"), "nowhere.py"),
        ((file, "--aqm", "bleu"), "did you mean `blue`"),
        ((rows, "--aqm", "blue"), "not a recording of a gateway"),
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
