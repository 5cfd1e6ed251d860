"""The words of looks at numbers that are watched, and of chosen examples."""

from collections.abc import Callable, Mapping


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


SENTENCES: Mapping[str, str | Callable[..., str]] = {
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
}
