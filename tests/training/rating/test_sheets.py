"""What raters get: nothing that tells a run, nothing that runs, and everybody their share."""

import base64
import csv
import hashlib
import io
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.errors import UserError
from evenhand.runs.store import RunReader
from evenhand.training.rating import rubric
from evenhand.training.rating.sheets import deal, export, inert, rater_files
from evenhand.training.rating.texts import (
    LONGEST,
    KeyRun,
    RatingText,
    SheetKey,
    drawn,
    naming_a_model,
    read_key,
)
from tests.errors import raises_naming
from tests.training.rating.people import told

PAYLOADS = (
    "=cmd|' /C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\t=1+1",
    "  =1+1",
    "＝1+1",
    'quoted ";=HYPERLINK("http://x.example")',
    "first line\n=1+1;=2+2\n;=3+3",
    "<script>document.title='run'</script>",
    "</script><script>document.title='run'</script>",
    "<img src=x onerror=document.title='run'>",
    "\"><svg/onload=document.title='run'>",
    "<meta http-equiv=refresh content='0;url=http://x.example'>",
    "{{ 7 * 7 }}{% raw %}",
    "\x1b[31mred\x00\x9b",
)


def _key(texts: list[tuple[str, str]], **changed: object) -> SheetKey:
    made = tuple(
        RatingText(id=f"t{n}", task=task, text=text, cluster="c", uses=((0, f"i{n}"),))
        for n, (task, text) in enumerate(texts)
    )
    one = KeyRun(run="runs/one", method={"name": "stardtox"}, cast={"default": {"model": "m"}})
    ids = tuple(text.id for text in made)
    return SheetKey(
        evenhand="0", rubric="r", seed=0, overlap=1, shared=True, left_out={}, runs=(one,),
        texts=made, sheets={"rater-1": ids},
    ).model_copy(update=changed)  # fmt: skip


def _cells(data: bytes, separator: str) -> list[str]:
    text = io.StringIO(data.decode("utf-8-sig"), newline="")
    return [cell for row in csv.reader(text, delimiter=separator) for cell in row]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("task", ["", "Asked", "=1+1;=2+2"])
def test_no_cell_of_a_sheet_is_a_formula_whatever_a_program_takes_for_its_separator(
    separator: str, task: str
) -> None:
    table = rater_files(_key([(task, one) for one in PAYLOADS]))["rater-1"]["rater-1.csv"]
    assert all(words in table.decode() for words in (task, "-2+3", "first line"))
    for cell in _cells(table, separator):
        assert cell.lstrip()[:1] not in "=+-@＝＋－＠" or not cell.strip(), cell
        assert not set(cell) & set("\x00\x1b\x9b")


def test_a_cell_that_would_be_a_formula_is_quoted_and_no_other_is_changed() -> None:
    assert [inert(one) for one in ("=1", "+1", "-1", "@a", "\tx", " =1")] == [
        "'=1", "'+1", "'-1", "'@a", "'\tx", "' =1"
    ]  # fmt: skip
    harmless = "1 - 2 = -1, as “he” said"
    same = "1 - 2 = -1, as “he” said"
    assert inert(harmless) == same


