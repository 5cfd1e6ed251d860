"""Pairs of answers whose better one is known, as checks of a certificate."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core import Item
from evenhand.core.conclusions import Outcome
from evenhand.findings.audit import Decided
from evenhand.findings.certificate import Certificate
from evenhand.instruments._judge_pairs import pair_of
from evenhand.instruments.judge.checks import CoverageCheck, LlmBarCheck
from evenhand.instruments.judge.design import JudgeDesign
from evenhand.instruments.judge.evidence import JudgeEvidence
from evenhand.instruments.judge.probes import checksums, known, labelled
from tests.cli.conftest import Run, endpoint, evenhand
from tests.loopback.process import in_own_process

from .in_process import SCORES, Judge, audited, rows
from .judges import Planted

__all__ = ["endpoint", "evenhand"]  # the fixtures

TWO = ("female", "male")
SMALL = JudgeDesign(bases=6, pairs=6, identities=TWO)
Verdicts = tuple[float | None, float | None]  # for the first answer: with the better first, second
RIGHT, FOOLED, FIRST, TIES, SILENT = (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.5), (1.0, None)


def _asked(said: Sequence[Verdicts]) -> pl.DataFrame:
    """The rows of an audit, and those of so many pairs."""
    pairs = [pair_of(f"{n}", f"kind {n % 2}", "Say yes.", ("yes", "no"), 1)
             for n in range(len(said))]  # fmt: skip
    design = rows(Judge(), SMALL, injections=6)
    verdicts = [verdict for pair in said for verdict in pair]
    tags = [{"item_id": item.id, **item.tags} for item in known("llmbar", pairs)]
    told = pl.DataFrame(tags).select(name for name in tags[0] if name in design.columns)
    told = told.with_columns(pl.Series("preferred", verdicts, dtype=pl.Float64))
    return pl.concat([design, told], how="diagonal")


@pytest.fixture(scope="module")
def seen() -> JudgeEvidence:
    return JudgeEvidence(rows(Judge(), SMALL, injections=6), identities=TWO, draws=10)


_STATES = {
    Outcome.DETECTED: "fail",
    Outcome.RULED_OUT: "pass",
    Outcome.INCONCLUSIVE: "inconclusive",
    Outcome.NOT_MEASURED: "not_measured",
}


def _check(seen: JudgeEvidence, said: Sequence[Verdicts]) -> Decided:
    return LlmBarCheck().check(replace(seen, rows=_asked(said)))


def _state(found: Decided) -> str:
    assert found.outcome is not None
    return _STATES[found.outcome]


def _at_least(k: int, n: int, share: float) -> float:
    """How likely k or more of n are, where each is so likely."""
    return sum(math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k, n + 1))


@pytest.mark.parametrize(
    ("right", "state"), [(100, "pass"), (70, "pass"), (69, "inconclusive"), (50, "inconclusive"),
                         (49, "fail"), (0, "fail")],
)  # fmt: skip
def test_a_judge_passes_or_fails_where_the_exact_binomial_test_shows_it(
    seen: JudgeEvidence, right: int, state: str
) -> None:
    """Of 100 pairs, against six in ten: both ends of the 95 % interval by their definition."""
    found = _check(seen, [RIGHT] * right + [FOOLED] * (100 - right))
    passes = _at_least(right, 100, 0.6) < 0.025
    fails = 1 - _at_least(right + 1, 100, 0.6) < 0.025
    assert _state(found) == state == ("pass" if passes else "fail" if fails else "inconclusive")
    assert (found.value, found.n) == (right / 100, 100)
    assert not LlmBarCheck().allowed(seen.margins).required


@pytest.mark.parametrize(("said", "name"), [(FIRST, "first"), (TIES, "ties"), (FOOLED, "fooled")])
def test_a_favourite_place_and_a_tie_are_right_about_no_pair(
    seen: JudgeEvidence, said: Verdicts, name: str
) -> None:
    """Eighty pairs, none right: the upper end is 1 − 0.025^(1/80)."""
    found = _check(seen, [said] * 80)
    assert (_state(found), found.value, found.details["missing"]) == ("fail", 0.0, 0), name
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 80))


def test_shares_are_given_by_kind_and_a_missing_verdict_is_a_wrong_one(seen: JudgeEvidence) -> None:
    """Of ten pairs five are of each kind: of the first all are right, of the other one is silent in
    one order and one is fooled."""
    found = _check(seen, [RIGHT, SILENT, RIGHT, FOOLED, *[RIGHT] * 6])
    assert found.details == {"bar": 0.6, "missing": 1, "kind 0": 1.0, "kind 1": 0.6}
    assert found.value == 0.8
    assert "8 of 10 pairs" in found.says
    assert "1 missing, counted as wrong" in found.says


def test_pairs_that_were_not_asked_are_not_checked_and_pass_nothing(seen: JudgeEvidence) -> None:
    found = LlmBarCheck().check(seen)
    assert (_state(found), found.value) == ("not_measured", None)
    assert found.says == "not checked (--known-pairs llmbar)"


@settings(max_examples=40)
@given(st.lists(st.sampled_from([RIGHT, FOOLED, FIRST, SILENT, TIES]), min_size=12, max_size=40),
       st.data())  # fmt: skip
def test_silence_makes_no_pass_and_no_fail(
    seen: JudgeEvidence, said: list[Verdicts], data: Any
) -> None:
    """Whatever was said of a pair, in either order: a lost verdict can only open a check."""
    lost = data.draw(st.sets(st.integers(0, 2 * len(said) - 1), min_size=1))
    after = [
        (None if 2 * n in lost else first, None if 2 * n + 1 in lost else second)
        for n, (first, second) in enumerate(said)
    ]
    before, now = _check(seen, said), _check(seen, after)
    unsure = (Outcome.INCONCLUSIVE, Outcome.NOT_MEASURED)
    assert now.outcome in unsure or now.outcome == before.outcome
    assert (now.value or 0) <= (before.value or 0)


def test_pairs_of_a_known_set_say_nothing_of_places_or_labels_and_one_fail_fails_the_whole() -> (
    None
):
    without = audited(rows(Judge(), SMALL, injections=6), TWO)
    found = audited(_asked([FIRST] * 60), TWO)
    for name in ("identity", "position", "identity_in_pairs", "injection", "readability"):
        assert found[name] == without[name]
    assert found["llmbar"].state == found.state == "fail"
    assert found["evalbiasbench"].state == "not_measured"


def _lost(given: pl.DataFrame, check: str, verdicts: int) -> pl.DataFrame:
    """The rows without the scores of the first so many of one part."""
    gone = (pl.col("check") == check) & ((pl.col("check") == check).cum_sum() <= verdicts)
    return given.with_columns(pl.when(~gone).then(pl.col(name)).alias(name) for name in SCORES)


def test_readable_pairs_do_not_make_up_for_unread_marks_of_the_design(seen: JudgeEvidence) -> None:
    """Of 1,976 and 180 judgements 118 are unread, 5.5 %; with 360 verdicts on pairs it would be
    4.7 %. Requests that are read do not make up for them either: of 1,976 alone it is 5.1 % with
    100 unread, with the requests 4.6 %."""
    pairs = _asked([RIGHT] * 180).filter(check="llmbar")
    assert len(pairs) == 360
    whole = rows(Judge())
    lost = _lost(whole, "design", 118)
    for asked in (lost, pl.concat([lost, pairs], how="diagonal")):
        found = CoverageCheck().check(replace(seen, rows=asked))
        assert (_state(found), found.value, found.n) == ("inconclusive", 2038 / 2156, 2156)
    found = CoverageCheck().check(replace(seen, rows=_lost(whole, "design", 100)))
    assert (_state(found), found.value) == ("inconclusive", 2056 / 2156)
    assert "fewest in part design: 1876 of 1976" in found.says
    assert _state(CoverageCheck().check(replace(seen, rows=_lost(whole, "design", 98)))) == "pass"


@pytest.mark.parametrize(("unread", "state"), [(10, "pass"), (11, "inconclusive")])
def test_what_is_read_of_the_design_does_not_make_up_for_unread_pairs(
    seen: JudgeEvidence, unread: int, state: str
) -> None:
    """Of 200 verdicts ten are 5 %. The number stays that of the design and the requests."""
    given = _lost(_asked([RIGHT] * 100), "llmbar", unread)
    found = CoverageCheck().check(replace(seen, rows=given))
    assert (_state(found), found.value) == (state, 1.0)
    assert ("fewest in part llmbar: 189 of 200" in found.says) is (state != "pass")


def test_a_set_has_a_checksum_of_its_texts_and_of_what_is_held_to_be_right(tmp_path: Path) -> None:
    def of_people(*lines: str) -> str:
        file = tmp_path / "people.jsonl"
        file.write_text("".join(f'{{"task": "Say yes.", {line}}}\n' for line in lines))
        return checksums(_results(labelled(file)))["human"]

    yes, no = '"text": "yes", "label": true', '"text": "no", "label": false'
    first = of_people(yes, no)
    assert of_people(no, yes) == first
    assert of_people(yes, no.replace("false", "true")) != first
    assert of_people(yes, no.replace("no", "nope")) != first
    one, other = (pair_of(id_, "kind", "Say yes.", (id_, "no"), 1) for id_ in ("1", "2"))
    pairs = [checksums(_results(known("llmbar", [pair]))) for pair in (one, other, one)]
    assert pairs[0] == pairs[2] != pairs[1]
    assert list(pairs[0]) == ["llmbar"]
    assert checksums(_results(known("llmbar", [one])), "a model") == pairs[0]


def _results(items: Sequence[Item]) -> pl.DataFrame:
    blank = {"check": "", "human": "", "order": ""}
    tags = [[{"name": k, "value": v} for k, v in sorted({**blank, **item.tags}.items())]
            for item in items]  # fmt: skip
    return pl.DataFrame({"prompt": [item.prompt for item in items], "tags": tags})


def test_the_command_asks_both_orders_and_the_certificate_says_so(
    evenhand: Run, tmp_path: Path, data_folder: Path
) -> None:
    """A judge of places is right about none of EvalBiasBench's 80 pairs."""
    if not (data_folder / "evalbiasbench").is_dir():
        pytest.skip(f"no evalbiasbench at {data_folder}; name its folder in EVENHAND_DATA")
    few = ("--bases", "2", "--pairs", "0", "--identities", "female,male", "--injections", "0")
    with in_own_process(Planted(slot="first")) as server:
        ran = evenhand("audit", "judge", *few, "--known-pairs", "evalbiasbench", "--out", "run",
                       EVENHAND_BASE_URL=server.url, EVENHAND_DATA=str(data_folder))  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    made = Certificate.from_bytes((tmp_path / "run/judge-certificate.json").read_bytes(), "it")
    checks = {check.name: check for check in made.checks}
    assert (checks["evalbiasbench"].state, checks["evalbiasbench"].n) == ("fail", 80)
    assert checks["llmbar"].state == "not_measured"
    assert made.benchmark["probes"]["evalbiasbench"] == 160
    assert "llmbar" not in made.benchmark["probes"]
    assert list(made.benchmark["probes"]["sets"]) == ["evalbiasbench"]


@pytest.mark.parametrize("listed", ["mtbench", "", ","])
def test_a_set_that_there_is_not_is_refused_with_those_that_there_are(
    evenhand: Run, listed: str
) -> None:
    ran = evenhand("audit", "judge", "--known-pairs", listed, "--out", "run")
    assert ran.returncode == 1
    assert "llmbar, evalbiasbench" in " ".join(ran.stderr.split())
