from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from conftest import SWEEP, TINY

from bluewater import catalog, programs
from bluewater.errors import InputError
from bluewater.kinds import simulator, testbed
from bluewater.results.store import Store
from bluewater.results.tables import STANDARD, Entry, Frames
from bluewater.study.experiments import experiment
from bluewater.study.experiments.experiment import Size, parse
from bluewater.study.experiments.reproduce import Plan, reproduce


@pytest.fixture
def any_gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A program that stands for the gateway: to plan a run of it asks what version it is."""
    monkeypatch.setattr(programs, "find", lambda _: sys.executable)
    testbed.version.cache_clear()
    yield
    testbed.version.cache_clear()


@pytest.mark.usefixtures("any_gateway")
@pytest.mark.parametrize("name", experiment.known())
@pytest.mark.parametrize("size", ["quick", "full"])
def test_every_experiment_plans_at_both_sizes(name: str, size: str) -> None:
    loaded = experiment.load(name)
    chosen = loaded.size(size)
    cells = loaded.cells(chosen)
    assert cells
    # All cells are expanded; checking a few of each keeps this quick.
    thin = Size(size, chosen.seeds[:1], chosen.settings, chosen.axes)
    standard = [entry for _, entry in loaded.plan(thin) if entry.reading in (None, STANDARD)]
    assert len(standard) == len(cells)
    if size == "full":
        # One run of real packets is as long as several, since it is in real time; and three seeds
        # show the spread of what nothing is claimed of.
        least = 3 if loaded.base.get("place") == "testbed" or not loaded.claims else 5
        assert loaded.exact or len(chosen.seeds) >= least
    assert loaded.about.question
    shown = {plot.id for plot in loaded.plots} | {sheet.id for sheet in loaded.sheets}
    assert {claim.plot for claim in loaded.claims} <= shown | {""}
    ids = [claim.id for claim in loaded.claims]
    assert len(set(ids)) == len(ids)


@pytest.mark.usefixtures("any_gateway")
@pytest.mark.parametrize("name", experiment.known())
def test_every_query_of_an_experiment_can_be_asked(name: str, tmp_path: Path) -> None:
    loaded = experiment.load(name)
    first = {axis.name: axis.points[0].label for axis in loaded.axes}
    reading = STANDARD if loaded.readings else None
    loaded.try_queries([Entry(first, 1, "", reading)], Store(tmp_path))


def test_the_closing_table_has_every_discipline() -> None:
    loaded = experiment.load("cmu/summary")
    (axis,) = (axis for axis in loaded.axes if axis.name == "aqm")
    assert {point.label for point in axis.points} == {
        each["name"] for each in catalog()["aqms"]
    } - {"bernoulli"}


def test_two_experiments_share_their_runs() -> None:
    def keys(name: str) -> set[str]:
        loaded = experiment.load(name)
        plan = loaded.plan(loaded.size("quick"))
        return {task.key for task, entry in plan if entry.reading in (None, STANDARD)}

    assert keys("feng/fig5") < keys("feng/fig11")


def test_the_title_says_nothing_about_the_run() -> None:
    plans = [parse(f'title = "{t}"' + TINY, "f", "x") for t in "ab"]
    first, second = (each.plan(each.size("full"))[0][0].key for each in plans)
    assert first == second


def test_each_seed_of_a_cell_is_the_run_that_its_own_check_gives() -> None:
    loaded = experiment.load("feng/fig9-10")
    planned = loaded.plan(loaded.size("full"))
    assert {entry.seed for _, entry in planned} == set(range(1, 21))
    # A reading of RED alone shares BLUE's runs with the standard one.
    assert len({(entry.reading, task.key) for task, entry in planned}) == len(planned)
    for task, entry in planned:
        assert tomllib.loads(task.text)["seed"] == entry.seed
        assert simulator.KIND.check(tomllib.loads(task.text), "f") == task.text


def test_sizes_thin_and_set() -> None:
    loaded = parse(
        SWEEP
        + """
[sizes.quick]
seeds = [7]
set = { duration = "3s" }
sweep = { buffer = [100], aqm = ["B"] }
""",
        "f",
        "x",
    )
    (cell,) = loaded.cells(loaded.size("quick"))
    assert cell.axes == {"buffer": 100, "aqm": "B"}
    assert cell.scenario["duration"] == "3s"
    assert len(loaded.cells(loaded.size("full"))) == 4


PLOT = (
    TINY
    + """
