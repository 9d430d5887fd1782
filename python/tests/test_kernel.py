"""`bluewater kernel` without a kernel: a fake `make` builds a fake program.

A tree in BLUEWATER_KERNEL_TREE is built and compared, too.
"""

from __future__ import annotations

import itertools
import json
import os
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import Cli

from bluewater.errors import InputError
from bluewater.kernel import build, ours, uml
from bluewater.kernel.cases import ALL
from bluewater.kernel.compare import AbsentError, chosen, compare, recorded
from bluewater.kernel.fates import Fate, first_difference, of_kernel, of_statistics
from bluewater.kernel.frames import frames, left, packets
from bluewater.kernel.settings import OFFSET, START, Setting, flow

MAKE = """#!/bin/sh
tree=$2
out=${3#O=}
[ ! -e $tree/broken ] || { echo "sch_codel.c:7: error: expected ;"; exit 2; }
echo CONFIG_NET_SCH_CODEL=y >$out/.config
echo CONFIG_NET_SCH_SFQ=y >>$out/.config
cp $tree/program $out/linux
chmod +x $out/linux
"""


def program(*lines: str) -> str:
    return "#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree whose kernel sends every packet of ``codel: ECN`` 1 ms after it came."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("make", "flex", "bison", "bc", "ip", "tc"):
        (tools / name).write_text(MAKE)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return made(tmp_path / "tree", rows(marked=False))


def made(tree: Path, text: str) -> Path:
    for folder in ("arch/um", "net/sched"):
        (tree / folder).mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 9\n")
    (tree / "net/sched/sch_cake.c").touch()
    (tree / "net/sched/sch_fq.c").touch()
    (tree / "program").write_text(text)
    return tree


def rows(*, marked: bool, drops: int = 0) -> str:
    """What a kernel prints that sends each packet a millisecond late, with a mark or none."""
    of = named("codel: ECN")
    bytes_ = [3 if marked else int(flow) for flow in of.flows.split()]
    sent = [[[at + 1_000_000, bytes_[flow]]] for at, flow, _ in packets(of)]
    counts = {"sent": [1, 2], "queue": [0, 0, drops, 0, 0], "own": []}
    text = json.dumps({"packets": sent, "statistics": [[8, counts]]})
    return program(*(f"ROW {text[at : at + 999]}" for at in range(0, len(text), 999)), "END")


def named(name: str) -> Setting:
    return next(each for each in ALL if each.name == name)


def test_the_settings_are_of_all_disciplines() -> None:
    assert len({each.name for each in ALL}) == len(ALL) >= 188
    assert len([each for each in ALL if each.aqm]) >= 72
    assert {each.module.removeprefix("sch_") for each in ALL} == {
        "codel", "fq_codel", "cake", "cake_mq", "pie", "fq_pie", "red", "choke", "sfb", "sfq",
        "dualpi2", "tbf", "fq",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["codel: ECN", "fq_codel", "cake: diffserv4", "cake_mq: ingress", "sfb", "dualpi2: both", "fq"],
)
def test_ours_has_a_fate_for_each_packet(name: str, tmp_path: Path) -> None:
    setting = named(name)
    kernel = build.Kernel(tmp_path, "7.2.0", frozenset(), has_exact_roots=True, has_fast_path=True)
    fates = ours.fates(setting, kernel, tmp_path)
    assert len(fates) == len(packets(setting))
    assert any(fate.left is None for fate in fates)
    # The first packet finds an idle line.
    assert fates[0] == Fate(0)
    assert "packet 0 at A->B" in ours.explained(tmp_path, 0)


@pytest.mark.parametrize("setting", [each for each in ALL if each.params.get("queues")])
def test_marks_name_the_transmit_queue_of_a_flow(setting: Setting, tmp_path: Path) -> None:
    """The kernel's queue is the one that ours hashes the flow to."""
    kernel = build.Kernel(tmp_path, "7.2.0", frozenset(), has_exact_roots=True, has_fast_path=True)
    short = replace(setting, phases="40:100")
    ours.fates(short, kernel, tmp_path)
    queues = pl.read_parquet(tmp_path / "packets.parquet").sort("n")["found_flow_transmit_queue"]
    flows = [flow(text) for text in setting.flows.split()]
    came = packets(short)
    assert {which for _, which, _ in came} == set(range(len(flows)))
    assert queues[: len(came)].to_list() == [flows[which].mark for _, which, _ in came]


