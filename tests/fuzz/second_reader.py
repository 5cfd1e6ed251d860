"""A second reader of JSON, written by hand and sharing no code with the package.

Two readers that disagree about one text are how a verdict gets read two ways. This one goes
character by character and knows two sets of rules: those a model's reply is held to (STRICT) and
those of the wire (WIRE, where the last of two equal keys counts, as in every JSON library).
"""

import re
from dataclasses import dataclass
from typing import Any

_BLANK = " \t\n\r"
_DIGITS = "0123456789"
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Refused(Exception):
    pass


@dataclass(frozen=True)
class Rules:
    depth: int
    characters: int
    digits: int | None  # None: beyond 64 bits an integer is read as a float
    equal_keys: bool


STRICT = Rules(depth=32, characters=200_000, digits=300, equal_keys=False)
WIRE = Rules(depth=300, characters=10**9, digits=None, equal_keys=True)


def read_json(text: str, rules: Rules = STRICT) -> Any:
    """The value that is the whole of `text`."""
    if len(text) > rules.characters:
        raise Refused("long")
    need_whole_characters(text)
    reader = _Reader(text, rules)
    value = reader.value(1)
    reader.blanks()
    if reader.at != len(text):
        raise Refused("more after the value")
    return value


def need_whole_characters(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused("half a character") from None


def without_fence(text: str) -> str:
    """A block between ``` lines, opened with or without the word json, is what is inside it."""
    inner = text.strip()
    first, line_break, after = inner.partition("\n")
    opens = first.rstrip(" \t") in ("```", "```json")
    if line_break and opens and after.endswith("```"):
        return after[: len(after) - 3]
    return text


class _Reader:
    def __init__(self, text: str, rules: Rules) -> None:
        self.text = text
        self.rules = rules
        self.at = 0

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self) -> str:
        character = self.peek()
        self.at += 1
        return character

    def blanks(self) -> None:
        while self.peek() and self.peek() in _BLANK:
            self.at += 1

    def expect(self, word: str) -> None:
        if not self.text.startswith(word, self.at):
            raise Refused(f"{word!r} expected at {self.at}")
        self.at += len(word)

    def value(self, depth: int) -> Any:
        self.blanks()
        character = self.peek()
        if character in ("[", "{"):
            if depth > self.rules.depth:
                raise Refused("deep")
            self.at += 1
            return self.entries(depth) if character == "[" else self.pairs(depth)
        if character == '"':
            return self.string()
        for word, meaning in (("true", True), ("false", False), ("null", None)):
            if character == word[0]:
                self.expect(word)
                return meaning
        return self.number()

    def entries(self, depth: int) -> list[Any]:
        found: list[Any] = []
        if self.closes("]"):
            return found
        while True:
            found.append(self.value(depth + 1))
            if not self.goes_on("]"):
                return found

    def pairs(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.closes("}"):
            return found
        while True:
            self.blanks()
            key = self.string()
            self.blanks()
            self.expect(":")
            value = self.value(depth + 1)
            if key in found and not self.rules.equal_keys:
                raise Refused("a key twice")
            found[key] = value
            if not self.goes_on("}"):
                return found

    def closes(self, bracket: str) -> bool:
        self.blanks()
        if self.peek() != bracket:
            return False
        self.at += 1
        return True

    def goes_on(self, bracket: str) -> bool:
        self.blanks()
        character = self.take()
        if character not in (",", bracket):
            raise Refused("neither a comma nor the end")
        return character == ","

    def string(self) -> str:
        self.expect('"')
        parts: list[str] = []
        while True:
            plain = _PLAIN.match(self.text, self.at)
            assert plain is not None
            parts.append(plain[0])
            self.at = plain.end()
            match self.take():
                case '"':
                    return "".join(parts)
                case "\\":
                    parts.append(self.escape())
                case _:
                    raise Refused("a string that does not end, or a bare control character")

    def escape(self) -> str:
        character = self.take()
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character != "u":
            raise Refused("an unknown escape")
        unit = self.hex4()
        if 0xDC00 <= unit <= 0xDFFF:
            raise Refused("a low half first")
        if 0xD800 <= unit <= 0xDBFF:
            self.expect("\\u")
            low = self.hex4()
            if not 0xDC00 <= low <= 0xDFFF:
                raise Refused("a high half alone")
            unit = 0x10000 + (unit - 0xD800) * 0x400 + (low - 0xDC00)
        return chr(unit)

    def hex4(self) -> int:
        unit = 0
        for _ in range(4):
            place = "0123456789abcdef".find(self.take().lower() or "?")
            if place < 0:
                raise Refused("four hex digits expected")
            unit = unit * 16 + place
        return unit

    def digits(self) -> None:
        start = self.at
        while self.peek() and self.peek() in _DIGITS:
            self.at += 1
        if self.at == start:
            raise Refused(f"a digit expected at {start}")

    def number(self) -> int | float:
        start, whole = self.at, True
        if self.peek() == "-":
            self.at += 1
        if self.peek() == "0":
            self.at += 1
        else:
            self.digits()
        if self.peek() == ".":
            whole = False
            self.at += 1
            self.digits()
        if self.peek() in ("e", "E"):
            whole = False
            self.at += 1
            if self.peek() in ("+", "-"):
                self.at += 1
            self.digits()
        said = self.text[start : self.at]
        return self.integer(said) if whole else _finite(said)

    def integer(self, said: str) -> int | float:
        if self.rules.digits is None:
            if len(said) > 20 or not -(2**63) <= int(said) < 2**64:
                return _finite(said)
        elif len(said) > self.rules.digits:
            raise Refused("a huge number")
        return int(said)


def _finite(said: str) -> float:
    value = float(said)
    if value in (float("inf"), float("-inf")):
        raise Refused("beyond a double")
    return value


def same(one: Any, other: Any) -> bool:
    """Equal in value and in kind: 1, 1.0 and true are three things, and so are 0.0 and -0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return repr(one) == repr(other)
    return bool(one == other)
