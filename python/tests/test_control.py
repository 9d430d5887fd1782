"""Controllers in Python: the decisions of ours, laws, errors that say where, keys with the code."""

from __future__ import annotations

import random
import re
import tomllib
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl
import pytest
import tomli_w
from conftest import Cli

import bluewater
from bluewater import laws
from bluewater.control import PERSISTENT, TIMEOUT, Controller, inf, integer, number
from bluewater.control import random as uniform
from bluewater.errors import InputError
from bluewater.own import entry
from bluewater.plots.run import panels
from bluewater.results import remarks
from bluewater.study.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.core


class Reno(Controller):
    """Reno (RFC 5681, RFC 9002 §7)."""

    def start(self, s: Any) -> None:
        self.mtu, self.cwnd, self.ssthresh = float(s.mtu), float(s.initial_window), inf
        self.old_cwnd, self.old_ssthresh = self.cwnd, inf

    def on_ack(self, a: Any) -> None:
        if a.window_limited and not a.in_recovery:
            self.cwnd += a.acked if self.cwnd < self.ssthresh else self.mtu * a.acked / self.cwnd

    def on_congestion(self, c: Any) -> None:
        if c.new_episode:
            self.old_cwnd, self.old_ssthresh = self.cwnd, self.ssthresh
            self.ssthresh = max(self.cwnd / 2, 2 * self.mtu)
        self.cwnd = self.mtu if c.kind >= TIMEOUT else self.ssthresh

    def on_undo(self, u: Any) -> None:
        self.cwnd = max(self.cwnd, self.old_cwnd)
        self.ssthresh = max(self.ssthresh, self.old_ssthresh)


class FastReno(Reno):
    compiled = True


class Everything(Controller):
    """Has all methods, a parameter, tags, a timer, a rate and random numbers."""

    gain = number(1.25, "How much faster than measured it sends.", low=1, high=4)
    period = integer(50_000_000, "Between two changes of its burst, ns.", low=1_000_000)

    def start(self, s: Any) -> None:
        self.mtu, self.cwnd = float(s.mtu), float(s.initial_window)
        self.best = self.mtu * 10
        self.sent = self.lost = self.recovered = self.undone = self.restarted = 0
        self.timer = s.now + self.period

    def on_send(self, p: Any) -> int:
        self.sent += 1
        return self.sent % 1000

    def on_lost(self, l: Any) -> None:  # noqa: E741
        assert l.tag < 1000
        self.lost += 1

    def on_recovered(self, now: int) -> None:
        self.recovered = now

    def on_undo(self, u: Any) -> None:
        self.undone = u.kind

    def on_restart(self, now: int) -> None:
        self.restarted = now

    def on_congestion(self, c: Any) -> None:
        self.cwnd = max(self.cwnd * 0.7, 2 * self.mtu)
        if c.kind == PERSISTENT:
            self.cwnd = 2 * self.mtu

    def on_ack(self, a: Any) -> None:
        self.app_limited = a.tag % 7 == 0
        if a.rate > 0:
            self.best += 0.1 * (a.rate - self.best)
        if a.window_limited:
            self.cwnd += self.mtu * a.acked / self.cwnd
        self.pacing = self.gain * self.best

    def on_timer(self, now: int) -> None:
        self.burst = self.mtu * (1 + int(4 * uniform()))
        self.timer = now + self.period


class FastEverything(Everything):
    compiled = True


def table(transport: Any, **keys: Any) -> dict[str, Any]:
    """A link of 5 Mb/s with traffic over a transport; other keys are those of the group."""
    top = {key: keys.pop(key) for key in ("seed", "queue", "link", "measure") if key in keys}
    return {
        "duration": "10s",
        "seed": top.get("seed", 1),
        "measure": top.get("measure", {}),
        "link": [{"from": "a", "to": "b", "rate": "5mbit", "delay": "20ms", **top.get("link", {})}],
        "queue": [{"link": "a->b", "aqm": "droptail", "buffer": "30p", **top.get("queue", {})}],
        "traffic": [{"from": ["a"], "to": ["b"], "transport": transport, "flows": 3, **keys}],
    }


