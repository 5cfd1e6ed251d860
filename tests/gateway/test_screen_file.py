"""`screen = "FILE.json"` in a policy: scorer and band are those of the calibration, or it is
refused."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from evenhand.core.errors import UserError
from evenhand.experiments.config import Config
from evenhand.experiments.screens import begin_looks, looks_beside
from evenhand.findings.screen_file import ScreenedBy, read_screen
from evenhand.findings.screened import ScreenLook
from evenhand.gateway.opening import screen_of
from evenhand.gateway.policy import CheckPolicy
from evenhand.instruments.scorer.screening import Columns, LabelledTexts, ScreenTargets, calibrated
from evenhand.scorers import WordList
from tests.errors import raises_naming
from tests.scorers.screen.test_calibrate import labelled, scores_of, written

WORDLIST = {"said": "wordlist", "name": WordList().name, "described": WordList().describe(),
            "attribute": "toxicity"}  # fmt: skip


def check(
    tmp_path: Path, harmful: int = 59, asked: ScreenTargets | None = None, **by: Any
) -> CheckPolicy:
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", labelled(harmful)), Columns())
    scorer = ScreenedBy(**{**WORDLIST, **by})
    place = tmp_path / "screen.json"
    made = calibrated(known, scores_of(known), asked or ScreenTargets(), scorer)
    place.write_bytes(made.to_bytes())
    begin_looks(place, made)
    return CheckPolicy(screen=str(place))


def test_the_cut_offs_of_a_screen_file_are_the_band(tmp_path: Path) -> None:
    scorer, decides = screen_of(check(tmp_path, asked=ScreenTargets(false_alarms=0.05)), Config())
    assert scorer.name == WordList().name
    assert decides.band == (0.2, 0.58)
    assert screen_of(check(tmp_path), Config())[1].band == (0.2, 1.0)


def test_where_nothing_may_be_called_clean_nothing_passes_the_screen(tmp_path: Path) -> None:
    assert screen_of(check(tmp_path, harmful=58), Config())[1].band == (0.0, 1.0)


def test_a_screen_that_has_drifted_or_lost_its_looks_is_refused(tmp_path: Path) -> None:
    decides = check(tmp_path)
    file, place = read_screen(Path(decides.screen)), looks_beside(Path(decides.screen))
    after = hashlib.sha256(place.read_bytes().splitlines()[-1]).hexdigest()
    alarm = ScreenLook(screen=file.sha256, run="r", number=1, place="runs/r", created="now",
                       scores=9, pooled=9, places=[9], places_at_worst=[9], power=1.0, after=after,
                       p_value=0.001, p_at_worst=0.001, level=0.025)  # fmt: skip
    with place.open("a") as looks:
        looks.write(alarm.model_dump_json() + "\n")
    with raises_naming(UserError, decides.screen, "runs/r"):
        screen_of(decides, Config())
    place.write_text("")
    with raises_naming(UserError, place, "begin"):
        screen_of(decides, Config())
    place.unlink()
    with raises_naming(UserError, place, "gone"):
        screen_of(decides, Config())


def test_a_scorer_by_its_name_keeps_the_band_of_the_policy() -> None:
    scorer, decides = screen_of(CheckPolicy(screen="wordlist", band=(0.1, 0.7)), Config())
    assert (scorer.name, decides.band) == (WordList().name, (0.1, 0.7))


@pytest.mark.parametrize(
    ("by", "facts"),
    [
        ({"name": "wordlist@1"}, ("calibrated with wordlist@1", "now wordlist@2")),
        ({"described": {"kind": "wordlist", "words": 3}}, ("other settings",)),
        ({"attribute": "hate"}, ("'hate'", "--attribute toxicity")),
    ],
)
def test_a_screen_of_another_scorer_or_attribute_is_refused(
    tmp_path: Path, by: dict[str, Any], facts: tuple[str, ...]
) -> None:
    with raises_naming(UserError, *facts):
        screen_of(check(tmp_path, **by), Config())
