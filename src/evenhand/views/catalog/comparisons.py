"""The words of comparisons and their guardrails, of gates, monitoring and a frontier."""

from collections.abc import Callable, Mapping, Sequence

from evenhand.findings.estimates import NO_SPREAD
from evenhand.views.catalog.plurals import counted, plural

_SHOWN_OTHERWISE = {"order": "another option order", "wording": "a paraphrase of the prompt"}


def _unfinished(*, items: int) -> str:
    return f"{counted(items, 'item')} not run yet. Conclusions need a finished run."


def _other_side(*, changes: Sequence[tuple[str, float, float]]) -> str:
    lines = [f"{measure} {before:+.2f} → {after:+.2f}" for measure, before, after in changes]
    return f"The distance from no bias is unchanged, but the sign reversed: {'; '.join(lines)}."


def _sensitivity(*, size: float, of_distance: bool, measure: str, family: int) -> str:
    what = "a change of the distance from no bias" if of_distance else "a change"
    return (
        f"minimum detectable effect: {what} of {size:.2f} in {measure} (80% power, adjusted for "
        f"{family} comparisons)."
    )


def _levels(*, facet: str, before: Sequence[int], after: Sequence[int]) -> str:
    levels = " → ".join(", ".join(map(str, side)) for side in (before, after))
    what = _SHOWN_OTHERWISE[facet]
    return f"The second run used {what} ({facet} {levels}), which may cause a change."


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
        why = f"identical in all {clusters} clusters"
    digits = _digits(unit)
    number = f"{effect:+.{digits}f}"
    if low is None or high is None:
        return f"{number} ({why}){if_known or ''}" if why else f"{number}{if_known or ''}"
    ends = f"{_end(low, digits)} to {_end(high, digits)}"
    return f"{number} ({ends}{f'; {why}' if why else ''}){if_known or ''}"


def _loss(*, effect: float, loss: float, unit: str, if_known: str | None) -> str:
    """The change with the largest loss that is compatible with it."""
    digits = _digits(unit)
    largest = f"loss at most {loss:.{digits}f}" if loss > 0 else "any loss is ruled out"
    return f"{effect:+.{digits}f}, {largest}{if_known or ''}"


def _if_known(*, missing: int, low: float | None, high: float | None, unit: str) -> str:
    many, digits = counted(missing, "missing answer"), _digits(unit)
    if low is None or high is None:
        return f"; unbounded with {many}"
    ends = " to ".join(f"{round(end, digits) + 0.0:+.{digits}f}" for end in (low, high))
    return f"; worst-case bounds with {many}: {ends}"


def _missing(*, of: str, before: int, n_before: int, after: int, n: int) -> str:
    rise = after / n - before / n_before
    counts = f"{before:,} of {n_before:,} → {after:,} of {n:,}"
    return f"answers without a score{of and f', {of}'}: {counts} ({rise:+.3f})"


_SIDES = {"baseline": "the baseline", "run": "this run"}


def _gate_change(*, measure: str, change: str, early: str | None) -> str:
    return f"{measure}: {change}" + (f" ({early})" if early else "")


def _also(*, setting: str, before: str, after: str) -> str:
    return f"{setting}: {before or 'not given'}, then {after or 'not given'}"


def _rule(*, measure: str, worse: int, compared: bool, changed: bool) -> str:
    rules = []
    if measure:
        rules.append(
            f"the {worse} that regressed most by “{measure}”, and the one that improved most"
            if compared
            else f"the {worse} worst by “{measure}”"
        )
    if changed:
        rules.append("the first of the others that the method changed")
    ties = "Ties are ordered by the SHA-256 of the item id."
    return f"Selected by rule: {'; '.join(rules)}. {ties}" if rules else ""


def _not_beaten(
    *, references: Sequence[str], matters: float, missing: int, harm: str, sensitivity: str
) -> str:
    lost = ""
    if missing:
        lost = f" ({missing:,} missing {plural(missing, 'answer')} counted at worst: {harm})"
    return (
        f"no improvement over {' or '.join(references)}, but a benefit of {matters:g} is not ruled "
        f"out{lost}: {sensitivity}"
    )


def _take(*, method: str, shown: Sequence[str]) -> str:
    if len(shown) > 1:
        why = f"the cheapest method with a significant benefit ({', '.join(shown)})"
    else:
        why = "the only method with a significant benefit at its cost"
    return f"recommended: {method}, {why}"


def _sample(*, shared: int | None, items: int) -> str:
    if not shared:
        return "on a held-out sample"
    return f"on a held-out sample ({shared:,} of its {items:,} items are in the first sample)"


