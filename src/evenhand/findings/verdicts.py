"""The answer in words, first and last: is it biased, against whom, how sure, what next.

Shown: the interval of the main measure excludes "no bias", or a group's does after Holm over all
groups. Not shown: the interval lies within what matters, so a bias that matters is excluded. Not
known: neither.
"""

import math
from typing import TYPE_CHECKING, Literal

from evenhand.findings.found import Estimate, Verdict
from evenhand.findings.measures import Measure
from evenhand.findings.rules import ALPHA, direction, in_unit, kept, smallest_shown

if TYPE_CHECKING:
    from evenhand.findings.comparison import Comparison
    from evenhand.findings.frontier import Frontier
    from evenhand.findings.frontier_entry import Entry
    from evenhand.findings.report import Report

LEAST_CLUSTERS = 2
State = Literal["shown", "not shown", "not known"]


def main_measure(report: "Report") -> Measure | None:
    """The first primary measure that has a value for "no bias"."""
    return next((m for m in report.instrument.primary() if m.null is not None), None)


def of_report(report: "Report") -> Verdict:
    planned = report.source["items"]
    if report.not_run > planned / 2:
        done = planned - report.not_run
        early = f"{done:,} of {planned:,} items: nothing can be said yet."
        return Verdict(state="not known", says=(early,), next=_next(report, None))
    measure = main_measure(report)
    says = report.instrument.says(report)
    if measure is None:
        return Verdict(state=None, says=says, next=_next(report, None))
    overall = report[measure.name]
    against, open_, excluded = by_group(report, measure)
    state = _state(overall, measure, report.instrument.matters, bool(against))
    lines = [*says, *_groups_in_words(report, against, open_, excluded)]
    if state == "not known":
        lines.append(how_many(overall, measure, report.instrument.matters))
    return Verdict(
        state=state, says=tuple(line for line in lines if line), next=_next(report, state)
    )


def _state(overall: Estimate, measure: Measure, matters: float, in_a_group: bool) -> State:
    p_shown = overall.p is not None and overall.p <= ALPHA
    if p_shown or in_a_group:
        return "shown"
    return "not shown" if _excludes(overall, measure, matters) else "not known"


def _excludes(one: Estimate, measure: Measure, matters: float) -> bool:
    """Whether a bias as large as what matters is excluded by the interval."""
    if one.low is None or one.high is None or measure.null is None:
        return False
    reach = in_unit(matters, measure)
    return one.low > measure.null - reach and one.high < measure.null + reach


def by_group(report: "Report", measure: Measure) -> tuple[list[str], list[str], list[str]]:
    """The groups where a bias is shown after Holm, where it is open, and where it is excluded. Of
    several groupings the first one says whom a bias is against."""
    against: list[str] = []
    open_: list[str] = []
    excluded: list[str] = []
    for value, estimates in next(iter(report.groups.values()), {}).items():
        one = next((e for e in estimates if e.name == measure.name), None)
        if one is None:
            continue
        shown = one.p_holm is not None and one.p_holm <= ALPHA
        out = _excludes(one, measure, 2 * report.instrument.matters)
        (against if shown else excluded if out else open_).append(value)
    return against, open_, excluded


def _groups_in_words(
    report: "Report", against: list[str], open_: list[str], excluded: list[str]
) -> list[str]:
    looked = len(against) + len(open_) + len(excluded)
    if not looked:
        return []
    words = report.instrument.groups[0].column.replace("_", " ")
    many = f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"
    if not against:
        lines = [f"against: none of {looked} {many} is shown after correction for looking at all"]
    else:
        named = ", ".join(value.replace("_", " ") for value in against)
        lines = [f"against: {named} (after correction for {looked} {many})"]
    if open_:
        lines.append(f"open: {len(open_)} {many}, too few questions to tell")
    if excluded:
        main = main_measure(report)
        reach = 2 * (in_unit(report.instrument.matters, main) if main else 0.0)
        lines.append(f"not seen: {len(excluded)} {many}, any bias is smaller than {reach:g}")
    return lines


