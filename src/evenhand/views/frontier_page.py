"""The page of a frontier: which method to take, what got worse, why, then the numbers."""

from collections.abc import Iterable, Sequence

from evenhand.findings.cost_effectiveness import CostVerdict, harm_of, shown_measures
from evenhand.findings.decision_rules import ALPHA
from evenhand.findings.estimates import COVERAGE_FLOOR, Change, GuardrailTest
from evenhand.findings.frontier import Frontier, FrontierEntry
from evenhand.findings.item_cost import (
    PAID,
    CostKind,
    ItemCost,
    PerPrevented,
    counted_harm,
)
from evenhand.findings.measures import Measure
from evenhand.views import catalog, numbers
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone

_FRONT = "◆ "
_AT_ONCE = 3  # measures side by side, so that a table stays within 100 columns
_VERDICTS: dict[CostVerdict, tuple[str, Tone]] = {
    CostVerdict.NOT_WORTH_IT: ("✗", "bad"),
    CostVerdict.CANNOT_TELL: ("?", "open"),
    CostVerdict.UTILITY_NOT_MEASURED: ("?", "open"),
    CostVerdict.WORTH_IT: ("✓", "good"),
}
_DIGITS: dict[CostKind, int] = {"calls": 2, "tokens": 0, "seconds": 2, "money": 2, "scored": 2}
_TONES: dict[str | None, Tone] = {"detected": "good", "ruled_out": "strong", "inconclusive": "open"}


def page(frontier: Frontier, *, full: bool = False) -> list[Block]:
    """The blocks of a frontier; `full` adds every measure, cost and comparison."""
    answer = _answer(frontier)
    blocks: list[Block] = [Line(_head(frontier), "strong"), *_warnings(frontier), GAP, *answer, GAP]
    blocks += [*_confirmed(frontier), *_regressions(frontier), GAP, *_verdicts(frontier), GAP]
    blocks += [_overview(frontier), *_legend(frontier)]
    if full:
        blocks += [*_measures(frontier), GAP, *_costs(frontier), GAP, *_against_plain(frontier)]
        blocks += [GAP, *_prevented(frontier)]
    else:
        blocks.append(Line("full output: the same command with --full makes no calls", "dim"))
    blocks += [
        GAP,
        *answer[:1],
        *(Line(f"next  {catalog.text(step)}") for step in frontier.verdict.next),
    ]
    return blocks


def _head(frontier: Frontier) -> str:
    source, plain = frontier.source, frontier.entries[0].report.side
    model = plain.asked if plain.system else frontier.model
    return (
        f"{frontier.instrument.title} {source['version']} · {model} · {source['items']:,} items "
        f"· at most {frontier.calls} calls an item"
    )


def _warnings(frontier: Frontier) -> list[Block]:
    """What is missing comes first."""
    lines = catalog.texts(frontier.notes)
    for entry in frontier.entries:
        coverage = entry.report.coverage
        if coverage.below_floor:
            lines.append(
                f"{entry.name}: coverage {coverage.percent} is below {COVERAGE_FLOOR:.0%}; "
                "what could not be scored may differ from what could."
            )
        if entry.report.not_run:
            lines.append(f"{entry.name}: {entry.report.not_run:,} items are not run yet.")
    return [Line(line, "bad") for line in lines]


def _answer(frontier: Frontier) -> list[Block]:
    first, *rest = catalog.texts(frontier.verdict.says)
    sentence = f"{first[0].upper()}{first[1:]}."
    return [
        Line(sentence, _TONES[frontier.verdict.state]),
        *(Line(line, indent=2) for line in rest),
    ]


def _confirmed(frontier: Frontier) -> list[Block]:
    """The winner's change of harm where it was chosen, and on the fresh sample."""
    fresh, winner = frontier.confirmation, frontier.winner()
    if fresh is None or winner is None:
        return []
    harm = harm_of(frontier.instrument)
    again = fresh[winner.name].harm_against.values()
    rows = [
        (name, *(_with_ends(change, harm) for change in pair))
        for name, pair in zip(
            winner.harm_against, zip(winner.harm_against.values(), again, strict=True), strict=True
        )
    ]
    columns = (f"harm of {winner.name} against", "where it was chosen", "on a fresh sample")
    note = "The first is selected: the best of several is likely overstated. Quote the second."
    return [Grid(columns, tuple(rows)), Line(note, "dim"), GAP]


def _with_ends(change: Change, measure: Measure) -> str:
    effect = numbers.signed(change.effect, measure, full=True)
    return f"{effect} ({numbers.change_interval(change, measure, full=True)})"


