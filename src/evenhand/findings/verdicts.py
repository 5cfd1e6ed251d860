"""A verdict is the answer in words, first and last: is it biased, against whom, how sure, what
next.

Shown: a primary bias score is told from "no bias" (p ≤ 0.05 after Holm over these scores), or that
of a group after Holm over all groups, with the missing answers at "no bias" or beyond it, by a
bound that needs no symmetry of the clusters. Not shown: in every score a bias that matters is
excluded (one-sided at 2.5 %), however the missing answers came out. Not known: neither, or a
run that is not finished: who looks, and then goes on, would choose its size by its result.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from evenhand.findings.decision_rules import (
    ALPHA,
    direction,
    in_unit,
    smallest_shown,
    too_few,
    turned,
)
from evenhand.findings.estimates import Bounds, Estimate, Verdict
from evenhand.findings.failures import look_at_failures
from evenhand.findings.measures import Measure

if TYPE_CHECKING:
    from evenhand.findings.comparison import Comparison
    from evenhand.findings.report import Report

LEAST_CLUSTERS = 2
_NOT_WHOLE = "no conclusion before all are run."
_NO_SAMPLE = "They say nothing about other items; another system may be measured on them."
State = Literal["shown", "not shown", "not known"]


def bias_measures(report: "Report") -> list[Measure]:
    """Give the primary measures that have an unbiased value: a verdict rests on all of them."""
    return [m for m in report.instrument.primary() if m.null is not None]


def main_measure(report: "Report") -> Measure | None:
    """Give the first primary measure that has an unbiased value."""
    return next(iter(bias_measures(report)), None)


def of_report(report: "Report") -> Verdict:
    if report.not_run:
        planned = report.source["items"]
        early = f"{planned - report.not_run:,} of {planned:,} items: {_NOT_WHOLE}"
        return Verdict(state="not known", says=(early,), next=_next(report, None))
    measures = bias_measures(report)
    if not report.coverage.scored:
        none = f"None of {report.coverage.n:,} answers could be scored."
        return Verdict(
            state="not known" if measures else None, says=(none,), next=_next(report, None)
        )
    answered = report.side.picked_by_itself(report.source)
    if answered:
        why = f"These items were picked because this system answered them {answered}. {_NO_SAMPLE}"
        return Verdict(state="not known", says=(why,))
    sentences = report.instrument.says(report)
    decided = report.instrument.state_of(report)  # by the tests that its tables print
    if decided is not None:
        return Verdict(state=decided, says=sentences, next=_next(report, decided))
    if not measures:
        return Verdict(state=None, says=sentences, next=_next(report, None))
    return _of_scores(report, measures, sentences)


def _of_scores(
    report: "Report", measures: Sequence[Measure], sentences: tuple[str, ...]
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
    if picked and state == "not shown":
        state = "not known"
    lines = [*sentences, picked, *_groups_in_words(report, groups[0], excludes=not picked)]
    for measure, by_column in zip(measures[1:], groups[1:], strict=True):
        lines += [f"{measure.label}, {line}" for line in _shown_groups(by_column)]
    lines += [overturned(report[measure.name].bounds, measure) for measure in measures]
    if state == "not known" and not picked:
        lines.append(_how_many_for(report, measures))
    return Verdict(
        state=state, says=tuple(line for line in lines if line), next=_next(report, state)
    )


def _state(overall: Sequence[Estimate], in_a_group: bool) -> State:
    """Conclude from all bias scores: shown if one of them is, not shown if a bias that matters is
    excluded in each."""
    if in_a_group or any(_is_shown(estimate) for estimate in overall):
        return "shown"
    return "not shown" if all(map(_excludes, overall)) else "not known"


def _is_shown(estimate: Estimate) -> bool:
    p = estimate.p if estimate.p_holm is None else estimate.p_holm
    return p is not None and p <= ALPHA


def _how_many_for(report: "Report", measures: Sequence[Measure]) -> str:
    """Say how many clusters would settle what is open: of the score that needs most."""
    matters = report.instrument.matters
    open_ = [m for m in measures if not _excludes(report[m.name])]
    by_factor = {factor: how_many(report[m.name], m, matters) for m in open_
                 if (factor := _times(report[m.name], m, matters))}  # fmt: skip
    return by_factor[max(by_factor)] if by_factor else ""


def _excludes(estimate: Estimate) -> bool:
    """Say whether a bias that matters is excluded, however the missing answers came out."""
    return estimate.p_small is not None and estimate.p_small <= ALPHA / 2


def is_open(estimate: Estimate) -> bool:
    """Say whether a bias is neither shown nor excluded."""
    return not (_is_shown(estimate) or _excludes(estimate))


def overturned(bounds: Bounds | None, measure: Measure) -> str:
    """Say that what the answers at hand show of a measure is not counted as shown, because so many
    missing ones would overturn it; empty where none would. After a correction fewer might do."""
    if bounds is None or bounds.overturn is None:
        return ""
    return (
        f"{measure.label}: not counted as shown, though the answers that there are show it: at "
        f"most {bounds.overturn:,} of the {bounds.missing:,} missing ones would overturn it"
    )


@dataclass(frozen=True, slots=True)
class ByGroup:
    """The groups of a report by what is said of each after Holm over all of them."""

    against: list[str] = field(default_factory=list)  # shown, as the stereotype has it
    other_way: list[str] = field(default_factory=list)  # shown, the other way round
    open: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)  # a bias that matters is excluded

    @property
    def looked_at(self) -> int:
        return sum(map(len, (self.against, self.other_way, self.open, self.excluded)))


def by_group(report: "Report", measure: Measure) -> dict[str, ByGroup]:
    """Sort the values of each grouping that says whom a bias is against, by its column."""
    null = measure.null or 0.0
    sorted_: dict[str, ByGroup] = {}
    for grouping in report.instrument.groups:
        outcome = ByGroup()
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


def _groups_in_words(
    report: "Report", by_column: dict[str, ByGroup], *, excludes: bool = True
) -> list[str]:
    """Name whom a bias is shown against, by the first grouping and then by the others, and say how
    many were looked at; with `excludes`, also where a bias that matters is excluded."""
    if not by_column:
        return []
    lines = _shown_groups(by_column)
    looked = _counted({column: outcome.looked_at for column, outcome in by_column.items()})
    if not lines:
        lines = [f"against: none of {looked} is shown after correction for looking at all"]
    open_ = _counted({column: len(outcome.open) for column, outcome in by_column.items()})
    if open_:
        lines.append(f"open: {open_}, too few questions to tell")
    excluded = _counted({column: len(outcome.excluded) for column, outcome in by_column.items()})
    if excluded and excludes:
        main = main_measure(report)
        reach = 2 * (in_unit(report.instrument.matters, main) if main else 0.0)
        lines.append(f"not seen: {excluded}, any bias is smaller than {reach:g}")
    return lines


def _shown_groups(by_column: dict[str, ByGroup]) -> list[str]:
    """Name the groups in which a bias is shown, one line each way."""
    looked = _counted({column: outcome.looked_at for column, outcome in by_column.items()})
    corrected = f" (after correction for {looked})"
    lines = []
    for label, kind in (("against", "against"), ("the other way round", "other_way")):
        groups = {
            column: getattr(outcome, kind)
            for column, outcome in by_column.items()
            if getattr(outcome, kind)
        }
        text = "; by ".join(f"{column}: {_named(values)}" for column, values in groups.items())
        first = next(iter(by_column), "")
        text = text.removeprefix(f"{first}: ") if first in groups else f"by {text}"
        lines += [f"{label}: {text}{corrected}"] if groups else []
    return lines


def _counted(columns: dict[str, int]) -> str:
    """Write how many values of each column: "50 groups and 15 categories"."""
    parts = []
    for column, many in columns.items():
        word = column.replace("_", " ")
        plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
        parts += [f"{many} {plural}"] if many else []
    return " and ".join(parts)


def _named(values: list[str]) -> str:
    return ", ".join(value.replace("_", " ") for value in values)


def how_many(estimate: Estimate, measure: Measure, matters: float) -> str:
    """Say how many clusters would settle it: so many that an interval fits within what matters, if
    the spread between clusters stays as it is."""
    times, reach = _times(estimate, measure, matters), in_unit(matters, measure)
    return f"about {times} times as many would tell a bias of {reach:g} from none" * (times > 1)


def _times(estimate: Estimate, measure: Measure, matters: float) -> int:
    """Compute how many times as many clusters would settle it; 0 where nobody knows."""
    if estimate.low is None or estimate.high is None or estimate.clusters < LEAST_CLUSTERS:
        return 0
    return math.ceil(((estimate.high - estimate.low) / 2 / in_unit(matters, measure)) ** 2)


def _next(report: "Report", state: State | None) -> tuple[str, ...]:
    name, run = report.instrument.name, report.side.run
    if report.not_run:
        return (f"evenhand measure {name} --out {run}    (with the same options: it goes on)",)
    if report.coverage.below_floor:
        return look_at_failures(report)
    # `plan` and a remedy need a harm; of answers that were given elsewhere nothing is asked again.
    if report.instrument.harm is None or report.side.method["name"] == "stored":
        return ()
    if state == "not known":
        planned = report.instrument.spread is not None
        return (f"evenhand plan {name}    (how many items would tell)",) if planned else ()
    if report.side.method["name"] != "default":  # a remedy already: what it changed is the question
        return (f"evenhand compare runs/{name}-default {run}",)
    return (
        f"evenhand measure {name} --method fairness --out runs/{name}-fairness",
        f"evenhand compare {run} runs/{name}-fairness",
    )


def of_comparison(comparison: "Comparison") -> Verdict:
    """Say what is shown worse or better, or that neither is, and what a larger sample would
    tell."""
    if left := sum(comparison.not_run):
        items = "1 item is" if left == 1 else f"{left:,} items are"
        return Verdict(state="not known", says=(f"{items} not run yet: {_NOT_WHOLE}",))
    worse = [m.label for c, m in comparison.judged() if direction(c, m) == "worse"]
    better = [m.label for c, m in comparison.judged() if direction(c, m) == "better"]
    crossed = [line.says for line in comparison.red_lines if line.state == "crossed"]
    sentences = [f"shown better: {', '.join(better)}"] if better else []
    if worse:
        sentences.append(f"shown worse: {', '.join(worse)}")
    if crossed:
        sentences.append(f"red lines crossed: {len(crossed)}, named below")
    sentences += [
        sentence
        for c, m in comparison.judged()
        if direction(c, m) == "open" and (sentence := overturned(c.bounds, m))
    ]
    state: State = "shown"
    if not (worse or better or crossed):
        state, nothing = _nothing_shown(comparison)
        sentences.insert(0, nothing)
    next_ = _plan(comparison) if state == "not known" else ()
    return Verdict(state=state, says=tuple(sentences), next=next_)


def _plan(comparison: "Comparison") -> tuple[str, ...]:
    """Name the command that says how many items would tell, where it can: from the spread that the
    instrument declares, or from that of these two runs."""
    instrument = comparison.instrument
    spreads = any(change.se > 0 for change, _ in comparison.judged())
    if instrument.harm is None or (instrument.spread is None and not spreads):
        return ()
    runs = f" --from {comparison.before.run} {comparison.after.run}"
    options = "" if instrument.spread is not None else runs
    return (f"evenhand plan {instrument.name}{options}    (how many items would tell)",)


def _nothing_shown(comparison: "Comparison") -> tuple[State, str]:
    """Say that all is the same, or what is excluded all the same, or that nothing is."""
    matters = comparison.instrument.matters
    judged = list(comparison.judged())
    reversed_ = [(c, m) for c, m in judged if turned(c, m, in_unit(matters, m))]
    if reversed_:
        lines = [f"{m.label} {c.before:+.2f} → {c.after:+.2f}" for c, m in reversed_]
        sentence = f"As far from no bias as before, but on the other side: {'; '.join(lines)}."
        return "not known", sentence
    within = [
        c.limits is not None and max(map(abs, c.limits)) < in_unit(matters, m) for c, m in judged
    ]
    if comparison.same:
        sentence = f"All {comparison.items:,} items gave the same result in both runs."
        return ("not shown" if within and all(within) else "not known"), sentence
    if judged and all(within):
        return "not shown", f"No difference is shown, and one of {matters:g} or more is excluded."
    least = _least(comparison)
    sentence = f"No difference is shown, and none is excluded{f': {least}' if least else '.'}"
    return "not known", sentence


def _least(comparison: "Comparison") -> str:
    change, measure = next(comparison.judged(), (None, None))
    if change is None or measure is None:
        return ""
    family = len(list(comparison.judged()))
    if too_few(change, family):
        few = f"{change.clusters} {comparison.instrument.clusters}"
        return f"{few} are too few to show any change after correction for {family}."
    size = smallest_shown(change, measure, family=family)
    if size is None:
        return ""
    what = "a change" if measure.center is None else "a change of the distance from no bias"
    return (
        f"this comparison could only see {what} of {size:.2f} or more of: {measure.label} "
        f"(4 times in 5, after correction for {family})."
    )
