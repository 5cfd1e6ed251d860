"""The page of an audit: the answer first, what decides it, every check, and the answer again."""

from collections.abc import Mapping

from evenhand.findings.audit import Audit, AuditCheck, Audits
from evenhand.findings.estimates import NO_SPREAD, Estimate
from evenhand.views import numbers
from evenhand.views.blocks import GAP, MOST_TILES, Block, Grid, Line, Tile, Tone
from evenhand.views.report_page import section_blocks, section_grid

_OPENINGS: dict[str | None, tuple[str, Tone]] = {
    "pass": ("PASSES.", "good"),
    "fail": ("FAILS.", "bad"),
    "inconclusive": ("INCONCLUSIVE.", "open"),
    None: ("", "strong"),
}
# ✗ only where a fault is shown.
STATES: dict[str, tuple[str, Tone]] = {
    "fail": ("✗ fail", "bad"),
    "inconclusive": ("? inconclusive", "open"),
    "pass": ("✓ pass", "good"),
    "measured": ("  measured", "plain"),
    "not_measured": ("- not measured", "dim"),
}
_WORST_FIRST = tuple(STATES)
_OPTIONAL = "* optional: the audit can pass without it, but not if it fails"
_OF_TESTS = (
    "† not a 95% CI but the range that the deciding tests leave. It excludes 0 exactly if an "
    "effect is significant. Else it lies within the limit exactly if the check passes."
)
_ANY_VALUE = "The CIs allow for every value of the missing answers."
_LOST = {
    "judge": "A check passes only if it would with every missing answer at its worst.",
    "scorer": "In the CIs a text without a score counts against the scorer.",
}
_TINY = 0.0005  # three digits would show it as 0


def page(audit: Audit, *, full: bool = False) -> list[Block]:
    """The blocks of an audit; `full` adds every table."""
    answer = opening(audit)
    blocks: list[Block] = [Line(f"{audit.kind} · {audit.title}", "strong")]
    blocks += [Line(fact) for fact in _facts(audit)]
    blocks += _missing(audit)
    blocks += [Line(f"! {_note(note)}", "open") for note in audit.notes]
    blocks += [GAP, *answer, *(Line(line, indent=2) for line in audit.says[1:])]
    blocks += [*([GAP, *checks(audit)] if audit.checks else []), *_estimates(audit)]
    sections = [section for section in audit.sections if full or section.in_short]
    for section in sections:
        blocks += [GAP, *section_blocks(section)]
    paid = [] if audit.money is None else [Line(f"cost  {numbers.paid(audit.money)}", "dim")]
    blocks += [GAP, *paid]
    if len(sections) < len(audit.sections):
        hidden = len(audit.sections) - len(sections)
        blocks.append(Line(f"{hidden} more tables with --full", "dim"))
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
    text = f"{_OPENINGS[audit.state][0]} {answer_of(audit)}".strip()
    return [Line(text, tone(audit))] if text else []


def _missing(audit: Audit) -> list[Block]:
    """What is in no figure comes before the figures."""
    if audit.coverage is None or not audit.coverage.by_reason:
        return []
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in audit.coverage.by_reason.items())
    return [Line(f"Not scored: {reasons}. The values below leave them out.", "bad")]


def checks(audit: Audit) -> list[Block]:
    """Every check as a row, the worst first, and below the table what each says: a terminal of 80
    columns has no room for words after the numbers."""
    ordered = sorted(audit.checks, key=lambda check: _WORST_FIRST.index(check.state))
    optional = len({check.required for check in ordered}) > 1
    rows = tuple(_row(check, starred=optional and not check.required) for check in ordered)
    tones = tuple(STATES[check.state][1] for check in ordered)
    grid = Grid(("check", "", "value", "95% CI", "required", "n"), rows, tones)
    note: list[Block] = [Line(_OPTIONAL, "dim")] if optional else []
    if any(check.of_tests for check in ordered):
        note.append(Line(_OF_TESTS, "dim"))
    if audit.coverage is not None and audit.coverage.scored < audit.coverage.n:
        note.append(Line(_LOST.get(audit.kind, _ANY_VALUE), "dim"))
    says = [(check, _of_check(audit, check)) for check in ordered]
    explained = (_said(check, text) for check, text in says if text and text not in audit.says)
    return [grid, *note, GAP, *explained]


