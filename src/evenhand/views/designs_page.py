"""The page of designs side by side: one table of what each takes, then what each promises."""

from evenhand.findings.designs import Designs, ScreenDesign, Work
from evenhand.views import catalog
from evenhand.views.blocks import GAP, Block, Grid, Line

_NOT_EXCHANGED = (
    "Only designs of one question may be exchanged for each other: the others answer another one."
)
_SEQUENTIAL = (
    "Sequential: the baseline is asked whole, the new run in blocks. At worst it asks what the "
    "fixed one asks, never more, and then decides less often: the price of looking."
)

_TRUE = ("no true change", "worse by one margin", "worse by two margins")


def page(designs: Designs, *, full: bool = False) -> list[Block]:
    """The blocks of the designs; there is no longer form of them."""
    del full
    left_out = [
        Line(f"not in the table: {catalog.text(note)}", "open") for note in designs.left_out
    ]
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
    money = "not known" if work.money is None else f"{work.money:,.2f}"
    hours = "not known" if work.hours is None else f"{work.hours:,.2f}"
    cells = (_asked(work), _asked(design.at_worst), _count(work.tokens), *([money] * priced), hours)
    return (design.question, _name(design), *cells)


def _name(design: ScreenDesign) -> str:
    """Name a design, and of a sequential one the true change."""
    return design.name if design.margins is None else f"{design.name}, {_TRUE[design.margins]}"


def _asked(work: Work) -> str:
    """Write the calls, or the labels where people give them."""
    return _count(work.calls) if work.labels is None or work.calls else f"{work.labels:,} labels"


def _count(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.0f}"


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
