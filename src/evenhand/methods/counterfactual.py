"""The same judgement asked in other words: what is said of an author is masked, or exchanged within
its family, and two candidates are shown in both orders.

The item's tags say which words those are. `label_words` (single), `first_words` and `second_words`
(pair) are the words said of an author as they stand in the prompt, empty where nothing is said;
`family_words` are those of the family's other labels, split at "|". They stand outside the fences
of the prompt (`marked`): a task or a response that has the same words is left as it is, else it
would be another text under each label. The candidates of a pair stand within <response_1> and
<response_2>.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from evenhand.domain import Item
from evenhand.errors import UserError
from evenhand.prompts import marked

# Whatever is not "off" asks a pair in both orders, so that a slot cannot have an effect.
#   blind  masked only: no label can have an effect
#   mask   as it is and masked: halves the effect of a label
#   swap   as it is and under every other label of the family, or with the labels of a pair
#          exchanged: the labels of a family cannot have different effects
Counterfactual = Literal["off", "blind", "mask", "swap"]

MASK = "a person"  # our choice: reads well where a label's words do
_SLOTS = ("response_1", "response_2")
_FENCE = re.compile(r"<(\w+)>\n(.*?)\n</\1>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Wording:
    """One way to ask. `reversed`: the candidates are in the other order than in the item."""

    name: str
    prompt: str
    reversed: bool = False


def wordings(item: Item, counterfactual: Counterfactual) -> list[Wording]:
    """All that is to be asked, each once. Where nothing is said, nothing is masked or swapped."""
    if counterfactual == "off":
        return [Wording("as is", item.prompt)]
    orders = [("", item.prompt)]
    if item.tags.get("phase") == "pair":
        orders.append((", other order", other_order(item)))
    unique: dict[tuple[str, str], Wording] = {}
    for name, exchange in _changes(item, counterfactual):
        for order, prompt in orders:
            wording = Wording(name + order, with_words(prompt, exchange), bool(order))
            unique.setdefault((order, wording.prompt), wording)
    return list(unique.values())


def _changes(item: Item, counterfactual: Counterfactual) -> list[tuple[str, Mapping[str, str]]]:
    """What is put in the place of what, with a name for it."""
    labels = _said(item)
    if counterfactual == "swap":
        return [("as is", {}), *_swaps(item, labels)]
    masked = ("masked", dict.fromkeys(labels, MASK))
    return [masked] if counterfactual == "blind" else [("as is", {}), masked]


def _swaps(item: Item, labels: list[str]) -> list[tuple[str, Mapping[str, str]]]:
    if item.tags.get("phase") == "pair":
        return [("labels exchanged", _each_for_the_other(labels))]
    others = [words for words in _tag(item, "family_words").split("|") if words]
    return [(f"as {other}", {words: other}) for words in labels for other in others]


def _said(item: Item) -> list[str]:
    """What is said of the authors, in the order of their slots."""
    pair = item.tags.get("phase") == "pair"
    names = ("first_words", "second_words") if pair else ("label_words",)
    return [words for words in (_tag(item, name) for name in names) if words]


def _tag(item: Item, name: str) -> str:
    """Without the tag nobody knows what to change, which is not the same as nothing to change."""
    if name not in item.tags:
        raise UserError(f"item {item.id!r} cannot be asked in other words: it has no tag {name!r}")
    return item.tags[name]


def _each_for_the_other(labels: list[str]) -> dict[str, str]:
    """Words that are said of one author only have nobody to change places with."""
    return dict(zip(labels, labels[::-1], strict=True)) if len(labels) == 2 else {}


def with_words(prompt: str, exchange: Mapping[str, str]) -> str:
    """The prompt with all words exchanged at once, those that begin a sentence too. Words that are
    not there are an error: the same question would pass for another."""
    if not exchange:
        return prompt
    outside, fenced = _parts(prompt)
    forms = {_capital(words): _capital(put) for words, put in exchange.items()} | dict(exchange)
    longest_first = sorted(map(re.escape, forms), key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?!\w)")
    there = {words for piece in outside for words in pattern.findall(piece)}
    missing = [words for words in exchange if not there & {words, _capital(words)}]
    if missing:
        raise UserError(f"{missing[0]!r} should stand outside the fences of a prompt, and does not")
    return _whole([pattern.sub(lambda match: forms[match[0]], piece) for piece in outside], fenced)


def other_order(item: Item) -> str:
    """The prompt with the two candidates, and what is said of each, in the other's place."""
    labels = _said(item)
    outside, fenced = _parts(with_words(item.prompt, _each_for_the_other(labels)))
    texts = dict(fenced)
    if not {*_SLOTS} <= texts.keys() or len(labels) == 1:
        raise UserError(
            f"item {item.id!r} cannot be asked in the other order: it must have a <response_1> and "
            "a <response_2>, and say something of both authors or of neither"
        )
    turned = dict(zip(_SLOTS, (texts[_SLOTS[1]], texts[_SLOTS[0]]), strict=True))
    return _whole(outside, [(tag, turned.get(tag, text)) for tag, text in fenced])


def _parts(prompt: str) -> tuple[list[str], list[tuple[str, str]]]:
    """What stands before, between and after the fences; the tag and the text of each fence."""
    pieces = _FENCE.split(prompt)
    return pieces[::3], list(zip(pieces[1::3], pieces[2::3], strict=True))


def _whole(outside: list[str], fenced: list[tuple[str, str]]) -> str:
    """Fenced anew: a text that is moved could close the fence it comes into."""
    fences = [marked(text, tag) for tag, text in fenced]
    return "".join(piece + fence for piece, fence in zip(outside, [*fences, ""], strict=True))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
