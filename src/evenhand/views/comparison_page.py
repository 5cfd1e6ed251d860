"""The page of a comparison has the answer first, then what changed, then the guardrails, then
cost."""

from evenhand.findings.comparison import Comparison
from evenhand.findings.decision_rules import direction
from evenhand.findings.display import Remark, codes
from evenhand.findings.estimates import Change, GuardrailTest
from evenhand.findings.measures import Measure
from evenhand.views import catalog, numbers
from evenhand.views.blocks import GAP, MOST_TILES, Block, Grid, Line, Tile, Tone
from evenhand.views.report_page import section_grid

_MARKS: dict[str, tuple[str, Tone]] = {
    "improved": ("✓", "good"),
    "regressed": ("✗", "bad"),
    "inconclusive": ("?", "open"),
}
_STATES: dict[str, tuple[str, Tone]] = {
    "violated": ("✗", "bad"), "inconclusive": ("?", "open"), "non_inferior": ("✓", "good"),
}  # fmt: skip
LEGEND = Line("✗ regressed   ✓ improved   ? inconclusive", "dim")
_GUARDRAILS = {
    "violated": "violated",
    "inconclusive": "inconclusive",
    "non_inferior": "non-inferior",
}
_ADJUSTED = "Intervals and p-values are adjusted for {} comparisons ({})."
_DISTANCE = "The change of a bias score is the change of its distance from 0."
_MISSING = "Means leave out missing answers; intervals and p-values count each at its worst."


def page(comparison: Comparison, *, full: bool = False) -> list[Block]:
    """Give the blocks of a comparison; `full` adds every measure, group and table."""
    answer = verdict(comparison)
    notes = [
        Line(note, "bad") for note in (*_missing(comparison), *catalog.texts(comparison.notes))
    ]
    head = [Line(_head(comparison), "strong"), *notes, *causes(comparison)]
    blocks: list[Block] = [*head, GAP, *answer, GAP]
    blocks += [changes(comparison, comparison.primary or comparison.secondary, "", full)]
    blocks += [LEGEND, *methods(comparison)]
    if full and comparison.primary and comparison.secondary:
        title = "further metrics (exploratory, Benjamini–Hochberg-adjusted p)"
        blocks += [GAP, changes(comparison, comparison.secondary, title, full)]
    blocks += [GAP, *_guardrails(comparison, full), *flips(comparison)]
    if full:
        for column in comparison.groups:
            blocks += [GAP, groups(comparison, column)]
    for section in comparison.sections:
        if full or section.in_short:
            blocks += [GAP, section_grid(section)]
    blocks += [GAP, Line(cost(comparison), "dim")]
    if not full:
        runs = f"{comparison.before.run} {comparison.after.run}"
        blocks.append(Line(f"full output: evenhand compare {runs} --full", "dim"))
    last = [Line(f"next  {catalog.text(step)}") for step in comparison.verdict.next]
    return [*blocks, GAP, *answer[:1], *last]


def methods(comparison: Comparison) -> list[Line]:
    """Say how the intervals and p-values of the table above were made."""
    family = comparison.primary or comparison.secondary
    by_name = {measure.name: measure for measure in comparison.instrument.measures}
    notes = []
    if len(family) > 1:
        correction = "Holm" if comparison.primary else "Benjamini-Hochberg"
        notes.append(_ADJUSTED.format(len(family), correction))
    if any(change.name in by_name and by_name[change.name].null is not None for change in family):
        notes.append(_DISTANCE)
    if any(change.bounds for change in family):
        notes.append(_MISSING)
    return [Line(line, "dim") for line in notes]


def _missing(comparison: Comparison) -> list[str]:
    """Say first what is not there, of either run."""
    lines = []
    for side, left, coverage in zip(
        ("before", "after"), comparison.not_run, comparison.coverage, strict=True
    ):
        if left:
            lines.append(f"{side}: {left:,} items are not run yet, and are not compared.")
        if coverage.below_floor:
            lines.append(
                f"{side}: {coverage.percent} of the shared items could be scored: what could not "
                "may differ from what could."
            )
    return lines