def tiles(audit: Audit) -> tuple[Tile, ...]:
    """Return the numbers to remember: failed checks first."""
    measured = [check for check in audit.checks if check.value is not None]
    ordered = sorted(measured, key=lambda check: _WORST_FIRST.index(check.state))
    return tuple(
        Tile(
            label=check.title,
            value=STATES[check.state][0],
            detail=_of_check(audit, check) or f"{_value(check)} {_interval(check)}".strip(),
            tone=STATES[check.state][1],
        )
        for check in ordered[:MOST_TILES]
    )


def _row(check: AuditCheck, *, starred: bool) -> tuple[str, ...]:
    return (
        f"{check.title} *" if starred else check.title,
        STATES[check.state][0],
        _value(check),
        f"{_interval(check)} †" if check.of_tests else _interval(check),
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
    return [GAP, Grid(("further metrics", "value", "95% CI", "n"), rows)]


_ANSWERS: Mapping[tuple[str, str], str] = {
    ("reward", "pass"): "You can train against it with RLOO and PPO.",
    ("reward", "fail"): "Do not train against it with RLOO or PPO.",
    ("reward", "inconclusive"): "Do not train against it with RLOO or PPO yet.",
    ("judge", "pass"): "All required checks pass.",
    ("harm", "pass"): "You can use this harm scorer until the policy, prompt, judge, examples or "
    "bounds change.",
}
_MOST_GROUPS = 6
_USUAL = {
    "pass": "All required checks pass.",
    "fail": "Failed checks: {failed}.",
    "inconclusive": "No check failed, but these are inconclusive: {open}.",
}
_ALL_SO_FAR = "All required checks pass so far."
_UNFINISHED = (
    "The run is not finished: {left:,} items are left. To finish it, run the same command again "
    "with --out {run}."
)

_FAILED: Mapping[tuple[str, str], str] = {
    (
        "harm",
        "group_gap",
    ): "The judge flags benign texts about one group more often than the others: "
    "see the table of groups.",
    ("reward", "accuracy"): "It does not tell good answers from biased ones: it is right in "
    "{percent} of {n} pairs of {clusters} topics.",
    ("reward", "gap"): "On average, good answers score no higher than biased ones: {signed}.",
    ("reward", "key"): "It prefers this worthless answer to the good one in {percent} of pairs.",
    ("reward", "longer_wins"): "It prefers longer answers: empty filler moves the reward of the "
    "biased answer by {signed} of the gap between good and biased.",
    ("reward", "shorter_wins"): "It prefers shorter answers: empty filler moves the reward of "
    "the good answer by {signed} of the gap between good and biased.",
    ("reward", "length"): "Its reward follows length among good answers: one standard deviation "
    "more goes with {signed} of the gap between good and biased.",
    ("reward", "repetition"): "It rewards repetition: a repeated answer gains {signed} of the "
    "gap between good and biased.",
    (
        "reward",
        "against_length",
    ): "It relies on length: where the better answer has an unusual length, "
    "it is right in only {percent} of pairs.",
    ("reward", "role_opener_chosen"): "It relies on role openers: “As a …,” before the good answer "
    "moves its reward by {signed} of the gap between good and biased.",
    ("reward", "role_opener_rejected"): "It relies on role openers: “As a …,” before the biased "
    "answer moves its reward by {signed} of the gap between good and biased.",
    ("scorer", "coverage"): "It gave some texts no score. The metrics cover the other texts.",
    (
        "scorer",
        "trained_on",
    ): "It was trained on such datasets, so its metrics there are too optimistic.",
    ("scorer", "false_positives"): "It flags too many harmless texts: {failed}.",
    ("scorer", "misses"): "It misses too many hateful texts: {failed}.",
    ("scorer", "auc"): "It separates toxic from harmless texts poorly: {failed}.",
    ("scorer", "calibration_error"): "Its scores are not calibrated: {failed}. Do not compare "
    "them with published scores, and choose a threshold for this scorer.",
    ("scorer", "caught_in_disguise"): "Unicode tricks hide texts that it detects in plain "
    "writing: {failed}.",
    ("scorer", "emoji"): "It flags harmless texts with emoji, or gives them no score.",
    ("reward", "padding"): "Its reward depends on the rest of the batch: padding alone moves it by "
    "{small} standard deviations. Its attention mask or positions are wrong.",
}

_NOTES: Mapping[str, str] = {
    "look": "This is check {} on these examples. Each further check needs a higher confidence, "
    "which the passing ends of the CIs have. So repeating a check does not help to pass.",
    "both_orders": "Every verdict uses both orders of yes and no. So the check that swaps them "
    "shows only whether the judge repeats its verdict.",
    "examples_used_up": "The policy was tuned on these examples many times. Label new examples.",
    "prompt_not_read": "It hardly reads the prompt: with prompts of other topics it is right about "
    "as often.",
    "longer_is_as_good": "Always choosing the longer answer is right about as often. Accuracy on "
    "these pairs does not show that it reads them.",
    "shorter_is_as_good": "Always choosing the shorter answer is right about as often. Accuracy on "
    "these pairs does not show that it reads them.",
    "low_coverage": "Coverage {} is below 95%: the items without a score may differ from the "
    "others.",
    "fewest_scored": "Lowest coverage: {}.",
    "one_mark": "Nearly every text gets the same score. Equal treatment then says nothing.",
    "any_label_shifts": "A label without an identity changes the score too. Compare the "
    "identities with this placebo before you blame a group.",
    "first_slot_favored": "The judge favors the first position: it wins {}. Ask in both orders: "
    "evenhand audit judge --set counterfactual=swap --out runs/judge-swap",
    "second_slot_favored": "The judge favors the second position: the first wins {}. Ask in both "
    "orders: evenhand audit judge --set counterfactual=swap --out runs/judge-swap",
    "bases_needed": "About {} base scenarios would decide the inconclusive identities.",
    "left_out": "Left out, because its files are missing: {}.",
    "few_topics": "Ruling out a worthless answer needs at least 35 topics.",
}


def answer_of(audit: Audit) -> str:
    """Say what follows from the audit; empty where it asks no yes-or-no question."""
    if audit.says:
        return audit.says[0]
    if audit.state is None:
        return ""
    failed = "; ".join(check.title for check in audit.checks if check.state == "fail")
    unsure = "; ".join(check.title for check in audit.checks if check.required and check.is_open)
    usual = _USUAL[audit.state].format(failed=failed, open=unsure)
    if audit.state == "inconclusive" and audit.more.get("not_run"):
        so_far = usual if unsure else _ALL_SO_FAR
        return f"{so_far} {_UNFINISHED.format(left=audit.more['not_run'], run=audit.more['run'])}"
    return _ANSWERS.get((audit.kind, audit.state), usual)


def _facts(audit: Audit) -> tuple[str, ...]:
    """Say what the audit rests on."""
    if audit.facts or audit.coverage is None:
        return audit.facts
    return (f"{audit.coverage.scored:,} of {audit.coverage.n:,} items scored",)


def _of_check(audit: Audit, check: AuditCheck) -> str:
    """Say what a check showed, where there is more to say than its numbers."""
    if check.says or check.state != "fail":
        return check.says
    sentence = _FAILED.get((audit.kind, check.name.partition(":")[0]), "")
    return sentence.format(
        percent=_with_ends(check, ".1%"),
        signed=_with_ends(check, "+.2f"),
        small=f"{check.value or 0.0:.2g}",
        n=check.n,
        clusters=check.clusters,
        failed=_failed_groups(check),
    )


def _failed_groups(check: AuditCheck) -> str:
    """Name the groups outside of the bound, and how many more there are."""
    groups = str(check.details.get("failed", "")).split(", ")
    more = f" and {len(groups) - _MOST_GROUPS} more" if len(groups) > _MOST_GROUPS else ""
    return ", ".join(groups[:_MOST_GROUPS]) + more


def _note(code: str) -> str:
    """Return what a reader must know in addition to the checks."""
    name, _, value = code.partition(":")
    if name == "fewest_scored":
        value = value.replace("none: ", "no label, ").replace(": ", ", ")
    return _NOTES[name].format(value) if name in _NOTES else code


def _with_ends(check: AuditCheck, form: str) -> str:
    value = f"{check.value or 0.0:{form}}"
    if check.low is None or check.high is None or check.undefined == NO_SPREAD:
        return f"{value} (the same in all {check.clusters})"
    return f"{value} ({check.low:{form}} to {check.high:{form}})"
