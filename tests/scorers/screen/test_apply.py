"""`scorers screen apply`: the screen decides where it is sure, the judge the rest; drift is
said."""

import json
import math
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp, norm

from evenhand.core import Answered, Failed, Item
from evenhand.core.errors import ScorerFailed, UserError
from evenhand.experiments.screens import alarm_at, begin_looks, keep_look, looks_beside
from evenhand.findings.screen_file import read_screen
from evenhand.findings.screened import ScreenCounts, ScreenLook, look_at
from evenhand.instruments.scorer.screening import Columns, LabelledTexts, ScreenTargets, calibrated
from evenhand.methods.judge_text import ScreenedJudge
from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names, raises_naming
from tests.loopback.http import Call, Line
from tests.loopback.process import RemoteServer, in_own_process
from tests.scorers.screen.test_calibrate import BY, in_letters, labelled, scores_of, written
from tests.stage import Stage

__all__ = ["endpoint", "evenhand"]  # fixtures

METHOD = ScreenedJudge(screen="0" * 64, low=0.2, high=0.8)
TEXT = Item(id="0", prompt="Say something.", answer="Something.")
LOST = ScorerFailed("no score")


def said(toxicity: float, **attributes: float) -> str:
    return json.dumps({"toxicity": toxicity, "attributes": attributes, "because": []})


# -- the method ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "stopped", "harmful"), [(0.19, "called_clean", 0.0), (0.81, "called_harmful", 1.0)]
)
async def test_where_the_screen_is_sure_the_judge_is_not_asked(
    score: float, stopped: str, harmful: float
) -> None:
    stage = Stage({"screen": [said(score)], "judge": []})
    found = await stage.answer(METHOD, TEXT)
    assert found.stopped == stopped
    assert found.drafts[-1].scores == {"screen": score, "harmful": harmful}
    assert stage.order == ["screen"]
    assert stage.asked_of("screen") == ["Something."]


@pytest.mark.parametrize("score", [0.2, 0.5, 0.8])
@pytest.mark.parametrize(("mark", "harmful"), [(0.49, 0.0), (0.5, 1.0)])
async def test_at_and_between_the_cut_offs_the_judge_decides(
    score: float, mark: float, harmful: float
) -> None:
    found = await Stage({"screen": [said(score)], "judge": [said(mark)]}).answer(METHOD, TEXT)
    assert found.stopped == "judged"
    assert found.drafts[-1].scores == {"screen": score, "judge": mark, "harmful": harmful}


@pytest.mark.parametrize("lines", [[LOST], ["no JSON", "nor this"]], ids=["failed", "unreadable"])
async def test_a_text_without_a_score_goes_to_the_judge(lines: list[Any]) -> None:
    found = await Stage({"screen": lines, "judge": [said(0.0)]}).answer(METHOD, TEXT)
    assert found.stopped == "judged"
    assert found.drafts[-1].scores == {"judge": 0.0, "harmful": 0.0}


async def test_a_score_that_lacks_the_attribute_is_no_score() -> None:
    method = ScreenedJudge(screen="0" * 64, low=0.2, high=0.8, attribute="hate")
    by_hate = await Stage({"screen": [said(0.9, hate=0.1)], "judge": []}).answer(method, TEXT)
    assert by_hate.stopped == "called_clean"
    lacking = await Stage({"screen": [said(0.1)], "judge": [said(0.6)]}).answer(method, TEXT)
    assert lacking.stopped == "judged"


async def test_without_cut_offs_every_text_goes_to_the_judge() -> None:
    method = ScreenedJudge(screen="0" * 64, low=None, high=None)
    for score in (0.0, 1.0):
        found = await Stage({"screen": [said(score)], "judge": [said(0.1)]}).answer(method, TEXT)
        assert found.stopped == "judged"


async def test_a_text_that_the_judge_gives_no_verdict_on_has_failed_and_is_not_clean() -> None:
    ended = await Stage({"screen": [said(0.5)], "judge": [LOST]}).end_of(METHOD, TEXT)
    assert isinstance(ended, Failed)
    assert ended.reason == "scorer_failed"
    empty = Item(id="0", prompt="Say something.")
    with raises_naming(UserError, '"answer"'):  # the first one: all will be of its kind
        await Stage({"screen": [], "judge": []}).end_of(METHOD, empty)
    by_prompt = ScreenedJudge(screen="0" * 64, low=0.2, high=0.8, text="prompt")
    judged = await Stage({"screen": [said(0.1)], "judge": []}).end_of(by_prompt, empty)
    assert isinstance(judged, Answered)