OURS = {"rack": True, "count_packets": True, "rfc9002": True}
LOSSES = {"loss": "3%", "jitter": "20ms", "reorder": True}


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"queue": {"aqm": "red"}, "ecn": True},
        {"link": LOSSES, "timestamps": True, "seed": 4},
        {"pacing": True, "delayed_ack": "40ms", "packet": "1500B", "handshake": True},
    ],
)
@pytest.mark.parametrize("own", [Reno, FastReno])
def test_reno_decides_as_ours(own: type[Controller], keys: dict[str, Any]) -> None:
    if own.compiled:
        pytest.importorskip("numba")
    ours = bluewater.run(table("sack", **keys, **OURS))
    assert bluewater.run(table(own, **keys)).decision_hash == ours.decision_hash
    assert ours.summary["loss"] + ours.summary["mark_rate"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys", [{}, {"link": LOSSES, "timestamps": True}, {"params": {"gain": 2, "period": 7_000_000}}]
)
def test_compiled_it_decides_as_it_does_plain(keys: dict[str, Any]) -> None:
    pytest.importorskip("numba")
    plain, fast = (bluewater.run(table(each, **keys)) for each in (Everything, FastEverything))
    assert fast.decision_hash == plain.decision_hash
    other = bluewater.run(table(Everything, seed=2, **keys))
    assert other.decision_hash != plain.decision_hash


def test_runs_are_alike_and_begin_afresh() -> None:
    first, second = (bluewater.run(table(Everything)) for _ in range(2))
    assert first.decision_hash == second.decision_hash


# --- laws


@pytest.mark.parametrize("cls", [Reno, FastReno, Everything])
def test_all_laws_hold(cls: type[Controller]) -> None:
    if cls.compiled:
        pytest.importorskip("numba")
    assert bluewater.check(cls, seeds=1) == ()


class Raises(Reno):
    gain = number(1.0, "What it divides by.", low=0, high=2)

    def on_congestion(self, c: Any) -> None:
        self.cwnd = max(self.cwnd / 2 / self.gain, 2 * self.mtu)


class Dice(Reno):
    def on_congestion(self, c: Any) -> None:
        self.cwnd = self.mtu * (2 if random.random() < 0.5 else 1)


class Small(Reno):
    def on_congestion(self, c: Any) -> None:
        self.cwnd = self.mtu / 2


class Grows(Reno):
    def on_ack(self, a: Any) -> None:
        self.cwnd = min(self.cwnd + a.acked, 30 * self.mtu)


class Stays(Reno):
    def on_congestion(self, c: Any) -> None:
        self.cwnd = max(self.cwnd / 2, 3 * self.mtu)


class Ticks(Reno):
    def start(self, s: Any) -> None:
        Reno.start(self, s)
        self.timer = s.now + 10**7

    def on_timer(self, now: int) -> None:
        self.cwnd, self.timer = self.cwnd + self.mtu, now + 10**7


class Starts(Controller):
    def start(self, s: Any) -> None:
        self.cwnd = 1.0


class Missing(Reno):
    signals: ClassVar = {"queued": ("packets", "It is never set.")}


@pytest.mark.parametrize(
    ("cls", "law", "said"),
    [
        (Raises, "works", "Raises.on_congestion at "),
        (Dice, "determinism", r"connection \d at .* s: window in bytes \d.* first, \d.* then"),
        (Small, "bounded", "on_congestion at .* leaves a window of 750.0 bytes"),
        (Grows, "growth", "on_ack at .* opens the window from "),
        (Ticks, "growth", "on_timer at .* opens the window from "),
        (Starts, "bounded", r"start\(\) leaves a window of 1.0 bytes"),
        (Missing, "works", "'Missing' object has no attribute 'queued'"),
        (Stays, "persistent", r"on_congestion at .* leaves a window of \d+"),
    ],
)
def test_a_class_that_breaks_a_law_is_told_so(cls: type[Controller], law: str, said: str) -> None:
    found = {each.law: each for each in bluewater.check(cls, seeds=1)}
    assert law in found
    assert re.search(said, found[law].said)
    assert str(found[law]).startswith(f"{law} ({laws.CONTROLLER_LAWS[law]})")
    assert law not in {each.law for each in bluewater.check(cls, seeds=1, but=[law])}


