"""Designs side by side: calls, tokens, money and hours by hand, and what each may say."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.findings.designs import DesignTexts, Rates, ScreenDesign, designs
from evenhand.findings.plan import ItemPrice, PilotSpread, plan, screen_plan
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.bold.instrument import Bold
from tests.coded import coded, codes
from tests.errors import assert_names
from tests.scorers.screen.test_plan import screen

JUDGE = ItemPrice(calls=1, tokens=500, per_million=2.0)
RATES = Rates(judge=JUDGE, calls_per_second=2.0)
PLAN = plan(Bbq(), detect=0.3, price=ItemPrice(calls=4, tokens=100, per_million=2.0))
HARM = "unsupported_attribution"  # has no "no bias" value, so that its gate can be drawn


def named(rows: tuple[ScreenDesign, ...]) -> dict[str, ScreenDesign]:
    return {one.name: one for one in rows}


def test_a_sequential_run_costs_the_whole_baseline_and_a_part_of_the_new_run() -> None:
    """140 items of 18 templates, 4 calls each: 1,120 calls of both runs, of 100 tokens."""
    found = designs(replace(PLAN, measure=HARM), RATES)
    fixed, *sequential = found.rows
    assert (fixed.expected.calls, fixed.expected.tokens) == (1_200, 120_000)
    assert fixed.expected.money == pytest.approx(0.24)
    assert fixed.expected.hours == pytest.approx(1_200 / 2 / 3600)
    assert fixed.at_worst == fixed.expected
    assert [round(one.effect, 9) for one in found.drawn] == [0.0, 0.3, 0.6]
    for row, drawn in zip(sequential, found.drawn, strict=True):
        assert row.expected.calls == pytest.approx(600 + 600 * drawn.clusters / 19)
        assert row.at_worst == fixed.at_worst  # it ends where the fixed one does
        said = coded(row.promises, "design.sequential")
        assert (said["decided"], said["fixed"]) == (drawn.decided, drawn.fixed)
    assert found.drawn[1].decided < found.drawn[1].fixed  # the price of looking
    assert found.drawn[2].fixed > 0.95
    many = designs(replace(plan(Bbq(), detect=0.1), measure=HARM), RATES).drawn
    assert many[2].share < many[1].share < 1
    assert codes(found.left_out) == ["left_out.no_texts"]


def test_a_gate_that_also_bets_on_the_side_of_no_bias_gets_no_sequential_row() -> None:
    found = designs(PLAN, RATES)
    assert [one.name for one in found.rows] == ["fixed"]
    assert found.drawn == ()
    assert "left_out.side_of_null" in codes(found.left_out)


@pytest.mark.parametrize(
    ("rows", "drawn"), [(1364, True), (4 * 343, True), (1300, False), (550, False), (9_999, False)]
)
def test_only_clusters_that_are_known_to_be_even_get_a_sequential_row(
    rows: int, drawn: bool
) -> None:
    """343 templates with 3.98 or 4 rows are the default sample. 3.79 is below 95 % of 4, 1.6 is a
    sample at random, and 29 are more than nearly every template has."""
    pilot = PilotSpread(measure=HARM, runs=("a", "b"), items=2 * rows, rows=rows, clusters=343,
                        se=0.02)  # fmt: skip
    made = replace(PLAN, measure=HARM, assumed=pilot, rows=rows, clusters=343)
    found = designs(made, RATES)
    assert bool(found.drawn) == drawn
    assert ("left_out.uneven" in codes(found.left_out)) != drawn


def test_an_instrument_with_titles_of_1_to_20_prompts_gets_no_sequential_row() -> None:
    pilot = PilotSpread(measure="negative_regard", runs=("a", "b"), items=800, rows=800,
                        clusters=516, se=0.25 / 516**0.5)  # fmt: skip
    made = replace(PLAN, instrument=Bold(), measure="negative_regard", assumed=pilot, rows=323,
                   clusters=208, detect=0.05)  # fmt: skip
    found = designs(made, RATES)
    assert found.drawn == ()
    assert "left_out.uneven" in codes(found.left_out)


def test_a_screen_costs_what_its_own_plan_says_and_answers_another_question(
    tmp_path: Path,
) -> None:
    scores: list[float | None] = [*[0.1] * 90, *[0.3] * 10]
    file = screen(tmp_path, ("t.jsonl", scores))
    texts = DesignTexts(count=1_000_000, screen=file)
    rows = named(designs(PLAN, RATES, texts).rows)
    alone = screen_plan(file, 1_000_000, JUDGE, None)
    assert rows["screened"].expected.calls == alone.calls(alone.sent.share) == 100_000
    assert rows["screened"].expected.money == alone.money(alone.sent.share) == 100.0
    assert rows["judging all"].expected.money == 1_000.0
    assert rows["screened"].at_worst == rows["judging all"].expected
    assert {rows[one].question for one in ("screened", "judging all")} == {"each text"}
    promises = coded(rows["screened"].promises, "design.screened")["promises"]
    assert ("missed harm", None, 0.05, 0.95) in promises


def test_labels_by_people_have_their_price_and_labels_by_the_judge_its_calls() -> None:
    """± 0.1: 98 labels alone, and 70 with a correlation of 0.8, of 100,000 texts: planned for
    0.1/1.15, t·√((0.09·n + 3.38)/((n + 1)(n + 2)) + 0.16/N) is 0.0868 with n = 70 and 0.0877 with
    69. A scorer that says nothing needs the 98."""
    wide = plan(Bbq(), detect=0.1)
    texts = DesignTexts(count=100_000, correlation=0.8)
    paid = named(designs(wide, Rates(judge=JUDGE, label_price=0.5), texts).rows)
    alone, fewer = paid["labels alone"].expected, paid["labels with predictions"].expected
    assert (alone.labels, alone.calls, alone.money, alone.hours) == (98, 0, 49.0, None)
    assert (fewer.labels, fewer.calls, fewer.money) == (70, 0, 35.0)
    assert paid["labels with predictions"].at_worst == alone
    said = coded(paid["labels with predictions"].promises, "design.with_predictions")
    assert (said["alone"], said["fewer"]) == (98, 70)
    by_judge = [one.promises.values.get("by_judge") for one in paid.values()]
    assert True not in by_judge
    rows = named(designs(wide, RATES, texts).rows)
    judged = rows["labels with predictions"].expected
    assert (judged.calls, judged.tokens, judged.money) == (70, 35_000, 0.07)
    assert judged.hours == pytest.approx(70 / 2 / 3600)
    for name in ("labels alone", "labels with predictions"):
        assert rows[name].promises["by_judge"]


def test_what_is_not_known_is_left_out_with_what_to_say() -> None:
    found = designs(PLAN, RATES, DesignTexts(count=15))
    assert [one.name for one in found.rows][-1] == "judging all"
    assert "left_out.no_screen" in codes(found.left_out)
    assert coded(found.left_out, "left_out.too_few_texts")["texts"] == 15
    none = designs(plan(Bbq(), detect=0.001), RATES)
    assert not none.rows
    assert "plan.instrument_too_small" in codes(none.left_out)
    ratio = designs(plan(Bbq(), detect=0.3), RATES, DesignTexts(count=2_000))
    assert "left_out.no_correlation" in codes(ratio.left_out)


def test_the_command_prints_one_table_and_refuses_options_without_a_use() -> None:
    said = ["plan", "bbq", "--detect", "0.3", "--designs", "--texts", "2000", "--price", "1",
            "--correlation", "0.6"]  # fmt: skip
    ran = CliRunner().invoke(app, said, env={"COLUMNS": "100"})
    assert ran.exit_code == 0, ran.output
    for words in ("fixed", "omitted: sequential", "labels with predictions", "at worst"):
        assert words in ran.output
    assert_names(ran.output, "one question")
    found = json.loads(CliRunner().invoke(app, [*said, "--json"]).output)
    questions = [one["question"] for one in found["designs"]]
    assert questions == ["a change"] + ["each text"] + ["a share"] * 2
    assert found["left_out"][0]["values"]["why"]["code"] == "left_out.side_of_null"
    assert found["designs"][0]["expected"]["calls"] == 300
    alone = CliRunner().invoke(app, ["plan", "bbq", "--texts", "9"])
    assert "--designs" in str(alone.exception)
    no_texts = CliRunner().invoke(app, ["plan", "bbq", "--designs", "--correlation", "0.5"])
    assert "--texts 10000" in str(no_texts.exception)
