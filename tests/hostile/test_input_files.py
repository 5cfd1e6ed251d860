"""Input files from a stranger, or with a mistake in them: refused before the first call."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand
from evenhand.agents.tools.search.corpus import Corpus
from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.models import ScriptedModel
from evenhand.runs.runners import JsonlFile
from evenhand.runs.runners.prompt_files import ParquetTable
from evenhand.runs.runners.source import _Ids
from evenhand.testing import any_reply
from tests.errors import raises_naming

LIMIT = 200_000


def written(path: Path, lines: list[str]) -> JsonlFile:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return JsonlFile(path)


def lines_of(count: int) -> list[str]:
    return [json.dumps({"id": f"p{n}", "prompt": f"Describe {n}."}) for n in range(count)]


@pytest.mark.parametrize(
    ("bad", "facts"),
    [
        ('{"prompt": "cut', ("line 301: not_json",)),
        (json.dumps({"prompt": "x" * LIMIT}), ("line 301: too_large",)),
        (json.dumps({"prompt": "x" * 5 * LIMIT}), ("line 301", "200,000 characters")),
        ('{"promt": "x"}', ("line 301: prompt", "Field required")),
    ],
)
def test_a_bad_last_line_is_found_before_the_first_call_and_the_mended_file_is_run(
    bad: str, facts: tuple[str, ...], tmp_path: Path
) -> None:
    """Rule: a file with a bad line makes no run folder, so nothing is tied to it."""
    asked: list[str] = []

    def answer(request: evenhand.models.ModelRequest) -> str:
        asked.append(request.messages[-1].content)
        return "Kind."

    model, path, out = ScriptedModel(answer), tmp_path / "items.jsonl", tmp_path / "run"
    source = written(path, [*lines_of(300), bad])
    with raises_naming(UserError, *facts):
        evenhand.mitigate(source, method="default", model=model, out=str(out))
    assert asked == []
    assert not out.exists()
    source = written(path, lines_of(301))
    evenhand.mitigate(source, method="default", model=model, out=str(out))
    assert len(asked) == 301


def test_a_line_without_an_end_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a terabyte of zeros, which takes no room
    with raises_naming(UserError, "line 1", "200,000 characters"):
        len(JsonlFile(path))


@pytest.mark.parametrize(
    ("ids", "facts"),
    [
        (["a", "b", "a"], ("lines 1, 3", "'a'")),
        ([None, None, "0"], ("lines 1, 3", "'0'")),  # a position is an id too
        (["2", None, None], ("lines 1, 3", "'2'")),
        (["a", "b", "a", "b"], ("lines 1, 3", "'a'", "1 more")),
    ],
)
def test_an_id_that_comes_twice_is_refused_with_its_lines(
    ids: list[str | None], facts: tuple[str, ...], tmp_path: Path
) -> None:
    lines = [json.dumps({"prompt": "x", **({"id": name} if name else {})}) for name in ids]
    with raises_naming(UserError, *facts):
        len(written(tmp_path / "items.jsonl", lines))


def test_ids_cost_eight_bytes_an_item_and_nothing_where_no_line_has_one() -> None:
    without, having = _Ids(), _Ids()
    for number in range(5_000):
        without.add(str(number))
        having.add(str(number) if number < 2_000 else f"p{number}")
    assert without._hashes is None
    assert having._hashes is not None
    assert having._hashes.itemsize * len(having._hashes) == 40_000
    assert having.suspects() == without.suspects() == frozenset()
    having.add("7")
    assert having.suspects() == {hash("7")}


def test_items_with_the_same_id_in_a_list_are_refused(tmp_path: Path) -> None:
    twins = [Item(id="a", prompt="x"), Item(id="b", prompt="y"), Item(id="a", prompt="z")]
    model = ScriptedModel(lambda _: "Kind.")
    with raises_naming(UserError, "items[0]", "items[2]", "'a'"):
        evenhand.mitigate(twins, method="default", model=model, out=str(tmp_path))


def test_an_input_without_items_is_said_and_makes_no_folder(tmp_path: Path) -> None:
    pq.write_table(pa.table({"prompt": pa.array([], pa.string())}), tmp_path / "none.parquet")
    (tmp_path / "none.jsonl").write_text("\n\n")
    table = ParquetTable(str(tmp_path / "none.parquet"), prompt_column="prompt")
    model = ScriptedModel(lambda _: "Kind.")
    nothing: list[Any] = [table, JsonlFile(tmp_path / "none.jsonl"), []]
    for source in nothing:
        with raises_naming(UserError, "no items"):
            evenhand.mitigate(source, method="default", model=model, out=str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


# -- tables ----------------------------------------------------------------------------------------


def table(path: Path, prompts: list[str], **how: object) -> ParquetTable:
    pq.write_table(pa.table({"prompt": prompts}), path, compression="zstd", **how)
    return ParquetTable(str(path), prompt_column="prompt")


def test_a_text_that_is_too_long_fails_its_row_alone(tmp_path: Path) -> None:
    prompts = ["a", "x" * LIMIT, "y" * (LIMIT + 1), "é" * LIMIT, "b"]
    found = table(tmp_path / "a.parquet", prompts)
    read = [item.prompt for item in found.read(0, 5)]
    assert read == ["a", "x" * LIMIT, "", "é" * LIMIT, "b"]


def test_a_few_kilobytes_that_unfold_to_gigabytes_are_refused_by_their_footer(
    tmp_path: Path,
) -> None:
    path = tmp_path / "bomb.parquet"
    with raises_naming(UserError, "2 rows", "MiB"):
        table(path, ["0" * (66 << 20)] * 2)
    assert path.stat().st_size < 20_000


_PEAK = """
import resource, sys
from evenhand.runs.runners.prompt_files import ParquetTable
table = ParquetTable(sys.argv[1], prompt_column="prompt")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(sum(not item.prompt for item in table.read(0, len(table))))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_long_value_that_many_rows_share_is_unfolded_for_few_of_them_at_a_time(
    tmp_path: Path,
) -> None:
    """6 MiB stored once, for 100 rows: 600 MB at a time before, and the footer looks harmless."""
    path = tmp_path / "shared.parquet"
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int32()), ["0" * (6 << 20)])
    pq.write_table(pa.table({"prompt": values}), path, compression="zstd")
    assert path.stat().st_size < 20_000
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(path)], capture_output=True, text=True, check=True
    )
    empty, grown = map(int, done.stdout.split())
    assert empty == 100
    assert grown < 400, f"{grown} MiB"


