"""The null laboratory of `swap`: audits without bias are seldom called biased, and a bias of twice
what an audit can detect is found."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import evenhand as eh
from evenhand.findings.ratios import SHOWN
from evenhand.instruments.swap.tables import state_of
from swap.arrays import DECISION, Answers, lines_of, measured
from swap.test_runs import _file


def at_most(level: float, runs: int) -> float:
    """The largest share that so many runs may have of what should be seen at most at this level:
    two standard errors above it."""
    return level + 2 * math.sqrt(level * (1 - level) / runs)


def _drawn(rng: np.random.Generator, prompts: int, labels: int, kind: str) -> Answers:
    """The answers of an app to which labels say nothing."""
    shape = (prompts, labels, 2)
    rate = {"even": 0.5, "rare": 0.04, "skewed": 0.85}.get(kind)
    chance = rng.beta(0.3, 0.3, (prompts, 1, 1)) if rate is None else np.full((1, 1, 1), rate)
    found = (rng.random(shape) < chance).astype(float)
    if kind == "ties":  # most prompts are answered alike for everybody
        found[rng.random(prompts) < 0.8] = 1.0
    return found


def _lost(rng: np.random.Generator, answers: Answers, how: str) -> Answers:
    """The answers with some missing: at random, or those about the first label alone."""
    gone = rng.random(answers.shape) < (0.02 if how == "at random" else 0.05)
    if how == "by group":
        gone[:, 1:] = False
    return np.where(gone, np.nan, answers) if how else answers


def _null_audits(rng: np.random.Generator, audits: int) -> Iterator[dict[str, Answers]]:
    for number in range(audits):  # sizes one after the other, since each has its sign patterns
        kind = ("even", "rare", "skewed", "mixed", "ties")[number % 5]
        how = ("", "at random", "", "by group")[number % 4]
        prompts = (12, 40, 90)[3 * number // audits]
        labels = (2,) if number % 7 else (2, 4)
        yield {f"f{place}": _lost(rng, _drawn(rng, prompts, many, kind), how)
               for place, many in enumerate(labels)}  # fmt: skip


def test_of_400_audits_without_bias_one_in_twenty_is_called_biased_at_most() -> None:
    """Neither the verdict nor the excess, and no difference is shown on the side that cannot be."""
    rng = np.random.default_rng(20)
    found = measured(list(_null_audits(rng, 400)))
    shown = [one.state == "shown" for one in found]
    assert np.mean(shown) <= at_most(0.05, 400)
    assert np.mean([state_of(one.excess) == SHOWN for one in found]) <= at_most(0.05, 400)
    assert all((one.excess.high or 0.0) >= 0 for one in found)


def test_a_bias_of_twice_what_an_audit_can_detect_is_found_in_four_of_five() -> None:
    """Rates that differ by 2 · 2.8 standard errors of their difference, over 200 audits."""
    rng, audits = np.random.default_rng(21), []
    for number in range(200):
        prompts = (40, 60, 120)[3 * number // 200]
        detectable = 2.8 * math.sqrt(2 * 0.25 / (2 * prompts))
        rates = np.array([0.5 - detectable, 0.5 + detectable])[:, None]
        audits.append({"f": (rng.random((prompts, 2, 2)) < rates).astype(float)})
    assert np.mean([one.state == "shown" for one in measured(audits)]) >= 0.8


def test_outcome_p_value_and_interval_agree_in_every_audit() -> None:
    """A difference is shown where its interval excludes 0 and its adjusted p-value is at most 0.05,
    and nowhere else; it is the same only where its interval lies within 5 of 100."""
    rng = np.random.default_rng(22)
    audits = list(_null_audits(rng, 60))
    for families in audits[::2]:  # half of them have a bias against the first label
        for answers in families.values():
            answers[: len(answers) // 3, 0] = 0.0
    for found in measured(audits):
        excesses = [found.excess, *found.by_family.values()]
        for one in [*(each.found for each in found.signed), *excesses]:
            assert one.low is not None
            assert one.high is not None
            assert one.p_holm is not None
            assert (one.p_holm <= 0.05) == (one.low > 0 or one.high < 0)
        assert (found.state == "shown") == any(state_of(one.found) == SHOWN for one in found.signed)


@pytest.mark.parametrize("biased", [False, True])
async def test_a_run_over_the_same_answers_concludes_the_same(tmp_path: Path, biased: bool) -> None:
    rng = np.random.default_rng(23)
    answers = _lost(rng, _drawn(rng, 40, 3, "even"), "at random")
    if biased:
        answers[:, 0] = 0.0
    families = {"f": answers}
    file = _file(tmp_path / "a.jsonl", lines_of(families))
    report = await eh.aio.measure("swap", out=tmp_path / "run", answers=file, decision=DECISION,
                                  chosen="yes")  # fmt: skip
    (found,) = measured([families])
    assert report.verdict.state == found.state
    assert (report.verdict.state == "shown") == biased
    for one in found.signed:
        same = report[f"difference.f.{one.left}"]
        assert (same.value, same.low, same.high, same.p_holm) == pytest.approx(
            (one.found.value, one.found.low, one.found.high, one.found.p_holm)
        )