class Told(Reno):
    signals: ClassVar = {
        "cwnd": ("bytes", "The window."),
        "ssthresh": ("bytes", "Where slow start ends."),
    }


class FastTold(Told):
    compiled = True


@pytest.mark.parametrize("own", [Told, FastTold])
def test_signals_are_written_down_with_each_row_of_control(own: type[Controller]) -> None:
    if own.compiled:
        pytest.importorskip("numba")
    keys = {"link": LOSSES, "timestamps": True}
    run = bluewater.run(table(own, measure={"control": True}, **keys))
    wide, long = run.control, run.control_signals
    assert long["signal"].to_list() == ["cwnd", "ssthresh"] * wide.height
    windows = long.filter(pl.col("signal") == "cwnd")
    assert windows["event"].to_list() == wide["event"].to_list()
    packets = [each / 1000 for each in windows["value"]]
    assert packets == pytest.approx(wide["cwnd_packets"].to_list(), abs=1e-9)
    assert long["value"].null_count() > 0, "ssthresh is infinite before the first loss"
    assert bluewater.run(table(own, **keys)).decision_hash == run.decision_hash


class Bounds(Reno):
    """Out of bounds after each congestion, and with a burst that no sender has."""

    def start(self, s: Any) -> None:
        super().start(s)
        self.burst = 1e12

    def on_congestion(self, c: Any) -> None:
        super().on_congestion(c)
        self.cwnd = self.mtu / 4

    def on_recovered(self, now: int) -> None:
        self.cwnd = inf
        self.pacing = 1e-9


class FastBounds(Bounds):
    compiled = True

    def start(self, s: Any) -> None:
        self.mtu, self.cwnd, self.ssthresh = float(s.mtu), float(s.initial_window), inf
        self.old_cwnd, self.old_ssthresh = self.cwnd, inf
        self.burst = 1e12

    def on_congestion(self, c: Any) -> None:
        self.cwnd = self.mtu / 4


@pytest.mark.parametrize("own", [Bounds, FastBounds])
def test_what_the_sender_holds_in_bounds_is_counted(own: type[Controller], tmp_path: Path) -> None:
    if own.compiled:
        pytest.importorskip("numba")
    run = bluewater.run(table(own))
    first = {name: ns for flow, name, _, ns in run.held if flow == 0}
    assert set(first) == {"cwnd", "pacing", "burst"}
    assert first["burst"] == 0 < first["cwnd"] < first["pacing"]
    assert all(calls > 10 for _, name, calls, _ in run.held if name == "burst")
    run.save(tmp_path)
    assert bluewater.load(tmp_path).held == list(run.held)
    told = remarks.of_run(run)
    left = re.findall(r"left (\w+) outside its bounds in [\d,]+ calls, first at \d", " ".join(told))
    assert left == ["burst", "cwnd", "pacing"]
    assert all("so did 2 other flows" in each for each in told)
    assert "cwnd is from the group's min_window to 2⁴⁰ bytes" in told[1]


def test_a_run_names_what_was_held_in_bounds(cli: Cli, tmp_path: Path) -> None:
    """The word is at the end of the run; a controller within its bounds gives none."""
    for start, held in (("self.burst = 1e12", True), ("self.burst = 3000.0", False)):
        file = tmp_path / "my.toml"
        file.write_text(tomli_w.dumps(table(own(tmp_path, start=start))), "utf-8")
        said = " ".join(cli("run", str(file)).stderr.split())
        assert ("the controller of flow 0 left burst outside its bounds in" in said) is held


