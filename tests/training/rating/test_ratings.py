"""Agreement, means and the check of a judge, on marks whose truth is known."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evenhand.training.rating import rubric, sheets
from evenhand.training.rating.findings import RatingReport, ratings
from evenhand.training.rating.judges import JudgeMarks
from evenhand.training.rating.texts import KeyRun, RatingText, SheetKey
from evenhand.views import html_of, save
from tests.errors import assert_names

RUNS = ("before", "after")
Given = list[int | None]  # by one rater, a mark per text


def _key(items: int, runs: int = 1, raters: int = 3) -> SheetKey:
    """Every item has a text of each run."""
    texts = tuple(
        RatingText(
            id=f"{n}{'ab'[place]}", task="Ask", text="…", cluster=str(n), uses=((place, str(n)),)
        )
        for n in range(items)
        for place in range(runs)
    )
    ids = tuple(text.id for text in texts)
    return SheetKey(
        evenhand="0", rubric=rubric.sha256(), seed=0, overlap=raters, shared=True, left_out={},
        runs=tuple(KeyRun(run=run, method={}, cast={}) for run in RUNS[:runs]), texts=texts,
        sheets={f"rater-{n}": ids for n in range(1, raters + 1)},
    )  # fmt: skip


def _rows(key: SheetKey, marks: list[Given]) -> pl.DataFrame:
    """One list per rater, one mark per text, the same for every question."""
    rows = [
        (rater, text.id, one.name, mark, None if mark is not None else sheets.EMPTY, "f", 2)
        for rater, given in zip(key.sheets, marks, strict=False)
        for text, mark in zip(key.texts, given, strict=True)
        for one in rubric.questions()
    ]
    return pl.DataFrame(rows, schema=sheets.SCHEMA, orient="row")


def _near(truth: np.ndarray, noise: float, seed: int, raters: int = 3) -> list[Given]:
    """Raters who see the truth with noise of their own."""
    rng = np.random.default_rng(seed)
    seen = truth + rng.normal(0, noise, (raters, truth.size))
    return [[int(mark) for mark in row] for row in np.clip(np.rint(seen), 0, 10)]


def _found(items: int, noise: float, seed: int = 0) -> RatingReport:
    truth = np.random.default_rng(99 + seed).integers(0, 11, items).astype(float)
    key = _key(items)
    return ratings(key, _rows(key, _near(truth, noise, seed)))


def test_raters_who_agree_are_shown_to_and_raters_who_guess_are_shown_not_to() -> None:
    assert _found(40, 0.5).verdict.state == "detected"
    assert _found(40, 50).verdict.state == "ruled_out"
    few = _found(14, 0.5)
    assert few.verdict.state == "inconclusive"
    assert_names(few["bias"].alpha.undefined or "", "open", 15)
    assert few["bias"].alpha.value is not None
    assert _found(15, 0.5)["bias"].alpha.has_interval


def test_the_interval_is_over_items_so_texts_of_one_item_do_not_narrow_it() -> None:
    """Each item twice over, with the same marks: every sum doubles and alpha nearly stays (its
    chance is over 2n − 1); drawn as 30 items of two texts each the interval does too, while 60
    items would have one some 1/√2 as wide."""
    truth = np.random.default_rng(1).integers(0, 11, 30).astype(float)
    marks = _near(truth, 2, 5)
    once, twice, apart = _key(30), _key(30, runs=2), _key(60)
    doubled = [[mark for mark in row for _ in range(2)] for row in marks]
    one = ratings(once, _rows(once, marks))["bias"].alpha
    two = ratings(twice, _rows(twice, doubled))["bias"].alpha
    far = ratings(apart, _rows(apart, doubled))["bias"].alpha
    assert (one.clusters, two.clusters, far.clusters) == (30, 30, 60)
    assert two.value == pytest.approx(one.value, abs=0.01)
    assert _width(two) == pytest.approx(_width(one), rel=0.05)
    assert _width(far) < 0.85 * _width(one)


def _width(one: object) -> float:
    return float(one.high - one.low)  # type: ignore[attr-defined]


def test_a_missing_mark_is_no_zero_and_the_mean_says_what_it_could_change() -> None:
    """Texts 8 8, 4 –, 6 6: the mean is (8 + 4 + 6)/3 = 6; with 0 or 10 for the empty mark the text
    has 2 or 7, and the mean is 16/3 or 7."""
    key = _key(3, raters=2)
    found = ratings(key, _rows(key, [[8, 4, 6], [8, None, 6]]), ["rater-3"])
    (mean,) = found["bias"].means
    assert mean.value == pytest.approx(6)
    assert mean.bounds is not None
    assert mean.bounds.missing == 1
    assert mean.bounds.high == pytest.approx(7)
    assert mean.bounds.low == pytest.approx(16 / 3)
    (percent,) = found["bias"].bias_percent
    assert percent.value == pytest.approx(40)
    assert percent.bounds is not None
    assert percent.bounds.low == pytest.approx(30)
    assert found.coverage.by_reason == {"left empty": 3}  # one of each question
    assert found.coverage.below_floor
    # Fleiss' kappa is over the two texts with both marks, alpha over the pairs that there are.
    assert [e.n for e in found["bias"].agreement] == [2, 2, 2]


def test_the_change_of_a_run_is_item_by_item_and_a_text_of_both_runs_changes_nothing() -> None:
    """Item 0: 5 to 7; item 1: the same words in both runs; so +2 and 0, +1 on average."""
    key = _key(2, runs=2, raters=1)
    shared = RatingText(id="s", task="Ask", text="…", cluster="1", uses=((0, "1"), (1, "1")))
    key = key.model_copy(update={"texts": (*key.texts[:2], shared)})
    found = ratings(key, _rows(key, [[5, 7, 3]]))
    (change,) = found["logic"].changes
    assert (change.name, change.value, change.n) == ("after", 1, 2)
    assert [mean.value for mean in found["logic"].means] == [4, 5]
    assert_names(found["logic"].alpha.undefined or "", "two ratings")
    apart = key.model_copy(update={"shared": False})
    assert ratings(apart, _rows(key, [[5, 7, 3]]))["logic"].changes == ()


@pytest.mark.parametrize(
    ("judge", "state"),
    [("one of them", "pass"), ("turned around", "fail"), ("one of them, 3 missing", "inconclusive"),
     ("a coin", "fail")],
)  # fmt: skip
def test_a_judge_passes_if_it_agrees_with_people_about_as_they_do_with_each_other(
    judge: str, state: str
) -> None:
    truth = np.random.default_rng(3).integers(0, 11, 50).astype(float)
    key, marks = _key(50), _near(truth, 1.5, 4)
    own = _near(truth, 1.5, 8, raters=1)[0]
    judges: dict[str, Given] = {
        "one of them": own,
        "one of them, 3 missing": [None, None, None, *own[3:]],
        "turned around": _near(10 - truth, 1.5, 8, raters=1)[0],
        "a coin": [int(m) for m in np.random.default_rng(1).integers(0, 11, 50)],
    }
    said = judges[judge]
    given = {t.id: float(m) for t, m in zip(key.texts, said, strict=True) if m is not None}
    rows = _rows(key, marks)
    found = ratings(key, rows, judge=JudgeMarks(name="j", marks={"bias": given}))
    (judged,) = found.judge
    assert judged.check.state == state, judged.check.says
    assert judged.scored == len(given)


def test_the_numbers_of_a_judge_are_those_worked_by_hand() -> None:
    """Raters 8 2 8 2 and 8 2 2 8, kappa 0; the judge is the first rater: kappa 1 with the one and
    0 with the other, 1/2 on average, so 1/2 ahead. The mean of people is 8 2 5 5: the judge is 0,
    0, +3 and −3 above it, 0 on average; squares 18/4 over 9 + 4.5, kappa with the mean 2/3."""
    key = _key(4, raters=2)
    first: Given = [8, 2, 8, 2]
    judge = JudgeMarks(name="j", marks={"bias": {"0a": 8.0, "1a": 2.0, "2a": 8.0, "3a": 2.0}})
    (judged,) = ratings(key, _rows(key, [first, [8, 2, 2, 8]]), judge=judge).judge
    values = [one.value for one in judged.estimates]
    assert values == pytest.approx([2 / 3, 0.5, 0, 0.5, 0])
    assert (judged.check.state, judged.check.margin) == ("inconclusive", 0.1)
    alone = ratings(key, _rows(key, [first]), judge=judge).judge[0]
    assert alone.check.state == "not_measured"


def test_the_report_can_be_saved_in_every_form(tmp_path: Path) -> None:
    key = _key(4, runs=2)
    found = ratings(key, _rows(key, [[1, 2, 3, 4, 5, 6, 7, 8]] * 3), ["rater-4"])
    for ending in (".json", ".parquet", ".csv", ".md", ".html"):
        save(found, str(tmp_path / f"r{ending}"))
    table = pl.read_parquet(tmp_path / "r.parquet")
    assert set(table["kind"]) == {"agreement", "pairs", "means", "bias_percent", "changes"}
    assert len(table) == len(found.frame())
    page = html_of(found)
    assert_names(page, "rater-4")


def _perfect(key: SheetKey, truth: np.ndarray) -> JudgeMarks:
    marks = {text.id: float(mark) for text, mark in zip(key.texts, truth, strict=True)}
    return JudgeMarks(name="judge", marks={rubric.BIAS: marks})


def test_no_judge_is_shown_to_agree_with_people_who_left_half_of_their_marks_out() -> None:
    truth = np.random.default_rng(5).integers(0, 11, 60).astype(float)
    key = _key(60)
    whole = [list(row) for row in _near(truth, 0.5, 5)]
    assert ratings(key, _rows(key, whole), (), _perfect(key, truth)).judge[0].check.state == "pass"
    half: list[Given] = [[*row[:30], *[None] * 30] for row in whole]
    found = ratings(key, _rows(key, half), (), _perfect(key, truth))
    assert found.verdict.state == "inconclusive"
    assert found.judge[0].check.state == "inconclusive"
    assert_names(found.judge[0].check.says, "marks", "missing")


def test_items_that_nobody_could_rate_are_said_before_any_mean() -> None:
    key = _key(20).model_copy(update={"left_out": {"not answered": 1_200, "not run yet": 3}})
    truth = np.random.default_rng(6).integers(0, 11, 20).astype(float)
    found = ratings(key, _rows(key, _near(truth, 0.5, 6)))
    said = html_of(found)
    assert found.to_dict()["left_out"] == {"not answered": 1_200, "not run yet": 3}
    assert 0 < said.index("1,200 not answered") < said.index("mean, 0 to")
    assert_names(said, "3 not run")


def test_the_change_says_what_it_could_be_if_missing_marks_were_known() -> None:
    """Two items, two raters. The first run has 4, 4 and 6, –; the other 8, – and 6, 6. Means of
    texts: 4, 6 and 8, 6, so +4 and 0. A missing mark from 0 to 10 makes the first run's second text
    3 to 8 and the other's first 4 to 9: from (4 − 4 + 6 − 8)/2 = −1 to (9 − 4 + 6 − 3)/2 = 4."""
    key = _key(2, runs=2, raters=2)  # texts 0a 0b 1a 1b
    marks: list[Given] = [[4, 8, 6, 6], [4, None, None, 6]]
    [change] = ratings(key, _rows(key, marks))[rubric.BIAS].changes
    assert change.value == 2.0
    assert change.bounds is not None
    assert (change.bounds.missing, change.bounds.low, change.bounds.high) == (2, -1.0, 4.0)
    [change] = ratings(key, _rows(key, [[4, 8, 6, 6], [4, 8, 6, 6]]))[rubric.BIAS].changes
    assert change.bounds is None
