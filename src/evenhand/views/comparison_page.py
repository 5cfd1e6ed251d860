"""The page of a comparison has the answer first, then what changed, then the red lines, then
cost."""

from evenhand.findings.comparison import Comparison
from evenhand.findings.decision_rules import direction
from evenhand.findings.estimates import Change
from evenhand.findings.measures import Measure
from evenhand.findings.report import Side
from evenhand.views import numbers
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone
from evenhand.views.report_page import section_grid

_MARKS: dict[str, tuple[str, Tone]] = {
    "better": ("✓", "good"),
    "worse": ("✗", "bad"),
    "open": ("?", "open"),
}
_STATES: dict[str, tuple[str, Tone]] = {
    "crossed": ("✗", "bad"), "open": ("?", "open"), "kept": ("✓", "good"),
}  # fmt: skip
LEGEND = Line("✗ shown worse   ✓ shown better   ? not shown", "dim")
_ADJUSTED = "Intervals and p are adjusted for {} comparisons ({})."
_DISTANCE = "Of a bias score the change is that of its distance from the unbiased value."
_MISSING = "Missing answers are counted against every claim."


def page(found: Comparison, *, full: bool = False) -> list[Block]:
    """Give the blocks of a comparison; `full` adds every measure, group and table."""
    said = verdict(found)
    notes = [Line(note, "bad") for note in (*_missing(found), *found.notes)]
    head = [Line(_head(found), "strong"), *notes, *causes(found)]
    blocks: list[Block] = [*head, GAP, *said, GAP]
    blocks += [changes(found, found.primary or found.secondary, "", full)]
    blocks += [LEGEND, *methods(found)]
    if full and found.primary and found.secondary:
        title = "further (exploratory: p after Benjamini-Hochberg)"
        blocks += [GAP, changes(found, found.secondary, title, full)]
    blocks += [GAP, *_red_lines(found, full), *flips(found)]
    if full:
        for column in found.groups:
            blocks += [GAP, groups(found, column)]
    for section in found.sections:
        if full or section.in_short:
            blocks += [GAP, section_grid(section)]
    blocks += [GAP, Line(_cost(found), "dim")]
    if not full:
        runs = f"{found.before.run} {found.after.run}"
        blocks.append(Line(f"all of it: evenhand compare {runs} --full", "dim"))
    last = [Line(f"next  {command}") for command in found.verdict.next]
    return [*blocks, GAP, *said[:1], *last]


def methods(found: Comparison) -> list[Line]:
    """Say how the intervals and p-values of the table above were made."""
    family = found.primary or found.secondary
    known = {one.name: one for one in found.instrument.measures}
    said = []
    if len(family) > 1:
        correction = "Holm" if found.primary else "Benjamini-Hochberg"
        said.append(_ADJUSTED.format(len(family), correction))
    if any(one.name in known and known[one.name].null is not None for one in family):
        said.append(_DISTANCE)
    if any(one.bounds for one in family):
        said.append(_MISSING)
    return [Line(line, "dim") for line in said]


def _missing(found: Comparison) -> list[str]:
    """Say first what is not there, of either run."""
    lines = []
    for side, left, seen in zip(("before", "after"), found.not_run, found.coverage, strict=True):
        if left:
            lines.append(f"{side}: {left:,} items are not run yet, and are not compared.")
        if seen.below_floor:
            lines.append(
                f"{side}: {seen.percent} of the shared items could be scored: what could not "
                "may differ from what could."
            )
    return lines


def _head(found: Comparison) -> str:
    """Name the runs by their methods and folders, and every other setting that differs."""
    sides = " → ".join(_named(side) for side in (found.before, found.after))
    for one in found.differ:
        if one.setting != "method" and one.part not in ("source", "prompts"):
            sides += f" · {one.setting} {one.before} → {one.after}"
    return f"{found.instrument.title} · {sides} · {found.items:,} items asked in both"