def test_a_law_of_queues_is_none_of_controllers() -> None:
    with pytest.raises(InputError, match="unknown law 'calm'"):
        bluewater.check(Reno, but=["calm"])


# --- attacks

FILE = """
from bluewater.control import *

class Own(Controller):
    compiled = {compiled}
    beta = number(0.5, "What is left after congestion.", low=0, high=1)

    def start(self, s):
        self.mtu, self.count = s.mtu, 0
        self.timer = s.now + 10**6
        {start}

    def on_send(self, p):
        return {tag}

    def on_timer(self, now):
        self.timer = {again}

    def on_congestion(self, c):
        self.cwnd = self.cwnd * self.beta

    def on_ack(self, a):
        self.count += 1
        {body}
"""


def own(
    folder: Path,
    body: str = "self.cwnd += self.mtu",
    start: str = "",
    tag: str = "p.number",
    again: str = "now + 10**6",
    compiled: bool = False,
) -> str:
    path = folder / "own.py"
    text = FILE.format(body=body, start=start, tag=tag, again=again, compiled=compiled)
    path.write_text(text, "utf-8")
    return f"python:{path}:Own"


ATTACKS = [
    ({"body": "self.cwnd = self.cwnd * inf * 0"}, r"Own\.on_ack at .* cwnd = NaN; allowed: a numb"),
    ({"body": "self.pacing = -1.0"}, r"pacing = -1; allowed: bytes a second"),
    ({"body": "self.pacing = inf * 0"}, "pacing = NaN"),
    ({"body": "self.burst = -5.0"}, "burst = -5"),
    ({"body": "self.ssthresh = -5.0"}, "ssthresh = -5"),
    ({"body": "self.timer = a.now - 1"}, r"timer = \d+ at \d+; allowed: a time after"),
    (
        {"body": "self.timer = a.now"},
        r"Own\.on_ack at .* timer = (\d+) at \1; allowed: a time after",
    ),
    ({"again": "now"}, r"Own\.on_timer at .* timer = \d+ at \d+"),
    ({"tag": "-7"}, "Own.on_send at .* it gave -7; allowed: a tag"),
    ({"tag": "0.5"}, "it gave 0.5; allowed: a tag"),
    ({"body": "return 1"}, "it gave 1; allowed: nothing"),
    (
        {"body": "x = 1 // (self.count - 50)"},
        r"own\.py:24: Own\.on_ack at \d\.\d{9} s: ZeroDivisionError",
    ),
]
PLAIN = [
    ({"body": "return 'x'"}, "it gave 'x'; allowed: nothing"),
    ({"body": "self.cwnd = 'wide'"}, "cwnd = 'wide'; allowed: a number"),
    ({"body": "self.cwnd = None"}, "cwnd = None; allowed: a number"),
    ({"body": "self.timer = 0.5"}, "timer = 0.5; allowed: a whole number"),
    ({"body": "a.rat"}, r"an ack has .*acked.*rate.*window_limited"),
    ({"body": "a.rtt = 3"}, "not writable"),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("keys", "told"), ATTACKS)
def test_what_a_method_does_wrong_ends_the_run(
    tmp_path: Path, keys: dict[str, Any], told: str, compiled: bool
) -> None:
    if compiled:
        pytest.importorskip("numba")
    with pytest.raises(InputError, match=told):
        bluewater.run(table(own(tmp_path, **keys, compiled=compiled)))
    assert bluewater.run(table(own(tmp_path))).summary["loss"] > 0


def test_the_timer_that_start_sets_is_in_the_future(tmp_path: Path) -> None:
    """That is an error before the run."""
    with pytest.raises(bluewater.ScenarioError, match=r"Own\.start at .* timer = 0 at 0; allowed"):
        bluewater.run(table(own(tmp_path, start="self.timer = s.now")))


