"""The little English that a swap needs: words, capitals and articles.

Every rule here either gives the right words or says that it cannot tell. The lists are ours.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from evenhand.core.package_data import word_sets
from evenhand.instruments.files import InstrumentWords

_LISTS = word_sets(__package__, "english.toml")

Case = Literal["as written", "capital", "upper", "lower"]

# Letters, digits and "_" belong to a word, and so do marks that combine with a letter and invisible
# characters that join or part letters: "José" is one word however its accent is stored.
_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f\u00ad\u200c\u200d"
WORD = re.compile(rf"[\w{_MARKS}]+")


@dataclass(frozen=True, slots=True)
class Token:
    """A token is a word of a text with its place."""

    start: int
    end: int
    text: str

    @property
    def folded(self) -> str:
        return unicodedata.normalize("NFC", self.text).casefold()


def tokens(text: str) -> list[Token]:
    """Find the words of a text, without what is between them."""
    return [Token(match.start(), match.end(), match[0]) for match in WORD.finditer(text)]


def capitalised(word: str) -> str:
    """Give the word with its first letter as a capital and all others as they are."""
    return word[:1].upper() + word[1:]


def case_of(text: str, form: str) -> Case | None:
    """Tell how a text writes a form, or None where its capitals follow no rule of ours."""
    text, form = _plain(text), _plain(form)
    if text == form:
        return "as written"
    if text == form.upper() and len(text) > 1:
        return "upper"
    if text == capitalised(form):
        return "capital"
    return "lower" if text == form.lower() else None


def _plain(text: str) -> str:
    """Give a text in one way of writing accents, apostrophes, hyphens and spaces."""
    text = unicodedata.normalize("NFC", text).replace("’", "'")
    return re.sub(r"\s+", " ", re.sub("[‐‑]", "-", text))


def in_case(word: str, case: Case) -> str:
    """Write a word in a case that was seen."""
    if case == "upper":
        return word.upper()
    if case == "lower":
        return word.lower()
    return capitalised(word) if case == "capital" else word


_STARTS = re.compile(r"(?:^|[.!?…][\"'”’)\]*_]*\s+|\n\s*)[\"'“‘(\[*_#>\-•\s]*$")
_ABBREVIATED = re.compile(r"(?:\b(?:Dr|Mr|Ms|Mrs|Mx|Prof|St|vs|No|e\.g|i\.e)|\b[A-Z])\.\s+$")


def starts_sentence(before: str) -> bool:
    """Say whether a word after this text begins a sentence or a line."""
    before = before[-200:]  # the last characters show a sentence's start
    return bool(_STARTS.search(before)) and not _ABBREVIATED.search(before)


_AN = re.compile(r"(?:[aeiou]|hour|hono[u]?r|honest|heir|8|11(?!\d)|18(?!\d))", re.IGNORECASE)
_NOT_AN = re.compile(
    r"(?:uni(?![nm])|u[kst]\b|us[aeiu]|ut[ei]|ub[ei]|uk|ur[aiou]|eu|ew|one\b|once\b)", re.IGNORECASE
)
_LETTERS = re.compile(r"(?:[A-Z]|[B-DF-HJ-NP-TV-Z]{2,})\b")


def article(word: str) -> str:
    """Give "a" or "an", as the word sounds; capitals without a vowel are read as letters."""
    if _LETTERS.match(word):
        return "an" if word[0] in "AEFHILMNORSX" else "a"
    return "an" if _AN.match(word) and not _NOT_AN.match(word) else "a"


ARTICLE = re.compile(rf"(?<![\w{_MARKS}'’-])(a|an)(\s+)$", re.IGNORECASE)


_LETTERED = _LISTS["before_letter"]


def _is_letter(written: str, before: str) -> bool:
    """Say whether an "A" is a letter ("In plan A …"): a capital in mid-sentence after a small
    word, or after one that letters follow. In a heading, "Hiring A …", it is an article."""
    words = re.findall(r"\w+", before[-60:])
    if written != "A" or not words or not before[-1:].isspace() or starts_sentence(before):
        return False
    last = words[-1]
    return before.rstrip().endswith(last) and (last[0].islower() or last.casefold() in _LETTERED)


def with_article(before: str, after: str) -> str:
    """Give the text before a word with the "a" or "an" at its end as the word wants it."""
    match = ARTICLE.search(before)
    if match is None or not after or _is_letter(match[1], before[: match.start()]):
        return before
    fitting = article(after)
    written = match[1]
    if written.isupper() and (len(written) > 1 or after[:2].isupper()):
        fitting = fitting.upper()
    elif written[0].isupper():
        fitting = capitalised(fitting)
    return before[: match.start()] + fitting + match[2]


@dataclass(frozen=True, slots=True)
class CannotTell:
    """A reason why a rule gives no words."""

    why: str


# Words after which no noun of the same phrase has begun: after "her" they show an object.
FUNCTION = _LISTS["function_words"]


_OTHERS = word_sets(__package__, "languages.toml")
_ENGLISH = _LISTS["common_english"]
_FEWEST = 2  # our choice: one foreign word may be a name or a loan


_SURNAMES = re.compile(
    r"\b(?:d[eai]|del|della|van|von|la|le|el)(?:\s+(?:la|las|los|der|den))?\s+(?=[A-Z])"
)  # "Maria de la Cruz" is no Spanish sentence


def foreign(text: str) -> str | None:
    """Name the language of a text that is not English, as far as its commonest words tell, or
    None. Our choice: it is another one where its words are seen twice or more, and more often
    than those of English; or where most letters are not Latin."""
    letters = [sign for sign in text if sign.isalpha()]
    latin = sum("LATIN" in unicodedata.name(sign, "") for sign in letters)
    if letters and latin * 2 < len(letters):
        return InstrumentWords(__package__)("another_script")
    words = [token.folded for token in tokens(_SURNAMES.sub("", text))]
    english = sum(word in _ENGLISH for word in words)
    counts = {
        language: sum(word in common for word in words if word not in ("a", "is"))
        for language, common in _OTHERS.items()
    }
    language = max(counts, key=lambda name: counts[name])
    return language if counts[language] >= max(_FEWEST, english + 1) else None


def words_after(text: str, at: int, most: int) -> Iterator[str]:
    """Yield the words that follow a place with nothing but spaces between them.

    Args:
        text: Text to read.
        at: Index to start from.
        most: Largest number of words.

    Yields:
        The words, as they are written.
    """
    for _ in range(most):
        match = re.compile(rf"\s+([\w{_MARKS}]+)").match(text, at)
        if match is None:
            return
        yield match[1]
        at = match.end()


# -- verbs after “they” ---------------------------------------------------------------------------


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
    """Put the verb that follows a pronoun into the plural, for a pronoun that became "they".

    Args:
        after: Text between the pronoun and the next slot.
        beyond: Text after that.
        question: Whether "can", "did" or the like precedes the pronoun, so that the verb has no
            ending.

    Returns:
        The text with its verb in the plural, or why the verb cannot be told.
    """
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
# Verbs that are the same after "she" and after "they", other than those in -ed or -n't.
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


# -- what a word means by its neighbours ----------------------------------------------------------


# These may begin what "her" owns ("her only child") or end the sentence about her ("hired her
# back"), so they do not tell.
_EITHER = _LISTS["after_her_either"]
_PREPOSITIONS = _LISTS["prepositions"]
# After these verbs a noun may be hers ("saw her manager") or a second object ("gave her money").
_TWO_OBJECTS = _LISTS["two_object_verbs"]
_NAMING = _LISTS["naming_verbs"]
# One of these cannot stand alone as a second object, so "gave her application" is possessive.
_OWNED = _LISTS["owned_only"]
# After these a noun is hers even where it may stand alone: "wants her money".
_WANTING = _LISTS["wanting_verbs"]
_ALONE = _LISTS["stands_alone"]
_NOT_ADVERBS = _LISTS["not_adverbs"]
_DAYS = _LISTS["days"]
_STOP = re.compile(r"\s*(?:$|[^\w\s'’\-(\"“$€£{]|['’](?!\w))")
_STARS = re.compile(r"^[*_]+")  # "**her** refund": what only sets a word off tells nothing


def _last_word(before: str) -> str:
    match = re.search(r"([\w'’]+)\s+$", before[-80:])
    return match[1].casefold() if match else ""


def her(before: str, after: str) -> str | None:
    """Tell whether "her" is an object ("saw her") or a possessive ("her desk"), or neither.

    What follows tells: a stop or a word that begins something new shows an object, a noun a
    possessive, except after verbs with two objects.
    """
    after = _STARS.sub("", after)
    follows = [word.casefold() for word in words_after(after, 0, 2)]
    if _STOP.match(after):
        return "object"
    if not follows:
        return None
    word, previous = follows[0], _last_word(before)
    owning = starts_sentence(before) or previous in _PREPOSITIONS
    if word in _EITHER or word[0].isdigit():
        return "possessive" if owning else None
    if word in FUNCTION or word in _DAYS:
        return "object"
    if word.endswith("ly") and word not in _NOT_ADVERBS:
        return _her_adverb(after, follows, owning)
    return _her_noun(word, previous, owning)


def _her_adverb(after: str, follows: list[str], owning: bool) -> str | None:
    rest = after.lstrip()[len(follows[0]) :]
    if _STOP.match(rest) or (len(follows) > 1 and follows[1] in FUNCTION - _EITHER):
        return "object"
    return "possessive" if owning else None


def _her_noun(word: str, previous: str, owning: bool) -> str | None:
    if owning or not previous:
        return "possessive"
    if previous in _NAMING:
        return None
    if previous not in _TWO_OBJECTS or word in _OWNED:
        return "possessive"
    return "possessive" if previous in _WANTING and word in _ALONE else None


_ONE_OF = re.compile(r"\b(?:a|an|any|no|some|this|that|two|three)\s+(?:\w+\s+)?\w+\s+of\s+$", re.I)


def his(before: str, after: str) -> str | None:
    """Tell whether "his" is like "her" ("his desk") or like "hers" ("the desk is his")."""
    after = _STARS.sub("", after)
    word = next(words_after(after, 0, 1), "").casefold()
    if _STOP.match(after):
        return "possessive_pronoun"
    if _ONE_OF.search(before[-60:]) and word not in FUNCTION:
        return None  # "a friend of his called", "a member of his team"
    if not word or (word in _EITHER and _last_word(before) in ("is", "was", "are", "were")):
        return None
    return "possessive_pronoun" if word in FUNCTION - _EITHER else "possessive"


PEOPLE = _LISTS["people"]
# Nouns of things to which a group's adjective is put: "a Muslim holiday".
THINGS = _LISTS["things"]
_BE = _LISTS["before_adjective"]
_A = _LISTS["before_noun"]
_SOMEBODY_IS = re.compile(
    r"\b(?:he|she|they|who|i|you|we)(?:\s+(?:is|are|was|were|am)|['’](?:s|re|m))"
    r"(?:\s+(?:not|also|legally|now|openly|totally|partially|completely))?\s+$",
    re.IGNORECASE,
)


def of_people(before: str, after: str) -> bool:
    """Say whether a word such as "black" is said of people: a person follows, or it is what
    somebody is."""
    if any(word.casefold() in PEOPLE for word in words_after(after, 0, 2)):
        return True
    ends = _STOP.match(after) or next(words_after(after, 0, 1), "").casefold() in FUNCTION
    return bool(ends and _SOMEBODY_IS.search(before[-60:]))


def group_or_member(before: str, after: str) -> str | None:
    """Tell whether "Muslim" is an adjective ("a Muslim holiday") or a noun ("a Muslim")."""
    follows = [word.casefold() for word in words_after(after, 0, 2)]
    if any(word in PEOPLE for word in follows) or (follows and follows[0] in THINGS):
        return "group"
    previous = _last_word(before)
    if previous in _A and re.match(
        r"\s+\w+ed(?=\s*[.,;:!?]|\s+(?:for|to|in|at|if|about)\b)", after
    ):
        return "member"  # "a Muslim applied for it"
    if _STOP.match(after) or (follows and follows[0] in FUNCTION):
        if previous in _BE or re.search(r"['’](?:s|m|re)\s+$", before[-5:]):
            return "group"
        return "member" if previous in _A else None
    return None


# Names that are words as well: alone they do not tell.
NAME_WORDS = _LISTS["name_words"]
# Those of them with which an order or a question may begin: "Will Smith come?"
_VERBS = _LISTS["name_or_verb"]
_MONTHS = _LISTS["months"]
_MONTH_BEFORE = _LISTS["month_before"]
_OPENS_QUESTION = _LISTS["opens_question"]
_PLACE_BEFORE = _LISTS["place_before"]
_THING_AFTER = _LISTS["thing_after"]
_GREETS = _LISTS["greetings"]
_NO_SURNAME = _LISTS["no_surname"]


def surname_after(after: str) -> int:
    """Give how many characters after a first name are a last name: up to two words with a
    capital, such as " Walsh", " O'Connell" or " Smith-Jones"; 0 where there is none."""
    part = r"[^\W\d_]+(?:['’\-][^\W\d_]+)*"
    match = re.match(rf" ({part})(?: ({part}))?", after)
    end = 0
    for number in (1, 2):
        word = match[number] if match else None
        if not word or not _may_be_surname(word):
            break
        end = match.end(number) if match else 0
    return end - 2 if end and after[end - 2 : end] in ("'s", "’s") else end


def _may_be_surname(word: str) -> bool:
    low = word.casefold()
    if not word[0].isupper() or (word.isupper() and len(word) > 1):
        return False
    plain = re.sub(r"['’]s$", "", low)
    return plain not in FUNCTION | _NO_SURNAME | _DAYS | _THING_AFTER


def first_name(word: str, before: str, after: str) -> str | None:
    """Decide whether a capitalized word is a person's first name.

    Args:
        word: The word.
        before: Text before it.
        after: Text after it.

    Returns:
        "name" or "word". None if it may be either.
    """
    low, starts = word.casefold(), starts_sentence(before)
    previous = re.search(r"([\w'’]+)\.? $", before[-60:])
    following = [next_word.casefold() for next_word in words_after(after, 0, 1)]
    if previous and previous[1].casefold() in _PLACE_BEFORE and previous[1][0].isupper():
        return "word"
    if following and following[0] in _THING_AFTER and after.lstrip()[0].isupper():
        return "word"
    if low in NAME_WORDS:
        return _name_or_word(low, before, after, starts)
    return None if _inside_a_name(previous and previous[1], before) else "name"


def _inside_a_name(previous: str | None, before: str) -> bool:
    """Say whether a capitalised word stands before in mid-sentence: "Morgan Stanley"."""
    if not previous or not previous[0].isupper() or len(previous) == 1 or previous.isupper():
        return False
    if previous.casefold() in FUNCTION | _GREETS:
        return False
    at = before.rstrip(" .").rfind(previous)
    return not starts_sentence(before[:at]) and not before.endswith(". ")


def _name_or_word(low: str, before: str, after: str, starts: bool) -> str | None:
    following = next(words_after(after, 0, 1), "").casefold()
    previous = _last_word(before)
    if low in _MONTHS and (previous in _MONTH_BEFORE or following[:1].isdigit()):
        return "word"
    if starts and following in _OPENS_QUESTION:
        return "word"
    if starts and low in _VERBS:
        return None
    if surname_after(after) and previous not in ("the", "a", "an"):
        return "name"
    return None