def _regressions(frontier: Frontier) -> list[Block]:
    """What is shown to be worse, by method; then the guardrails that are open, each with whom."""
    worse: list[Block] = []
    open_: dict[str, list[str]] = {}
    for entry, compared in frontier.compared():
        lines = compared.comparison.guardrails
        crossed = (catalog.text(line.says) for line in lines if line.state == "violated")
        every = dict.fromkeys((*catalog.texts(compared.regressions), *crossed))
        worse += [Line(f"✗ {entry.name}: {line}", "bad", 2) for line in every]
        for line in lines:
            if line.state == "inconclusive":
                open_.setdefault(_open_line(frontier, line), []).append(entry.name)
    head = "worse than the plain prompt"
    if not worse:
        head = f"{head}: inconclusive" if open_ else "no significant regression"
    undecided = [Line(f"? {line}: {', '.join(names)}", "open", 2) for line, names in open_.items()]
    return [Line(head, "strong"), *worse, *undecided]


def _open_line(frontier: Frontier, line: GuardrailTest) -> str:
    """Write an open guardrail without its numbers, so that several methods can share it."""
    measure = next((m for m in frontier.instrument.measures if m.name == line.name), None)
    if measure is None or measure.margin is None:
        return catalog.text(line.says)
    return f"inconclusive, margin {measure.margin:g} ({measure.label})"


def _verdicts(frontier: Frontier) -> list[Block]:
    if not frontier.judged():
        return [Line("no methods were named other than the reference methods", "dim")]
    blocks: list[Block] = [Line("verdict, worst first", "strong")]
    for entry, worth in frontier.judged():
        mark, tone = _VERDICTS[worth.kind]
        blocks.append(
            Line(f"{mark} {entry.name}: {worth.kind}: {catalog.text(worth.why)}", tone, 2)
        )
    return [*blocks, Line(_rule(frontier), "dim")]


def _rule(frontier: Frontier) -> str:
    instrument = frontier.instrument
    rule = f"Recommended: less harm than every reference (Holm-adjusted p ≤ {ALPHA:g})"
    if instrument.utility is not None:
        margin = instrument.measure(instrument.utility).margin
        rule += f", utility non-inferior to the plain prompt (margin {margin:g})"
    return (
        f"{rule}, and no violated guardrail. Not recommended: significantly more harm or less "
        f"utility, or a benefit of {instrument.matters:g} is ruled out. Inconclusive: neither."
    )


def _overview(frontier: Frontier) -> Grid:
    instrument = frontier.instrument
    measure_names = {"harm": instrument.harm, "utility": instrument.utility}
    measures = {
        head: instrument.measure(name) for head, name in measure_names.items() if name is not None
    }
    kinds = _spent(frontier)
    lost = {
        head: measure
        for head, measure in measures.items()
        if any(entry.report[measure.name].bounds for entry in frontier.entries)
    }
    rows = []
    for entry in frontier.entries:
        scores = [_estimate(entry, measure) for measure in measures.values()]
        bounds = [numbers.if_known(entry.report[m.name].bounds, m) for m in lost.values()]
        costs = [_mean(entry.cost[kind], kind) for kind in kinds]
        scored = entry.report.coverage.percent
        rows.append((_marked(entry), *scores, *bounds, *costs, scored))
    if_known = (f"{head} if known" for head in lost)
    units = (_unit(frontier, kind) for kind in kinds)
    columns = ("per answer (95% CI)", *measures, *if_known, *units, "scored")
    return Grid(columns, tuple(rows))


def _legend(frontier: Frontier) -> list[Block]:
    instrument = frontier.instrument
    utility = instrument.utility
    lines = [f"harm: {harm_of(instrument).label}, ideal {numbers.ideal(harm_of(instrument))}"]
    if utility is not None:
        measure = instrument.measure(utility)
        lines[0] += f"; utility: {measure.label}, ideal {numbers.ideal(measure)}"
    lines.append(
        f"{_FRONT}on the Pareto front of the estimates, missing answers counted as the worst: "
        f"least {frontier.cost_axis}, least harm"
        + (", most utility" if utility else "; utility is not measured")
        + f". “all”: all {instrument.clusters} gave this value."
    )
    return [Line(line, "dim") for line in lines]


def _measures(frontier: Frontier) -> Iterable[Block]:
    """The measures that the overview does not show, a few side by side."""
    instrument = frontier.instrument
    names = (instrument.harm, instrument.utility)
    rest = [m for m in shown_measures(instrument) if m.name not in names]
    for start in range(0, len(rest), _AT_ONCE):
        part = rest[start : start + _AT_ONCE]
        rows = tuple((_marked(e), *(_estimate(e, m) for m in part)) for e in frontier.entries)
        yield GAP
        yield Grid(("further (95% CI)", *(m.name for m in part)), rows)


