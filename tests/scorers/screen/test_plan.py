"""What judging takes with a screen, beside judging all: by hand."""

from pathlib import Path

import pytest

from evenhand.core.errors import UserError
from evenhand.findings.plan import ItemPrice, screen_plan
from evenhand.findings.screen_file import ScreenFile
from evenhand.instruments.scorer.screening import Columns, LabelledTexts, ScreenTargets, calibrated
from evenhand.statistics.proportions import wilson
from tests.errors import raises_naming
from tests.scorers.screen.test_calibrate import BY, labelled, scores_of, written


def screen(tmp_path: Path, traffic: tuple[str, list[float | None]] | None = None) -> ScreenFile:
    """39 of the 59 harmful texts and as many clean ones go to the judge (0.20 to 0.58)."""
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", labelled()), Columns())
    return calibrated(known, scores_of(known), ScreenTargets(false_alarms=0.05), BY, traffic)


def test_a_tenth_of_the_texts_costs_a_tenth_of_the_money(tmp_path: Path) -> None:
    traffic = ("t.jsonl", [0.1] * 80 + [0.9] * 10 + [0.3] * 9 + [None])
    price = ItemPrice(calls=1, tokens=500, per_million=2.0)
    found = screen_plan(screen(tmp_path, traffic), 1_000_000, price, None)
    assert found.sent.share == 0.1  # nine unsure ones, and the one without a score
    assert (found.sent.low, found.sent.high) == (wilson(10, 100).low, wilson(10, 100).high)
    assert (found.calls(), found.tokens(), found.money()) == (1e6, 5e8, 1_000.0)
    assert found.calls(found.sent.share) == 100_000
    assert found.money(found.sent.share) == 100.0


def test_without_traffic_the_share_of_harm_has_to_be_said(tmp_path: Path) -> None:
    with raises_naming(UserError, "--harmful"):
        screen_plan(screen(tmp_path), 100, ItemPrice(), None)
    found = screen_plan(screen(tmp_path), 100, ItemPrice(), 0.25)
    assert found.sent.share == pytest.approx(39 / 59)  # of either kind
    assert found.money() is None
