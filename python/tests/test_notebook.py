"""Classes of one's own in a notebook, in a real kernel: their text is that of their cell."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.core

_FIRST = """\
import bluewater
from bluewater.aqm import Aqm, number

def decided(cls):
    link = {"rate": "2mbit", "flows": 4, "duration": "3s"}
    (run,) = bluewater.compare([cls], **link, jobs=1, progress=False).results()
    print(run[1].decision_hash)
"""
_CELL = """\
import math

LEAST = {least}

class Coin(Aqm):
    p = number(0.01, "Probability.", low=0, high=1)

    def on_arrival(self, now, packet, queue):
        return max(math.sqrt(self.p), LEAST)

class Fast(Coin):
    compiled = True

    def on_departure(self, now, packet, queue):
        return -1.0

decided(Coin)
decided(Fast)
"""
_BARE = """\
class Inherited(Coin):
    pass

decided(Inherited)
"""


def printed(cells: list[str], folder: Path) -> list[list[str]]:
    """What each cell prints, or the message of what it raises."""
    made = [nbformat.v4.new_code_cell(cell) for cell in cells]
    book = nbformat.v4.new_notebook(cells=made)
    client = NotebookClient(
        book, timeout=300, allow_errors=True, resources={"metadata": {"path": folder}}
    )
    return [
        "".join(each.get("text") or each.get("evalue", "") for each in cell["outputs"]).splitlines()
        for cell in client.execute().cells
    ]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_class_of_a_cell_is_its_cells_text(tmp_path: Path) -> None:
    """With what it uses of its cell; a cell that is changed and run again is another class."""
    pytest.importorskip("numba")
    cells = [_FIRST, _CELL.format(least=0.0), _CELL.format(least=0.2), _BARE]
    _, (plain, fast), (changed, changed_fast), bare = printed(cells, tmp_path)
    assert len(plain) == 16, plain
    assert plain == fast
    assert changed == changed_fast != plain
    assert "text of the class Inherited cannot be found" in bare[0]
    (tmp_path / "own.py").write_text(
        "from bluewater.aqm import *\n" + _CELL.partition("class F")[0].format(least=0.0)
    )
    of_file = _FIRST.replace("(cls)", "()").replace("[cls]", '["python:own.py:Coin"]') + "decided()"
    assert printed([of_file], tmp_path) == [[plain]]