def _head(comparison: Comparison) -> str:
    """Name the runs by their methods and folders, and every other setting that differs."""
    sides = " → ".join(
        f"{side.method['name']} ({side.run})" for side in (comparison.before, comparison.after)
    )
    for difference in comparison.differ:
        if difference.setting != "method" and difference.part not in ("source", "prompts"):
            sides += f" · {difference.setting} {difference.before} → {difference.after}"
    scored = [coverage.scored for coverage in comparison.coverage]
    both = "" if min(scored) == comparison.items else f", {scored[0]:,} → {scored[1]:,} scored"
    return f"{comparison.instrument.title} · {sides} · {comparison.items:,} shared items{both}"


def causes(comparison: Comparison) -> list[Line]:
    """Say where a change has no one cause: more than one thing differs, or nothing does. Another
    seed is not a cause but noise."""
    if not {difference.part for difference in comparison.differ} - {"seed"}:
        return [Line("The runs have the same settings: any change is noise.", "open")]
    causes = sorted({difference.part for difference in comparison.differ} - {"seed", "prompts"})
    if len(causes) < 2:
        return []
    names = " and ".join("model" if cause == "cast" else cause for cause in causes)
    return [Line(f"The runs differ in {names}, so a change has no single cause.", "open")]


def state(comparison: Comparison) -> tuple[str, Tone]:
    """Say in one or a few words whether it got better, worse, or neither is known."""
    if comparison.verdict.state != "detected":
        return ("IDENTICAL." if comparison.same else
                "INCONCLUSIVE." if comparison.verdict.state == "inconclusive" else
                "NO DIFFERENCE."), "open"  # fmt: skip
    worse = any(direction(c, m) == "regressed" for c, m in comparison.judged())
    better = any(direction(c, m) == "improved" for c, m in comparison.judged())
    if not worse and not any(line.state == "violated" for line in comparison.guardrails):
        return "IMPROVED.", "good"
    return ("MIXED." if better else "REGRESSED."), "bad"


def verdict(comparison: Comparison) -> list[Line]:
    """Give the answer in words: better, worse or not known, and what it rests on."""
    opening, tone = state(comparison)
    says = comparison.verdict.says
    if comparison.verdict.state == "detected":  # the guardrails are counted in the first line
        counted = (remark for remark in says if codes((remark,)) != ["comparison.guardrails"])
        first, rest = _counts(comparison), catalog.texts(tuple(counted))
    else:
        first, *rest = catalog.texts(says) or ("",)
    return [Line(f"{opening} {first}".strip(), tone), *(Line(line, indent=2) for line in rest)]


def _counts(comparison: Comparison) -> str:
    """Count the metrics that improved or regressed, and the guardrails that do not hold."""
    directions = [direction(change, measure) for change, measure in comparison.judged()]
    better, worse = directions.count("improved"), directions.count("regressed")
    role = "primary metrics" if comparison.primary else "metrics"
    total = f"of {len(directions)} {role}"
    parts = f"{better} {total} improved" if better or not worse else f"{worse} {total} regressed"
    if better and worse:
        parts += f", {worse} regressed"
    states: list[str] = [line.state for line in comparison.guardrails]
    counted = {state: states.count(state) for state in ("violated", "inconclusive")}
    guardrails = ", ".join(f"{n} {state}" for state, n in counted.items() if n)
    return f"{parts}; guardrails: {guardrails}." if guardrails else f"{parts}."


def changes(comparison: Comparison, family: tuple[Change, ...], title: str, full: bool) -> Grid:
    """Make the table of some changes, each marked as improved, regressed or inconclusive.

    Args:
        comparison: The comparison that the changes belong to.
        family: The changes to list.
        title: The title of the table.
        full: Whether to add counts and more digits.
    """
    more = ("n", comparison.instrument.clusters) if full else ()
    lost = any(change.bounds for change in family)
    rows, tones = [], []
    for change in family:
        measure = next((m for m in comparison.instrument.measures if m.name == change.name), None)
        sign, tone = mark(change, measure) if measure else ("", "plain")
        label = measure.label if measure else change.name.replace("_", " ")
        cells = (
            f"{sign} {label}".strip(),
            numbers.value(change.before, measure, full=full),
            numbers.value(change.after, measure, full=full),
            numbers.signed(change.effect, measure, full=full),
            numbers.change_interval(change, measure, full=full),
            *((numbers.if_known(change.bounds, measure, full=full),) if lost else ()),
        )
        rest = (f"{change.n:,}", f"{change.clusters:,}")
        rows.append((*cells, numbers.p_value(change.p_adjusted), *(rest if full else ())))
        tones.append(tone)
    bounds_column = ("worst-case bounds",) if lost else ()
    columns = ("", "before", "after", "change", "95% CI", *bounds_column, "p", *more)
    return Grid(columns, tuple(rows), tuple(tones), title)


