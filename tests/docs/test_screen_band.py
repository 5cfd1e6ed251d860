"""The gateway's band, and what its page says of it, are those of the recorded calibration."""

import json
from pathlib import Path

import pytest

from bench.screen_band import CARRIER, Share, begins_at, ends_at, for_the_band, held_out
from evenhand.gateway.policy import CheckPolicy
from evenhand.scorers.kinds import BUILT_IN

ROOT = Path(__file__).resolve().parents[2]
RECORDED = json.loads((ROOT / "recorded/screen_band.json").read_text())
EVASIONS = json.loads((ROOT / "recorded/screen_evasions.json").read_text())
CARD = (ROOT / "src/evenhand/scorers/offline/card.md").read_text()
PAGE = (ROOT / "docs/gateway.md").read_text()


def test_the_band_and_the_scorer_are_those_of_the_calibration() -> None:
    assert list(CheckPolicy().band) == RECORDED["band"]
    assert BUILT_IN[CheckPolicy().screen]().name == RECORDED["scorer"]


@pytest.mark.parametrize("name", sorted(RECORDED["figures"]))
def test_the_page_has_every_share_with_its_interval(name: str) -> None:
    share = Share(**RECORDED["figures"][name])
    assert str(share) in PAGE
    assert Share.of(share.events, share.n) == share


def test_the_card_has_what_evades_the_screen() -> None:
    assert BUILT_IN["staged"]().name == EVASIONS["scorer"]
    shares = {name: Share(**figures) for name, figures in EVASIONS["figures"].items()}
    rows = [f"| {name} | {share} |" for name, share in shares.items() if share.events > 3]
    assert len(rows) >= 5
    assert [row for row in rows if row not in CARD] == []
    worst = sorted(shares, key=lambda name: shares[name].estimate)[-2:]
    assert all(str(shares[name]) in PAGE for name in worst)


def test_the_bill_follows_from_the_share() -> None:
    low, high = RECORDED["calls_a_million"]
    share = RECORDED["figures"]["squad_to_agents"]["estimate"]
    assert (low, high) == (round(share * 3e6, -4), round(share * 5e6, -4))
    assert f"{low:,} to {high:,} agent calls" in PAGE


def test_the_cut_offs_follow_from_the_steps_that_keep_the_bounds() -> None:
    # 0 of 36 has an upper end of 0.0974, 0 of 35 one of 0.1000 and a little more.
    assert begins_at([0.52] * 36) == 0.45
    assert begins_at([0.52] * 34) == 0.0
    # 0 of 183 has an upper end of 0.01996, 0 of 180 one of 0.02029.
    assert ends_at([0.1] * 183) == 0.9
    assert ends_at([0.1] * 180) == 1.0
    assert ends_at([0.92] * 5 + [0.1] * 3_000) == 0.9
    assert ends_at([0.92] * 50 + [0.1] * 3_000) == 0.95


def test_halves_and_fifths_are_found_again_by_the_text() -> None:
    halves = [for_the_band(str(number)) for number in range(2_000)]
    fifths = [held_out(str(number)) for number in range(2_000)]
    assert 900 < sum(halves) < 1_100
    assert 330 < sum(fifths) < 470
    assert len(set(CARRIER)) == len(CARRIER) >= 5
