"""The page of a study of reliability has the answer first, then dependability, then where the
variance lies."""

from evenhand.findings.dependability import Dependability
from evenhand.findings.estimates import Estimate
from evenhand.findings.reliability import Reliability
from evenhand.views import numbers
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone

_CHANGED = {"seed": "another seed", "order": "another order", "wording": "another wording"}


def page(found: Reliability, *, full: bool = False) -> list[Block]:
    """Give the blocks of a study; `full` adds the variance of every measure."""
    verdict = _verdict(found)
    blocks: list[Block] = [Line(_head(found), "strong"), GAP, *verdict]
    for one in found.measures if full else found.measures[:1]:
        blocks += [GAP, *_phi(one), GAP, _parts(one)]
    if found.agreement:
        blocks += [GAP, _agreement(found.agreement)]
    blocks += [GAP, _runs(found, full)]
    if found.pairs:
        blocks += [GAP, _pairs(found)]
    last = [Line(f"next  {command}") for command in found.verdict.next]
    return [*blocks, GAP, *verdict[:1], *last]


def _head(found: Reliability) -> str:
    sizes = " × ".join(f"{n} {facet}{'s' * (n > 1)}" for facet, n in found.sizes.items())
    names = "; ".join(dict.fromkeys(one.system for one in found.runs))
    return f"{found.instrument.title} · reliability of {names} · {len(found.runs)} runs: {sizes}"


def _verdict(found: Reliability) -> list[Block]:
    shown = found.verdict.state == "shown"
    said = "DEPENDABLE." if shown else "NOT KNOWN."
    tone: Tone = "good" if shown else "open"
    first, *rest = found.verdict.says
    return [Line(f"{said} {first}", tone), *(Line(line, indent=2) for line in rest)]


def _phi(one: Dependability) -> list[Block]:
    rows = (
        ("of one run", *_both(one.one_run)),
        (f"of the mean of these runs, {one.items:,} items", *_both(one.as_run)),
        ("at least, whatever is missing: it decides", *_both(one.least)),
    )
    return [Grid(("", "Φ", "95 %"), rows, title=f"dependability of {one.measure}")]


def _both(phi: Estimate) -> tuple[str, str]:
    if phi.value is None:
        return "-", phi.undefined or ""
    ends = "-" if phi.low is None else f"{phi.low:.2f} to {phi.high:.2f}"
    return f"{phi.value:.2f}", ends


def _parts(one: Dependability) -> Grid:
    rows = tuple(
        (
            part.effect,
            f"{part.variance:.4f}{' (below 0, set to 0)' if part.negative else ''}",
            "-" if part.share is None else f"{part.share:.0%}",
        )
        for part in one.parts
    )
    return Grid(("", "variance", "of all"), rows, title=f"variance of {one.measure}")


def _agreement(found: tuple[Estimate, ...]) -> Grid:
    rows = tuple(
        (_CHANGED[one.name], numbers.value(one.value, None), numbers.interval(one, None))
        for one in found
    )
    return Grid(("the same option again with", "share", "95 %"), rows)


def _pairs(found: Reliability) -> Grid:
    rows = []
    for one in found.pairs:
        ends = "-" if None in (one.low, one.high) else f"{one.low:+.3f} to {one.high:+.3f}"
        p = f"{one.p_adjusted:.3f}" if one.p_adjusted >= 0.001 else "<0.001"
        better = one.better or "neither is shown"
        rows.append((f"{one.first} − {one.second}", f"{one.difference:+.3f}", ends, p, better))
    columns = ("systems", "difference", "95 %, all pairs together", "p (Bonferroni)", "better")
    return Grid(columns, tuple(rows), title=f"each two systems by {found.measures[0].measure}")


def _runs(found: Reliability, full: bool) -> Grid:
    rows = []
    for one in found.runs:
        levels = ("-" if value is None else str(value) for value in one.conditions.values())
        shown = one.estimates if full else one.estimates[:1]
        cells = []
        for estimate in shown:
            measure = found.instrument.measure(estimate.name)
            cells += [
                numbers.value(estimate.value, measure),
                numbers.interval(estimate, measure),
            ]
        rows.append((one.run, *levels, *cells))
    names = [
        name for one in found.measures[: None if full else 1] for name in (one.measure, "95 %")
    ]
    return Grid(("run", *found.runs[0].conditions, *names), tuple(rows))
