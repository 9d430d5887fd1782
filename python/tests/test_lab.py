from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import SWEEP, TINY

import bluewater
from bluewater import text
from bluewater.errors import InputError
from bluewater.plots.sweep import label
from bluewater.results import aggregate
from bluewater.results.aggregate import differences, summarise
from bluewater.results.stats import estimate
from bluewater.study.scenarios.scenario import Scenario

QUEUE = [{"aqm": "red", "buffer": "100kB"}]
TRAFFIC = [{"flows": 20, "transport": "sack", "start": "0s..1s", "ecn": True}]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> bluewater.Sweep:
    out = tmp_path_factory.mktemp("lab")
    return bluewater.sweep(SWEEP, reps=3, out=out, jobs=2, progress=False)


def built(**keys: Any) -> Scenario:
    network = {"preset": "feng"}
    return Scenario(
        duration="2s", warmup="1s", network=network, queue=QUEUE, traffic=TRAFFIC, **keys
    )


def test_a_scenario_built_in_code_is_that_of_the_file(tiny: Path) -> None:
    assert built() == Scenario.load(tiny) == Scenario.parse(TINY)
    assert hash(built()) == hash(Scenario.load(tiny))
    assert bluewater.run(built()).decision_hash == bluewater.run(tiny).decision_hash


def test_with_makes_another_and_leaves_the_first() -> None:
    first = built()
    other = first.with_({"queue.0.aqm": "blue", "traffic.0.flows": 3}, seed=7)
    assert "blue" in repr(other)
    assert "3 flows" in repr(other)
    assert "seed 7" in repr(other)
    assert first == built()
    table = first.table
    table["queue"][0]["aqm"] = "sfb"
    assert first == built()
    with pytest.raises(AttributeError, match="with_"):
        first.seed = 3


def test_a_wrong_scenario_cannot_be_made() -> None:
    with pytest.raises(bluewater.ScenarioError, match="did you mean `red`"):
        built().with_({"queue.0.aqm": "redd"})
    with pytest.raises(InputError, match="not an item"):
        built().with_({"queue.7.aqm": "red"})


def test_scenarios_and_results_are_sent_to_other_processes(tmp_path: Path) -> None:
    scenario = built(measure={"interval": "500ms"})
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    kept = bluewater.run(scenario, out=tmp_path)
    for result in (bluewater.run(scenario), kept):
        again = pickle.loads(pickle.dumps(result))
        assert again.decision_hash == result.decision_hash
        assert again.flows.equals(result.flows)
        assert again.series.equals(result.series)


def test_a_kept_run_is_not_made_again(tmp_path: Path) -> None:
    first = bluewater.run(built(), out=tmp_path)
    told: list[float] = []
    again = bluewater.run(built(), out=tmp_path, progress=told.append)
    assert not told
    assert again.summary["wall_s"] == first.summary["wall_s"]
    assert bluewater.run(built(), out=tmp_path, seed=2).decision_hash != first.decision_hash


def test_a_result_is_shown_short_and_with_a_picture() -> None:
    result = bluewater.run(built(measure={"interval": "100ms"}))
    assert len(repr(result)) < 200
    assert result.decision_hash in repr(result)
    page = result._repr_html_()
    assert "<svg" in page
    assert "loss" in page
    assert "<svg" not in bluewater.run(built())._repr_html_()


def test_tables_without_rows_have_the_types_of_their_columns() -> None:
    result = bluewater.run(built())
    assert result.series.is_empty()
    assert result.series.schema["queue"] == pl.String
    assert result.groups.schema["group"] == pl.String
    assert result.transfers.schema["began"] == pl.Int64
    full = bluewater.run(built(measure={"interval": "100ms"}))
    both = pl.concat([result.series, full.series.select(result.series.columns)])
    assert both.height == full.series.height


def test_save_makes_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    bluewater.run(built()).save(folder)
    assert (folder / "tables.json").exists()


