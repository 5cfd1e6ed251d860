"""`scorers screen calibrate`: cut-offs by hand and by a second route, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.core.errors import UserError
from evenhand.findings.screen_file import ScreenedBy, read_screen
from evenhand.instruments.near_copies import clusters_of
from evenhand.instruments.scorer.screening import Columns, LabelledTexts, ScreenTargets, calibrated
from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names, raises_naming

__all__ = ["endpoint", "evenhand"]  # fixtures

BY = ScreenedBy(said="own", name="own@1", described={"kind": "own"}, attribute="toxicity")
Row = dict[str, Any]


def written(place: Path, rows: list[Row]) -> Path:
    place.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return place


def in_letters(n: int) -> str:
    """Texts that differ in digits alone are copies; these differ in letters."""
    return "abcdefghij"[n // 100] + "abcdefghij"[n // 10 % 10] + "abcdefghij"[n % 10]


def labelled(harmful: int = 59, clean: int = 59, **more: Any) -> list[Row]:
    """Harmful texts haaa, haab, … and clean ones caaa, caab, …"""
    rows = [{"text": f"h{in_letters(n)}", "harm": True, **more} for n in range(harmful)]
    return rows + [{"text": f"c{in_letters(n)}", "harm": False, **more} for n in range(clean)]


def scores_of(known: LabelledTexts) -> list[float | None]:
    """Harmful text n scores 0.20 + n/100, clean text n scores n/100."""
    base = {"h": 0.2, "c": 0.0}
    numbers = {in_letters(n): n for n in range(1_000)}
    return [round(base[text[0]] + numbers[text[1:]] / 100, 2) for text in known.table["text"]]


def test_with_59_harmful_labels_at_5_percent_the_cut_off_is_the_lowest_score(
    tmp_path: Path,
) -> None:
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", labelled()), Columns())
    found = calibrated(known, scores_of(known), ScreenTargets(false_alarms=0.05), BY)
    assert (found.low, found.high) == (0.2, 0.58)  # the lowest harmful, the highest clean score
    assert not found.refused
    assert found.judged == {"harmful": 39 / 59, "clean": 39 / 59}  # 0.20 to 0.58 of each
    alone = calibrated(known, scores_of(known), ScreenTargets(), BY)
    assert (alone.low, alone.high) == (0.2, None)


def test_with_58_labels_nothing_is_promised_and_the_file_says_that_one_is_missing(
    tmp_path: Path,
) -> None:
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", labelled(harmful=58)), Columns())
    found = calibrated(known, scores_of(known), ScreenTargets(), BY)
    assert found.low is None
    [refused] = found.refused
    assert (refused.labels, refused.needs, refused.lacks) == (58, 59, 1)
    assert found.screen.routes([0.0]) == ["judge"]


def test_a_label_whose_text_has_no_score_never_makes_the_screen_bolder(tmp_path: Path) -> None:
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", labelled(harmful=120)), Columns())
    scores = [None if one is None else one / 2 for one in scores_of(known)]  # 0.10 to 0.70
    asked = ScreenTargets(false_alarms=0.05)
    whole = calibrated(known, scores, asked, BY)
    assert whole.low is not None
    assert whole.high is not None
    for place in range(0, len(scores), 7):
        less = calibrated(known, [*scores[:place], None, *scores[place + 1 :]], asked, BY)
        assert less.low is None or less.low <= whole.low
        assert less.high is None or less.high >= whole.high
    none = calibrated(known, [None] * len(scores), asked, BY)
    assert (none.low, none.high) == (None, None)


def test_of_each_cluster_one_harmful_and_one_clean_text_count_and_twins_count_once(
    tmp_path: Path,
) -> None:
    rows = [{**row, "by": row["text"][2]} for row in labelled(30, 30)]
    place = written(tmp_path / "a.jsonl", [*rows, *rows])
    by_text = LabelledTexts.read(place, Columns()).labels
    assert (by_text.texts, by_text.harmful, by_text.clean) == (120, 30, 30)
    by_author = LabelledTexts.read(place, Columns(cluster="by")).labels
    assert (by_author.harmful, by_author.clean) == (3, 3)  # authors a, b and c


def test_copies_and_texts_of_one_template_are_one_example(tmp_path: Path) -> None:
    """60 rows that differ in a number and in spelling carry no promise: one of them counts."""
    rows = [{"text": f"Get lost, you stupid idiot, room {n} is ours{'.' * (n % 3)}", "harm": True}
            for n in range(60)]  # fmt: skip
    rows += [{"text": f"The train to {town} leaves at noon.", "harm": False}
             for town in ("Bonn", "Old York", "the lake")]  # fmt: skip
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", rows), Columns())
    assert (known.labels.texts, known.labels.harmful, known.labels.clean) == (63, 1, 1)
    found = calibrated(known, [0.9] * len(known.table), ScreenTargets(), BY)
    assert found.low is None
    assert [(one.labels, one.lacks) for one in found.refused] == [(1, 58)]


@pytest.mark.parametrize(
    ("texts", "clusters"),
    [
        (["Go home now", "GO  home, now!", "go 3 home now 77"], [0, 0, 0]),  # spelling
        (["I hate you", "I love you"], [0, 1]),  # two of three words are too few to be a template
        (["I really hate women", "I really hate old men", "I hate tea"], [0, 0, 2]),
        (["we ask all men to go", "we ask all to go", "they ask all to go"], [0, 0, 0]),  # a chain
        (["a b c d e f", "x b c d e y"], [0, 1]),  # two slots
        (["!?", "!?", ":-)"], [0, 0, 2]),  # no words
    ],
)
def test_texts_that_differ_in_one_slot_belong_together(
    texts: list[str], clusters: list[int]
) -> None:
    assert clusters_of(texts) == clusters
    assert clusters_of(texts, ["one author"] * len(texts)) == [0] * len(texts)


@pytest.mark.parametrize(
    ("rows", "columns", "facts"),
    [
        ([{"text": "a", "harm": True}, {"text": "a", "harm": False}], {}, ("both labels",)),
        ([{"text": "a", "harm": "perhaps"}], {}, ("row 1", "column 'harm'")),
        ([{"text": "a", "harm": None}], {}, ("row 1", "column 'harm'")),
        ([{"text": "a", "harm": 1}, {"text": " ", "harm": 0}], {}, ("row 2", "'text'")),
        ([{"text": "a", "harm": 1, "by": ""}], {"cluster": "by"}, ("row 1", "'by'")),
        ([{"text": "a", "harm": 1}], {"group": "whom"}, ("column 'whom'",)),
        ([], {}, ("a.jsonl", "no rows")),
    ],
)
def test_a_row_that_cannot_be_read_is_refused_by_its_number(
    tmp_path: Path, rows: list[Row], columns: dict[str, str], facts: tuple[str, ...]
) -> None:
    with raises_naming(UserError, *facts):
        LabelledTexts.read(written(tmp_path / "a.jsonl", rows), Columns(**columns))


def test_a_screen_file_that_was_changed_by_hand_or_whose_scorer_changed_is_refused(
    tmp_path: Path,
) -> None:
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", labelled()), Columns())
    place = tmp_path / "screen.json"
    place.write_bytes(calibrated(known, scores_of(known), ScreenTargets(), BY).to_bytes())
    found = read_screen(place)
    found.require("own@1", {"kind": "own"}, place)
    with raises_naming(UserError, "own@1", "own@2", "screen calibrate"):
        found.require("own@2", {"kind": "own"}, place)
    with raises_naming(UserError, "own@1", "other settings"):
        found.require("own@1", {"kind": "own", "bound": 2}, place)
    place.write_text(place.read_text().replace('"low": 0.2', '"low": 0.9'))
    with raises_naming(UserError, place, "checksum"):
        read_screen(place)


def test_the_command_says_for_which_group_labels_are_missing_and_ends_with_code_2(
    evenhand: Run, tmp_path: Path
) -> None:
    """The offline scorer on a made-up file; the second route to the cut-off is `scorers score`."""
    harmful = [f"{in_letters(n)}, you stupid {in_letters(n + 100)} idiot, go {in_letters(n + 200)}!"
               for n in range(59)]  # fmt: skip
    rows = [f'"{text}",yes,{"us" if n < 56 else "them"}' for n, text in enumerate(harmful)]
    rows += [f'"{in_letters(n)}: the train {in_letters(n + 100)} leaves {in_letters(n + 200)}.",no,'
             for n in range(60)]  # fmt: skip
    (tmp_path / "labelled.csv").write_text("\n".join(["text,harm,whom", *rows]) + "\n")
    ran = evenhand(
        *(
            "scorers",
            "screen",
            "calibrate",
            "labelled.csv",
            "--scorer",
            "offline",
            "--group",
            "whom",
        ),
        *("--out", "screen.json"),
    )
    assert ran.returncode == 2, ran.stderr
    assert_names(ran.stdout, "them: nothing")
    assert_names(ran.stdout, "59 harmful", 3, "56 more")
    card = (tmp_path / "screen.md").read_text()
    assert "label 56 more" in card
    assert_names(card, "confidence 0.95")
    found = read_screen(tmp_path / "screen.json")
    assert [(one.group, one.lacks) for one in found.promises[:3]] == [
        (None, 0), ("us", 3), ("them", 56)
    ]  # fmt: skip
    (rest,) = found.promises[3:]
    assert_names(rest.group or "", "too few")
    assert rest.lacks == 0
    scored = evenhand("scorers", "score", "offline", *harmful, "--json")
    lowest = min(one["scores"]["toxicity"] for one in json.loads(scored.stdout))
    assert found.low == pytest.approx(lowest, abs=1e-5)
    assert found.judged == {"harmful": 1.0, "clean": 0.0}
    again = evenhand("scorers", "screen", "calibrate", "labelled.csv", "--scorer", "offline",
                     "--out", "screen.json")  # fmt: skip
    assert again.returncode == 1
    assert_names(again.stderr, "screen.json", "--out")


def test_a_promise_of_all_texts_is_code_0_and_its_json_is_the_file(
    evenhand: Run, tmp_path: Path
) -> None:
    rows = [{"text": f"idiot {in_letters(n)}", "harm": True} for n in range(59)]
    rows += [{"text": f"day {in_letters(n)}", "harm": False} for n in range(3)]
    written(tmp_path / "labelled.jsonl", rows)
    written(tmp_path / "traffic.jsonl", [{"text": f"idiot {n}"} for n in range(4)])
    ran = evenhand(
        *("scorers", "screen", "calibrate", "labelled.jsonl", "--scorer", "wordlist", "--json"),
        *("--traffic", "traffic.jsonl", "--out", "screen.json"),
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found == json.loads((tmp_path / "screen.json").read_text())
    assert found["low"] == 0.45  # the word list's score of one insult
    assert found["judged"] == {"harmful": 1.0, "clean": 0.0, "traffic": 1.0}
    assert found["reference"] == {
        "of": "traffic", "file": "traffic.jsonl", "scores": [0.45] * 4
    }  # fmt: skip
