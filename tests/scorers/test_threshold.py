"""The threshold of a scorer is fitted on half of the labeled texts and shown on the other half."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import evenhand as eh
from evenhand.core.errors import UserError
from evenhand.findings.fitted_threshold import FittedThreshold, fit_threshold
from evenhand.statistics.screening import seldom_exceeded
from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names, raises_naming

__all__ = ["endpoint", "evenhand"]  # the fixtures
NAMES = ("Ana", "Bo", "Cy", "Di", "Ed", "Flo", "Gus", "Hal", "Ida", "Jo")
PLACES = ("shop", "harbor", "school", "market", "station", "garden", "museum", "library")
ACTS = ("reads a long book", "paints a wooden chair", "waits for the late bus", "sings two songs")


def _fitted(
    benign: list[float | None], harmful: list[float | None], **more: float
) -> FittedThreshold:
    texts = [f"text {number}" for number in range(len(benign) + len(harmful))]
    labels = [False] * len(benign) + [True] * len(harmful)
    return fit_threshold(
        texts, [*benign, *harmful], labels, scorer="s", attribute="toxicity", **more
    )


def test_the_score_that_few_exceed_is_an_order_statistic_worked_by_hand() -> None:
    # of 59 texts the largest, as 0.95^59 is 4.9%; of 58 none; of 93 the second largest
    assert seldom_exceeded(range(59), 0.05) == 58
    assert seldom_exceeded(range(58), 0.05) == math.inf
    assert seldom_exceeded(range(92), 0.05) == 91
    assert seldom_exceeded(range(93), 0.05) == 91


def test_a_text_without_a_score_exceeds_all_others() -> None:
    scores = [*range(92), math.nan]
    assert seldom_exceeded(scores, 0.05) == 91
    assert seldom_exceeded([*range(58), math.nan], 0.05) == math.inf


@pytest.mark.parametrize("seed", range(3))
def test_the_promised_rate_is_exceeded_in_at_most_one_fit_of_twenty(seed: int) -> None:
    """The true rate of a uniform score above t is 1 − t."""
    rng = np.random.default_rng(seed)
    too_high = [1 - seldom_exceeded(rng.random(200), 0.05) > 0.05 for _ in range(400)]
    assert np.mean(too_high) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_a_scorer_that_tells_has_its_error_rates_on_texts_that_did_not_set_the_threshold() -> None:
    rng = np.random.default_rng(0)
    found = _fitted([*rng.uniform(0, 0.5, 400)], [*rng.uniform(0.4, 1.0, 400)])
    assert found.threshold is not None
    assert 0.45 < found.threshold < 0.5
    assert found.false_positives is not None
    assert found.false_negatives is not None
    assert found.false_positives.n + found.fitted_benign == 400
    assert found.false_positives.estimate < 0.05
    assert found.false_negatives.estimate == pytest.approx((found.threshold - 0.4) / 0.6, abs=0.06)
    assert found.holds


def test_the_threshold_itself_is_not_reached_by_the_score_that_set_it() -> None:
    found = _fitted([0.25] * 300, [0.9] * 300)
    assert found.threshold == 0.2501
    assert found.false_positives is not None
    assert found.false_positives.events == 0


def test_a_missing_score_is_a_false_positive_and_a_false_negative() -> None:
    found = _fitted([0.1] * 400, [None] * 400)
    assert found.false_negatives is not None
    assert found.false_negatives.estimate == 1.0
    assert _fitted([None] * 400, [0.9] * 400).threshold is None


def test_too_few_benign_texts_give_no_threshold_and_say_how_many_are_needed() -> None:
    found = _fitted([0.1] * 60, [0.9] * 60)
    assert found.threshold is None
    assert found.needed_benign == 59
    assert not found.holds
    with raises_naming(UserError, "held out"):
        _fitted([0.1] * 3, [0.9])


def _labeled(folder: Path) -> Path:
    rows = [
        {"text": f"{name} at the {place} {act}.", "harm": "no"}
        for name in NAMES for place in PLACES for act in ACTS
    ]  # fmt: skip
    rows += [{"text": f"{row['text'][:-1]}, you worthless idiot.", "harm": "yes"} for row in rows]
    file = folder / "labeled.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_command_and_function_fit_the_same_threshold(evenhand: Run, tmp_path: Path) -> None:
    file = _labeled(tmp_path)
    options = ("--scorer", "wordlist", "--max-fpr", "0.3")
    ran = evenhand("scorers", "threshold", str(file), *options, "--json")
    printed = json.loads(ran.stdout)
    found = eh.scorers_threshold(file, scorer="wordlist", max_fpr=0.3)
    assert printed["threshold"] == found.threshold
    assert ran.returncode == (0 if found.holds else 2)
    page = evenhand("scorers", "threshold", str(file), *options)
    if found.threshold is not None:
        assert_names(page.stdout, f"harm_below={found.threshold:g}")
