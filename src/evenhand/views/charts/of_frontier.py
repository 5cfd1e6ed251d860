"""The charts of a frontier: harm against utility, and what an answer of each method costs."""

from collections.abc import Iterator

from evenhand.findings.cost_effectiveness import harm_of
from evenhand.findings.estimates import Estimate
from evenhand.findings.frontier import VOTE, Frontier, FrontierEntry
from evenhand.findings.item_cost import KINDS, CostKind, ItemCost
from evenhand.views.charts import Chart
from evenhand.views.charts.forest import ForestPanel, ForestRow, forest
from evenhand.views.charts.of_report import DASHED, bounds_of
from evenhand.views.charts.scatter import Axis, AxisValue, Dot, scatter

_BETTER = {
    "lower": " (lower is better)",
    "higher": " (higher is better)",
    "zero": " (0 is best)",
    "fifty": " (50 is best)",
    "none": "",
}
_CORNER = ("lower", "higher")
_DIGITS: dict[CostKind, int] = {"calls": 2, "tokens": 0, "seconds": 2, "money": 2, "scored": 2}


def charts(frontier: Frontier) -> tuple[Chart, ...]:
    """Draw a frontier."""
    return (*front(frontier), *_costs(frontier))


def front(frontier: Frontier) -> Iterator[Chart]:
    """Draw harm across, and utility up, or cost where no utility is measured."""
    dots = [dot for entry in frontier.entries if (dot := _dot(frontier, entry))]
    if not dots:
        return
    harm, utility = harm_of(frontier.instrument), frontier.instrument.utility
    up = Axis(title=f"{_unit(frontier, frontier.cost_axis)} an answer")
    title = "Harm against cost: utility is not measured"
    if utility is not None:
        measure = frontier.instrument.measure(utility)
        up = Axis(title=f"{measure.label}{_BETTER[measure.better]}", within=measure.within)
        title = "Harm against utility, and what an answer costs"
    across = Axis(title=f"{harm.label}{_BETTER[harm.better]}", within=harm.within)
    legend = [
        f"◆ on the Pareto front of cost, harm and utility, ● behind it. Bars: 95% CIs over "
        f"{frontier.instrument.clusters}.",
        f"In brackets: {_unit(frontier, frontier.cost_axis)} an answer. Dotted: votes, "
        "×n of n calls.",
    ]
    if (
        utility is not None
        and (harm.better, frontier.instrument.measure(utility).better) == _CORNER
    ):
        legend.append("The best place is the upper left.")
    legend += [DASHED] if any(dot.x.bounds or dot.y.bounds for dot in dots) else []
    left = [entry.name for entry in frontier.entries if _dot(frontier, entry) is None]
    legend += [f"{len(left)} without a value on one axis are left out."] if left else []
    yield scatter("frontier", title, dots, (across, up), legend)


def _dot(frontier: Frontier, entry: FrontierEntry) -> Dot | None:
    cost, utility = entry.cost[frontier.cost_axis], frontier.instrument.utility
    x = _reading(entry.report[harm_of(frontier.instrument).name])
    y = _reading(entry.report[utility]) if utility is not None else _paid(cost, frontier.cost_axis)
    if x is None or y is None:
        return None
    paid = _amount(cost.mean, frontier.cost_axis)
    votes = entry.name == VOTE or entry.role == "vote"
    return Dot(
        label=f"{entry.name.replace('self_consistency:calls=', '×')} ({paid})",
        x=x,
        y=y,
        says=f"harm {x.value:.2f}, {'utility' if utility else 'cost'} {y.value:.2f}, {paid} "
        f"{_unit(frontier, frontier.cost_axis)} an answer{', on the front' * entry.pareto}",
        first=entry.pareto,
        joined=cost.mean if votes else None,
    )


def _reading(estimate: Estimate) -> AxisValue | None:
    if estimate.value is None:
        return None
    ends = (None, None) if estimate.clusters == 1 else (estimate.low, estimate.high)
    return AxisValue(value=estimate.value, low=ends[0], high=ends[1], bounds=bounds_of(estimate))


def _paid(cost: ItemCost, kind: CostKind) -> AxisValue | None:
    if cost.mean is None:
        return None
    return AxisValue(value=_scaled(cost.mean, kind), low=cost.low and _scaled(cost.low, kind),
                     high=cost.high and _scaled(cost.high, kind))  # fmt: skip


def _scaled(amount: float, kind: CostKind) -> float:
    """Money is given for a thousand."""
    return 1000 * amount if kind == "money" else amount


def _unit(frontier: Frontier, kind: CostKind) -> str:
    return f"{frontier.currency} for 1,000" if kind == "money" else kind


def _amount(amount: float | None, kind: CostKind) -> str:
    return "not counted" if amount is None else f"{_scaled(amount, kind):,.{_DIGITS[kind]}f}"


def _costs(frontier: Frontier) -> Iterator[Chart]:
    """What an answer costs on average, each kind of cost on its own axis."""
    panels = []
    for kind in KINDS:
        rows = [_cost_row(entry, kind) for entry in frontier.entries]
        if any(row.value for row in rows):
            panels.append(
                ForestPanel(rows=rows, axis="", title=_unit(frontier, kind), from_zero=True)
            )
    if panels:
        legend = [f"Bars: 95% CIs of the mean over {frontier.instrument.clusters}; "
                  "hollow: the same in all."]  # fmt: skip
        yield forest("cost", "What an answer costs on average", panels, legend)


def _cost_row(entry: FrontierEntry, kind: CostKind) -> ForestRow:
    cost = entry.cost[kind]
    paid = _paid(cost, kind)
    spread = paid is not None and paid.low != paid.high
    ends = f" ({_amount(cost.low, kind)} to {_amount(cost.high, kind)})" if spread else ""
    return ForestRow(
        label=entry.name,
        value=paid.value if paid else None,
        low=paid.low if paid and spread else None,
        high=paid.high if paid and spread else None,
        says=f"{_amount(cost.mean, kind)}{ends}",
    )
