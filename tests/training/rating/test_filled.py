"""Sheets that came back: read as written by any program, and refused by line where they cannot be
right."""

from pathlib import Path

import pytest

from evenhand.core.errors import UserError
from evenhand.training.rating import judges, rubric
from evenhand.training.rating import sheets as returned
from evenhand.training.rating.texts import KeyRun, RatingText, SheetKey
from tests.errors import Fact, assert_names, raises_naming

TEXTS = ("a", "b", "c")
HEAD = "id,sheet,bias,communication,logic\n"
SHEET = HEAD + "a,rater-1,8,0,10\nb,rater-1,7,,6\n"  # one mark left empty, text c not in it


def _key(folder: Path) -> Path:
    texts = tuple(
        RatingText(id=name, task="Ask", text=f"text {name}", cluster=name, uses=((0, name),))
        for name in TEXTS
    )
    run = KeyRun(run="run", method={"name": "default"}, cast={})
    sheets = {"rater-1": TEXTS, "rater-2": TEXTS}
    key = SheetKey(
        evenhand="0", rubric=rubric.sha256(), seed=0, overlap=2, shared=True, left_out={},
        runs=(run,), texts=texts, sheets=sheets,
    )  # fmt: skip
    path = folder / "key.json"
    path.write_bytes(key.to_bytes())
    return path


def _read(folder: Path, *sheets: str | bytes) -> list[tuple[str, str, int | None, str | None]]:
    files = []
    for n, sheet in enumerate(sheets, 1):
        files.append(folder / f"sheet{n}.csv")
        files[-1].write_bytes(sheet if isinstance(sheet, bytes) else sheet.encode())
    _, rows, _ = returned.read(files, _key(folder))
    return rows.select("id", "question", "mark", "missing").rows()


KNOWN = [
    ("a", "bias", 8, None),
    ("a", "communication", 0, None),
    ("a", "logic", 10, None),
    ("b", "bias", 7, None),
    ("b", "communication", None, "left empty"),
    ("b", "logic", 6, None),
    ("c", "bias", None, "row not in the sheet"),
    ("c", "communication", None, "row not in the sheet"),
    ("c", "logic", None, "row not in the sheet"),
]


@pytest.mark.parametrize(
    "sheet",
    [
        SHEET,
        SHEET.encode("utf-8-sig"),
        SHEET.replace(",", ";"),
        SHEET.replace(",", "\t").replace("\n", "\r\n"),
        SHEET + ",,,,\n\n",
        SHEET.replace("b,rater-1,7,,6", '"b",rater-1, 7 ,"",6,,'),
        "text," + SHEET.replace("\na", '\n"=1\n2",a').replace("\nb", "\n,b"),
    ],
    ids=["plain", "byte order mark", "semicolons", "tabs", "empty rows", "quotes", "with texts"],
)
def test_a_sheet_is_read_the_same_whatever_program_saved_it(
    tmp_path: Path, sheet: str | bytes
) -> None:
    assert _read(tmp_path, sheet) == KNOWN


@pytest.mark.parametrize(
    ("wrong", "facts"),
    [
        (SHEET.replace("\nb", "\nz"), ("line 3", "text 'z'")),
        (SHEET + "a,rater-1,1,1,1\n", ("line 4: a", "twice", 2)),
        (SHEET.replace("8", "11"), ("line 2: a", "bias: '11'", 0, 10)),
        (SHEET.replace("8", "-1"), ("line 2: a", "bias: '-1'", 10)),
        (SHEET.replace("8", '"7,5"'), ("line 2: a", "'7,5'", "whole number")),
        (SHEET.replace("8", "8.0"), ("line 2: a", "'8.0'", "whole number")),
        (SHEET.replace("8", "٨"), ("line 2: a", "'٨'", "whole number")),
        (SHEET.replace("8", "good"), ("line 2: a", "'good'", "whole number")),
        (SHEET.replace("rater-1", "rater-9"), ("rater-1, rater-2", "every row")),
        (SHEET.replace("b,rater-1", "b,rater-2"), ("'rater-1', 'rater-2'",)),
        (HEAD, ("no row",)),
        (SHEET.replace("logic", "grammar"), ("first line", "id, sheet, bias")),
        (SHEET.replace("logic", "bias"), ("first line", "id, sheet, bias")),
        (SHEET.replace("10\n", "10,9\n"), ("line 2", "more cells")),
        ("", ("first line", "id, sheet, bias")),
        (b"\xff\xfe\x00", ("CSV UTF-8",)),
        (SHEET.replace("8", '"8'), ("UTF-8 CSV",)),
    ],
)
def test_what_cannot_be_right_is_refused_by_line(
    tmp_path: Path, wrong: str | bytes, facts: tuple[Fact, ...]
) -> None:
    with raises_naming(UserError, *facts):
        _read(tmp_path, wrong)


def test_all_faults_of_all_sheets_are_listed_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        _read(tmp_path, SHEET.replace("8", "99"), SHEET.replace("7", "x"), SHEET)
    said = str(refused.value).splitlines()
    assert len(said) == 4  # the heading, two faults, what to do; a sheet with faults is no double
    assert_names(said[1], "sheet1.csv line 2", "a, bias", "'99'")
    assert_names(said[2], "sheet2.csv line 3", "b, bias", "'x'")
    with raises_naming(UserError, "rater-1", "sheet2.csv", "sheet1.csv"):
        _read(tmp_path, SHEET, SHEET)


def test_a_sheet_of_another_rubric_is_refused(tmp_path: Path) -> None:
    path = _key(tmp_path)
    path.write_text(path.read_text().replace(rubric.sha256(), "0" * 64))
    with raises_naming(UserError, path, "another rubric"):
        returned.read([], path)


@pytest.mark.parametrize(
    ("table", "facts"),
    [
        ("id,bias\na,7.5\nb,\n", ()),
        ("id,bias\na,7\na,7\n", ("line 3: 'a'", "the key", "twice")),
        ("id,bias\nz,7\n", ("line 2: 'z'", "the key")),
        ("id,bias\na,nan\n", ("'nan'", 0, 10)),
        ("id,bias\na,10.5\n", ("'10.5'", 0, 10)),
        ("id,score\na,1\n", ("first line", "bias, communication")),
    ],
)
def test_the_table_of_a_judge_is_read_as_strictly(
    tmp_path: Path, table: str, facts: tuple[Fact, ...]
) -> None:
    key = SheetKey.model_validate_json(_key(tmp_path).read_bytes())
    file = tmp_path / "judge.csv"
    file.write_text(table)
    if not facts:
        assert judges.judge_marks(str(file), key).marks == {"bias": {"a": 7.5}}
        return
    with raises_naming(UserError, *facts):
        judges.judge_marks(str(file), key)


def test_a_table_of_marks_that_is_not_as_it_was_written_is_refused(tmp_path: Path) -> None:
    """A flipped bit of a Parquet file is another mark, or a traceback."""
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(SHEET)
    folder = tmp_path / "ratings"
    returned.write(folder, *returned.read([sheet], _key(tmp_path)))
    assert returned.load(folder)[2] == ("rater-2",)
    table = folder / returned.TABLE
    whole = table.read_bytes()
    for place in range(0, len(whole), 97):
        table.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with raises_naming(UserError, table, "sheets again"):
            returned.load(folder)
    table.write_bytes(whole)
    for garbage in ("[]", "{}", "{"):
        (folder / returned.ACCOUNT).write_text(garbage)
        with raises_naming(UserError, folder, "annotate import", "--key KEY"):
            returned.load(folder)
