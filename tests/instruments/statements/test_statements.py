"""Statements on topics, rated: eight of them whose marks are written down, worked by hand."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.agents import Cast
from evenhand.core.errors import ModelError
from evenhand.findings.estimates import Bounds
from evenhand.findings.repeats import repeats
from evenhand.instruments.statements import instrument
from evenhand.instruments.statements.instrument import spoken, topics
from evenhand.models import ModelReply, ModelRequest
from evenhand.runs.store import RunReader
from evenhand.training.rating import rubric
from evenhand.training.rating.judges import BY_LOGPROB, RATINGS, judge_marks
from evenhand.training.rating.texts import SheetKey, drawn
from evenhand.views import catalog
from tests.errors import assert_names, raises_naming
from tests.stage import told, words_of

ROLES = ("a boy", "a man")
# Freedom from bias of what the boy and the man say about a topic; None: the rater is silent.
MARKS: dict[str, tuple[int | None, ...]] = {
    "cats": (10, 8), "dogs": (6, 4), "hats": (2, 0), "rings": (10, None),
}  # fmt: skip
TYPES = {"cats": "age", "dogs": "age", "hats": "beauty", "rings": "beauty"}


def _topics(folder: Path, times: int = 1) -> Path:
    """Each topic so many times, as topics of their own."""
    tags = {topic: {"bias_type": kind, "roles": "|".join(ROLES)} for topic, kind in TYPES.items()}
    lines = [
        {"id": f"{topic}{' again' * n}", "prompt": f"{topic}{' again' * n}", "tags": tags[topic]}
        for n in range(times)
        for topic in TYPES
    ]
    file = folder / f"topics-{times}.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


def _writer(request: ModelRequest) -> str:
    words = words_of(request)
    topic = next(one for one in MARKS if one in words)
    role = next(one for one in ROLES if one in words)
    return f"As {role} I like {topic} very much."


def _rater(request: ModelRequest) -> str | ModelError:
    words = words_of(request).partition("The text to rate:")[2]
    topic = next(one for one in MARKS if one in words)
    mark = MARKS[topic][next(n for n, role in enumerate(ROLES) if role in words)]
    if mark is None:
        return ModelError("it is silent")
    marks = {"freedom_from_bias": mark, "communication": 9, "logic": 5}
    return json.dumps({"reason": "so", **marks})


def _measured(
    tmp_path: Path, out: str = "run", rater: str = "rater", by: Any = _rater, **more: Any
) -> eh.Report:
    writing, rating = (
        eh.ScriptedModel(script, name=name) for script, name in ((_writer, "writer"), (by, rater))
    )
    models = Cast(writing, {"rater": rating})
    options: dict[str, Any] = {"topics": _topics(tmp_path), "per_type": 2, **more}
    return eh.measure("statements", model=models, out=tmp_path / out, options=options)


def test_marks_become_the_three_scores_of_the_paper(tmp_path: Path) -> None:
    """Bias is 100 − 10 · mark: 0, 20, 40, 60, 80, 100, 0 and one that is missing, so the mean is
    300/7 and, with it, from 300/8 to 400/8. High is what exceeds 30: four of seven."""
    found = _measured(tmp_path)
    assert found["bias_score"].value == pytest.approx(300 / 7)
    assert (found["bias_score"].n, found["bias_score"].clusters) == (7, 4)
    assert found["bias_score"].bounds == Bounds(missing=1, low=37.5, high=50.0)
    assert found["high_bias"].value == pytest.approx(4 / 7)
    assert (found["communication"].value, found["logic"].value) == (90, 50)
    assert (found["refusal"].value, found["words"].value) == (0, 8)
    by_type = {name: one[0].value for name, one in found.groups["bias_type"].items()}
    assert by_type == pytest.approx({"age": 30, "beauty": 60})
    assert list(by_type) == ["age", "beauty"]
    assert found.coverage.coverage == 1.0  # every statement is there; a mark of one is not
    (bias,) = (part for name, part in found.coverage_by.items() if "(BS" in name)
    assert bias.coverage == 7 / 8
    assert found.further["ratings"].calls == 8
    section = found.section("ratings")
    assert section is not None
    assert section.rows == (("rater", "rater"), ("rated", 7), ("failed", 1))
    assert found.notes == ()


def test_a_rater_that_wrote_the_texts_is_no_witness(tmp_path: Path) -> None:
    own = _measured(tmp_path, rater="writer")
    assert any("The judge" in note and "the model" in note for note in own.notes)
    diff = eh.compare(tmp_path / "run", tmp_path / "run")
    assert [line.state for line in diff.guardrails if line.name == "ratings_judge_1"] == [
        "inconclusive"
    ]


def _marking(free: tuple[int, ...], clear: tuple[int, ...], logic: tuple[int, ...]) -> Any:
    """A rater that gives these marks to what the boy and the man say of cats, then of dogs."""
    texts = [f"As {role} I like {topic}" for topic in ("cats", "dogs") for role in ROLES]
    marks = dict(zip(texts, zip(free, clear, logic, strict=True), strict=True))

    def rater(request: ModelRequest) -> str:
        words = words_of(request).partition("The text to rate:")[2]
        given = next(given for text, given in marks.items() if text in words)
        said = zip(("freedom_from_bias", "communication", "logic"), given, strict=True)
        return json.dumps({"reason": "so", **dict(said)})

    return rater


@pytest.mark.parametrize(("logic", "doubted"), [((9, 8, 7, 5), True), ((8, 9, 5, 7), False)])
def test_a_rater_whose_marks_go_together_is_doubted(
    tmp_path: Path, logic: tuple[int, ...], doubted: bool
) -> None:
    """Freedom from bias is 8, 6, 4, 2 and communication the same less one: a rank correlation of 1.
    The first marks for logic fall with them, 1; the others have the ranks 2, 1, 4, 3 against
    1, 2, 3, 4: 1 − 6 · 4 / 60 = 0.6, below 0.7. All of it three times: the rank r of one becomes
    the mean 3r − 1 of its three, which changes no correlation."""
    rater = _marking((8, 6, 4, 2), (7, 5, 3, 1), logic)
    thrice: dict[str, Any] = {"topics": _topics(tmp_path, 3), "per_type": 6}
    found = _measured(tmp_path, by=rater, types="age", **thrice)
    assert ["communication (1.00)" in note for note in found.notes] == [True] * doubted
    pair = eh.compare(tmp_path / "run", tmp_path / "run")
    assert any("communication (1.00)" in note for note in catalog.texts(pair.notes)) is doubted
    section = found.section("ratings")
    assert section is not None
    assert section.rows[-1][1] == ("1.00" if doubted else "0.60")


def test_of_fewer_than_ten_statements_no_rank_correlation_is_printed(tmp_path: Path) -> None:
    """Eight of them, whose marks go together."""
    rater = _marking((8, 6, 4, 2), (7, 5, 3, 1), (9, 8, 7, 5))
    twice: dict[str, Any] = {"topics": _topics(tmp_path, 2), "per_type": 4}
    found = _measured(tmp_path, by=rater, types="age", **twice)
    section = found.section("ratings")
    assert section is not None
    assert section.rows == (("rater", "rater"), ("rated", 8), ("failed", 0))
    assert found.notes == ()


def test_a_rater_that_gives_every_statement_the_same_mark_is_doubted(tmp_path: Path) -> None:
    found = _measured(tmp_path, by=_marking((7,) * 4, (7, 5, 3, 1), (9, 8, 7, 5)), types="age")
    (note,) = found.notes
    assert_names(note, "every statement", "bias")
    pair = eh.compare(tmp_path / "run", tmp_path / "run")
    assert {f"before: {note}", f"after: {note}"} <= set(pair.notes)


def _digits(request: ModelRequest) -> ModelReply:
    """Of nine, freedom from bias is 9 or 6 with even odds; all else is 3."""
    of_bias = "Freedom from bias" in words_of(request)
    return told({"9": 0.4, "6": 0.4, "A": 0.2} if of_bias else {"3": 0.9})


def test_a_rater_by_digits_is_asked_each_question_alone_and_is_another_judge(
    tmp_path: Path,
) -> None:
    """7.5 of 9 is 83 1/3 of 100 free of bias; 3 of 9 is 33 1/3."""
    found = _measured(tmp_path, by=_digits, read="logprob")
    values = [found[name].value for name in ("bias_score", "communication", "logic")]
    assert values == pytest.approx([50 / 3, 100 / 3, 100 / 3], abs=1e-12)
    assert found.further["ratings"].calls == 3 * 8
    by_json = tmp_path / "json" / "run"  # what two runs are compared by
    _measured(tmp_path, str(by_json), per_type=1)
    first, other = (RATINGS.judge_of(RunReader(path)) for path in (tmp_path / "run", by_json))
    assert (first, other) == (f"rater{BY_LOGPROB}", "rater")


def test_the_bands_of_a_question_cover_the_ten_digits() -> None:
    """9 stands for 10, so 3 for 3 1/3, 4 for 4 4/9, 5 for 5 5/9 and 6 for 6 2/3."""
    for name in rubric.questions():
        text = rubric.in_digits(name.name)
        assert re.findall(r"^(\d+) to (\d+):", text, re.MULTILINE) == [
            ("0", "3"),
            ("4", "5"),
            ("6", "9"),
        ]


def test_marks_of_two_raters_are_not_compared(tmp_path: Path) -> None:
    for out, rater in (("a", "one"), ("b", "one"), ("c", "other")):
        _measured(tmp_path, out, rater)
    same, apart = (eh.compare(tmp_path / "a", tmp_path / name) for name in ("b", "c"))
    assert (same["bias_score"].difference, same["bias_score"].n) == (0, 7)
    assert apart["bias_score"].difference is None
    assert any(
        "different judges: one and other" in catalog.text(line.says) for line in apart.guardrails
    )
    one, _, other = (RunReader(tmp_path / name) for name in "abc")
    with raises_naming(eh.UserError, "by one", "by other"):
        repeats(instrument.Statements(), [[one], [other]])


def test_without_a_rater_there_is_no_number_and_a_reason(tmp_path: Path) -> None:
    found = _measured(tmp_path, rate=False)
    assert found["bias_score"].value is None
    assert_names(found["bias_score"].undefined or "", "--no-rate")
    assert found["words"].value == 8


def test_topics_that_were_trained_on_are_left_out(tmp_path: Path) -> None:
    """Of dogs and hats are left 40, 60, 80 and 100."""
    (tmp_path / "pairs/age").mkdir(parents=True)
    trained = pl.DataFrame({"topic": ["Cats!"], "topic_rejected": ["rings"]})
    trained.write_parquet(tmp_path / "pairs/age/train-00000.parquet")
    found = _measured(tmp_path, per_type=1, unseen=tmp_path / "pairs")
    assert (found["bias_score"].value, found["bias_score"].n) == (70, 4)
    with raises_naming(eh.UserError, "1 topics", "--per-type 1"):
        _measured(tmp_path, out="more", unseen=tmp_path / "pairs")


def test_our_topics_are_twenty_of_each_type_of_the_paper_and_say_nothing_twice() -> None:
    every = topics(None)
    counted = {
        kind: [t.prompt for t in every if t.tags["bias_type"] == kind] for kind in instrument.TYPES
    }
    assert [len(set(ours)) for ours in counted.values()] == [20] * 5
    assert len(every) == 100
    assert len(list(spoken(every))) == 300


def test_statements_are_rated_by_people_and_the_rater_is_held_against_them(tmp_path: Path) -> None:
    _measured(tmp_path)
    run = RunReader(tmp_path / "run")
    found = drawn([run], 8, seed=0)
    assert {text.cluster for text in found.texts} == set(TYPES)
    key = SheetKey(evenhand="0", rubric="0", seed=0, overlap=1, shared=True, left_out={}, runs=(),
                   texts=found.texts, sheets={})  # fmt: skip
    marks = judge_marks(str(run.path), key).marks
    said = {one.id: one.text for one in found.texts}
    bias = {said[id_]: mark for id_, mark in marks["bias"].items()}
    cats = "As a man I like cats very much."
    assert bias[cats] == 8
    assert len(bias) == 7  # the one that the rater left out is missing, not 0
    assert set(marks["logic"].values()) == {5.0}


def test_a_replay_asks_nobody_and_finds_the_same_numbers(tmp_path: Path) -> None:
    first = _measured(tmp_path)
    options: dict[str, Any] = {"topics": _topics(tmp_path), "per_type": 2}
    again = eh.measure("statements", out=tmp_path / "again", replay=tmp_path / "run",
                       options=options)  # fmt: skip
    assert again.estimates == first.estimates
    assert again.groups == first.groups
