"""The journal holds every turn and every finished item of the parts that are not committed yet.

One line per row: a kind (T or R), a checksum, the row as JSON. A line is one `write`, so what was
paid for survives the death of the process; a torn or damaged line is noticed and left out, and
what it held is asked again.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from evenhand.core import Turn
from evenhand.runs.store import tables
from evenhand.runs.store.folder import Appender, Folder
from evenhand.runs.store.tables import Pending

_FOLDER = "journal"
# A writer's number, the range of its share if it has one, and which of its files it is.
_NAME = re.compile(r"journal/[0-9]{8}(-s[0-9]{12}-[0-9]{12}-[0-9a-f]{8})?-[0-9]{6}\.log")
_TURN, _RESULT = b"T", b"R"


class Journal:
    """The journal is the file that a writer appends to. `rotate` starts the next one."""

    def __init__(self, folder: Folder, stem: str) -> None:
        self._folder = folder
        self._stem = stem
        self._count = 0
        self._old: list[Appender] = []
        self._open()

    def turn(self, line: bytes) -> None:
        self._file.write(_framed(_TURN, line))

    def result(self, line: bytes) -> None:
        self._file.write(_framed(_RESULT, line))

    def items(self, items: Iterable[tuple[bytes, Sequence[bytes]]]) -> None:
        """Note whole items, each a result and its turns, in one write: after a crash all of it is
        there or nothing."""
        framed: list[bytes] = []
        for result, turns in items:
            framed += (_framed(_TURN, line) for line in turns)
            framed.append(_framed(_RESULT, result))
        self._file.write(b"".join(framed))

    def rotate(self, carried: Iterable[bytes]) -> str:
        """Go on in a new file that begins with these turns, and give the name of the old one."""
        old_name, old_file = self.name, self._file
        self._count += 1
        self._open()
        self._old.append(old_file)
        frames = b"".join(_framed(_TURN, line) for line in carried)
        if frames:
            self._file.write(frames)
        return old_name

    def flush(self) -> None:
        """Make all of it safe; to be called before a file is removed whose turns were carried over.
        It may take a while, so it must not run in the event loop."""
        self._file.flush()
        while self._old:
            self._old.pop().close()

    def close(self) -> None:
        for file in (*self._old, self._file):
            file.close()

    def _open(self) -> None:
        name = f"{_FOLDER}/{self._stem}-{self._count:06d}.log"
        self._file = self._folder.appender(name)
        self.name = name


def names(folder: Folder) -> list[str]:
    """List the journals, in order. Any other file that lies there is not ours to read or remove."""
    return [name for name in folder.names(_FOLDER) if _NAME.fullmatch(name)]


Turns = dict[int, dict[tuple[str, int], bytes]]  # position -> (request, occurrence) -> line


class Recovered:
    """The content of the journals of earlier processes, by item.

    A result rests on the turns of its own journal: a writer carries over or plays again whatever
    it goes on from. So journals of two that did the same item, because one was thought dead and
    was not, never mix.
    """

    def __init__(self) -> None:
        self.files: list[str] = []
        self.turns: Turns = {}  # of all journals; of one key the last
        self.damaged = 0
        self._finished: dict[int, tuple[bytes, list[bytes]]] = {}

    @classmethod
    def read(cls, folder: Folder, matches: Callable[[str], bool]) -> "Recovered":
        """Read the journals with a wanted name."""
        recovered = cls()
        try:
            for name in filter(matches, names(folder)):
                recovered.files.append(name)
                recovered._take(folder.read(name))
        except FileNotFoundError:  # it was committed or copied before its removal: look again
            return cls.read(folder, matches)
        return recovered

    def sorted_out(self, selects: Callable[[int], bool]) -> tuple[Pending, Turns]:
        """Sort the wanted positions into items that were finished, and the turns of those that were
        not."""
        finished = Pending()
        for position in sorted(filter(selects, self._finished)):
            finished.add(*self._finished[position])
        return finished, {
            position: turns
            for position, turns in sorted(self.turns.items())
            if selects(position) and position not in self._finished
        }

    def _take(self, data: bytes) -> None:
        """Read one journal. Where a line is damaged, a turn may be missing that nothing else tells
        of, so no item counts as finished."""
        turns: Turns = {}
        results: dict[int, tuple[int, bytes]] = {}
        damaged = 0
        # After the last line break there is nothing, or a line that never ended.
        for framed in data.split(b"\n")[:-1]:
            try:
                kind, row, line = _unframed(framed)
                position = _count(row["position"])
                if kind == _RESULT:
                    results[position] = _count(row["calls"]), line
                else:
                    key = row["request"], row["occurrence"]
                    turns.setdefault(position, {})[key] = line
            except (ValueError, KeyError, TypeError):
                damaged += 1
        for position, (calls, line) in results.items():
            item_turns = turns.get(position, {})
            if len(item_turns) >= calls and not damaged:
                self._finished[position] = line, list(item_turns.values())
        for position, item_turns in turns.items():
            self.turns.setdefault(position, {}).update(item_turns)
        self.damaged += damaged


class JournalTape:
    """The paid-for turns of unfinished items, each given out once on resume."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def __bool__(self) -> bool:
        return bool(self._turns)

    def take(self, position: int, request: str, occurrence: int) -> Turn | None:
        line = self._turns.get(position, {}).pop((request, occurrence), None)
        return None if line is None else tables.turn_of(orjson.loads(line))


def _framed(kind: bytes, line: bytes) -> bytes:
    return b"%b %08x %b\n" % (kind, zlib.crc32(line), line)


def _unframed(framed: bytes) -> tuple[bytes, dict[str, Any], bytes]:
    """Read kind, row and line; `ValueError` if the line is not what was written."""
    kind, check, line = framed[:1], framed[2:10], framed[11:]
    if check != b"%08x" % zlib.crc32(line) or kind not in (_TURN, _RESULT):
        raise ValueError("damaged")
    return kind, orjson.loads(line), line


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("damaged")
    return value
