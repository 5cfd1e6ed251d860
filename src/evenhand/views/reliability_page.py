"""The page of a study of reliability has the answer first, then dependability, then where the
variance lies."""

from evenhand.findings.dependability import Dependability
from evenhand.findings.estimates import Estimate
from evenhand.findings.reliability import Reliability
from evenhand.views import catalog, numbers
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone

_CHANGED = {"seed": "another seed", "order": "another order", "wording": "another wording"}


def page(reliability: Reliability, *, full: bool = False) -> list[Block]:
    """Give the blocks of a study; `full` adds the variance of every measure."""
    verdict = _verdict(reliability)
    blocks: list[Block] = [Line(_head(reliability), "strong"), GAP, *verdict]
    for dependability in reliability.measures if full else reliability.measures[:1]:
        blocks += [GAP, *_phi(dependability), GAP, _parts(dependability)]
    if reliability.agreement:
        blocks += [GAP, _agreement(reliability.agreement)]
    blocks += [GAP, _runs(reliability, full)]
    if reliability.pairs:
        blocks += [GAP, _pairs(reliability)]
    last = [Line(f"next  {catalog.text(step)}") for step in reliability.verdict.next]
    return [*blocks, GAP, *verdict[:1], *last]


def _head(reliability: Reliability) -> str:
    sizes = " × ".join(f"{n} {facet}{'s' * (n > 1)}" for facet, n in reliability.sizes.items())
    names = "; ".join(dict.fromkeys(run.system for run in reliability.runs))
    return (
        f"{reliability.instrument.title} · reliability of {names} · "
        f"{len(reliability.runs)} runs: {sizes}"
    )


def _verdict(reliability: Reliability) -> list[Block]:
    is_shown = reliability.verdict.state == "shown"
    opening = "DEPENDABLE." if is_shown else "NOT KNOWN."
    tone: Tone = "good" if is_shown else "open"
    first, *rest = catalog.texts(reliability.verdict.says)
    return [Line(f"{opening} {first}", tone), *(Line(line, indent=2) for line in rest)]


def _phi(dependability: Dependability) -> list[Block]:
    rows = (
        ("of one run", *_both(dependability.one_run)),
        (f"of the mean of these runs, {dependability.items:,} items", *_both(dependability.as_run)),
        ("at least, whatever is missing: it decides", *_both(dependability.least)),
    )
    return [Grid(("", "Φ", "95 %"), rows, title=f"dependability of {dependability.measure}")]


def _both(phi: Estimate) -> tuple[str, str]:
    if phi.value is None:
        return "-", phi.undefined or ""
    ends = "-" if phi.low is None else f"{phi.low:.2f} to {phi.high:.2f}"
    return f"{phi.value:.2f}", ends


def _parts(dependability: Dependability) -> Grid:
    rows = tuple(
        (
            part.effect,
            f"{part.variance:.4f}{' (below 0, set to 0)' if part.negative else ''}",
            "-" if part.share is None else f"{part.share:.0%}",
        )
        for part in dependability.parts
    )
    return Grid(("", "variance", "of all"), rows, title=f"variance of {dependability.measure}")


def _agreement(estimates: tuple[Estimate, ...]) -> Grid:
    rows = tuple(
        (
            _CHANGED[estimate.name],
            numbers.value(estimate.value, None),
            numbers.interval(estimate, None),
        )
        for estimate in estimates
    )
    return Grid(("the same option again with", "share", "95 %"), rows)


def _pairs(reliability: Reliability) -> Grid:
    rows = []
    for pair in reliability.pairs:
        ends = "-" if None in (pair.low, pair.high) else f"{pair.low:+.3f} to {pair.high:+.3f}"
        p = f"{pair.p_adjusted:.3f}" if pair.p_adjusted >= 0.001 else "<0.001"
        better = pair.better or "neither is shown"
        rows.append((f"{pair.first} − {pair.second}", f"{pair.difference:+.3f}", ends, p, better))
    columns = ("systems", "difference", "95 %, all pairs together", "p (Bonferroni)", "better")
    return Grid(
        columns, tuple(rows), title=f"each two systems by {reliability.measures[0].measure}"
    )


def _runs(reliability: Reliability, full: bool) -> Grid:
    rows = []
    for run in reliability.runs:
        levels = ("-" if value is None else str(value) for value in run.conditions.values())
        estimates = run.estimates if full else run.estimates[:1]
        cells = []
        for estimate in estimates:
            measure = reliability.instrument.measure(estimate.name)
            cells += [
                numbers.value(estimate.value, measure),
                numbers.interval(estimate, measure),
            ]
        rows.append((run.run, *levels, *cells))
    names = [
        name
        for dependability in reliability.measures[: None if full else 1]
        for name in (dependability.measure, "95 %")
    ]
    return Grid(("run", *reliability.runs[0].conditions, *names), tuple(rows))
