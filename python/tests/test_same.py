from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "scripts"))
same = pytest.importorskip("same")

TEXT = """
formula = "misclassification"
levels = 2
bins = 23
nonresponsive = 8
[sizes.quick]
seeds = [1]
[[claim]]
id = "a"
text = "t"
paper = "p"
measure = "SELECT seed, value FROM runs"
holds = "<= 0.5"
[[claim]]
id = "b"
text = "u"
paper = "p"
measure = "SELECT seed, value FROM runs"
holds = "<= 1"
"""

ROWS = """
formula = "misclassification"
levels = 2
bins = "{bins}"
nonresponsive = 8
[named]
bins = 23
[sizes.quick]
seeds = [1]
[[claim]]
text = "{says}"
paper = "p"
measure = "SELECT seed, value FROM runs"
holds = "<= {most}"
over = [{ id = "a", says = "t", most = 0.5 }, { id = "b", says = "u", most = 1 }]
"""


def test_what_differs_between_two_folders_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLUEWATER_EXPERIMENTS", "")  # put back at the end
    for name, text in (("old", TEXT), ("new", ROWS)):
        (tmp_path / name / "mine").mkdir(parents=True)
        (tmp_path / name / "mine" / "one.toml").write_text(text)
    old, new = tmp_path / "old", tmp_path / "new"
    assert list(same.differing(old, new)) == []
    changed = ROWS.replace("most = 1 }", "most = 2 }").replace("bins = 23", "bins = 24")
    (new / "mine" / "one.toml").write_text(changed)
    assert list(same.differing(old, new)) == [
        "mine/one: base",
        "mine/one: claims b",
        "mine/one: runs of full",
        "mine/one: runs of quick",
    ]
    (new / "mine" / "one.toml").unlink()
    assert "mine/one: claims a" in same.differing(old, new)
