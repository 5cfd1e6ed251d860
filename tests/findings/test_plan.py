"""How many items a comparison needs: from what was measured, or from two pilot runs."""

import math
from pathlib import Path

import pytest
from statsmodels.stats.power import TTestPower

from evenhand.core.errors import UserError
from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.plan import ItemPrice, plan
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.squad.instrument import Squad
from tests.coded import coded, codes
from tests.errors import raises_naming
from tests.findings.frontier.small_bbq import played

HARM = "unsupported_attribution"


def test_bbq_needs_more_rows_of_every_template_for_a_change_of_five_points() -> None:
    """After Holm over four, 343 templates show 3.355 standard errors: far more rows than the 1,364
    of the default sample. With 10 of each template DEFF is 1.9, and 3.355 · 0.62 · √(1.9/3,430) =
    0.0490; with 9 it is 1.8, and 0.0502."""
    found = plan(Bbq())
    assert (found.measure, found.detect, found.family) == ("s_amb", 0.05, 4)
    assert (found.rows, found.items) == (10 * 343, 2 * 10 * 343)
    assert found.what_samples_can_show["the default sample"] == pytest.approx(
        0.0642, abs=1e-4
    )  # DEFF 1.3
    assert plan(Bbq(), family=1).rows == 5 * 343  # 2.81 · 0.62 · √(1.4/1,715) = 0.0498


def test_a_large_change_needs_fewer_than_the_default_sample() -> None:
    """statsmodels says the same: of one test, in the mean of four rows of each of 13 templates."""
    rows = plan(Bbq(), detect=0.3, family=1).rows
    assert rows == 52
    sd = 0.62 * math.sqrt(1.3 / 4)  # of a template's mean of four
    needed = TTestPower().solve_power(0.3 / sd, alpha=0.05, power=0.8)
    assert rows - 1 < 4 * needed <= rows


def test_two_runs_are_paid_for() -> None:
    price = ItemPrice(calls=4, tokens=100, per_million=2.0)
    found = plan(Bbq(), detect=0.3, price=price)
    assert found.items == 2 * 75
    assert (found.calls, found.tokens) == (2 * 150 * 4, 2 * 150 * 4 * 100)
    assert found.money == pytest.approx(0.24)
    assert plan(Bbq(), detect=0.3).money is None


def test_what_all_the_data_cannot_show_has_no_number() -> None:
    found = plan(Bbq(), detect=0.001, price=ItemPrice(per_million=1.0))
    assert (found.rows, found.items, found.calls, found.money) == (None,) * 4
    assert codes(found.too_small) == ["plan.instrument_too_small"]


@pytest.mark.parametrize("detect", [0.0, -0.1, float("inf"), float("nan")])
def test_a_change_that_cannot_be_seen_is_refused(detect: float) -> None:
    with raises_naming(UserError, f"--detect {detect}", 0):
        plan(Bbq(), detect=detect)


def test_what_was_never_measured_is_asked_for_and_not_guessed() -> None:
    with raises_naming(UserError, "squad", "--from RUN_A RUN_B"):
        plan(Squad())
    with raises_naming(UserError, "over_abstention", "plan bbq", "--from RUN_A RUN_B"):
        plan(Bbq(), measure="over_abstention")


async def _pilot(folder: Path, templates: int = 12) -> Comparison:
    """Every second template goes from naming the stereotyped person to naming nobody."""
    before = await played(folder / "a", lambda *_: "biased", calls=1, templates=templates)
    after = await played(
        folder / "b", lambda n, _: "unknown" if n % 2 else "biased", calls=1, templates=templates
    )
    return compare(Bbq(), before, after)


async def test_half_the_change_needs_less_than_four_times_a_small_pilot(tmp_path: Path) -> None:
    pilot = await _pilot(tmp_path)
    # u_g = ±1/2, twelve times: se² = 12/11 · 12/4 / 12² = 1/44, sd = √(12/44). With more templates
    # the t has shorter tails: statsmodels finds the same number of them.
    shown = plan(Bbq(), pilot=pilot, measure=HARM, family=1).what_samples_can_show["the pilot"]
    power = TTestPower()
    assert power.power(shown / (12 / 44) ** 0.5, 12, 0.05) == pytest.approx(0.8, abs=1e-4)
    found = plan(Bbq(), detect=shown / 2, pilot=pilot, measure=HARM, family=1)
    needed = power.solve_power(shown / 2 / (12 / 44) ** 0.5, alpha=0.05, power=0.8)
    assert found.clusters == math.ceil(needed) < 48
    assert (found.rows, found.items) == (math.ceil(needed), 2 * math.ceil(needed))


async def test_more_clusters_than_there_are_have_no_number(tmp_path: Path) -> None:
    pilot = await _pilot(tmp_path)
    found = plan(Bbq(), pilot=pilot, measure=HARM, family=1)
    assert found.items is None
    # (2.8016/√44 / 0.05)² · 12 = 856.3 templates, and two more for t.
    few = coded(found.too_small, "plan.too_few_clusters")
    assert (few["clusters"], few["unit"], few["there_are"]) == (859, "templates", 343)


async def test_two_runs_that_differ_nowhere_say_nothing_of_the_spread(tmp_path: Path) -> None:
    runs = [
        await played(tmp_path / name, lambda *_: "biased", calls=1, templates=4) for name in "ab"
    ]
    with raises_naming(UserError, "s_amb", "4 clusters"):
        plan(Bbq(), pilot=compare(Bbq(), *runs))
    with raises_naming(UserError, "'speed'", "s_amb"):
        plan(Bbq(), pilot=compare(Bbq(), *runs), measure="speed")
