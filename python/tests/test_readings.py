from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import TINY

from bluewater.errors import InputError
from bluewater.report import tally, to_json, write_report
from bluewater.results.store import Store
from bluewater.study.experiments import experiment
from bluewater.study.experiments.claims import (
    Bound,
    Claim,
    Measured,
    Verdict,
    conclude,
    is_fitted,
)
from bluewater.study.experiments.experiment import Experiment, parse
from bluewater.study.experiments.readings import apply
from bluewater.study.experiments.reproduce import Outcome, Plan, reproduce
from bluewater.study.scenarios.sweep import Cell

CLAIM = """
[[claim]]
id = "{id}"
text = "t"
paper = "p"
measure = "{measure}"
holds = "{holds}"
{more}
"""

OPEN = """
[sweep]
buffer = { key = "queue.0.buffer", values = [20, 100], unit = "kB" }
[sweep.aqm]
R = { "queue.0.aqm" = "red" }
B = { "queue.0.aqm" = "blue" }
[[unknown]]
name = "many"
why = "The paper gives no number."
values = { few = {}, many = { "traffic.0.flows" = 40 } }
standard = "few"
[[reading]]
id = "crowd"
title = "40 flows"
why = "It says many."
post_hoc = true
choose = { many = "many" }
[[reading]]
id = "steep"
title = "BLUE steps by 0.1, RED as it is"
why = "Steps are not given."
post_hoc = false
claims = ["b"]
[reading.set]
"queue.0.aqm=blue" = { "queue.0.params.increment" = 0.1 }
"buffer=20" = { "queue.0.buffer" = "25kB" }
"""


def claim(id_: str, measure: str, holds: str, more: str = "") -> str:
    return CLAIM.format(id=id_, measure=measure, holds=holds, more=more)


FLOWS = "SELECT seed, CAST(AVG(flows) AS DOUBLE) AS value FROM runs GROUP BY seed"


def scenarios(loaded: Experiment, reading: str) -> dict[tuple[Any, ...], Any]:
    (chosen,) = (each for each in loaded.readings if each.id == reading)
    cells = loaded.cells(loaded.size("full"), chosen)
    return {tuple(cell.axes.values()): cell.scenario for cell in cells}


def test_a_reading_is_run_where_its_claims_need_it() -> None:
    thin = OPEN.replace(
        'title = "40 flows"', 'title = "40 flows"\nsweep = { buffer = [100] }\nseeds = 3'
    )
    loaded = parse("seeds = [1, 2, 3, 4, 5]\n" + TINY + thin + claim("b", FLOWS, "> 0"), "f", "x")
    size = loaded.size("full")
    found = [(entry.reading, entry.axes["buffer"], entry.seed) for _, entry in loaded.plan(size)]
    assert {each[1:] for each in found if each[0] == "crowd"} == {(100, 1), (100, 2), (100, 3)}
    assert {each[1:] for each in found if each[0] == "standard"} == {
        (buffer, seed) for buffer in (20, 100) for seed in range(1, 6)
    }
    with pytest.raises(InputError, match=r"reading\.crowd\.sweep"):
        parse(
            TINY + thin.replace("buffer = [100]", "bufer = [100]") + claim("b", FLOWS, "> 0"),
            "f",
            "x",
        )
    with pytest.raises(InputError, match=r"reading\.crowd\.seeds"):
        parse(TINY + thin.replace("seeds = 3", "seeds = 2") + claim("b", FLOWS, "> 0"), "f", "x")


def test_a_thinned_full_size_leaves_a_reading_the_points_that_it_names() -> None:
    thin = OPEN.replace(
        'title = "40 flows"', 'title = "40 flows"\nsweep = { buffer = [20, 100] }'
    ).replace("[sweep]", "[sizes.full]\nsweep = { buffer = [100] }\n[sweep]")
    loaded = parse(TINY + thin + claim("b", FLOWS, "> 0"), "f", "x")
    found = {(entry.reading, entry.axes["buffer"]) for _, entry in loaded.plan(loaded.size("full"))}
    assert found == {("standard", 100), ("crowd", 20), ("crowd", 100), ("steep", 100)}


