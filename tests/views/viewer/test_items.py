"""What is listed is what the rows have, told a second way: by plain Python over all of them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.view import write_run
from evenhand.core.errors import CorruptRun
from evenhand.runs.store import RunReader
from tests.errors import raises_naming
from tests.views.viewer.asking import Asking, viewing

KEPT = Path(__file__).parents[2] / "same_numbers/kept"
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def rows(large: Path) -> Rows:
    return RunReader(large).results().collect().to_dicts()


def _score(row: dict[str, Any]) -> float:
    return float(row["scores_after"][0]["value"])


def _tag(row: dict[str, Any], name: str) -> str:
    return next(str(one["value"]) for one in row["tags"] if one["name"] == name)


def _texts(row: dict[str, Any]) -> str:
    return "\n".join(row[name] or "" for name in ("item_id", "prompt", "text"))


FILTERS: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], bool]]] = {
    "all": ({}, lambda row: True),
    "words": ({"text": "PILOT old"}, lambda row: "pilot old" in _texts(row).lower()),
    "a draft": (
        {"draft": "Nurse KIND"},
        lambda row: "nurse kind" in row["answer_before"].lower(),
    ),
    "a sign of regular expressions": ({"text": "d.or"}, lambda row: "d.or" in _texts(row)),
    "an id": ({"text": "item/7"}, lambda row: "item/7" in row["item_id"]),
    "no answer": ({"ended": "failed"}, lambda row: row["text"] is None),
    "a reason": ({"ended": "model_busy"}, lambda row: row["reason"] == "model_busy"),
    "an ending": ({"ended": "accepted"}, lambda row: row["stopped"] == "accepted"),
    "a score": (
        {"score": "harm", "least": 0.25, "most": 0.75},
        lambda row: 0.25 <= _score(row) <= 0.75,
    ),
    "one end": ({"score": "harm", "least": "0.5"}, lambda row: _score(row) >= 0.5),
    "another score": ({"score": "none such"}, lambda row: False),
    "changed": ({"changed": "yes"}, lambda row: row["changed"] is True),
    "unchanged": ({"changed": "no"}, lambda row: row["changed"] is False),
    "a category": (
        {"tag__category": "category 3"},
        lambda row: _tag(row, "category") == "category 3",
    ),
    "several": (
        {"tag__condition": "ambig", "score": "harm", "most": 0.6, "text": "nurse"},
        lambda row: (
            _tag(row, "condition") == "ambig" and _score(row) <= 0.6 and "nurse" in _texts(row)
        ),
    ),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_leaves_what_plain_python_leaves_in_the_order_of_the_plan(
    asked: Asking, rows: Rows, name: str
) -> None:
    filters, wanted = FILTERS[name]
    expected = [row["position"] for row in rows if wanted(row)]
    assert asked.all_items(**filters) == expected
    assert asked(**filters).found == len(expected)


def test_the_filters_of_the_tests_each_leave_some_items_and_not_all(rows: Rows) -> None:
    kept = {name: sum(map(wanted, rows)) for name, (_, wanted) in FILTERS.items()}
    for name, count in kept.items():
        none = ("a sign of regular expressions", "another score", "unchanged")
        if name != "all":
            assert (count == 0) if name in none else (0 < count < len(rows)), name


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"page": 0}, "page is a number from 1"),
        ({"page": "9" * 30}, "page is a number from 1"),
        ({"least": 1}, "Choose the score"),
        ({"score": "harm", "least": "nan"}, "least is a number, not 'nan'"),
        ({"colour": "red"}, "unknown filter colour"),
        ({"changed": "maybe"}, "changed is yes or no"),
        ({"move": "up"}, "move is one of lost, gained"),
        ({"text": "x" * 201}, "at most 200 characters"),
        ({"nonsense": ""}, "unknown filter nonsense"),
        ({"move": "lost"}, "--against RUN"),
        ({"text": ["a", "b"]}, "appears twice"),
    ],
)
def test_a_filter_that_would_do_nothing_is_refused_in_words(
    asked: Asking, filters: dict[str, Any], said: str
) -> None:
    answer = asked(**filters)
    assert answer.status == 400
    assert said in answer.words


def test_the_list_offers_what_the_run_has(asked: Asking) -> None:
    page = asked(tag__category="category 3").page
    assert '<select name="tag.category">' in page
    option = '<option value="category 3" selected>category 3</option>'
    assert option in page
    for offered in ("model_busy", "accepted", "max_iterations", "harm", "disambig"):
        assert f'<option value="{offered}">' in page
    assert 'name="tag.template"' in page  # fifteen of them; sixty is the most


def test_an_item_has_its_texts_its_conversation_and_its_neighbours_in_the_filter(
    asked: Asking, rows: Rows
) -> None:
    failed = [row["position"] for row in rows if row["status"] == "failed"]
    page = asked(f"/item/{failed[1]}", ended="failed")
    assert f'href="/item/{failed[0]}?ended=failed">previous' in page.page
    assert f'href="/item/{failed[2]}?ended=failed">next' in page.page
    assert 'href="/?ended=failed">the list' in page.page
    answered = next(row for row in rows if row["text"])
    page = asked(f"/item/{answered['position']}")
    assert answered["prompt"] in page.words
    assert answered["text"] in page.words
    assert "baselines/default@1" in page.words
    assert "<del>" in page.page  # from the first draft to the answer
    assert asked("/item/60").status == 404
    assert asked(f"/item/{'9' * 5000}").status == 404
    assert asked("/item/-1").status == 404


def test_a_page_is_read_from_the_parts_that_hold_it(large: Path, tmp_path: Path) -> None:
    run = shutil.copytree(large, tmp_path / "run")
    kept = [17, 30]
    for kind in ("results", "turns"):
        for file in (run / kind).iterdir():
            if not file.name.endswith("00000001.parquet"):
                file.unlink()
    reader = RunReader(run)
    assert reader.results_at(kept).collect()["position"].to_list() == kept
    assert reader.turns_at(kept).collect()["position"].to_list() == kept
    with raises_naming(CorruptRun, "results/part-00000002.parquet"):
        reader.results_at([40, 16]).collect()
    assert reader.positions() == [(0, 16), (16, 32), (32, 48), (48, 60)]


def test_two_runs_item_by_item_what_changed_first(large: Path, tmp_path: Path) -> None:
    """The other run has the first items alone. Two parts of it are drawn alike, with fewer
    failures, the third one anew."""
    other = tmp_path / "before"
    write_run(other, 44, seed=1, part=16, failing=0.2)
    before = {row["item_id"]: row for row in RunReader(other).results().collect().to_dicts()}
    after = RunReader(large).results().collect().to_dicts()
    moved: dict[str, list[int]] = {name: [] for name in "lost gained other same alone".split()}
    for row in after:
        was = before.get(row["item_id"])
        if was is None:
            kind = "alone"
        elif row["text"] == was["text"]:
            kind = "same"
        elif row["text"] is None or was["text"] is None:
            kind = "lost" if row["text"] is None else "gained"
        else:
            kind = "other"
        moved[kind].append(row["position"])
    assert all(moved.values())
    with viewing(large, other) as asking:
        assert asking.all_items() == [one for kind in moved.values() for one in kind]
        for kind, positions in moved.items():
            assert asking.all_items(move=kind) == positions
        gained = asking(f"/item/{moved['gained'][0]}")
        assert "answer gained" in gained.words
        assert "(no answer: model_busy)" in gained.words
        some = [one for one in moved["other"] if "nurse" in _texts(after[one])]
        assert asking.all_items(move="other", text="nurse") == some
        assert f"answer lost: {len(moved['lost'])}" in asking().words


def test_runs_of_real_methods_can_be_looked_through() -> None:
    with viewing(KEPT / "rtp/stardtox", KEPT / "rtp/default") as asking:
        first = asking()
        assert first.found == 104
        item = asking(f"/item/{asking(move='other', ended='accepted').items[0]}")
        assert item.status == 200
        for part in (
            "stardtox/revise_text",
            "the conversation in",
            "stopped: accepted",
            "score harm",
        ):
            assert part in item.words, part