def test_a_sweep_comes_to_means_with_intervals(swept: bluewater.Sweep) -> None:
    over = swept.summary(["utilisation"])
    assert over.columns == ["buffer", "aqm", "metric", "seeds", "mean", "low", "high"]
    assert over.height == 4
    for row in over.iter_rows(named=True):
        own = swept.runs.filter(
            (pl.col("buffer") == row["buffer"]) & (pl.col("aqm") == row["aqm"])
        )["utilisation"]
        expected = estimate(own.to_list())
        assert row["mean"] == pytest.approx(expected.mean)
        assert row["low"] == pytest.approx(expected.low)
        assert row["high"] == pytest.approx(expected.high)


def test_differences_are_paired_by_seed(swept: bluewater.Sweep) -> None:
    made = swept.differences("aqm", "R", ["queue_mean_packets"])
    assert made["aqm"].unique().to_list() == ["B"]
    row = made.filter(pl.col("buffer") == 100).row(0, named=True)
    runs = swept.runs.filter(pl.col("buffer") == 100).sort("seed")
    of = {name: runs.filter(pl.col("aqm") == name)["queue_mean_packets"] for name in "RB"}
    expected = estimate((of["B"] - of["R"]).to_list())
    assert row["difference"] == pytest.approx(expected.mean)
    assert row["low"] == pytest.approx(expected.low)
    assert row["significant"] == (expected.low > 0 or expected.high < 0)
    assert row["relative"] == pytest.approx(expected.mean / estimate(of["R"].to_list()).mean)


def test_pairing_sees_what_the_spread_over_seeds_hides() -> None:
    runs = pl.DataFrame(
        {
            "aqm": ["a"] * 3 + ["b"] * 3,
            "seed": [1, 2, 3] * 2,
            "delay": [1.0, 5.0, 9.0, 1.5, 5.6, 9.4],
        }
    )
    low, high = (summarise(runs, ["aqm"])[end].to_list() for end in ("low", "high"))
    assert low[1] < high[0]
    row = differences(runs, ["aqm"], "aqm", "a").row(0, named=True)
    assert row["significant"]
    assert row["difference"] == pytest.approx(0.5)
    assert row["effect"] == pytest.approx(5.0)


def test_differences_that_no_seed_moves_are_not_significant() -> None:
    runs = pl.DataFrame(
        {
            "aqm": ["a"] * 3 + ["b"] * 3 + ["c"] * 3,
            "seed": [1, 2, 3] * 3,
            "delay": [0.1] * 3 + [0.3] * 3 + [0.1] * 3,
            "loss": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9, 0.1, 0.4],
        }
    )
    rows = differences(runs, ["aqm"], "aqm", "a").to_dicts()
    found = {(row["aqm"], row["metric"]): (row["effect"], row["significant"]) for row in rows}
    assert found["b", "delay"] == found["c", "delay"] == (None, None)
    assert found["b", "loss"] == (None, None)  # apart by rounding alone
    assert found["c", "loss"][1] is False


def test_an_interval_ends_where_its_metric_does() -> None:
    runs = pl.DataFrame(
        {
            "seed": [1, 2],
            "utilisation": [0.9, 1.0],
            "drops": [0.0, 3.0],
            "delay_mean_s": [0.0, 0.1],
            "own": [0.0, 1.0],
        }
    )
    ends = {row["metric"]: (row["low"], row["high"]) for row in summarise(runs, []).to_dicts()}
    assert ends["utilisation"] == (pytest.approx(0.95 - 12.706 * 0.05), 1.0)
    assert ends["drops"][0] == ends["delay_mean_s"][0] == 0.0
    assert ends["own"][0] < 0  # nobody declared what it is


def test_the_wider_side_of_an_interval_is_shown() -> None:
    cut = {"mean": 0.95, "low": 0.55, "high": 1.0}
    assert text.summarised(cut, 100, "%") == "95 ± 40 %"
    assert text.summarised({"mean": 0.5, "low": None, "high": None}, 1, "") == "0.5"


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    one = bluewater.sweep(SWEEP, out=tmp_path, progress=False)
    assert one.summary(["loss"])["low"].null_count() == 4
    with pytest.raises(InputError, match="unknown axis"):
        one.differences("aqmm", "R")
    with pytest.raises(InputError, match="unknown metric 'los'"):
        one.summary("los")
    assert one.summary("loss").equals(one.summary(["loss"]))
    assert one.differences("aqm", "R", "loss").equals(one.differences("aqm", "R", ["loss"]))
    with pytest.raises(InputError, match="text, or several"):
        one.summary([1])  # type: ignore[list-item]


