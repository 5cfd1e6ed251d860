"""The stricter bound of the context-support classifier, and the numbers of its section."""

import json

import pytest

from evenhand.findings.comparison import change_between, compare
from evenhand.findings.decision_rules import adjusted
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.runs.store import RunReader
from tests.docs.test_code_blocks import ROOT
from tests.scripts import script

support_sample = script("support_sample")
RECORDED = ROOT / "recorded/qwen2.5-coder-1.5b"
SAMPLE = RECORDED / "bbq343"


def _section() -> str:
    page = (ROOT / "docs/results.md").read_text("utf-8").replace("−", "-")
    return page.split("\n## A stricter bound\n")[1].split("\n## ")[0]


def test_a_bound_that_replaces_no_answer_rules_out_what_so_many_templates_can() -> None:
    """Of G templates without a loss, a share of 1 - 0.025^(1/G) is the smallest ruled out."""
    for name, count in (("over_abstention", 1_364), ("accuracy_disambiguated", 1_360)):
        test, lost, items = support_sample.change_of_all(SAMPLE, 0.013, name)
        assert (lost, items) == (0, count)  # four gold labels are wrong
        low, high = test.limits(0.025)
        assert (-low, high) == pytest.approx((1 - 0.025 ** (1 / 343),) * 2, abs=1e-5)
    assert "a loss above 0.011 is ruled out" in _section()
    assert 1 - 0.025 ** (1 / 183) < 0.02 < 1 - 0.025 ** (1 / 182)  # templates that it takes
    assert "183 templates or more" in _section()


def test_the_section_holds_how_many_contexts_lie_at_or_below_each_bound() -> None:
    marked = json.loads((SAMPLE / "sample.json").read_text())["at_or_below"]
    for condition, named in (("disambig", "disambiguated"), ("ambig", "ambiguous")):
        for bound in support_sample.BOUNDS:
            row = f"{bound} | {named} answers replaced | | {marked[condition][str(bound)]:,} of"
            assert row in _section()


def test_the_section_holds_the_changes_of_the_live_answers_at_the_stricter_bound() -> None:
    bbq, after = Bbq(), RunReader(RECORDED / "bbq440/detect_first-0.013")
    for name in ("default", "fairness"):
        compared = compare(bbq, RunReader(RECORDED / "bbq440" / name), after)
        change = compared[support_sample.HARM]
        ends = f"({change.low_adjusted:+.2f} to {change.high_adjusted:+.2f})"
        row = f"| {change.before:.2f} | {change.after:.2f} | {change.difference:+.2f} {ends} |"
        assert row in _section()
        if name == "default":
            flips = [compared.flips[f"accuracy_{which}"] for which in
                     ("ambiguous", "disambiguated")]  # fmt: skip
            assert [(flip.fixed, flip.broken) for flip in flips] == [(140, 0), (0, 0)]


def test_the_section_holds_the_change_of_the_live_answers_to_the_new_sample() -> None:
    default, repaired = (
        RunReader(SAMPLE / "ambiguous" / arm) for arm in ("default", "detect_first-0.013")
    )
    compared = compare(Bbq(), default, repaired)
    change = change_between(Bbq(), default, repaired, support_sample.HARM)
    assert (change.n, change.clusters) == (110, 110)  # a question of each template
    ends = f"({change.low:+.2f} to {change.high:+.2f})"
    row = f"| {change.before:.2f} | {change.after:.2f} | {change.difference:+.2f} {ends} |"
    assert row in _section()
    flips = compared.flips["accuracy_ambiguous"]
    assert (flips.fixed, flips.broken) == (72, 0)


def test_the_section_holds_the_two_claims_that_were_registered_with_their_adjusted_p() -> None:
    remedy = RunReader(SAMPLE / "ambiguous/detect_first-0.013")
    references = [RunReader(SAMPLE / "ambiguous" / arm) for arm in ("fairness", "self_consistency")]
    family = adjusted(
        [change_between(Bbq(), run, remedy, support_sample.HARM) for run in references]
    )
    for change, count, p in zip(family, (110, 46), ("< 0.001", "0.027"), strict=True):
        ends = f"({change.low_adjusted:+.2f} to {change.high_adjusted:+.2f})"
        row = f"| {change.before:.2f} | {change.after:.2f} | {change.difference:+.2f} {ends} |"
        assert row in _section()
        assert change.n == count
        assert change.p_adjusted is not None
        assert change.p_adjusted <= 0.05
        assert f"Holm p {p}" in _section()
        assert p == ("< 0.001" if change.p_adjusted < 0.001 else f"{change.p_adjusted:.3f}")


def test_the_section_holds_the_comparison_with_a_vote_of_one_call() -> None:
    vote = RunReader(RECORDED / "frontier/self_consistency-1")
    after = RunReader(RECORDED / "repaired-0.013")
    change = change_between(Bbq(), vote, after, support_sample.HARM)
    assert f"{change.after:.2f} against {change.before:.2f}" in _section()
    assert f"{change.difference:+.2f} ({change.low:+.2f} to {change.high:+.2f})" in _section()
