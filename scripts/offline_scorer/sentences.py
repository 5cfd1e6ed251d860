"""Sentences of our own about groups, persons and things, with what they should score.

Public sets name some groups mostly in hate, so a model learns that the name is the insult. Here
every group stands in kind and in cruel sentences alike. The wording is ours; HateCheck and the
Jigsaw identity templates are test sets, and `train_offline_scorer.py` drops any sentence that
equals one of theirs when the groups are left out.
"""

import random
import re
from dataclasses import dataclass

from offline_scorer import frames, words
from offline_scorer.words import GROUPS, cells

_FRAMED = 0.15  # the share of sentences that get an opener, and of those that get a closer
# Share, frames, toxicity, identity_attack, hate. Targets are ours, in coarse steps: the first two
# near what Perspective gives to such texts; hate puts contempt for a group first, then contempt for
# anybody else, then all the rest, whether or not it swears.
_KINDS = [
    (0.34, frames.HATEFUL, 0.85, 0.95, 0.95),
    (0.05, frames.ENDORSING, 0.75, 0.90, 0.90),
    (0.27, frames.BENIGN, 0.07, 0.03, 0.03),
    (0.12, frames.REJECTING, 0.25, 0.10, 0.06),
    (0.07, frames.INSULTS, 0.80, 0.05, 0.40),
    (0.05, frames.ABOUT_OTHERS, 0.60, 0.15, 0.30),
    (0.06, frames.ABOUT_THINGS, 0.20, 0.02, 0.06),
    (0.04, frames.SWEARING, 0.55, 0.02, 0.08),
]


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    toxicity: float
    identity_attack: float
    hate: float
    frames: tuple[str, ...]  # its own, then that of the sentence it quotes


def sentences(n: int, seed: int) -> list[Sentence]:
    """`n` distinct ones: two fifths cruel to a group, as many not, the rest of others."""
    rng, made = random.Random(seed), dict[str, Sentence]()
    while len(made) < n:
        _, some, toxicity, attack, hate = rng.choices(_KINDS, [kind[0] for kind in _KINDS])[0]
        frame = rng.choice(some)
        quoted = rng.choice(frames.HATEFUL) if "{s}" in frame else None
        text = _filled(frame, quoted, rng, others=some is frames.ABOUT_OTHERS)
        if text is not None:
            used = (frame, quoted) if quoted else (frame,)
            made.setdefault(text, Sentence(text, toxicity, attack, hate, used))
    return list(made.values())


def _filled(frame: str, quoted: str | None, rng: random.Random, *, others: bool) -> str | None:
    many, one, adjective = rng.choice(GROUPS)
    if "{a}" in frame + (quoted or "") and not adjective:
        return None
    text = frame.replace("{s}", quoted.rstrip(".") if quoted else "")
    single = [kind for kind in ("{cruel1}", "{kind1}") if kind in text]
    cruel, kind = (
        rng.choice([word for word in cells(some) if not single or " " not in word])
        for some in (words.CRUEL, words.KIND)
    )
    text = text.format(
        g=rng.choice(cells(words.OTHERS)) if others else many, o=one, a=adjective,
        cruel=cruel, cruel1=cruel, kind=kind, kind1=kind, plain=rng.choice(cells(words.PLAIN)),
        harm=rng.choice(cells(words.HARM)), good=rng.choice(cells(words.HELP)),
        p=rng.choice(cells(words.PERSONS)), t=rng.choice(cells(words.THINGS)),
        one=rng.choice(cells(words.NAMES)),
    )  # fmt: skip
    text = text.replace("you is", "you are").replace("a idiot", "an idiot")
    if rng.random() < _FRAMED:
        text = rng.choice(cells(words.OPENERS)) + text
    if rng.random() < _FRAMED:
        text += rng.choice(cells(words.CLOSERS))
    return text[0].upper() + text[1:] if rng.random() < 0.5 else text


def _any_of(names: set[str]) -> re.Pattern[str]:
    longest_first = "|".join(sorted(names - {""}, key=len, reverse=True))
    return re.compile(rf"\b(?:{longest_first})\b", re.IGNORECASE)


_NAMED = _any_of({many for many, _, _ in GROUPS})
_NAMED_AT_ALL = _any_of({name for group in GROUPS for name in group})


def with_another_group(text: str, rng: random.Random) -> str | None:
    """The same said of another group, where the text names exactly one."""
    if len(set(hit.lower() for hit in _NAMED.findall(text))) != 1:
        return None
    return _NAMED.sub(rng.choice(GROUPS)[0].lower(), text)


_LEET = str.maketrans("aeiost", "431057")


def misspelt(text: str, rng: random.Random) -> str:
    """One word changed the way people dodge filters, or mistype."""
    words = text.split(" ")
    at = rng.choice([i for i, word in enumerate(words) if len(word) > 3] or [0])
    word = words[at]
    cut = rng.randrange(1, len(word) - 1) if len(word) > 2 else 0
    ways = [
        word.translate(_LEET),
        word[:cut] + word[cut + 1 :],
        word[:cut] + word[cut : cut + 2][::-1] + word[cut + 2 :],
        " ".join(word),
        word[:cut] + "*" + word[cut + 1 :],
        word[:cut] + word[cut] * 3 + word[cut + 1 :],
    ]
    words[at] = rng.choice(ways) if cut else word
    if rng.random() < 0.15 and at + 1 < len(words):
        words[at : at + 2] = ["".join(words[at : at + 2])]
    return " ".join(words)


def skeleton(text: str) -> str:
    """What is left without the names of groups, capitals and points: two wordings of one frame."""
    text = re.sub(r"[^a-z ]", "", _NAMED_AT_ALL.sub("GROUP", text).lower())
    return " ".join(text.replace("group people", "group").split())
