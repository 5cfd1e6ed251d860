"""A word means what its neighbours make of it: "her" is object or possessive, "Grace" name or noun.

Each function tells, or gives None where a person must. The lists are ours and English.
"""

import re

from evenhand.core.package_data import word_sets
from evenhand.instruments.swap.grammar import FUNCTION, starts_sentence, words_after

_LISTS = word_sets(__package__, "english.toml")

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
    """Tell whether a capitalised word is somebody's first name: "name", "word", or None where it
    may be either."""
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
