"""Texts that are copies of each other, or fillings of one template, count as one example.

A judge or a scorer that knows one such text knows them all: forty of them are no more evidence than
one. Two texts belong together if they are the same but for case, digits, punctuation and white
space, or but for one slot: a run of at most three words. Who belongs to a third text belongs
together too.
"""

from collections.abc import Hashable, Sequence

from evenhand.training.debates.splits import words

# Our choice: the most words of a slot, and the fewest that the texts must share outside of it, as a
# number and as a part of the longer text. "I hate you" and "I love you" are two texts.
SLOT = 3
_SHARED, _PART = 3, 0.6


def clusters_of(texts: Sequence[str], names: Sequence[Hashable] | None = None) -> list[int]:
    """Give for each text the place of the first one of its cluster.

    Args:
        texts: The texts, in any order.
        names: What each text is known to share with others, such as its author; texts with the same
            name belong together whatever they say.
    """
    parent = list(range(len(texts)))
    first: dict[Hashable, int] = {}
    for index, text in enumerate(texts):
        tokens = [word for word in (_letters(raw) for raw in words(text)) if word]
        keys: list[Hashable] = _keys(tokens) if tokens else [("same", text.strip())]
        keys += [] if names is None else [("named", names[index])]
        for key in keys:
            ours, theirs = _root(parent, index), _root(parent, first.setdefault(key, index))
            parent[max(ours, theirs)] = min(ours, theirs)
    return [_root(parent, index) for index in range(len(texts))]


def _letters(word: str) -> str:
    return "".join(sign for sign in word if not sign.isdigit() and sign != "_")


def _keys(tokens: list[str]) -> list[Hashable]:
    """Give what a text has in common with those of its cluster: itself, and itself with each slot
    that it may have cut out. A slot that is empty in one text is cut out of the others too."""
    keys: list[Hashable] = [("same", tuple(tokens))]
    for size in range(SLOT + 1):
        remaining = len(tokens) - size
        if remaining < max(_SHARED, _PART * len(tokens)):
            break
        keys += [
            ("slot", at, tuple(tokens[:at] + tokens[at + size :])) for at in range(remaining + 1)
        ]
    return keys


def _root(parent: list[int], at: int) -> int:
    while parent[at] != at:
        parent[at] = parent[parent[at]]
        at = parent[at]
    return at
