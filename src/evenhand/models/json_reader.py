"""Where a text that comes in pieces is within a string of a JSON object."""

import re

_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')  # of a string, up to its end or an escape
_BLANKS = " \t\r\n"
# What may stand outside strings; `true`, `false`, `null` and numbers by their letters.
_OUTSIDE = frozenset("[],:-+.0123456789eE" + "trufalsn")


class ObjectReader:
    """It reads objects one behind another, and only far enough to know strings and depth.

    >>> reader = ObjectReader()
    >>> reader.read('{"a": "b'), reader.in_string, reader.depth
    (8, True, 1)
    """

    def __init__(self) -> None:
        self.depth = 0  # how many objects are open
        self.in_string = False
        self.broken = False  # what was read is no JSON object
        self._escaped = False
        self._next = ""  # what alone may come next; empty: anything

    def read(self, text: str, start: int = 0) -> int:
        """Read on, up to the end of the outermost object.

        Args:
            text: The next piece.
            start: Where in it to begin.

        Returns:
            The place behind the object, or where the text ends or is no JSON.
        """
        at = start
        while at < len(text) and not self.broken:
            if self.in_string:
                at = self._read_string(text, at)
                continue
            self._read_outside(text[at])
            at += 1
            if text[at - 1] == "}" and self.depth == 0:
                break
        return at

    def _read_string(self, text: str, at: int) -> int:
        if self._escaped:
            self._escaped = False
            return at + 1
        match = _PLAIN.match(text, at)
        end = match.end() if match else at
        if end < len(text):
            self._escaped = text[end] == "\\"
            self.in_string = text[end] != '"'
            self.broken = text[end] not in '"\\'
            self._next = ",:}]"
        return min(end + 1, len(text))

    def _read_outside(self, char: str) -> None:
        if char in _BLANKS:
            return
        expected = self._next if self.depth else "{"
        self._next = ""
        if expected and char not in expected:
            self.broken = True
        elif char == "{":
            self.depth, self._next = self.depth + 1, '"}'
        elif char == "}":
            self.depth -= 1
        elif char == '"':
            self.in_string = True
        else:
            self.broken = char not in _OUTSIDE
