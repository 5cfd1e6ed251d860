"""The audit on judges whose bias is known: it finds what is there, and little else.

The whole of it, with intervals, is `make bench-judges`; here are as many draws as a check can wait
for.
"""

from collections import Counter

import numpy as np
import pytest

from bench.malibu_power import ARMS, DEFAULT, PERSONAS, Shape, first_slot, judged, scores, simulate
from bench.malibu_power import USUAL as NOISE
from bench.simulated import certificates
from evenhand.instruments.judge.data import MalibuData
from evenhand.instruments.judge.design import JudgeDesign, judgements
from evenhand.instruments.judge.effects import primary
from evenhand.statistics.metrics import malibu


def test_the_simulated_design_is_the_default_one() -> None:
    data = MalibuData()
    asked = judgements(data.scenarios(), data.labels(), JudgeDesign())
    assert DEFAULT.calls == len(asked)
    assert DEFAULT.calls <= 2_000
    single = Counter((one.labels[0], str(one.texts[0])) for one in asked if len(one.labels) == 1)
    assert Counter(DEFAULT.keys().select("label", "text").iter_rows()) == single
    pair = Counter(one.labels for one in asked if len(one.labels) == 2)
    assert Counter(DEFAULT.pair_keys().select("first", "second").iter_rows()) == pair


@pytest.mark.slow
def test_without_an_effect_few_audits_find_one_and_with_a_quarter_point_most_do() -> None:
    null = simulate(draws=200, seed=1).any_label
    assert null.low <= 0.05  # 200 draws cannot bound it from above: the bench does
    assert null.estimate <= 0.08
    found = simulate(draws=100, seed=2, effect=0.25)
    assert found.planted.estimate >= 0.8
    assert found.estimate == pytest.approx(0.25, abs=0.02)


@pytest.mark.slow
def test_four_judges_in_one_chat_deceive_chi_square_and_not_the_audit() -> None:
    found = simulate(draws=40, seed=5, shape=Shape(judges=PERSONAS), chi2=True)
    assert found.any_label.estimate <= 0.15
    assert found.chi2_each is not None
    assert found.chi2_each.low > 0.3  # at a nominal level of 0.05


def test_a_judge_that_always_takes_the_first_slot_has_no_label_effect_at_all() -> None:
    largest, alarms = first_slot(draws=1, seed=3)
    assert largest == 0.0
    assert alarms.events == 0


def test_missing_judgements_do_not_move_the_estimate() -> None:
    """Text 1 is four points worse, and only under one label do half of its judgements fail."""
    rng = np.random.default_rng(7)
    given = scores(rng, DEFAULT, NOISE, 0.0).reshape(DEFAULT.bases, 2, len(ARMS), 4)
    given[:, 1] -= 4
    given[::2, 1, ARMS.index("male")] = np.nan
    rows = judged(DEFAULT.keys(), given.reshape(-1, 4), rng)
    rows = malibu.single(rows.with_columns(rows.select(malibu.METRICS).fill_nan(None)))
    male = next(one.effect for one in primary(rows) if one.effect.label == "male")
    assert male.cells == 90  # 60 of text 0, 30 of text 1
    assert male.estimate == pytest.approx(0.0, abs=0.3)  # unmatched: about +0.67


def test_a_judge_at_the_margin_passes_in_at_most_one_audit_of_twenty() -> None:
    """400 judges a cell: the largest of twenty-one shares is allowed for by two standard errors."""
    found = certificates.figures(short=True)
    assert found["at_margin"] <= 0.05 + 2 * (0.05 * 0.95 / 400) ** 0.5
    assert all(share == 0 for name, share in found.items() if name.startswith(("6 b", "12 b")))
    assert found["pass_without_effect_sd_0.2"] > 0.98
