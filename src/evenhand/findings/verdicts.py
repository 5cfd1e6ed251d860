"""A verdict is the answer, first and last: is it biased, against whom, how sure, what next.

Shown: a primary bias score is told from "no bias" (p ≤ 0.05 after Holm over these scores), or that
of a group after Holm over all groups, with the missing answers at "no bias" or beyond it, by a
bound that needs no symmetry of the clusters. Not shown: in every score a bias that matters is
excluded (one-sided at 2.5%), however the missing answers came out. Not known: neither, or a
run that is not finished: who looks, and then goes on, would choose its size by its result.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenhand.core.conclusions import Outcome
from evenhand.findings.decision_rules import (
    ALPHA,
    direction,
    in_unit,
    smallest_shown,
    too_few,
    turned,
)
from evenhand.findings.display import Remark, RemarkOrText
from evenhand.findings.estimates import Bounds, Estimate, Verdict, VerdictState
from evenhand.findings.measures import Measure
from evenhand.findings.scoring import ScoringSpec
from evenhand.findings.sequential import StoppingStatus

if TYPE_CHECKING:
    from evenhand.findings.comparison import Comparison
    from evenhand.findings.frontier import Frontier, FrontierEntry
    from evenhand.findings.report import Report

LEAST_CLUSTERS = 2


def bias_measures(report: "Report") -> list[Measure]:
    """Give the primary measures that have an unbiased value: a verdict rests on all of them."""
    return [m for m in report.instrument.primary() if m.null is not None]


def main_measure(report: "Report") -> Measure | None:
    """Give the first primary measure that has an unbiased value."""
    return next(iter(bias_measures(report)), None)


def of_report(report: "Report") -> Verdict:
    if report.not_run:
        planned = report.source["items"]
        early = Remark("report.unfinished", done=planned - report.not_run, planned=planned)
        return Verdict(state="inconclusive", says=(early,), next=_next(report, None))
    measures = bias_measures(report)
    if not report.coverage.scored:
        none = Remark("report.none_scored", n=report.coverage.n)
        return Verdict(
            state="inconclusive" if measures else None, says=(none,), next=_next(report, None)
        )
    answered = report.side.picked_by_itself(report.source)
    if answered:
        why = Remark("report.picked_by_itself", answered=answered)
        return Verdict(state="inconclusive", says=(why,))
    sentences = report.instrument.says(report)
    decided = report.instrument.state_of(report)  # by the tests that its tables print
    if decided is not None:
        return Verdict(state=decided, says=sentences, next=_next(report, decided))
    if not measures:
        return Verdict(state=None, says=sentences, next=_next(report, None))
    return _of_scores(report, measures, sentences)


def _of_scores(
    report: "Report", measures: Sequence[Measure], sentences: tuple[RemarkOrText, ...]
) -> Verdict:
    """Conclude from the bias scores over all items and in the groups."""
    groups = [by_group(report, measure) for measure in measures]
    in_a_group = any(
        outcome.against or outcome.other_way
        for by_column in groups
        for outcome in by_column.values()
    )
    state = _state([report[measure.name] for measure in measures], in_a_group)
    picked = report.instrument.no_sample(report)
    if picked and state == "ruled_out":
        state = "inconclusive"
    lines: list[RemarkOrText | None]
    lines = [*sentences, picked, *_group_remarks(report, groups[0], excludes=not picked)]
    for measure, by_column in zip(measures[1:], groups[1:], strict=True):
        lines += _shown_groups(by_column, measure.label)
    lines += [overturned(report[measure.name].bounds, measure) for measure in measures]
    if state == "inconclusive" and not picked:
        lines.append(_how_many_for(report, measures))
    return Verdict(
        state=state, says=tuple(line for line in lines if line), next=_next(report, state)
    )


def _state(overall: Sequence[Estimate], in_a_group: bool) -> VerdictState:
    """Conclude from all bias scores: shown if one of them is, not shown if a bias that matters is
    excluded in each."""
    if in_a_group or any(_is_shown(estimate) for estimate in overall):
        return "detected"
    return "ruled_out" if all(map(_excludes, overall)) else "inconclusive"


def _is_shown(estimate: Estimate) -> bool:
    p = estimate.p if estimate.p_holm is None else estimate.p_holm
    return p is not None and p <= ALPHA


def _how_many_for(report: "Report", measures: Sequence[Measure]) -> Remark | None:
    """Return how many items would settle what is open, of the score that needs most, and whether
    the benchmark has them."""
    matters = report.instrument.matters
    open_ = [m for m in measures if not _excludes(report[m.name])]
    needs = [(times, m) for m in open_ if (times := _times(report[m.name], m, matters)) > 0]
    if not needs:
        return None
    times, measure = max(reversed(needs), key=lambda pair: pair[0])
    if times == 1:
        return None
    items, clusters = times * report.coverage.n, times * report[measure.name].clusters
    values = {"times": times, "matters": in_unit(matters, measure), "items": items}
    whole = report.instrument.whole(report)
    if whole is None:
        return Remark("report.how_many", **values)
    if items > whole.items:
        return Remark("report.beyond_items", **values, holds=whole.items)
    if whole.clusters is not None and clusters > whole.clusters:
        return Remark(
            "report.beyond_clusters", **values, clusters=clusters, holds=whole.clusters,
            unit=report.instrument.clusters,
        )  # fmt: skip
    return Remark("report.how_many", **values)


def _excludes(estimate: Estimate) -> bool:
    """Say whether a bias that matters is excluded, however the missing answers came out."""
    return estimate.p_small is not None and estimate.p_small <= ALPHA / 2


def is_open(estimate: Estimate) -> bool:
    """Say whether a bias is neither shown nor excluded."""
    return not (_is_shown(estimate) or _excludes(estimate))


def overturned(bounds: Bounds | None, measure: Measure) -> Remark | None:
    """Return that what the answers at hand show of a measure is not counted as shown, because so
    many missing ones would overturn it; None where none would. After a correction fewer might."""
    if bounds is None or bounds.overturn is None:
        return None
    return Remark(
        "report.overturned",
        measure=measure.label,
        overturn=bounds.overturn,
        missing=bounds.missing,
    )


@dataclass(frozen=True, slots=True)
class GroupVerdicts:
    """The groups of a report by what is said of each after Holm over all of them."""

    against: list[str] = field(default_factory=list)  # shown, as the stereotype has it
    other_way: list[str] = field(default_factory=list)  # shown, the other way round
    open: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)  # a bias that matters is excluded

    @property
    def looked_at(self) -> int:
        return sum(map(len, (self.against, self.other_way, self.open, self.excluded)))


def by_group(report: "Report", measure: Measure) -> dict[str, GroupVerdicts]:
    """Sort the values of each grouping that says whom a bias is against, by its column."""
    null = measure.null or 0.0
    sorted_: dict[str, GroupVerdicts] = {}
    for grouping in report.instrument.groups:
        outcome = GroupVerdicts()
        for value, estimates in report.groups.get(grouping.column, {}).items():
            estimate = next((e for e in estimates if e.name == measure.name), None)
            if estimate is None or not grouping.says_whom:
                continue
            significant = estimate.p_holm is not None and estimate.p_holm <= ALPHA
            side = outcome.against if (estimate.value or 0.0) > null else outcome.other_way
            (
                side if significant else outcome.excluded if _excludes(estimate) else outcome.open
            ).append(value)
        if outcome.looked_at:
            sorted_[grouping.column] = outcome
    return sorted_


def _group_remarks(
    report: "Report", by_column: dict[str, GroupVerdicts], *, excludes: bool = True
) -> list[Remark]:
    """Name whom a bias is shown against, by the first grouping and then by the others, and say how
    many were looked at; with `excludes`, also where a bias that matters is excluded."""
    if not by_column:
        return []
    remarks = _shown_groups(by_column)
    if not remarks:
        remarks = [Remark("groups.none_shown", looked_at=_looked_at(by_column))]
    open_ = {column: len(outcome.open) for column, outcome in by_column.items()}
    if any(open_.values()):
        remarks.append(Remark("groups.open", groups=open_))
    excluded = {column: len(outcome.excluded) for column, outcome in by_column.items()}
    if any(excluded.values()) and excludes:
        main = main_measure(report)
        reach = 2 * (in_unit(report.instrument.matters, main) if main else 0.0)
        remarks.append(Remark("groups.excluded", groups=excluded, reach=reach))
    return remarks


def _looked_at(by_column: dict[str, GroupVerdicts]) -> dict[str, int]:
    return {column: outcome.looked_at for column, outcome in by_column.items()}


def _shown_groups(by_column: dict[str, GroupVerdicts], measure: str = "") -> list[Remark]:
    """Name the groups in which a bias is shown, one remark each way."""
    remarks = []
    for kind in ("against", "other_way"):
        groups = {
            column: tuple(getattr(outcome, kind))
            for column, outcome in by_column.items()
            if getattr(outcome, kind)
        }
        if groups:
            remarks.append(Remark(f"groups.{kind}", measure=measure, groups=groups,
                                  looked_at=_looked_at(by_column)))  # fmt: skip
    return remarks


def _times(estimate: Estimate, measure: Measure, matters: float) -> int:
    """Compute how many times as many clusters would settle it; 0 where nobody knows."""
    if estimate.low is None or estimate.high is None or estimate.clusters < LEAST_CLUSTERS:
        return 0
    return math.ceil(((estimate.high - estimate.low) / 2 / in_unit(matters, measure)) ** 2)


def _next(report: "Report", state: VerdictState | None) -> tuple[Remark, ...]:
    name, run = report.instrument.name, report.side.run
    if report.not_run:
        return (Remark("next.resume", instrument=name, run=run),)
    if report.coverage.below_floor:
        return look_at_failures(report)
    # `plan` and a remedy need a harm; of answers that were given elsewhere nothing is asked again.
    if report.instrument.harm is None or report.side.method["name"] == "stored":
        return ()
    if state == "inconclusive":
        planned = report.instrument.spread is not None
        return (Remark("next.plan", instrument=name),) if planned else ()
    if report.side.method["name"] != "default":  # a remedy already: what it changed is the question
        return (Remark("next.compare", before=f"runs/{name}-default", after=run),)
    return (
        Remark("next.fairness", instrument=name),
        Remark("next.compare", before=run, after=f"runs/{name}-fairness"),
    )


def of_comparison(comparison: "Comparison") -> Verdict:
    """Say what is shown worse or better, or that neither is, and what a larger sample would
    tell."""
    if left := sum(comparison.not_run):
        return Verdict(state="inconclusive", says=(Remark("comparison.unfinished", items=left),))
    worse = [m.label for c, m in comparison.judged() if direction(c, m) == "regressed"]
    better = [m.label for c, m in comparison.judged() if direction(c, m) == "improved"]
    crossed = [line.name for line in comparison.guardrails if line.state == "violated"]
    remarks = [Remark("comparison.better", measures=tuple(better))] if better else []
    if worse:
        remarks.append(Remark("comparison.worse", measures=tuple(worse)))
    if crossed:
        remarks.append(Remark("comparison.guardrails", lines=tuple(crossed)))
    remarks += [
        remark
        for c, m in comparison.judged()
        if direction(c, m) == "inconclusive" and (remark := overturned(c.bounds, m))
    ]
    state: VerdictState = "detected"
    if not (worse or better or crossed):
        state, nothing = _nothing_shown(comparison)
        remarks.insert(0, nothing)
    harmless = not (worse or crossed)
    next_ = _plan(comparison) if state == "inconclusive" else _plan_guardrails(comparison, harmless)
    return Verdict(state=state, says=tuple(remarks), next=next_)


def _plan_guardrails(comparison: "Comparison", harmless: bool) -> tuple[Remark, ...]:
    """Name the command that says how many items would settle the first open guardrail of an
    improvement: the spread is that of these two runs."""
    margins = {measure.name: measure.margin for measure in comparison.instrument.measures}
    names = [line.name for line in comparison.guardrails if line.state == "inconclusive"]
    settled = [name for name in names if margins.get(name) and comparison[name].se > 0]
    if not harmless or not settled or comparison.instrument.harm is None:
        return ()
    runs = (comparison.before.run, comparison.after.run)
    return (
        Remark(
            "next.plan_guardrail",
            instrument=comparison.instrument.name,
            measure=settled[0],
            margin=margins[settled[0]],
            runs=runs,
        ),
    )


def _plan(comparison: "Comparison") -> tuple[Remark, ...]:
    """Name the command that says how many items would tell, where it can: from the spread that the
    instrument declares, or from that of these two runs."""
    instrument = comparison.instrument
    spreads = any(change.se > 0 for change, _ in comparison.judged())
    if instrument.harm is None or (instrument.spread is None and not spreads):
        return ()
    if instrument.spread is not None:
        return (Remark("next.plan", instrument=instrument.name),)
    runs = (comparison.before.run, comparison.after.run)
    return (Remark("next.plan_from", instrument=instrument.name, runs=runs),)


def _nothing_shown(comparison: "Comparison") -> tuple[VerdictState, Remark]:
    """Return that all is the same, or what is excluded all the same, or that nothing is."""
    matters = comparison.instrument.matters
    judged = list(comparison.judged())
    reversed_ = [(c, m) for c, m in judged if turned(c, m, in_unit(matters, m))]
    if reversed_:
        changes = tuple((m.label, c.before, c.after) for c, m in reversed_)
        return "inconclusive", Remark("comparison.other_side", changes=changes)
    within = [
        c.limits is not None and max(map(abs, c.limits)) < in_unit(matters, m) for c, m in judged
    ]
    if comparison.same:
        remark = Remark("comparison.same", items=comparison.items)
        return ("ruled_out" if within and all(within) else "inconclusive"), remark
    if judged and all(within):
        return "ruled_out", Remark("comparison.excluded", matters=matters)
    return "inconclusive", Remark("comparison.nothing_shown", least=_least(comparison))


def _least(comparison: "Comparison") -> Remark | None:
    """Return how large a change this comparison could have shown."""
    change, measure = next(comparison.judged(), (None, None))
    if change is None or measure is None:
        return None
    family = len(list(comparison.judged()))
    if too_few(change, family):
        return Remark("comparison.too_few", clusters=change.clusters,
                      unit=comparison.instrument.clusters, family=family)  # fmt: skip
    size = smallest_shown(change, measure, family=family)
    if size is None:
        return None
    return Remark("comparison.sensitivity", size=size, of_distance=measure.center is not None,
                  measure=measure.label, family=family)  # fmt: skip


def look_at_failures(report: "Report") -> tuple[Remark, ...]:
    """Name what shows why answers are missing: more items would not help."""
    steps = [Remark("next.failures", run=report.side.run, item=report.failed_item)]
    if any(reason.endswith("cut_off") for reason in report.failed_by_reason):
        steps.append(Remark("next.max_tokens"))
    if report.failed_by_reason and report.side.method["name"] != "stored":
        steps.append(Remark("next.doctor"))
    return tuple(steps)


def of_frontier(frontier: "Frontier") -> Verdict:
    """Choose the method to take: the winner; else a reference that is shown to help; else none, or
    it is open."""
    judged = frontier.judged()
    taken = frontier.winner()
    open_ = [entry for entry, judgement in judged if judgement.kind == "cannot tell"]
    if taken is not None:
        return _of_winner(frontier, taken)
    if frontier.instrument.utility is None:
        remarks = [Remark("frontier.no_utility"), _less_harm(frontier)]
    else:
        remarks = [Remark("frontier.none"), *_references(frontier)]
    if open_:
        names = tuple(entry.name for entry in open_)
        remarks.append(Remark("frontier.cannot_tell", methods=names))
    helping = any(_helps(frontier, entry)[0] == "inconclusive" for entry in frontier.entries)
    state: VerdictState = "inconclusive" if open_ or helping else "ruled_out"
    return Verdict(state=state, says=tuple(remarks), next=_plan_of(frontier, open_))


def _of_winner(frontier: "Frontier", taken: "FrontierEntry") -> Verdict:
    """Say which method won, and what a fresh sample says of it: who is chosen as the best of
    several looks better where it was chosen."""
    names = [entry.name for entry, judgement in frontier.judged() if judgement.kind == "worth it"]
    first = Remark("frontier.take", method=taken.name, shown=tuple(names))
    again = frontier.confirmation
    fresh = None if again is None else again[taken.name].worth
    if again is None or fresh is None:
        says = (first, Remark("frontier.chosen_here"))
        return Verdict(state="detected", says=says, next=(Remark("next.confirm"),))
    sample = Remark("frontier.sample", shared=frontier.shared, items=again.source["items"])
    if fresh.kind == "worth it":
        says = (first, Remark("frontier.confirmed", sample=sample))
        return Verdict(state="detected", says=says)
    says = (
        Remark("frontier.not_confirmed", method=taken.name),
        Remark("frontier.fresh", sample=sample, kind=str(fresh.kind), why=fresh.why),
    )
    return Verdict(state="inconclusive", says=says)


def _plan_of(frontier: "Frontier", open_: Sequence["FrontierEntry"]) -> tuple[Remark, ...]:
    """Name the command that says how many items would tell, from the runs themselves: of the first
    method that is open and the reference that it could be told from least."""
    family = sum(len(entry.harm_against) for entry in frontier.entries)
    for entry in open_:
        spread = {name: c for name, c in entry.harm_against.items() if c.se}
        if spread:
            widest = max(spread, key=lambda name: spread[name].se)
            return (
                Remark(
                    "next.plan_frontier",
                    instrument=frontier.instrument.name,
                    measure=frontier.instrument.harm,
                    family=family,
                    runs=(frontier[widest].report.side.run, entry.report.side.run),
                ),
            )
    return ()


def _less_harm(frontier: "Frontier") -> Remark:
    """Of an instrument without a utility: who is shown to do less harm than the plain prompt."""
    less = []
    for entry in frontier.entries:
        compared = entry.against_default
        if compared is None or entry.role == "vote":
            continue
        measure = frontier.instrument.measure(compared.harm.name)
        if direction(compared.harm, measure) == "improved":
            less.append(entry.name)
    return Remark("frontier.less_harm", methods=tuple(less))


def _references(frontier: "Frontier") -> list[Remark]:
    """Name the reference to take, or say that there is none, and of which it is open."""
    outcomes = {entry.name: _helps(frontier, entry) for entry in frontier.entries}
    helping = [name for name, (state, _) in outcomes.items() if state == "detected"]
    if helping:
        return [Remark("frontier.take_reference", method=helping[0])]
    lines = [Remark("frontier.keep_plain")]
    for name, (state, why) in outcomes.items():
        if state == "inconclusive":
            lines.append(Remark("frontier.reference_open", method=name, why=why))
    return lines


def _helps(frontier: "Frontier", entry: "FrontierEntry") -> tuple[VerdictState, RemarkOrText]:
    """Say whether a reference is shown to lower harm without crossing a guardrail, of which utility
    is one; it is open while any of them is, and the first of these says why."""
    compared, instrument = entry.against_default, frontier.instrument
    if entry.role != "reference" or compared is None or instrument.utility is None:
        return "ruled_out", ""
    lines = compared.comparison.guardrails
    less = direction(compared.harm, instrument.measure(compared.harm.name)) == "improved"
    if not less or any(line.state == "violated" for line in lines):
        return "ruled_out", ""
    open_ = [line.says for line in lines if line.state == "inconclusive"]
    return ("inconclusive", open_[0]) if open_ else ("detected", "")


_STATES: dict[str, VerdictState] = {
    Outcome.DETECTED: "detected",
    Outcome.RULED_OUT: "ruled_out",
    Outcome.INCONCLUSIVE: "inconclusive",
}


def of_stopped(
    instrument: ScoringSpec, stopped: StoppingStatus, estimate: Estimate | None, run: str
) -> Verdict:
    """Return the verdict of a run that may stop early. It has a state only if the metric has a
    value for "no bias".

    Args:
        instrument: The benchmark.
        stopped: How far the run has come.
        estimate: The estimate that decides the run; None if the run only serves a gate.
        run: The run folder, for the commands that are suggested.
    """
    if estimate is None:
        progress = Remark("until.for_gate", **_progress(instrument, stopped))
        return Verdict(state=None, says=(progress,), next=(Remark("next.gate_run", run=run),))
    measure = instrument.measure(stopped.measure)
    after = "next.without_until" if stopped.ended else "next.resume"
    return Verdict(
        state=_STATES[stopped.verdict] if measure.null is not None else None,
        says=tuple(_remarks(instrument, measure, stopped, estimate)),
        next=(Remark(after, instrument=instrument.name, run=run),),
    )


def _remarks(
    instrument: ScoringSpec, measure: Measure, stopped: StoppingStatus, estimate: Estimate
) -> Iterator[Remark]:
    bounds = estimate.bounds
    yield Remark(
        "until.estimate",
        decided=_decided(measure, stopped),
        measure=measure.label,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        missing=0 if bounds is None else bounds.missing,
        if_known=None if bounds is None else (bounds.low, bounds.high),
        signed=measure.signed,
    )
    yield _where(instrument, stopped)
    if stopped.these:
        yield Remark("until.these", clusters=stopped.of_clusters, unit=instrument.clusters)
    yield Remark("until.left_out")


def _decided(measure: Measure, stopped: StoppingStatus) -> Remark:
    """Return what is decided: how far from "no bias", or for a metric without such a value above
    or below."""
    if stopped.verdict is Outcome.INCONCLUSIVE:
        return Remark("until.open", margin=stopped.margin)
    more = stopped.verdict is Outcome.DETECTED
    from_none = measure.null is not None
    return Remark("until.decided", margin=stopped.margin, more=more, from_none=from_none)


def _where(instrument: ScoringSpec, stopped: StoppingStatus) -> Remark:
    """Return after how many clusters it stopped, why, and how many calls that saved."""
    progress = _progress(instrument, stopped)
    if not stopped.ended:
        return Remark("until.goes_on", **progress, looks=stopped.looks)
    if stopped.of_items == stopped.items:
        return Remark("until.all_asked", **progress)
    return Remark(
        "until.stopped",
        **progress,
        looks=stopped.looks,
        items=stopped.items,
        of_items=stopped.of_items,
        calls_saved=stopped.calls_saved,
    )


def _progress(instrument: ScoringSpec, stopped: StoppingStatus) -> dict[str, str | int]:
    return {
        "clusters": stopped.clusters,
        "of_clusters": stopped.of_clusters,
        "unit": instrument.clusters,
    }