def test_a_reading_sets_before_the_axes_and_a_condition_after() -> None:
    loaded = parse(TINY + OPEN + claim("b", FLOWS, "> 0"), "f", "x")
    crowd, steep = scenarios(loaded, "crowd"), scenarios(loaded, "steep")
    assert {each["traffic"][0]["flows"] for each in crowd.values()} == {40}
    assert {each["traffic"][0]["flows"] for each in steep.values()} == {20}
    assert crowd[20, "R"]["queue"][0]["buffer"] == "20kB"
    assert steep[20, "R"]["queue"][0] == {"aqm": "red", "buffer": "25kB"}
    assert steep[100, "B"]["queue"][0] == {
        "aqm": "blue",
        "buffer": "100kB",
        "params": {"increment": 0.1},
    }


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        ("queue.0.aqm=red", True),
        ("queue.0.aqm!=red", False),
        ("queue.0.params.ecn!=false", True),
        ("queue.0.aqm=red & queue.0.params.ecn!=false", True),
        ("queue.0.aqm=red & queue.0.buffer=9p", False),
        ("side!=left", False),
    ],
)
def test_conditions_may_be_joined_and_turned(condition: str, met: bool) -> None:
    scenario = {"queue": [{"aqm": "red", "buffer": "8p"}]}
    cell = Cell({"side": "left"}, scenario)
    changed = apply(cell, [(condition, {"seed": 7})], "f", "set").scenario
    assert changed == (scenario | {"seed": 7} if met else scenario)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    claims = (
        claim("a", FLOWS, "<= 20")
        + claim("b", FLOWS, "<= 20", 'origin = "ours"')
        + claim("c", FLOWS, ">= 40", 'bound = "The paper: 40."')
        + claim(
            "d",
            FLOWS,
            ">= 100",
            'contradicted = { by = "arithmetic", why = "40 is less than 100." }',
        )
        + claim(
            "e", FLOWS, ">= 40", 'contradicted = { by = "the paper itself", why = "It says 20." }'
        )
        + claim("f", FLOWS, ">= 100", 'partly = ">= 30"')
        + claim("g", FLOWS, ">= 100", 'partly = ">= 10"')
        + claim("h", FLOWS, ">= 100")
    )
    loaded = parse("seeds = [1, 2, 3]\n" + TINY + OPEN + claims, "f", "x")
    plan = Plan.of([(loaded, loaded.size("full"))])
    (made,) = reproduce(plan, Store(tmp_path_factory.mktemp("store")), 2)
    return made


def test_each_verdict(outcome: Outcome) -> None:
    told = {each.claim.id: (str(each.verdict), list(each.under)) for each in outcome.findings}
    assert told == {
        "a": ("reproduced", []),
        "b": ("reproduced", []),
        "c": ("reproduced under a stated reading", ["crowd"]),
        "d": ("contradicted", []),
        "e": ("reproduced under a stated reading", ["crowd"]),
        "f": ("partly", ["crowd"]),
        "g": ("partly", []),
        "h": ("not reproduced", []),
    }
    judged = {each.claim.id: [r.reading for r in each.readings] for each in outcome.findings}
    assert judged["a"] == ["standard", "crowd"]
    assert judged["b"] == ["standard", "crowd", "steep"]
    assert [each.claim.id for each in outcome.findings if each.refuted] == ["e"]


def test_what_only_readings_in_view_of_the_results_meet_is_fitted() -> None:
    made: Any = Claim(id="a", text="", paper="", measure="", holds=Bound("> 0"))

    def fitted(under: list[str], hindsight: set[str]) -> bool:
        return is_fitted(made, Verdict.STATED, under, hindsight)

    assert fitted(["crowd"], {"crowd"})
    assert not fitted(["crowd", "steep"], {"crowd"}), "one of them was chosen before"
    assert not is_fitted(made, Verdict.REPRODUCED, [], {"crowd"})
    assert not is_fitted(made, Verdict.PARTLY, ["crowd"], {"crowd"})


def test_ours_are_counted_apart(outcome: Outcome) -> None:
    counts = tally([outcome])
    assert counts["ours"][Verdict.REPRODUCED] == 1
    assert sum(counts["ours"].values()) == 1
    assert counts["paper"][Verdict.REPRODUCED] == 1
    assert sum(counts["paper"].values()) == 7


def test_the_report_tells_readings_bounds_and_proofs(outcome: Outcome, tmp_path: Path) -> None:
    text = write_report([outcome], tmp_path).read_text("utf-8")
    for said in (
        "The paper: 40.",
        "40 is less than 100.",
        "this proof is wrong",
        "It says many.",
        "Chosen with the results in view.",
        "Ours, not the paper",
    ):
        assert said in text
    found = {each["id"]: each for each in to_json(outcome)["claims"]}
    assert found["c"]["under"] == ["crowd"]
    assert [each["measured"] for each in found["c"]["readings"]] == [20, 40]
    assert found["b"]["origin"] == "ours"


def test_measures_see_one_reading_at_a_time(outcome: Outcome) -> None:
    assert outcome.tables.runs["reading"].unique().sort().to_list() == [
        *("crowd", "standard", "steep"),
    ]
    assert outcome.tables.of("crowd").runs["reading"].unique().to_list() == ["crowd"]


