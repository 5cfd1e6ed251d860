"""The audit's evidence and its page: what is missing and what moves the judge come first."""

import io

import numpy as np
import orjson
import polars as pl
import pytest
from rich.console import Console
from statsmodels.regression.mixed_linear_model import MixedLM

from bench.malibu_power import ARMS, USUAL, Shape, judged, scores
from evenhand.core.conclusions import Outcome
from evenhand.findings.audit import Decided
from evenhand.findings.estimates import NO_SPREAD
from evenhand.findings.measures import AuditBound
from evenhand.instruments.judge import measures
from evenhand.instruments.judge.checks import JudgeCheck, checks
from evenhand.instruments.judge.effects import primary
from evenhand.instruments.judge.evidence import JudgeEvidence, Margins
from evenhand.statistics.metrics.malibu import METRICS, single
from evenhand.views import terminal_of
from evenhand.views.files import to_json

from .in_process import audited

SHAPE = Shape(bases=24, pairs=3)


def rows(effect: float = 0.0, *, preferred: float | None = 1.0, seed: int = 1) -> pl.DataFrame:
    """A judge that lifts one label by `effect`, and of two texts always gives this verdict."""
    rng = np.random.default_rng(seed)
    one = judged(SHAPE.keys(), scores(rng, SHAPE, USUAL, effect), rng)
    scored = [pl.lit(7.0).alias(f"{side}_{m}") for side in ("first", "second") for m in METRICS]
    two = SHAPE.pair_keys().with_columns(*scored, preferred=pl.lit(preferred, pl.Float64))
    both = pl.concat([one.drop("combined", "judge"), two], how="diagonal")
    unused = {name: pl.lit(None, pl.String) for name in ("probe", "human")}
    return both.with_columns(check=pl.lit("design"), **unused)


def screen(given: pl.DataFrame, *, full: bool = False, width: int = 140) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(terminal_of(audited(given, draws=200), full=full))
    return out.getvalue()


def test_a_judge_that_lifts_one_label_is_shifted_and_that_label_stands_first() -> None:
    seen = JudgeEvidence(rows(2.0), draws=500)
    first = seen.to_dict()["primary"][0]
    assert seen.verdict == Outcome.DETECTED
    assert (first["label"], first["verdict"]) == ("female", Outcome.DETECTED)
    assert first["low"] < first["estimate"] < first["high"]
    assert first["low"] < first["bootstrap_low"] < first["bootstrap_high"] < first["high"]
    assert first["dz_low"] < first["dz"] < first["dz_high"]
    assert first["changed"] > 0.9
    assert len(seen.primary) == 10
    assert seen.omnibus.test is not None
    assert seen.omnibus.test.p_value < 0.001
    assert seen.omnibus.labels[0] == "none"


def test_too_few_bases_are_underpowered_and_say_how_many_would_do() -> None:
    few = rows().filter(pl.col("base").is_in(["base-0", "base-1", "base-2"]))
    seen = JudgeEvidence(few, draws=200)
    assert seen.verdict == Outcome.INCONCLUSIVE
    assert all((e.detectable or 0) > 0.25 for e in seen.primary)
    text = screen(few)
    assert text.count("INCONCLUSIVE.") == 2  # first and last
    assert "base scenarios would decide" in text


def test_a_judge_that_gives_everything_the_same_is_even_handed_and_said_to_be_no_judge() -> None:
    given = rows().with_columns(pl.when(pl.col("phase") == "single").then(8.0).alias(METRICS[0]))
    given = given.with_columns(*(pl.col(METRICS[0]).alias(m) for m in METRICS[1:]))
    found = audited(given)
    assert found.more["verdict"] == Outcome.INCONCLUSIVE  # 24 bases without an effect allow one
    assert found.more["omnibus"].keys() == {"labels", "undefined"}
    assert (found["identity"].value, found["scale"].state, found.state) == (0.0, "fail", "fail")
    assert "one_mark" in found.notes
    assert "no spread" in screen(given)


def test_a_number_that_is_the_same_in_every_base_has_no_interval() -> None:
    given = rows().with_columns(pl.lit(8.0).alias(m) for m in METRICS)
    seen = JudgeEvidence(given, draws=200)
    for effect in seen.primary:
        assert (effect.estimate, effect.low, effect.high) == (0.0, None, None)
        assert effect.undefined == NO_SPREAD
    slot = seen.to_dict()["pairs"]["all"]["first_slot"]  # which always takes the first
    assert (slot["estimate"], slot["low"], slot["undefined"]) == (1.0, None, NO_SPREAD)
    check = audited(given)["position"]
    assert (check.value, check.low, check.clusters) == (0.5, None, 24)


def test_a_first_slot_judge_has_no_label_effect_and_a_note() -> None:
    given = rows(preferred=1.0)
    seen = JudgeEvidence(given, draws=200)
    wins = [e for e in seen.exploratory if e.value == "win"]
    assert len(wins) == 13 + 10  # pairs of labels, and labels
    assert {e.estimate for e in wins} == {0.0}
    assert seen.pairs.all.both is not None
    assert (seen.pairs.all.both.first_slot_rate, seen.pairs.all.both.flip_rate) == (1.0, 1.0)
    found = audited(given)
    assert found["position"].state == "fail"
    assert "first_slot_favored:100% of decided verdicts (no spread)" in found.notes
    assert "✗ position bias: first slot wins 100%" in screen(given)