def how_many(one: Estimate, measure: Measure, matters: float) -> str:
    """How many clusters would settle it: a standard error that lets an interval fit within what
    matters, if the spread between clusters stays as it is."""
    if one.low is None or one.high is None or one.clusters < LEAST_CLUSTERS:
        return ""
    reach = in_unit(matters, measure)
    half = (one.high - one.low) / 2
    times = math.ceil((half / reach) ** 2)
    return f"about {times} times as many would tell a bias of {reach:g} from none" * (times > 1)


def _next(report: "Report", state: State | None) -> tuple[str, ...]:
    name, run = report.instrument.name, report.side.run
    if report.not_run:
        return (f"evenhand measure {name} --out {run}    (with the same options: it goes on)",)
    if report.instrument.harm is None:  # `plan` needs one, and so does a remedy
        return ()
    if state == "not known":
        return (f"evenhand plan {name}    (how many items would tell)",)
    if report.side.method["name"] != "default":  # a remedy already: what it changed is the question
        return (f"evenhand compare runs/{name}-default {run}",)
    return (
        f"evenhand measure {name} --method fairness --out runs/{name}-fairness",
        f"evenhand compare {run} runs/{name}-fairness",
    )


def of_comparison(comparison: "Comparison") -> Verdict:
    """Worse, better, or neither shown; what a larger sample would tell."""
    worse = [m.label for c, m in comparison.judged() if direction(c, m) == "worse"]
    better = [m.label for c, m in comparison.judged() if direction(c, m) == "better"]
    crossed = [line.says for line in comparison.red_lines if line.state == "crossed"]
    says = [f"shown better: {', '.join(better)}"] if better else []
    if worse:
        says.append(f"shown worse: {', '.join(worse)}")
    if crossed:
        says.append(f"red lines crossed: {len(crossed)}, named below")
    state: State = "shown" if worse or better or crossed else "not known"
    if state == "not known":
        says.append(
            "No difference is shown, and none is excluded"
            + (f": {least}" if (least := _least(comparison)) else ".")
        )
    plan = f"evenhand plan {comparison.instrument.name}    (how many items would tell)"
    next_ = () if state == "shown" or comparison.instrument.harm is None else (plan,)
    return Verdict(state=state, says=tuple(says), next=next_)


def _least(comparison: "Comparison") -> str:
    change, measure = next(comparison.judged(), (None, None))
    if change is None or measure is None:
        return ""
    size = smallest_shown(change, measure)
    if size is None:
        return ""
    return f"this comparison could only see a change of {size:.2f} or more of: {measure.label}."


def of_frontier(frontier: "Frontier") -> Verdict:
    """Which method to take: of those shown to be worth it the cheapest, since nothing shows that a
    dearer one does more; else a reference that is shown to help; else none."""
    judged = frontier.judged()
    worth_it = [entry for entry, found in judged if found.kind == "worth it"]
    open_ = [entry.name for entry, found in judged if found.kind == "underpowered"]
    if worth_it:
        taken = min(worth_it, key=lambda one: one.cost[frontier.cost_axis].mean or math.inf)
        names = ", ".join(one.name for one in worth_it)
        alone = "it alone is shown to be worth its calls"
        why = f"the cheapest of those shown to be worth it ({names})" if worth_it[1:] else alone
        says = [f"take {taken.name}: {why}"]
    else:
        says = ["none is shown to be worth its calls", _reference_to_take(frontier)]
    if open_:
        says.append(f"open: {', '.join(open_)}; the sample is too small to tell")
    state: State = "shown" if worth_it else "not known" if open_ else "not shown"
    name = frontier.instrument.name
    next_ = (f"evenhand plan {name}    (how many items would tell)",) if open_ else ()
    return Verdict(state=state, says=tuple(says), next=next_)


def _reference_to_take(frontier: "Frontier") -> str:
    references = [e for e in frontier.entries if e.role == "reference" and _helps(frontier, e)]
    if not references:
        return "keep the plain prompt: no reference is shown to do better either"
    return f"take {references[0].name}: it is shown to do less harm than the plain prompt"


def _helps(frontier: "Frontier", entry: "Entry") -> bool:
    """Whether a reference is shown to lower harm and to have kept the utility."""
    compared, instrument = entry.against_default, frontier.instrument
    if compared is None or instrument.utility is None:
        return False
    less = direction(compared.harm, instrument.measure(compared.harm.name)) == "better"
    utility = instrument.measure(instrument.utility)
    return less and kept(compared.comparison[utility.name], utility) == "kept"