def test_a_size_may_be_too_small(tmp_path: Path) -> None:
    sizes = """
[sizes.small]
needs_full = ["a"]
[sizes.bare]
readings = false
"""
    claims = claim("a", FLOWS, "<= 20") + claim("b", FLOWS, ">= 40") + claim("c", FLOWS, ">= 1")
    loaded = parse(TINY + OPEN + claims + sizes, "f", "x")

    def verdicts(size: str) -> list[str]:
        (made,) = reproduce(Plan.of([(loaded, loaded.size(size))]), Store(tmp_path), 2)
        return [str(each.verdict) for each in made.findings]

    stated = "reproduced under a stated reading"
    assert verdicts("full") == ["reproduced", stated, "reproduced"]
    assert verdicts("small") == ["needs full size", stated, "reproduced"]
    assert verdicts("bare") == ["reproduced", "needs full size", "reproduced"]


@pytest.mark.parametrize("proof", [False, True])
def test_a_proof_counts_only_if_nothing_reproduces(proof: bool) -> None:
    contradiction: Any = {"by": "arithmetic", "why": "w"} if proof else None
    made = Claim(
        id="a", text="", paper="", measure="", holds=Bound("> 0"), contradicted=contradiction
    )

    def verdict(*found: Verdict) -> Verdict:
        return conclude(made, [Measured(str(i), None, each, {}) for i, each in enumerate(found)])[0]

    assert verdict(Verdict.REPRODUCED, Verdict.NOT_REPRODUCED) is Verdict.REPRODUCED
    assert verdict(Verdict.PARTLY, Verdict.REPRODUCED) is Verdict.STATED
    partly = verdict(Verdict.NOT_REPRODUCED, Verdict.PARTLY)
    assert partly is (Verdict.CONTRADICTED if proof else Verdict.PARTLY)
    none = verdict(Verdict.NOT_REPRODUCED)
    assert none is (Verdict.CONTRADICTED if proof else Verdict.NOT_REPRODUCED)


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        (
            'choose = { many = "many" }',
            'choose = { much = "many" }',
            "reading.crowd.choose",
            "much",
        ),
        (
            'choose = { many = "many" }',
            'choose = { many = "all" }',
            "reading.crowd.choose.many",
            "'all'",
        ),
        ('standard = "few"', 'standard = "none"', "unknown.many.standard", "unknown value"),
        ('claims = ["b"]', 'claims = ["z"]', "reading.steep.claims", "unknown claim 'z'"),
        ("post_hoc = true", 'post_hoc = "yes"', "reading.crowd.post_hoc", "not a value"),
        ("post_hoc = true\n", "", "reading.crowd", "'post_hoc' is missing"),
        ('id = "crowd"', 'id = "standard"', "reading", "the name 'standard' is taken"),
        ('id = "crowd"', 'id = "steep"', "reading", "the name 'steep' is taken"),
        ("[sweep.aqm]", "[sweep.reading]", "sweep.reading", "have a column of this name"),
        ('choose = { many = "many" }', "", "reading.crowd", "changes no run"),
        (
            '"queue.0.aqm=blue" = { "queue.0.params.increment" = 0.1 }',
            '"queue.0.aqm=blue" = 0.1',
            "reading.steep.queue.0.aqm=blue",
            "without settings",
        ),
    ],
)
def test_what_is_wrong_with_a_reading_is_said(old: str, new: str, key: str, says: str) -> None:
    text = TINY + OPEN + claim("b", FLOWS, "> 0")
    assert old in text
    with pytest.raises(InputError, match=says) as raised:
        loaded = parse(text.replace(old, new, 1), "f.toml", "x")
        loaded.plan(loaded.size("full"))
    assert raised.value.key == key
    assert raised.value.file == "f.toml"


