"""Two runs prompt by prompt: a run must not look safer for having failed more."""

from pathlib import Path
from typing import Any

import pytest

from evenhand.core.errors import UserError
from evenhand.core.prices import Price, Prices
from evenhand.findings.comparison import compare
from evenhand.findings.estimates import Bounds, Change
from evenhand.findings.report import report
from evenhand.instruments.realtoxicityprompts import words
from evenhand.runs.store import RunReader
from evenhand.views import catalog
from tests.coded import coded
from tests.errors import raises_naming
from tests.instruments.realtoxicityprompts.runs import (
    RTP,
    judged,
    line_by_line,
    scored,
    source,
    values,
    written,
)
from tests.instruments.realtoxicityprompts.test_scoring import Tagged


async def test_only_continuations_with_a_score_in_both_runs_are_compared(tmp_path: Path) -> None:
    """The second run's worst text has no score: by itself the run looks safer by .8."""
    scorer = Tagged(fails_on=["c score 0.90"])
    before = await written(
        tmp_path / "a", source(4, 2), line_by_line(("a score 0.90", "b score 0.10"))
    )
    after = await written(
        tmp_path / "b", source(4, 2), line_by_line(("c score 0.90", "d score 0.10"))
    )
    alone = [values(await scored(run, scorer))["expected_max_toxicity"] for run in (before, after)]
    assert alone == [pytest.approx(0.9), pytest.approx(0.1)]
    found = compare(RTP, before, after)
    assert found["expected_max_toxicity"].difference == pytest.approx(0.0)
    assert found["average_toxicity"].before == pytest.approx(0.1)
    missing = next(line for line in found.guardrails if line.name == "missing")
    lost = coded(missing.says, "guardrail.missing")
    assert missing.state == "inconclusive"
    assert lost["after"] / lost["n"] - lost["before"] / lost["n_before"] == 0.5


async def test_a_change_has_an_interval_over_prompts_and_each_bucket_its_own(
    tmp_path: Path,
) -> None:
    def worse(beginning: str, turn: int) -> str:
        return f"score {0.2 + (0.3 if beginning == 'Number 1 was' else 0.1) * turn:.1f}"

    before = await written(tmp_path / "a", source(2, 2), line_by_line(("score 0.2",)))
    after = await written(tmp_path / "b", source(2, 2), worse)
    for run in (before, after):
        await scored(run, Tagged())
    found = compare(RTP, before, after)
    largest = found["expected_max_toxicity"]
    # Number 0: .2 → .3, number 1: .2 → .5. Mean .2, standard error √(2 · .02)/2 = .1.
    assert largest.difference == pytest.approx(0.2)
    assert largest.se == pytest.approx(0.1)
    # Gaffke: weights of .1, .3 and the most that a maximum can rise by, 1, are spacings of two
    # uniform numbers, and their mean exceeds c > .3 with probability (1 − c)² / (.9 · .7).
    assert largest.high == pytest.approx(1 - (0.025 * 0.9 * 0.7) ** 0.5, abs=1e-4)
    (high, *_) = found.groups["bucket"]["high"]
    assert high.undefined is not None  # one prompt: no interval, no number
    assert found.notes == ()


async def test_runs_with_other_prompts_are_not_compared(tmp_path: Path) -> None:
    runs = [
        await written(tmp_path / str(n), source(n, 1), line_by_line(("score 0.2",))) for n in (2, 4)
    ]
    with raises_naming(UserError, "samples", "prompts"):
        compare(RTP, *runs)


@pytest.mark.parametrize(
    ("length", "state"),
    [
        (10, "inconclusive"),  # the same in all of 8 prompts, and a text may have any length
        (11, "inconclusive"),  # 10 % more
        (13, "violated"),  # 30 % more, in every one of 8 prompts
        (7, "violated"),
    ],
)
async def test_length_may_change_by_a_fifth_either_way(
    tmp_path: Path, length: int, state: str
) -> None:
    runs = [
        await written(tmp_path / name, source(8, 1), line_by_line((_of_length(n),)))
        for name, n in (("a", 10), ("b", length))
    ]
    for run in runs:
        await scored(run, Tagged())
    lines = compare(RTP, *runs).guardrails
    assert [line.state for line in lines if line.name == "length"] == [state]


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({"difference": 0.5, "low": -1.0, "high": 1.9}, "non_inferior"),  # of 10 words: up to 19 %
        (
            {"difference": 0.5, "low": -1.0, "high": 1.9, "bounds": Bounds(missing=1)},
            "inconclusive",
        ),
        ({"difference": 0.5, "low": -1.0, "high": 2.1}, "inconclusive"),
        ({"difference": 3.0, "low": 2.1, "high": 4.0, "bounds": Bounds(missing=1)}, "violated"),
        ({"difference": 0.0}, "inconclusive"),  # no interval: the same in all prompts
        (
            {"difference": None, "undefined": "no rows: 0/0"},
            "inconclusive",
        ),  # every text is missing
    ],
)
def test_a_length_is_non_inferior_only_if_no_text_is_missing(
    change: dict[str, Any], state: str
) -> None:
    found = words.length(Change(name="words", before=10.0, after=0.0, p=0.01, **change))
    assert found.state == state


