from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from conftest import Cli

import bluewater
from bluewater.errors import InputError
from bluewater.study.identify import (
    candidates,
    cross,
    features,
    infer,
    path,
    probe,
    recording,
    virtual,
)
from bluewater.study.identify.candidates import FAMILIES, SEARCHED
from bluewater.study.identify.recording import Recording
from bluewater.study.scenarios.scenario import Scenario
from bluewater.units import seconds

RATE = 2_000_000
GOOD = "sent_s,bytes,ecn,flow,arrived_s,ecn_arrived\n"


def scenario(aqm: str, buffer: str, params: str = "") -> Scenario:
    return Scenario.parse(
        f"""
duration = "1s"
[[link]]
from = "A"
to = "B"
rate = "{RATE}bit"
delay = "30ms"
[[queue]]
link = "A->B"
aqm = "{aqm}"
buffer = "{buffer}"
params = {{ {params} }}
[[traffic]]
transport = "cbr"
rate = "1kbit"
from = ["A"]
to = ["B"]
"""
    )


def recorded(aqm: str, buffer: str, params: str = "") -> Recording:
    return virtual.probed(scenario(aqm, buffer, params))


@pytest.fixture(scope="module")
def codel() -> Recording:
    return recorded("codel", "500p", 'preset = "linux", interval = "60ms"')


@pytest.fixture(scope="module")
def defaults(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, np.ndarray]]:
    """The statistics of each family with its defaults, for two seeds."""
    rate, room, file = (
        float(RATE),
        candidates.Room(120e3, 1500, 0.05),
        tmp_path_factory.mktemp("identify") / "p.pcapng",
    )
    packets = probe.packets(rate)
    path.capture(packets, file)

    def made(each: candidates.Family, seed: int) -> np.ndarray:
        queue = candidates.queue(each, candidates.starts(each, room)[0], rate, room, ecn=True)
        text = path.scenario(queue, file, float(packets.sent[-1]), seed)
        return features.statistics(path.run(text, int(packets.flow.max()) + 1), 0.006)

    return {seed: {each.name: made(each, seed) for each in FAMILIES} for seed in (1, 99)}


@pytest.mark.parametrize("family", [each.name for each in FAMILIES])
def test_the_probe_tells_each_family_from_the_others(
    family: str, defaults: dict[int, dict[str, np.ndarray]]
) -> None:
    misfits = {
        name: features.misfit(features.deviations(defaults[99][family], made, 0.0))
        for name, made in defaults[1].items()
    }
    ranked = sorted(misfits, key=lambda name: misfits[name])
    assert ranked[0] == family
    assert misfits[ranked[1]] - misfits[ranked[0]] > 0.1


def test_rate_and_base_delay_are_read_off(codel: Recording) -> None:
    basics = features.basics(codel)
    assert basics.rate == pytest.approx(RATE, rel=0.002)
    assert basics.base == pytest.approx(0.03, abs=1e-4)


def test_a_recording_survives_its_file(codel: Recording, tmp_path: Path) -> None:
    file = tmp_path / "path.csv"
    codel = replace(codel, after=np.where(~codel.lost & (codel.after == 2), 1, codel.after))
    assert set(codel.after[codel.ecn == 2]) == {1, 3}
    recording.write(codel, file)
    again = recording.read(file)
    for name in ("size", "ecn", "after", "marked"):
        assert (getattr(again, name) == getattr(codel, name)).all()
    pairs = set(zip(again.flow.tolist(), codel.flow.tolist(), strict=True))
    assert len(pairs) == len(set(codel.flow.tolist())) == len(set(again.flow.tolist()))
    delay, same = again.arrived - again.sent, codel.arrived - codel.sent
    assert np.allclose(delay, same, atol=1e-8, equal_nan=True)
    assert codel.lost.any()
    assert codel.marked.any()


def only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """A search among few candidates, which takes seconds."""
    few = [each for each in SEARCHED if each.name in names]
    monkeypatch.setattr(infer, "SEARCHED", few)
    monkeypatch.setattr(infer, "_ROUNDS", ((len(few), 8, 0.5), (2, 12, 0.3), (1, 16, 0.1)))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "droptail", "codel", "red", "pie")


