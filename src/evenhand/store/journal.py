"""The journal: every turn and every finished item of the parts not committed yet.

One line per row: a kind (T or R), a checksum, the row as JSON. A line is one `write`, so what was
paid for survives the death of the process; a torn or damaged line is noticed and left out, and
what it held is asked again.
"""

import os
import zlib
from collections.abc import Iterable

import orjson

from evenhand.domain import Turn
from evenhand.store import tables
from evenhand.store.folder import Folder

_FOLDER = "journal"
_TURN, _RESULT = b"T", b"R"


class Journal:
    """The file a writer appends to. `rotate` starts the next one."""

    def __init__(self, folder: Folder, token: int) -> None:
        self._folder = folder
        self._token = token
        self._count = 0
        self._open()

    def turn(self, line: bytes) -> None:
        self._folder.append(self._file, _framed(_TURN, line))

    def result(self, line: bytes) -> None:
        self._folder.append(self._file, _framed(_RESULT, line))

    def rotate(self, carried: Iterable[bytes]) -> str:
        """Go on in a new file that begins with these turns; gives the name of the old one."""
        old_file, old_name = self._file, self.name
        self._count += 1
        self._open()
        kept = b"".join(_framed(_TURN, line) for line in carried)
        if kept:
            self._folder.append(self._file, kept)
        os.close(old_file)
        return old_name

    def close(self) -> None:
        os.close(self._file)

    def _open(self) -> None:
        self.name = f"{_FOLDER}/{self._token:08d}-{self._count:06d}.log"
        self._file = self._folder.append_to(self.name)


class Recovered:
    """What journals of an earlier process hold, by item."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.turns: dict[int, dict[tuple[str, int], bytes]] = {}
        self._results: dict[int, tuple[int, bytes]] = {}
        self.damaged = 0

    def finished(self, position: int) -> bytes | None:
        """The item's result, if all the turns it rests on are here too."""
        calls, line = self._results.get(position, (0, None))
        return line if len(self.turns.get(position, ())) >= calls else None

    def positions(self) -> set[int]:
        return self.turns.keys() | self._results.keys()

    @classmethod
    def read(cls, folder: Folder, before: str = "journal/~") -> "Recovered":
        """The journals older than the one named; a newer one is of a process that took over."""
        found = cls()
        try:
            for name in (name for name in folder.names(_FOLDER) if name < before):
                found.files.append(name)
                for framed in folder.read(name).split(b"\n")[:-1]:
                    found._take(framed)
                # After the last line break there is nothing, or a line that never ended.
        except FileNotFoundError:  # whoever removed it has committed it or copied it: look again
            return cls.read(folder, before)
        return found

    def _take(self, framed: bytes) -> None:
        kind, check, line = framed[:1], framed[2:10], framed[11:]
        if check != b"%08x" % zlib.crc32(line) or kind not in (_TURN, _RESULT):
            self.damaged += 1
            return
        try:
            row = orjson.loads(line)
            if kind == _RESULT:
                self._results[row["position"]] = row["calls"], line
            else:
                # A turn carried over from an older journal replaces itself.
                key = row["request"], row["occurrence"]
                self.turns.setdefault(row["position"], {})[key] = line
        except (orjson.JSONDecodeError, KeyError, TypeError):
            self.damaged += 1


class JournalTape:
    """The paid-for turns of unfinished items, handed out once each on resume."""

    def __init__(self, turns: dict[int, dict[tuple[str, int], bytes]]) -> None:
        self._turns = turns

    def __bool__(self) -> bool:
        return bool(self._turns)

    def take(self, position: int, request: str, occurrence: int) -> Turn | None:
        line = self._turns.get(position, {}).pop((request, occurrence), None)
        return None if line is None else tables.turn_of(orjson.loads(line))


def _framed(kind: bytes, line: bytes) -> bytes:
    return b"%b %08x %b\n" % (kind, zlib.crc32(line), line)