[[plot]]
id = 'p'
title = 'p'
caption = ''
kind = 'spread'
x = { label = '' }
y = { label = '' }
columns = 2
[[plot.panel]]
title = 'one'
sql = ''
"""
)

READING = "[[reading]]\nid = 'r'\ntitle = ''\nwhy = ''\npost_hoc = false\n"


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("seeds = [1, 1]\n" + TINY, "seeds", "seeds repeat"),
        ("seeds = [-1]\n" + TINY, "seeds.0", "not a value"),
        ("seeds = []\n" + TINY, "seeds", "the list of seeds is empty"),
        ("seeds = 3\n" + TINY, "seeds", "not a value"),
        ("seeds = '1-3,2'\n" + TINY, "seeds", "seeds repeat"),
        ("seeds = '5-1'\n" + TINY, "seeds", "not a list of seeds"),
        (TINY + "[sizes.quick]\nseeds = 'x'\n", "sizes.quick.seeds", "not a list of seeds"),
        (TINY + "[sizes.quick]\nseeds = [1, 'x']\n", "sizes.quick.seeds.1", "not a value"),
        (TINY + "[sizes.quick.sweep]\nbuffer = 2\n", "sizes.quick.sweep.buffer", "not a value"),
        (TINY + "[view]\nx = 'SELECT 1'\ny = 3\n", "view.y", "not a value"),
        (f"{TINY}{READING}sweep = {{ buffer = 2 }}\n", "reading.r.sweep.buffer", "not a value"),
        (f"{TINY}{READING}choose = {{ a = 3 }}\n", "reading.r.choose.a", "not a value"),
        (f"{SWEEP}{READING}sweep = {{ bufer = [1] }}\n", "reading.r.sweep.bufer", "unknown axis"),
        (TINY + "[sizes.quick]\nseed = 1\n", "sizes.quick.seed", "unknown key 'seed'"),
        (TINY + "[sizes]\nquick = 3\n", "sizes.quick", "not a value"),
        (TINY + "[sizes.quick]\nset = 3\n", "sizes.quick.set", "not a value"),
        (TINY + "[about]\nchoices = 'one'\n", "about.choices", "not a value"),
        (TINY + "[[about]]\nquestion = ''\n", "about", "not a value"),
        ("claim = 3\n" + TINY, "claim", "not a value"),
        ("title = 3\n" + TINY, "title", "not a value"),
        (TINY + "[[claim]]\nid = 3\n", "claim.0.id", "not a value"),
        (TINY + "[[table]]\nid = 't'\nsqll = ''\n", "table.t.sqll", "unknown key 'sqll'"),
        (
            PLOT + "[[table]]\nid = 'p'\ntitle = ''\ncaption = ''\nsql = ''\n",
            "plot.p",
            "two plots or tables have this name",
        ),
        (PLOT.replace("x = { label = '' }", "x = 'max_p'"), "plot.p.x", "not a value"),
        (PLOT.replace("columns = 2", "columns = 'two'"), "plot.p.columns", "not a value"),
        (PLOT.replace("columns = 2", "columns = 0"), "plot.p.columns", "not a value"),
        (PLOT.replace("spread", "pie"), "plot.p.kind", "not a value"),
        (PLOT.replace("title = 'one'", "title = 1"), "plot.p.panel.0.title", "not a value"),
        (PLOT.replace("label = ''", "labl = ''"), "plot.p.x.labl", "unknown key 'labl'"),
        (PLOT.partition("[[plot.panel]]")[0], "plot.p", "'panel' is missing"),
        (TINY + "[about]\nquestoin = ''\n", "about.questoin", "unknown key"),
        (TINY + "[[plot]]\nid = 'p'\n", "plot.p", "missing"),
        (SWEEP + "[sizes.q]\nsweep = { bufer = [1] }\n", "sizes.q.sweep.bufer", "unknown axis"),
        (SWEEP + "[sizes.q]\nsweep = { buffer = [1] }\n", "sizes.q.sweep.buffer", "unknown value"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(text: str, key: str | None, says: str) -> None:
    with pytest.raises(InputError, match=says) as raised:
        loaded = parse(text, "f.toml", "x")
        loaded.cells(loaded.size("q"))
    assert raised.value.key == key
    assert raised.value.file == "f.toml"
    assert raised.value.allowed


def test_what_is_allowed_is_said() -> None:
    def allowed(text: str) -> str | None:
        with pytest.raises(InputError) as raised:
            parse(text, "f.toml", "x")
        return raised.value.allowed

    parse(PLOT, "f.toml", "x")
    assert allowed(PLOT.replace("spread", "pie")) == "'spread' or 'trace' or 'scatter' or 'bars'"
    assert allowed(PLOT.replace("columns = 2", "columns = 9")) == "a whole number from 1 to 4"
    wrong = "x = { label = '', low = 5, high = 1 }"
    assert allowed(PLOT.replace("x = { label = '' }", wrong)) == "low below high"
    wrong = "x = { label = '', scale = 'log', low = -5 }"
    assert allowed(PLOT.replace("x = { label = '' }", wrong)) == "ends above 0"
    assert str(allowed(PLOT.replace("x = { label = '' }", "x = 3"))).startswith(
        "a table with label"
    )
    assert allowed(TINY + "[about]\nchoices = 3\n") == "a list, of text each"
    assert allowed(TINY + "[view]\nx = 3\n") == "text"
    assert allowed(TINY + "[sizes.quick.sweep]\nbuffer = 3\n") == "a list"
    assert allowed("seeds = [-1]\n" + TINY) == "a whole number from 0"


def test_seeds_may_be_a_text_as_on_the_command_line() -> None:
    text = "seeds = '1-3, 7'\n" + TINY + "[sizes.q]\nseeds = '2-3'\n"
    written = "seeds = [1, 2, 3, 7]\n" + TINY + "[sizes.q]\nseeds = [2, 3]\n"
    for size in ("full", "q"):
        one, other = (parse(each, "f.toml", "x") for each in (text, written))
        keys = [[task.key for task, _ in each.plan(each.size(size))] for each in (one, other)]
        assert keys[0] == keys[1]


def test_a_cell_that_is_no_scenario_is_named() -> None:
    loaded = parse(SWEEP.replace('"blue"', '"bleu"'), "f.toml", "x")
    with pytest.raises(InputError, match=r"in the cell buffer=20, aqm=B") as raised:
        loaded.plan(loaded.size("full"))
    assert raised.value.file == "f.toml"
    assert raised.value.hint == "did you mean `blue`?"


def test_unknown_experiments_get_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="unknown experiment 'feng/fig6'") as raised:
        experiment.select("feng/fig6")
    assert "feng/fig6-8" in str(raised.value.allowed)
    assert experiment.select("report")[0].id == "report/fig2-5"
    monkeypatch.setenv("BLUEWATER_EXPERIMENTS", str(tmp_path))
    assert experiment.known() == {}


FORMULA = """
formula = "misclassification"
levels = 2
bins = 23
[sweep]
flows = { key = "nonresponsive", values = [0, 8] }
[[claim]]
id = "a"
text = "Few."
paper = "8.96 %"
measure = "SELECT seed, MAX(value) AS value FROM runs GROUP BY seed"
holds = "between 0.0895 and 0.0897"
"""


def test_a_formula_is_an_experiment(tmp_path: Path) -> None:
    loaded = parse(FORMULA, "f.toml", "x")
    (outcome,) = reproduce(Plan.of([(loaded, loaded.size("full"))]), Store(tmp_path), 1)
    (finding,) = outcome.findings
    assert str(finding.verdict) == "reproduced"
    assert not finding.provisional
    assert sorted(outcome.tables.runs["value"]) == [0, pytest.approx(0.0896, abs=1e-4)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("misclassification", "classification"),
        ("bins = 23", "bins = 0"),
        ("bins = 23", "bins = -1"),
        ("bins = 23", 'bins = "23"'),
        ("bins = 23", ""),
    ],
)
def test_a_formula_says_what_it_cannot_take(old: str, new: str) -> None:
    loaded = parse(FORMULA.replace(old, new), "f.toml", "x")
    with pytest.raises(InputError) as error:
        loaded.plan(loaded.size("full"))
    assert error.value.key == "formula"


VIEWS = """
seeds = [1, 2]
[view]
doubled = "SELECT buffer, aqm, seed, 2 * loss AS loss FROM runs"
worst = "SELECT seed, MAX(loss) AS loss FROM doubled GROUP BY seed"
[[claim]]
id = "a"
text = "t"
paper = "p"
measure = "SELECT seed, loss AS value FROM worst"
holds = ">= 0"
[[claim]]
id = "b"
text = "t"
paper = "p"
measure = "SELECT seed, MAX(2 * loss) AS value FROM runs GROUP BY seed"
holds = ">= 0"
[[claim]]
id = "c"
text = "t"
paper = "p"
measure = "SELECT seed, MIN(tcp_flows + udp_flows) AS value FROM sides GROUP BY seed"
holds = ">= 0"
[[claim]]
id = "d"
text = "t"
paper = "p"
measure = '''
SELECT runs.seed AS seed, MAX(ABS(tcp_drops + COALESCE(udp_drops, 0) - drops)) AS value
FROM sides JOIN runs
ON runs.seed = sides.seed AND runs.buffer = sides.buffer AND runs.aqm = sides.aqm
GROUP BY runs.seed
'''
holds = ">= 0"
"""


def test_claims_share_views(tmp_path: Path) -> None:
    loaded = parse(VIEWS.replace("[view]", SWEEP + "[view]"), "f.toml", "x")
    (outcome,) = reproduce(Plan.of([(loaded, loaded.size("full"))]), Store(tmp_path), 2)
    a, b, c, d = (finding.readings[0].values for finding in outcome.findings)
    assert a == b
    assert set(c.values()) == {20}
    assert set(d.values()) == {0}  # every flow is on one side


def test_experiments_of_a_paper_share_views(tmp_path: Path) -> None:
    """Those of ``paper.toml`` stand behind an experiment's own, and may use them."""
    name = "[view]\nhalved = 'SELECT seed, loss / 2 AS loss FROM doubled'\n"
    (tmp_path / "paper.toml").write_text(f"cite = 'x'\ntitle = 'x'\nsource = 'x'\n{name}")
    text = VIEWS.replace("[view]", SWEEP + "[view]").replace("[1, 2]", "[1]")
    asked = "[[claim]]\nid = 'e'\ntext = 't'\npaper = 'p'\nholds = '>= 0'\nmeasure = "
    claim = f"{asked}'SELECT seed, MAX(loss) AS value FROM halved GROUP BY seed'\n"
    loaded = parse(text + claim, "f.toml", "p/x", tmp_path)
    (outcome,) = reproduce(Plan.of([(loaded, loaded.size("full"))]), Store(tmp_path / "out"), 1)
    (of_paper,) = (f.readings[0].values for f in outcome.findings if f.claim.id == "e")
    losses = outcome.tables.runs["loss"]
    assert list(of_paper.values()) == [losses.max()]
    with pytest.raises(InputError, match="a view of the paper has this name") as raised:
        parse(text.replace("doubled =", "halved ="), "f.toml", "p/x", tmp_path)
    assert raised.value.key == "view.halved"


