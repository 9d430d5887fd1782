"""The tables that ``scripts/suites.py`` writes into the documentation."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "scripts"))
suites = pytest.importorskip("suites")

HEAD = """\
| suite | claims | of them ours | hold | under a stated reading | contradicted | in part | do not |
|---|---|---|---|---|---|---|---|
"""


def test_a_suite_without_results_keeps_its_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(suites, "MEASURED", tmp_path)
    before = [f"| [{name}](#{name}) | 7 | 3 | 5 | – | – | 1 | 1 |\n" for name in suites.SUITES]
    (tmp_path / "suites.md").write_text(HEAD + "".join(before), encoding="utf-8")
    made = tmp_path / "results" / "bbr-drain"
    made.mkdir(parents=True)
    verdicts = ["reproduced", "reproduced", "partly"]
    claims = [{"id": "c3-x", "origin": "paper", "verdict": each} for each in verdicts]
    (made / "claims.json").write_text(json.dumps({"claims": claims}))
    monkeypatch.setattr(sys, "argv", ["suites.py", str(tmp_path / "results")])
    suites.main()
    rows = (tmp_path / "suites.md").read_text("utf-8").splitlines()
    assert rows[2] == "| [l4s](#l4s) | 7 | 3 | 5 | – | – | 1 | 1 |"
    assert "| [bbr](#bbr) | 3 | 0 | 2 | – | – | 1 | – |" in rows
    assert len(rows) == 2 + len(suites.SUITES)
