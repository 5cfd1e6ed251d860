"""The runs under a folder, for a list: of each run its small files, read again when they change."""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal, get_args
from urllib.parse import urlencode

import fsspec
import orjson

from evenhand.core.errors import EvenhandError, UserError
from evenhand.findings.combined_report import CombinedReport
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.views.viewer.browsing import PAGE, RunBrowser
from evenhand.views.viewer.filters import LONGEST, whole

RunState = Literal["running", "finished", "stopped", "failed", "unknown"]
STATES = get_args(RunState)
Sort = Literal["newest", "oldest", "name", "instrument", "model", "method", "outcome", "cost"]
SORTS = get_args(Sort)
COMPARED = 10  # our choice: runs in one comparison
_FILES = ("run.json", "status.json", "report.json")
_LARGEST = 16_000_000  # our choice, in bytes of such a file: a larger one is not read
_OPENED = 4  # our choice: runs whose filters stay in memory
_PARTS = {"journal", "ledger", "results", "turns"}  # of a run; no run is in them
_ENDED: Mapping[str, RunState] = {
    "running": "running",
    "ended": "finished",
    "stopped": "stopped",
    "failed": "failed",
}
_FILTERS = ("instrument", "model", "method", "outcome", "state")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """A run in the list. `problem` says why its files cannot be read."""

    key: str  # its name in addresses
    path: str
    name: str  # the path below the folder
    instrument: str = ""
    model: str = ""
    method: str = ""
    created: str = ""
    state: RunState = "unknown"
    done: int | None = None
    planned: int | None = None
    outcome: str = ""
    calls: int | None = None
    cost: float | None = None
    currency: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsQuery:
    """The filters of the list of runs, their order, and the page."""

    text: str = ""
    instrument: str = ""
    model: str = ""
    method: str = ""
    outcome: str = ""
    state: str = ""
    sort: str = "newest"
    page: int = 1

    @classmethod
    def of(cls, query: Iterable[tuple[str, str]]) -> "RunsQuery":
        """Read the address of a page; an unknown or repeated filter is refused."""
        pairs = list(query)
        filters = {name: value for name, value in pairs if value}
        unknown = set(dict(pairs)) - {"text", *_FILTERS, "sort", "page"}
        if unknown or len(dict(pairs)) < len(pairs):
            raise UserError("The address has an unknown or repeated filter. The list is at /")
        page = whole(filters.pop("page", "1"))
        if page is None or page < 1 or filters.get("sort", "newest") not in SORTS:
            raise UserError(f"page is a number from 1, and sort is one of {', '.join(SORTS)}")
        if any(len(value) > LONGEST for value in filters.values()):
            raise UserError(f"a filter has at most {LONGEST} characters")
        return cls(page=page, **filters)

    def at(self, page: int) -> "RunsQuery":
        """Return the same filters with another page."""
        return replace(self, page=page)

    def address(self) -> str:
        """Write the filters as the end of an address; empty where there are none."""
        pairs = [(name, getattr(self, name)) for name in ("text", *_FILTERS)]
        pairs += [("sort", self.sort)] if self.sort != "newest" else []
        pairs += [("page", str(self.page))] if self.page > 1 else []
        written = urlencode([(name, value) for name, value in pairs if value])
        return f"?{written}" if written else ""

    def holds(self, run: ListedRun) -> bool:
        """Say whether a run passes the filters."""
        words = " ".join((run.name, run.instrument, run.model, run.method)).lower()
        alike = all(getattr(self, name) in ("", getattr(run, name)) for name in _FILTERS)
        return alike and self.text.lower() in words


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsPage:
    """A page of the list, how many runs the filters leave, and the values to filter by."""

    rows: tuple[ListedRun, ...]
    matching: int
    total: int
    values: Mapping[str, list[str]]

    @property
    def pages(self) -> int:
        return max(1, -(-self.matching // PAGE))


class RunIndex:
    """The runs under a folder or URL. Safe to use from several threads."""

    def __init__(
        self, root: str | Path, combine: Callable[[Sequence[str]], CombinedReport]
    ) -> None:
        """Take the folder, and what makes the report of selected runs."""
        self.root = str(root)
        self.combine = combine
        self._rows: dict[str, tuple[tuple[object, ...], ListedRun]] = {}  # by path: stamp, row
        self._opened: OrderedDict[str, RunBrowser] = OrderedDict()
        self._lock = Lock()

    def listed(self, query: RunsQuery) -> RunsPage:
        """Return a page of the list, as the files are now."""
        rows = self._read()
        matching = sorted(filter(query.holds, rows), key=_sort_key(query.sort))
        if query.sort in ("newest", "cost"):
            matching.reverse()
        first = (query.page - 1) * PAGE
        values = {
            name: sorted({str(getattr(row, name)) for row in rows} - {""}) for name in _FILTERS
        }
        return RunsPage(
            rows=tuple(matching[first : first + PAGE]),
            matching=len(matching),
            total=len(rows),
            values=values,
        )

    def run(self, key: str) -> ListedRun | None:
        """Return the run with this name in addresses."""
        with self._lock:
            known = [row for _, row in self._rows.values() if row.key == key]
        return known[0] if known else next((row for row in self._read() if row.key == key), None)

    def opened(self, key: str) -> RunBrowser | None:
        """Open a run of the list, or return the open one."""
        listed = self.run(key)
        if listed is None:
            return None
        with self._lock:
            browsed = self._opened.pop(key, None)
        if browsed is None:
            browsed = RunBrowser(RunReader(listed.path), base=f"/run/{key}")
        with self._lock:
            self._opened[key] = browsed  # the latest last
            if len(self._opened) > _OPENED:
                self._opened.popitem(last=False)
        return browsed

    def _read(self) -> list[ListedRun]:
        """Read what is new or has changed."""
        rows = {}
        for path, stamp in _folders(self.root):
            known = self._rows.get(path)
            unchanged = known is not None and known[0] == stamp and stamp != ()
            rows[path] = known if known and unchanged else (stamp, _row(self.root, path))
        with self._lock:
            self._rows = rows
        return [row for _, row in rows.values()]


def holds_runs(location: str | Path) -> bool:
    """Say whether a place is a folder of runs, and no run itself."""
    try:
        open_folder(str(location)).read("run.json")
    except FileNotFoundError:
        return next(_folders(str(location)), None) is not None
    return False


def _folders(root: str) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield each run folder with a stamp of its files; () where the store tells no times."""
    if "://" in root:
        files, top = fsspec.core.url_to_fs(root)
        scheme = root.partition("://")[0]
        for file in files.find(top):
            if file.endswith("/run.json"):
                yield f"{scheme}://{file.removesuffix('/run.json')}", ()
        return
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _PARTS]
        if "run.json" in names:
            yield folder, tuple(_stamp(Path(folder, name)) for name in _FILES)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        state = file.stat(follow_symlinks=False)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


def _row(root: str, path: str) -> ListedRun:
    key = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    shown = path.removeprefix(root).strip("/") or Path(path).name
    name = os.fsencode(shown).decode("utf-8", "replace")
    row = ListedRun(key=key, path=path, name=name)
    record = _object(path, "run.json")
    if not record:
        return replace(row, problem="run.json cannot be read")
    status, report = _object(path, "status.json"), _object(path, "report.json")
    source = _within(record, "source")
    cost = status.get("cost")
    return replace(
        row,
        instrument=_text(source.get("benchmark") or source.get("kind")),
        model=_text(_within(record, "cast", "default").get("model")),
        method=_text(_within(record, "method").get("name")),
        created=_text(record.get("created"))[:19].replace("T", " "),
        state=_ENDED.get(_text(status.get("state")), "unknown"),
        done=_count(status.get("done")),
        planned=_count(source.get("items")),
        outcome=_text(_within(report, "verdict").get("state") or report.get("state")),
        calls=_count(status.get("calls")),
        cost=float(cost) if isinstance(cost, int | float) else None,
        currency=_text(status.get("currency")),
    )


def _object(path: str, name: str) -> dict[str, Any]:
    """Read a file of a run as a JSON object; empty where it is missing or is none. A link is not
    followed: the folder may come from a stranger."""
    try:
        local = Path(path, name)
        if "://" not in path and (local.is_symlink() or local.stat().st_size > _LARGEST):
            return {}
        value = orjson.loads(open_folder(path).read(name))
    except (OSError, ValueError, EvenhandError):
        return {}
    return value if isinstance(value, dict) else {}


def _within(value: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        inner = value.get(name)
        value = inner if isinstance(inner, Mapping) else {}
    return value


def _text(value: object) -> str:
    return value[:LONGEST] if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _sort_key(sort: str) -> Any:
    name = {"newest": "created", "oldest": "created"}.get(sort, sort)
    return lambda row: (
        (row.cost if row.cost is not None else -1.0) if name == "cost" else getattr(row, name),
        row.name,
    )