STEPS = """
duration = "6s"
[measure]
interval = "500ms"
[[traffic]]
name = "bulk"
flows = 6
step = { flows = 2, every = "2s" }
transport = "sack"
app = "infinite"
[network]
preset = "feng"
[[queue]]
aqm = "red"
buffer = "100kB"
[[claim]]
id = "a"
text = "t"
paper = "p"
measure = "SELECT seed, MAX(step) AS value FROM steps GROUP BY seed"
holds = "between 2 and 2"
[[claim]]
id = "b"
text = "t"
paper = "p"
measure = "SELECT seed, COUNT(*) AS value FROM steps WHERE step = 1 AND since_s < 1 GROUP BY seed"
holds = "between 2 and 2"
"""


def test_samples_know_their_load_step(tmp_path: Path) -> None:
    """Three steps of 2 s, of four samples of half a second each, told of at their ends."""
    loaded = parse(STEPS, "f.toml", "x")
    (outcome,) = reproduce(Plan.of([(loaded, loaded.size("full"))]), Store(tmp_path), 1)
    assert [set(f.readings[0].values.values()) for f in outcome.findings] == [{2}, {2}]
    without = parse(STEPS.replace('step = { flows = 2, every = "2s" }', ""), "f.toml", "x")
    with pytest.raises(InputError, match="query fails"):
        reproduce(Plan.of([(without, without.size("full"))]), Store(tmp_path), 1)


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ("doubled =", "runs =", "view.runs", "cannot have this name"),
        ("doubled =", "sides =", "view.sides", "cannot have this name"),
        ("doubled =", '"a b" =', "view.a b", "cannot have this name"),
        ("2 * loss AS loss FROM runs", "2 * lost AS loss FROM runs", "view.doubled", "query fails"),
        # A view may use those before it, and so never itself.
        ("2 * loss AS loss FROM runs", "loss FROM worst", "view.doubled", "query fails"),
        ("2 * loss AS loss FROM runs", "loss FROM doubled", "view.doubled", "query fails"),
    ],
)
def test_a_bad_view_is_named(tmp_path: Path, old: str, new: str, key: str, says: str) -> None:
    assert old in VIEWS
    text = VIEWS.replace("[1, 2]", "[1]").replace(old, new, 1)
    with pytest.raises(InputError, match=says) as raised:
        loaded = parse(text.replace("[view]", SWEEP + "[view]"), "f.toml", "x")
        reproduce(Plan.of([(loaded, loaded.size("full"))]), Store(tmp_path), 1)
    assert raised.value.key == key


