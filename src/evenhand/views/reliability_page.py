"""The pages of runs that were repeated: how dependable a score is, and mean and spread."""

from evenhand.findings.dependability import Dependability
from evenhand.findings.estimates import Estimate, if_known
from evenhand.findings.measures import Measure
from evenhand.findings.reliability import Reliability
from evenhand.findings.repeats import RepeatedNumber, Repeats
from evenhand.findings.report import ALL
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
    is_shown = reliability.verdict.state == "detected"
    opening = "DEPENDABLE." if is_shown else "INCONCLUSIVE."
    tone: Tone = "good" if is_shown else "open"
    first, *rest = catalog.texts(reliability.verdict.says)
    return [Line(f"{opening} {first}", tone), *(Line(line, indent=2) for line in rest)]


def _phi(dependability: Dependability) -> list[Block]:
    rows = (
        ("of one run", *_both(dependability.one_run)),
        (f"of the mean of these runs, {dependability.items:,} items", *_both(dependability.as_run)),
        ("at least, whatever is missing: it decides", *_both(dependability.least)),
    )
    return [Grid(("", "Φ", "95% CI"), rows, title=f"dependability of {dependability.measure}")]


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
    return Grid(("the same option again with", "share", "95% CI"), rows)


def _pairs(reliability: Reliability) -> Grid:
    rows = []
    for pair in reliability.pairs:
        ends = "-" if None in (pair.low, pair.high) else f"{pair.low:+.3f} to {pair.high:+.3f}"
        better = pair.better or "neither is shown"
        rows.append(
            (
                f"{pair.first} − {pair.second}",
                f"{pair.difference:+.3f}",
                ends,
                numbers.p_value(pair.p_adjusted),
                better,
            )
        )
    columns = ("systems", "difference", "95% CI (simultaneous)", "p (Bonferroni)", "better")
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
        for name in (dependability.measure, "95% CI")
    ]
    return Grid(("run", *reliability.runs[0].conditions, *names), tuple(rows))


_MEANING = (
    "mean ± standard deviation over runs (n − 1): how far a repeat moves a number. It says nothing "
    "about other items: `evenhand report RUN` has the intervals."
)


def repeats_page(repeats: Repeats, *, full: bool = False) -> list[Block]:
    """Give the blocks; `full` adds the measures that are neither primary nor guarded."""
    runs = sum(len(setting.runs) for setting in repeats.settings)
    head = f"{repeats.instrument.title} · {len(repeats.settings)} settings · {runs} runs"
    blocks: list[Block] = [Line(head, "strong")]
    blocks += [Line(line, "bad") for setting in repeats.settings for line in setting.warnings]
    for measure in repeats.instrument.measures:
        if full or measure.role != "secondary":
            blocks += [GAP, _table(repeats, measure)]
    return [*blocks, GAP, Line(_MEANING, "dim")]


def _table(repeats: Repeats, measure: Measure) -> Grid:
    columns = [ALL]
    for grouping in repeats.instrument.groups:
        if measure.name in grouping.measures:
            present = {n.group: None for setting in repeats.settings for n in setting.numbers
                       if n.name == measure.name and n.group != ALL}  # fmt: skip
            columns += grouping.ordered(list(present))
            break  # our choice: by the first grouping alone; a file has all
    rows = tuple(
        (
            setting.name,
            str(len(setting.runs)),
            *(_cell(setting.number(measure.name, c), measure) for c in columns),
        )
        for setting in repeats.settings
    )
    return Grid(("", "runs", *columns), rows, title=measure.label)


def _cell(number: RepeatedNumber | None, measure: Measure) -> str:
    if number is None or number.mean is None:
        return "-"
    mean = numbers.value(number.mean, measure, full=True)
    text = mean if number.sd is None else f"{mean} ± {numbers.spread(number.sd, measure)}"
    bounds = if_known(number.bounds, lambda end: numbers.value(end, measure, full=True))
    return text if not bounds else f"{text} ({bounds})"