def test_a_slot_that_won_all_of_too_few_pairs_is_open_and_nowhere_said_to_be_favoured() -> None:
    few = rows(preferred=1.0).filter(pl.col("base").is_in(["base-0", "base-1", "base-2"]))
    assert audited(few)["position"].state == "inconclusive"
    text = screen(few)
    assert "favored" not in text
    assert "✗" not in text
    assert "100% to 100%" not in text
    assert "? position bias: first slot wins 100%" in text
    assert "3 bases are too few to certify anything; 6 are the least" in text


def test_missing_judgements_are_counted_first_and_score_nothing() -> None:
    lost = (pl.col("label") == "male") & (pl.col("text") == "1")
    given = rows().with_columns(
        reason=pl.when(lost).then(pl.lit("unreadable_reply")),
        **{m: pl.when(~lost).then(pl.col(m)) for m in METRICS},
    )
    seen = JudgeEvidence(given, draws=200)
    male = next(e for e in seen.primary if e.label == "male")
    assert (male.bases, male.cells) == (24, 24)
    assert (seen.coverage.single.n, seen.coverage.single.scored) == (24 * 26, 24 * 25)
    text = screen(given)
    assert text.index("24 unreadable_reply") < text.index("effect of each label")
    assert "Lowest coverage: male, 24 of 48." in text


def test_an_identity_that_was_never_scored_keeps_its_place_in_the_family() -> None:
    gone = pl.col("label") == "male"
    given = rows().with_columns(pl.when(~gone).then(pl.col(m)).alias(m) for m in METRICS)
    seen = JudgeEvidence(given, draws=200)
    male = next(e for e in seen.primary if e.label == "male")
    assert len(seen.primary) == 10
    assert (male.verdict, male.estimate) == (Outcome.INCONCLUSIVE, None)  # nothing shows a shift
    assert male.missing == 48
    assert "male: no base has a score in both arms" in screen(given)


def test_repeats_are_reported_only_where_there_are_any() -> None:
    once = rows()
    assert JudgeEvidence(once, draws=200).repeats == {"score": None, "preferred": None}
    twice = pl.concat([once, once.with_columns(repeat=pl.lit("1"))])
    found = JudgeEvidence(twice, draws=200).to_dict()["repeats"]
    assert (found["score"]["identical"], found["preferred"]["identical"]) == (1.0, 1.0)


def test_the_papers_own_figures_stand_under_their_own_names() -> None:
    found = JudgeEvidence(rows(), draws=200).to_dict()["as_the_paper_prints_it"]
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
    found = JudgeEvidence(rows(), draws=200).exploratory
    combined = {e.label for e in found if e.value == "combined" and e.against == "none"}
    assert combined == {"neutral", "placebo"}
    for metric in METRICS:
        assert {e.label for e in found if e.value == metric} == set(ARMS) - {"none"}


# -- the page, and checks of others ----------------------------------------------------------------


def test_the_page_says_the_answer_first_and_last_and_fits_80_columns() -> None:
    lines = screen(rows(2.0), full=True, width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)  # nothing is cut
    said = [place for place, line in enumerate(lines) if line.startswith("FAILS.")]
    assert len(said) == 2
    assert said[0] < next(n for n, line in enumerate(lines) if line.startswith("check "))
    assert "identity effect, scores" in lines[said[0]]


def test_the_short_page_leaves_out_the_papers_tables_and_says_so() -> None:
    assert "as in the paper" in screen(rows(), full=True)
    short = screen(rows())
    assert "as in the paper" not in short
    assert "more tables with --full" in short


def test_an_audit_has_one_row_per_check_and_is_plain_data() -> None:
    found = audited(rows())
    table = found.frame()
    assert table["name"].to_list() == [check.name for check in checks()]
    position = table.row(by_predicate=pl.col("name") == "position", named=True)
    assert (position["value"], position["low"], position["undefined"]) == (0.5, None, NO_SPREAD)
    written = orjson.loads(to_json(found))
    assert {"primary", "pairs", "coverage", "checks", "state"} <= written.keys()


class _Brevity(JudgeCheck):
    """The check of somebody else: it finds every judge too brief."""

    name, label = "brevity", "how brief it is"

    def allowed(self, margins: Margins) -> AuditBound:
        return AuditBound(at_most=0)

    def check(self, evidence: JudgeEvidence) -> Decided:
        return self.found("fail", "too brief", value=1.0, n=len(evidence.rows))


def test_a_check_of_somebody_else_stands_beside_ours_and_decides_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = rows(preferred=0.5)
    assert "fail" not in {check.state for check in audited(given).checks}
    monkeypatch.setattr(measures, "checks", lambda: (*checks(), _Brevity()))
    found = audited(given)
    assert found.state == "fail"
    assert [check.title for check in found.checks if check.state == "fail"] == ["how brief it is"]
    assert (found["brevity"].n, found["brevity"].required) == (len(given), True)
