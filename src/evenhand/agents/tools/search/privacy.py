"""What of a query may leave the machine: no name, no address, no number.

A name cannot be told from a word by its letters alone, so the rule errs on the safe side: whatever
the item's text writes with a capital letter stays here, unless it names a group of people or is an
ordinary word that begins a sentence. Made for English; docs/mitigate-files.md says what it cannot
know.
"""

import re
import unicodedata
from functools import cache, lru_cache

from evenhand.core.package_data import read_text

MOST_WORDS = 12
MOST_CHARACTERS = 120
_MOST_READ = 2_000  # characters of a query that are looked at
_TELLING = 5  # letters of a name that are looked for inside a longer word too

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co"})
_PLAIN = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
)
_APOSTROPHE = re.compile("[\u2018\u2019\u02bc\u0060\u00b4\uff07]")
_LETTERS = re.compile(r"[^\W\d_]+")

# Personal as a whole: what has an @, a scheme, a dot or an underscore between letters, a slash.
_ADDRESS = re.compile(r"@|://|^www\.|\w[._/\\]+\w", re.IGNORECASE)
_AT_IN_SIGNS = re.compile(r" ?(?:@|[(\[{<] ?at ?[)\]}>]) ?", re.IGNORECASE)
_DOT_IN_SIGNS = re.compile(r" ?[(\[{<] ?dot ?[)\]}>] ?| dot ", re.IGNORECASE)
_AT_IN_WORDS = re.compile(r" at (?=\S*\w\.\w)", re.IGNORECASE)
_FIELD = re.compile(r"^[\w-]+:(?!/)", re.IGNORECASE)  # site:, intitle:, …
_OPERATORS = frozenset({"AND", "OR", "NOT", "NEAR"})
_SIGNS = ".,;:!?…'\")]}>”"
_SENTENCE_END = re.compile(r"[.!?:;…]['\")\]]*$|^$")
_TITLES = frozenset("mr mrs ms mx dr prof st rev fr sr jr sir hon lt col gen capt sgt".split())
_NUMBERS = frozenset(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety "
    "hundred thousand double triple".split()
)
_ALSO_GIVEN = frozenset({"christian", "german", "roman"})  # a group, or a given name before another


def clean(query: str, context: str) -> str:
    """The words of `query` that may be sent. Empty if none is left that says anything."""
    query, context = _shown(query)[:_MOST_READ], _shown(context)
    lower, private = _known_of(context)
    private = private | _private_words(query, lower)
    allowed: dict[str, str] = {}  # by what they look like, each once
    for chunk in _plain_chunks(query):
        if chunk in _OPERATORS or any(sign.isnumeric() for sign in chunk):
            continue
        for word in _words(_FIELD.sub("", chunk)):
            if _may_leave(word, private):
                allowed.setdefault(fold(word), word)
    sent = _within(list(allowed.values()))
    return " ".join(sent) if not all(map(is_function_word, sent)) else ""


@lru_cache(maxsize=256)  # an item asks several queries
def _known_of(context: str) -> tuple[frozenset[str], frozenset[str]]:
    return _known(context)