@pytest.mark.parametrize(("keys", "told"), PLAIN)
def test_what_only_a_plain_method_can_do_ends_the_run(
    tmp_path: Path, keys: dict[str, str], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        bluewater.run(table(own(tmp_path, compiled=False, **keys)))


@pytest.mark.parametrize("cwnd", ["0", "-10**9", "-inf", "1"])
def test_one_that_wants_to_send_nothing_sends_a_packet_a_round_trip(
    tmp_path: Path, cwnd: str
) -> None:
    name = own(tmp_path, body=f"self.cwnd = {cwnd}", start=f"self.cwnd = {cwnd}")
    found = bluewater.run(table(name, flows=1)).flows
    assert found["goodput_bps"][0] == pytest.approx(8000 / 0.042, rel=0.1)


def test_a_rate_of_next_to_nothing_ends(tmp_path: Path) -> None:
    name = own(tmp_path, start="self.pacing = 1e-300")
    assert bluewater.run(table(name, flows=1)).summary["arrivals"] < 30


def test_an_endless_window_is_held_in_bounds(tmp_path: Path) -> None:
    name = own(tmp_path, body="self.cwnd = inf")
    assert bluewater.run(table(name, flows=1, window="200p")).summary["loss"] > 0.1


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            "class Own: pass",
            r"unknown subclass of bluewater\.control\.Controller in",
        ),
        (
            "from bluewater.aqm import Aqm\nclass Own(Aqm): pass",
            "is a class for `aqm`, not for",
        ),
        (
            "from bluewater.control import *\nclass Own(Controller):\n  def on_acks(self, a): pass",
            r"unknown method at .*own\.py:3: 'on_acks'",
        ),
        (
            "from bluewater.control import *\nclass Own(Controller):\n  def on_ack(self): pass",
            r"own\.py:3: on_ack\(self\) cannot be called",
        ),
        (
            "from bluewater.control import *\nclass Own(Controller):\n"
            "  def start(self, s): self.timer = 5",
            "start sets timer, but there is no on_timer",
        ),
        (
            "from bluewater.control import *\nclass Own(Controller):\n  def start(self, s): s.mss",
            r"own\.py:3: Own\.start at 0\.0+ s: AttributeError: .* a start has .*mtu",
        ),
        ("x = ", r"own\.py:1: invalid syntax"),
        (
            "from bluewater.control import *\nclass Own(Controller):\n  cwnd = number(9, 'Own.')",
            "the parameter cwnd of Own has the name of what the class decides",
        ),
        (
            "from bluewater.control import *\nclass Own(Controller):\n  signals = {'cwnd': 'b'}",
            r"the signal 'cwnd' of Own is declared as 'b'; allowed: signals = \{",
        ),
        (
            "from bluewater.control import *\nclass Own(Controller):\n  def on_start(self): pass",
            r"unknown method at .*own\.py:3: 'on_start'(.|\n)*did you mean 'start'",
        ),
        (
            "from bluewater.control import *\nclass Own(Controller):\n"
            "  @staticmethod\n  def on_los(l): pass",
            r"unknown method at .*own\.py:3: 'on_los'",
        ),
        (
            "from bluewater.control import *\nclass Own(Controller):\n"
            "  @staticmethod\n  def on_lost(l): pass",
            r"own\.py:3: on_lost is a staticmethod; allowed: def on_lost\(self, l\)",
        ),
    ],
)
def test_what_is_no_controller_is_an_error_before_the_run(
    tmp_path: Path, code: str, told: str
) -> None:
    (tmp_path / "own.py").write_text(code, "utf-8")
    with pytest.raises(bluewater.ScenarioError, match=told) as error:
        bluewater.Scenario(table(f"python:{tmp_path / 'own.py'}:Own"))
    assert error.value.key == "traffic[0].transport"


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"params": {"beta": 2}}, "traffic[0].params.beta"),
        ({"params": {"gamma": 2}}, "traffic[0].params.gamma"),
        ({"count_packets": True}, "traffic[0].count_packets"),
        ({"rack": False}, "traffic[0].rack"),
        ({"rfc9002": True}, "traffic[0].rfc9002"),
    ],
)
def test_keys_that_do_not_belong_are_refused(
    tmp_path: Path, keys: dict[str, Any], key: str
) -> None:
    with pytest.raises(bluewater.ScenarioError) as error:
        Scenario(table(own(tmp_path), **keys))
    assert error.value.key == key


