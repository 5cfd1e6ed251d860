"""Intervals of AUC, kappa, calibration error and Spearman, against resampling by hand."""

from collections.abc import Callable

import numpy as np
import pytest

from evenhand.statistics.metrics import scorer_intervals as ranges
from evenhand.statistics.metrics import scorer_quality as quality

RNG = np.random.default_rng(7)
TEMPLATES = np.repeat(np.arange(40), 5)
LABELS = (TEMPLATES % 2).astype(bool)  # a template is toxic or not, as in HateCheck
ALIKE = RNG.normal(0, 0.15, 40)[TEMPLATES]  # texts of one template score alike
SCORES = np.clip(0.5 + 0.1 * LABELS + ALIKE + RNG.normal(0, 0.05, 200), 0, 1).round(2)
OTHER = np.clip(SCORES + RNG.normal(0, 0.2, 200), 0, 1).round(1)


def _by_hand(figure: Callable[[np.ndarray], float]) -> tuple[float, float]:
    """Templates drawn again, their rows laid one after another, the plain formula on these."""
    rng = np.random.default_rng(1)
    rows = [np.flatnonzero(one == TEMPLATES) for one in range(40)]
    drawn = [np.concatenate([rows[one] for one in rng.integers(40, size=40)]) for _ in range(250)]
    low, high = np.quantile([figure(one) for one in drawn], [0.025, 0.975])
    return float(low), float(high)


def _ends(found: ranges.IntervalEnds | None) -> tuple[float, float]:
    assert found is not None
    return found.low, found.high


def _ece(rows: np.ndarray) -> float:
    return quality.calibration_error(quality.reliability(SCORES[rows], OTHER[rows]))


def test_intervals_are_those_of_copied_rows_resampled_by_hand() -> None:
    templates = TEMPLATES.tolist()
    auc = ranges.auc(SCORES, LABELS.tolist(), templates)
    by_hand = _by_hand(lambda rows: quality.auc(SCORES[rows], LABELS[rows].tolist()))
    assert _ends(auc) == pytest.approx(by_hand, abs=0.03)
    spearman = ranges.spearman(SCORES, OTHER, templates)
    by_hand = _by_hand(lambda rows: quality.spearman(SCORES[rows], OTHER[rows]))
    assert _ends(spearman) == pytest.approx(by_hand, abs=0.04)
    kappa = ranges.kappa_at(SCORES, OTHER, 0.5, templates)
    by_hand = _by_hand(lambda rows: quality.kappa_at(SCORES[rows], OTHER[rows], 0.5))
    assert _ends(kappa) == pytest.approx(by_hand, abs=0.05)  # BCa beside percentiles


def test_the_interval_of_a_calibration_error_reaches_below_noise_that_only_adds() -> None:
    """Every resample of scores that are right on average looks worse than they are."""
    everything = np.arange(200)
    found = ranges.calibration_error(SCORES, OTHER, TEMPLATES.tolist())
    assert found is not None
    assert _by_hand(_ece)[0] > _ece(everything) - 0.01  # percentiles alone would deny less
    assert found.low < _ece(everything) - 0.01
    assert found.high > _ece(everything)


def test_copies_of_texts_do_not_make_an_interval_shorter() -> None:
    once = ranges.auc(SCORES, LABELS.tolist(), TEMPLATES.tolist())
    thrice = (np.tile(one, 3) for one in (SCORES, LABELS, TEMPLATES))
    scores, labels, templates = thrice
    again = ranges.auc(scores, labels.tolist(), templates.tolist())
    assert _ends(once) == pytest.approx(_ends(again))


def test_few_templates_and_no_spread_have_no_interval() -> None:
    few = (TEMPLATES % 14).tolist()
    assert ranges.auc(SCORES, LABELS.tolist(), few) is None
    perfect = LABELS * 1.0
    assert quality.auc(perfect, LABELS.tolist()) == 1
    assert ranges.auc(perfect, LABELS.tolist(), TEMPLATES.tolist()) is None
