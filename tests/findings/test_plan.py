"""How many items a comparison needs: from what was measured, or from two pilot runs."""

from pathlib import Path

import pytest

from evenhand.errors import UserError
from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.plan import Price, plan
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.squad.instrument import Squad
from frontier.small_bbq import played

HARM = "unsupported_attribution"


def test_bbq_needs_more_rows_of_every_template_for_a_change_of_five_points() -> None:
    """(1.960 + 0.842)² · 0.62² / 0.05² = 1,207 rows, times 1.3 for fours: more than the 1,364 of
    the default sample. With 5 of each of 343, DEFF = 1.4: 2.802 · 0.62 · √(1.4/1,715) = 0.0496."""
    found = plan(Bbq())
    assert (found.measure, found.detect) == ("s_amb", 0.05)
    assert (found.rows, found.items) == (5 * 343, 2 * 5 * 343)
    assert found.what_samples_can_show["the default sample"] == pytest.approx(0.0536, abs=1e-4)


def test_a_large_change_needs_fewer_than_the_default_sample() -> None:
    """1.3 · (2.802 · 0.62/0.3)² = 43.6."""
    assert plan(Bbq(), detect=0.3).rows == 44


def test_two_runs_are_paid_for() -> None:
    price = Price(calls=4, tokens=100, per_million=2.0)
    found = plan(Bbq(), detect=0.3, price=price)
    assert (found.calls, found.tokens) == (2 * 88 * 4, 2 * 88 * 4 * 100)
    assert found.money == pytest.approx(0.1408)
    assert plan(Bbq(), detect=0.3).money is None


def test_what_all_the_data_cannot_show_has_no_number() -> None:
    found = plan(Bbq(), detect=0.001, price=Price(per_million=1.0))
    assert (found.rows, found.items, found.calls, found.money) == (None,) * 4
    assert "too small" in found.too_small


@pytest.mark.parametrize("detect", [0.0, -0.1, float("inf"), float("nan")])
def test_a_change_that_cannot_be_seen_is_refused(detect: float) -> None:
    with pytest.raises(UserError, match="above 0"):
        plan(Bbq(), detect=detect)


def test_what_was_never_measured_is_asked_for_and_not_guessed() -> None:
    with pytest.raises(UserError, match="evenhand plan squad --from RUN_A RUN_B"):
        plan(Squad())
    with pytest.raises(UserError, match="over_abstention varies on bbq has not been measured"):
        plan(Bbq(), measure="over_abstention")


async def _pilot(folder: Path, templates: int = 12) -> Comparison:
    """Every second template goes from naming the stereotyped person to naming nobody."""
    before = await played(folder / "a", lambda *_: "biased", calls=1, templates=templates)
    after = await played(
        folder / "b", lambda n, _: "unknown" if n % 2 else "biased", calls=1, templates=templates
    )
    return compare(Bbq(), before, after)


async def test_half_the_change_needs_four_times_the_pilot(tmp_path: Path) -> None:
    pilot = await _pilot(tmp_path)
    # u_g = ±1/2, twelve times: se² = 12/11 · 12/4 / 12² = 1/44. The pilot shows 2.8016 · se.
    shown = 2.8015853 / 44**0.5
    found = plan(Bbq(), detect=shown / 2, pilot=pilot, measure=HARM)
    assert (found.rows, found.items, found.clusters) == (48, 96, 48)
    assert found.what_samples_can_show["the pilot"] == pytest.approx(shown)


async def test_more_clusters_than_there_are_have_no_number(tmp_path: Path) -> None:
    pilot = await _pilot(tmp_path)
    # (2.8016/√44 / 0.05)² · 12 = 856.3 templates.
    found = plan(Bbq(), pilot=pilot, measure=HARM)
    assert found.items is None
    assert "857 templates, and there are 343" in found.too_small


async def test_two_runs_that_differ_nowhere_say_nothing_of_the_spread(tmp_path: Path) -> None:
    runs = [
        await played(tmp_path / name, lambda *_: "biased", calls=1, templates=4) for name in "ab"
    ]
    with pytest.raises(UserError, match="all 4 clusters changed alike"):
        plan(Bbq(), pilot=compare(Bbq(), *runs))
    with pytest.raises(UserError, match="bbq has no measure 'speed'"):
        plan(Bbq(), pilot=compare(Bbq(), *runs), measure="speed")
