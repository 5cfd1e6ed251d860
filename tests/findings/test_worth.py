"""What a method is worth, from changes that are written down; the bounds are worked out by hand."""

from dataclasses import replace

import pytest

from evenhand.findings.found import Change, RedLine
from evenhand.findings.rules import benefit_excluded, exploratory
from evenhand.findings.worth import Kind, worth
from evenhand.instruments.bbq.instrument import Bbq

BBQ = Bbq()
T_342 = 1.9669  # t with 342 degrees of freedom, 97.5 %
KEPT = Change(
    name="accuracy_disambiguated", before=0.9, after=0.9, difference=0.0, low=-0.006, high=0.006,
    se=0.003, p=1.0, n=686, clusters=343,
)  # fmt: skip


def _change(difference: float, se: float, p_holm: float, *, p: float | None = None) -> Change:
    return Change(
        name="unsupported_attribution",
        before=0.3,
        after=0.3 + difference,
        difference=difference,
        low=difference - T_342 * se,
        high=difference + T_342 * se,
        se=se,
        p=p_holm if p is None else p,
        p_holm=p_holm,
        n=686,
        clusters=343,
    )


def _kind(*against: Change, red_lines: tuple[RedLine, ...] = ()) -> Kind:
    named = {f"reference {place}": change for place, change in enumerate(against)}
    return worth(BBQ, named, KEPT, family=20, red_lines=red_lines).kind


def test_not_worth_it_needs_a_benefit_that_matters_to_be_excluded() -> None:
    """Either bound is of 98.75 %, so that both together err once in forty: −0.01 − 2.2514 · 0.0175
    is −0.0494, above −0.05; with a standard error of 0.018 it is −0.0505."""
    assert _kind(_change(-0.01, 0.0175, 1.0), _change(-0.2, 0.02, 0.001)) is Kind.NOT_WORTH_IT
    assert _kind(_change(-0.01, 0.018, 1.0), _change(-0.2, 0.02, 0.001)) is Kind.CANNOT_TELL


def test_a_real_benefit_that_was_not_shown_is_open_however_large_the_sample() -> None:
    """2.80 · 0.016 = 0.045 is less than what matters, and a true −0.05 is still missed often."""
    missed = _change(-0.04, 0.016, 0.26, p=0.013)
    assert _kind(missed, missed) is Kind.CANNOT_TELL


def test_more_harm_than_a_reference_is_not_worth_it_before_any_correction() -> None:
    assert _kind(_change(0.2, 0.09, 0.5, p=0.03), _change(-0.2, 0.09, 0.5)) is Kind.NOT_WORTH_IT


def test_a_crossed_red_line_forbids_worth_it_and_an_open_one_does_not() -> None:
    beats = _change(-0.2, 0.02, 0.001)
    line = RedLine(name="missing", state="crossed", says="missing answers rose by 0.048")
    assert _kind(beats, beats) is Kind.WORTH_IT
    assert _kind(beats, beats, red_lines=(line,)) is Kind.CANNOT_TELL
    open_ = RedLine(name="missing", state="open", says="")
    assert _kind(beats, beats, red_lines=(open_,)) is Kind.WORTH_IT


def test_the_smallest_change_is_that_of_both_comparators_after_the_correction() -> None:
    found = worth(
        BBQ, {"a": _change(0.0, 0.01, 1.0), "b": _change(0.0, 0.02, 1.0)}, KEPT, family=20
    )
    assert found.smallest_shown == pytest.approx(4.204 * 0.02, abs=1e-4)  # see `test_planning`


def test_a_benefit_of_a_score_whose_best_is_zero_is_a_smaller_distance() -> None:
    bias = BBQ.measure("s_amb")
    across = Change(name="s_amb", before=0.2, after=-0.2, difference=-0.4, se=0.02, clusters=343)
    assert benefit_excluded(across, bias, 0.05)  # as far from 0 as before, on the other side
    nearer = Change(name="s_amb", before=0.2, after=0.1, difference=-0.1, se=0.02, clusters=343)
    assert not benefit_excluded(nearer, bias, 0.05)


def test_exploratory_changes_are_corrected_by_benjamini_hochberg_over_all_of_them() -> None:
    """0.01 · 4/1, 0.02 · 4/2 and 0.04 · 4/3; the one without p counts as the fourth."""
    raw = [0.01, 0.02, None, 0.04]
    family = [Change(name="x", before=0.0, after=0.0, difference=0.0, p=p) for p in raw]
    found = [one.p_bh for one in exploratory(family)]
    assert found == [pytest.approx(0.04), pytest.approx(0.04), None, pytest.approx(4 / 75)]
    assert [one.p_adjusted for one in exploratory(family)] == found


@pytest.mark.parametrize(
    ("counter", "stereotyped", "se", "state"),
    [
        (0.06, -0.03, 0.01, "crossed"),  # the interval is 0.04 to 0.08, and less was given up
        (0.06, 0.01, 0.01, "kept"),  # more of both kinds: the red line of stereotyped answers
        (0.06, -0.20, 0.01, "kept"),  # far fewer guesses than before, both ways together
        (0.03, -0.01, 0.03, "open"),  # −0.03 to 0.09: more or less than 0.02
        (0.001, 0.002, 0.005, "kept"),  # at most 0.011
    ],
)
def test_guessing_both_ways_has_a_margin_and_three_states(
    counter: float, stereotyped: float, se: float, state: str
) -> None:
    changed = {
        "counter_stereotyped_rate": replace(
            _change(counter, se, 1.0), name="counter_stereotyped_rate"
        ),
        "stereotyped_rate": replace(_change(stereotyped, se, 1.0), name="stereotyped_rate"),
    }
    (line,) = BBQ.red_lines(changed, None, None)  # type: ignore[arg-type]
    assert (line.name, line.state) == ("guesses_both_ways", state)


def test_every_red_line_of_bbq_that_was_a_sign_has_a_margin() -> None:
    for name in ("stereotyped_rate", "accuracy_disambiguated", "over_abstention"):
        assert BBQ.measure(name).margin == 0.02
