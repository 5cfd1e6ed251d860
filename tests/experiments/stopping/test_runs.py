"""A run that stops when its question is decided: planted answers whose truth is known."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.core.errors import UserError
from evenhand.experiments.stopping import StoppingQuestion, until_decided
from evenhand.findings.comparison import compare
from evenhand.findings.estimates import Estimate
from evenhand.findings.report import Report, report
from evenhand.findings.sequential import StoppingStatus
from evenhand.instruments import DataFolder
from evenhand.runs.store import RunReader
from evenhand.statistics.sequences import anytime_mean
from evenhand.views.files import to_json
from tests.coded import coded, codes
from tests.errors import raises_naming
from tests.experiments.stopping import planted
from tests.experiments.stopping.planted import Planted


def _leaning(template: int, question: int) -> str:
    """Three in four for the stereotype, one for neither: a lean of 0.75, or 1 of the small ones."""
    return "C" if question == 3 else "A"


def _even(template: int, question: int) -> str:
    """As often for the stereotype as against it, in every template: no lean at all."""
    return "AB"[question % 2]


def _split(template: int, question: int) -> str:
    """Half of the templates lean one way, half the other: too much spread for a small margin."""
    return "A" if template % 2 else "B"


def _stopped(found: Report | None) -> tuple[Report, StoppingStatus, Estimate]:
    assert found is not None
    assert found.stopped is not None
    return found, found.stopped, found["lean"]


def _drawn(seed: int = 0, templates: int = 200) -> list[int]:
    """The order of the templates, by a second route."""

    def key(one: int) -> bytes:
        return hashlib.sha256(f"{seed}:t{one}".encode()).digest()

    return sorted(range(templates), key=key)


def _by_hand(
    answers: planted.Answers, clusters: int, of: float | None = None, templates: int = 200
) -> tuple[float, float]:
    """The interval after so many templates in their order, from the planted answers themselves."""
    worth = {"A": 1.0, "B": -1.0, "C": 0.0}
    low, high, weights = [], [], []
    for one in _drawn(templates=templates)[:clusters]:
        said = [answers(one, question) for question in range(2 if one % 10 == 9 else 4)]
        low.append(np.mean([worth.get(word, -1.0) for word in said]))
        high.append(np.mean([worth.get(word, 1.0) for word in said]))
        weights.append(len(said) / 4)
    found = anytime_mean(low, high, weights=weights, of=of)
    return found.low, found.high


def test_a_lean_is_decided_early_and_the_report_says_where_why_and_what_was_saved(
    tmp_path: Path,
) -> None:
    asked = planted.model(_leaning)
    found, stopped, lean = _stopped(
        planted.run(tmp_path / "run", _leaning, "lean=0.3", asked=asked).report
    )
    assert stopped.verdict == "detected"
    assert found.verdict.state == "detected"
    decided = next(n for n in range(10, 201, 10) if _by_hand(_leaning, n)[0] >= 0.3)
    assert (stopped.clusters, stopped.looks) == (decided, decided // 10)
    assert (lean.low, lean.high) == pytest.approx(_by_hand(_leaning, decided))
    items = sum(2 if one % 10 == 9 else 4 for one in _drawn()[:decided])
    assert asked.requests == items == stopped.items
    assert (stopped.of_items, stopped.calls_saved) == (760, 760 - items)
    assert found.not_run == 0
    said = coded(found.verdict.says, "until.stopped")
    assert (said["clusters"], said["of_clusters"], said["unit"]) == (decided, 200, "templates")
    assert said["calls_saved"] == 760 - items
    decision = {"margin": 0.3, "more": True, "from_none": True}
    assert coded(found.verdict.says, "until.decided") == decision


def test_measure_in_python_stops_where_the_command_does(tmp_path: Path) -> None:
    asked = planted.model(_leaning)
    made = eh.measure(Planted(), model=asked, out=tmp_path / "python", stop_when="lean=0.3", seed=3)
    again = planted.run(tmp_path / "run", _leaning, "lean=0.3", seed=3).report
    stopped, same = _stopped(made)[1], _stopped(again)[1]
    assert stopped == same
    assert asked.requests == stopped.items < 760
    these = eh.measure(Planted(), model=asked, out=tmp_path / "these", stop_when="lean=0.3",
                       finite_population=True, seed=3)  # fmt: skip
    assert _stopped(these)[1].these
    assert not stopped.these


def test_in_python_what_decides_nothing_is_refused(tmp_path: Path) -> None:
    given: Any = {"model": planted.model(_leaning), "out": tmp_path / "run"}
    with raises_naming(UserError, "finite_population"):
        eh.measure(Planted(), **given, finite_population=True)
    with raises_naming(UserError, "planted", "'leen'", "lean, named, ratio"):
        eh.measure(Planted(), **given, stop_when="leen=0.3")
    with raises_naming(UserError, "'until'"):
        eh.frontier("bbq", **{**given, "until": "s_amb=0.1"})
    assert not list(tmp_path.iterdir())


def test_the_report_has_no_number_of_a_fixed_size(tmp_path: Path) -> None:
    found, stopped, lean = _stopped(planted.run(tmp_path / "run", _leaning, "lean=0.3").report)
    assert (lean.p, lean.p_small, lean.p_holm) == (None, None, None)
    for name in ("ratio", "of_named"):
        assert found[name].value is None
        assert "may stop early" in (found[name].undefined or "")
    small = np.array([one % 10 == 9 for one in _drawn()[: stopped.clusters]])
    named = anytime_mean(np.where(small, 1, 0.75), within=(0, 1), weights=np.where(small, 0.5, 1))
    assert (found["named"].low, found["named"].high) == pytest.approx((named.low, named.high))
    assert (found.groups, found.sections) == ({}, ())
    written: dict[str, Any] = json.loads(to_json(found))
    assert written["stopped"]["calls_saved"] > 0
    assert written["source"]["until"] == {"measure": "lean", "margin": 0.3, "these": False,
                                          "order_seed": 0, "block": 10}  # fmt: skip
    fixed = planted.run(tmp_path / "all", _leaning, None).report
    assert fixed is not None
    assert fixed["lean"].high < lean.high  # type: ignore[operator]


def test_no_lean_is_shown_to_be_within_the_margin(tmp_path: Path) -> None:
    found, stopped, _ = _stopped(planted.run(tmp_path / "run", _even, "lean=0.2").report)
    assert stopped.verdict == "ruled_out"
    assert found.verdict.state == "ruled_out"
    assert 0 < stopped.clusters < 200


def test_what_varies_too_much_is_asked_to_the_end_and_stays_open(tmp_path: Path) -> None:
    ran = planted.run(tmp_path / "run", _split, "lean=0.05", templates=55)
    found, stopped, lean = _stopped(ran.report)
    assert (stopped.verdict, stopped.clusters, stopped.calls_saved) == ("inconclusive", 55, 0)
    assert stopped.looks == 6  # the last block is a half
    assert found.verdict.state == "inconclusive"
    assert (lean.low, lean.high) == pytest.approx(_by_hand(_split, 55, templates=55))
    assert "until.all_asked" in codes(found.verdict.says)


def test_of_exactly_these_templates_it_is_known_sooner_and_said_to_be_of_these(
    tmp_path: Path,
) -> None:
    found, stopped, lean = _stopped(
        planted.run(tmp_path / "run", _split, "lean=0.2", these=True).report
    )
    assert stopped.verdict == "ruled_out"
    assert stopped.clusters < 200
    assert (lean.low, lean.high) == pytest.approx(_by_hand(_split, stopped.clusters, of=190.0))
    assert coded(found.verdict.says, "until.these") == {"clusters": 200, "unit": "templates"}


@pytest.mark.parametrize(("answers", "margin"), [(_leaning, 0.3), (_even, 0.2)])
def test_a_failure_never_ends_a_run_earlier(
    tmp_path: Path, answers: planted.Answers, margin: float
) -> None:
    whole = _stopped(planted.run(tmp_path / "0", answers, f"lean={margin}").report)[1]
    first = _drawn()[:30]

    def failing(template: int, question: int) -> str:
        return "" if template in first[::3] and question == 1 else answers(template, question)

    found, stopped, lean = _stopped(planted.run(tmp_path / "1", failing, f"lean={margin}").report)
    assert stopped.clusters > whole.clusters
    assert (lean.low, lean.high) == pytest.approx(_by_hand(failing, stopped.clusters))
    assert lean.bounds is not None
    assert lean.bounds.missing == 10
    assert found.verdict.state in ("detected", "ruled_out")


def test_who_fails_every_call_decides_nothing(tmp_path: Path) -> None:
    failed = planted.run(tmp_path / "run", lambda *_: "", "lean=0.3", templates=30)
    found, stopped, lean = _stopped(failed.report)
    assert (stopped.verdict, stopped.clusters) == ("inconclusive", 30)
    assert (lean.value, found.verdict.state) == (None, "inconclusive")


def test_a_run_that_was_broken_off_goes_on_to_the_same_end_and_a_finished_one_asks_nobody(
    tmp_path: Path,
) -> None:
    straight = _stopped(planted.run(tmp_path / "0", _leaning, "lean=0.3").report)
    asked, calls = planted.model(_leaning), (13, 50, 61, 10_000)
    for most in calls:  # in the middle of blocks, and in the middle of an item's neighbours
        found = planted.run(tmp_path / "1", _leaning, "lean=0.3", asked=asked, max_calls=most)
    again = _stopped(found.report)
    assert again[1] == straight[1]
    assert again[2] == straight[2]
    assert asked.requests == straight[1].items
    nobody = planted.model(lambda *_: "")
    done = planted.run(tmp_path / "1", _leaning, "lean=0.3", asked=nobody)
    assert _stopped(done.report)[1] == straight[1]
    assert nobody.requests == 0


def test_an_unfinished_run_says_how_far_it_is_and_decides_nothing(tmp_path: Path) -> None:
    part = planted.run(tmp_path / "run", _leaning, "lean=0.3", max_calls=50)
    found, stopped, _ = _stopped(part.report)
    assert (stopped.clusters, stopped.verdict, stopped.ended) == (10, "inconclusive", False)
    assert found.not_run == 760 - 50
    first = planted.run(tmp_path / "first", _leaning, "lean=0.3", max_calls=7)
    found, stopped, lean = _stopped(first.report)
    assert (stopped.clusters, lean.value, lean.low) == (0, None, None)


def test_what_a_pilot_answered_before_moves_neither_order_nor_decision(tmp_path: Path) -> None:
    straight = _stopped(planted.run(tmp_path / "0", _leaning, "lean=0.3").report)
    dry = planted.run(tmp_path / "1", _leaning, "lean=0.3", pilot=50)
    assert dry.ended.pilot is not None
    after = _stopped(planted.run(tmp_path / "1", _leaning, "lean=0.3").report)
    assert after[2] == straight[2]
    assert after[1].clusters == straight[1].clusters
    assert after[1].items > straight[1].items


def test_another_seed_draws_another_order_and_a_full_run_can_be_replayed(tmp_path: Path) -> None:
    planted.run(tmp_path / "all", _leaning, None)
    replayed = planted.run(tmp_path / "0", _leaning, "lean=0.3", replay=tmp_path / "all")
    live = planted.run(tmp_path / "1", _leaning, "lean=0.3")
    assert _stopped(replayed.report)[1:] == _stopped(live.report)[1:]
    planted.run(tmp_path / "2", _leaning, "lean=0.3", seed=7)
    orders = [RunReader(tmp_path / name).record.source["until"]["order"] for name in "12"]
    assert orders[0] == [f"t{one}" for one in _drawn()]
    assert orders[1] == [f"t{one}" for one in _drawn(7)]


def test_the_margin_cannot_be_moved_after_looking(tmp_path: Path) -> None:
    planted.run(tmp_path / "run", _leaning, "lean=0.3")
    for until in ("lean=0.5", "named=0.3", None):
        with raises_naming(UserError, tmp_path / "run", "--out"):
            planted.run(tmp_path / "run", _leaning, until)


def test_it_is_no_run_of_a_fixed_size_for_anybody_else(tmp_path: Path) -> None:
    for name, until in (("early", "lean=0.3"), ("all", None)):
        planted.run(tmp_path / name, _leaning, until)
    early, whole = RunReader(tmp_path / "early"), RunReader(tmp_path / "all")
    for pair in ((early, whole), (whole, early)):
        with raises_naming(UserError, early.path, "without --stop-when"):
            compare(Planted(), *pair)
    assert report(Planted(), early).stopped is not None


@pytest.mark.parametrize(
    ("until", "facts"),
    [
        ("ratio=0.1", ("ratio", "not a mean")),
        ("of_named=0.1", ("of_named", "on the answers")),
        ("lean", ("--stop-when", "s_amb=0.05")),
        ("lean=0", ("a margin", "above 0")),
        ("lean=1", ("margin of 1", "lean")),
        ("other=0.1", ("'other'", "lean, named, ratio", "of_named")),
    ],
)
def test_what_cannot_be_decided_this_way_is_refused_before_anything_is_asked(
    until: str, facts: tuple[str, ...]
) -> None:
    source = Planted().source(DataFolder(local=None, cache=Path()), None)
    with raises_naming(UserError, *facts):
        until_decided(Planted(), source, StoppingQuestion(until), seed=None)


def test_answers_that_are_alike_in_two_ways_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Planted, "also_clusters", ("item_id",))
    source = Planted().source(DataFolder(local=None, cache=Path()), None)
    with raises_naming(UserError, "lean", "templates", "--stop-when"):
        until_decided(Planted(), source, StoppingQuestion("lean=0.1"), seed=None)


def test_rows_of_results_are_what_the_report_rests_on(tmp_path: Path) -> None:
    """The estimate is the plain mean of the answers that were asked, each weighing the same."""
    _, _, lean = _stopped(planted.run(tmp_path / "run", _leaning, "lean=0.3").report)
    rows = RunReader(tmp_path / "run").results().select("choice").collect()
    mean = rows.select(pl.col("choice").replace_strict({0: 1, 1: -1, 2: 0}).mean()).item()
    assert lean.value == pytest.approx(mean)
