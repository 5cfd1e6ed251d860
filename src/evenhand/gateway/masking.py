"""Personal data of a text, masked so that the rest stays as it was written.

Masked are e-mail addresses, telephone numbers, numbers of cards and bank accounts, social security
numbers, and names where they are reliably names: behind a title or "my name is", a frequent given
name with what follows it, and a word that is a name elsewhere in the same exchange. A surname alone
and a rare given name are not recognized. In JSON only strings change. Made for English.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator

from evenhand.agents.tools.search.privacy import fold, listed

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_SSN = re.compile(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])")
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
_CARD = re.compile(r"(?<![\d.,-])\d(?:[ -]?\d){12,18}(?![\d-]|[.,]\d)")
_PHONES = (
    re.compile(r"(?<![\w+])(?:\+|00)[1-9](?:[ ().-]{0,2}\d){8,14}(?!\w)"),  # +44 20 7946 0958
    re.compile(r"(?<![\w.+-])(?:1[ .-])?\(?\d{3}\)?[ .-]?\d{3}[ .-]\d{4}(?![\w-])"),  # 415-555-2671
    re.compile(r"(?<![\w.+-])\(?0\d{1,4}\)?[ /-]\d{3,4}[ -]?\d{3,5}(?![\w-])"),  # 020 7946 0958
    re.compile(r"(?<![\w.+-])0\d(?:[ .]\d{2}){4}(?![\w-])"),  # 01 23 45 67 89
)
_CALLED = re.compile(
    r"((?<!\w)(?:phone|tel|telephone|mobile|cell|fax|call)(?!\w)[^\d\n]{0,16})\d{7,15}(?!\w)",
    re.IGNORECASE,
)
# A word with a capital, of which "O'Neill" and "Anne-Marie" are one.
_WORD = r"[^\W\d_a-z][^\W\d_]*(?:['’-][^\W\d_]+)*"
_BEHIND = rf"(?: (?:(?:de|da|del|van|von|der|bin|al|la) ){{0,2}}{_WORD}|\ [A-Z]\.){{0,3}}"
_TITLED = re.compile(rf"(?<!\w)((?:Mr|Mrs|Ms|Mx|Miss|Dr|Prof|Professor|Sir)\.? )({_WORD}{_BEHIND})")
_INTRODUCED = re.compile(rf"(?<!\w)((?i:(?:my|his|her|their) name is) )({_WORD}{_BEHIND})")
_CAPITAL = re.compile(rf"(?<!\w){_WORD}")
_SURNAMES = re.compile(_BEHIND)
_LETTERS = re.compile(r"[^\W\d_]+")
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
# Given names that are words, places or firms as well: names only in front of another.
_ALSO_WORDS = frozenset(
    "amber bill carol chad charlotte chen crystal diego francisco george grace harry heather "
    "jack jackson jasmine jean jerome jesus kelly kumar lamar lawrence logan marie mark "
    "marquis mason mei nguyen raj rosa rose russell santiago sasha scott sofia terry tony "
    "victor victoria will ".split()
)


def names_in(texts: Iterable[str]) -> frozenset[str]:
    """The words of these texts that are reliably somebody's name, for `masked`."""
    names: set[str] = set()
    for text in texts:
        for start, end in _names(text):
            names.update(fold(word) for word in _LETTERS.findall(text[start:end]))
    ordinary = listed("function_words") | listed("topic_words") | listed("identity_words")
    return frozenset(word for word in names - ordinary - _ALSO_WORDS if len(word) > 1)


def masked(text: str, names: frozenset[str] = frozenset()) -> str:
    """The text with a mark in the place of what is personal.

    Args:
        text: Any text. If it is JSON, its structure, its numbers and its layout stay.
        names: Words that are names elsewhere (`names_in`); they are masked however written.
    """
    if text.lstrip()[:1] in ("{", "[", '"') and _is_json(text):
        return _LITERAL.sub(lambda literal: _literal(literal[0], names), text)
    return _plain(text, names)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _literal(written: str, names: frozenset[str]) -> str:
    value = json.loads(written)
    plain = _plain(value, names)
    return written if plain == value else json.dumps(plain, ensure_ascii=False)


def _plain(text: str, names: frozenset[str]) -> str:
    text = _EMAIL.sub("[email]", text)
    if any(sign.isdigit() for sign in text):
        text = _IBAN.sub(_if(_is_iban, "[iban]"), text)
        text = _SSN.sub("[ssn]", text)
        text = _CARD.sub(_if(_is_card, "[card]"), text)
        for phone in _PHONES:
            text = phone.sub("[phone]", text)
        text = _CALLED.sub(r"\1[phone]", text)
    text = _without_names(text)
    if names:
        text = _LETTERS.sub(lambda word: "[name]" if fold(word[0]) in names else word[0], text)
    return text


def _without_names(text: str) -> str:
    parts, past = [], 0
    for start, end in sorted(_names(text)):
        if end > past:
            parts += [text[past : max(past, start)], "[name]" if start >= past else ""]
            past = end
    return "".join([*parts, text[past:]])


def _names(text: str) -> Iterator[tuple[int, int]]:
    """Where names stand in a text."""
    for pattern in (_TITLED, _INTRODUCED):
        yield from (match.span(2) for match in pattern.finditer(text))
    given_names = listed("given_names")
    for match in _CAPITAL.finditer(text):
        first = fold(_LETTERS.findall(match[0])[0])
        if first not in given_names:
            continue
        behind = _SURNAMES.match(text, match.end())
        end = behind.end() if behind else match.end()
        if end > match.end() or first not in _ALSO_WORDS:
            name_end = end if end > match.end() else match.start() + len(_bare(match[0]))
            yield match.start(), name_end


def _bare(word: str) -> str:
    return word.removesuffix("'s").removesuffix("’s")


def _if(right: Callable[[str], bool], mark: str) -> Callable[[re.Match[str]], str]:
    return lambda match: mark if right(match[0]) else match[0]


def _is_card(written: str) -> bool:
    """By the Luhn checksum, which one number of ten passes by chance."""
    digits = [int(sign) for sign in written if sign.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return len(set(digits)) > 1 and (sum(doubled) + sum(digits[-1::-2])) % 10 == 0


def _is_iban(written: str) -> bool:
    bare = written.replace(" ", "")
    turned = bare[4:] + bare[:4]
    return int("".join(str(int(sign, 36)) for sign in turned)) % 97 == 1