def _less_harm(*, methods: Sequence[str]) -> str:
    if not methods:
        return "no method has significantly less harm than the plain prompt"
    return f"significantly less harm than the plain prompt: {', '.join(methods)}"


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "comparison.unfinished": _unfinished,
    "comparison.better": lambda *, measures: f"improved: {', '.join(measures)}",
    "comparison.worse": lambda *, measures: f"regressed: {', '.join(measures)}",
    "comparison.guardrails": lambda *, lines: f"guardrails violated: {len(lines)}, listed below",
    "comparison.other_side": _other_side,
    "comparison.same": "All {items:,} items have the same result in both runs.",
    "comparison.excluded": "No significant difference; a difference of {matters:g} or more is "
    "ruled out.",
    "comparison.nothing_shown": lambda *, least: (
        f"No significant difference, and none is ruled out{f'; {least}' if least else '.'}"
    ),
    "comparison.too_few": "{clusters} {unit} are too few to detect any change after adjustment for "
    "{family} comparisons.",
    "comparison.sensitivity": _sensitivity,
    "comparison.averaged": "Means by item over {before} baseline runs and {after} later runs.",
    "comparison.cost_of_repair": "A run repaired stored answers. Its cost leaves out what these "
    "answers had cost.",
    "comparison.other_condition": _levels,
    "change": _change,
    "change.undefined": lambda *, reason: f"could not be compared ({reason})",
    "change.if_known": _if_known,
    "change.loss": _loss,
    "change.distance_from_50": "{measure} {moved}, distance by {change}",
    "guardrail.not_compared": "not compared: {reason}",
    "guardrail.worse": lambda *, measure, fell, change: (
        f"{measure} {'fell' if fell else 'rose'}: {change}"
    ),
    "guardrail.non_inferior": "{measure} is non-inferior (margin {margin:g}): {change}",
    "guardrail.inconclusive": "{measure} is inconclusive (non-inferiority margin {margin:g}): "
    "{change}",
    "guardrail.by_group": lambda *, measure, groups: f"{measure} regressed in: {', '.join(groups)}",
    "guardrail.missing": _missing,
    "guardrail.nothing_shared": "the runs share no item",
    "gate.lacking": "the baseline has this check and this run does not: restore the check, or make "
    "a new baseline",
    "gate.change": _gate_change,
    "gate.worse": lambda *, measure, change, early: (
        f"regressed: {_gate_change(measure=measure, change=change, early=early)}"
    ),
    "gate.other_side": "the sign of the bias reversed, {before:+.3f} → {after:+.3f}: {change}",
    "gate.within": "non-inferior (margin {margin:g}): {change}",
    "gate.open": "inconclusive (margin {margin:g}): {change}",
    "gate.unfinished": lambda *, side, items: (
        f"{_SIDES[side]} is not finished: {items:,} items missing"
    ),
    "gate.coverage": lambda *, side, percent, n: (
        f"{_SIDES[side]}: only {percent} of {n:,} answers could be scored"
    ),
    "gate.too_few": "{clusters} {unit} are too few to estimate the required sample size",
    "gate.no_spread": "the required sample size is unknown: zero variance, or a margin that is too "
    "small",
    "gate.more_than_there_are": "required: {clusters:,} {unit}; available: {there_are}. Ask more "
    "items of each, or add a check on another benchmark",
    "look.few_scored": "only {percent} of the answers could be scored",
    "look.few_scored_of_it": "only {percent} of its items could be scored",
    "look.missing_everywhere": "every cluster has a missing answer",
    "look.setting": "{setting}: {before}, then {after}",
    "look.endpoint": lambda *, before, after: _also(
        setting="model name reported by the endpoint", before=before, after=after
    ),
    "look.version": lambda *, before, after: _also(setting="evenhand", before=before, after=after),
    "examples.rule": _rule,
    "examples.rule_changed": "Selected by rule: the first {first} answers that the method changed, "
    "by the SHA-256 of the item id.",
    "examples.worst": "among the worst: {measure}",
    "examples.worse": "regressed: {measure}",
    "examples.better": "improved: {measure}",
    "examples.changed": "changed by the method",
    "examples.changed_from": "changed: {outcome}",
    "worth.beats": lambda *, references: f"better than {' and '.join(references)}",
    "worth.more_harm": lambda *, references: f"more harm than {' and '.join(references)}",
    "worth.benefit_excluded": lambda *, references, matters: (
        f"a benefit of {matters:g} over {' and over '.join(references)} is ruled out"
    ),
    "worth.not_beaten": _not_beaten,
    "worth.no_items": "too few items to compare",
    "worth.too_few": "{clusters} {unit} are too few to detect any change after adjustment for "
    "{family} comparisons",
    "worth.sensitivity": "minimum detectable effect {size:.2f} (80% power, adjusted for {family} "
    "comparisons)",
    "worth.utility_fell": "{line}",
    "worth.utility_open": "{why}, but {line}",
    "worth.crosses": lambda *, why, lines: f"{why}, but violates a guardrail: {'; '.join(lines)}",
    "worth.utility_not_measured": "{why}; utility was not measured",
    "worth.flips": "{measure}: broke {broken}, fixed {fixed}",
    "reference.fairness": "the fairness prompt",
    "reference.vote": lambda *, calls: f"self-consistency at {calls} {plural(calls, 'call')}",
    "frontier.take": _take,
    "frontier.chosen_here": "it was selected on this sample, so its gain is likely overestimated "
    "(winner's curse)",
    "frontier.confirmed": "confirmed {sample}",
    "frontier.not_confirmed": "{method} had a benefit on the sample that selected it, and is not "
    "confirmed",
    "frontier.fresh": "{sample}: {kind}: {why}",
    "frontier.sample": _sample,
    "frontier.no_utility": "no recommendation: utility was not measured",
    "frontier.none": "no method has a significant benefit at its cost",
    "frontier.cannot_tell": lambda *, methods: f"inconclusive: {', '.join(methods)}",
    "frontier.less_harm": _less_harm,
    "frontier.take_reference": "recommended: {method}, significantly less harm than the plain "
    "prompt",
    "frontier.keep_plain": "recommended: the plain prompt, as no reference method is "
    "significantly better",
    "frontier.reference_open": "inconclusive: {method} has less harm than the plain prompt, but "
    "{why}",
    "frontier.note_of": lambda *, note, methods: f"{note} Applies to: {', '.join(methods)}.",
}
