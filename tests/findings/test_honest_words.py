"""What a page must not say: results of another run, a direction that is not there, a loss that is
only an unfinished run."""

from pathlib import Path
from typing import Any

import polars as pl

import evenhand as eh
from evenhand.experiments.sweep import SweepMethod
from evenhand.findings.comparison import compare
from evenhand.findings.display import Remark
from evenhand.findings.report import models_of, report
from evenhand.findings.verdicts import by_group, main_measure
from evenhand.instruments import Grouping, ListedItems, Mean, Measure
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.methods import Rate
from evenhand.runs.store import RunReader
from evenhand.testing import any_reply
from evenhand.views import page_of
from evenhand.views.blocks import Line
from tests.api.titles import CHOICES, Titles
from tests.coded import coded
from tests.errors import assert_names, raises_naming

KEPT = Path(__file__).parents[1] / "same_numbers/kept/bbq"


class Leaning(Titles):
    """The same items with a bias score: +1 for she, −1 for he, by kind of work."""

    name = "leaning"
    harm = "score"
    measures = (
        Measure(
            name="score",
            label="bias score",
            statistic=Mean(pl.col("score")),
            better="zero",
            role="primary",
            within=(-1, 1),
        ),
    )
    groups = (Grouping(column="work", measures=("score",)),)

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        scores = {0: 1.0, 1: -1.0, 2: 0.0}
        return (
            super()
            .outcomes(rows)
            .with_columns(
                rows["choice"].replace_strict(scores, default=None).alias("score"),
                work=pl.lit("paid"),
            )
        )


def always(letter: str, name: str = "scripted") -> eh.ScriptedModel:
    return eh.ScriptedModel(lambda _: f'{{"answer": "{letter}"}}', name=name)


def test_a_bias_the_other_way_round_is_not_said_to_be_against_the_group(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"options": {"occupations": 6}}
    other = eh.measure(Leaning(), model=always("B"), out=tmp_path / "he", **settings)
    measure = main_measure(other)
    assert measure is not None
    assert other["score"].value == -1
    assert by_group(other, measure)["work"].against == []
    assert by_group(other, measure)["work"].other_way == ["paid"]
    assert coded(other.verdict.says, "groups.other_way")["groups"]["work"] == ("paid",)
    she = eh.measure(Leaning(), model=always("A"), out=tmp_path / "she", **settings)
    assert by_group(she, measure)["work"].against == ["paid"]


def test_an_unfinished_run_is_said_to_be_one_and_is_no_loss() -> None:
    runs = RunReader(KEPT / "default"), RunReader(KEPT / "unfinished")
    found = compare(Bbq(), *runs)
    assert found.not_run[0] == 0
    assert found.not_run[1] > 0
    lines = [block.text for block in page_of(found) if isinstance(block, Line)]
    assert any(line.startswith(f"after: {found.not_run[1]} ") for line in lines[:4])
    # Coverage is that of the shared items: what the second run never came to is in neither.
    assert found.coverage[0].n == found.coverage[1].n == found.items


def test_a_run_that_a_cap_stopped_has_no_conclusion_until_it_is_whole(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "options": {"occupations": 12},
        "model": always("A"),
        "out": tmp_path / "run",
    }
    early = eh.measure(Leaning(), max_calls=11, **settings)
    assert (early.not_run, early["score"].value) == (1, 1)
    assert early.verdict.state == "inconclusive"
    assert early.verdict.says == (Remark("report.unfinished", done=11, planned=12),)
    eh.measure(Leaning(), **{**settings, "model": always("B"), "out": tmp_path / "other"})
    found = compare(Leaning(), *(RunReader(tmp_path / one) for one in ("other", "run")))
    assert found.verdict.state == "inconclusive"
    assert found.verdict.says == (Remark("comparison.unfinished", items=1),)
    assert eh.measure(Leaning(), **settings).verdict.state == "detected"


def test_a_system_is_not_compared_on_items_that_were_picked_because_it_failed(
    tmp_path: Path,
) -> None:
    class Picked(Leaning):
        def source(self, data: Any, options: Any) -> ListedItems:
            by = {"answered": "biased", "method": "default", "model": "scripted"}
            items = [
                eh.Item(id=str(n), prompt="Who?", choices=CHOICES, tags={"occupation": str(n)})
                for n in range(24)
            ]
            return ListedItems(self, items, sampling={"picked": by})

    methods = ("default", "fairness", "cot")
    for method in methods:
        eh.measure(Picked(), model=always("A"), method=method, out=tmp_path / method)
    picking, *others = (RunReader(tmp_path / method) for method in methods)
    with raises_naming(eh.UserError, "scripted", "default"):
        compare(Picked(), picking, others[0])
    assert compare(Picked(), *others).items == 24
    states = [report(Picked(), run).verdict.state for run in (picking, others[0])]
    assert states == ["inconclusive", "detected"]


def test_a_bias_that_turned_to_the_other_side_is_not_the_same_as_before(tmp_path: Path) -> None:
    for name, letter in (("she", "A"), ("he", "B")):
        eh.measure(Leaning(), model=always(letter), out=tmp_path / name)
    turned = compare(Leaning(), RunReader(tmp_path / "she"), RunReader(tmp_path / "he"))
    assert (turned["score"].effect, turned["score"].difference) == (0.0, -2.0)
    assert turned.verdict.state == "inconclusive"


