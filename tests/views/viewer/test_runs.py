"""A folder of runs in the viewer: the list, its filters, a run of it, and a report of several."""

import os
import shutil
from collections.abc import Iterator, Sequence
from html import unescape
from html.parser import HTMLParser
from http.client import HTTPConnection
from pathlib import Path
from re import findall

import orjson
import pytest

from evenhand.core.errors import UserError
from evenhand.experiments.dossiers import combined_report
from evenhand.findings.combined_report import CombinedReport
from evenhand.views.viewer import opened
from evenhand.views.viewer.run_index import RunIndex, RunsQuery, holds_runs
from evenhand.views.viewer.serving import Serving
from tests.errors import raises_naming
from tests.views.payloads import payloads

KEPT = Path(__file__).parents[2] / "same_numbers/kept"
NAMES = ("bbq/default", "bbq/fairness", "squad/default")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three finished runs, one that is being written, and one with a broken record."""
    root = tmp_path_factory.mktemp("runs")
    for name in NAMES:
        shutil.copytree(KEPT / name, root / name)
    for name, state in (("bbq/default", "ended"), ("bbq/fairness", "running")):
        status = {"state": state, "done": 22, "calls": 1234, "cost": 0.5, "currency": "EUR"}
        (root / name / "status.json").write_bytes(orjson.dumps(status))
    (root / "broken").mkdir()
    (root / "broken" / "run.json").write_text("no json")
    return root


class Site:
    """The viewer of a folder, asked with the token."""

    def __init__(self, served: Serving) -> None:
        self.served = served

    def __call__(self, path: str = "/") -> tuple[int, dict[str, str], str]:
        connection = HTTPConnection("127.0.0.1", self.served.port, timeout=120)
        cookie = f"evenhand-view-{self.served.port}={self.served.door.token}"
        try:
            connection.request("GET", path, headers={"cookie": cookie})
            answer = connection.getresponse()
            head = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, head, answer.read().decode()
        finally:
            connection.close()

    def keys(self, path: str = "/") -> dict[str, str]:
        """The runs of a list: name -> name in addresses."""
        pairs = findall(r'<a href="/run/(\w+)/">([^<]*)</a>', self(path)[2])
        return {unescape(name): key for key, name in pairs}


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[Site]:
    with opened(folder, combine=combined_report) as served:
        yield Site(served)


def test_the_list_has_every_run_with_its_state_and_progress(site: Site) -> None:
    status, head, page = site()
    assert status == 200
    assert set(site.keys()) == {*NAMES, "broken"}
    assert "4 of 4 runs" in page
    assert "run.json cannot be read" in page
    assert page.count("<progress") == 1
    assert "1,234" in page
    assert "0.5000 EUR" in page
    assert head["refresh"] == "2"  # one run is being written


def test_the_filters_leave_the_runs_that_they_name(site: Site) -> None:
    assert set(site.keys("/?instrument=squad")) == {"squad/default"}
    assert set(site.keys("/?text=FAIR")) == {"bbq/fairness"}
    assert set(site.keys("/?state=finished")) == {"bbq/default"}
    assert site.keys("/?instrument=nothing") == {}
    assert "refresh" not in site("/?state=finished")[1]
    for wrong in ("/?surprise=1", "/?page=0", "/?sort=random", "/?text=a&text=b"):
        assert site(wrong)[0] == 400


def test_a_run_of_the_list_opens_with_its_items_and_leads_back(site: Site) -> None:
    key = site.keys()["bbq/default"]
    status, _, page = site(f"/run/{key}/")
    assert status == 200
    [item] = findall(rf'<h2><a href="(/run/{key}/item/\d+)', page)[:1]
    assert site(item)[0] == 200
    assert 'href="/"' in page
    assert f"/compare?run={key}" in page
    assert site("/run/0123456789abcdef/")[0] == 404
    assert site(f"/run/{key}/item/99999")[0] == 404


def test_selected_runs_give_the_report_that_the_command_writes(site: Site, folder: Path) -> None:
    keys = site.keys()
    runs = [str(folder / name) for name in ("bbq/default", "bbq/fairness")]
    status, _, page = site("/compare?" + "&".join(f"run={keys[n]}" for n in NAMES[:2]))
    assert status == 200
    for metric in combined_report(runs).comparisons[0].primary[:1]:
        assert f"{metric.effect:+.2f}" in page
    assert site("/compare")[0] == 400
    assert site("/compare?" + "&".join(f"run={n}" for n in range(11)))[0] == 400
    assert site("/compare?run=nothing")[0] == 404


def test_a_change_of_a_file_is_seen_and_an_unchanged_run_is_not_read_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "runs"
    shutil.copytree(folder, root)
    read: list[int] = []
    index = RunIndex(root, combined_report)
    index.listed(RunsQuery())
    original = orjson.loads

    def counted(data: bytes) -> object:
        read.append(len(data))
        return original(data)

    monkeypatch.setattr("evenhand.views.viewer.run_index.orjson.loads", counted)
    index.listed(RunsQuery())
    assert read == []
    status = {"state": "running", "done": 23}
    (root / "bbq/fairness/status.json").write_bytes(orjson.dumps(status))
    [row] = index.listed(RunsQuery(text="fairness")).rows
    assert row.done == 23
    assert 1 <= len(read) <= 3


def test_names_and_files_of_a_stranger_are_escaped_and_no_link_is_followed(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    texts = payloads(1)[:200]
    for number, text in enumerate(texts):
        run = root / f"r{number}"
        run.mkdir(parents=True)
        record = {"created": text, "source": {"benchmark": text, "items": text},
                  "method": {"name": text}, "cast": {"default": {"model": text}}}  # fmt: skip
        (run / "run.json").write_bytes(orjson.dumps(record))
        (run / "status.json").write_bytes(orjson.dumps({"state": text, "cost": text}))
        (run / "report.json").write_bytes(orjson.dumps({"verdict": {"state": text}}))
    secret = tmp_path / "secret.json"
    secret.write_bytes(orjson.dumps({"method": {"name": "SECRET"}}))
    (root / "linked").mkdir()
    os.symlink(secret, root / "linked" / "run.json")
    os.symlink(tmp_path, root / "up")
    with opened(root, combine=combined_report) as served:
        site = Site(served)
        pages = [site(f"/?page={page}")[2] for page in range(1, 10)]
    whole = "".join(pages)
    assert whole.count('<input type="checkbox"') == 201
    assert "SECRET" not in whole
    reader = Elements()
    reader.feed(whole)
    assert not {"script", "img", "svg", "iframe", "base", "object"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    addresses = [value or "" for name, value in reader.attributes if name in ("href", "action")]
    assert all(address.startswith("/") for address in addresses)


class Elements(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@pytest.mark.parametrize("wrong", [[], {}, {"source": 3}, {"cast": {"default": []}}])
def test_a_record_of_any_shape_is_listed(tmp_path: Path, wrong: object) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_bytes(orjson.dumps(wrong))
    [row] = RunIndex(tmp_path, combined_report).listed(RunsQuery()).rows
    assert (row.instrument, row.model, row.state) == ("", "", "unknown")


def test_a_folder_without_runs_is_refused_as_a_run_is(tmp_path: Path) -> None:
    assert not holds_runs(tmp_path)
    assert not holds_runs(KEPT / "bbq/default")
    assert holds_runs(KEPT)
    with raises_naming(UserError, "run.json"):
        opened(tmp_path, combine=_never)


def _never(_runs: Sequence[str]) -> CombinedReport:
    raise AssertionError("no report is made")