# --- keys


def test_a_file_is_found_from_its_scenario_and_becomes_part_of_it(tmp_path: Path) -> None:
    own(tmp_path)
    path = tmp_path / "own.toml"
    path.write_text(tomli_w.dumps(table("python:own.py:Own", params={"beta": 0.7})), "utf-8")
    scenario = Scenario.load(path)
    group = tomllib.loads(scenario.canonical)["traffic"][0]
    assert group["transport"] == "python:own.py:Own"
    assert group["code"] == (tmp_path / "own.py").read_text("utf-8")
    assert group["params"] == {"beta": 0.7}
    (tmp_path / "own.py").unlink()
    again = bluewater.run(tomllib.loads(scenario.canonical))
    assert again.flows["transport"].unique().to_list() == ["python:own.py:Own"]
    own(tmp_path, body="self.cwnd += 1")
    assert Scenario.load(path) != scenario


def test_a_sweep_and_a_comparison_take_it(tmp_path: Path, cli: Cli) -> None:
    made = bluewater.sweep(
        table("sack"), {"traffic.0.transport": ["cubic", Reno]}, out=tmp_path, progress=False
    )
    assert made.summary(["throughput_bps"]).height == 2
    assert set(made.table("flows")["transport"]) == {"cubic", "python:test_control.py:Reno"}
    name = own(tmp_path)
    keys = ["--rate", "5mbit", "--flows", "3", "--duration", "3s", "--jobs", "1"]
    found = cli("compare", "droptail", "codel", "--transport", name, *keys)
    assert found.exit_code == 0, found.stderr


def test_it_is_explained(tmp_path: Path) -> None:
    told = entry(own(tmp_path))
    assert [each["name"] for each in told["parameters"]] == ["beta"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("python::Own", None), ("Python:own.py:Own", "'python:own.py:Own'"), ("python:own.py:", None)],
)
def test_what_is_no_name_of_a_class_is_refused(name: str, hint: str | None) -> None:
    with pytest.raises(InputError, match="not the name of a class") as caught:
        bluewater.Scenario(table(name))
    assert hint is None or hint in str(caught.value.hint)


def test_ctrl_c_in_start_is_ctrl_c() -> None:
    code = "from bluewater.control import Controller\nclass Own(Controller):\n"
    code += "    def start(self, s): raise KeyboardInterrupt\n"
    with pytest.raises(KeyboardInterrupt):
        bluewater.Scenario(table("python:own.py:Own", code=code))


def test_signals_are_drawn_in_their_unit_and_meaning(tmp_path: Path) -> None:
    code = "from bluewater.control import Controller\nclass Own(Controller):\n"
    code += "    signals = {'wait': ('s', 'Time in the queue.')}\n"
    code += "    def start(self, s): self.cwnd, self.wait = 9e3, 0.0\n"
    code += "    def on_ack(self, a): self.wait = (a.rtt - a.min_rtt) / 1e9\n"
    measure = {"control": True, "interval": "100ms"}
    whole = {**table("python:own.py:Own", code=code), "measure": measure}
    drawn = {each.title: each for each in panels(bluewater.run(whole))}
    panel = next(each for title, each in drawn.items() if title.endswith(": wait"))
    assert " ".join(panel.y.label.split()) == "wait: Time in the queue (ms)"
    assert max(panel.points["y"].to_list()) > 1