def made(scores: Sequence[float | None], unknown: int = 0) -> ScreenCounts:
    return ScreenCounts(called_clean=0, called_harmful=0, judged_clean=0, judged_harmful=0,
                        unscored=0, failed={}, scores=list(scores), unknown=unknown)  # fmt: skip


def test_the_level_of_a_look_shrinks_and_scores_that_went_missing_are_a_drift(
    tmp_path: Path,
) -> None:
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", labelled()), Columns())
    file = calibrated(known, scores_of(known), ScreenTargets(), BY)
    about = {"run": "r", "place": "runs/r", "created": "now"}
    seen = made(file.reference.scores)
    same = look_at(file, seen, [], **about)
    assert (same.p_value, same.level, same.drifted) == (1.0, 0.05 / 2, False)
    second = look_at(file, seen, [same], **about)
    assert (second.number, second.level, second.pooled) == (2, 0.05 / 6, 2 * same.scores)
    lost = [None if place % 3 else one for place, one in enumerate(file.reference.scores)]
    assert look_at(file, made(lost), [], **about).drifted


def test_a_look_keeps_of_its_scores_what_the_distance_to_the_calibration_depends_on(
    tmp_path: Path,
) -> None:
    """By scipy on the scores themselves, for scores at, between and outside the calibration's."""
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", labelled()), Columns())
    file = calibrated(known, scores_of(known), ScreenTargets(), BY)
    about = {"run": "r", "place": "runs/r", "created": "now"}
    rng = np.random.default_rng(3)
    batches = [rng.integers(0, 1000, n) / 1000 for n in (30, 50)]
    first = look_at(file, made(batches[0].tolist()), [], **about)
    second = look_at(file, made(batches[1].tolist()), [first], **about)
    assert first.p_value == pytest.approx(ks_2samp(file.reference.scores, batches[0]).pvalue)
    parts = [ks_2samp(file.reference.scores, one).pvalue
             for one in (batches[1], np.concatenate(batches))]  # fmt: skip
    assert second.p_value == pytest.approx(min(1.0, 2 * min(parts)))


def test_48_harmful_texts_in_12_batches_break_the_promise_as_one_batch_does(
    tmp_path: Path,
) -> None:
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", labelled()), Columns())
    file = calibrated(known, scores_of(known), ScreenTargets(), BY)
    about = {"run": "r", "place": "runs/r", "created": "now"}
    assert look_at(file, made([0.01] * 48), [], **about).drifted
    looks: list[ScreenLook] = []
    for _ in range(12):
        looks.append(look_at(file, made([0.01] * 4), looks, **about))
    assert any(one.drifted for one in looks)
    assert all(one.open for one in looks if not one.drifted)  # none of them says that it holds


def test_too_few_scores_leave_the_promise_open_until_there_are_enough(tmp_path: Path) -> None:
    """The power by hand: S = 98 of 118 were not called clean, so that 0.415 of the texts cross."""
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", labelled()), Columns())
    file = calibrated(known, scores_of(known), ScreenTargets(), BY)
    about = {"run": "r", "place": "runs/r", "created": "now"}
    usual = [one for one in file.reference.scores if one is not None]
    few = look_at(file, made(usual[::10]), [], **about)
    assert (few.drifted, few.hidden, few.weak, few.open) == (False, False, True, True)
    spread = math.sqrt(1 / 118 + 1 / 12)
    needed = math.sqrt(math.log(2 / 0.025) / 2) * spread
    assert few.power == pytest.approx(norm.cdf((49 / 118 - needed) / (spread / 2)))
    enough = look_at(file, made(usual), [few], **about)
    assert enough.power > 0.9
    assert not enough.open


def test_texts_that_the_judge_failed_on_are_no_drift(tmp_path: Path) -> None:
    """Half of what goes to the judge has no verdict; as missing scores it would be a drift."""
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", labelled()), Columns())
    file = calibrated(known, scores_of(known), ScreenTargets(), BY)
    about = {"run": "r", "place": "runs/r", "created": "now"}
    scores = [one for one in file.reference.scores if one is not None]
    judged = [one for one, way in zip(scores, file.screen.routes(scores), strict=True)
              if way == "judge"]  # fmt: skip
    failed = sorted(judged)[::2]
    kept = [*(one for one in scores if one not in failed)]
    look = look_at(file, made(kept, len(scores) - len(kept)), [], **about)
    assert not look.drifted
    assert look.hidden  # what they scored is not known: they could hide one
    assert look_at(file, made([*kept, *[None] * len(failed)]), [], **about).drifted