@pytest.mark.parametrize(
    ("exact", "preset"), [(True, {"preset": "linux"}), (False, {})], ids=["6.7", "6.1"]
)
def test_fq_has_the_fast_path_if_the_kernel_has(
    tmp_path: Path, exact: bool, preset: dict[str, str]
) -> None:
    kernel = build.Kernel(tmp_path, "x", frozenset(), has_exact_roots=exact, has_fast_path=exact)
    (queue,) = ours.scenario(named("fq"), kernel)["queue"]
    assert queue["params"] == {"refill_delay": "100s", **preset}


def test_words_of_cake_become_attributes() -> None:
    words = "bandwidth 12000kbit memlimit 64mb diffserv4 flows rtt 20ms ingress"
    found = dict(uml.cake(words.split()))
    assert {kind: int.from_bytes(value, "little") for kind, value in found.items()} == {
        2: 1_500_000, 3: 1, 5: 4, 7: 20_000, 8: 1000, 10: 1 << 26, 15: 1,
    }  # fmt: skip


def test_a_departure_is_after_the_first_arrival_by_whole_ticks_of_codel(tmp_path: Path) -> None:
    kernel = build.Kernel(
        tmp_path, "6.1.0", frozenset(), has_exact_roots=False, has_fast_path=False
    )
    left = [
        fate.left for fate in ours.fates(named("codel"), kernel, tmp_path) if fate.left is not None
    ]
    assert all(each % 1024 == 0 for each in left)
    assert START % 1024 == 0
    assert 0 < OFFSET < 1024


def test_what_a_kernel_prints_is_joined() -> None:
    assert uml.row("boot\nROW [[3, \nROW 0], null]\nEND\nreboot: System halted") == [[3, 0], None]
    with pytest.raises(uml.NoResultError, match=r"^Kernel panic"):
        uml.row("ROW [[3, 0]\nKernel panic - not syncing")
    with pytest.raises(uml.NoResultError, match="nothing"):
        uml.row("")


def test_the_first_difference_is_the_first_in_time() -> None:
    a = [Fate(9_000_000), Fate(5_000_000), Fate(6_000_000)]
    assert first_difference(a, [Fate(None), Fate(5_000_900), Fate(6_000_000, marked=True)]) == 2
    assert first_difference(a, a) is None


def test_a_mark_is_one_that_the_packet_did_not_bring() -> None:
    setting = Setting("x", "codel", "3 2", "9:100")
    row = [[[7, 3]] for _ in packets(setting)]
    assert [f.marked for f in of_kernel(setting, {"packets": row})] == [
        flow == 1 for _, flow, _ in packets(setting)
    ]


def test_a_codepoint_that_was_washed_and_segments_that_are_missing_differ() -> None:
    setting = Setting("x", "cake", "186", "1:100")
    (came,) = {len(packets(setting))}

    def fate(*segments: list[int]) -> Fate:
        return of_kernel(setting, {"packets": [segments] * came})[0]

    assert fate() == Fate(None)
    assert fate([7, 186]) == Fate(7)
    assert fate([7, 187]) == Fate(7, marked=True)
    assert not fate([7, 186]).is_as(fate([7, 2]))
    assert "with DSCP 0" in str(fate([7, 2]))
    assert not fate([7, 186], [9, 186]).is_as(fate([7, 186]))
    assert fate([7, 186], [9, 186]).is_as(fate([7, 186], [1009, 186]))
    assert not fate([7, 186], [9, 186]).is_as(fate([7, 186], [9009, 186]))


def test_each_frame_has_its_number_and_its_byte() -> None:
    kinds = ("186", "2/udp6", "40/tcp", "1/tcp6", "3/tcp6in4")
    setting = Setting("x", "codel", " ".join(kinds), "300:100")
    bytes_ = [int(kind.split("/")[0]) for kind in kinds]
    all_ = frames(setting)
    assert {which for _, which, _ in all_} == set(range(len(kinds)))
    assert [left(frame[:128]) for _, _, frame in all_] == [
        (n, bytes_[which]) for n, (_, which, _) in enumerate(all_)
    ]


def test_super_packets_have_the_number_in_each_segment() -> None:
    setting = Setting("x", "cake", "2/tcp-gso 1/udp-gso", "300:100")
    for n, (_, which, frame) in enumerate(frames(setting)):
        if which == 1:
            numbers = [frame[at : at + 4] for at in range(42, len(frame) - 3, 400)]
            assert [int.from_bytes(each, "big") >> 16 for each in numbers] == [n] * len(numbers)
        # A sequence number grows by a segment's bytes, which leaves the upper half.
        assert left(frame)[0] == n
        assert len(frame) < 1 << 16


