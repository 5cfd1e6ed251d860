"""The viewer on loopback, asked as a browser asks it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from evenhand.runs.store import RunReader
from evenhand.views.viewer.browsing import RunBrowser
from evenhand.views.viewer.serving import Serving


@dataclass(frozen=True)
class Said:
    status: int
    head: dict[str, str]
    page: str

    @property
    def items(self) -> list[int]:
        """The positions of the items that a list shows."""
        return [int(one) for one in re.findall(r'<h2><a href="/item/(\d+)', self.page)]

    @property
    def found(self) -> int:
        counted = re.search(r"of ([\d,]+)</span>", self.page)
        return int(counted[1].replace(",", "")) if counted else 0

    @property
    def words(self) -> str:
        """The page as it is read."""
        inner = self.page.partition("<main")[2]
        return unescape(re.sub(r"<[^>]*>", " ", inner))


class Asking:
    """A browser that has been let in, unless it is told to show no cookie."""

    def __init__(self, served: Serving, browsed: RunBrowser) -> None:
        self.served = served
        self.browsed = browsed

    @property
    def cookie(self) -> dict[str, str]:
        return {"cookie": f"evenhand-view-{self.served.port}={self.served.door.token}"}

    def bare(self, path: str, method: str = "GET", **head: str) -> Said:
        connection = HTTPConnection("127.0.0.1", self.served.port, timeout=60)
        try:
            connection.request(method, path, headers=head)
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Said(answer.status, named, answer.read().decode())
        finally:
            connection.close()

    def __call__(self, path: str = "/", method: str = "GET", **filters: Any) -> Said:
        named = {name.replace("__", "."): value for name, value in filters.items()}
        where = f"{path}?{urlencode(named, doseq=True)}" if named else path
        return self.bare(where, method, **self.cookie)

    def all_items(self, **filters: Any) -> list[int]:
        """The items of every page."""
        first = self(**filters)
        pages = range(2, -(-first.found // 25) + 1)
        return first.items + [one for page in pages for one in self(page=page, **filters).items]


@contextmanager
def viewing(run: Path, against: Path | None = None) -> Iterator[Asking]:
    other = RunReader(against) if against else None
    browsed = RunBrowser(RunReader(run), other)
    with Serving(browsed) as served:
        browsed.facets.ended(60)
        yield Asking(served, browsed)
