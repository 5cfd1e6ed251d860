"""A corpus on this machine: no network, the same hits for the same files."""

import json
import pickle
from pathlib import Path

import pytest

from evenhand.agents.tools.search import Corpus, SearchModel
from evenhand.agents.tools.search import corpus as room
from evenhand.core.errors import SearchFailed, UserError
from tests.errors import raises_naming

from .servers import asking, soon

CHESS = "# Women in chess\n\nFewer girls learn chess; the gap in ratings follows from that."
WAGES = "Wages of women and men differ in most countries."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "evidence"
    (home / "deeper").mkdir(parents=True)
    (home / "chess.md").write_text(CHESS)
    (home / "deeper" / "wages.txt").write_text(WAGES)
    (home / "picture.png").write_bytes(b"\x89PNG women")
    return home


async def test_a_folder_is_searched_by_words_and_their_forms(folder: Path) -> None:
    engine = Corpus(folder)
    (hit,) = await engine.search("rating", 5, soon())
    assert (hit.url, hit.title, hit.text) == ("corpus:chess.md", "Women in chess", CHESS)
    (hit,) = await engine.search("the wage", 5, soon())
    assert (hit.url, hit.title, hit.text) == ("corpus:deeper/wages.txt", "wages", WAGES)
    assert len(await engine.search("women", 5, soon())) == 2
    assert len(await engine.search("women", 1, soon())) == 1
    assert await engine.search("xyzzy", 5, soon()) == ()
    assert await engine.search("in of the", 5, soon()) == ()


async def test_a_query_is_words_and_never_a_command(folder: Path) -> None:
    engine = Corpus(folder)
    for query in ('title:chess AND "', "text:[a TO b]", "(((", "women OR -chess^9~", "*", "/.*/"):
        await engine.search(query, 5, soon())


async def test_a_jsonl_file_gives_titles_texts_and_addresses(tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    lines = [
        {"title": "Chess", "text": CHESS, "url": "https://example.org/chess"},
        {"title": "Wages", "text": WAGES},
    ]
    file.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    engine = Corpus(file)
    (hit,) = await engine.search("ratings", 5, soon())
    assert (hit.url, hit.title) == ("https://example.org/chess", "Chess")
    (hit,) = await engine.search("wages", 5, soon())
    assert hit.url == "corpus:facts.jsonl#2"


@pytest.mark.parametrize("line", ['{"title": "x"}', "[]", "no", '{"title": 1, "text": "x"}'])
async def test_a_line_that_is_no_document_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_text('{"title": "t", "text": "x"}\n' + line)
    with raises_naming(UserError, "line 2"):
        Corpus(file)


def test_a_place_without_documents_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.jsonl"):
        with raises_naming(UserError, "[search] path"):
            Corpus(path)


def test_the_record_tells_one_corpus_from_another(folder: Path) -> None:
    first = Corpus(folder).describe()
    assert Corpus(folder).describe() == first
    (folder / "chess.md").write_text(CHESS + " More.")
    assert Corpus(folder).describe()["sha256"] != first["sha256"]


async def test_files_that_change_under_a_run_end_the_search(folder: Path) -> None:
    engine = Corpus(folder)
    (folder / "chess.md").write_text("other words")
    with raises_naming(SearchFailed, folder.name, "at the start"):
        await engine.search("women", 5, soon())


async def test_a_large_corpus_is_indexed_once_on_disk(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_IN_MEMORY", 10)
    cache = tmp_path / "cache"
    first = await Corpus(folder, cache=cache).search("women", 5, soon())
    (kept,) = (cache / "corpora").iterdir()
    built = {file.name: file.stat().st_mtime_ns for file in kept.glob("*.term")}
    assert built
    assert await Corpus(folder, cache=cache).search("women", 5, soon()) == first
    assert {file.name: file.stat().st_mtime_ns for file in kept.glob("*.term")} == built
    assert first == await Corpus(folder).search("women", 5, soon())


async def test_a_corpus_travels_to_another_process(folder: Path) -> None:
    model = SearchModel(Corpus(folder))
    said = await model.complete(asking("women"))
    again: SearchModel = pickle.loads(pickle.dumps(model))
    assert (await again.complete(asking("women"))).samples == said.samples
    await model.close()
