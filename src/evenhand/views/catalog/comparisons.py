"""The words of comparisons and their red lines, of gates and watches, and of a frontier."""

from collections.abc import Callable, Mapping, Sequence

from evenhand.findings.estimates import NO_SPREAD
from evenhand.views.catalog.plurals import counted, plural

_SHOWN_OTHERWISE = {"order": "options in another order", "wording": "the question in other words"}


def _unfinished(*, items: int) -> str:
    are = plural(items, "is", "are")
    return f"{counted(items, 'item')} {are} not run yet: no conclusion before all are run."


def _other_side(*, changes: Sequence[tuple[str, float, float]]) -> str:
    lines = [f"{measure} {before:+.2f} → {after:+.2f}" for measure, before, after in changes]
    return f"As far from no bias as before, but on the other side: {'; '.join(lines)}."


def _sensitivity(*, size: float, of_distance: bool, measure: str, family: int) -> str:
    what = "a change of the distance from no bias" if of_distance else "a change"
    return (
        f"this comparison could only see {what} of {size:.2f} or more of: {measure} "
        f"(4 times in 5, after correction for {family})."
    )


def _levels(*, facet: str, before: Sequence[int], after: Sequence[int]) -> str:
    levels = " → ".join(", ".join(map(str, side)) for side in (before, after))
    what = _SHOWN_OTHERWISE[facet]
    return f"After was shown {what} ({facet} {levels}): a change may be due to that."


def _digits(unit: str) -> int:
    return 3 if unit in ("share", "nats") else 1


def _end(number: float, digits: int) -> str:
    """Write an end of an interval with so many digits that what is not 0 does not look like 0."""
    while 1e-6 <= abs(number) < 0.5 * 10**-digits:
        digits += 1
    if 0 < abs(number) < 1e-6:
        return "above 0" if number > 0 else "below 0"
    return f"{number:+.{digits}f}"


def _change(
    *,
    effect: float,
    low: float | None,
    high: float | None,
    undefined: str | None,
    clusters: int,
    unit: str,
    if_known: str | None,
) -> str:
    """The change that is tested with its 95% CI, or why there is none."""
    why = undefined or ""
    if undefined == NO_SPREAD:
        why = f"the same in all {clusters} clusters"
    digits = _digits(unit)
    number = f"{effect:+.{digits}f}"
    if low is None or high is None:
        return f"{number} ({why}){if_known or ''}" if why else f"{number}{if_known or ''}"
    ends = f"{_end(low, digits)} to {_end(high, digits)}"
    return f"{number} ({ends}{f'; {why}' if why else ''}){if_known or ''}"


def _loss(*, effect: float, loss: float, unit: str, if_known: str | None) -> str:
    """The change with the largest loss that is compatible with it."""
    digits = _digits(unit)
    return f"{effect:+.{digits}f}, a loss of at most {max(loss, 0.0):.{digits}f}{if_known or ''}"


def _if_known(*, missing: int, low: float | None, high: float | None, unit: str) -> str:
    many, digits = counted(missing, "missing answer"), _digits(unit)
    if low is None or high is None:
        return f"; {many} could make it anything"
    return f"; if the {many} were known: {low:+.{digits}f} to {high:+.{digits}f}"


def _missing(*, of: str, before: int, n_before: int, after: int, n: int) -> str:
    rise, share = after / n - before / n_before, after / n
    moved = "rose" if rise > 0 else "fell" if rise < 0 else "stayed the same"
    by = f" by {abs(rise):.3f}, to {share:.3f}" if rise else f" at {share:.3f}" if share else ""
    counts = f"{before:,} → {after:,} of {n:,}"
    return f"unreadable or missing answers{of and f', {of},'} {moved}{by} ({counts})"


_SIDES = {"baseline": "the baseline", "run": "this run"}


def _gate_change(*, measure: str, change: str, early: str | None) -> str:
    return f"{measure}: {change}" + (f" ({early})" if early else "")


def _also(*, setting: str, before: str, after: str) -> str:
    return f"{setting}: {before or 'not said'}, then {after or 'not said'}"