def causes(found: Comparison) -> list[Line]:
    """Say where a change has no one cause: more than one thing differs, or nothing does. Another
    seed is no cause, it is noise."""
    if not {one.part for one in found.differ} - {"seed"}:
        return [Line("The runs differ in nothing but chance: what changed is noise.", "open")]
    causes = sorted({one.part for one in found.differ} - {"seed", "prompts"})
    if len(causes) < 2:
        return []
    named = " and ".join("model" if one == "cast" else one for one in causes)
    return [
        Line(f"The runs differ in {named}: a change cannot be put down to one of these.", "open")
    ]


def _named(side: Side) -> str:
    return f"{side.method['name']} ({side.run})"


def state(found: Comparison) -> tuple[str, Tone]:
    """Say in one or a few words whether it got better, worse, or neither is known."""
    if found.verdict.state != "shown":
        return ("THE SAME." if found.same else "NOT KNOWN." if found.verdict.state == "not known"
                else "NO DIFFERENCE."), "open"  # fmt: skip
    worse = any(direction(c, m) == "worse" for c, m in found.judged())
    better = any(direction(c, m) == "better" for c, m in found.judged())
    if not worse and not any(line.state == "crossed" for line in found.red_lines):
        return "BETTER.", "good"
    return ("BETTER IN PART, WORSE IN PART." if better else "WORSE."), "bad"


def verdict(found: Comparison) -> list[Line]:
    """Give the answer in words: better, worse or not known, and what it rests on."""
    said, tone = state(found)
    first, *rest = found.verdict.says or ("",)
    return [Line(f"{said} {first}".strip(), tone), *(Line(line, indent=2) for line in rest)]


def changes(found: Comparison, family: tuple[Change, ...], title: str, full: bool) -> Grid:
    """Give the table of some changes, each marked as better, worse or open."""
    more = ("n", found.instrument.clusters) if full else ()
    lost = any(change.bounds for change in family)
    rows, tones = [], []
    for change in family:
        measure = _measure(found, change)
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
    known = ("if the missing were known",) if lost else ()
    columns = ("", "before", "after", "change", "95% CI", *known, "p", *more)
    return Grid(columns, tuple(rows), tuple(tones), title)


def mark(change: Change, measure: Measure) -> tuple[str, Tone]:
    """Give the sign of a change that is shown to be better, worse, or neither."""
    return _MARKS[direction(change, measure)]


def _measure(found: Comparison, change: Change) -> Measure | None:
    return next((m for m in found.instrument.measures if m.name == change.name), None)


def _red_lines(found: Comparison, full: bool) -> list[Block]:
    crossed = sum(1 for line in found.red_lines if line.state == "crossed")
    blocks: list[Block] = [Line(f"red lines crossed: {crossed or 'none shown'}", "strong")]
    for line in found.red_lines:
        sign, tone = _STATES[line.state]
        if full or line.state != "kept":
            blocks.append(Line(f"{sign} {line.says}", tone, indent=2))
    return blocks


def flips(found: Comparison) -> list[Block]:
    """Say how many answers were broken and how many fixed."""
    if not found.flips:
        return []
    said = [
        f"{found.instrument.measure(name).label}: {one.broken:,} broken, {one.fixed:,} fixed "
        f"(p {numbers.p_value(one.p)})"
        for name, one in found.flips.items()
    ]
    return [Line(line, "dim", indent=2) for line in said]


def groups(found: Comparison, column: str) -> Grid:
    """Give the table of what changed in each group of one column."""
    rows = []
    for value, changes in found.groups[column].items():
        cells = []
        for change in changes:
            measure = found.instrument.measure(change.name)
            worse = change.name in found.regressions.get(value, ())
            cells.append(numbers.signed(change.effect, measure) + " ✗" * worse)
        rows.append((value, *cells))
    names = [one.name for one in found.primary]
    return Grid((column, *names), tuple(rows), title=f"change by {column}")


def _cost(found: Comparison) -> str:
    old, new = found.cost
    parts = []
    for name, digits in (("calls", 1), ("tokens", 0)):
        before, after = getattr(old, name).mean, getattr(new, name).mean
        if before is None or after is None:
            continue
        times = f" ({after / before:.1f} times)" if before else ""
        parts.append(f"{before:,.{digits}f} → {after:,.{digits}f} {name}{times}")
    return f"cost an answer  {', '.join(parts) or 'not counted'}"
