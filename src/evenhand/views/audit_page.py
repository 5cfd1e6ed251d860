"""The page of an audit: the answer first, what decides it, every check, and the answer again."""

from evenhand.findings.audit import Audit, AuditCheck, Audits
from evenhand.findings.estimates import NO_SPREAD, Estimate
from evenhand.views import audit_words, numbers
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone
from evenhand.views.report_page import section_blocks, section_grid

_OPENINGS: dict[str | None, tuple[str, Tone]] = {
    "pass": ("PASSES.", "good"),
    "fail": ("FAILS.", "bad"),
    "inconclusive": ("NOT KNOWN.", "open"),
    None: ("", "strong"),
}
# ✗ only where a fault is shown.
STATES: dict[str, tuple[str, Tone]] = {
    "fail": ("✗ fail", "bad"),
    "inconclusive": ("? open", "open"),
    "pass": ("✓ pass", "good"),
    "measured": ("  measured", "plain"),
    "not_measured": ("- not asked", "dim"),
}
_WORST_FIRST = tuple(STATES)
_TINY = 0.0005  # three digits would show it as 0


def page(audit: Audit, *, full: bool = False) -> list[Block]:
    """The blocks of an audit; `full` adds every table."""
    answer = opening(audit)
    blocks: list[Block] = [Line(f"{audit.kind} · {audit.title}", "strong")]
    blocks += [Line(fact) for fact in audit_words.facts(audit)]
    blocks += _missing(audit)
    blocks += [Line(f"! {audit_words.note(note)}", "open") for note in audit.notes]
    blocks += [GAP, *answer, *(Line(line, indent=2) for line in audit.says[1:])]
    blocks += [*([GAP, *checks(audit)] if audit.checks else []), *_estimates(audit)]
    sections = [section for section in audit.sections if full or section.in_short]
    for section in sections:
        blocks += [GAP, *section_blocks(section)]
    blocks += [GAP, *_money(audit)]
    if len(sections) < len(audit.sections):
        hidden = len(audit.sections) - len(sections)
        blocks.append(Line(f"{hidden} more tables: the same command with --full", "dim"))
    return [*blocks, GAP, *answer, *(Line(f"next  {command}") for command in audit.next)]


def pages(audits: Audits, *, full: bool = False) -> list[Block]:
    """The blocks of several audits, and what only shows between them."""
    blocks: list[Block] = []
    for audit in audits.audits:
        blocks += [*page(audit, full=full), GAP]
    blocks += [section_grid(section) for section in audits.sections]
    return [*blocks, *(Line(note, "open") for note in audits.notes)]


def tone(audit: Audit) -> Tone:
    """The tone of the answer as a whole."""
    return _OPENINGS[audit.state][1]


def opening(audit: Audit) -> list[Line]:
    """The answer in one line: passes, fails or not known."""
    text = f"{_OPENINGS[audit.state][0]} {audit_words.answer(audit)}".strip()
    return [Line(text, tone(audit))] if text else []


def _missing(audit: Audit) -> list[Block]:
    """What is in no figure comes before the figures."""
    if audit.coverage is None or not audit.coverage.by_reason:
        return []
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in audit.coverage.by_reason.items())
    return [Line(f"Not scored, and in no figure below: {reasons}.", "bad")]


def checks(audit: Audit) -> list[Block]:
    """Every check as a row, the worst first, and below the table what each says: a terminal of 80
    columns has no room for words after the numbers."""
    ordered = sorted(audit.checks, key=lambda check: _WORST_FIRST.index(check.state))
    optional = len({check.required for check in ordered}) > 1
    rows = tuple(_row(check, starred=optional and not check.required) for check in ordered)
    tones = tuple(STATES[check.state][1] for check in ordered)
    grid = Grid(("check", "", "value", "95 %", "must be", "n"), rows, tones)
    note: list[Block] = [Line("* not required: it may stay open", "dim")] if optional else []
    says = [(check, audit_words.of_check(audit, check)) for check in ordered]
    explained = (_said(check, text) for check, text in says if text and text not in audit.says)
    return [grid, *note, GAP, *explained]


def _row(check: AuditCheck, *, starred: bool) -> tuple[str, ...]:
    return (
        f"{check.title} *" if starred else check.title,
        STATES[check.state][0],
        _value(check),
        _interval(check),
        check.bar or ("" if check.margin is None else f"within ±{check.margin:g}"),
        f"{check.n:,}" if check.n else "",
    )


def _value(check: AuditCheck | Estimate) -> str:
    if check.value is None:
        return "-"
    tiny = 0 < abs(check.value) < _TINY
    return f"{check.value:.1e}" if tiny else f"{check.value:.3f}"


def _interval(check: AuditCheck | Estimate) -> str:
    if check.value is None:
        return ""
    alike = check.undefined == NO_SPREAD
    if check.low is None or check.high is None or check.low == check.high:
        return f"no spread in {check.clusters}" if alike else ""
    return f"{check.low:.3f} to {check.high:.3f}{' (no spread)' if alike else ''}"


def _said(check: AuditCheck, text: str) -> Block:
    label, tone = STATES[check.state]
    mark = label[0].strip()
    return Line(f"{mark} {check.title}: {text}".strip(), tone, indent=2)


def _estimates(audit: Audit) -> list[Block]:
    if not audit.estimates:
        return []
    rows = tuple(
        (
            estimate.name.replace("_", " "),
            _value(estimate),
            _interval(estimate) if estimate.value is not None else estimate.undefined or "",
            f"{estimate.n:,}" if estimate.n else "",
        )
        for estimate in audit.estimates
    )
    return [GAP, Grid(("nothing is asked of", "value", "95 %", "n"), rows)]


def _money(audit: Audit) -> list[Block]:
    if audit.money is None:
        return []
    if audit.money.cost is None or audit.money.currency is None:
        return [Line("cost  no price file (--prices FILE)", "dim")]
    return [Line(f"cost  {numbers.money(audit.money.cost, audit.money.currency)}", "dim")]