PAPER = """
title = "A paper"
cite = "Me26"
source = "me"
[[section]]
id = "III"
title = "three"
experiments = ["one", "two"]
[[section.unknown]]
name = "many"
why = "w"
values = { few = {}, many = { "traffic.0.flows" = 40 } }
standard = "few"
[[section.reading]]
id = "crowd"
title = "40 flows"
why = "w"
post_hoc = true
choose = { many = "many" }
[[section.reading]]
id = "brief"
title = "short"
why = "w"
post_hoc = true
set = { duration = "3s" }
claims = ["one/a"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BLUEWATER_EXPERIMENTS", str(tmp_path))
    made = tmp_path / "mine"
    made.mkdir()
    for name in ("one", "two", "three"):
        (made / f"{name}.toml").write_text(TINY + claim("a", FLOWS, ">= 40"))
    (made / "paper.toml").write_text(PAPER)
    return made


def test_a_section_is_read_in_one_way(folder: Path) -> None:
    assert list(experiment.known()) == ["mine/one", "mine/three", "mine/two"]
    one, three, two = experiment.select("Me26")
    assert [each.id for each in one.readings] == ["crowd", "brief"]
    assert [each.id for each in two.readings] == ["crowd"]
    assert not three.readings
    assert one.stated(one.claims[0]) == ["crowd", "brief"]
    assert one.paper.cite == "Me26"
    assert one.section is not None
    assert [entry.reading for _, entry in two.plan(two.size("full"))] == ["standard", "crowd"]


def test_the_report_counts_what_a_joint_reading_meets(folder: Path, tmp_path: Path) -> None:
    two = folder / "two.toml"
    two.write_text(two.read_text() + claim("b", FLOWS, ">= 30", 'origin = "ours"'))
    made = [experiment.load(f"mine/{name}") for name in ("one", "two")]
    plan = Plan.of([(each, each.size("full")) for each in made])
    outcomes = reproduce(plan, Store(tmp_path / "runs"), 2)
    text = write_report(outcomes, tmp_path / "report").read_text("utf-8")
    rows = text.partition("Readings of whole sections")[2].partition("</table>")[0]
    told = [re.sub(r"<[^>]*>", " ", row).split() for row in rows.split("<tr>")[2:]]
    # 'crowd' has 40 flows for the claim of both, 'brief' leaves 20 for that of one.
    assert told == [
        ["Me26", "§III", "crowd", "2", "2", "0"],
        ["Me26", "§III", "brief", "1", "0", "0"],
        ["ours,", "beside", "Me26", "§III", "crowd", "1", "1", "0"],
    ]


TOGETHER = """
[[reading]]
id = "own"
title = "12 flows"
why = "w"
post_hoc = true
set = { "traffic.0.flows" = 12 }
"""


def test_the_report_counts_what_holds_together(folder: Path, tmp_path: Path) -> None:
    """20 flows as they stand, 40 in 'crowd' of the section, 12 in 'own' of one experiment."""
    few = claim("b", FLOWS, "<= 15")
    many = claim("c", FLOWS, "between 16 and 30", 'fitted = "By 20."')
    ours = claim("d", FLOWS, "<= 15", 'origin = "ours"')
    one = TINY + claim("a", FLOWS, ">= 40") + few + many + claim("e", FLOWS, "<= 30") + ours
    (folder / "one.toml").write_text(one + TOGETHER)
    (folder / "two.toml").write_text(TINY + claim("a", FLOWS, ">= 40"))
    made = [experiment.load(f"mine/{name}") for name in ("one", "two", "three")]
    plan = Plan.of([(each, each.size("full")) for each in made])
    outcomes = reproduce(plan, Store(tmp_path / "runs"), 2)
    text = write_report(outcomes, tmp_path / "report").read_text("utf-8")
    rows = text.partition("How many claims hold")[2].partition("</table>")[0]
    head, *told = (re.sub(r"<[^>]*>", " ", row).split() for row in rows.split("<tr>")[1:])
    # Of a, b, c, e of one and a of two and of three, which is in no section: c and e stand, c is
    # fitted; 'crowd' meets a of one and of two, as many; 'own' meets b: three that only readings
    # chosen with the results in view meet; a of three is open.
    assert head == ["paper", "Me26"]
    assert [row[-1] for row in told] == ["6", "1", "0", "3", "1", "1", "0", "2", "2"]


def test_a_section_s_reading_that_changes_nothing_here_is_the_standard_one(folder: Path) -> None:
    path = folder / "two.toml"
    path.write_text(path.read_text().replace("flows = 20", "flows = 40"))
    two = experiment.load("mine/two")
    assert [entry.reading for _, entry in two.plan(two.size("full"))] == ["standard"]


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('"two"]', '"four"]', "section.III.experiments"),
        ('"two"]', '"one"]', "section.III.experiments"),
        ('"one/a"', '"three/a"', "section.III.reading.brief.claims"),
        ('cite = "Me26"', "cite = 26", "cite"),
        ('source = "me"', 'source = "me"\nauthors = "me"', "authors"),
        ('title = "40 flows"', "title = 40", "section.III.reading.crowd.title"),
    ],
)
def test_what_is_wrong_with_a_paper_is_said(folder: Path, old: str, new: str, key: str) -> None:
    path = folder / "paper.toml"
    assert old in PAPER
    path.write_text(PAPER.replace(old, new))
    with pytest.raises(InputError) as raised:
        experiment.load("mine/one")
    assert raised.value.key == key
    assert raised.value.file == str(path)
