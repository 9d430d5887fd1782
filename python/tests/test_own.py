"""The text of a user's class: it gives the class as it is, and contains all that it uses."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import pytest

import bluewater
from bluewater import _core, own
from bluewater.errors import InputError
from bluewater.study.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

pytestmark = pytest.mark.core

SCRIPT = """
from bluewater.control import Controller
try:
    import numpy as np
except ImportError:
    np = None

GAIN = 0.5
TABLE = {"least": 2}
TABLE["most"] = 4
COUNT = 1
COUNT += 1
LIST = [1.0, 2.0]
for i in range(2):
    LIST[i] *= 10


def shrunk(window):
    return window * GAIN


class Mine(Controller):
    beta = 0.5

    def start(self, s):
        self.mtu, self.cwnd = float(s.mtu), float(s.initial_window) + np.zeros(COUNT)[0]

    def on_ack(self, a):
        for i in range(1):
            self.cwnd += self.mtu * a.acked / self.cwnd if a.window_limited else 0.0

    def on_congestion(self, c):
        self.cwnd = max(shrunk(self.cwnd) * self.beta, TABLE["least"] * self.mtu)


class Looped(Controller):
    def start(self, s):
        self.cwnd = LIST[1] * s.mtu


if len(TABLE) == 2:
    NAMED = "in an if"


class Conditional(Controller):
    word = NAMED
"""


def table(transport: Any, **keys: Any) -> dict[str, Any]:
    group = {"transport": transport, "flows": 2, **keys}
    network = {"preset": "dumbbell", "rate": "10mbit"}
    queue = [{"aqm": "codel", "buffer": "30p"}]
    return {"duration": "3s", "network": network, "queue": queue, "traffic": [group]}


def hash_of(transport: Any) -> str:
    return bluewater.run(table(transport)).decision_hash


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "exp_script.py").write_text(SCRIPT, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("exp_script")
    sys.modules.pop("exp_script", None)


def test_a_class_is_cut_out_with_what_changes_its_names(script: ModuleType) -> None:
    code = own.keys(script.Mine, "transport")["code"]
    for part in ("import numpy", 'TABLE["most"] = 4', "COUNT += 1", "def shrunk"):
        assert part in code
    for part in ("for i in range(2)", "LIST", "Looped"):
        assert part not in code
    assert hash_of(script.Mine) == hash_of(f"python:{script.__file__}:Mine")


def changed_global(script: Any) -> None:
    script.GAIN = 0.95


def changed_attribute(script: Any) -> None:
    script.Mine.beta = 0.99


def changed_method(script: Any) -> None:
    script.Mine.on_ack = lambda *_: None


def changed_table(script: Any) -> None:
    script.TABLE["least"] = 3


@pytest.mark.parametrize(
    ("change", "cls", "said"),
    [
        (changed_global, "Mine", "GAIN is 0.95, but the text of the class Mine gives 0.5"),
        (changed_attribute, "Mine", "Mine.beta is 0.99, but .* gives 0.5"),
        (changed_method, "Mine", "Mine.on_ack is another function"),
        (changed_table, "Mine", r"TABLE\['least'\] is 3, but .* gives 2"),
        (None, "Looped", r"LIST\[0\] is 10.0, but .* gives 1.0"),
        (None, "Conditional", "NAMED is 'in an if', but the text of the class Conditional has"),
    ],
)
def test_a_class_that_its_text_does_not_give_is_refused(
    script: ModuleType, change: Any, cls: str, said: str
) -> None:
    if change:
        change(script)
    with pytest.raises(InputError, match=said) as caught:
        Scenario(table(getattr(script, cls)))
    assert "a file of its own" in str(caught.value.hint)


def test_values_from_outside_of_the_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text(f"import os\nA = os.environ.get('A')\n{SCRIPT}", "utf-8")
    with pytest.raises(_core.ScenarioError, match=r"outside\.py:2: os\.environ is not part"):
        Scenario(table(f"python:{tmp_path / 'outside.py'}:Mine"))


USES = """
from pathlib import Path
from bluewater.control import Controller
import parts.deep
from parts import gains

GAIN = gains.GAIN * parts.deep.GAIN * float(Path({path!r}).read_text())

class Uses(Controller):
    def start(self, s):
        self.mtu, self.cwnd = float(s.mtu), float(s.initial_window)
        self.least = float(Path({least!r}).read_text())

    def on_ack(self, a):
        self.cwnd += self.mtu * a.acked / self.cwnd if a.window_limited else 0.0

    def on_congestion(self, c):
        {body}
        self.cwnd = max(self.cwnd * GAIN, self.least * self.mtu)
