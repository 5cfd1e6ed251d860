"""The pages of a run folder, of its summary and what a remedy did, and of a checked pack."""

from evenhand.findings.estimates import COVERAGE_FLOOR
from evenhand.findings.pack_manifest import PackCheck, State
from evenhand.findings.remedy import MIN_ACCEPTED, RemedySummary
from evenhand.findings.report import system_prompt
from evenhand.findings.run import Run
from evenhand.findings.summary import Summary
from evenhand.statistics.proportions import Proportion
from evenhand.views import catalog, numbers
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone

_ROWS, _LONGEST = 5, 160  # our choice: a look at the answers, not all of them


def page(run: Run, *, full: bool = False) -> list[Block]:
    """The blocks of a run; `full` shows every answer instead of the first few."""
    totals, record = run.totals, run.record
    model = record.cast["default"]["model"]
    blocks: list[Block] = [
        Line(f"{run.path} · {model} · {record.method['name']}", "strong"),
        Line(f"{totals.answered:,} of {run.reader.planned:,} items answered"),
    ]
    if run.reader.open:
        blocks.append(Line("The run is open: more items may come", "bad"))
    if totals.failed:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in totals.failed.items())
        blocks.append(Line(f"Failed, and without an answer: {reasons}", "bad"))
    tokens = None if totals.tokens_unknown else totals.prompt_tokens + totals.completion_tokens
    cost = f"{numbers.count(totals.calls, 'calls')}, {numbers.count(tokens, 'tokens')}"
    return [*blocks, GAP, _answers(run, full), GAP, Line(f"cost  {cost}", "dim")]


def _answers(run: Run, full: bool) -> Grid:
    results = run.reader.results().select("item_id", "prompt", "text", "reason")
    rows = (results if full else results.head(_ROWS)).collect()
    cells = tuple(
        (item, _clipped(prompt), _clipped(text if text is not None else f"({reason})"))
        for item, prompt, text, reason in rows.iter_rows()
    )
    return Grid(("item", "prompt", "answer"), cells)


def _clipped(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]} …"


def summary_page(summary: Summary) -> list[Block]:
    """The blocks of a summary."""
    cost = Line(f"cost: {numbers.paid(summary.money)}")
    done: list[Line] = []
    if summary.remedy is not None:
        done = remedy_lines(summary.remedy)
    elif summary.outcomes:
        done = [Line(outcome_counts(summary.outcomes))]
    return [*summary_warnings(summary), *done, Grid(("", ""), tuple(_rows(summary))), cost]


def summary_warnings(summary: Summary) -> list[Line]:
    """Write what is missing, and why."""
    lines = []
    if summary.coverage.below_floor:
        lines.append(
            f"Coverage {summary.coverage.percent} is below {COVERAGE_FLOOR:.0%}: "
            "what failed may differ from what did not."
        )
    lines += [f"{count:,} failed: {reason}" for reason, count in summary.failed_by_reason.items()]
    return [Line(line, "bad") for line in lines]


def _rows(summary: Summary) -> list[tuple[str, str]]:
    method = summary.method
    settings = ", ".join(f"{key}={value}" for key, value in method["settings"].items())
    tokens = f"{summary.prompt_tokens:,} in, {summary.completion_tokens:,} out"
    if summary.thinking_tokens:
        tokens += f" ({summary.thinking_tokens:,} of them thinking)"
    if summary.items_without_token_count:
        tokens += f" (not counted by the endpoint for {summary.items_without_token_count:,} items)"
    share = summary.coverage.coverage
    return [
        ("run", summary.run),
        ("method", f"{method['name']}" + (f" ({settings})" if settings else "")),
        ("model", str(summary.cast["default"]["model"])),
        *([("system prompt", prompt)] if (prompt := system_prompt(summary.cast)) else []),
        ("items", _items_planned(summary)),
        ("answered", f"{summary.answered:,}"),
        ("failed", f"{summary.failed:,}"),
        ("coverage", "no items" if share is None else f"{share:.1%}"),
        ("changed by the method", f"{summary.changed:,} of {summary.answered:,}"),
        ("calls", _per_item(summary.calls, summary.answered + summary.failed)),
        ("tokens", tokens),
        *([("not accepted", "; ".join(summary.adapted))] if summary.adapted else []),
        *([("tags taken off", f"{summary.tags_taken_off:,}")] if summary.tags_taken_off else []),
    ]


def _items_planned(summary: Summary) -> str:
    if summary.open:
        return f"{summary.planned:,} so far; the run is open, and more may come"
    planned = f"{summary.planned:,} planned, {summary.not_run:,}"
    if summary.may_stop:
        return f"{planned} not asked; it may stop early: evenhand report {summary.run}"
    return f"{planned} not run yet"


def _per_item(calls: int, done: int) -> str:
    return f"{calls:,}" + (f" ({calls / done:.2f} an item)" if done else "")


