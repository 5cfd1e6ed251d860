"""A text without whom it speaks of: every person and every group becomes "someone".

So no name of a group can carry weight: the same sentence about others is the same sentence.
"""

import re
from functools import cache
from importlib import resources

WHO = "someone"
_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*\+?")
_STARTS = frozenset('.!?:;"“”‘(*-–—\n')  # after these a capital letter says nothing
_TOGETHER = re.compile(rf"\b{WHO}(?:[\s,\-]+{WHO})+\b")
_ARTICLE = re.compile(rf"\b(a)n(\s+{WHO})\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?$")
_EMPTY_STARTS = frozenset(
    """a an the this that these those i you we it my your our its and but or if when while after
    before in on at by to for from with about as of since although though because so then there
    here what who why how where which not no yes some many most all both each every one two
    is are was were do does did have has had can could will would should may might must""".split()
)


@cache
def groups() -> frozenset[str]:
    """Give the words for persons and groups."""
    text = resources.files(__package__).joinpath("groups.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return frozenset(" ".join(lines).split())


def masked(text: str, vocabulary: frozenset[str]) -> str:
    """Put "someone" for every word that names a person or a group, and once for several together.

    `vocabulary` are the words of the language: what begins a sentence and is not among them is a
    name.

    >>> masked("Maria is a deaf nurse, and Germans like her.", frozenset(["nurse"]))
    'someone is a someone nurse, and someone like someone.'
    """

    def instead(match: "re.Match[str]") -> str:
        word = match.group()
        begins = _begins(text, match.start())
        return WHO + _left_over(word) if _is_who(word, begins, vocabulary) else word

    hidden = _WORD.sub(instead, text)
    return _ARTICLE.sub(r"\1\2", _TOGETHER.sub(WHO, hidden))


def _begins(text: str, at: int) -> bool:
    while at and text[at - 1] in " \t":
        at -= 1
    return not at or text[at - 1] in _STARTS


def _is_who(word: str, begins: bool, vocabulary: frozenset[str]) -> bool:
    bare = _POSSESSIVE.sub("", word).lower()
    whole_and_parts = {bare, bare.replace("-", ""), *bare.split("-")}
    if any(not groups().isdisjoint(_singular(form)) for form in whole_and_parts):
        return True
    if any(part[:1].isupper() and not part.isupper() for part in word.split("-")[1:]):
        return True  # half-Mexican
    if word.isupper() or not word[0].isupper() or bare.startswith(("i'", "i’")):
        return False
    if bare in _EMPTY_STARTS:
        return False
    return not begins or bare not in vocabulary


def _singular(word: str) -> set[str]:
    """Give the words that this one may be the plural of, itself among them."""
    ends = (("s", ""), ("ies", "y"), ("men", "man"))
    return {
        word,
        *(word[: -len(end)] + replacement for end, replacement in ends if word.endswith(end)),
    }


def _left_over(word: str) -> str:
    """The possessive of a word that is taken out; not of a pronoun, which hides it."""
    end = _POSSESSIVE.search(word)
    return "'s" if end else ""