def _ends(change: Change, measure: Measure) -> str:
    """Write the interval of a change, or why there is none."""
    ends = numbers.change_interval(change, measure)
    is_interval = change.interval is not None and change.clusters != 1
    return f"95% CI {ends}" if is_interval else ends


_BY_TONE: dict[Tone, int] = {"bad": 0, "good": 1}


def tiles(comparison: Comparison) -> tuple[Tile, ...]:
    """Return the numbers to remember: regressions, then improvements, then open changes."""
    tiles = [
        Tile(
            label=measure.label,
            value=f"{numbers.value(change.before, measure)} → "
            f"{numbers.value(change.after, measure)}",
            detail=f"{numbers.signed(change.effect, measure)}, {_ends(change, measure)}",
            tone=mark(change, measure)[1],
        )
        for change, measure in comparison.judged()
        if change.difference is not None
    ]
    return tuple(sorted(tiles, key=lambda tile: _BY_TONE.get(tile.tone, 2))[:MOST_TILES])


def mark(change: Change, measure: Measure) -> tuple[str, Tone]:
    """Give the sign of a change that is shown to be better, worse, or neither."""
    return _MARKS[direction(change, measure)]


def _guardrails(comparison: Comparison, full: bool) -> list[Block]:
    states: list[str] = [line.state for line in comparison.guardrails]
    counts = ", ".join(f"{states.count(state)} {word}" for state, word in _GUARDRAILS.items())
    blocks: list[Block] = [Line(f"guardrails (one-sided 97.5% bounds): {counts}", "strong")]
    for line in comparison.guardrails:
        sign, tone = _STATES[line.state]
        if full or line.state != "non_inferior":
            blocks.append(Line(f"{sign} {catalog.text(line.says)}", tone, indent=2))
    held = [_guarded(line) for line in comparison.guardrails if line.state == "non_inferior"]
    if held and not full:
        blocks.append(Line(f"✓ non-inferior: {', '.join(held)}", "dim", indent=2))
    return blocks


def _guarded(line: GuardrailTest) -> str:
    """Name what a guardrail is about."""
    says = line.says
    return str(says.values.get("measure", line.name)) if isinstance(says, Remark) else line.name


def flips(comparison: Comparison) -> list[Block]:
    """Say how many answers were broken and how many fixed."""
    if not comparison.flips:
        return []
    lines = [
        f"answers, {comparison.instrument.measure(name).label}: {flip.fixed:,} fixed, "
        f"{flip.broken:,} broken (p {numbers.p_value(flip.p)}, not adjusted)"
        for name, flip in comparison.flips.items()
    ]
    return [Line(line, "dim", indent=2) for line in lines]


def groups(comparison: Comparison, column: str) -> Grid:
    """Give the table of what changed in each group of one column."""
    rows = []
    for value, changes in comparison.groups[column].items():
        cells = []
        for change in changes:
            measure = comparison.instrument.measure(change.name)
            worse = change.name in comparison.regressions.get(value, ())
            cells.append(numbers.signed(change.effect, measure) + " ✗" * worse)
        rows.append((value, *cells))
    names = [change.name for change in comparison.primary]
    return Grid((column, *names), tuple(rows), title=f"change by {column}")


def cost(comparison: Comparison) -> str:
    """Say what an answer costs, before and after."""
    old, new = comparison.cost
    parts = []
    for name, digits in (("calls", 1), ("tokens", 0)):
        before, after = getattr(old, name).mean, getattr(new, name).mean
        if before is None or after is None:
            continue
        if comparison.repairs:
            parts.append(f"{after:,.{digits}f} {name}")
            continue
        times = f" ({after / before:.1f} times)" if before else ""
        parts.append(f"{before:,.{digits}f} → {after:,.{digits}f} {name}{times}")
    label = "added cost per answer" if comparison.repairs else "cost per answer"
    return f"{label}  {', '.join(parts) or 'not counted'}"
