from __future__ import annotations

from pathlib import Path

import pytest
from conftest import TINY, Cli

from bluewater.errors import InputError
from bluewater.study.experiments.experiment import Experiment, parse

BASE = """duration = "2s"
link = "{line}"
queue = [{ link = "a->b", aqm = "red", buffer = "100p" }]
[named]
line = [{ from = "a", to = "b", rate = "10mbit", delay = "5ms" }]
bulk = { name = "bulk", from = ["a"], to = ["b"], transport = "sack", flows = 8 }
call = { name = "call", from = ["a"], to = ["b"], transport = "cbr", rate = "80kbit" }
calls = ["{call}", { as = "call", name = "other" }]
low = "twice the target of {aqm}; ours"
[sweep.load]
one = { traffic = [{ as = "bulk", flows = 1 }] }
all = { traffic = ["{bulk}", "{calls}"] }
[sweep.aqm]
codel = { "queue.0.aqm" = "codel" }
pie = { "queue.0.aqm" = "pie" }
[[plot]]
id = "delay"
title = "Delay"
caption = ""
kind = "bars"
x = { label = "" }
y = { label = "ms" }
[[plot.panel]]
title = "{load}"
sql = '''
SELECT 1 AS x, 1 AS y, '{load}' AS line
'''
over = [{ load = "one" }, { load = "all" }]
[named.claim]
text = "{aqm}, {load}: at most {most} ms."
paper = "low"
measure = '''
SELECT seed, 1000 * delay_mean_s AS value FROM runs WHERE aqm = '{aqm}' AND load = '{load}'
'''
holds = "<= {most}"
drawn = { panel = "{load}", paper = "{most}" }
plot = "delay"
[[claim]]
as = "claim"
bound = "{low}"
over = [
  { id = "codel-one", aqm = "codel", load = "one", most = 10 },
  { id = "pie-all", aqm = "pie", load = "all", most = 30.5, note = "Its is 15 ms.", bound = "" },
]
[[claim]]
over = [
  { as = "claim", id = "pie-one", aqm = "pie", load = "one", most = 20, paper = "{call}" },
]
"""
GOOD = BASE.replace('paper = "{call}" }', 'paper = "lower" }')


def made(text: str) -> Experiment:
    return parse(text, "f.toml", "x")


def test_a_row_makes_a_claim_a_panel_and_fills_texts() -> None:
    found = made(GOOD)
    first, second, third = found.claims
    assert [claim.id for claim in found.claims] == ["codel-one", "pie-all", "pie-one"]
    assert first.text == "codel, one: at most 10 ms."
    assert "aqm = 'codel' AND load = 'one'" in first.measure
    assert (first.holds.text, second.holds.text) == ("<= 10", "<= 30.5")
    assert first.bound == "twice the target of codel; ours"
    assert (second.bound, second.note) == ("", "Its is 15 ms.")
    assert (first.note, third.bound, third.paper) == ("", "", "lower")
    assert first.drawn is not None
    assert (first.drawn.panel, first.drawn.paper) == ("one", 10)
    assert [panel.title for panel in found.plots[0].panels] == ["one", "all"]


def test_rows_stand_within_rows() -> None:
    text = (
        TINY
        + """
[[plot]]
title = ""
caption = ""
kind = "bars"
x = { label = "" }
y = { label = "" }
panel = [{ title = "{id}, {side}", sql = "", over = [{ side = "left" }, { side = "right" }] }]
over = [{ id = "a" }, { id = "b" }]
"""
    )
    with pytest.raises(InputError, match="the key 'id' is missing"):
        made(text)  # A name that fills a text is not set as well.
    plots = made(text.replace('title = ""', 'id = "{id}"\ntitle = ""')).plots
    titles = [panel.title for plot in plots for panel in plot.panels]
    assert titles == ["a, left", "a, right", "b, left", "b, right"]


def test_what_is_named_stands_in_scenarios() -> None:
    found = made(GOOD)
    one, _, every, _ = found.cells(found.size("full"))
    assert [group["flows"] for group in one.scenario["traffic"]] == [1]
    bulk, call, other = every.scenario["traffic"]
    assert (bulk["flows"], call["name"], other["name"]) == (8, "call", "other")
    assert other["rate"] == "80kbit"
    assert found.base["link"][0]["to"] == "b"
    assert "named" not in found.base
    assert len(found.plan(found.size("full"))) == 4


def test_a_file_uses_what_its_paper_names_and_may_name_it_anew(tmp_path: Path) -> None:
    shared = "title = 't'\ncite = 'c'\nsource = 's'\n[named]\nlong = '9s'\nshort = '4s'\n"
    (tmp_path / "paper.toml").write_text(shared)
    text = TINY.replace('"2s"', '"{long}"').replace('"1s"', '"{short}"', 1)
    found = parse(text + "[named]\nshort = '3s'\n", "f.toml", "x", tmp_path)
    assert (found.base["duration"], found.base["warmup"]) == ("9s", "3s")