@pytest.mark.parametrize("sql", ["SELECT seed, lost AS value FROM runs", "SELECT seed FROM runs"])
def test_a_query_that_cannot_be_asked_is_found_before_the_first_run(
    tmp_path: Path, sql: str
) -> None:
    text = (
        TINY + f'[[claim]]\nid = "a"\npaper = "t"\ntext = "t"\nmeasure = "{sql}"\nholds = "> 0"\n'
    )
    loaded = parse(text, "f", "x")
    store = Store(tmp_path)
    with pytest.raises(InputError, match=r"claim\.a\.measure"):
        reproduce(Plan.of([(loaded, loaded.size("full"))]), store, jobs=1)
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("name", ["fairness", "slow"])
def test_every_row_of_the_table_of_l4s_has_a_claim(name: str) -> None:
    """Half of the rows for DualPI2 had none, those of 10 Mb/s among them."""
    (made,) = experiment.select(f"l4s/{name}")
    measures = [each.measure for each in made.claims if "'dualpi2'" in each.measure]
    rtts, pairs = (
        next(axis for axis in made.axes if axis.name == which).points for which in ("rtt", "pair")
    )
    assert {each.label for each in rtts} == {
        "10:10", "20:20", "80:80", "20:10", "80:20", "160:10",
    }  # fmt: skip
    for rtt in (str(each.label) for each in rtts):
        own = [each for each in measures if f"'{rtt}'" in each]
        one, two = rtt.split(":")
        for pair in (str(each.label) for each in pairs) if one != two else ["prague IS NOT NULL"]:
            assert any(pair in each for each in own), (rtt, pair)


