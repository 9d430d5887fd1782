"""What the replay of attacks on real packets sends, and what it makes of goodputs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "scripts"))
real = pytest.importorskip("attacks_real")


def test_words_of_the_page_become_traffic() -> None:
    made = real.traffic(
        "136 of 272 flows at a time, 25 ms at 17.3 Mb/s every 0.22 s; 401-byte packets"
    )
    assert made == real.Traffic(136, 2, 17.3e6, 0.025, 0.22, 401, False)
    assert real.traffic("one flow, 18 ms at 38.8 Mb/s every 2.71 s; ECN-capable") == real.Traffic(
        1, 1, 38.8e6, 0.018, 2.71, 1500, True
    )
    steady = real.traffic("56 flows, together 9.0 Mb/s")
    assert (steady.rate, steady.period, steady.flows) == (9e6, 0.0, 56)


def test_the_mean_rate_is_that_of_the_page() -> None:
    """Of all attacks on throughput, within what rounding and the last burst change."""
    rows = (ROOT / "docs/measured/attacks.md").read_text().splitlines()[2:]
    rates = {row.split("|")[1].strip(" `"): float(row.split("|")[3]) for row in rows}
    for aqm, measure, made in real.attacks():
        if measure == "throughput":
            packets = sum(len(flows) for _, flows in made.sendings())
            mean = 8 * made.packet * packets / real.LASTS_S / real.RATE
            assert 100 * mean == pytest.approx(rates[aqm.partition(":")[0]], rel=0.05)


def test_bursts_are_sent_by_all_flows_and_a_constant_rate_by_one_after_another() -> None:
    bursts = list(real.Traffic(3, 1, 1.2e6, 0.1, 5.0, 1000, False).sendings())
    assert [round(at, 3) for at, _ in bursts[:6]] == [0, 0.02, 0.04, 0.06, 0.08, 5]
    assert {len(flows) for _, flows in bursts} == {3}
    steady = list(real.Traffic(4, 1, 8e6, 0.0, 0.0, 1000, False).sendings())
    assert len(steady) == 20_000
    assert [list(flows) for _, flows in steady[:5]] == [[0], [1], [2], [3], [0]]


def test_damage_is_that_of_the_search() -> None:
    before = [1e6, 1e6, 2e6]
    assert real.damage("throughput", [1e6, 0.5e6, 0.5e6], before, 0) == pytest.approx(0.5)
    assert real.damage("starve", [1e6, 0.5e6, 0.5e6], before, 0) == pytest.approx(0.375)
    assert real.damage("penalty", [], before, 8e6) == pytest.approx(0.8)


def test_repetitions_are_compared_one_by_one() -> None:
    def row(attack: str, rep: str, goodputs: str) -> dict[str, str]:
        return {
            "aqm": "red", "attack": attack, "rto_min": "1s", "congestion": "reno", "rep": rep,
            "attacker_bps": "0", "goodputs_bps": goodputs,
        }  # fmt: skip

    rows = [row("", "1", "4 4"), row("", "2", "8 8"), row("", "3", "9 9")]
    rows += [row("throughput", "1", "1 1"), row("throughput", "2", "4 4")]
    assert real.measured(rows, "red", "throughput", ("1s", "reno")) == "62 (50 … 75)"
    assert real.measured(rows, "red", "throughput", ("200ms", "cubic")) == "–"
