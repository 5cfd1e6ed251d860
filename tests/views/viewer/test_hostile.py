"""A run folder and the texts in it may come from a stranger: nothing in them runs, and nothing
outside the folder is read."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest

from evenhand.agents import Cast
from evenhand.core import Item
from evenhand.methods.build import build_method
from evenhand.models import ScriptedModel
from evenhand.runs.runners import ItemList, RunPlan
from evenhand.runs.store import RunReader
from evenhand.views import html
from tests.errors import assert_names
from tests.hostile.small_runs import Canary, ran
from tests.views.payloads import payloads
from tests.views.viewer.asking import viewing

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def seen() -> Iterator[tuple[int, list[str]]]:
    """A port, and what was asked for there."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.server_port, paths
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def poisoned(seen: tuple[int, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-five items with eight payloads each: as id, prompt, answer, and names and values of
    tags; the name of the model is one too."""
    texts = payloads(seen[0])
    items = []
    for n in range(25):
        a, b, c, d, e, f, *_ = texts[8 * n : 8 * n + 8]
        items.append(Item(id=f"{n}{a}", prompt=f"{b}{c}", tags={d: e, "kind": f}))
    said = iter(texts[6::8] + texts[7::8])
    folder = tmp_path_factory.mktemp("poisoned") / "<img src=x onerror=alert(1)>"
    model = ScriptedModel(lambda _: next(said), name=texts[0])
    ran(
        folder,
        RunPlan(
            method=build_method("default", ()),
            cast=Cast(model),
            source=ItemList(items),
            concurrency=1,
        ),
    )
    return folder


def test_two_hundred_payloads_are_words_on_the_list_and_on_every_item(
    poisoned: Path, seen: tuple[int, list[str]]
) -> None:
    texts = payloads(seen[0])
    with viewing(poisoned) as asking:
        listed = asking()
        assert listed.found == 25
        pages = [listed.page, *(asking(f"/item/{n}").page for n in range(25))]
        searched = asking(text=texts[0])
        assert searched.status == 200
        assert html.escape(texts[0]) in searched.page
    shown = "\n".join(pages)
    asked_for = [one for number, one in enumerate(texts) if number % 8 < 7]
    assert all(html.escape(one) in shown for one in asked_for)
    for tag in ("<script", "<img", "<svg", "<iframe", "<base", "<object", "<video", "<math"):
        assert tag not in shown, tag
    assert "onerror=alert(1)>" not in shown.replace("&gt;", "")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_browser_that_opens_the_link_shows_the_list_and_runs_and_fetches_nothing(
    poisoned: Path, seen: tuple[int, list[str]], tmp_path: Path
) -> None:
    assert CHROMIUM is not None
    with viewing(poisoned) as asking:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000"]
        shown = subprocess.run(
            [CHROMIUM, *options, f"--user-data-dir={tmp_path}", "--dump-dom", asking.served.link],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout
    assert shown.count("<article") == 25
    assert " ran=" not in shown.partition("<head>")[0]
    assert seen[1] == []


def test_a_part_that_was_changed_is_refused_in_words(poisoned: Path, tmp_path: Path) -> None:
    run = shutil.copytree(poisoned, tmp_path / "run")
    part = next((run / "results").iterdir())
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with viewing(run) as asking:
        for said in (asking(), asking("/item/3"), asking(text="x")):
            assert said.status == 500
            assert_names(said.words, "checksum")


def test_a_panic_of_polars_is_said_on_the_page_and_ends_the_gathering(
    poisoned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which bytes make it panic changes with its version, so it is made to."""

    def panics(*_: object) -> None:
        raise pl.exceptions.PanicException("children of unequal length")

    with monkeypatch.context() as patched:
        patched.setattr(RunReader, "result_batches", panics)
        patched.setattr(RunReader, "results_at", panics)
        with viewing(poisoned) as asking:
            assert asking.browsed.facets.ended(0)
            assert_names(asking.browsed.facets.problem, "unequal length")
            for said in (asking(), asking("/item/3")):
                assert said.status == 500
                assert_names(said.words, "PanicException", "children of")


def test_what_is_too_long_to_read_is_cut_and_what_is_too_long_to_filter_by_is_not_offered(
    tmp_path: Path,
) -> None:
    tags = {"group": "g" * 201, "kind": "k" * 200, "n" * 197: "v"}
    tags |= {f"t{number}": "v" for number in range(400)}
    long = Item(id="i" * 50_000, prompt="Say it.", tags=tags)
    model = ScriptedModel(lambda _: "It.", name="scripted")
    method = build_method("default", ())
    ran(
        tmp_path / "run",
        RunPlan(method=method, cast=Cast(model), source=ItemList([long]), concurrency=1),
    )
    with viewing(tmp_path / "run") as asking:
        listed, item = asking(), asking("/item/0")
        assert asking(tag__kind="k" * 200).found == 1
    assert f'<option value="{"k" * 200}">' in listed.page
    assert "g" * 201 not in listed.page
    assert "n" * 197 not in listed.page
    assert "i" * 301 not in listed.page + item.page
    assert "… (49,700 more)" in item.words
    assert_names(" ".join(item.words.split()), "tags 203")


def test_nothing_outside_the_folder_is_read(poisoned: Path, tmp_path: Path) -> None:
    run = shutil.copytree(poisoned, tmp_path / "run")
    canary = Canary(tmp_path / "outside")
    part = next((run / "results").iterdir())
    part.unlink()
    part.symlink_to(tmp_path / "outside/keys")
    with viewing(run) as asking, canary.watching():
        places = ("/", "/item/0", "/item/..%2f..%2foutside%2fkeys", "/../outside/keys",
                  "/item/%2e%2e/%2e%2e/outside/keys", "//outside/keys")  # fmt: skip
        for place in places:
            said = asking(place)
            assert said.status in (404, 500), place
            assert "CANARY" not in said.page
    canary.check()