def test_suites_are_made_by_name_alone() -> None:
    apart = set(experiment.suites())
    assert apart == {"autorate", "bbr", "bufferbloat", "l4s", "media", "rfc7928", "rfcs"}
    assert {each.id.partition("/")[0] for each in experiment.select(None)}.isdisjoint(apart)
    suite = ("asymmetric", "fairness", "shared", "slow", "steps", "tunnel", "variable")
    assert [each.id for each in experiment.select("HM20")] == [f"l4s/{name}" for name in suite]


def test_a_figure_that_stands_with_others_is_led_to() -> None:
    for name, whole in (("feng/fig7", "feng/fig6-8"), ("feng/fig10", "feng/fig9-10")):
        with pytest.raises(InputError) as raised:
            experiment.load(name)
        assert raised.value.hint == f"'{whole}' includes it"


def test_what_is_asked_beyond_papers_is_ours() -> None:
    beyond = experiment.select("beyond")
    assert {claim.origin for each in beyond for claim in each.claims} == {"ours"}
    assert {claim.origin for claim in experiment.load("feng/fig5").claims} == {"paper", "ours"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/hostname')",
        "SELECT loss FROM runs JOIN (SELECT * FROM READ_CSV ('/etc/hostname')) AS x ON TRUE",
        "SELECT * FROM \"read_parquet\"('secret.parquet')",
        "SELECT * FROM read_csv/* 1.5 */('/etc/hostname')",
    ],
)
def test_a_query_reads_no_files(sql: str) -> None:
    frames = Frames({"runs": pl.DataFrame({"loss": [0.5]})})
    with pytest.raises(InputError, match="a query reads no files"):
        frames.query(sql, (), "claim.0.measure", "my.toml")
    named = frames.query("SELECT loss AS \"read_csv\", 'read_csv(' AS b FROM runs", (), "k", "f")
    assert named.rows() == [(0.5, "read_csv(")]