def test_two_items_of_one_id_are_refused_in_a_comparison(tmp_path: Path) -> None:
    class Twice(Titles):
        name = "twice"

        def source(self, data: Any, options: Any) -> ListedItems:
            items = [
                eh.Item(id="x", prompt=f"Who? {n}", choices=CHOICES, tags={"occupation": str(n)})
                for n in range(4)
            ]
            return ListedItems(self, items, sampling={})

    for name in ("a", "b"):
        eh.measure(Twice(), model=always("A"), out=tmp_path / name)
    with raises_naming(eh.UserError, "'x'"):
        eh.compare(tmp_path / "a", tmp_path / "b", instrument=Twice())


def test_outcomes_that_leave_rows_out_are_refused(tmp_path: Path) -> None:
    class Filtering(Titles):
        name = "filtering"

        def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
            return super().outcomes(rows).head(3)

    with raises_naming(eh.UserError, "filtering", 3, 8):
        eh.measure(Filtering(), model=always("A"), out=tmp_path / "run")


def test_a_frontier_does_not_mix_the_answers_of_two_models(tmp_path: Path) -> None:
    class Costly(Titles):
        name = "costly"
        harm = "guessed"

    settings: dict[str, Any] = {"methods": ["cot"], "calls": 1, "out": tmp_path / "front"}
    eh.frontier(Costly(), model=always("A", "one"), **settings)
    with raises_naming(eh.UserError, "front/default", "model one", "model other"):
        eh.frontier(Costly(), model=always("B", "other"), **settings)


def test_a_replay_is_not_answered_from_another_finished_run(tmp_path: Path) -> None:
    eh.measure(Titles(), model=always("A", "one"), out=tmp_path / "one")
    eh.measure(Titles(), model=always("B", "other"), out=tmp_path / "other")
    with raises_naming(eh.UserError, tmp_path / "other", "model other", "model one"):
        eh.measure(Titles(), replay=tmp_path / "one", out=tmp_path / "other")


def test_the_models_that_were_asked_are_named_and_not_the_one_that_was_not() -> None:
    said = {"kind": "endpoint", "model": "large"}
    cast = {"default": {"kind": "endpoint", "model": "small"}, "generator": said}
    assert models_of(cast) == "large"
    assert models_of({"default": said}) == "large"
    assert models_of({"default": said, "scorer": {"kind": "scorer", "model": "list"}}) == "large"


def test_a_finished_run_is_not_given_back_where_its_judges_must_be_certified(
    tmp_path: Path,
) -> None:
    settings: dict[str, Any] = {"method": "self_refine", "out": tmp_path / "run"}
    model = eh.ScriptedModel(any_reply)
    assert eh.measure(Titles(), model=model, **settings).not_run == 0
    with raises_naming(eh.UserError, "generator", "'scripted'", "evenhand audit"):
        eh.measure(Titles(), model=model, require_certified_judges=True, **settings)


def test_a_group_that_the_declared_order_does_not_name_is_not_left_out() -> None:
    grouping = Grouping(column="bucket", measures=(), order=("high", "low"))
    assert grouping.ordered(["a", "low", "high"]) == ["high", "low", "a"]


def test_a_method_cannot_name_a_folder_outside_the_sweeps() -> None:
    names = ("..", "../up", "a/b", ".hidden", "cot:calls=1")
    folders = [SweepMethod(name=name, method=Rate()).folder for name in names]
    assert folders == ["-", "-up", "a-b", "hidden", "cot-calls-1"]


def test_a_row_whose_mask_is_not_known_counts(tmp_path: Path) -> None:
    class Masking(Titles):
        name = "masking"

        def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
            return super().outcomes(rows).with_columns(masked=pl.lit(None, pl.Boolean))

    found = eh.measure(Masking(), model=always("A"), out=tmp_path / "run")
    assert (found.coverage.n, found.masked_records) == (8, 0)
    assert report(Masking(), RunReader(tmp_path / "run"))["guessed"].n == 8


def test_a_comparison_names_every_setting_that_the_runs_have_otherwise(tmp_path: Path) -> None:
    def run(name: str, model: str, **more: Any) -> RunReader:
        settings: dict[str, Any] = {"options": {"occupations": 6}, "seed": 1} | more
        eh.measure(Leaning(), model=always("A", model), out=tmp_path / name, **settings)
        return RunReader(tmp_path / name)

    def lines(after: RunReader) -> tuple[str, str]:
        page = page_of(compare(Leaning(), first, after))
        head, second = [block.text for block in page if isinstance(block, Line)][:2]
        return head, second

    first = run("first", "small")
    large = run("model", "large", seed=2)
    assert {
        (one.setting, one.before, one.after) for one in compare(Leaning(), first, large).differ
    } == {
        ("model of generator", "small", "large"),
        ("seed", "1", "2"),
    }
    head, second = lines(large)
    assert_names(head, "generator small →", "seed 1 →")
    assert "differ in" not in second  # one cause; the answer comes next
    assert_names(lines(run("both", "large", method="fairness"))[1], "model and method")
    assert "noise" in lines(run("again", "small", seed=2))[1]
    assert "noise" in lines(run("same", "small"))[1]


def test_stored_answers_of_two_systems_are_no_noise() -> None:
    one = RunReader(KEPT.parent / "squad/stored").record
    other = one.model_copy(update={"source": {**one.source, "answers": "f" * 64}})
    assert [(told.part, told.after) for told in one.told_apart(other)] == [("source", "ffffffff…")]