async def test_marks_that_the_judge_failed_to_give_are_missing(tmp_path: Path) -> None:
    """Of 8 texts the judge was to mark the first of each of 4 prompts, and failed at one."""
    before, after = await _judged_runs(tmp_path, ("critic", 90), ("critic", 90), fails=("", "1"))
    found = report(RTP, after)
    assert found["fluency"].n == 3
    assert found["fluency"].bounds == Bounds(missing=1, low=67.5, high=92.5)  # 270 or 370 of 4
    assert found.coverage.coverage == 1.0
    (fluency,) = (one for name, one in found.coverage_by.items() if name.startswith("fluency"))
    assert fluency.coverage == 0.75
    compared = compare(RTP, before, after)
    assert compared["fluency"].bounds is not None
    assert compared["fluency"].bounds.missing == 1
    line = next(line for line in compared.guardrails if line.name == "missing")
    assert line.state == "inconclusive"
    lost = coded(line.says, "guardrail.missing")
    assert lost["of"].endswith("(judge, 0 to 100)")
    assert (lost["before"], lost["after"], lost["n"]) == (0, 1, 4)


async def test_a_length_that_changed_in_some_prompts_only_is_inconclusive(tmp_path: Path) -> None:
    """Of 8 prompts one triples: 25 % more on average, and an interval from −34 % to 84 %."""

    def one_long(beginning: str, turn: int) -> str:
        return _of_length(30 if beginning == "Number 0 was" else 10)

    before = await written(tmp_path / "a", source(8, 1), line_by_line((_of_length(10),)))
    after = await written(tmp_path / "b", source(8, 1), one_long)
    for run in (before, after):
        await scored(run, Tagged())
    lines = compare(RTP, before, after).guardrails
    assert [line.state for line in lines if line.name == "length"] == ["inconclusive"]


def _of_length(words: int) -> str:
    return " ".join(["word"] * (words - 2) + ["score", "0.2"])


async def test_without_a_judge_quality_is_one_open_line_and_no_number(tmp_path: Path) -> None:
    runs = [
        await written(tmp_path / n, source(4, 1), line_by_line(("score 0.2",))) for n in ("a", "b")
    ]
    for run in runs:
        await scored(run, Tagged())
    found = compare(RTP, *runs)
    said = [line for line in found.guardrails if "--quality N" in catalog.text(line.says)]
    assert [line.state for line in said] == ["inconclusive"]
    assert found["fluency"].difference is None


async def _judged_runs(
    tmp_path: Path, *marks: tuple[str, int], fails: tuple[str, ...] = ("", "")
) -> list[RunReader]:
    runs = []
    for number, ((judge, mark), failing) in enumerate(zip(marks, fails, strict=False)):
        lines = line_by_line(("score 0.2", "score 0.4"))
        run = await written(tmp_path / f"{number}", source(4, 2), lines)
        await scored(run, Tagged())
        await judged(run, judge, mark, fails_on=failing and f"Number {failing} was")
        runs.append(run)
    return runs


async def test_quality_is_compared_on_the_texts_that_one_judge_judged(tmp_path: Path) -> None:
    found = compare(RTP, *await _judged_runs(tmp_path, ("critic", 90), ("critic", 60)))
    fluency = found["fluency"]
    assert (fluency.before, fluency.after, fluency.n, fluency.clusters) == (90, 60, 4, 4)
    assert not any("judge" in line.name for line in found.guardrails)


async def test_the_marks_of_two_judges_are_not_compared(tmp_path: Path) -> None:
    found = compare(RTP, *await _judged_runs(tmp_path, ("critic", 90), ("other", 60)))
    assert found["fluency"].difference is None
    (line,) = (one for one in found.guardrails 
               if "different judges: critic and other" in catalog.text(one.says))  # fmt: skip
    assert line.state == "inconclusive"


async def test_what_the_judge_cost_is_said_beside_what_the_texts_cost(tmp_path: Path) -> None:
    (run,) = await _judged_runs(tmp_path, ("critic", 90))
    free, dear = (
        Price(per_million_prompt_tokens=p, per_million_completion_tokens=p) for p in (0, 1)
    )
    found = report(RTP, run, Prices({"scripted": free, "critic": dear}))
    assert found.money.cost == 0.0
    judge = found.further["quality"]
    assert judge.calls == 4  # one text of each of four prompts
    assert (judge.money.cost or 0.0) > 0.0
