"""What a method is worth, from changes that are written down; the bounds are worked out by hand."""

from dataclasses import replace

import pytest

from evenhand.findings.change_test import ChangeTest
from evenhand.findings.cost_effectiveness import CostVerdict, worth
from evenhand.findings.decision_rules import benefit_excluded, exploratory
from evenhand.findings.display import Remark
from evenhand.findings.estimates import Bounds, Change, GuardrailTest
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.statistics._shared import t_quantile
from tests.coded import coded, every

BBQ = Bbq()
KEPT = Change(
    name="accuracy_disambiguated", before=0.9, after=0.9, difference=0.0, effect=0.0,
    low=-0.006, high=0.006, limits=(-0.006, 0.006), se=0.003, p=1.0, n=686, clusters=343,
)  # fmt: skip


class _Student(ChangeTest):
    """Limits by t with 342 degrees of freedom, so that they can be worked out by hand."""

    def __init__(self, effect: float, se: float) -> None:
        super().__init__(())
        vars(self).update(effect=effect, se=se)

    def limits(self, level: float) -> tuple[float, float]:
        reach = t_quantile(342, 1 - level) * vars(self)["se"]
        return vars(self)["effect"] - reach, vars(self)["effect"] + reach

    def interval(self, level: float) -> tuple[float, float]:
        return self.limits(level / 2)


def _change(difference: float, se: float, p_holm: float, *, p: float | None = None) -> Change:
    test = _Student(difference, se)
    low, high = test.interval(0.05)
    return Change(
        name="unsupported_attribution",
        before=0.3,
        after=0.3 + difference,
        difference=difference,
        effect=difference,
        low=low,
        high=high,
        limits=test.limits(0.025),
        test=test,
        se=se,
        p=p_holm if p is None else p,
        p_holm=p_holm,
        n=686,
        clusters=343,
    )


def _kind(*against: Change, guardrails: tuple[GuardrailTest, ...] = ()) -> CostVerdict:
    named = {f"reference {place}": change for place, change in enumerate(against)}
    return worth(BBQ, named, KEPT, family=20, guardrails=guardrails).kind


def test_not_worth_it_needs_a_benefit_that_matters_to_be_excluded() -> None:
    """Either bound is of 98.75 %, so that both together err once in forty: −0.01 − 2.2514 · 0.0175
    is −0.0494, above −0.05; with a standard error of 0.018 it is −0.0505."""
    assert (
        _kind(_change(-0.01, 0.0175, 1.0), _change(-0.2, 0.02, 0.001)) is CostVerdict.NOT_WORTH_IT
    )
    assert _kind(_change(-0.01, 0.018, 1.0), _change(-0.2, 0.02, 0.001)) is CostVerdict.CANNOT_TELL


def test_a_real_benefit_that_was_not_shown_is_open_however_large_the_sample() -> None:
    """2.80 · 0.016 = 0.045 is less than what matters, and a true −0.05 is still missed often."""
    missed = _change(-0.04, 0.016, 0.26, p=0.013)
    assert _kind(missed, missed) is CostVerdict.CANNOT_TELL


def test_more_harm_than_a_reference_is_not_worth_it_before_any_correction() -> None:
    assert (
        _kind(_change(0.2, 0.09, 0.5, p=0.03), _change(-0.2, 0.09, 0.5)) is CostVerdict.NOT_WORTH_IT
    )


def test_a_crossed_guardrail_forbids_worth_it_and_an_open_one_does_not() -> None:
    beats = _change(-0.2, 0.02, 0.001)
    line = GuardrailTest(name="missing", state="violated", says="missing answers rose by 0.048")
    assert _kind(beats, beats) is CostVerdict.WORTH_IT
    assert _kind(beats, beats, guardrails=(line,)) is CostVerdict.CANNOT_TELL
    open_ = GuardrailTest(name="missing", state="inconclusive", says="")
    assert _kind(beats, beats, guardrails=(open_,)) is CostVerdict.WORTH_IT


def test_the_smallest_change_is_that_of_both_comparators_after_the_correction() -> None:
    found = worth(
        BBQ, {"a": _change(0.0, 0.01, 1.0), "b": _change(0.0, 0.02, 1.0)}, KEPT, family=20
    )
    assert found.smallest_shown == pytest.approx(4.204 * 0.02, abs=1e-4)  # see `test_planning`


def test_so_few_clusters_that_nothing_can_be_shown_are_said_to_be_so() -> None:
    """2^(1−9) is 0.0039, and 0.05/20 is 0.0025: not even the largest change would be shown."""
    few = replace(_change(-0.9, 0.01, 1.0), clusters=9)
    found = worth(BBQ, {"a": few, "b": few}, KEPT, family=20)
    assert found.smallest_shown is None
    too_few = Remark("worth.too_few", clusters=9, unit="templates", family=20)
    assert too_few in every(found.why)


def test_missing_answers_that_kept_a_method_from_winning_are_counted_and_named() -> None:
    missed = replace(
        _change(-0.2, 0.02, 0.4),
        bounds=Bounds(missing=41, low=-0.25, high=0.1),
    )
    said = worth(BBQ, {"a": missed, "b": missed}, KEPT, family=20).why
    found = coded(said, "worth.not_beaten")
    assert (found["missing"], found["harm"]) == (41, "unsupported answers, ambiguous")


def test_a_benefit_of_a_score_whose_best_is_zero_is_a_smaller_distance() -> None:
    bias = BBQ.measure("s_amb")
    # The limits are of the distance: one is as far from 0 as before, on the other side.
    across = replace(_change(0.0, 0.02, 1.0), name="s_amb", before=0.2, after=-0.2, difference=-0.4)
    assert benefit_excluded(across, bias, 0.05)
    nearer = replace(_change(-0.1, 0.02, 1.0), name="s_amb", before=0.2, after=0.1, difference=-0.1)
    assert not benefit_excluded(nearer, bias, 0.05)


def test_exploratory_changes_are_corrected_by_benjamini_hochberg_over_all_of_them() -> None:
    """0.01 · 4/1, 0.02 · 4/2 and 0.04 · 4/3; the one without p counts as the fourth."""
    raw = [0.01, 0.02, None, 0.04]
    family = [Change(name="x", before=0.0, after=0.0, difference=0.0, p=p) for p in raw]
    found = [one.p_bh for one in exploratory(family)]
    assert found == [pytest.approx(0.04), pytest.approx(0.04), None, pytest.approx(4 / 75)]
    assert [one.p_adjusted for one in exploratory(family)] == found


def test_every_guardrail_of_bbq_that_was_a_sign_has_a_margin() -> None:
    for name in ("stereotyped_rate", "counter_stereotyped_rate", "accuracy_disambiguated",
                 "over_abstention"):  # fmt: skip
        assert BBQ.measure(name).margin == 0.02
