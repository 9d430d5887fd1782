"""The rules that make faults of a kernel's sources, without a kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "scripts"))
mutations = pytest.importorskip("kernel_mutations")

CAKE = """static struct sk_buff *cake_dequeue(struct Qdisc *sch)
{
\tif (num_active_qs > 1)
\t\tnew_rate = rate / num_active_qs;
\tif (b->deficit > 0)
\t\tlen = 2;
}

static int cake_mq_init(struct Qdisc *sch)
{
\tif (num_active_qs > 1)
\t\treturn 0;
}
"""
FQ = """static struct fq_flow *fq_classify(struct Qdisc *sch)
{
\tf->credit = quantum;
}

static void fq_rehash(struct fq_sched_data *q)
{
\tfcnt++;
}
"""


def test_faults_of_cake_mq_are_in_the_lines_of_its_own() -> None:
    assert {n for n, _, _ in mutations.of(CAKE, ["sch_cake"])} == {2, 3, 4, 5}
    faults = mutations.of(CAKE, ["sch_cake_mq"])
    assert {n for n, _, _ in faults} == {2, 3}
    assert (2, "comparison", "\tif (num_active_qs >= 1)\n") in faults


def test_faults_of_fq_are_where_packets_pass() -> None:
    assert mutations.of(FQ, ["sch_fq"]) == [(2, "statement less", "\t;\n")]


def test_a_draw_repeats_and_spreads_over_the_files(tmp_path: Path) -> None:
    for file, text in zip(mutations.MORE, (FQ, CAKE), strict=True):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    drawn = [list(mutations.chosen(tmp_path, mutations.MORE, 4, seed)) for seed in (1, 1, 2, 3)]
    assert drawn[0] == drawn[1]
    assert all({file for file, *_ in each} == set(mutations.MORE) for each in drawn)
    assert len({str(each) for each in drawn}) > 1
