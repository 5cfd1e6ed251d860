"""What the words promise, simulated: the short form of the bench, with room for its few draws."""

from pathlib import Path

import pytest

from bench.simulated.decisions import figures


def test_the_words_are_seldom_wrong(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the rules of before, a true benefit was called "not worth it" 22 and 45 times in 100, and
    a system compared with itself crossed a guardrail four times in five."""
    monkeypatch.setenv("EVENHAND_DATA", str(data_folder))
    found = figures(short=True)
    assert found["twin_red"] <= 0.3
    assert found["false_worth"] <= 0.05
    assert found["false_not_worth"] <= 0.15
    assert found["power_simulated_1"] == pytest.approx(found["power_stated_1"], abs=0.2)
    assert found["four_in_five_at_11"] == pytest.approx(0.8, abs=0.1)
