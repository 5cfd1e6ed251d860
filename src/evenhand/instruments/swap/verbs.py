"""Verbs after "they", where "she" or "he" stood: "she works" becomes "they work".

Every rule here either gives the right words or says that it cannot tell. The lists are ours.
"""

import re

from evenhand.core.package_data import word_sets
from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.swap.grammar import WORD, CannotTell, capitalised

_LISTS = word_sets(__package__, "english.toml")
_WORDS = InstrumentWords(__package__)

_PLURAL = {
    "is": "are",
    "was": "were",
    "has": "have",
    "does": "do",
    "isn't": "aren't",
    "wasn't": "weren't",
    "hasn't": "haven't",
    "doesn't": "don't",
}
# Adverbs that may stand between "she" and her verb. Those that end in -s look like verbs.
_ADVERBS = _LISTS["adverbs"]
_STOPS = re.compile(r"\s*(?:$|[.!?;:)\]\"”])")
_NEXT = re.compile(rf"([\s]+)({WORD.pattern}(?:['’]t\b)?)(?!['’][\w])")
_S_ENDS = (("sses", 2), ("shes", 2), ("xes", 2), ("zzes", 2), ("oes", 2))
_ODD = {
    "aches": "ache",
    "dies": "die",
    "lies": "lie",
    "ties": "tie",
    "vies": "vie",
    "focuses": "focus",
    "quizzes": "quiz",
    "canoes": "canoe",
    "axes": "axe",
    "buses": "bus",
    "caches": "cache",
    "biases": "bias",
    "shoes": "shoe",
    "skis": "ski",
}


def plural_verb(verb: str) -> str | None:
    """Give the verb that "they" takes in place of the one that "she" takes, or None where it is
    the same. Whatever follows "she" and ends in one -s is taken for a verb."""
    low = verb.casefold().replace("’", "'")
    plural = _PLURAL.get(low) or _ODD.get(low)
    if plural is None and low.endswith("s") and not low.endswith(("ss", "us", "is")):
        plural = _without_s(low)
    if plural is None:
        return None
    plural = plural.replace("'", "’") if "’" in verb else plural
    return plural.upper() if verb.isupper() and len(verb) > 1 else plural


def _without_s(low: str) -> str:
    if low.endswith("ies"):
        return low[:-3] + "y"
    if low.endswith("ches"):
        return low[:-2]
    return next((low[:-cut] for end, cut in _S_ENDS if low.endswith(end)), low[:-1])


def after_they(after: str, beyond: str, *, question: bool = False) -> str | CannotTell:
    """Give the text between a pronoun that became "they" and the next slot, with its verb in the
    plural. `beyond` is what comes after that text; `question` says that "can", "did" or the like
    stands before the pronoun, so that the verb has no ending."""
    if re.match("['’]", after):
        return _contracted(after)
    if _STOPS.match(after) and (after.strip() or not beyond):
        return after
    at = 0
    for _ in range(3):  # our choice: a verb after more than two adverbs is not looked for
        match = _NEXT.match(after, at)
        if match is None or match[2].casefold() in _NO_VERB:
            break
        word = match[2].casefold()
        if word == "and":  # "she and her team": the verb is in the plural already
            return after
        if word not in _ADVERBS and (not word.endswith("ly") or word in _LY_VERBS):
            return _with_plural(after, match, beyond, question=question)
        at = match.end()
    return CannotTell(_WORDS("no_verb"))


_LY_VERBS = _LISTS["verbs_in_ly"]
_NO_VERB = _LISTS["never_verbs"]
# Verbs that are the same after "she" and after "they", beside those that end in -ed or -n't.
_SAME = _LISTS["same_after_they"]


def _surely_verb(word: str) -> bool:
    low = word.casefold().replace("’", "'")
    return low in _SAME or low.endswith(("ed", "n't"))


_IS = re.compile(r"['’]s(?=\s+(?:\w+ing|a|an|the|not|very|so|too|in|on|at|from|my|our|your)\b)")
_HAS = re.compile(r"['’]s(?=\s+(?:been|got|had)\b)")


def _contracted(after: str) -> str | CannotTell:
    """Give "'re" or "'ve" for the "'s" of "she's", where the next word tells which it is."""
    if re.match(r"['’](?:ll|d)\b", after):
        return after
    for match, ending in ((_IS.match(after), "re"), (_HAS.match(after), "ve")):
        second = match and _second_verb(after[2:])
        if match and not second:
            return after[0] + ending + after[2:]
    return CannotTell(_WORDS("is_or_has"))


def _with_plural(
    after: str, match: "re.Match[str]", beyond: str, *, question: bool
) -> str | CannotTell:
    verb, rest = match[2], after[match.end() :]
    second = _second_verb(rest + beyond)
    if second:
        return CannotTell(_WORDS("second_verb", verb=second))
    if verb[0].isupper() and not verb.isupper():
        return CannotTell(_WORDS("no_verb"))
    plural = plural_verb(verb)
    if plural is None and not question and not _surely_verb(verb):
        clause = _CLAUSE.split(rest + beyond, maxsplit=1)[0]
        later = [word for word in re.findall(r"[\w'’]+", clause) if plural_verb(word) is not None]
        if later:  # "she alone works", "she no longer works"
            return CannotTell(_WORDS("other_verb", verb=verb, later=later[0]))
    return after if plural is None else after[: match.start(2)] + plural + rest


_CLAUSE = re.compile(r"[.!?;:\n]")
_JOINED = re.compile(r"(?:\b(?:and|or|but|then|nor|yet)\b|,)((?:\s+[\w'’]+){1,4})")


def _second_verb(rest: str) -> str | None:
    """Give what may be a second verb of the same subject: "works hard and EARNS well"."""
    clause = _CLAUSE.split(rest, maxsplit=1)[0]
    for match in _JOINED.finditer(clause):
        for word in match[1].split():
            low = word.casefold().replace("’", "'")
            if low in _ADVERBS or low.endswith("ly") or low in ("and", "or", "but", "then"):
                continue
            if word[0].islower() and plural_verb(word) is not None:
                return word
            break
    return None


_ASKED = re.compile(
    r"(?:^|[.!?:;,\"“(\n]\s*|\b(?:why|what|how|when|where|which|who|whom|and|or|but|then|"
    r"time|reason|often|long|much|many|nor|neither)\s+)$",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"\b(is|was|has|does|isn['’]t|wasn['’]t|hasn['’]t|doesn['’]t)(\s+)$", re.I)


_AUXILIARY = re.compile(
    r"\b(?:can|could|will|would|shall|should|may|might|must|did|had|(?:\w+n['’]t))\s+$",
    re.IGNORECASE,
)


def asked_before(before: str) -> bool:
    """Say whether a verb such as "can" or "did" stands before the pronoun."""
    return _AUXILIARY.search(before[-40:]) is not None


def before_they(before: str) -> str | CannotTell:
    """Give the text before a pronoun that became "they", with the verb of a question in the
    plural: "Is she" → "Are they"."""
    match = _BEFORE.search(before)
    if match is None:
        return before
    if not _ASKED.search(before[: match.start()]):
        return CannotTell(_WORDS("verb_before", verb=match[1]))
    plural = plural_verb(match[1])
    assert plural is not None
    plural = capitalised(plural) if match[1][0].isupper() and not plural.isupper() else plural
    return before[: match.start()] + plural + match[2]