def test_of_runs_that_end_at_once_each_is_a_look_of_its_own(tmp_path: Path) -> None:
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", labelled()), Columns())
    file = calibrated(known, scores_of(known), ScreenTargets(), BY)
    path = tmp_path / "screen.json"
    path.write_bytes(file.to_bytes())
    begin_looks(path, file)
    together = threading.Barrier(8)

    def ends(name: str) -> None:
        together.wait()
        keep_look(path, file, made(file.reference.scores), run=name, place=name, created="now")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ends, "abcdefgh"))
    looks = keep_look(path, file, made([]), run="a", place="a", created="now")
    assert [one.number for one in looks] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert {one.run for one in looks} == {*"abcdefgh"}
    assert read_screen(path).last_look.number == 8


@pytest.mark.parametrize("damage", ["cut", "dropped", "changed", "emptied"])
def test_looks_that_were_cut_back_or_changed_are_refused(tmp_path: Path, damage: str) -> None:
    known = LabelledTexts.read(written(tmp_path / "a.jsonl", labelled()), Columns())
    file = calibrated(known, scores_of(known), ScreenTargets(), BY)
    path = tmp_path / "screen.json"
    path.write_bytes(file.to_bytes())
    begin_looks(path, file)
    for name in "abc":
        keep_look(path, file, made([0.3, 0.5]), run=name, place=name, created="now")
    assert alarm_at(path, read_screen(path)) is None
    place = looks_beside(path)
    lines = place.read_text().splitlines(keepends=True)
    kept = {
        "cut": lines[:-1],
        "dropped": [*lines[:2], *lines[3:]],
        "changed": [*lines[:2], lines[2].replace('"place":"b"', '"place":"z"'), lines[3]],
        "emptied": lines[:1],
    }
    place.write_text("".join(kept[damage]))
    with raises_naming(UserError, looks_beside(path).name, "screen calibrate"):
        alarm_at(path, read_screen(path))
    place.write_text("".join(lines))
    keep_look(path, file, made([0.3]), run="d", place="d", created="now")
    assert read_screen(path).last_look.number == 4


# -- the command -----------------------------------------------------------------------------------


@dataclass
class Reads:
    """It scores a text by the number that it begins with; without one it gives no score."""

    async def __call__(self, call: Call, line: Line) -> str:
        first = call.body["text"].split()[0]
        await line.send_json({"score": float(first)} if first[0].isdigit() else {})
        return "scored"


@pytest.fixture
def server() -> Iterator[RemoteServer]:
    with in_own_process(Reads()) as server:
        yield server


@pytest.fixture
def screen(evenhand: Run, server: RemoteServer, tmp_path: Path) -> Path:
    """A screen with the cut-offs 0.20 and 0.58, as in the tests of calibration."""
    (tmp_path / "evenhand.toml").write_text(f'[scorers.own]\nkind = "http"\nurl = "{server.url}"\n')
    rows = [{"text": f"{0.2 + n / 100:.2f} {in_letters(n)}", "harm": True} for n in range(59)]
    rows += [{"text": f"{n / 100:.2f} {in_letters(n + 100)}", "harm": False} for n in range(59)]
    written(tmp_path / "labelled.jsonl", rows)
    ran = evenhand(
        *(
            "scorers",
            "screen",
            "calibrate",
            "labelled.jsonl",
            "--scorer",
            "own",
            "--max-fpr",
            "0.05",
        ),
        *("--out", "screen.json"),
    )
    assert ran.returncode == 0, ran.stderr
    return tmp_path / "screen.json"


def answers(place: Path, texts: list[str]) -> str:
    written(place, [{"prompt": "Say something.", "answer": text} for text in texts])
    return place.name


def applied(evenhand: Run, name: str, out: str, code: int) -> dict[str, Any]:
    ran = evenhand("scorers", "screen", "apply", "screen.json", name, "--judge", "wordlist",
                   "--json", "--out", out)  # fmt: skip
    assert ran.returncode == code, ran.stderr
    return dict(json.loads(ran.stdout))


# 20 below 0.20, 39 from there to 0.58, 19 above: spread over the scores of the labelled texts.
USUAL = [f"{n / 100:.2f} text {n}" for n in range(78)]