def test_acknowledgements_are_of_all_kinds() -> None:
    setting = Setting("x", "cake", "0/tcp", "3000:100")
    heads = [frame[34:] for _, _, frame in frames(setting)]
    pure = [head for head in heads if len(head) == (head[12] >> 4) * 4]
    assert 0.9 < len(pure) / len(heads) < 1
    options = [head[20:] for head in pure]
    assert {5, 8, 19, 253} <= {kind for each in options for kind in each[:1] + each[2:3]}
    assert all(len(each) <= 40 for each in options)
    numbers = [int.from_bytes(head[8:12], "big") for head in pure]
    steps = [b - a for a, b in itertools.pairwise(numbers)]
    assert min(steps) < 0 < steps.count(0) < len(steps) / 2
    assert {bool(head[13] & 0x40) for head in pure} == {False, True}


def test_the_first_difference_of_statistics_is_named() -> None:
    def counts(drops: int, *own: int) -> dict[str, Any]:
        return {"statistics": [[5, {"sent": [9, 9], "queue": [0, 0, drops, 0, 0], "own": own}]]}

    assert of_statistics(counts(1, 2), counts(1, 2)) == ""
    # Another kernel may have more of its own.
    assert of_statistics(counts(1, 2), counts(1, 2, 3)) == ""
    assert of_statistics(counts(1), counts(4)) == "after 5 packets drops: 1, TREE2: 4"
    assert "word 1" in of_statistics(counts(1, 7, 8), counts(1, 7, 9))
    # An attribute has its length and its kind before the value.
    one, same, another = (8 | kind << 16 for kind in (2, 2, 3))
    assert "word 1" in of_statistics(counts(1, one, 7), counts(1, same, 8), nested=True)
    assert of_statistics(counts(1, one, 7), counts(1, another, 8), nested=True) == ""


def test_equal_kernels_exit_with_0_and_others_with_1(cli: Cli, tree: Path, tmp_path: Path) -> None:
    same = made(tmp_path / "same", (tree / "program").read_text())
    other = made(tmp_path / "other", rows(marked=True))
    only = ("--only", "codel: ECN", "--jobs", "1")
    assert cli("kernel", str(tree), "--against", str(same), *only).exit_code == 0
    found = cli("kernel", str(tree), "--against", str(other), *only)
    assert found.exit_code == 1
    assert "TREE2: marked and sent at 1.000 ms" in found.output


def test_kernels_that_count_otherwise_differ(cli: Cli, tree: Path, tmp_path: Path) -> None:
    other = made(tmp_path / "other", rows(marked=False, drops=3))
    found = cli("kernel", str(tree), "--against", str(other), "--only", "codel: ECN")
    assert found.exit_code == 1
    assert "statistics differ: after 8 packets drops: 0, TREE2: 3" in found.output


def test_a_failure_names_the_kernel(cli: Cli, tree: Path, tmp_path: Path) -> None:
    panics = made(tmp_path / "panics", program("Kernel panic - not syncing"))
    only = ("--only", "codel: ECN")
    found = cli("kernel", str(panics), "--against", str(tree), *only)
    assert found.exit_code == 125
    assert "codel: ECN: the kernel of TREE\n" in found.output
    # A bisection would skip every commit.
    found = cli("kernel", str(tree), "--against", str(panics), *only)
    assert found.exit_code == 128
    assert "codel: ECN: the kernel of TREE2\n" in found.output


