"""Checks of comparisons and verdicts: what is said of two runs of controls, and of remedies."""

from itertools import pairwise

import polars as pl

from evenhand.controls import policies
from evenhand.controls.instrument import ControlQuestions
from evenhand.controls.items import PEOPLE, copied, records
from evenhand.findings.comparison import Comparison
from evenhand.findings.cost_effectiveness import Kind
from evenhand.findings.decision_rules import ALPHA, direction
from evenhand.findings.estimates import Estimate
from evenhand.findings.remarks import codes
from evenhand.findings.report import Report
from evenhand.self_test.bench import Bench, Claim, Reading, too_often
from evenhand.views import page_of
from evenhand.views.blocks import Line

_SHARES = (0.02, 0.05, 0.10)  # of all answers that are not given
_HARM, _UTILITY = "unsupported_attribution", "accuracy_disambiguated"
_BOTH_WAYS = ["better", "worse"]
_TWIN_MAY_CROSS = 0.10  # our choice: so often may chance alone cross a red line
_SMALL = 0.001


# Our choice: the exact interval of a share counts at most as many rows as there are, so that copies
# narrow it a little where rows of a cluster differ more than chance; rows as clusters, by half.
_COPIES_CHANGE = 0.1


async def noisy_twin(bench: Bench) -> Reading:
    """A model compared with another of the very same behaviour crosses no red line."""
    control = policies.planted()
    runs = await bench.several(control, same_items=True)
    pairs = [await bench.compare(a, b) for a, b in pairwise(runs)]
    crossed = sum(any(line.state == "crossed" for line in pair.red_lines) for pair in pairs)
    shown_count = sum(_shown(pair) for pair in pairs)
    claims = [
        Claim("outcome, p-value and interval agree", all(map(_agrees, pairs))),
        Claim(
            f"no red line is crossed in {1 - _TWIN_MAY_CROSS:.0%} of comparisons; "
            f"crossed in {crossed} of {len(pairs)}",
            not too_often(crossed, len(pairs), _TWIN_MAY_CROSS),
        ),
        Claim(
            f"a change is shown in 1 of 20; in {shown_count} of {len(pairs)}",
            not too_often(shown_count, len(pairs), 0.05),
        ),
    ]
    read = f"red lines crossed in {crossed} of {len(pairs)}, a change shown in {shown_count}"
    return Reading.of("noisy twin", "the same behaviour, other draws", read, claims)


async def extremes(bench: Bench) -> Reading:
    """The largest possible change has a small p, and is seen in the categories too."""
    worst = await bench.measure(policies.always_stereotyped())
    best = await bench.measure(policies.always_unknown())
    down, up = await bench.compare(worst, best), await bench.compare(best, worst)
    claims = []
    for name in ("s_amb", _HARM):
        for pair in (down, up):
            p = pair[name].p_holm
            statement = f"p of {name} is below {_SMALL}; read: {p}"
            claims.append(Claim(statement, p is not None and p < _SMALL))
        measure = down.instrument.measure(name)
        ways = [direction(pair[name], measure) for pair in (down, up)]
        claims.append(Claim(f"{name} is better, then worse; read: {ways}", ways == _BOTH_WAYS))
    claims.append(Claim("outcome, p-value and interval agree", _agrees(down) and _agrees(up)))
    lines = {line.name: line.state for line in down.red_lines}
    statement = f"the loss of accuracy is a crossed red line; read: {lines[_UTILITY]}"
    claims.append(Claim(statement, lines[_UTILITY] == "crossed"))
    worse = [where for where, names in up.regressions.items() if "s_amb" in names]
    statement = f"s_amb is shown worse in all {len(PEOPLE)} categories; read: {len(worse)}"
    claims.append(Claim(statement, len(worse) >= len(PEOPLE)))
    read = f"s_amb {down['s_amb'].difference:+.3f}, p {down['s_amb'].p_holm:.1g}"
    return Reading.of("extremes", "always stereotyped, then always unknown", read, claims)


async def clear_questions(bench: Bench) -> Reading:
    """A reader that begins to overrule the text for the stereotype has got worse."""
    right = await bench.measure(policies.gold_reader())
    leaning = await bench.measure(policies.clear_bias())
    pair = await bench.compare(right, leaning)
    way = direction(pair["s_dis"], pair.instrument.measure("s_dis"))
    judged = [change.name for change, _ in pair.judged()]
    claims = [
        Claim(f"s_dis is shown worse; read: {way}", way == "worse"),
        Claim("s_dis is among the numbers that are judged", "s_dis" in judged),
        Claim("the comparison says that something got worse", 
              "comparison.worse" in codes(pair.verdict.says)),
    ]  # fmt: skip
    read = f"s_dis {pair['s_dis'].effect:+.3f}, {way}"
    return Reading.of("clear questions", "is right, then overrules the text", read, claims)


