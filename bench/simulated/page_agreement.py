"""Whether outcome, test and printed interval agree on every page object.

    python -m bench.simulated.page_agreement            # 10,000 random pages
    python -m bench.simulated.page_agreement --pages 200

A claim is made exactly where its adjusted p-value is at most 0.05, and exactly there the interval
beside it excludes "no bias" or "no change", on the side that the claim names. `disagreements` names
every place of a page where that is not so.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import singledispatch

import numpy as np

from bench.gate import judged, two_runs
from bench.null_laboratory import COMPARED, SHARES, SUMS, compared, reported, simulated_frontier
from bench.simulated.outcomes import SHAPES, Design, System
from evenhand.findings.comparison import Comparison
from evenhand.findings.cost_effectiveness import CostVerdict, harm_of
from evenhand.findings.decision_rules import ALPHA, adjusted, change_remark, direction, largest_loss
from evenhand.findings.estimates import Change, Estimate
from evenhand.findings.frontier import Frontier
from evenhand.findings.gate import Gate
from evenhand.findings.measures import Measure
from evenhand.findings.report import Report
from evenhand.findings.verdicts import bias_measures, by_group

Page = Report | Comparison | Gate | Frontier


@singledispatch
def disagreements(page: Page) -> Iterator[str]:
    """Name every place of a page where outcome, test and interval do not agree."""
    raise TypeError(f"no page: {type(page).__name__}")


# -- one run ---------------------------------------------------------------------------------------


@disagreements.register
def _report(page: Report) -> Iterator[str]:
    for one in page.estimates:
        yield from _estimate(one.name, one, page.instrument.measure(one.name))
    for column, values in page.groups.items():
        for value, found in values.items():
            for one in found:
                place = f"{one.name}, {column} {value}"
                yield from _estimate(place, one, page.instrument.measure(one.name))
    if page.verdict.state is not None and not page.not_run and page.stopped is None:
        yield from _verdict(page)


def _estimate(place: str, one: Estimate, measure: Measure) -> Iterator[str]:
    p = one.p if one.p_holm is None else one.p_holm
    if measure.null is None or p is None:
        return
    if one.low is None or one.high is None:
        if p <= ALPHA:
            yield f"{place}: p = {p:.4g} without an interval"
        return
    excluded = not one.low <= measure.null <= one.high
    if (p <= ALPHA) != excluded:
        yield f"{place}: p = {p:.4g}, {one.low:.4g} to {one.high:.4g}, no bias at {measure.null:g}"
    above = one.low > measure.null
    if excluded and one.value is not None and (one.value > measure.null) != above:
        yield f"{place}: {one.value:.4g} lies outside {one.low:.4g} to {one.high:.4g}"


def _verdict(page: Report) -> Iterator[str]:
    measures = bias_measures(page)
    if not measures:
        return
    shown = [_excludes(page[one.name], one) for one in measures]
    named = [group for one in measures for group in by_group(page, one).values()]
    in_groups = any(group.against or group.other_way for group in named)
    if (page.verdict.state == "detected") != (any(shown) or in_groups):
        yield f"verdict {page.verdict.state}: overall {shown}, in a group {in_groups}"
    if page.verdict.state == "ruled_out":
        for measure in measures:
            p_small = page[measure.name].p_small
            if p_small is None or p_small > ALPHA / 2:
                yield f"verdict not shown: {measure.name} excludes nothing (p = {p_small})"


def _excludes(one: Estimate, measure: Measure) -> bool:
    assert measure.null is not None
    return one.low is not None and one.high is not None and not one.low <= measure.null <= one.high


# -- two runs --------------------------------------------------------------------------------------


@disagreements.register
def _comparison(page: Comparison) -> Iterator[str]:
    for change in (*page.primary, *page.secondary):
        yield from _change(change.name, change, page.instrument.measure(change.name))
    yield from _groups(page)
    said: set[str] = set()
    for change, measure in page.judged():
        said.add(direction(change, measure))
    crossed = any(line.state == "violated" for line in page.guardrails)
    concluded = bool(said - {"inconclusive"} or crossed) and not any(page.not_run)
    if (page.verdict.state == "detected") != concluded:
        yield f"verdict {page.verdict.state}: {sorted(said)}, a guardrail crossed: {crossed}"
    for line in page.guardrails:
        known = [
            m for m in page.instrument.measures if m.name == line.name and m.margin is not None
        ]
        for measure in known:
            yield from _guardrail(page[measure.name], measure, line.state, str(line.says))


def _change(place: str, change: Change, measure: Measure) -> Iterator[str]:
    p, ends, told = change.p_adjusted, change.interval, direction(change, measure)
    if p is None or ends is None:
        if told != "inconclusive" or (p is not None and p <= ALPHA):
            yield f"{place}: {told}, p = {p}, interval {ends}"
        return
    low, high = ends
    excluded = low > 0 or high < 0
    if (p <= ALPHA) != excluded:
        yield f"{place}: p = {p:.4g}, {low:.4g} to {high:.4g}"
    if measure.better == "none":
        return
    bad, good = (high < 0, low > 0) if measure.better == "higher" else (low > 0, high < 0)
    if (told == "regressed") != bad or (told == "improved") != good:
        yield f"{place}: {told}, p = {p:.4g}, {low:.4g} to {high:.4g}"


def _groups(page: Comparison) -> Iterator[str]:
    """Each group's interval agrees with its own test; what is named as a regression is worse after
    Holm over all groups, and nothing else is."""
    tested = [(value, change) for values in page.groups.values()
              for value, changes in values.items() for change in changes]  # fmt: skip
    worse: dict[str, tuple[str, ...]] = {}
    for (value, change), after in zip(tested, adjusted([c for _, c in tested]), strict=True):
        measure = page.instrument.measure(change.name)
        yield from _change(f"{change.name} in {value}", change, measure)
        yield from _change(f"{change.name} in {value}, after Holm", after, measure)
        if direction(after, measure) == "regressed":
            worse[value] = (*worse.get(value, ()), change.name)
    if worse != dict(page.regressions):
        yield f"regressions {dict(page.regressions)}, and not {worse}"


def _guardrail(change: Change, measure: Measure, state: str, says: str) -> Iterator[str]:
    assert measure.margin is not None
    loss = largest_loss(change, measure)
    within = loss is not None and loss < measure.margin
    if (state == "non_inferior") != within:
        yield f"guardrail {measure.name}: {state}, a loss of at most {loss}, {measure.margin:g}"
    if state != "violated":
        return
    if direction(change, measure) != "regressed":
        yield f"guardrail {measure.name}: crossed, and not worse"
    if str(change_remark(change, measure)) not in says:
        yield f"guardrail {measure.name}: another interval than the one that decided: {says}"


@disagreements.register
def _gate(page: Gate) -> Iterator[str]:
    for one in page.checks:
        change, measure = one.change, one.measure
        if change is None or measure is None or measure.margin is None or one.early is not None:
            continue
        yield from _change(f"check {one.name}", change, measure)
        loss = largest_loss(change, measure)
        within = loss is not None and loss < measure.margin
        worse = direction(change, measure) == "regressed" and not within
        if (one.verdict == "fail") != worse:
            yield f"check {one.name}: {one.verdict}, worse: {worse}"
        if one.verdict == "pass" and not within:
            yield f"check {one.name}: pass, a loss of at most {loss}, {measure.margin:g}"


@disagreements.register
def _frontier(page: Frontier) -> Iterator[str]:
    harm = harm_of(page.instrument)
    for entry in page.entries:
        yield from (f"{entry.name}: {one}" for one in disagreements(entry.report))
        if entry.against_default is not None:
            place = f"{entry.name} against default"
            yield from _change(place, entry.against_default.harm, harm)
            for one in disagreements(entry.against_default.comparison):
                yield f"{place}: {one}"
        for other, change in entry.harm_against.items():
            yield from _change(f"{entry.name} against {other}", change, harm)
        if entry.worth is not None and entry.worth.kind is CostVerdict.WORTH_IT:
            ends = [change.interval for change in entry.harm_against.values()]
            if any(one is None or one[1] >= 0 for one in ends):
                yield f"{entry.name}: worth it, {ends}"


# -- random pages ----------------------------------------------------------------------------------


def random_page(rng: np.random.Generator, number: int) -> Page:
    """Draw a page: of a run, of two, of a gate, or one time in fifty of a frontier. It is of any
    size and shape, biased or not, and close to what is just shown."""
    design = Design(
        clusters=int(rng.integers(2, 40)),
        most_rows=int(rng.integers(2, 5)),
        shape=str(rng.choice(SHAPES)),
        missing=str(rng.choice(["", "at random", "by group"])),
    )
    if number % 50 == 49:
        return simulated_frontier(rng, float(rng.choice([0.0, 0.1, 0.3])))
    if number % 10 == 9:
        return judged(two_runs(rng, design.clusters + 3, float(rng.choice([0.0, 0.1, 0.3]))))
    system = System.drawn(rng, design, float(rng.choice([0.0, 0.1, 0.3])))
    if number % 2:
        names = [name for names in COMPARED.values() for name in names]
        after = system.biased(min(float(rng.choice([0.0, 0.05, 0.15, 0.3])), system.room))
        return compared(str(rng.choice(names)), rng, system, after, again=float(rng.random()))
    return reported(str(rng.choice([*SHARES, *SUMS, "stereoset"])), rng, system)


def counted(pages: int, seed: int, told: Callable[[str], None] = print) -> int:
    """Count the places of so many random pages that disagree, and name each."""
    found = 0
    for number in range(pages):
        rng = np.random.default_rng([seed, number])
        page = random_page(rng, number)
        for one in disagreements(page):
            found += 1
            told(f"page {number}, {type(page).__name__}: {one}")
        if number % 1_000 == 999:
            print(f"{number + 1} pages, {found} disagreements", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20261118)
    given = parser.parse_args()
    found = counted(given.pages, given.seed, lambda line: print(line, flush=True))
    print(f"RESULT pages={given.pages} disagreements={found}")


if __name__ == "__main__":
    main()