@pytest.mark.parametrize(
    ("old", "new", "key", "at", "says"),
    [
        ('"{line}"', '"{lime}"', "link", 'link = "{lime}"', "unknown name 'lime'"),
        ('"{bulk}", "{', '"{bulg}", "{', "sweep.load.all.traffic.0", "all = ", "unknown name"),
        ('as = "bulk"', 'as = "bulg"', "sweep.load.one.traffic.0.as", "one = ", "unknown name"),
        ('as = "bulk"', 'as = "low"', "sweep.load.one.traffic.0.as", "one = ", "no table"),
        ('"{load}"\nsql', '"{lead}"\nsql', "plot.0.panel.0.title", 'title = "{lead}"', "'lead'"),
        ('bound = "{low}"', 'bound = "{law}"', "claim.0.bound", 'bound = "{law}"', "'law'"),
        ('bound = "" }', 'bound = "{law}" }', "claim.0.over.1.bound", '{ id = "pie-all"', "'law'"),
        ('bound = "{low}"', 'bound = "x {calls}"', "claim.0.bound", "bound = ", "cannot be part"),
        ("over = [\n  { as", 'over = ["a"]\nx = [\n  { as', "claim.1.over.0", "over = [", "no row"),
        (
            "most = 30.5",
            "moist = 30.5",
            "claim.0.over.1",
            '{ id = "pie-all"',
            "the row lacks 'most'",
        ),
        (
            '[{ load = "one" }, { load = "all" }]',
            "[]",
            "plot.0.panel.0.over",
            "over = []",
            "no row",
        ),
        ("note =", "nite =", "claim.pie-all.nite", '{ id = "pie-all"', "unknown key 'nite'"),
        ('low = "twice', 'low = "{bound}"\nbound = "{low}"\nx = "', "claim", "[[claim]]", "itself"),
    ],
)
def test_what_does_not_fit_names_file_line_and_key(
    old: str, new: str, key: str, at: str, says: str
) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    with pytest.raises(InputError, match=says) as error:
        made(text)
    assert (error.value.key or "").startswith(key)
    assert error.value.line is not None
    assert text.splitlines()[error.value.line - 1].strip().startswith(at)
    assert f"f.toml:{error.value.line}: " in str(error.value)
    assert len(str(error.value)) < 600


@pytest.mark.parametrize(
    ("text", "key", "at"),
    [
        (
            GOOD.replace('"<= {most}"', '"= {most}"'),
            "claim.codel-one.holds",
            '  { id = "codel-one"',
        ),
        ("named = 3\n" + TINY, "named", "named = 3"),
        (TINY + "[sizes.quick]\nseed = 1\n", "sizes.quick.seed", "seed = 1"),
        (TINY + "[view]\nx = 'SELECT 1'\ny = 3\n", "view.y", "y = 3"),
        (
            TINY + "[[claim]]\nid = 'a'\ntext = ''\n[[claim]]\nid = 'b'\ntext = ''\npaper = ''\n"
            "measure = '''\n[[claim]]\n'''\nholds = 3\n",
            "claim.0",
            "[[claim]]",
        ),
        (
            TINY + "[[claim]]\nid = 'a'\ntext = ''\npaper = ''\nmeasure = '''\n[[claim]]\n'''\n"
            "holds = '< 1'\n[[claim]]\nid = 'b'\ntext = ''\npaper = ''\nmeasure = ''\nholds = 3\n",
            "claim.b.holds",
            "holds = 3",
        ),
    ],
)
def test_other_errors_of_an_experiment_name_their_line(text: str, key: str, at: str) -> None:
    with pytest.raises(InputError) as error:
        made(text)
    assert error.value.key is not None
    assert error.value.line is not None
    assert text.splitlines()[error.value.line - 1].startswith(at)


def test_a_sweep_of_a_file_has_the_names_of_the_paper_beside_it(cli: Cli, tmp_path: Path) -> None:
    shared = "[named]\nqueues = [{ aqm = 'red', buffer = '50p' }]\n"
    (tmp_path / "paper.toml").write_text(f"title = 't'\ncite = 'c'\nsource = 's'\n{shared}")
    queue = '[[queue]]\naqm = "red"\nbuffer = "100kB"\n'
    assert queue in TINY
    (tmp_path / "my.toml").write_text('queue = "{queues}"\n' + TINY.replace(queue, ""))
    setting = ["--set", "queue.0.buffer=60p", "--dry-run"]
    made = [cli("sweep", str(tmp_path / "my.toml"), *more) for more in (setting[2:], setting)]
    assert [each.exit_code for each in made] == [0, 0], made[0].output
    assert made[0].stdout != made[1].stdout