@pytest.mark.parametrize("kind", ["link", "pipe", "link to a pipe", "link to /dev/zero", "folder"])
def test_a_folder_of_shards_leads_to_no_file_outside_it_and_waits_at_no_pipe(
    kind: str, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    table(tmp_path / "mine/secret.parquet", ["my secret"])
    os.mkfifo(tmp_path / "mine/pipe")
    shards = tmp_path / "shards"
    shards.mkdir()
    table(shards / "a.parquet", ["a"])
    planted = shards / "b.parquet"
    match kind:
        case "link":
            planted.symlink_to(tmp_path / "mine/secret.parquet")
        case "pipe":
            os.mkfifo(planted)
        case "link to a pipe":
            planted.symlink_to(tmp_path / "mine/pipe")
        case "link to /dev/zero":
            planted.symlink_to("/dev/zero")
        case _:
            planted.mkdir()
    with raises_naming(UserError, "b.parquet", "a link"):
        ParquetTable(str(shards), prompt_column="prompt")


def test_a_pipe_or_a_device_is_no_input(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    for name in (str(tmp_path / "pipe.parquet"), "/dev/zero"):
        with raises_naming(UserError, name, "a pipe", "a device"):
            ParquetTable(name, prompt_column="prompt")
        with raises_naming(UserError, name):
            JsonlFile(Path(name))


def test_a_table_whose_name_is_a_pattern_is_read_itself(tmp_path: Path) -> None:
    for name in ("a1", "a[1]", "c*", "x?"):
        (tmp_path / name).mkdir()
        found = table(tmp_path / name / "s[0].parquet", [name])
        assert [item.prompt for item in found.read(0, 1)] == [name]
        folder = ParquetTable(str(tmp_path / name), prompt_column="prompt")
        assert [item.prompt for item in folder.read(0, 1)] == [name]


def test_a_corpus_to_search_names_no_file_outside_it_and_waits_at_no_pipe(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.txt").write_text("A nurse is kind.")
    (tmp_path / "secret").write_text("mine")
    (corpus / "b.txt").symlink_to(tmp_path / "secret")
    with raises_naming(UserError, "b.txt", "a link"):
        Corpus(corpus)
    (corpus / "b.txt").unlink()
    os.mkfifo(corpus / "b.txt")
    with raises_naming(UserError, corpus, "JSONL", ".txt", ".md"):
        Corpus(corpus)


def test_a_line_that_does_not_suit_the_method_fails_alone_and_the_run_goes_on(
    tmp_path: Path,
) -> None:
    """It ended the run at line 301, and the mended file was another run."""
    question = {"prompt": "Who was it?", "choices": ["A nurse", "A clerk", "Not known"]}
    lines = [json.dumps(question), *[json.dumps(question)] * 3, json.dumps({"prompt": "Describe."})]
    model = ScriptedModel(lambda _: json.dumps({"reasoning": "Nobody says.", "answer": "C"}))
    ran = evenhand.mitigate(
        written(tmp_path / "items.jsonl", [*lines, lines[0]]), method="cot", model=model,
        out=str(tmp_path / "run"),
    )  # fmt: skip
    results = ran.reader.results().collect()
    assert results["reason"].to_list() == [None] * 4 + ["unsuited", None]
    assert "has none" in results["message"][4]


@pytest.mark.parametrize("method", ["default", "cot", "rotated", "stardtox"])
def test_no_option_is_left_out_for_want_of_a_letter(method: str, tmp_path: Path) -> None:
    """Of 30 options the model was shown 26, and nobody was told; `rotated` ended the run."""
    few, many = (tuple(f"option {n}" for n in range(count)) for count in (26, 30))
    items = [Item(id=f"{n}", prompt="Who?", choices=c) for n, c in enumerate((few, many, few))]
    ran = evenhand.mitigate(
        items, method=method, model=ScriptedModel(any_reply), out=str(tmp_path / "run")
    )
    assert ran.reader.results().collect()["reason"].to_list() == [None, "unsuited", None]


def test_a_method_that_suits_no_line_is_told_at_once(tmp_path: Path) -> None:
    source = written(tmp_path / "items.jsonl", lines_of(3))
    with raises_naming(UserError, "'p0'", "cot") as told:
        evenhand.mitigate(source, method="cot", model=ScriptedModel(str), out=str(tmp_path / "run"))
    assert type(told.value) is UserError


def test_a_file_that_is_changed_while_it_is_in_use_gives_no_line_that_was_not_looked_through(
    tmp_path: Path,
) -> None:
    path = tmp_path / "items.jsonl"
    source = written(path, lines_of(3_000))
    assert len(source) == 3_000
    reading = source.read(0, 3_000)
    assert next(reading).prompt == "Describe 0."
    other = [line.replace("Describe", "Insults") for line in lines_of(3_000)]
    for changed in ([*lines_of(2_000), *other[2_000:]], lines_of(2_500)):
        path.write_text("\n".join(changed) + "\n")
        with raises_naming(UserError, str(path), "changed"):
            assert all(item.prompt.startswith("Describe") for item in source.read(1_500, 3_000))
    path.write_text("\n".join(lines_of(3_500)) + "\n")  # lines that were added are not asked
    assert len(list(source.read(1_500, 9_000))) == 1_500
