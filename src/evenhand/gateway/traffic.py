"""The run folder of one tenant and day while it is written, all in one thread at a time.

Live traffic has no number of items beforehand, so the folder's record says None, and the run is
open until the ledger says that its writer ended it: at the end of the day, or when the gateway
stops. A gateway that comes back on the same day opens it again.
"""

import contextlib
import hashlib
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path

from evenhand.core.errors import StoreError
from evenhand.gateway.recorded import Content, RecordedExchange
from evenhand.runs.store import RunReader, RunRecord, RunWriter
from evenhand.runs.store.folder import Folder, open_folder
from evenhand.runs.store.run_record import now

COMMIT_SECONDS = (
    60.0  # our choice: readers see traffic a minute later, in at most 1,440 parts a day
)
# Names that `evenhand runs list` does not look into.
_TAKEN = frozenset({"journal", "ledger", "likelihood", "results", "turns"})
_LONGEST_NAME = 100  # our choice: with a checksum it fits the 255 bytes of a disk
_MOST_PLANS = 1000  # our choice: as often a policy can change on one day


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficRecording:
    """What is kept of a tenant's traffic, by its policy. The plan is what `RunPlan.record` gives:
    its method, prompts, cast, limits and seed are those of the run, its source is replaced."""

    plan: RunRecord
    content: Content = "off"
    policy: str = ""  # the hash of what is in force: under another one the day has another folder