@pytest.mark.slow
@pytest.mark.parametrize("before", [0.0, 0.3])
def test_blue_is_found_whatever_came_before(before: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows where its buffer fills, and remembers overloads before the recording."""
    only(monkeypatch, "droptail", "red", "blue")
    found = infer.identify(recorded("blue", "100p", f"initial = {before}"))
    assert found.families == ("blue",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("aqm", "buffer", "least", "most", "more"),
    [
        ("red", "194kB", "19500B", "64733B", "max_p = 0.29, w_q = 0.03125, ecn = false"),
        ("red", "250kB", "20000B", "50000B", "max_p = 0.03, w_q = 0.0625, ecn = false"),
        ("choke", "1000p", "12p", "32p", "max_p = 0.17"),
    ],
)
def test_what_ends_at_max_th_is_no_drop_tail(
    aqm: str, buffer: str, least: str, most: str, more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above ``max_th`` each packet is dropped, as behind a full buffer."""
    only(monkeypatch, "droptail", "drop-front", "red", "choke")
    params = f'preset = "linux", min_th = "{least}", max_th = "{most}", {more}'
    found = infer.identify(recorded(aqm, buffer, params))
    assert aqm in found.families
    if found.queue.aqm == aqm:
        (wall,) = (each for each in found.parameters if each.name == "max_th")
        assert float(wall.value[:-1]) == pytest.approx(float(most[:-1]), rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("gentle", ["true", "false"])
def test_red_is_found_where_it_counts_packets(gentle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on routers; Linux's counts bytes. Others behave much like it."""
    only(monkeypatch, "droptail", "red", "ared", "blue", "sfb")
    params = f'min_th = "25p", max_th = "80p", max_p = 0.12, gentle = {gentle}, ecn = false'
    found = infer.identify(recorded("red", "110p", params))
    assert found.families == ("red",)
    values = {each.name: each.value for each in found.parameters}
    assert float(values["max_th"].removesuffix("p")) == pytest.approx(80, rel=0.2)


@pytest.mark.slow
def test_a_recording_that_begins_in_overload_says_so(short: None) -> None:
    """Nothing shows how long the path is without its queue."""
    made = recorded("droptail", "60p")
    flood = made.sent > made.sent[-1] - 3
    cut = replace(
        made, **{name: getattr(made, name)[flood] for name in ("sent", "size", "ecn", "flow")},
        arrived=made.arrived[flood], after=made.after[flood],
    )  # fmt: skip
    assert "begin before the overload" in infer.identify(cut).remarks[0]
    assert not infer.identify(made).remarks


@pytest.mark.slow
def test_sfq_is_found_without_its_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "sfq", "drr")
    found = infer.identify(recorded("sfq", "80p"))
    assert "sfq" in found.families
    assert found.queue.params.get("preset") is None


@pytest.mark.slow
def test_sfq_is_found_by_the_flows_that_share_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """With this seed the hash of most candidates keeps apart what it brings together."""
    only(monkeypatch, "sfq", "drr")
    found = infer.identify(virtual.probed(scenario("sfq", "80p").with_({"seed": 6})))
    assert "sfq" in found.families


@pytest.mark.slow
def test_codel_is_found_with_a_target_far_from_its_default(short: None) -> None:
    found = infer.identify(
        recorded("codel", "1000p", 'preset = "linux", target = "29ms", interval = "60ms"')
    )
    assert found.families == ("codel",)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["losses", "marks"])
def test_what_happens_elsewhere_is_told_and_hides_no_queue(what: str, short: None) -> None:
    made = recorded("droptail", "80p")
    chance = np.random.default_rng(1).random(made.sent.size)
    if what == "losses":
        made = replace(made, arrived=np.where(chance < 0.01, np.nan, made.arrived))
    else:
        made = replace(made, after=np.where((made.ecn > 0) & (chance < 0.05), 3, made.after))
    found = infer.identify(made)
    assert "droptail" in found.families
    assert "elsewhere on the path" in found.remarks[0]


@pytest.mark.slow
def test_codel_is_found_with_its_interval(codel: Recording, short: None) -> None:
    found = infer.identify(codel)
    assert found.families == ("codel",)
    interval = next(each for each in found.parameters if each.name == "interval")
    assert seconds(interval.value) == pytest.approx(0.06, rel=0.2)
    assert found.marked["ect0"] > 0.1


@pytest.mark.slow
def test_a_queue_that_is_no_candidate_is_unknown(short: None) -> None:
    assert not infer.identify(recorded("bernoulli", "2000p", "p = 0.3, ecn = false")).families


@pytest.mark.slow
def test_a_buffer_of_packets_is_found_with_packets_below_1500_bytes(short: None) -> None:
    found = infer.identify(recorded("droptail", "80p"))
    (buffer,) = (each for each in found.parameters if each.name == "buffer")
    assert buffer.value.endswith("p")
    assert int(buffer.value[:-1]) == pytest.approx(80, rel=0.02)


def test_a_queue_that_never_acts_is_not_identified() -> None:
    """A buffer that the probe does not fill: each packet follows those before it."""
    sent = probe.packets(RATE)
    time = sent.size * 8 / RATE
    left = np.cumsum(time) + np.maximum.accumulate(sent.sent - np.cumsum(time) + time)
    endless = Recording(sent.sent, sent.size, sent.ecn, sent.flow, left, sent.ecn)
    with pytest.raises(InputError, match="nothing to identify"):
        infer.observe(endless)


def test_losses_and_marks_without_a_queue_are_told(codel: Recording) -> None:
    def remarks(made: Recording) -> list[str]:
        found = features.elsewhere(made, features.basics(made))
        return list(infer._remarks(found, never_idle=False))

    assert not remarks(codel)
    lost = np.random.default_rng(1).random(codel.sent.size) < 0.05
    assert "lost" in remarks(replace(codel, arrived=np.where(lost, np.nan, codel.arrived)))[0]
    everywhere = replace(codel, ecn=0 * codel.ecn + 2, after=0 * codel.ecn + 3)
    assert "marked" in remarks(everywhere)[0]


@pytest.mark.parametrize("gap", [0, 10**4])
def test_arrivals_that_tell_no_rate_are_refused(gap: int, tmp_path: Path) -> None:
    file = tmp_path / "path.csv"
    rows = (f"{k / 100},1400,not-ect,a,{'' if k % 9 == 0 else 5 + gap * k},\n" for k in range(600))
    file.write_text(GOOD + "".join(rows))
    with pytest.raises(InputError, match="the times of arrival tell no rate"):
        bluewater.identify(file)


def test_losses_without_a_queue_are_not_identified() -> None:
    sent = probe.packets(RATE)
    lost = np.random.default_rng(1).random(sent.sent.size) < 0.02
    arrived = np.where(lost, np.nan, sent.sent + 0.01)
    thinned = Recording(sent.sent, sent.size, sent.ecn, sent.flow, arrived, sent.ecn)
    with pytest.raises(InputError, match="no packet waits"):
        infer.observe(thinned)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not a recording"),
        ("a,b\n1,2\n", "sent_s"),
        (GOOD + "0,1400,not-ect,a,0.1,\n" * 3, "the recording has 3 packets"),
        (GOOD + "0,1400,yes,a,0.1,\n", "ecn = 'yes'"),
        (GOOD + "0,1400,not-ect,a,soon,\n", "arrived_s = 'soon'"),
        (GOOD + "nan,1400,not-ect,a,1,\n", "sent_s = 'nan'"),
        (GOOD + "0,14,not-ect,a,1,\n", "bytes = '14'"),
        (GOOD + "0,1400,not-ect,a,0.1,\n" * 600, "spans 0 s"),
        (GOOD + "".join(f"{k},1400,not-ect,a,,\n" for k in range(600)), "too few packets arrived"),
    ],
)
def test_what_is_no_recording_is_refused(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "path.csv"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        bluewater.identify(file)
    assert told in str(error.value)
    assert str(file) in str(error.value)


def test_the_command_writes_the_recording_of_a_probed_scenario(cli: Cli, tmp_path: Path) -> None:
    file, to = tmp_path / "my.toml", tmp_path / "path.csv"
    file.write_text(tomli_w.dumps(scenario("droptail", "40p").table))
    assert cli("identify", str(file), "--to", str(to), keep_out=False).exit_code == 0
    assert features.basics(recording.read(to)).rate == pytest.approx(RATE, rel=0.002)
    refused = cli("identify", str(to), "--to", str(to), keep_out=False)
    assert refused.exit_code == 2
    assert "--to is for a scenario" in refused.output


def test_a_link_that_varies_is_refused() -> None:
    varying = scenario("droptail", "40p").with_({"link.0.jitter": "1ms"})
    with pytest.raises(InputError, match="varies"):
        virtual.probed(varying)


@pytest.mark.slow
def test_the_example_of_the_page_has_its_answer(cli: Cli, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/identify.md").read_text(encoding="utf-8")
    _, _, rest = text.partition('title="path.toml"\n')
    example, _, rest = rest.partition("```")
    _, _, rest = rest.partition("```text\n")
    answer, _, _ = rest.partition("```")
    (tmp_path / "path.toml").write_text(example)
    done = cli("identify", str(tmp_path / "path.toml"), "--jobs", "1", keep_out=False)
    shown = [line.rstrip() for line in done.stdout.splitlines()]
    assert shown == [line.rstrip() for line in answer.splitlines()]


@pytest.mark.slow
def test_the_buffer_of_queues_per_flow_is_found_from_afar(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting time bounds it, and the usual ones are ten times as large or more."""
    only(monkeypatch, "fq-codel")
    found = infer.identify(recorded("fq-codel", "200p", 'preset = "linux"'))
    (buffer,) = (each for each in found.parameters if each.name == "buffer")
    assert int(buffer.value.removesuffix("p")) == pytest.approx(200, rel=0.1)


def jittered(made: Recording, longest: float, ordered: bool) -> Recording:
    """A recording behind whose queue packets are late by up to this time, s."""
    late = made.arrived + np.random.default_rng(1).uniform(0, longest, made.arrived.size)
    if ordered:
        order = np.argsort(np.where(made.lost, np.inf, made.arrived), kind="stable")
        late[order] = np.fmax.accumulate(late[order])
    return replace(made, arrived=np.where(made.lost, np.nan, late))


@pytest.mark.slow
@pytest.mark.parametrize("t_update", ["15ms", "30ms"])
def test_pie_is_found_with_any_timer_of_linux(t_update: str, short: None) -> None:
    params = f'preset = "linux", target = "20ms", t_update = "{t_update}"'
    found = infer.identify(recorded("pie", "1000p", params))
    assert found.families == ("pie",)
    assert found.queue.params["t_update"] == t_update
    (target,) = (each.value for each in found.parameters if each.name == "target")
    assert seconds(target) == pytest.approx(0.02, rel=0.2)


@pytest.mark.parametrize("ordered", [True, False])
def test_jitter_is_no_token_bucket_and_no_higher_rate(codel: Recording, ordered: bool) -> None:
    basics = features.basics(jittered(codel, 5e-3, ordered))
    assert basics.rate == pytest.approx(RATE, rel=0.001)
    assert basics.burst == 0
    assert basics.jitter.usual == pytest.approx(0.95 * 5e-3, rel=0.1)
    assert basics.jitter.ordered == ordered
    assert not features.basics(codel).jitter


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [True, False])
def test_a_queue_is_found_behind_jitter(codel: Recording, ordered: bool, short: None) -> None:
    found = infer.identify(jittered(codel, 10e-3, ordered))
    assert found.families == ("codel",)
    (interval,) = (each.value for each in found.parameters if each.name == "interval")
    assert seconds(interval) == pytest.approx(0.06, rel=0.2)


@pytest.mark.parametrize("faster", [20, 4, 1.5])
@pytest.mark.parametrize(("burst", "read"), [(0, 0), (probe.FULL, 0), (6000, 6000), (12_000,) * 2])
def test_a_token_bucket_is_read_off(burst: int, read: int, faster: float) -> None:
    """Packets that pass at once would raise the rate, and take the time of the line behind.

    A bucket of a packet, such as CAKE's shaper, is a line that takes little time.
    """
    behind = scenario("droptail", "80p")
    if burst:
        shaper = {"rate": f"{RATE}bit", "burst": f"{burst}B"}
        line = f"{round(faster * RATE)}bit"
        behind = behind.with_({"queue.0.shaper": shaper, "link.0.rate": line})
    made = virtual.probed(behind)
    observed, basics = infer.observe(made)
    assert basics.burst == pytest.approx(read, rel=0.1)
    assert basics.line == pytest.approx(RATE * (faster if burst else 1), rel=0.02)
    assert not basics.jitter
    assert basics.rate == pytest.approx(RATE, rel=0.002)
    assert basics.base == pytest.approx(0.03, abs=2e-4)
    family = next(each for each in FAMILIES if each.name == "droptail")
    queue = observed.candidate(family, {"buffer": 80, "unit": "packets"})
    with infer.simulator(made, observed, 1, 1) as simulated:
        assert simulated.misfits([queue])[0] < 0.2


def behind(sent: np.ndarray, size: np.ndarray) -> np.ndarray:
    """When packets have left a queue that drops none."""
    time = size * 8 / RATE
    left: np.ndarray = np.cumsum(time) + np.maximum.accumulate(sent - np.cumsum(time) + time)
    return left


def test_cross_traffic_is_read_off_gaps() -> None:
    """Against a queue written down here: its rate, size and course, while packets wait."""
    random = np.random.default_rng(1)
    ours, theirs = (np.sort(random.uniform(0, 16, count)) for count in (2200, 1500))
    at, size = np.r_[ours, theirs], np.r_[np.full(2200, 1400), np.full(1500, 1200)]
    own, order = np.arange(3700) < 2200, np.argsort(at, kind="stable")
    left, own = behind(at[order], size[order]), own[order]
    assert (left - at[order] > 0.1).mean() > 0.8
    plain = np.zeros(2200, int)
    made = Recording(at[order][own], plain + 1400, plain, plain, left[own] + 0.05, plain)
    found = cross.read(made, RATE, steady=False)
    assert found is not None
    assert found.rate == pytest.approx(RATE, rel=1e-6)
    assert found.size == 1200
    assert found.share == pytest.approx(1500 * 1200 / (1500 * 1200 + 2200 * 1400), rel=0.05)
    seconds_ = np.arange(1, 16)
    for fair, when in ((False, at[order]), (True, left - size[order] * 8 / RATE)):
        packets = found.packets(fair, apart=True, flows=1, draw=0)
        most = 1 + 0.1 * fair  # queues per flow are offered a tenth more
        passed = np.searchsorted(packets.sent, seconds_) / most
        assert np.abs(passed - np.searchsorted(when[~own], seconds_)).max() <= 5


def test_less_than_a_packet_is_no_cross_traffic() -> None:
    """A single small packet among 600, of which a candidate could not be given any."""
    at, size = np.arange(600) * 1e-3, np.full(600, 1400)
    size[300] = 900
    own = np.arange(600) != 300
    plain = np.zeros(599, int)
    left = behind(at, size)[own]
    made = Recording(at[own], size[own], plain, plain, left, plain)
    assert cross.read(made, RATE, steady=False) is None


def test_no_cross_traffic_is_seen_where_there_is_none(codel: Recording) -> None:
    assert features.basics(codel).cross is None
    assert features.basics(jittered(codel, 5e-3, ordered=True)).cross is None


@pytest.mark.parametrize("gap", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize("tick", [1e-3, 5e-3, 0.012, 0.03])
def test_bunches_and_coarse_clocks_are_no_cross_traffic(
    tick: float, gap: float, codel: Recording
) -> None:
    """As a radio link, a timer or a card hands packets over, faster than the bottleneck."""
    order = np.argsort(np.where(codel.lost, np.inf, codel.arrived), kind="stable")
    late = np.ceil(codel.arrived[order] / tick) * tick
    for k in range(1, int((~codel.lost).sum())):
        late[k] = max(late[k], late[k - 1] + gap)
    arrived = np.empty(order.size)
    arrived[order] = late
    made = replace(codel, arrived=np.where(codel.lost, np.nan, arrived))
    basics = features.basics(made)
    assert basics.cross is None
    assert basics.rate == pytest.approx(RATE, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("aqm", "flows"), [("droptail", 1), ("fq-codel", 2)])
def test_a_queue_is_found_beside_tcp(aqm: str, flows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "droptail", "pie", "fq-codel", "drr")
    tcp = {"transport": "cubic", "flows": flows, "from": ["A"], "to": ["B"]}
    found = infer.identify(virtual.probed(scenario(aqm, "80p").with_({"traffic.0": tcp})))
    assert found.families == (aqm,)
    assert found.rate == pytest.approx(RATE, rel=1e-4)
    assert found.cross > 0.1 * flows
