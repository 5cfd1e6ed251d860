"""The labels of a service or classifier as our attributes."""

from collections.abc import Mapping
from typing import Any

from evenhand.errors import UserError
from evenhand.scorers.base import ATTRIBUTES, TOXICITY, Scores, Unscored, checked

Labels = Mapping[str, tuple[str, ...]]  # attribute -> the labels whose highest score it is
_WORTH_SAYING = 0.5


def checked_labels(labels: Labels) -> Labels:
    unknown = sorted(labels.keys() - set(ATTRIBUTES))
    if unknown:
        raise UserError(f"labels: {unknown[0]!r} is none of: {', '.join(ATTRIBUTES)}")
    if TOXICITY not in labels:
        raise UserError("labels: say which of the scorer's labels are toxicity")
    return labels


def by_attribute(label_scores: Mapping[str, Any], labels: Labels) -> Scores | Unscored:
    """The highest score among an attribute's labels. A label that the answer does not hold is left
    out; an attribute without any is not given."""
    present = {
        label: label_scores[label]
        for names in labels.values()
        for label in names
        if label in label_scores
    }
    numbers = checked({TOXICITY: 0, **present})
    if isinstance(numbers, Unscored):
        return numbers
    values = {
        attribute: max(present[name] for name in names if name in present)
        for attribute, names in labels.items()
        if any(name in present for name in names)
    }
    high = sorted(
        (label for label in present if present[label] >= _WORTH_SAYING), key=present.__getitem__
    )
    return checked(values, tuple(f"{label} {present[label]:.2f}" for label in reversed(high)))