def day_of(seconds: float) -> str:
    """The UTC day of a moment, as a folder is named."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def as_folder(name: str) -> str:
    """Give a tenant or a replica a unique folder name: characters other than letters, digits, minus
    and underscore are written as their bytes."""
    data = name.encode("utf-8", "surrogatepass")
    plain = re.sub(rb"[^A-Za-z0-9_-]", lambda sign: b"=%02X" % sign[0][0], data).decode()
    if plain in _TAKEN or not plain:
        plain = f"={plain}"
    if len(plain) <= _LONGEST_NAME:
        return plain
    return f"{plain[:_LONGEST_NAME]}-{hashlib.sha256(data).hexdigest()[:16]}"


def place_of(folder: str, day: str, tenant: str, replica: str) -> str:
    """Give the run folder for the traffic of a tenant on one day.

    Args:
        folder: The folder of all evidence.
        day: The date.
        tenant: The tenant's name; characters that a path cannot hold are replaced.
        replica: The replica, which has its own folder; empty for a single gateway.

    Returns:
        The path.
    """
    below = f"/{as_folder(replica)}" if replica else ""
    return f"{folder}/{day}/{as_folder(tenant)}{below}"


class Traffic:
    """A run folder that is added to. After an error nothing is known of it but what can be read
    back: it is reopened, and what is not in it is written again, so that no row is lost or
    doubled."""

    def __init__(self, path: str, record: RunRecord) -> None:
        self._place = path
        self._record = record
        self._writer: RunWriter | None = None
        self._next = 0
        self._since: float | None = None  # when the oldest uncommitted row came
        self.uncommitted: list[RecordedExchange] = []

    @classmethod
    def of(
        cls, folder: str, day: str, tenant: str, replica: str, rule: TrafficRecording
    ) -> "Traffic":
        source = {
            "kind": "gateway",
            "items": None,  # nobody knows how many will come
            "day": day,
            "tenant": tenant,
            "replica": replica,
            "content": rule.content,
            "policy": rule.policy,
        }
        record = rule.plan.model_copy(update={"source": source, "created": now()})
        # As it will be read again: a tuple among the settings comes back as a list.
        record = RunRecord.from_bytes(record.to_bytes(), folder)
        return cls(place_of(folder, day, tenant, replica), record)

    def add(self, rows: Sequence[RecordedExchange], at: float) -> None:
        """Put rows into the journal: all of them or none."""
        writer = self._opened()
        placed = [row.at(self._next + n) for n, row in enumerate(rows)]
        with self._dropped_on_error():
            writer.add([(row.result, row.turns) for row in placed])
        self._next += len(placed)
        self.uncommitted += placed
        self._since = at if self._since is None else self._since

    def sync(self) -> None:
        """Make what is in the journal survive the death of the machine."""
        if self._writer is not None:
            with self._dropped_on_error():
                self._writer.sync()

    def commit_if_due(self, at: float) -> None:
        """Commit when a part is full or its first row waits long enough. A clock that went back
        counts as long enough."""
        if self._since is None:
            return
        waited = at - self._since
        full = self._writer is None or self._writer.full  # None: the last attempt failed
        if full or not 0 <= waited < COMMIT_SECONDS:
            writer = self._opened()
            with self._dropped_on_error():
                self._refuse_if_gone(writer)
                writer.commit()
            self._committed()

    def end(self) -> None:
        """Commit all and say that this was all, until somebody opens the folder again."""
        writer = self._opened()
        with self._dropped_on_error():
            self._refuse_if_gone(writer)
            writer.end()
        self._committed()
        self._drop()

    def _committed(self) -> None:
        self.uncommitted = []
        self._since = None

    def _opened(self) -> RunWriter:
        if self._writer is None:
            path = next(filter(self._is_of_this_plan, plans_at(self._place)), None)
            if path is None:
                raise StoreError(f"{self._place}: too many plans on one day")
            self._writer = RunWriter.open(path, self._record)
            self._place_again(self._writer, path)
        return self._writer

    def _is_of_this_plan(self, path: str) -> bool:
        """Whether a folder is new, or was begun under the policy of now."""
        folder = open_folder(path)
        if not folder.exists("run.json"):
            return True
        existing = RunRecord.from_bytes(folder.read("run.json"), folder.root)
        return not self._record.differences(existing)

    def _place_again(self, writer: RunWriter, path: str) -> None:
        """Write what was not committed and is not in the folder, which a journal has filled."""
        self._next = writer.past
        left, self.uncommitted = self.uncommitted, []
        if not left:
            return
        with self._dropped_on_error(left):
            there = RunReader(path).results_at([row.result.position for row in left])
            written = set(there.select("position", "item_id").collect().iter_rows())
            left = [row for row in left if (row.result.position, row.result.item_id) not in written]
            placed = [row.at(self._next + n) for n, row in enumerate(left)]
            if placed:
                writer.add([(row.result, row.turns) for row in placed])
        self._next += len(placed)
        self.uncommitted = placed
        if not placed:
            self._since = None

    @contextlib.contextmanager
    def _dropped_on_error(self, left: list[RecordedExchange] | None = None) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._drop()
            if left is not None:
                self.uncommitted = left
            raise

    def _drop(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(StoreError, OSError):
                writer.let_go()

    def _refuse_if_gone(self, writer: RunWriter) -> None:
        """An open journal can be written after its folder was removed, and nobody would find it."""
        if not writer.folder.exists("run.json"):
            raise StoreError(f"{writer.folder.root} is gone")


def plans_at(path: str) -> Iterator[str]:
    """The folders of one place: the first, and one more for each other plan of that day."""
    yield path
    for number in range(2, _MOST_PLANS):
        yield f"{path}+{number}"


def runs_of(folder: str, day: str, tenants: Iterable[str], replica: str) -> list[str]:
    """List the run folders of one day.

    Args:
        folder: The folder of all evidence.
        day: The date.
        tenants: The tenants of this gateway.
        replica: The replica.

    Returns:
        On a disk the folders of all tenants and replicas. An object store lists no folders, so
        there those of this replica.
    """
    if "://" in folder and not folder.startswith("file://"):
        places = (place_of(folder, day, tenant, replica) for tenant in tenants)
        return [path for place in places for path in takewhile(_is_run, plans_at(place))]
    root = Path(folder.removeprefix("file://")) / day
    files = (file for below in ("*", "*/*") for file in root.glob(f"{below}/run.json"))
    return sorted(str(file.parent) for file in files)


def _is_run(path: str) -> bool:
    return open_folder(path).exists("run.json")


def end_if_open(folder: str) -> bool:
    """End a run that another process left open: commit its journal.

    Args:
        folder: The run folder.

    Returns:
        Whether it was open.

    Raises:
        RunLocked: A process that lives writes it.
    """
    run = RunReader(folder)
    if not run.open:
        return False
    writer = RunWriter.open(folder, run.record)
    try:
        writer.end()
    finally:
        writer.let_go()
    return True


def check_folder(folder: Folder) -> None:
    """Write a file and remove it. Raises what a folder that cannot be written raises."""
    name = f"probe-{secrets.token_hex(8)}"
    folder.create(name, b"")
    folder.remove(name)


def as_text(folder: str | Path) -> str:
    """A folder's place without a slash at its end."""
    return str(folder).rstrip("/") or "/"