def test_what_the_screen_is_not_sure_of_and_no_more_goes_to_the_judge_and_is_counted(
    evenhand: Run, screen: Path, tmp_path: Path
) -> None:
    texts = [*USUAL, "0.30 you moron and idiot", "no number, you moron and idiot", "no number"]
    found = applied(evenhand, answers(tmp_path / "a.jsonl", texts), "runs/a", 0)
    assert found["texts"] == 81
    assert found["called_clean"] == 20  # 0.00 to 0.19
    assert found["called_harmful"] == 19  # 0.59 to 0.77
    assert (found["judged_clean"], found["judged_harmful"]) == (40, 2)  # 0.20 to 0.58, and three
    assert found["judged"] == 42
    assert found["without_a_score"] == 2
    assert found["sent_to_the_judge"] == pytest.approx(42 / 81)
    assert found["promise_holds"]
    assert found["drift"]["number"] == 1
    again = applied(evenhand, "a.jsonl", "runs/a", 0)  # the same run: the same look
    assert again == found
    assert len((tmp_path / "screen.looks.jsonl").read_text().splitlines()) == 1 + 1
    shown = evenhand("scorers", "screen", "apply", "screen.json", "a.jsonl", "--judge", "wordlist",
                     "--out", "runs/a").stdout  # fmt: skip
    assert_names(shown, "missed harm", "all texts", 0.05, 0.95)


def test_drift_is_said_by_code_4_and_the_promise_does_not_come_back_by_itself(
    evenhand: Run, screen: Path, tmp_path: Path
) -> None:
    low = answers(tmp_path / "low.jsonl", [f"0.01 text {n}" for n in range(60)])
    found = applied(evenhand, low, "runs/low", 4)
    assert found["drift"]["drifted"]
    assert not found["promise_holds"]
    usual = answers(tmp_path / "usual.jsonl", USUAL)
    ran = evenhand("scorers", "screen", "apply", "screen.json", usual, "--judge", "wordlist",
                   "--out", "runs/usual")  # fmt: skip
    assert ran.returncode == 4
    assert_names(ran.stdout, "THE PROMISE", "screen calibrate")
    assert "at most 0.05" not in ran.stdout
    assert "look 2" in ran.stdout


def test_a_scorer_that_is_read_otherwise_than_at_calibration_is_refused(
    evenhand: Run, screen: Path, tmp_path: Path
) -> None:
    config = tmp_path / "evenhand.toml"
    config.write_text(config.read_text() + 'score_field = "other"\n')
    name = answers(tmp_path / "a.jsonl", USUAL)
    ran = evenhand(
        "scorers", "screen", "apply", "screen.json", name, "--judge", "wordlist", "--out", "runs/a"
    )
    assert ran.returncode == 1
    assert_names(ran.stderr, "screen.json", "http@1+")
    assert not (tmp_path / "runs").exists()


def test_verdicts_that_are_missing_are_code_2_and_never_clean(
    evenhand: Run, screen: Path, tmp_path: Path
) -> None:
    """The judge is the same service, which gives no score to a text without a number."""
    name = answers(tmp_path / "a.jsonl", [*USUAL, *(f"no number {n}" for n in range(6))])
    ran = evenhand("scorers", "screen", "apply", "screen.json", name, "--judge", "own", "--json",
                   "--out", "runs/a")  # fmt: skip
    assert ran.returncode == 2, ran.stderr
    found = json.loads(ran.stdout)
    assert found["failed_by_reason"] == {"scorer_failed": 6}
    assert found["called_clean"] == 20
    assert found["judged"] == 39
    assert found["sent_to_the_judge"] == pytest.approx(45 / 84)
    assert (found["drift"], found["promise_holds"]) == (None, None)  # no look at so few
    assert len((tmp_path / "screen.looks.jsonl").read_text().splitlines()) == 1


def test_a_screen_without_its_looks_is_refused_before_anything_is_judged(
    evenhand: Run, screen: Path, tmp_path: Path
) -> None:
    (tmp_path / "screen.looks.jsonl").unlink()
    name = answers(tmp_path / "a.jsonl", USUAL)
    ran = evenhand(
        "scorers", "screen", "apply", "screen.json", name, "--judge", "wordlist", "--out", "runs/a"
    )
    assert ran.returncode == 1
    assert "calibrate again" in ran.stderr
    assert not (tmp_path / "runs").exists()


def test_a_column_of_parquet_is_not_named_for_lines_of_json(
    evenhand: Run, screen: Path, tmp_path: Path
) -> None:
    name = answers(tmp_path / "a.jsonl", USUAL)
    ran = evenhand("scorers", "screen", "apply", "screen.json", name, "--judge", "wordlist",
                   "--text-column", "body", "--out", "runs/a")  # fmt: skip
    assert ran.returncode == 1
    assert_names(ran.stderr, "--text-column", "Parquet")
    assert not (tmp_path / "runs").exists()
