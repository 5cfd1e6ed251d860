"""Items from a file: what is read, and messages that say which line to change and how."""

from pathlib import Path

import pytest

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.runs.runners import ItemList, JsonlFile
from evenhand.runs.runners.source import read_item
from tests.errors import raises_naming


def written(folder: Path, *lines: str) -> JsonlFile:
    path = folder / "items.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return JsonlFile(path)


def test_a_line_is_an_item_and_its_position_is_its_name_unless_it_has_one(tmp_path: Path) -> None:
    source = written(
        tmp_path,
        '{"prompt": "Describe a nurse."}',
        "",
        '{"prompt": "Who?", "id": "q", "context": "c", "choices": ["x", "y"], "answer": "y",'
        ' "tags": {"group": "age"}}',
        "   ",
        '{"prompt": "é"}\r',
    )
    assert list(source.read(0, len(source))) == [
        Item(id="0", prompt="Describe a nurse."),
        Item(
            id="q",
            prompt="Who?",
            context="c",
            choices=("x", "y"),
            answer="y",
            tags={"group": "age"},
        ),
        Item(id="2", prompt="é"),
    ]
    assert len(source) == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param('{"promt": "x"}', "prompt: Field required", id="a misspelt field"),
        pytest.param('{"prompt": "x", "tag": {}}', "tag: Extra inputs", id="an unknown field"),
        pytest.param('{"prompt": ""}', "prompt: String should have at least 1", id="no words"),
        pytest.param('{"prompt": 5}', "prompt: Input should be a valid string", id="a number"),
        pytest.param(
            '{"prompt": "x", "choices": "ab"}',
            "choices: Input should be a valid list",
            id="letters",
        ),
        pytest.param(
            '{"prompt": "x", "choices": ["a", 1]}',
            "choices.1: Input should be a valid string",
            id="a number among the options",
        ),
        pytest.param(
            '{"prompt": "x", "choices": ["a"]}',
            "only one choice",
            id="one option",
        ),
        pytest.param(
            '{"prompt": "x", "choices": ["a", "b"], "answer": "c"}',
            "answer: 'c' is none of the choices",
            id="an answer outside the options",
        ),
        pytest.param('{"prompt": "x", "id": ""}', "id: String should have", id="an empty id"),
        pytest.param(
            '{"prompt": "x", "tags": {"n": 1}}', "tags.n: Input should be", id="a tag of numbers"
        ),
        pytest.param('{"prompt": "x", "prompt": "y"}', "duplicate_key: 'prompt'", id="two prompts"),
        pytest.param('{"prompt": NaN}', "not_finite: NaN", id="NaN"),
        pytest.param('{"prompt": "x"', "not_json", id="cut off"),
        pytest.param("Describe a nurse.", "not_json", id="bare words"),
        pytest.param('["x"]', "the line: Input should be", id="a list"),
        pytest.param('{"prompt": "\\ud800"}', "not_text", id="half a character"),
    ],
)
def test_a_line_that_is_no_item_is_named_with_what_is_wrong(
    tmp_path: Path, line: str, message: str
) -> None:
    source = written(tmp_path, '{"prompt": "fine"}', "", line)
    with pytest.raises(UserError) as refused:
        list(source.read(0, len(source)))
    assert str(refused.value).startswith(f"{tmp_path}/items.jsonl line 3: ")  # blank lines count
    assert message in str(refused.value)


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"prompt": "caf\xe9"}\n')
    with raises_naming(UserError, path, "line 1", "UTF-8"):
        list(JsonlFile(path).read(0, 1))


def test_a_missing_file_is_told_what_it_should_hold(tmp_path: Path) -> None:
    with raises_naming(UserError, tmp_path / "items.jsonl", '{"prompt":'):
        JsonlFile(tmp_path / "items.jsonl")


def test_twenty_six_options_have_letters_and_one_more_has_none() -> None:
    options = ", ".join(f'"{number}"' for number in range(26))
    line = f'{{"prompt": "x", "choices": [{options}]}}'
    assert len(read_item(line.encode(), 0, "line 1").choices) == 26
    with raises_naming(UserError, "line 1", "choices", 26, 27):
        read_item(line.replace("]", ', "26"]').encode(), 0, "line 1")


def test_a_fingerprint_changes_with_one_byte_and_not_with_the_folder(tmp_path: Path) -> None:
    lines = ('{"prompt": "a"}', '{"prompt": "b"}')
    prints = []
    for name, last in (("one", "b"), ("two", "b"), ("three", "c")):
        (tmp_path / name).mkdir()
        source = written(tmp_path / name, lines[0], f'{{"prompt": "{last}"}}')
        prints.append(source.fingerprint())
    assert prints[0] == prints[1] != prints[2]
    assert (prints[0]["kind"], prints[0]["items"]) == ("jsonl", 2)


def test_a_list_of_items_is_told_apart_by_every_field() -> None:
    base = Item(id="a", prompt="p")
    others = (
        Item(id="b", prompt="p"),
        Item(id="a", prompt="q"),
        Item(id="a", prompt="p", context="c"),
        Item(id="a", prompt="p", choices=("x", "y")),
        Item(id="a", prompt="p", answer="x"),
        Item(id="a", prompt="p", tags={"k": "v"}),
    )
    prints = {ItemList([item]).fingerprint()["sha256"] for item in (base, *others)}
    assert len(prints) == 7
    assert list(ItemList([base]).read(0, 1)) == [base]
