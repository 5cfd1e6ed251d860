"""One estimate and one margin have one outcome, whoever states it: comparison, gate, frontier,
report, certificate, a run that may stop early, or a watch."""

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.conclusions import Outcome, check_result
from evenhand.findings.audit import check_of, outcome_of, overall
from evenhand.findings.certificate import CertifiedCheck
from evenhand.findings.cost_effectiveness import CostVerdict, worth
from evenhand.findings.decision_rules import adjusted, direction, guardrail
from evenhand.findings.estimates import Change, Estimate
from evenhand.findings.gate import GateCheck, _CheckEstimate
from evenhand.findings.measures import AuditBound, Measure
from evenhand.findings.paired_totals import PairTotals
from evenhand.findings.scoring import SCORED, ScoringSpec
from evenhand.findings.summed_statistics import Share
from evenhand.statistics.change_detection import watched
from evenhand.statistics.sequences import AnytimeInterval

OF_LINE = {"violated": "fail", "inconclusive": "inconclusive", "non_inferior": "pass"}
NOT_WORSE = {"improved", "inconclusive"}
ends = st.floats(-1, 1).map(lambda value: round(value, 3) + 1e-5)  # never at a margin


class Two(ScoringSpec):
    name, title, clusters, columns = "two", "two numbers", "templates", ()
    harm, utility, references = "harm", "right", ("default", "fairness")

    def __init__(self, margin: float) -> None:
        harm = Measure(name="harm", label="harm", statistic=Share(pl.col("harm")), better="lower",
                       role="primary", within=(0, 1))  # fmt: skip
        right = Measure(name="right", label="right", statistic=Share(pl.col("right")),
                        better="higher", margin=margin, within=(0, 1))  # fmt: skip
        self.measures = (harm, right)  # type: ignore[misc]


def _run(right: np.ndarray, *, harm: bool) -> pl.DataFrame:
    index = np.arange(right.size)
    return pl.DataFrame({"item_id": index.astype(str), "cluster": (index // 4).astype(str),
                         "right": right, "harm": [harm] * right.size,
                         "state": [SCORED] * right.size})  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6), clusters=st.integers(8, 120),
    moved=st.sampled_from([0.0, 0.02, 0.1, 0.3, 0.8]), margin=st.sampled_from([0.02, 0.1, 0.4]),
)  # fmt: skip
def test_comparison_gate_and_frontier_agree_on_a_change(
    seed: int, clusters: int, moved: float, margin: float
) -> None:
    rng, rows = np.random.default_rng(seed), 4 * clusters
    before = rng.random(rows) < 0.7
    after = np.where(rng.random(rows) < moved, rng.random(rows) < 0.3, before)
    instrument = Two(margin)
    frames = iter([_run(before, harm=True)]), iter([_run(after, harm=False)])
    pairs = PairTotals.of(instrument, *frames)
    measure = instrument.measure("right")
    (change,) = adjusted([pairs.change(measure)])
    (harm,) = adjusted([pairs.change(instrument.measure("harm"))])
    line = guardrail(change, measure)
    check = GateCheck(name="c", instrument=instrument, measure=measure)
    verdict, _ = _CheckEstimate(check=check, change=change).verdict(change)
    assert verdict == OF_LINE[line.state]
    assert (direction(change, measure) in NOT_WORSE) or line.state != "inconclusive"
    _worth_follows(instrument, harm, change, line.state)


def _worth_follows(instrument: Two, harm: Change, utility: Change, state: str) -> None:
    kind = worth(instrument, {"the prompt": harm}, utility, family=1).kind
    beats = direction(harm, instrument.measure("harm")) == "improved"
    expected = {"violated": CostVerdict.NOT_WORTH_IT, "inconclusive": CostVerdict.CANNOT_TELL,
                "non_inferior": CostVerdict.WORTH_IT}  # fmt: skip
    if beats or state == "violated":
        assert kind is expected[state]


@given(low=ends, high=ends, margin=st.sampled_from([0.05, 0.2, 0.5]))
def test_report_certificate_and_a_run_that_stops_agree_on_an_interval(
    low: float, high: float, margin: float
) -> None:
    low, high = sorted((low, high))
    value = (low + high) / 2
    estimate = Estimate(name="m", value=value, low=low, high=high, n=9, clusters=9)
    bound = AuditBound(at_least=-margin, at_most=margin)
    measure = Measure(name="m", label="m", statistic=Share(pl.col("m")), allowed=bound)
    outcome = outcome_of(estimate, bound)
    at_any_time = AnytimeInterval(estimate=value, low=low, high=high, confidence=0.95, clusters=9)
    assert at_any_time.outcome(margin) is outcome
    check = check_of(measure, estimate)
    assert check.state == check_result(outcome)
    assert overall([check]) == overall([CertifiedCheck.of(check)]) == check.state
    inside, outside = -margin < low and high < margin, low > margin or high < -margin
    assert (outcome is Outcome.RULED_OUT, outcome is Outcome.DETECTED) == (inside, outside)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), shift=st.sampled_from([0.0, 0.5, 3.0]))
def test_a_watch_raises_an_alarm_exactly_where_its_evidence_reaches_the_threshold(
    seed: int, shift: float
) -> None:
    looks = np.random.default_rng(seed).normal(size=(8, 12))
    looks[5:] += shift
    trace = watched(looks, 50.0, draws=199)
    reached = [look for look, evidence in enumerate(trace.evidence) if evidence >= 50.0]
    assert [alarm.look for alarm in trace.alarms] == reached
    for threshold in trace.evidence:  # it is reached at the first look with as much evidence
        if threshold > 1:
            first = next(n for n, evidence in enumerate(trace.evidence) if evidence >= threshold)
            assert watched(looks, threshold, draws=199).alarms[0].look == first