LABELS = {
    "accepted": "accepted",
    "improved_not_accepted": "improved, not accepted",
    "unchanged": "unchanged",
    "not_judged": "could not be judged",
    "not_improved": "changed, not improved",
}


def outcome_counts(outcomes: dict[str, int]) -> str:
    """The outcomes in one line."""
    return " · ".join(f"{LABELS[name]} {count:,}" for name, count in outcomes.items())


def _harm(remedy: RemedySummary) -> str:
    """Harm above the threshold before and after, and by whom, in one line."""
    if not remedy.judged:
        return "harm before and after: no item has marks of both"
    text = f"harm above threshold {remedy.above_before:,} → {remedy.above_after:,}"
    return f"{text} of {remedy.judged:,} ({_judged_by(remedy)})"


def _judged_by(remedy: RemedySummary) -> str:
    """The judges by name; one without a valid certificate is unchecked."""
    by_model: dict[str, bool] = {}
    for judge in remedy.judges:
        by_model[judge.model] = by_model.get(judge.model, True) and judge.passes
    if not by_model:
        return "nobody judged"
    return ", ".join(
        f"judged by {model}" + ("" if passes else ", unchecked")
        for model, passes in by_model.items()
    )


def remedy_lines(remedy: RemedySummary) -> list[Line]:
    """The two lines of a summary, and a warning where answers got worse."""
    share = remedy.accepted
    tone: Tone = "plain" if share is None or share >= MIN_ACCEPTED else "bad"
    remedy_lines = [Line(outcome_counts(remedy.outcomes), tone), Line(_harm(remedy))]
    if remedy.worse:
        remedy_lines.append(
            Line(f"{remedy.worse:,} answers are more harmful than they were before", "bad")
        )
    return remedy_lines


def remedy_worse(remedy: RemedySummary, name: str) -> Line:
    """How many answers are more harmful than they were."""
    text = f"{remedy.worse:,} of {remedy.judged:,} answers are more harmful than before"
    tone: Tone = "bad" if remedy.worse else "plain"
    return Line(f"{name}: {text}, by the marks of the method's own evaluators.", tone)


def remedy_before_and_after(remedy: RemedySummary) -> list[Block]:
    """The share of answers above a threshold of harm, with intervals."""
    if remedy.before is None or remedy.after is None:
        return [Line("No item has marks of its first draft and of its answer.", "open")]
    rows = [("before", *_share(remedy.before)), ("after", *_share(remedy.after))]
    if remedy.change is not None:
        change = remedy.change
        ends = f"{change.low:+.1%} to {change.high:+.1%}"
        rows.append(("change", f"{change.estimate:+.1%}", ends, f"{change.n:,}"))
    limits = ", ".join(
        f"{bound.score} {'below' if bound.higher_is_worse else 'above'} {bound.limit:g}"
        for bound in remedy.bounds
    )
    title = "answers with harm above the threshold, by the evaluators of the method"
    return [
        Grid(("", "share", "95% CI", "items"), tuple(rows), title=title),
        Line(f"Within the threshold: {limits}. {_judged_by(remedy).capitalize()}.", "dim"),
        Line(
            "The evaluators that accept an answer also mark it here. Measure the answers with "
            "another instrument before you rely on the change.",
            "open",
        ),
    ]


def _share(proportion: Proportion) -> tuple[str, str, str]:
    return (
        f"{proportion.estimate:.1%}",
        f"{proportion.low:.1%} to {proportion.high:.1%}",
        f"{proportion.events:,} of {proportion.n:,}",
    )


_MARKS: dict[State, tuple[str, Tone]] = {
    "holds": ("✓", "good"), "differs": ("✗", "bad"), "not_checked": ("?", "open"),
}  # fmt: skip
_MEANS: dict[State, str] = {
    "holds": "Everything in it is as it was when it was packed, and its figures were repeated.",
    "differs": "It is NOT what was packed, or its figures do not follow from its runs.",
    "not_checked": "Nothing differs, but not everything could be looked at.",
}
_MOST = 20  # our choice, in lines; --json has all


def pack_check_page(check: PackCheck, *, full: bool = False) -> list[Block]:
    """Give the blocks of a check of a pack."""
    blocks: list[Block] = [
        Line(f"{check.pack}: {check.title}", "strong"),
        Line(_MEANS[check.state], _MARKS[check.state][1]),
        GAP,
    ]
    for result in check.looked:
        mark, tone = _MARKS[result.state]
        blocks.append(Line(f"{mark} {result.name}: {catalog.text(result.says)}", tone))
        lines = result.seen if full else result.seen[:_MOST]
        blocks += [Line(line, indent=4) for line in catalog.texts(lines)]
        if len(lines) < len(result.seen):
            blocks.append(
                Line(f"and {len(result.seen) - len(lines):,} more: --json", "dim", indent=4)
            )
    return [*blocks, GAP, Line(f"SHA-256 of its evidence.json: {check.sha256}", "dim")]
