"""What a remedy did: outcomes by item, harm before and after, and who judged it."""

from evenhand.findings.remedy import MIN_ACCEPTED, Remedy
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


def harm(found: Remedy) -> str:
    """Harm above the threshold before and after, and by whom, in one line."""
    if not found.judged:
        return "harm before and after: no item has marks of both"
    said = f"harm above threshold {found.above_before:,} → {found.above_after:,}"
    return f"{said} of {found.judged:,} ({judged_by(found)})"


def judged_by(found: Remedy) -> str:
    """The judges by name; one without a valid certificate is unchecked."""
    named: dict[str, bool] = {}
    for one in found.judges:
        named[one.model] = named.get(one.model, True) and one.passes
    if not named:
        return "nobody judged"
    return ", ".join(
        f"judged by {model}" + ("" if passes else ", unchecked") for model, passes in named.items()
    )


def lines(found: Remedy) -> list[Line]:
    """The two lines of a summary, and a warning where answers got worse."""
    share = found.accepted
    tone: Tone = "plain" if share is None or share >= MIN_ACCEPTED else "bad"
    said = [Line(counts(found.outcomes), tone), Line(harm(found))]
    if found.worse:
        said.append(Line(f"{found.worse:,} answers are more harmful than they were before", "bad"))
    return said


def worse(found: Remedy) -> Line:
    """How many answers are more harmful than they were."""
    said = f"{found.worse:,} of {found.judged:,} answers are more harmful than before"
    tone: Tone = "bad" if found.worse else "plain"
    return Line(f"{found.run}: {said}, by the marks of the method's own evaluators.", tone)


def before_and_after(found: Remedy) -> list[Block]:
    """The share of answers above a threshold of harm, with intervals."""
    if found.before is None or found.after is None:
        return [Line("No item has marks of its first draft and of its answer.", "open")]
    rows = [("before", *_share(found.before)), ("after", *_share(found.after))]
    if found.change is not None:
        change = found.change
        ends = f"{change.low:+.1%} to {change.high:+.1%}"
        rows.append(("change", f"{change.estimate:+.1%}", ends, f"{change.n:,}"))
    limits = ", ".join(
        f"{one.score} {'below' if one.higher_is_worse else 'above'} {one.limit:g}"
        for one in found.bounds
    )
    title = "answers with harm above the threshold, by the evaluators of the method"
    return [
        Grid(("", "share", "95% CI", "items"), tuple(rows), title=title),
        Line(f"Within the threshold: {limits}. {judged_by(found).capitalize()}.", "dim"),
        Line(
            "The evaluators that accept an answer also mark it here. Measure the answers with "
            "another instrument before you rely on the change.",
            "open",
        ),
    ]


def _share(one: Proportion) -> tuple[str, str, str]:
    return f"{one.estimate:.1%}", f"{one.low:.1%} to {one.high:.1%}", f"{one.events:,} of {one.n:,}"