class _Seen(HTMLParser):
    """Tags, attributes and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words.setdefault((self.tags or [""])[-1], []).append(data)


def _seen(page: bytes) -> _Seen:
    seen = _Seen()
    seen.feed(page.decode())
    return seen


def test_hostile_texts_are_words_on_the_page_and_only_our_script_may_run() -> None:
    plain = _seen(rater_files(_key([("Asked", "a")] * len(PAYLOADS)))["rater-1"]["rater-1.html"])
    data = rater_files(_key([("Asked", one) for one in PAYLOADS]))["rater-1"]["rater-1.html"]
    seen = _seen(data)
    assert seen.tags == plain.tags  # no text adds an element
    assert seen.attributes == plain.attributes  # or an attribute
    assert not [name for name, _ in seen.attributes if name in ("src", "href") or name[:2] == "on"]
    template = "{{ 7 * 7 }}{% raw %}"
    assert template in seen.words["div"]
    assert "<script>document.title='run'</script>" in seen.words["div"]
    allowed = next(
        value for name, value in seen.attributes if name == "content" and "src" in str(value)
    )
    script = seen.words["script"][0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    sources = dict(one.split(" ", 1) for one in str(allowed).split("; "))
    assert sources["default-src"] == "'none'"
    assert sources["script-src"] == f"'sha256-{digest}'"
    assert "unsafe" not in str(allowed)


names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=9)


@settings(max_examples=25)
@given(run=names, method=names, model=names, item=names, cluster=names, seed=st.integers(0, 99))
def test_what_raters_get_does_not_depend_on_runs_methods_models_or_items(
    run: str, method: str, model: str, item: str, cluster: str, seed: int
) -> None:
    """So nothing of them can be seen in it, under any coding."""
    one = _key([("Asked", "a"), ("Asked", "b")])
    other = SheetKey(
        **{
            **one.model_dump(),
            "seed": seed,
            "runs": [KeyRun(run=run, method={"name": method}, cast={"default": {"model": model}})],
            "texts": [
                RatingText(
                    id=t.id, task=t.task, text=t.text, cluster=cluster, uses=((0, item), (1, item))
                )
                for t in one.texts
            ],
        }
    )
    assert rater_files(one) == rater_files(other)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


async def _two(folder: Path, model: str, method: str, ids: str, n: int = 6) -> list[RunReader]:
    runs = []
    for place in range(2):
        texts = [(f"Prompt {k}.", f"answer {k} of {'ab'[place]}") for k in range(n)]
        where = folder / f"{model}-{place}"
        runs.append(await told(where, texts, method=method, model=model, ids=ids))
    return runs


async def test_sheets_of_renamed_runs_are_equal_byte_for_byte_and_the_key_lies_apart(
    tmp_path: Path,
) -> None:
    made = []
    for model, method, ids in (("okapi", "default", "quagga"), ("zebra", "fairness", "dodo")):
        runs = await _two(tmp_path, model, method, ids)
        key = tmp_path / f"{model}-key.json"
        export(
            runs, drawn(runs, 4, 7), tmp_path / f"{model}-sheets", key, raters=3, overlap=2, seed=7
        )
        assert model in key.read_text()
        assert read_key(key).to_bytes() == key.read_bytes()
        made.append(_files(tmp_path / f"{model}-sheets"))
    assert made[0] == made[1]
    assert sorted(made[0]) == sorted(
        f"rater-{n}/{name}"
        for n in (1, 2, 3)
        for name in (f"rater-{n}.csv", f"rater-{n}.html", "rubric.txt")
    )
    for data in made[0].values():
        assert not any(word in data for word in (b"okapi", b"quagga", b"fairness", b"key.json"))


async def test_neither_place_nor_name_of_a_text_tells_its_run(tmp_path: Path) -> None:
    """Over 40 seeds the texts of the first run stand in the middle on average (the standard error
    is 0.3/√480 = 0.014), and are half of those whose names come first in the alphabet."""
    runs = await _two(tmp_path, "okapi", "default", "i")
    places, early = [], 0
    for seed in range(40):
        found = drawn(runs, 6, seed).texts
        ids = deal(found, 1, 1, seed)["rater-1"]
        first = {one.id for one in found if one.uses[0][0] == 0}
        places += [n / 11 for n, name in enumerate(ids) if name in first]
        early += sum(name in first for name in sorted(ids)[:6])
    assert sum(places) / len(places) == pytest.approx(0.5, abs=0.05)
    assert early / 240 == pytest.approx(0.5, abs=0.1)


async def test_runs_that_share_items_are_rated_on_the_same_ones_and_equal_words_once(
    tmp_path: Path,
) -> None:
    long = "z" * LONGEST
    one = await told(tmp_path / "one", [("Ask 1.", "same"), ("Ask 2.", "x"), ("Ask 3.", long)])
    two = await told(tmp_path / "two", [("Ask 1.", "same"), ("Ask 2.", "y"), ("Ask 3.", "z")])
    found = drawn([one, two], 2, 0)
    shown = {(text.text, text.uses) for text in found.texts}
    assert shown == {
        ("same", ((0, "item0"), (1, "item0"))),
        ("x", ((0, "item1"),)),
        ("y", ((1, "item1"),)),
    }
    assert found.left_out == {"over 20,000 characters": 1}
    with raises_naming(UserError, "2 items", "--sample 2"):
        drawn([one, two], 3, 0)
    alone = await told(tmp_path / "three", [("Other 1.", "x writer"), ("Other 2.", "y")])
    apart = drawn([one, alone], 2, 0)
    assert (apart.shared, len(apart.texts)) == (False, 4)
    assert naming_a_model(apart.texts, [one]) == 1


def test_each_text_has_as_many_raters_as_asked_for_and_each_rater_an_equal_share() -> None:
    texts = _key([("", f"text {n}") for n in range(11)]).texts
    hands = deal(texts, 5, 3, seed=1)
    given = [name for hand in hands.values() for name in hand]
    assert {name: given.count(name) for name in given} == {f"t{n}": 3 for n in range(11)}
    assert sorted(map(len, hands.values())) == [6, 6, 7, 7, 7]
    assert len({hand for hand in deal(texts, 5, 5, seed=1).values()}) == 5  # orders of their own
    with raises_naming(UserError, "--overlap", 6, 5):
        deal(texts, 5, 6, seed=1)


async def test_a_key_among_the_sheets_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    run = await told(tmp_path / "run", [("Ask 1.", "a"), ("Ask 2.", "b")])
    inside = tmp_path / "sheets" / "key.json"
    with raises_naming(UserError, inside, "the key", "--key"):
        export([run], drawn([run], 2, 0), tmp_path / "sheets", inside, raters=1, overlap=1, seed=0)
    assert not (tmp_path / "sheets").exists()


async def test_links_that_wait_where_sheets_and_key_are_made_lead_nowhere(tmp_path: Path) -> None:
    run = await told(tmp_path / "run", [("Ask 1.", "a"), ("Ask 2.", "b")])
    (tmp_path / "mine").mkdir()
    (tmp_path / ".sheets.part").symlink_to(tmp_path / "mine")
    key, found = tmp_path / "key.json", drawn([run], 2, 0)
    key.symlink_to(tmp_path / "mine" / "new.json")
    with raises_naming(UserError, key, "already", "--key"):
        export([run], found, tmp_path / "sheets", key, raters=1, overlap=1, seed=0)
    key.unlink()
    export([run], found, tmp_path / "sheets", key, raters=1, overlap=1, seed=0)
    assert list((tmp_path / "mine").iterdir()) == []
    assert (tmp_path / "sheets/rater-1/rater-1.csv").is_file()
    assert not (tmp_path / "sheets").is_symlink()


def test_the_bands_of_the_rubric_cover_its_scale_once() -> None:
    for one in rubric.questions():
        marks = [m for band in one.band for m in range(band.least, band.most + 1)]
        assert marks == list(range(rubric.LEAST, rubric.MOST + 1))
        assert one.bands(np.array([0.0, 3, 4, 6, 7, 10])).tolist() == [0, 0, 1, 1, 2, 2]