def test_a_kernel_that_waits_for_a_busy_machine_has_its_time(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only processor time counts."""
    monkeypatch.setattr("bluewater.kernel.compare.TIMEOUT_S", 1)
    text = (tree / "program").read_text()
    (tree / "program").write_text(text.replace("\n", "\nsleep 2\n", 1))
    assert recorded(build.build(tree), named("codel: ECN"), tmp_path / "results")["packets"]
    spins = made(tmp_path / "spins", "#!/bin/sh\nwhile :; do :; done\n")
    with pytest.raises(uml.NoResultError, match="no end within 1 s of processor time"):
        recorded(build.build(spins), named("codel: ECN"), tmp_path / "results")


def test_a_difference_from_ours_is_explained(cli: Cli, tree: Path) -> None:
    found = cli("kernel", str(tree), "--only", "codel: ECN")
    assert found.exit_code == 1
    assert "kernel: sent at 1.000 ms" in found.output
    assert "ours: sent at 0.000 ms" in found.output
    assert "packet 0 at A->B (codel)" in found.output
    assert "Linux 6.1.9: 0 of 1 settings are equal" in found.output


def test_what_does_not_build_or_boot_exits_with_125(cli: Cli, tree: Path, tmp_path: Path) -> None:
    panics = made(tmp_path / "panics", program("Kernel panic - not syncing"))
    found = cli("kernel", str(panics), "--only", "codel: ECN")
    assert found.exit_code == 125
    assert "Kernel panic" in found.output
    (tree / "broken").touch()
    found = cli("kernel", str(tree))
    assert found.exit_code == 125
    assert "sch_codel.c:7: error" in found.output


def test_bad_input_is_refused(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="not the sources of a Linux kernel"):
        build.build(tmp_path / "bin", tmp_path / "out")
    with pytest.raises(InputError, match="no tarball"):
        build.build(tree / "Makefile", tmp_path / "out")
    kernel = build.build(tree, tmp_path / "out")
    # sfq is one that only two kernels are compared in.
    assert {each.module for each in chosen(kernel, None, "")} == {"sch_codel"}
    assert {each.module for each in chosen(kernel, kernel, "")} == {"sch_codel", "sch_sfq"}
    with pytest.raises(AbsentError, match="no such discipline"):
        chosen(kernel, None, "dualpi2")
    (tree / ".config").touch()
    with pytest.raises(InputError, match="holds a build"):
        build.build(tree, tmp_path / "out")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="programs are missing: make"):
        build.check_tools()


def test_bad_input_ends_a_bisection_and_what_is_absent_is_skipped(
    cli: Cli, tree: Path, tmp_path: Path
) -> None:
    for code, *given in [
        (128, tree, "--only", "zzz"),
        (128, tmp_path / "none"),
        (128, tree, "--against", tmp_path / "none"),
        (125, tree, "--only", "dualpi2"),
    ]:
        found = cli("kernel", *map(str, given))
        assert found.exit_code == code, found.output
        assert ("building" in found.output) == (code == 125)


@pytest.mark.parametrize(
    ("line", "exact"),
    [
        ("static u32 cobalt_rec_inv_sqrt_cache[REC_INV_SQRT_CACHE] = {0};\n", False),
        ("static const u32 inv_sqrt_cache[REC_INV_SQRT_CACHE] = {\n\t~0,\n", True),
    ],
)
def test_the_table_of_roots_is_that_of_the_tree(
    tree: Path, tmp_path: Path, line: str, exact: bool
) -> None:
    (tree / "net/sched/sch_cake.c").write_text(line)
    assert build.build(tree, tmp_path / "out").has_exact_roots == exact


def test_cake_mq_and_the_fast_path_of_fq_are_found_in_the_tree(tree: Path, tmp_path: Path) -> None:
    for text, there in (("", False), ('.id = "cake_mq", stat_fastpath_packets', True)):
        for name in ("cake", "fq"):
            (tree / f"net/sched/sch_{name}.c").write_text(text)
        kernel = build.build(tree, tmp_path / "out")
        assert ("sch_cake_mq" in kernel.modules, kernel.has_fast_path) == (there, there)


def test_another_tarball_is_unpacked(tree: Path, tmp_path: Path) -> None:
    tarball = tmp_path / "linux.tar"
    for word in ("one", "another"):
        (tree / "WORD").write_text(word)
        with tarfile.open(tarball, "w") as archive:
            archive.add(tree, "linux")
        kernel = build.build(tarball, tmp_path / "out")
        assert (kernel.folder / "source/WORD").read_text() == word


def test_the_same_program_is_not_asked_twice(tree: Path, tmp_path: Path) -> None:
    kernel = build.build(tree, tmp_path / "out")
    settings = [named("codel: ECN")]
    first = list(compare(kernel, settings, tmp_path / "results", kernel))
    (kept,) = (tmp_path / "results/rows").iterdir()
    found = json.loads(kept.read_text())
    kept.write_text(json.dumps({**found, "packets": [[], *found["packets"][1:]]}))
    assert first[0].dropped == 0
    assert next(compare(kernel, settings, tmp_path / "results", kernel)).dropped == 1


def test_a_setting_with_other_packets_is_asked_anew(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = build.build(tree, tmp_path / "out")
    recorded(kernel, named("codel: ECN"), tmp_path)
    monkeypatch.setattr("bluewater.kernel.compare.packets", lambda _: [(0, 0, 64)])
    with pytest.raises(uml.NoResultError, match="gaps"):
        recorded(kernel, named("codel: ECN"), tmp_path)
