"""Server-sent events: read from chunks that are cut anywhere, and written whole.

What is read is bounded and must be UTF-8; an event that the stream's end cuts off never appears.
"""

import re
from collections.abc import Iterator

from evenhand.gateway.wire import MalformedReply

# Our choice: a final event of /responses holds the whole answer, with each character escaped.
MAX_EVENT = 16 * 1024 * 1024
MAX_STREAM = 64 * 1024 * 1024  # our choice: each character of an answer in an event of its own
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


class EventReader:
    """A reader of one stream. Feed it what arrives; it gives the data of each event that ended.

    >>> reader = EventReader()
    >>> reader.feed(b"data: on"), reader.feed(b"e" + bytes([10, 10]))
    ([], [b'one'])
    """

    def __init__(self, *, max_event: int = MAX_EVENT, max_stream: int = MAX_STREAM) -> None:
        self._max_event, self._left = max_event, max_stream
        self._line = bytearray()  # the line that has not ended yet
        self._data: list[bytes] = []  # the data lines of the event that has not ended yet
        self._size = 0  # of those
        self._after_return = False  # a line feed that comes next belongs to the line before
        self._first = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take a chunk and give the data of the events that it completes. Raises
        `MalformedReply`."""
        self._left -= len(chunk)
        if self._left < 0:
            raise MalformedReply("the stream is too long")
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_return = False
        if not chunk:
            return []
        self._after_return = chunk.endswith(b"\r")
        beginning, *others = _LINE_END.split(chunk)
        self._line += beginning
        if self._size + len(self._line) > self._max_event:
            raise MalformedReply("an event of the stream is too long")
        if not others:
            return []
        lines = [bytes(self._line), *others]
        self._line = bytearray(lines.pop())
        return list(self._ended(lines))

    def _ended(self, lines: list[bytes]) -> Iterator[bytes]:
        for number, raw_line in enumerate(lines):
            line = raw_line
            if number == 0 and self._first:
                self._first = False
                line = line.removeprefix(_BOM)
            if line:
                self._field(line)
                continue
            data = b"\n".join(self._data)
            self._data, self._size = [], 0
            if data:
                yield data

    def _field(self, line: bytes) -> None:
        try:
            line.decode()
        except UnicodeDecodeError:
            raise MalformedReply("the stream is not UTF-8") from None
        name, _, value = line.partition(b":")
        if name != b"data":
            return  # a comment, or a field that no wire needs
        self._data.append(value.removeprefix(b" "))
        self._size += len(value) + 1
        if self._size > self._max_event:
            raise MalformedReply("an event of the stream is too long")


def event(data: bytes, name: str = "") -> bytes:
    """Write one event. `data` is one line, as JSON is that we write."""
    if b"\n" in data or b"\r" in data:
        raise ValueError("the data of an event must be one line")
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + data + b"\n\n"


def comment(text: str) -> bytes:
    """Write a comment, which a client skips: it only shows that the connection lives."""
    return f": {text}\n\n".encode()
