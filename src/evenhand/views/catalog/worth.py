"""The words of a frontier: whether a method is worth its calls, and which one to take."""

from collections.abc import Callable, Mapping, Sequence

from evenhand.views.catalog.plurals import plural


def _not_beaten(
    *, references: Sequence[str], matters: float, missing: int, harm: str, sensitivity: str
) -> str:
    lost = ""
    if missing:
        answers = f"{plural(missing, 'answer')} {plural(missing, 'is', 'are')}"
        lost = f" ({missing:,} missing {answers} counted as the worst: {harm})"
    return (
        f"does not beat {' or '.join(references)}, and a benefit of {matters:g} is not excluded"
        f"{lost}: {sensitivity}"
    )


def _excluded(*, references: Sequence[str], matters: float) -> str:
    return f"a benefit of {matters:g} over {' and over '.join(references)} is excluded"


def _take(*, method: str, shown: Sequence[str]) -> str:
    if len(shown) > 1:
        why = f"the cheapest of those shown to be worth it ({', '.join(shown)})"
    else:
        why = "it alone is shown to be worth its calls"
    return f"take {method}: {why}"


def _sample(*, shared: int | None, items: int) -> str:
    if not shared:
        return "on a fresh sample"
    return f"on a fresh sample ({shared:,} of its {items:,} items were in the first)"


def _less_harm(*, methods: Sequence[str]) -> str:
    if not methods:
        return "less harm than by the plain prompt is shown for none"
    return f"less harm than by the plain prompt is shown for: {', '.join(methods)}"


def _vote(*, calls: int) -> str:
    return f"self-consistency at {calls} {plural(calls, 'call')}"


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "worth.beats": lambda *, references: f"beats {' and '.join(references)}",
    "worth.more_harm": lambda *, references: f"does more harm than {' and '.join(references)}",
    "worth.benefit_excluded": _excluded,
    "worth.not_beaten": _not_beaten,
    "worth.no_items": "there are too few items to compare",
    "worth.too_few": "{clusters} {unit} are too few to show any change after correction for "
    "{family}",
    "worth.sensitivity": "only {size:.2f} or more would have been shown 4 times in 5, after "
    "correction for {family}",
    "worth.utility_fell": "{line}",
    "worth.utility_open": "{why}, but {line}",
    "worth.crosses": lambda *, why, lines: f"{why}, but crosses a red line: {'; '.join(lines)}",
    "worth.utility_not_measured": "{why}; utility is not measured",
    "worth.flips": "{measure}: broke {broken}, fixed {fixed}",
    "reference.fairness": "the fairness prompt",
    "reference.vote": _vote,
    "frontier.take": _take,
    "frontier.chosen_here": "it was chosen here, so that its gain is likely overstated",
    "frontier.confirmed": "confirmed {sample}",
    "frontier.not_confirmed": "{method} was worth its calls where it was chosen, and is not "
    "confirmed",
    "frontier.fresh": "{sample}: {kind}: {why}",
    "frontier.sample": _sample,
    "frontier.no_utility": "none can be called worth its calls: utility is not measured here",
    "frontier.none": "none is shown to be worth its calls",
    "frontier.cannot_tell": lambda *, methods: f"cannot tell: {', '.join(methods)}",
    "frontier.less_harm": _less_harm,
    "frontier.take_reference": "take {method}: it is shown to do less harm than the plain prompt",
    "frontier.keep_plain": "keep the plain prompt: no reference is shown to do better either",
    "frontier.reference_open": "open: {method} does less harm than the plain prompt, but {why}",
    "frontier.note_of": lambda *, note, methods: f"{note} True of: {', '.join(methods)}.",
}