def test_axes_from_code_are_those_of_a_file(tmp_path: Path) -> None:
    axes = {"queue.0.aqm": ["red", "blue"]}
    made = bluewater.sweep(built(), axes, seeds=[1, 2], out=tmp_path, progress=False)
    assert made.axes == ("queue.0.aqm",)
    assert len(made.runs) == 4
    assert "4 runs" in repr(made)
    assert "<table" in made._repr_html_()


def test_a_notebook_shows_the_means_of_a_sweep(swept: bluewater.Sweep) -> None:
    page = swept._repr_html_()
    assert "<p>&lt;Sweep sweep over buffer, aqm: 12 runs&gt;</p>" in page
    assert page.count("<tr>") == 1 + 4
    assert page.count("<td style='text-align:right'>3</td>") == 4  # seeds
    row = swept.summary(["loss"]).row(0, named=True)
    half = 100 * max(row["high"] - row["mean"], row["mean"] - row["low"])
    assert f">{' ± '.join(text.interval(100 * row['mean'], half))}<" in page
    assert "<th style='text-align:right'>delay p99 (ms)</th>" in page
    assert "data:image/png;base64,iVBOR" in page


def test_a_sweep_of_nothing_but_seeds_has_a_table_without_a_picture(tmp_path: Path) -> None:
    page = bluewater.sweep(built(), reps=2, out=tmp_path, progress=False)._repr_html_()
    assert "&lt;Sweep sweep over seeds: 2 runs&gt;" in page
    assert "<td" in page
    assert "<img" not in page


@pytest.mark.parametrize("name", sorted(aggregate.COLUMNS))
def test_an_axis_cannot_be_called_as_a_column_of_means(tmp_path: Path, name: str) -> None:
    axes = {name: {"key": "queue.0.buffer", "values": ["50p", "100p"]}}
    with pytest.raises(InputError, match="have a column of this name") as error:
        bluewater.sweep(built(), axes, out=tmp_path / "none")
    assert error.value.key == f"sweep.{name}"
    assert not (tmp_path / "none").exists()


def test_every_column_of_means_is_refused_as_an_axis(swept: bluewater.Sweep) -> None:
    made = {*swept.summary().columns, *swept.differences("aqm", "R").columns}
    assert made - set(swept.axes) <= aggregate.COLUMNS


@pytest.mark.parametrize("kind", ["lines", "heat", "box", "cdf", "ellipse"])
def test_a_sweep_is_drawn(swept: bluewater.Sweep, tmp_path: Path, kind: str) -> None:
    x = "delay_mean_s" if kind == "ellipse" else None
    both = kind in ("box", "cdf", "ellipse")
    line = ("aqm", "buffer") if both else "aqm"
    swept.plot("utilisation", x, line=line, kind=kind, path=tmp_path / kind)  # type: ignore[arg-type]
    for ending in ("png", "csv"):
        assert (tmp_path / f"{kind}.{ending}").stat().st_size > 100
    points = pl.read_csv(tmp_path / f"{kind}.csv")
    assert points.height == 12
    assert set(points["line"]) == ({"R, 20", "R, 100", "B, 20", "B, 100"} if both else {"R", "B"})


def test_numbers_along_an_axis_are_whole(swept: bluewater.Sweep) -> None:
    (axes,) = swept.plot("utilisation").axes
    assert not axes.yaxis.get_major_formatter().get_useOffset()  # type: ignore[attr-defined]


def test_boxes_stand_along_an_axis(swept: bluewater.Sweep) -> None:
    (axes,) = swept.plot("utilisation", "buffer", kind="box").axes
    assert axes.get_xlabel() == "Buffer (kB)"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["20", "100"]
    figure = swept.plot("utilisation", "buffer", line="aqm", kind="box")
    assert len(figure.axes[0].patches) == 4
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["R", "B"]
    with pytest.raises(InputError, match="metric along x"):
        swept.plot("utilisation", "buffer", kind="cdf")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("delay_p99_s", "99th percentile of delay (ms)"),
        ("queue_mean_packets", "Mean queue (packets)"),
        ("utilisation", "Link used (%)"),
        ("throughput_bps", "Throughput (Mb/s)"),
        ("flows", "Flows"),
        ("queue.0.params.max_p", "max_p of queue"),
        ("network.rate", "rate of network"),
        ("queue.0.aqm", "Discipline"),
    ],
)
def test_axes_are_named_in_words(name: str, said: str) -> None:
    assert label(name) == said


