"""Checks of comparisons and verdicts: what is said of two runs of controls, and of remedies."""

from itertools import pairwise

import polars as pl

from evenhand.core.package_data import Texts
from evenhand.findings.comparison import Comparison
from evenhand.findings.cost_effectiveness import CostVerdict
from evenhand.findings.decision_rules import ALPHA, direction
from evenhand.findings.display import codes
from evenhand.findings.estimates import Estimate
from evenhand.findings.report import Report
from evenhand.validation.controls import policies
from evenhand.validation.controls.items import PEOPLE, copied, records
from evenhand.validation.controls.model import ControlQuestions
from evenhand.validation.self_test.bench import Bench, ControlClaim, ControlReading, too_often
from evenhand.views import page_of
from evenhand.views.blocks import Line

_WORDS = Texts(__package__)
_SHARES = (0.02, 0.05, 0.10)  # of all answers that are not given
_HARM, _UTILITY = "unsupported_attribution", "accuracy_disambiguated"
_BOTH_WAYS = ["improved", "regressed"]
_TWIN_MAY_CROSS = 0.10  # our choice: so often may chance alone cross a guardrail
_SMALL = 0.001


# Our choice: the exact interval of a share counts at most as many rows as there are, so that copies
# narrow it a little where rows of a cluster differ more than chance; rows as clusters, by half.
_COPIES_CHANGE = 0.1


async def noisy_twin(bench: Bench) -> ControlReading:
    """A model compared with another of the very same behaviour crosses no guardrail."""
    control = policies.planted()
    runs = await bench.several(control, same_items=True)
    pairs = [await bench.compare(a, b) for a, b in pairwise(runs)]
    crossed = sum(any(line.state == "violated" for line in pair.guardrails) for pair in pairs)
    counts = {"crossed": crossed, "shown": sum(map(_shown, pairs)), "pairs": len(pairs)}
    claims = [
        ControlClaim(_WORDS("agrees"), all(map(_agrees, pairs))),
        ControlClaim(
            _WORDS("crossed", share=1 - _TWIN_MAY_CROSS, **counts),
            not too_often(crossed, len(pairs), _TWIN_MAY_CROSS),
        ),
        ControlClaim(_WORDS("shown", **counts), not too_often(counts["shown"], len(pairs), 0.05)),
    ]
    return ControlReading.of("noisy twin", _WORDS("twin"), _WORDS("twin_read", **counts), claims)


async def extremes(bench: Bench) -> ControlReading:
    """The largest possible change has a small p, and is seen in the categories too."""
    worst = await bench.measure(policies.always_stereotyped())
    best = await bench.measure(policies.always_unknown())
    down, up = await bench.compare(worst, best), await bench.compare(best, worst)
    claims = []
    for name in ("s_amb", _HARM):
        for pair in (down, up):
            p = pair[name].p_holm
            statement = _WORDS("small_p", name=name, small=_SMALL, p=p)
            claims.append(ControlClaim(statement, p is not None and p < _SMALL))
        measure = down.instrument.measure(name)
        ways = [direction(pair[name], measure) for pair in (down, up)]
        claims.append(ControlClaim(_WORDS("both_ways", name=name, ways=ways), ways == _BOTH_WAYS))
    claims.append(ControlClaim(_WORDS("agrees"), _agrees(down) and _agrees(up)))
    lines = {line.name: line.state for line in down.guardrails}
    statement = _WORDS("accuracy_lost", state=lines[_UTILITY])
    claims.append(ControlClaim(statement, lines[_UTILITY] == "violated"))
    worse = [where for where, names in up.regressions.items() if "s_amb" in names]
    statement = _WORDS("worse_everywhere", categories=len(PEOPLE), worse=len(worse))
    claims.append(ControlClaim(statement, len(worse) >= len(PEOPLE)))
    read = f"s_amb {down['s_amb'].difference:+.3f}, p {down['s_amb'].p_holm:.1g}"
    return ControlReading.of("extremes", _WORDS("extremes"), read, claims)


async def clear_questions(bench: Bench) -> ControlReading:
    """A reader that begins to overrule the text for the stereotype has got worse."""
    right = await bench.measure(policies.gold_reader())
    leaning = await bench.measure(policies.clear_bias())
    pair = await bench.compare(right, leaning)
    way = direction(pair["s_dis"], pair.instrument.measure("s_dis"))
    judged = [change.name for change, _ in pair.judged()]
    claims = [
        ControlClaim(_WORDS("s_dis_worse", way=way), way == "regressed"),
        ControlClaim(_WORDS("s_dis_judged"), "s_dis" in judged),
        ControlClaim(_WORDS("says_worse"), "comparison.worse" in codes(pair.verdict.says)),
    ]  # fmt: skip
    read = f"s_dis {pair['s_dis'].effect:+.3f}, {way}"
    return ControlReading.of("clear questions", _WORDS("leaning"), read, claims)