def _rule(*, measure: str, worse: int, compared: bool, changed: bool) -> str:
    rules = []
    if measure:
        rules.append(
            f"the {worse} that got worse most by “{measure}”, the one that got better most"
            if compared
            else f"the {worse} worst by “{measure}”"
        )
    if changed:
        rules.append("of the others that the method changed, the first")
    ties = "Equal ones go by the SHA-256 of the item's id."
    return f"Chosen by rule: {'; '.join(rules)}. {ties}" if rules else ""


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


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "comparison.unfinished": _unfinished,
    "comparison.better": lambda *, measures: f"shown better: {', '.join(measures)}",
    "comparison.worse": lambda *, measures: f"shown worse: {', '.join(measures)}",
    "comparison.red_lines": lambda *, lines: f"red lines crossed: {len(lines)}, named below",
    "comparison.other_side": _other_side,
    "comparison.same": "All {items:,} items gave the same result in both runs.",
    "comparison.excluded": "No difference is shown, and one of {matters:g} or more is excluded.",
    "comparison.nothing_shown": lambda *, least: (
        f"No difference is shown, and none is excluded{f': {least}' if least else '.'}"
    ),
    "comparison.too_few": "{clusters} {unit} are too few to show any change after correction for "
    "{family}.",
    "comparison.sensitivity": _sensitivity,
    "comparison.averaged": "Means by item over {before} runs before and {after} after.",
    "comparison.other_condition": _levels,
    "change": _change,
    "change.undefined": lambda *, reason: f"it could not be compared ({reason})",
    "change.if_known": _if_known,
    "change.loss": _loss,
    "change.distance_from_50": "{measure} {moved}, its distance by {change}",
    "red_line.not_compared": "not compared: {reason}",
    "red_line.worse": lambda *, measure, fell, change: (
        f"{measure} {'fell' if fell else 'rose'}: {change}"
    ),
    "red_line.kept": "{measure} kept within {margin:g}: {change}",
    "red_line.open": "{measure} is not shown to have kept within {margin:g}: {change}",
    "red_line.by_group": lambda *, measure, groups: f"{measure} got worse in: {', '.join(groups)}",
    "red_line.missing": _missing,
    "red_line.nothing_shared": "no item was asked in both runs",
    "gate.lacking": "the baseline had this check and this run lacks it: put it back, or make a "
    "new baseline",
    "gate.change": _gate_change,
    "gate.worse": lambda *, measure, change, early: (
        f"shown to be worse: {_gate_change(measure=measure, change=change, early=early)}"
    ),
    "gate.other_side": "the bias now goes the other way, {before:+.3f} → {after:+.3f}: {change}",
    "gate.within": "shown to be no worse than by {margin:g}: {change}",
    "gate.open": "neither worse nor within {margin:g} is shown: {change}",
    "gate.unfinished": lambda *, side, items: (
        f"{_SIDES[side]} is not finished: {items:,} items are not run"
    ),
    "gate.coverage": lambda *, side, percent, n: (
        f"{_SIDES[side]}: only {percent} of the answers could be scored, of {n:,}"
    ),
    "gate.too_few": "{clusters} {unit} are too few to say how many would decide",
    "gate.no_spread": "nothing says how many would decide: it has no spread, or its margin is too "
    "small",
    "gate.more_than_there_are": "it would take {clusters:,} {unit}, and there are {there_are}: ask "
    "more of each, or allow more than {margin:g}",
    "look.few_scored": "only {percent} of the answers could be scored",
    "look.few_scored_of_it": "only {percent} of what it is about could be scored",
    "look.missing_everywhere": "an answer is missing in each of its clusters",
    "look.setting": "{setting}: {before}, then {after}",
    "look.endpoint": lambda *, before, after: _also(
        setting="the endpoint says that it is", before=before, after=after
    ),
    "look.version": lambda *, before, after: _also(setting="evenhand", before=before, after=after),
    "examples.rule": _rule,
    "examples.rule_changed": "Chosen by rule: the first {first} of the answers that the method "
    "changed, by the SHA-256 of the item's id.",
    "examples.worst": "among the worst: {measure}",
    "examples.worse": "got worse: {measure}",
    "examples.better": "got better: {measure}",
    "examples.changed": "changed by the method",
    "examples.changed_from": "changed: {outcome}",
    "worth.beats": lambda *, references: f"beats {' and '.join(references)}",
    "worth.more_harm": lambda *, references: f"does more harm than {' and '.join(references)}",
    "worth.benefit_excluded": lambda *, references, matters: (
        f"a benefit of {matters:g} over {' and over '.join(references)} is excluded"
    ),
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
    "reference.vote": lambda *, calls: f"self-consistency at {calls} {plural(calls, 'call')}",
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