def test_what_cannot_be_drawn_is_said(swept: bluewater.Sweep) -> None:
    with pytest.raises(InputError, match="unknown metric"):
        swept.plot("utilization")
    with pytest.raises(InputError, match="unknown axis"):
        swept.plot("loss", "bufer")


def test_summary_csv_is_written(swept: bluewater.Sweep, tmp_path: Path) -> None:
    written = {path.name for path in swept.write(tmp_path / "new")}
    assert {"runs.parquet", "runs.csv", "summary.csv", "flows.parquet"} <= written
    assert pl.read_csv(tmp_path / "new" / "summary.csv").equals(
        pl.read_csv(swept.summary().write_csv().encode())
    )


def test_compare_from_python(tmp_path: Path) -> None:
    made = bluewater.compare(
        ["red", "droptail"],
        rate="5mbit", flows=10, duration="3s", warmup="1s", seeds=[1, 2],
        against=("cbr:1mbit", "cubic:2"), out=tmp_path, progress=False,
    )  # fmt: skip
    assert made.runs["aqm"].to_list() == ["red", "red", "droptail", "droptail"]
    groups = made.table("flows")["group"].unique().to_list()
    assert {"cbr:1mbit", "cubic:2"} <= set(groups)


@pytest.mark.slow
def test_a_run_is_loaded_and_drawn(tmp_path: Path) -> None:
    assert len(bluewater.plot(bluewater.run(built())).axes) == 2 + 4  # simulated again
    result = bluewater.run(built(measure={"interval": "100ms"}))
    result.save(tmp_path / "one")
    assert bluewater.load(tmp_path / "one").decision_hash == result.decision_hash
    figure = bluewater.plot(result, tmp_path / "picture")
    assert len(figure.axes) == 2 + 4
    assert (tmp_path / "picture.png").exists()


@pytest.mark.parametrize("wrong", [{"jobs": 0}, {"reps": 0}, {"seeds": []}])
def test_what_would_make_no_run_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        bluewater.sweep(SWEEP, out=tmp_path, progress=False, **wrong)


def test_a_comparison_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to compare"):
        bluewater.compare([], out=tmp_path)


def test_names_are_completed() -> None:
    assert {"sweep", "Scenario", "run", "__version__"} <= set(dir(bluewater))


def test_a_notebook_shows_a_picture(swept: bluewater.Sweep) -> None:
    figure: Any = swept.plot("utilisation", line="aqm")
    assert figure._repr_png_().startswith(b"\x89PNG")


any_: Any = bluewater  # what is wrong by its types as well