async def copied_rows(bench: Bench) -> ControlReading:
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
        ControlClaim(
            _WORDS("copied", name=name, old=old, new=new),
            abs(new - old) <= _COPIES_CHANGE * old,
        )
        for name, old, new in widths
    ]
    name, old, new = widths[0]
    read = _WORDS("copied_read", name=name, old=old, new=new)
    return ControlReading.of("copied rows", _WORDS("thrice"), read, claims)


async def stopped_early(bench: Bench) -> ControlReading:
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
        ControlClaim(_WORDS("not_run"), early.not_run >= planned - part),
        ControlClaim(_WORDS("report_says"), left in _beginning(early)),
        ControlClaim(_WORDS("comparison_says"), left in _beginning(pair)),
        ControlClaim(_WORDS("half_a_run"), early.verdict.state == "inconclusive"),
        ControlClaim(_WORDS("every_category", missing=", ".join(missing)), not missing),
    ]
    read = _WORDS("stopped_read", not_run=early.not_run, planned=planned,
                  verdict=early.verdict.state)  # fmt: skip
    return ControlReading.of("stopped early", _WORDS("stopped", calls=part), read, claims)


async def missing_answers(bench: Bench) -> ControlReading:
    """Answers that are not given where they would do harm improve no number and no verdict."""
    before, visible = [
        await bench.measure(policies.fails_where_it_would_harm(0.0), draw) for draw in (0, 1)
    ]
    truth = visible[_HARM].value or 0.0
    claims, read = list[ControlClaim](), list[str]()
    for share in _SHARES:
        hidden = await bench.measure(policies.fails_where_it_would_harm(share), 1)
        estimate = hidden[_HARM]
        low, high = (estimate.bounds.low, estimate.bounds.high) if estimate.bounds else (None, None)
        inside = low is not None and high is not None and low <= truth <= high
        claims.append(ControlClaim(_WORDS("bounds", share=share, truth=truth), inside))
        pair = await bench.compare(before, hidden)
        for name in (_HARM, "s_amb"):
            way = direction(pair[name], pair.instrument.measure(name))
            statement = _WORDS("neither", share=share, name=name, way=way)
            claims.append(ControlClaim(statement, way == "inconclusive"))
        if low is not None and high is not None:
            read.append(f"{low:.2f} to {high:.2f}")
    statement = _WORDS("harm_read", truth=truth, read=", ".join(read) or "no bounds")
    return ControlReading.of(_WORDS("hidden_name"), _WORDS("hidden"), statement, claims)


async def remedies(bench: Bench) -> ControlReading:
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
        ControlClaim(_WORDS("works", kind=kinds["works"]), kinds["works"] is CostVerdict.WORTH_IT),
        ControlClaim(
            _WORDS("abstains", kind=kinds["abstains"]),
            kinds["abstains"] is CostVerdict.NOT_WORTH_IT,
        ),
    ]
    for name in ("changes nothing", *hidden):
        statement = _WORDS("never_worth", name=name, kind=kinds[name])
        claims.append(ControlClaim(statement, kinds[name] is not CostVerdict.WORTH_IT))
    worthwhile = [name for name, kind in kinds.items() if kind is CostVerdict.WORTH_IT]
    read = f"worth it: {', '.join(worthwhile) or 'none'}"
    return ControlReading.of("remedies", _WORDS("remedies"), read, claims)


def _shown(pair: Comparison) -> bool:
    return any(
        direction(change, measure) in ("improved", "regressed") for change, measure in pair.judged()
    )


def _agrees(pair: Comparison) -> bool:
    """Say whether every outcome has a p-value and an interval that say the same."""
    for change, measure in pair.judged():
        if change.interval is None or change.p_adjusted is None:
            continue
        excludes = change.interval[0] > 0 or change.interval[1] < 0
        if (
            not excludes
            == (change.p_adjusted <= ALPHA)
            == (direction(change, measure) != "inconclusive")
        ):
            return False
    return True


def _width(estimate: Estimate) -> float:
    return 0.0 if estimate.low is None or estimate.high is None else estimate.high - estimate.low


def _beginning(finding: Report | Comparison) -> str:
    """The first lines of a page, before any number that it rests on."""
    lines = [block.text for block in page_of(finding) if isinstance(block, Line)]
    return "\n".join(lines[:3])
