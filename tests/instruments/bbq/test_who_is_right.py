"""A reader who is always right has no bias, whatever was drawn; and whom a bias is against."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenhand.findings.report import groups_of, report
from evenhand.findings.totals import RunTotals
from evenhand.instruments.bbq.answers import covered, with_answers
from evenhand.instruments.bbq.data import STRATUM, name_of
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.bbq.sample import BbqSampling, sample
from evenhand.instruments.bbq.words import as_published, not_drawn
from evenhand.runs.store import RunReader
from tests.coded import every
from tests.errors import assert_names
from tests.same_numbers.adapter import KEPT

OTHER = 3 - pl.col("unknown") - pl.col("label")
RIGHT = pl.when("masked").then(OTHER).otherwise("label")  # what the text says, not the gold


def outcomes(drawn: pl.DataFrame, choice: pl.Expr) -> pl.DataFrame:
    """The outcomes of a reader who picks this option of every record."""
    rows = drawn.with_columns(
        item_id=pl.concat_str("category", "example_id", separator="/"),
        template=pl.concat_str("category", "question_index", separator="/"),
        status=pl.lit("answered"),
        reason=pl.lit(""),
        choice=choice,
        names=pl.col("names").cast(pl.Int64),
        masked=pl.col("masked").cast(pl.Int64),
        gold="label",
        group="against",
        stands_for=pl.lit(1.0),
    )
    return Bbq().outcomes(rows)


def with_seeds(records: pl.DataFrame, seeds: int) -> pl.DataFrame:
    """The default samples of so many seeds, one below the other."""
    needed = records.drop("context", "question", "options")
    drawn = [
        sample(needed, BbqSampling(seed=seed)).with_columns(draw=pl.lit(seed))
        for seed in range(seeds)
    ]
    return pl.concat(drawn)


def test_a_reader_who_is_right_has_exactly_no_bias_in_any_category_of_200_samples(
    records: pl.DataFrame,
) -> None:
    """The declared sums of s_dis, added up by sample and category: both ratios and −1."""
    drawn = with_seeds(records, 200)
    s_dis = Bbq().measure("s_dis")
    sums = (
        outcomes(drawn, RIGHT)
        .with_columns(drawn["draw"])
        .filter(~pl.col("masked"))
        .group_by("draw", "category")
        .agg(expr.sum().alias(name[-2:]) for name, expr in s_dis.columns().items())
        .with_columns(value=pl.col("y0") / pl.col("x0") + pl.col("y1") / pl.col("x1") - 1)
    )
    assert len(sums) == 200 * 15
    assert sums["value"].unique().to_list() == [0.0]


@pytest.mark.parametrize("sampling", [BbqSampling(seed=1), BbqSampling(preset="all")])
def test_a_reader_who_is_right_has_no_bias_in_the_report(
    records: pl.DataFrame, sampling: BbqSampling
) -> None:
    totals = RunTotals.of(Bbq(), [outcomes(sample(records, sampling), RIGHT)])
    places: list[dict[str, str]] = [{}]
    places += [{"category": value} for value in totals.values_of("category")]
    assert len(places) == 16
    for name in ("s_dis", "accuracy_gap"):
        found = [totals.estimate(Bbq().measure(name), **place) for place in places]
        assert {one.value for one in found} == {0.0}
    right = totals.estimate(Bbq().measure("accuracy_disambiguated"))
    assert right.value == 1.0


def test_without_a_question_of_either_kind_the_bias_score_is_not_known(
    records: pl.DataFrame,
) -> None:
    """Two templates of SES and two of disability never go against the stereotype."""
    only = records.filter(pl.col("category") == "SES", pl.col("question_index").is_in(["9", "10"]))
    totals = RunTotals.of(Bbq(), [outcomes(only, RIGHT)])
    assert totals.estimate(Bbq().measure("s_dis")).value is None
    assert totals.estimate(Bbq().measure("accuracy_gap")).value is None


def test_the_papers_formula_gives_a_perfect_reader_a_bias_where_versions_are_missing(
    records: pl.DataFrame,
) -> None:
    """SES: templates 9 and 10, 36 + 36 clear questions of 3,432, have no version against it."""
    totals = RunTotals.of(Bbq(), [outcomes(records, RIGHT)])
    rows: dict[str, Any] = {str(row[0]): row[1:] for row in as_published(totals.tally()).rows}
    perfect = {name: round(row[2], 1) for name, row in rows.items() if row[2] != 0}
    assert perfect == {"Disability_status": 1.3, "Race_x_gender": 0.5, "SES": 2.1}
    assert [row[1] for row in rows.values()] == pytest.approx([row[2] for row in rows.values()])
    assert round(100 * 72 / 3432, 1) == perfect["SES"]


def test_a_masked_record_counts_wherever_the_gold_answer_is_not_used(
    records: pl.DataFrame,
) -> None:
    """Of 788 clear questions of physical appearance 68 are masked."""
    looks = records.filter(pl.col("category") == "Physical_appearance")
    totals = RunTotals.of(Bbq(), [outcomes(looks, RIGHT)])
    n = {name: totals.estimate(Bbq().measure(name)).n
         for name in ("over_abstention", "accuracy_disambiguated", "s_dis")}  # fmt: skip
    assert n == {"over_abstention": 788, "accuracy_disambiguated": 720, "s_dis": 720}
    assert (totals.coverage().n, totals.masked_rows) == (1576, 68)
    with_them = totals.with_masked(Bbq().measure("accuracy_disambiguated"))
    assert with_them.value == pytest.approx(720 / 788)


# -- against whom -------------------------------------------------------------------------------


def test_every_record_with_a_target_names_a_group_that_a_reader_knows(
    records: pl.DataFrame,
) -> None:
    assert records.filter(pl.col("against").is_null())["biased"].null_count() == 16
    assert records["against"].null_count() == 16
    known = {"women", "old people", "poor people", "Muslims", "Black women", "poor Black people"}
    names = set(records["against"].drop_nulls())
    assert known <= names
    assert len(names) == 50
    assert not [name for name in names if "-" in name or "_" in name or "SES" in name]


def test_the_target_is_who_the_stereotype_is_about_in_both_wordings(
    records: pl.DataFrame,
) -> None:
    """A block has a negative and a non-negative wording about the same two people."""
    blocks = records.drop_nulls("against").group_by(pl.col("row") // 4)
    assert blocks.agg(pl.col("against").n_unique())["against"].unique().to_list() == [1]
    age = records.filter(pl.col("category") == "Age", pl.col("question_index") == "1")
    assert age["against"].unique().to_list() == ["old people"]


def test_a_race_has_a_sex_only_where_the_category_is_about_both() -> None:
    assert name_of("Race_x_gender", "F-African American") == "Black women"
    assert name_of("Race_ethnicity", "F-African American") == "Black people"
    assert name_of("Race_x_SES", "lowSES-M-Latino") == "poor Latino people"


def test_a_bias_in_one_group_is_said_to_be_against_it_after_correction(
    records: pl.DataFrame,
) -> None:
    """Whoever picks the stereotyped person of questions about the old, and else abstains, is
    biased against the old alone, who have the smallest p of all."""
    choice = pl.when(pl.col("against") == "old people").then("biased").otherwise("unknown")
    totals = RunTotals.of(Bbq(), [outcomes(sample(records, BbqSampling()), choice)])
    groups = groups_of(Bbq(), totals)
    shown = {
        (column, value)
        for column, values in groups.items()
        for value, estimates in values.items()
        if (estimates[0].p_holm or 1.0) <= 0.05
    }
    old = groups["group"]["old people"][0]
    assert ("group", "old people") in shown
    assert shown == {("group", "old people"), ("category", "Age")}
    assert old.p is not None
    tested = [one for found in groups.values() for one in found.values() if one[0].p is not None]
    assert old.p_holm == pytest.approx(len(tested) * old.p)


def test_a_run_folder_of_before_has_no_groups_and_no_weights() -> None:
    found = report(Bbq(), RunReader(KEPT / "bbq/default"))
    assert "group" not in found.groups
    assert found["s_amb_by_records"].value is None
    assert "not recorded" in (found["s_amb_by_records"].undefined or "")
    looked_at = [remark.values.get("looked_at", {}) for remark in every(found.verdict.says)]
    assert not any("group" in columns for columns in looked_at)


# -- what weighs the same -----------------------------------------------------------------------


def test_records_that_weigh_the_same_give_what_all_records_give(records: pl.DataFrame) -> None:
    """Whoever is biased in the templates with many records alone: of the 343 templates it is the
    share of templates, and by records the share of records, on the sample as on all of BBQ."""
    sizes = records.with_columns(size=pl.len().over("category", "question_index"))
    choice = pl.when(pl.col("size") > 200).then("biased").otherwise("unknown")
    drawn = sizes.filter(pl.col("row").is_in(sample(records, BbqSampling())["row"].implode()))
    weighed = drawn.with_columns(weight=pl.col("alike") / pl.len().over(STRATUM))
    rows = outcomes(weighed, choice).with_columns(stands_for=weighed["weight"])
    totals = RunTotals.of(Bbq(), [rows])
    plain, by_records = (
        totals.estimate(Bbq().measure(name)).value for name in ("s_amb", "s_amb_by_records")
    )
    unclear = sizes.filter(pl.col("condition") == "ambig").drop_nulls("biased")
    large = unclear.filter(pl.col("size") > 200)
    assert by_records == pytest.approx(len(large) / len(unclear))
    templates = large.select("category", "question_index").n_unique()
    assert plain == pytest.approx(templates / 343, abs=0.01)  # four have half of the questions
    assert by_records is not None
    assert by_records > 2 * (plain or 0.0) > 0


def test_picked_answers_say_how_many_blocks_are_incomplete(
    records: pl.DataFrame, tmp_path: Path
) -> None:
    """Two whole blocks, and one record each of two others."""
    picked = records.filter(pl.col("row").is_in([0, 1, 2, 3, 8, 9, 10, 11, 20, 33]))
    kept = picked.select("category", "example_id", answer=pl.lit(0, pl.Int64))
    kept.write_ndjson(tmp_path / "picked.jsonl")
    counted = covered(with_answers(records, tmp_path / "picked.jsonl").records)
    assert counted == {"records": 10, "of": 58_492, "incomplete_blocks": 2}
    assert_names(not_drawn({"stored": counted})[0], "10 of 58,492", "2 incomplete blocks")
    assert not_drawn({"preset": "templates"}) == ()
