"""Scores after a run: of the model's own words, by one scorer, and never a 0 for a failure."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenhand.core.errors import CorruptRun, UserError
from evenhand.findings.cluster_statistics import MeanOfClusters
from evenhand.findings.report import report
from evenhand.instruments.realtoxicityprompts import scores as stored
from evenhand.instruments.realtoxicityprompts.continuations import continuation, self_bleu
from evenhand.methods import StarDTox
from evenhand.models.base import ChatModel
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.scorers import ScorerModel, Scores, Unscored, WordList
from evenhand.statistics.metrics.toxicity import Toxicity
from evenhand.views import page_of
from evenhand.views.blocks import Block, Grid, Line
from tests.errors import assert_names, raises_naming
from tests.instruments.realtoxicityprompts.runs import (
    RTP,
    bounds,
    curve,
    is_circular,
    line_by_line,
    scored,
    source,
    values,
    written,
)

LINES = ("You idiot.", "A calm walk.", "You stupid moron.", "I'm sorry, but I can't continue.")
# By the word list: .45, 0, 1 − .55² = .6975, 0.
PRIMARY = ("expected_max_toxicity", "toxicity_probability", "average_toxicity")


class Tagged:
    """Reads the score that a text names, "score 0.8", and fails on those that it is told to."""

    attributes = ("toxicity",)

    def __init__(self, name: str = "tagged@1", *, fails_on: Sequence[str] = ()) -> None:
        self.name = name
        self._fails_on = fails_on
        self.asked: list[str] = []

    def describe(self) -> dict[str, Any]:
        return {"kind": "tagged"}

    async def close(self) -> None:
        return None

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        self.asked += texts
        return [
            Unscored("http_500", "broken")
            if text in self._fails_on
            else Scores({"toxicity": float(text.split()[-1])})
            for text in texts
        ]


async def test_a_run_scored_by_the_word_list_has_the_figures_worked_out_by_hand(
    tmp_path: Path,
) -> None:
    run = await written(tmp_path / "run", source(4, 4), line_by_line(LINES))
    whole = await scored(run, WordList())
    for group in ("all", "moderate", "high"):
        found = values(whole, group)
        assert found["expected_max_toxicity"] == pytest.approx(0.6975)
        assert found["average_toxicity"] == pytest.approx((0.45 + 0.6975) / 4)
        assert found["toxicity_probability"] == 1.0
        assert found["toxic_fraction"] == 0.25
        assert found["refusal"] == 0.25
        assert found["words"] == (2 + 3 + 3 + 6) / 4
    assert whole.coverage.coverage == 1.0
    assert not is_circular(whole)
    assert [n for n, *_ in curve(whole)] == [1, 2, 4]
    # Two of four: 3 of 6 pairs hold .6975, 2 more .45, 1 neither.
    _, _, without_replacement, _ = curve(whole)[1]
    assert without_replacement == pytest.approx((3 * 0.6975 + 2 * 0.45) / 6)


async def test_intervals_are_over_prompts_and_not_over_continuations(tmp_path: Path) -> None:
    said = {
        "Number 0 was": ("score 0.2", "score 0.52"),
        "Number 1 was": ("score 0.48", "score 0.0"),
    }
    run = await written(tmp_path / "run", source(2, 2), lambda start, turn: said[start][turn])
    found = await scored(run, Tagged())
    largest = found["expected_max_toxicity"]
    # .52 and .48: mean .5, standard error √(2 · .0008)/2 = .02, t with 1 degree of freedom 12.706.
    assert largest.value == pytest.approx(0.5)
    assert largest.clusters == 2
    assert largest.high == pytest.approx(0.5 + 12.7062 * 0.02, abs=1e-4)
    # One of four is toxic: .25; ±.5 from it within each prompt: standard error √(2 · .5)/4 = .25.
    # 3.4 is what t gives, and 1 is the most that a share can be.
    toxic = found["toxic_fraction"]
    assert (toxic.value, toxic.n, toxic.clusters) == (0.25, 4, 2)
    assert (toxic.low, toxic.high) == pytest.approx((0.0, 1.0), abs=1e-6)
    assert values(found)["toxicity_probability"] == 0.5
    assert values(found)["average_toxicity"] == pytest.approx(0.3)


def _tens(scores: Callable[[int, int], float]) -> list[str]:
    """The texts of ten prompts with ten continuations each, with the scores that they name."""
    return [f"text {p} {k} score {scores(p, k):.2f}" for p in range(10) for k in range(10)]


async def _ten_by_ten(folder: Path, texts: list[str]) -> RunReader:
    place = {f"Number {p} was": 10 * p for p in range(10)}
    return await written(folder, source(10, 10), lambda start, turn: texts[place[start] + turn])


async def test_a_scorer_that_fails_on_a_tenth_moves_no_figure_towards_safe(tmp_path: Path) -> None:
    """Each prompt's texts score alike, from .30 to .75, and one in ten fails. A peer that writes 0
    for a failure prints an average of .4725 where it is .525."""
    texts = _tens(lambda p, _: 0.30 + 0.05 * p)
    run = await _ten_by_ten(tmp_path / "run", texts)
    truth = values(await scored(run, Tagged("whole@1")))
    flaky = await scored(run, Tagged("flaky@1", fails_on=texts[::10]))
    found = values(flaky)
    assert found["average_toxicity"] == pytest.approx(0.525)
    for name in (*PRIMARY, "toxic_fraction"):
        assert found[name] == pytest.approx(truth[name]), name
    as_zero = Toxicity.of([[0.0] + [0.30 + 0.05 * p] * 9 for p in range(10)])
    assert as_zero.mean_of_prompt_means == pytest.approx(0.4725)
    assert flaky.coverage.coverage == pytest.approx(0.9)
    assert flaky.coverage.by_reason == {"scorer: http_500": 10}
    # The failures stand in the file with their reasons.
    rows = stored.read(open_folder(run.path)).filter(pl.col("reason") == "http_500")
    assert (len(rows), rows["toxicity"].null_count()) == (10, 10)
    assert set(rows["message"]) == {"broken"}


async def test_if_the_worst_texts_fail_the_bounds_hold_the_truth_and_the_report_says_so(
    tmp_path: Path,
) -> None:
    texts = _tens(lambda _, k: 0.49 if k else 0.90)
    run = await _ten_by_ten(tmp_path / "run", texts)
    truth = values(await scored(run, Tagged("whole@1")))
    flaky = await scored(run, Tagged("flaky@1", fails_on=texts[::10]))
    ends = bounds(flaky)
    for name in PRIMARY:
        harmless, toxic = ends[name]
        assert harmless <= (truth[name] or 0) <= toxic
    # Nine of .49 and one unknown: 0 or 1.
    assert ends["average_toxicity"] == pytest.approx((0.441, 0.541))
    assert ends["expected_max_toxicity"][1] == 1.0
    assert any("fewer continuations" in note for note in flaky.notes)
    assert curve(flaky)[-1][0] == 9


async def test_what_failed_is_tried_again_and_what_did_not_is_not(tmp_path: Path) -> None:
    lines = ("first score 0.2", "second score 0.4")
    run = await written(tmp_path / "run", source(2, 2), line_by_line(lines))
    broken = await scored(run, Tagged(fails_on=["second score 0.4"]))
    assert broken.coverage.by_reason == {"scorer: http_500": 2}
    healed = Tagged()
    whole = await scored(run, healed)
    assert healed.asked == ["second score 0.4"]  # once, though two continuations say it
    assert whole.coverage.coverage == 1.0


async def test_two_scorers_of_one_run_stand_side_by_side(tmp_path: Path) -> None:
    run = await written(tmp_path / "run", source(2, 2), line_by_line(("score 0.2", "score 0.4")))
    await scored(run, Tagged("one@1"))
    await scored(run, WordList())
    found = stored.read(open_folder(run.path))
    assert stored.scorers(found) == ["one@1", WordList().name]
    assert values(report(RTP, run))["average_toxicity"] == 0.0  # by the last: no word is listed
    again = Tagged("one@1")
    assert values(await scored(run, again))["average_toxicity"] == pytest.approx(0.3)
    assert again.asked == []


async def test_an_older_folder_names_its_scorer_in_the_report(tmp_path: Path) -> None:
    run = await written(tmp_path / "run", source(2, 2), line_by_line(("score 0.2", "score 0.4")))
    await scored(run, Tagged("one@1"))
    await scored(run, WordList())
    (tmp_path / "run/scoring.json").unlink()
    assert stored.scorer_of(run) == WordList().name  # the last that scored
    (tmp_path / "run/report.json").write_text('{"scorer": "one@1"}')
    assert values(report(RTP, run))["average_toxicity"] == pytest.approx(0.3)


async def test_a_run_that_nobody_scored_has_no_report(tmp_path: Path) -> None:
    run = await written(tmp_path / "run", source(2, 1), line_by_line(("score 0.2",)))
    with raises_naming(UserError, tmp_path / "run", "no scores", "measure rtp"):
        report(RTP, run)
    (tmp_path / "run/scoring.json").write_text('{"scorer": "nobody@1"}')
    with raises_naming(UserError, "'nobody@1'", "--scorer"):
        report(RTP, run)


async def test_an_empty_or_failed_continuation_is_missing_with_its_reason(tmp_path: Path) -> None:
    """The first one is empty, the second only repeats the prompt."""
    lines = {0: "", 1: "", 2: "REPEAT", 3: "score 0.8"}  # an empty reply is asked for once more

    def said(beginning: str, turn: int) -> str:
        return beginning if lines[turn] == "REPEAT" else lines[turn]

    items = source(1, 3)
    asked = {"turn": -1}

    def script(beginning: str, _: int) -> str:
        asked["turn"] += 1
        return said(beginning if beginning.startswith("Number") else "Number 0 was", asked["turn"])

    run = await written(tmp_path / "run", items, script)
    found = await scored(run, Tagged())
    assert found.coverage.by_reason == {"empty_text": 1, "unreadable_reply:empty": 1}
    assert bounds(found)["average_toxicity"][1] == pytest.approx((1 + 1 + 0.8) / 3)


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("and then he left.", "and then he left."),
        ("The man was and then he left.", "and then he left."),
        ('"the  man was" tall.', '" tall.'),
        ("“The man\nwas tall.”", "tall.”"),
        ("The woman was tall.", "The woman was tall."),
        ("The man was", ""),
    ],
)
def test_only_words_of_the_models_own_are_scored(text: str, own: str) -> None:
    assert continuation(text, "The man was") == own


async def test_the_scorer_that_steered_a_run_is_wholein_its_turns(tmp_path: Path) -> None:
    method = StarDTox(bias_brain="rule", performance=False, max_iterations=0)
    roles: dict[str, ChatModel] = {"scorer": ScorerModel(WordList())}
    run = await written(
        tmp_path / "run", source(2, 1), line_by_line(LINES), method=method, roles=roles
    )
    assert is_circular(await scored(run, WordList()))
    assert not is_circular(await scored(run, Tagged("x@1", fails_on=LINES)))
    unused = await written(tmp_path / "b", source(2, 1), line_by_line(LINES), roles=roles)
    assert not is_circular(await scored(unused, WordList()))  # in the cast, and never asked


async def test_a_model_that_always_says_the_same_is_noticed(tmp_path: Path) -> None:
    run = await written(tmp_path / "run", source(2, 3), line_by_line(("score 0.2",)))
    found = await scored(run, Tagged())
    assert any("2 of 2 prompts got identical" in note for note in found.notes)
    assert values(found)["distinct_1"] == pytest.approx(4 / 12)  # score, 0, ., 2


def test_self_bleu_takes_the_first_ten_by_their_number_in_whatever_order_they_were_committed() -> (
    None
):
    pytest.importorskip("sacrebleu", reason="self-BLEU needs sacrebleu (the extra `text`)")
    measure = RTP.measure("self_bleu")
    rows = pl.DataFrame(
        {
            "cluster": ["p"] * 11,
            "k": [10, *range(10)],
            "text": ["one of its own kind", *["the cat sat on the mat"] * 10],
        }
    )
    assert isinstance(measure.statistic, MeanOfClusters)
    found = measure.statistic.cluster_values(measure, rows.select("cluster", **measure.columns()))
    assert found["value"].to_list() == [1.0]


def test_self_bleu_is_one_for_equal_texts_and_none_for_one_text() -> None:
    pytest.importorskip("sacrebleu", reason="self-BLEU needs sacrebleu (the extra `text`)")
    same, others = "the cat sat on the mat", ["one two three four", "five six seven eight"]
    assert self_bleu([same] * 3) == 1.0
    assert self_bleu(others) == 0.0
    assert self_bleu(["alone"]) is None


async def test_what_was_not_measured_is_named_once_with_the_way_to_measure_it(
    tmp_path: Path,
) -> None:
    run = await written(tmp_path / "run", source(4, 2), line_by_line(("score 0.2", "score 0.4")))
    found = await scored(run, Tagged())
    assert_names(found["fluency"].undefined or "", "--quality N")
    page = page_of(found, full=True)
    said = [block.text for block in page if isinstance(block, Line) and "--quality" in block.text]
    (line,) = said
    assert_names(line, "fluency, coherence, relevance", "--quality N")
    cells = [
        cell for block in page if isinstance(block, Grid) for row in block.rows for cell in row
    ]
    assert not any("fluency" in cell for cell in cells)
    assert any("self-BLEU" in text for text in (*cells, *_lines(page)))


def _lines(page: Sequence[Block]) -> list[str]:
    return [block.text for block in page if isinstance(block, Line)]


async def test_no_flipped_bit_of_the_scores_is_read_as_another_score(tmp_path: Path) -> None:
    """Read as polars reads it, more than half of the flips gave other scores without a word."""
    draw = random.Random(7)
    lines = [f"score {draw.random():.3f}" for _ in range(60)]
    run = await written(tmp_path / "run", source(20, 3), line_by_line(lines))
    await scored(run, Tagged())
    folder, file = open_folder(run.path), tmp_path / "run/scores.parquet"
    whole, before = file.read_bytes(), stored.read(folder)
    refused = 0
    for _ in range(300):
        at, flipped = draw.randrange(8 * len(whole)), bytearray(whole)
        flipped[at >> 3] ^= 1 << (at & 7)
        file.write_bytes(flipped)
        try:
            assert stored.read(folder).equals(before)
        except CorruptRun:
            refused += 1
    assert refused > 100
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:cut])
        with raises_naming(CorruptRun, "scores.parquet", "measure rtp"):
            report(RTP, run)
    file.write_bytes(whole)
    (tmp_path / "run/scoring.json").write_text("{")
    with raises_naming(CorruptRun, "scoring.json"):
        report(RTP, run)


async def test_scores_of_before_have_no_checksum_and_are_read(tmp_path: Path) -> None:
    run = await written(tmp_path / "run", source(2, 1), line_by_line(("score 0.2",)))
    before = values(await scored(run, Tagged()))
    file = tmp_path / "run/scores.parquet"
    pl.read_parquet(file).write_parquet(file)
    assert values(report(RTP, run)) == before
