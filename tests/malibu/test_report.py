"""The audit's report: what is missing and what moves the judge come first."""

import io

import numpy as np
import orjson
import polars as pl
import pytest
from rich.console import Console
from statsmodels.regression.mixed_linear_model import MixedLM

from bench.malibu_power import ARMS, USUAL, Shape, judged, scores
from evenhand.metrics.malibu import METRICS, single
from evenhand.report.judge_audit import audit
from evenhand.report.judge_audit_screen import render
from evenhand.report.judge_effects import primary
from evenhand.statistics.margins import EQUIVALENT, SHIFTED, UNDERPOWERED

SHAPE = Shape(bases=24, pairs=3)


def rows(effect: float = 0.0, *, preferred: float | None = 1.0, seed: int = 1) -> pl.DataFrame:
    """A judge that lifts one label by `effect`, and of two texts always gives this verdict."""
    rng = np.random.default_rng(seed)
    one = judged(SHAPE.keys(), scores(rng, SHAPE, USUAL, effect), rng)
    scored = [pl.lit(7.0).alias(f"{side}_{m}") for side in ("first", "second") for m in METRICS]
    two = SHAPE.pair_keys().with_columns(*scored, preferred=pl.lit(preferred, pl.Float64))
    return pl.concat([one.drop("combined", "judge"), two], how="diagonal")


def screen(given: pl.DataFrame) -> str:
    out = io.StringIO()
    Console(file=out, width=140).print(render(audit(given, draws=200)))
    return out.getvalue()


def test_a_judge_that_lifts_one_label_is_shifted_and_that_label_stands_first() -> None:
    report = audit(rows(2.0), draws=500)
    first = report["primary"][0]
    assert report["verdict"] == SHIFTED
    assert (first["label"], first["verdict"]) == ("female", SHIFTED)
    assert first["low"] < first["estimate"] < first["high"]
    assert first["bootstrap_low"] == pytest.approx(first["low"], abs=0.1)
    assert first["dz_low"] < first["dz"] < first["dz_high"]
    assert first["changed"] > 0.9
    assert len(report["primary"]) == 10
    assert report["omnibus"]["p_value"] < 0.001
    assert report["omnibus"]["labels"][0] == "none"
    orjson.dumps(report)  # plain data


def test_too_few_bases_are_underpowered_and_say_how_many_would_do() -> None:
    few = rows().filter(pl.col("base").is_in(["base-0", "base-1", "base-2"]))
    report = audit(few, draws=200)
    assert report["verdict"] == UNDERPOWERED
    assert all(e["detectable"] > 0.25 for e in report["primary"])
    text = screen(few)
    assert "underpowered" in text
    assert "base scenarios would do" in text


def test_a_judge_that_gives_everything_the_same_is_even_handed_and_said_to_be_no_judge() -> None:
    given = rows().with_columns(pl.when(pl.col("phase") == "single").then(8.0).alias(METRICS[0]))
    given = given.with_columns(*(pl.col(METRICS[0]).alias(m) for m in METRICS[1:]))
    report = audit(given, draws=200)
    assert report["verdict"] == EQUIVALENT
    assert "undefined" in report["omnibus"]
    assert any("no judge" in note for note in report["notes"])
    assert "no spread" in screen(given)


def test_a_first_slot_judge_has_no_label_effect_and_a_note() -> None:
    report = audit(rows(preferred=1.0), draws=200)
    wins = [e for e in report["exploratory"] if e["value"] == "win"]
    assert len(wins) == 13 + 10  # pairs of labels, and labels
    assert {e["estimate"] for e in wins} == {0.0}
    found = report["pairs"]["all"]
    assert (found["first_slot_rate"], found["flip_rate"]) == (1.0, 1.0)
    assert any("first slot is favoured" in note for note in report["notes"])


def test_missing_judgements_are_counted_first_and_score_nothing() -> None:
    lost = (pl.col("label") == "male") & (pl.col("text") == "1")
    given = rows().with_columns(
        reason=pl.when(lost).then(pl.lit("unreadable_reply")),
        **{m: pl.when(~lost).then(pl.col(m)) for m in METRICS},
    )
    report = audit(given, draws=200)
    male = next(e for e in report["primary"] if e["label"] == "male")
    assert (male["bases"], male["cells"]) == (24, 24)
    single_phase = report["coverage"]["single"]
    assert (single_phase["n"], single_phase["scored"]) == (24 * 26, 24 * 25)
    text = screen(given)
    assert text.index("24 unreadable_reply") < text.index("identities against no label")
    assert "fewest for male: 24 of 48" in text


def test_an_identity_that_was_never_scored_keeps_its_place_in_the_family() -> None:
    gone = pl.col("label") == "male"
    given = rows().with_columns(pl.when(~gone).then(pl.col(m)).alias(m) for m in METRICS)
    report = audit(given, draws=200)
    male = next(e for e in report["primary"] if e["label"] == "male")
    assert len(report["primary"]) == 10
    assert (male["verdict"], male["estimate"]) == (UNDERPOWERED, None)
    assert "no base has a score in both arms" in screen(given)


def test_repeats_are_reported_only_where_there_are_any() -> None:
    once = rows()
    assert audit(once, draws=200)["repeats"] == {"score": None, "preferred": None}
    twice = pl.concat([once, once.with_columns(repeat=pl.lit("1"))])
    found = audit(twice, draws=200)["repeats"]
    assert (found["score"]["identical"], found["preferred"]["identical"]) == (1.0, 1.0)


def test_the_papers_own_figures_stand_under_their_own_names() -> None:
    found = audit(rows(), draws=200)["as_the_paper_prints_it"]
    assert set(found) == {"paper_chi_square", "paper_difference_matrix", "paper_win_rates"}
    assert len(found["paper_chi_square"]) == 12  # three families, four metrics
    assert all("cramers_v" in test for test in found["paper_chi_square"])
    assert "none" not in found["paper_difference_matrix"]["labels"]
    assert found["paper_win_rates"]["female"]["estimate"] == 0.5


def test_for_two_arms_the_t_test_is_the_mixed_models() -> None:
    """score ~ label + text + (1 | base) over base means, fitted by REML: the same estimate and
    standard error, as theory says of a balanced design."""
    rng = np.random.default_rng(3)
    table = judged(SHAPE.keys(), scores(rng, SHAPE, USUAL, 0.5), rng)
    two = single(table.drop("combined").filter(pl.col("label").is_in(["none", "female"])))
    ours = primary(two)[0].effect
    means = two.group_by("base", "label", maintain_order=True).agg(pl.col("combined").mean())
    label = (means["label"] == "female").cast(pl.Float64).to_numpy()
    design = np.column_stack([np.ones_like(label), label])
    fitted = MixedLM(means["combined"].to_numpy(), design, groups=means["base"].to_numpy()).fit()
    assert ours.estimate == pytest.approx(fitted.params[1], abs=1e-4)
    assert ours.se == pytest.approx(fitted.bse[1], rel=1e-3)


def test_all_arms_of_the_design_are_compared() -> None:
    found = audit(rows(), draws=200)["exploratory"]
    combined = {e["label"] for e in found if e["value"] == "combined" and e["against"] == "none"}
    assert combined == {"neutral", "placebo"}
    for metric in METRICS:
        assert {e["label"] for e in found if e["value"] == metric} == set(ARMS) - {"none"}