@pytest.mark.parametrize(
    ("call", "key"),
    [
        (lambda: any_.run(5), "source"),
        (lambda: any_.run(None), "source"),
        (lambda: any_.run(TINY, seed="x"), "seed"),
        (lambda: any_.run(TINY, seed=True), "seed"),
        (lambda: any_.run(TINY, packets=5), "packets"),
        (lambda: any_.testbed(5), "source"),
        (lambda: any_.sweep(None), "source"),
        (lambda: any_.sweep(SWEEP, seeds=5), "seeds"),
        (lambda: any_.sweep(SWEEP, reps="2"), "reps"),
        (lambda: any_.sweep(SWEEP, jobs="2"), "jobs"),
        (lambda: any_.sweep(SWEEP, out=5), "out"),
        (lambda: any_.compare("red"), "aqms"),
        (lambda: any_.compare([5]), "aqms"),
        (lambda: any_.compare(["red"], rate=5), "rate"),
        (lambda: any_.compare(["red"], flows="5"), "flows"),
        (lambda: any_.compare(["red"], against="cbr:1mbit"), "against"),
        (lambda: any_.sweep(SWEEP, share=3), "share"),
        (lambda: any_.sweep(SWEEP, size=3), "size"),
        (lambda: any_.compare(["red"], "10mbit"), "setup"),
        (lambda: any_.compare(["red"], reps="2"), "reps"),
        (lambda: any_.advise("10mbit"), "link"),
        (lambda: any_.advise(reps="2"), "reps"),
        (lambda: any_.advise(box=2), "box"),
        (lambda: any_.reproduce(5), "name"),
        (lambda: any_.load(None), "folder"),
        (lambda: any_.plot(5), "result"),
        (lambda: any_.check(5), "own"),
        (lambda: any_.Scenario(5), "table"),
        (lambda: any_.Scenario.parse(5), "text"),
        (lambda: any_.Scenario.load(None), "path"),
        (lambda: any_.Scenario.with_(built(), 5), "settings"),
    ],
)
def test_an_argument_of_another_type_is_named(call: Any, key: str) -> None:
    with pytest.raises(InputError, match=r"not what .* takes") as error:
        call()
    assert error.value.key == key
    assert error.value.allowed


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda _: any_.compare(["red"], rat="1mbit"), "did you mean 'rate'"),
        (lambda _: any_.advise(rat="1mbit"), "did you mean 'rate'"),
        (lambda _: any_.Scenario.parse(TINY).with_({1: 1}), "dotted text"),
        (lambda _: any_.compare(["red"], settings={1: 1}), "dotted text"),
        (lambda _: any_.sweep(SWEEP, reps=0), "at reps = 0"),
        (lambda _: any_.sweep(SWEEP, seeds=[2**64]), "at seeds = 18446744073709551616"),
        (lambda _: any_.sweep(SWEEP, seeds=["1"]), "at seeds = '1'"),
        (lambda _: any_.compare(["red"], seeds=[-1]), "at seeds = -1"),
        (lambda _: any_.run(TINY, seed=2**64, out="none"), "at seed = 18446744073709551616"),
        (lambda of: of.load("nope"), "unknown table 'nope'"),
        (lambda of: of.save(__file__), "where a folder is needed"),
    ],
)
def test_what_cannot_be_used_is_an_input_error(call: Any, says: str) -> None:
    with pytest.raises(InputError) as error:
        call(bluewater.run(TINY))
    assert says in f"{error.value} {error.value.hint}"


def test_a_table_that_is_none_is_no_damage(swept: bluewater.Sweep) -> None:
    for of in (swept.table, swept.results()[0][1].load):
        with pytest.raises(InputError, match="unknown table 'nope'"):
            of("nope")
    assert swept.table("skew").is_empty()
    assert swept.results()[0][1].skew.schema == bluewater.run(TINY).skew.schema


def test_reps_of_a_comparison(tmp_path: Path) -> None:
    made = bluewater.compare(
        ["red"], rate="5mbit", flows=5, duration="3s", warmup="1s", reps=2, out=tmp_path,
        progress=False,
    )  # fmt: skip
    assert made.runs["seed"].to_list() == [1, 2]


def test_a_run_on_two_threads_is_the_run_on_one() -> None:
    chain = {
        "duration": "2s",
        "network": {"preset": "chain", "rate": "10mbit", "cross": 1},
        "queue": [{"link": "*", "aqm": "pie", "buffer": "50p"}],
        "traffic": [{"transport": "cubic", "flows": 5}],
    }
    one, two = (bluewater.run(chain, threads=threads) for threads in (1, 2))
    assert one.decision_hash == two.decision_hash
    assert one.queues.equals(two.queues)
    with pytest.raises(bluewater.InputError, match="threads = 0"):
        bluewater.run(chain, threads=0)


def test_a_run_that_is_not_divided_says_so(tmp_path: Path) -> None:
    one = {
        "duration": "1s",
        "network": {"preset": "dumbbell", "rate": "10mbit"},
        "queue": [{"aqm": "pie", "buffer": "50p"}],
        "traffic": [{"transport": "cubic", "flows": 5}],
    }
    told: list[str] = []
    bluewater.run(one, threads=2, out=tmp_path, told=told.append)
    assert "on one thread" in " ".join(told)
