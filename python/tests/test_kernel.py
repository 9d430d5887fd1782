"""`bluewater kernel` without a kernel: a fake `make` builds a fake program.

A tree in BLUEWATER_KERNEL_TREE is built and compared, too.
"""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import pytest
from conftest import Cli

from bluewater.errors import InputError
from bluewater.kernel import build, ours, uml
from bluewater.kernel.compare import AbsentError, chosen, compare, recorded
from bluewater.kernel.fates import Fate, first_difference, of_kernel
from bluewater.kernel.settings import ALL, OFFSET, START, Setting, packets

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
    (tree / "program").write_text(text)
    return tree


def rows(*, marked: bool) -> str:
    """What a kernel prints that sends each packet a millisecond late, with a mark or none."""
    of = named("codel: ECN")
    bytes_ = [3 if marked else int(flow) for flow in of.flows.split()]
    text = json.dumps([[at + 1_000_000, bytes_[flow]] for at, flow, _ in packets(of)])
    return program(*(f"ROW {text[at : at + 999]}" for at in range(0, len(text), 999)), "END")


def named(name: str) -> Setting:
    return next(each for each in ALL if each.name == name)


def test_the_settings_are_of_all_disciplines() -> None:
    assert len({each.name for each in ALL}) == len(ALL) >= 50
    assert len([each for each in ALL if each.aqm]) >= 40
    assert {each.module.removeprefix("sch_") for each in ALL} == {
        "codel", "fq_codel", "cake", "pie", "fq_pie", "red", "choke", "sfb", "sfq", "dualpi2",
        "tbf",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["codel: ECN", "fq_codel", "cake: diffserv4", "sfb", "dualpi2: both"]
)
def test_ours_has_a_fate_for_each_packet(name: str, tmp_path: Path) -> None:
    setting = named(name)
    kernel = build.Kernel(tmp_path, "7.2.0", frozenset(), has_exact_roots=True)
    fates = ours.fates(setting, kernel, tmp_path)
    assert len(fates) == len(packets(setting))
    assert any(fate.left is None for fate in fates)
    # The first packet finds an idle line.
    assert fates[0] == Fate(0)
    assert "packet 0 at A->B" in ours.explained(tmp_path, 0)


def test_a_departure_is_after_the_first_arrival_by_whole_ticks_of_codel(tmp_path: Path) -> None:
    kernel = build.Kernel(tmp_path, "6.1.0", frozenset(), has_exact_roots=False)
    left = [
        fate.left for fate in ours.fates(named("codel"), kernel, tmp_path) if fate.left is not None
    ]
    assert all(each % 1024 == 0 for each in left)
    assert START % 1024 == 0
    assert 0 < OFFSET < 1024


def test_what_a_kernel_prints_is_joined() -> None:
    assert uml.row("boot\nROW [[3, \nROW 0], null]\nEND\nreboot: System halted") == [[3, 0], None]
    with pytest.raises(uml.NoResultError, match="Kernel panic"):
        uml.row("ROW [[3, 0]\nKernel panic - not syncing")
    with pytest.raises(uml.NoResultError, match="nothing"):
        uml.row("")


def test_the_first_difference_is_the_first_in_time() -> None:
    a = [Fate(9_000_000), Fate(5_000_000), Fate(6_000_000)]
    assert first_difference(a, [Fate(None), Fate(5_000_900), Fate(6_000_000, marked=True)]) == 2
    assert first_difference(a, a) is None


def test_a_mark_is_one_that_the_packet_did_not_bring() -> None:
    setting = Setting("x", "codel", "3 2", "9:100")
    row = [[7, 3] for _ in packets(setting)]
    assert [f.marked for f in of_kernel(setting, row)] == [
        flow == 1 for _, flow, _ in packets(setting)
    ]


def test_equal_kernels_exit_with_0_and_others_with_1(cli: Cli, tree: Path, tmp_path: Path) -> None:
    same = made(tmp_path / "same", (tree / "program").read_text())
    other = made(tmp_path / "other", rows(marked=True))
    only = ("--only", "codel: ECN", "--jobs", "1")
    assert cli("kernel", str(tree), "--against", str(same), *only).exit_code == 0
    found = cli("kernel", str(tree), "--against", str(other), *only)
    assert found.exit_code == 1
    assert "TREE2: marked and sent at 1.000 ms" in found.output


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
    kept.write_text(json.dumps([None, *json.loads(kept.read_text())[1:]]))
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