"""


def using(folder: Path, body: str = "pass", **values: str) -> Path:
    values = {"gains": "0.9", "deep": "0.9", "factor": "1.0", "least": "2", **values}
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts" / "__init__.py").write_text("from . import gains\n", "utf-8")
    (folder / "parts" / "gains.py").write_text(f"GAIN = {values['gains']}\n", "utf-8")
    (folder / "parts" / "deep.py").write_text(
        f"from .gains import GAIN as G\nGAIN = {values['deep']} * G / G\n", "utf-8"
    )
    for name in ("factor", "least"):
        (folder / f"{name}.txt").write_text(values[name], "utf-8")
    path, least = (str(folder / f"{name}.txt") for name in ("factor", "least"))
    (folder / "uses.py").write_text(USES.format(path=path, least=least, body=body), "utf-8")
    (folder / "own.toml").write_text(_toml(table("python:uses.py:Uses")), "utf-8")
    return folder / "own.toml"


def _toml(table: dict[str, Any]) -> str:
    import tomli_w  # noqa: PLC0415

    return tomli_w.dumps(table)


def test_what_a_class_uses_is_part_of_the_run(tmp_path: Path) -> None:
    changes: list[dict[str, str]] = [
        *({}, {"gains": "0.3"}, {"deep": "0.3"}, {"factor": "0.3"}, {"least": "9"})
    ]
    scenarios = []
    for change in changes:
        scenarios.append(Scenario.load(using(tmp_path, **change)))
        assert scenarios[-1].prepared.key == Scenario.load(using(tmp_path, **change)).prepared.key
        scenarios[-1].prepared.run()
    assert len({each.prepared.key for each in scenarios}) == len(changes)
    assert "parts" not in sys.modules


def test_modules_travel_with_the_text_and_changed_files_are_found(tmp_path: Path) -> None:
    scenario = Scenario.load(using(tmp_path))
    first = scenario.prepared.run().decision_hash
    using(tmp_path, gains="0.2")
    (tmp_path / "parts" / "gains.py").unlink()
    assert bluewater.run(scenario.canonical).decision_hash == first
    using(tmp_path, factor="0.5")
    with pytest.raises(_core.ScenarioError, match=r"factor\.txt has changed since"):
        bluewater.run(scenario.canonical)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("Path({path!r}).read_text()", "other.txt is read during the run: read it in start"),
        ("import late", "late is imported during the run: import it at the top"),
    ],
)
def test_what_a_run_uses_is_known_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    (tmp_path / "late.py").write_text("", "utf-8")
    (tmp_path / "other.txt").write_text("", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    path = using(tmp_path, body.format(path=str(tmp_path / "other.txt")))
    with pytest.raises(InputError, match=said):
        bluewater.run(path)


def test_a_module_that_start_imports_is_part_of_the_run(tmp_path: Path) -> None:
    text = "from bluewater.control import Controller\nclass Own(Controller):\n"
    text += "    def start(self, s):\n        import late\n        self.cwnd = late.GAIN * s.mtu\n"
    (tmp_path / "own.py").write_text(text, "utf-8")
    keys = []
    for gain in ("4", "9"):
        (tmp_path / "late.py").write_text(f"GAIN = {gain}\n", "utf-8")
        scenario = Scenario(table(f"python:{tmp_path / 'own.py'}:Own"))
        keys.append(scenario.prepared.key)
        assert f"GAIN = {gain}" in scenario.canonical
        scenario.prepared.run()
    assert keys[0] != keys[1]


def test_a_base_in_another_file_is_part_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "exp_family.py").write_text(SCRIPT, "utf-8")
    text = "from exp_family import Mine\nclass Child(Mine):\n    pass\n"
    (tmp_path / "exp_child.py").write_text(text, "utf-8")
    child = importlib.import_module("exp_child").Child
    try:
        code = own.keys(child, "transport")["code"]
        assert "#% bluewater: module exp_family.py" in code
        assert hash_of(child) == hash_of(sys.modules["exp_family"].Mine)
        child.__base__.beta = 0.9
        with pytest.raises(InputError, match=r"Mine\.beta is 0\.9"):
            own.keys(child, "transport")
    finally:
        sys.modules.pop("exp_child")
        sys.modules.pop("exp_family")


def test_a_file_may_read_what_stands_beside_it(tmp_path: Path) -> None:
    text = "from pathlib import Path\nfrom bluewater.control import Controller\n"
    text += "GAIN = float((Path(__file__).parent / 'gain.txt').read_text())\n"
    text += "class Beside(Controller):\n    def start(self, s): self.cwnd = GAIN * s.mtu\n"
    (tmp_path / "beside.py").write_text(text, "utf-8")
    keys = []
    for gain in ("4", "9"):
        (tmp_path / "gain.txt").write_text(gain, "utf-8")
        scenario = Scenario(table(f"python:{tmp_path / 'beside.py'}:Beside"))
        keys.append(scenario.prepared.key)
        scenario.prepared.run()
        assert Scenario.parse(scenario.canonical).prepared.key == keys[-1]
    assert keys[0] != keys[1]


def test_a_dataclass_and_a_text_with_a_mark_of_its_order_are_fine(tmp_path: Path) -> None:
    text = "\ufefffrom dataclasses import dataclass\nfrom bluewater.control import Controller\n"
    text += "@dataclass\nclass Data(Controller):\n    cwnd: float = 9e3\n"
    (tmp_path / "data.py").write_text(text, "utf-8")
    assert hash_of(f"python:{tmp_path / 'data.py'}:Data")