def _costs(frontier: Frontier) -> list[Block]:
    kinds: list[CostKind] = [*_spent(frontier), "seconds"]
    rows = []
    for entry in frontier.entries:
        cells = [_mean(entry.cost[kind], kind, p95=True) for kind in kinds]
        rows.append((_marked(entry), *cells))
    note = (
        f"Mean with 95% CI over {frontier.instrument.clusters}, then the 95th percentile. "
        "Seconds are "
        "those of the model, added up also where calls overlapped."
    )
    columns = ("an answer costs", *(_unit(frontier, kind) for kind in kinds))
    return [Grid(columns, tuple(rows)), Line(note, "dim")]


def _against_plain(frontier: Frontier) -> list[Block]:
    harm = harm_of(frontier.instrument)
    rows, names = [], []
    for entry, compared in frontier.compared():
        change, flips = compared.harm, compared.comparison.flips
        names = list(flips)
        cells = (_change(change, harm), numbers.p_value(change.p_holm), f"{change.n:,}")
        rows.append(
            (
                entry.name,
                *cells,
                *(
                    f"{flip.fixed}/{flip.broken} p {numbers.p_value(flip.p)}"
                    for flip in flips.values()
                ),
            )
        )
    note = (
        "Over the items that both answered (n). p of sign flips over "
        f"{frontier.instrument.clusters}; that of harm after Holm over the methods."
    )
    flipped = [f"fixed/broken {name.rpartition('_')[2]}" for name in names]
    columns = ("against the plain prompt", "harm", "p", "n", *flipped)
    return [Grid(columns, tuple(rows)), Line(note, "dim")]


def _prevented(frontier: Frontier) -> list[Block]:
    counted = counted_harm(frontier.instrument)
    if counted is None:
        return [Line("no cost per harm prevented: this harm is not a count of events", "dim")]
    kinds = _paid(frontier)
    rows = []
    for entry, compared in frontier.compared():
        costs = [compared.per_prevented[kind] for kind in kinds]
        cells = [_per_prevented(cost, kind) for cost, kind in zip(costs, kinds, strict=True)]
        if len({cost.undefined for cost in costs}) == 1 and costs[0].undefined:  # the same for all
            cells = [cells[0], *("" for _ in cells[1:])]
        rows.append((entry.name, *cells))
    note = (
        f"Extra cost over the plain prompt for each answer less of: {counted.label}; with a "
        f"bootstrap interval over {frontier.instrument.clusters}."
    )
    columns = ("one prevented costs", *(_unit(frontier, kind) for kind in kinds))
    return [Grid(columns, tuple(rows)), Line(note, "dim")]


def _per_prevented(cost: PerPrevented, kind: CostKind) -> str:
    if cost.estimate is None or cost.low is None or cost.high is None:
        return cost.undefined or ""
    digits = {"calls": 1, "tokens": 0}.get(kind, 2)
    ends: Sequence[float] = [_scale(kind) * end for end in (cost.estimate, cost.low, cost.high)]
    middle, low, high = (f"{end:,.{digits}f}" for end in ends)
    return f"{middle} ({low} to {high})"


def _estimate(entry: FrontierEntry, measure: Measure) -> str:
    estimate = entry.report[measure.name]
    return numbers.plus_minus(estimate.value, estimate.low, estimate.high, measure)


def _change(change: Change, measure: Measure) -> str:
    if change.interval is None:
        return numbers.signed(change.effect, measure)
    return f"{numbers.signed(change.effect, measure)} ({numbers.change_interval(change, measure)})"


def _mean(cost: ItemCost, kind: CostKind, *, p95: bool = False) -> str:
    if cost.mean is None or cost.p95 is None:
        return "not counted"
    digits, scale = _DIGITS[kind], _scale(kind)
    has_reach = cost.low is not None and cost.high is not None and cost.low < cost.high
    reach = scale * ((cost.high or 0.0) - (cost.low or 0.0)) / 2 if has_reach else 0.0
    text = f"{scale * cost.mean:,.{digits}f}" + (f" ±{reach:,.{digits}f}" if has_reach else "")
    most = scale * cost.p95
    return f"{text}, {most:,.{digits if most % 1 else 0}f}" if p95 else text


def _paid(frontier: Frontier) -> list[CostKind]:
    """What is paid with, as far as it was priced."""
    return [kind for kind in PAID if kind != "money" or frontier.currency]


def _spent(frontier: Frontier) -> list[CostKind]:
    """What is paid with, and the texts that scorers scored where any method had some scored."""
    calls, *others = _paid(frontier)
    scored: list[CostKind] = ["scored"] * any(
        entry.cost["scored"].mean for entry in frontier.entries
    )
    return [calls, *scored, *others]


def _scale(kind: CostKind) -> int:
    """Money is given for a thousand."""
    return 1000 if kind == "money" else 1


def _unit(frontier: Frontier, kind: CostKind) -> str:
    if kind == "scored":
        return "of them scores"
    return f"{frontier.currency} for 1,000" if kind == "money" else kind


def _marked(entry: FrontierEntry) -> str:
    return (_FRONT if entry.pareto else "  ") + entry.name
