"""Verbs after "they", where "she" or "he" stood: "she works" becomes "they work".

Every rule here either gives the right words or says that it cannot tell. The lists are ours.
"""

import re

from evenhand.instruments.swap.grammar import WORD, CannotTell, capitalised

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
_ADVERBS = frozenset(
    """also always already almost actually again afterwards besides certainly clearly consistently
    currently easily effectively ever even eventually fully finally formerly frequently generally
    hardly indeed initially instead just largely lately mainly mostly nearly never nevertheless
    nonetheless normally not now nowadays occasionally often once only otherwise particularly
    perhaps possibly presently previously primarily probably quickly quietly rarely really recently
    regularly repeatedly seldom simply since slowly sometimes soon specifically still successfully
    then therefore thus typically usually very""".split()
)
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
    return CannotTell("the verb does not follow the pronoun")


_LY_VERBS = frozenset("apply rely reply comply supply fly multiply imply".split())
_NO_VERB = frozenset(
    """or who whom whose that which in on at to for from with by of than if when while because
    herself himself themselves as unless whereas alas its ours theirs yours hers his""".split()
)
# Verbs that are the same after "she" and after "they", beside those that end in -ed or -n't.
_SAME = frozenset(
    """can could will would shall should may might must cannot ought had did be were ate became
    began bet bid bought broke brought built came caught chose cost cut dealt drank drew drove fed
    fell felt fled flew forgave forgot fought found froze gave got grew heard held hid hit hung
    hurt kept knew laid lay led left lent let lost made meant met overcame oversaw paid put quit
    ran rang read rode rose said sang sank sat saw sent shook shot shut slept slid sold spent spoke
    stole stood struck stuck swam swore taught thought threw told took understood undertook went
    withdrew woke won wore wrote""".split()
)


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
    return CannotTell('the "\'s" after the pronoun may be "is" or "has"')


def _with_plural(
    after: str, match: "re.Match[str]", beyond: str, *, question: bool
) -> str | CannotTell:
    verb, rest = match[2], after[match.end() :]
    second = _second_verb(rest + beyond)
    if second:
        return CannotTell(f"{second!r} may be a second verb of the pronoun")
    if verb[0].isupper() and not verb.isupper():
        return CannotTell("the verb does not follow the pronoun")
    plural = plural_verb(verb)
    if plural is None and not question and not _surely_verb(verb):
        clause = _CLAUSE.split(rest + beyond, maxsplit=1)[0]
        later = [word for word in re.findall(r"[\w'’]+", clause) if plural_verb(word) is not None]
        if later:  # "she alone works", "she no longer works"
            return CannotTell(f"{verb!r} may not be the verb of the pronoun, but {later[0]!r}")
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
        return CannotTell(f"{match[1]!r} before the pronoun may be the verb of another word")
    plural = plural_verb(match[1])
    assert plural is not None
    plural = capitalised(plural) if match[1][0].isupper() and not plural.isupper() else plural
    return before[: match.start()] + plural + match[2]