def _known(context: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words that the item's text writes small, and those that must not leave."""
    chunks = _plain_chunks(context)
    lower = frozenset(word for chunk in chunks for word in _words(chunk) if word.islower())
    return lower, _private_words(context, lower)


def _may_leave(word: str, private: frozenset[str]) -> bool:
    folded = fold(word)
    if len(folded) < 2 or not _cased(word) or folded in _NUMBERS:
        return False
    return not _is_personal(folded, private)


def _is_personal(folded: str, private: frozenset[str]) -> bool:
    if folded in private or folded.removesuffix("s") in private:
        return True
    if _is_identity(folded):
        return False
    if folded in listed("given_names") or folded.removesuffix("s") in listed("given_names"):
        return True
    return any(len(name) >= _TELLING and name in folded for name in private)


def _private_words(text: str, lower: frozenset[str]) -> frozenset[str]:
    """Folded words of the text that may be someone's name, or a part of an address."""
    addresses = " ".join(filter(_ADDRESS.search, text.split()))
    private = set(map(fold, _LETTERS.findall(addresses)))
    private = {word for word in private if not _is_identity(word) and not _is_known(word)}
    return frozenset(private | _names(text, lower))


def _plain_chunks(text: str) -> list[str]:
    """Split a text at blanks and drop addresses."""
    return [chunk for chunk in text.split() if not _ADDRESS.search(chunk)]


def _names(text: str, lower: frozenset[str]) -> set[str]:
    names: set[str] = set()
    before = ""  # the chunk before this word's
    name_before = False  # … ended in a name, with no sign in between
    groups: list[str] = []  # group words right before this one that could be given names
    for chunk in text.split():
        begins = _begins_sentence(before)
        for index, word in enumerate(_words(chunk)):
            folded = fold(word)
            first = begins and index == 0
            if word.islower():
                name_before, groups = False, []
            elif _is_identity(folded):
                if name_before and not first:  # "Jim Black"
                    names.add(folded)
                groups = [folded] if folded in _ALSO_GIVEN else []
            elif _is_ordinary(folded, word, first, lower):
                name_before, groups = False, []
            else:
                names.update([folded, *groups])  # "Christian Müller"
                name_before, groups = True, []
        if chunk[-1] in '.,;:!?)"':
            name_before, groups = False, []
        before = chunk
    return names


def _is_ordinary(folded: str, word: str, first: bool, lower: frozenset[str]) -> bool:
    """A capital that says nothing: "The", or "Teachers …" where the text also has "teachers"."""
    if _is_known(folded):
        return True
    if folded in listed("given_names"):
        return False
    return first and word.istitle() and word.lower() in lower


def _begins_sentence(before: str) -> bool:
    bare = before.strip("'\"([").rstrip(".").lower()
    if before.endswith(".") and (bare in _TITLES or len(bare) == 1):
        return False  # "Dr. Will", "J. Grant"
    return bool(_SENTENCE_END.search(before[-8:]))


def _words(chunk: str) -> list[str]:
    """The words of a chunk, hyphens and apostrophes split, without the possessive."""
    bare = _APOSTROPHE.sub("'", chunk).rstrip(_SIGNS)
    return _LETTERS.findall(bare.removesuffix("'s").removesuffix("'S"))


def _cased(word: str) -> bool:
    """Of a script that has capitals: in others a name looks like any word, so none leaves."""
    return all(sign.lower() != sign.upper() for sign in unicodedata.normalize("NFC", word))


def _is_identity(folded: str) -> bool:
    identities = listed("identity_words")
    return folded in identities or folded.removesuffix("s") in identities


def _is_known(folded: str) -> bool:
    return folded in listed("function_words") or folded in listed("topic_words")


def _shown(text: str) -> str:
    """Unify spellings that look alike: full-width digits, ligatures, hidden characters, "(at)"."""
    text = " ".join(unicodedata.normalize("NFKC", text).split())
    text = "".join(sign for sign in text if unicodedata.category(sign) not in _INVISIBLE)
    text = _DOT_IN_SIGNS.sub(".", _AT_IN_SIGNS.sub("@", text))
    return _AT_IN_WORDS.sub("@", text)


def fold(word: str) -> str:
    """A word without case and accents."""
    split = unicodedata.normalize("NFKD", word.casefold())
    return "".join(sign for sign in split if not unicodedata.combining(sign)).translate(_PLAIN)


def _within(words: list[str]) -> list[str]:
    selected: list[str] = []
    for word in words[:MOST_WORDS]:
        if len(" ".join([*selected, word])) > MOST_CHARACTERS:
            break
        selected.append(word)
    return selected


@cache
def listed(name: str) -> frozenset[str]:
    """The words of a list of this package, folded."""
    text = read_text(__package__, f"{name}.txt")
    lines = (line.partition("#")[0] for line in text.splitlines())
    return frozenset(fold(word) for line in lines for word in line.split())


def is_function_word(word: str) -> bool:
    """One that says nothing about what is searched for."""
    return fold(word) in listed("function_words")
