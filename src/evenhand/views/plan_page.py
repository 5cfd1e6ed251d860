"""The pages of plans: of a comparison, of an audit of ratios, and of designs side by side."""

import math

from evenhand.findings.designs import Designs, ScreenDesign, Work
from evenhand.findings.gateway_plan import GatewayPlan
from evenhand.findings.measures import PairedSpread
from evenhand.findings.plan import Plan, RatioPlan
from evenhand.views import catalog
from evenhand.views.blocks import GAP, Block, Grid, Line


def page(plan: Plan) -> list[Block]:
    """The blocks of a plan."""
    measure = plan.instrument.measure(plan.measure)
    head = (
        f"to see a change of {plan.detect:g} in {measure.name} with a chance of {plan.power:.0%}"
        f", after correction for {plan.family}"
    )
    rows = tuple((_sample(plan, name), f"{mde:.2f}" if math.isfinite(mde) else "none")
                  for name, mde in plan.what_samples_can_show.items())  # fmt: skip
    return [
        Line(head, "strong"),
        *_needed(plan),
        GAP,
        Grid(("smallest change that can be seen", ""), rows),
        Line(_basis(plan), "dim"),
    ]


def gateway(plan: GatewayPlan) -> list[Block]:
    """The blocks of a plan of a gateway."""
    traffic = plan.traffic
    figures = {
        "CPU per answer, ms": (plan.cpu_ms, ".2f"),
        "cores at the peak": (plan.cores, ",.1f"),
        "share of answers that go to the agents": (plan.to_agents, ".1%"),
        "agent calls per day": (plan.calls, ",.0f"),
        "agent tokens per day": (plan.tokens, ",.0f"),
    }
    if plan.money is not None:
        figures["price per day"] = (plan.money, ",.2f")
    rows = tuple((what, *(f"{end:{form}}" for end in at)) for what, (at, form) in figures.items())
    return [
        Line(f"{plan.replicas:,} replicas of one core", "strong"),
        Grid(("", "estimate", "from", "to"), rows),
        Line(
            f"{traffic.answers_per_day:,.0f} answers per day of {traffic.characters:,} characters, "
            f"a peak of {traffic.peak:g} times the mean, cores {traffic.load:.0%} in use, screen "
            f"{traffic.screen}. CPU measured {plan.measured}: median, least and greatest; the "
            "share with its 95% CI.",
            "dim",
        ),
    ]


def _needed(plan: Plan) -> list[Block]:
    if plan.too_small is not None:
        return [Line(f"{catalog.text(plan.too_small)}.", "bad")]
    assert plan.rows is not None
    assert plan.items is not None
    what = plan.assumed.rows if isinstance(plan.assumed, PairedSpread) else "items it is about"
    rows = [] if plan.rows == plan.items else [(what, f"{plan.rows:,}")]
    rows.append(("items in all" if rows else "items", f"{plan.items:,}"))
    if plan.clusters is not None:
        rows.append((f"from so many {plan.instrument.clusters}", f"{plan.clusters:,}"))
    rows += [
        ("calls, two runs", f"{plan.calls:,.0f}"),
        ("tokens, two runs", f"{plan.tokens:,.0f}"),
    ]
    if plan.money is not None:
        rows.append(("money, two runs", f"{plan.money:,.2f}"))
    return [Grid(("", ""), tuple(rows))]


def _sample(plan: Plan, name: str) -> str:
    if isinstance(plan.assumed, PairedSpread):
        return f"{name} ({plan.assumed.samples[name][0]} {plan.assumed.rows})"
    clusters = f"{plan.assumed.clusters:,} {plan.instrument.clusters}"
    return f"{name} ({plan.assumed.items:,} items of {clusters})"


def _basis(plan: Plan) -> str:
    assumed = plan.assumed
    if isinstance(assumed, PairedSpread):
        return f"assumed: sd {assumed.sd}, correlation within a cluster {assumed.icc}"
    return (
        f"from two pilot runs: standard error {assumed.se:.4f} over {assumed.clusters:,} "
        f"{plan.instrument.clusters}. Few of them make it a rough guess."
    )


def ratio_page(plan: RatioPlan) -> list[Block]:
    """Make the blocks of a plan of ratios."""
    head = (
        f"to show with a chance of {plan.power:.0%} that one of {plan.groups} equal groups has a "
        f"ratio of {plan.ratio:g}"
    )
    if plan.rate is None:
        rows = [("rankings, with one candidate of each group", f"{plan.people:,}")]
        basis = "assumed: every ranking has new candidates in a drawn order"
    else:
        rows = [("people in each group", f"{plan.each:,}"), ("people in all", f"{plan.people:,}")]
        basis = (
            f"assumed: the others are selected at {plan.rate:g}, everybody is decided on alone, "
            "and no outcome is missing"
        )
    return [Line(head, "strong"), Grid(("", ""), tuple(rows)), Line(basis, "dim")]


_NOT_EXCHANGED = (
    "Only designs of one question may be exchanged for each other: the others answer another one."
)
_SEQUENTIAL = (
    "Sequential: the baseline is asked whole, the new run in blocks. At worst it asks what the "
    "fixed one asks, never more, and then decides less often: the price of looking."
)

_TRUE = ("no true change", "worse by one margin", "worse by two margins")


def designs_page(designs: Designs) -> list[Block]:
    """The blocks of the designs."""
    left_out = [Line(f"omitted: {catalog.text(note)}", "open") for note in designs.left_out]
    if not designs.rows:
        return [Line("No design answers a question here.", "strong"), *left_out]
    questions = dict.fromkeys(design.question for design in designs.rows)
    priced = any(design.expected.money is not None for design in designs.rows)
    columns = ("question", "design", "calls", "at worst", "tokens", *(["money"] * priced), "hours")
    return [
        *(
            Line(f"{question}: {catalog.text(designs.asks(question))}", "strong")
            for question in questions
        ),
        GAP,
        Grid(columns, tuple(_row(design, priced=priced) for design in designs.rows)),
        GAP,
        Line("what each promises", "strong"),
        *(
            Line(f"{_name(design)}: {catalog.text(design.promises)}", indent=2)
            for design in designs.rows
        ),
        *left_out,
        *(Line(note, "dim") for note in _notes(designs)),
    ]


def _row(design: ScreenDesign, *, priced: bool) -> tuple[str, ...]:
    work = design.expected
    money = "unknown" if work.money is None else f"{work.money:,.2f}"
    hours = "unknown" if work.hours is None else f"{work.hours:,.2f}"
    cells = (_asked(work), _asked(design.at_worst), _count(work.tokens), *([money] * priced), hours)
    return (design.question, _name(design), *cells)


def _name(design: ScreenDesign) -> str:
    """Name a design, and of a sequential one the true change."""
    return design.name if design.margins is None else f"{design.name}, {_TRUE[design.margins]}"


def _asked(work: Work) -> str:
    """Write the calls, or the labels where people give them."""
    return _count(work.calls) if work.labels is None or work.calls else f"{work.labels:,} labels"


def _count(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"


def _notes(designs: Designs) -> list[str]:
    lines = [_NOT_EXCHANGED]
    if designs.drawn:
        lines.append(_SEQUENTIAL)
        lines.append(
            f"Sequential rows: {designs.drawn[0].runs} runs drawn at each true change, "
            f"{designs.drawn[0].of_clusters:,} {designs.plan.instrument.clusters} of even size, "
            "with the spread that the fixed plan assumes; a share of runs is known to about 3 "
            "points."
        )
    return lines