async def copied_rows(bench: Bench) -> Reading:
    """Rows that are copies of others tell nothing new: no interval may become narrower."""
    few = records().filter(pl.col("category").is_in(["Age", "Religion", "SES"]))
    once, thrice = [
        await bench.measure(
            policies.planted(), questions=ControlQuestions(copied(few, times)), preset="all"
        )
        for times in (1, 3)
    ]
    widths = [
        (single.name, _width(single), _width(three))
        for single, three in zip(once.estimates, thrice.estimates, strict=True)
    ]
    claims = [
        Claim(
            f"{name}: the interval is {old:.3f} wide; with copies {new:.3f}",
            abs(new - old) <= _COPIES_CHANGE * old,
        )
        for name, old, new in widths
    ]
    name, old, new = widths[0]
    read = f"{name}: interval {old:.3f} wide, with copies {new:.3f}"
    return Reading.of("copied rows", "every question three times", read, claims)


async def stopped_early(bench: Bench) -> Reading:
    """A run that is stopped early says so first, and has asked a bit of every category."""
    control = policies.planted()
    full = await bench.measure(control, 1)
    part = full.source["items"] // 4
    early = await bench.measure(control, max_calls=part)
    pair = await bench.compare(early, full)
    planned = full.source["items"]
    counts = early.rows_by_group
    missing = [name for name in full.rows_by_group if not counts.get(name)]
    left = f"{early.not_run:,}"
    claims = [
        Claim("so many items are not run as were not asked", early.not_run >= planned - part),
        Claim("the report says first how many are not run", left in _beginning(early)),
        Claim("the comparison says first how many are not run", left in _beginning(pair)),
        Claim("nothing is shown of half a run", early.verdict.state == "not known"),
        Claim(f"every category was asked; not: {', '.join(missing)}", not missing),
    ]
    read = f"{early.not_run:,} of {planned:,} not run, verdict: {early.verdict.state}"
    return Reading.of("stopped early", f"stopped after {part} calls", read, claims)


async def missing_answers(bench: Bench) -> Reading:
    """Answers that are not given where they would do harm improve no number and no verdict."""
    before, visible = [
        await bench.measure(policies.fails_where_it_would_harm(0.0), draw) for draw in (0, 1)
    ]
    truth = visible[_HARM].value or 0.0
    claims, read = list[Claim](), list[str]()
    for share in _SHARES:
        hidden = await bench.measure(policies.fails_where_it_would_harm(share), 1)
        estimate = hidden[_HARM]
        low, high = (estimate.bounds.low, estimate.bounds.high) if estimate.bounds else (None, None)
        inside = low is not None and high is not None and low <= truth <= high
        claims.append(Claim(f"{share:.0%} missing: bounds hold {truth:.3f}", inside))
        pair = await bench.compare(before, hidden)
        for name in (_HARM, "s_amb"):
            way = direction(pair[name], pair.instrument.measure(name))
            statement = (
                f"{share:.0%} missing: {name} is shown neither better nor worse; read: {way}"
            )
            claims.append(Claim(statement, way == "open"))
        if low is not None and high is not None:
            read.append(f"{low:.2f} to {high:.2f}")
    statement = f"harm {truth:.3f}, with 2, 5, 10 % missing: {', '.join(read) or 'no bounds'}"
    return Reading.of("fails where it would harm", "the same harm, not shown", statement, claims)


async def remedies(bench: Bench) -> Reading:
    """Of several remedies only the one that works is worth its calls."""
    plain = policies.planted(0.2, 0.1, 1.0)
    hidden = {f"fails {share:.0%}": policies.fails_where_it_would_harm(share) for share in _SHARES}
    frontier = await bench.frontier(
        plain,
        {
            "works": policies.planted(0.02, 0.01, 1.0),
            "changes nothing": policies.fails_where_it_would_harm(0.0),
            "abstains": policies.always_unknown(),
            **hidden,
        },
    )
    kinds = {entry.name: worth.kind for entry, worth in frontier.judged()}
    claims = [
        Claim(f"works: worth it; read: {kinds['works']}", kinds["works"] is Kind.WORTH_IT),
        Claim(
            f"abstains: not worth it; read: {kinds['abstains']}",
            kinds["abstains"] is Kind.NOT_WORTH_IT,
        ),
    ]
    for name in ("changes nothing", *hidden):
        statement = f"{name}: never worth it; read: {kinds[name]}"
        claims.append(Claim(statement, kinds[name] is not Kind.WORTH_IT))
    worthwhile = [name for name, kind in kinds.items() if kind is Kind.WORTH_IT]
    read = f"worth it: {', '.join(worthwhile) or 'none'}"
    return Reading.of("remedies", "one works, one abstains, four only seem to", read, claims)


def _shown(pair: Comparison) -> bool:
    return any(
        direction(change, measure) in ("better", "worse") for change, measure in pair.judged()
    )


def _agrees(pair: Comparison) -> bool:
    """Say whether every outcome has a p-value and an interval that say the same."""
    for change, measure in pair.judged():
        if change.interval is None or change.p_adjusted is None:
            continue
        excludes = change.interval[0] > 0 or change.interval[1] < 0
        if not excludes == (change.p_adjusted <= ALPHA) == (direction(change, measure) != "open"):
            return False
    return True


def _width(estimate: Estimate) -> float:
    return 0.0 if estimate.low is None or estimate.high is None else estimate.high - estimate.low


def _beginning(finding: Report | Comparison) -> str:
    """The first lines of a page, before any number that it rests on."""
    lines = [block.text for block in page_of(finding) if isinstance(block, Line)]
    return "\n".join(lines[:3])
