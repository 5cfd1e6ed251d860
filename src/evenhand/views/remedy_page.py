"""What a remedy did: outcomes by item, harm before and after, and who judged it."""

from evenhand.findings.remedy import MIN_ACCEPTED, RemedySummary
from evenhand.statistics.proportions import Proportion
from evenhand.views.blocks import Block, Grid, Line, Tone

LABELS = {
    "accepted": "accepted",
    "improved_not_accepted": "improved, not accepted",
    "unchanged": "unchanged",
    "not_judged": "could not be judged",
    "not_improved": "changed, not improved",
}


def counts(outcomes: dict[str, int]) -> str:
    """The outcomes in one line."""
    return " · ".join(f"{LABELS[name]} {count:,}" for name, count in outcomes.items())


def harm(remedy: RemedySummary) -> str:
    """Harm above the threshold before and after, and by whom, in one line."""
    if not remedy.judged:
        return "harm before and after: no item has marks of both"
    text = f"harm above threshold {remedy.above_before:,} → {remedy.above_after:,}"
    return f"{text} of {remedy.judged:,} ({judged_by(remedy)})"


def judged_by(remedy: RemedySummary) -> str:
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


def lines(remedy: RemedySummary) -> list[Line]:
    """The two lines of a summary, and a warning where answers got worse."""
    share = remedy.accepted
    tone: Tone = "plain" if share is None or share >= MIN_ACCEPTED else "bad"
    lines = [Line(counts(remedy.outcomes), tone), Line(harm(remedy))]
    if remedy.worse:
        lines.append(
            Line(f"{remedy.worse:,} answers are more harmful than they were before", "bad")
        )
    return lines


def worse(remedy: RemedySummary) -> Line:
    """How many answers are more harmful than they were."""
    text = f"{remedy.worse:,} of {remedy.judged:,} answers are more harmful than before"
    tone: Tone = "bad" if remedy.worse else "plain"
    return Line(f"{remedy.run}: {text}, by the marks of the method's own evaluators.", tone)


def before_and_after(remedy: RemedySummary) -> list[Block]:
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
        Line(f"Within the threshold: {limits}. {judged_by(remedy).capitalize()}.", "dim"),
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
