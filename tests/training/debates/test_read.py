"""Statements read back from a run folder, and what a run of debates is said to be good for."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand import aio, replay_of
from evenhand.agents import Cast
from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.methods import DefaultPrompt
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.store import RunReader
from evenhand.training.debates.debate import Debate, Statement, statements
from evenhand.training.debates.findings import Rounds, debates
from evenhand.views import page_of
from tests.coded import coded, codes
from tests.errors import raises_naming
from tests.stage import words_of

ROLES = {"age": "a boy|a man", "looks": "a plain man|a handsome man|a tall man"}
Scores = Callable[[str], int]


def _topics(*named: str) -> list[Item]:
    items = []
    for name in named:
        kind = "looks" if name.startswith("looks") else "age"
        tags = {"topic": name, "bias_type": kind, "roles": ROLES[kind]}
        items.append(Item(id=name, prompt=name, tags=tags))
    return items


def _judged(words: str, score: Scores) -> str:
    texts = [part.partition("\n</statement>")[0] for part in words.split("<statement>\n")[1:]]
    scores = [score(text) for text in texts]
    numbers = range(1, len(texts) + 1)
    ranking = sorted(numbers, key=lambda number: scores[number - 1])
    return json.dumps({"reasons": texts, "ranking": ranking, "scores": scores})


def _cast(score: Scores, speak: Callable[[str, int], str] | None = None) -> Cast:
    """Debaters who say who they are and which round it is; a referee who goes by the words."""

    def debater(request: ModelRequest) -> str:
        words = words_of(request)
        who = words.rpartition("You are ")[2].partition(".")[0]
        number = 2 if "The last round" in words else 1
        return speak(who, number) if speak else f"I am {who}, round {number}."

    def referee(request: ModelRequest) -> str:
        words = words_of(request)
        return "hm" if "broken" in words else _judged(words, score)

    return Cast(
        ScriptedModel(debater, name="speaker"),
        {"referee": ScriptedModel(referee, name="whistle")},
    )


def _by_role_and_round(text: str) -> int:
    """The boy 6, then 3; the man 4, then 1; the others 3, then 0."""
    first = 6 if "boy" in text else 4 if "a man" in text else 3
    return first - 3 * ("round 2" in text)


async def _run(tmp_path: Path, cast: Cast, topics: list[Item], **settings: int) -> RunReader:
    method = Debate(rounds=2, **settings)  # type: ignore[arg-type]
    made = await aio.mitigate(topics, model=cast, method=method, out=tmp_path / "run")
    return made.reader


async def test_statements_come_back_as_they_were_scored(tmp_path: Path) -> None:
    run = await _run(tmp_path, _cast(_by_role_and_round), _topics("buses", "broken", "looks tea"))
    found = statements(run)
    assert [(s.topic, s.bias_type, s.role, s.round, s.score, s.rank) for s in found] == [
        ("buses", "age", "a boy", 1, 6.0, 2),
        ("buses", "age", "a man", 1, 4.0, 1),
        ("buses", "age", "a boy", 2, 3.0, 2),
        ("buses", "age", "a man", 2, 1.0, 1),
        # Equal scores are ranked by place: handsome, tall, plain; then tall, plain, handsome.
        ("looks tea", "looks", "a plain man", 1, 3.0, 3),
        ("looks tea", "looks", "a handsome man", 1, 3.0, 1),
        ("looks tea", "looks", "a tall man", 1, 3.0, 2),
        ("looks tea", "looks", "a plain man", 2, 0.0, 2),
        ("looks tea", "looks", "a handsome man", 2, 0.0, 3),
        ("looks tea", "looks", "a tall man", 2, 0.0, 1),
    ]
    second = Statement(
        topic="buses",
        bias_type="age",
        role="a boy",
        round=2,
        text="I am a boy, round 2.",
        score=3.0,
        rank=2,
        referee="whistle",
        debater="speaker",
        prompts=run.record.prompts,
        run=str(tmp_path / "run"),
    )
    assert found[2] == second
    assert sorted(found[0].prompts) == ["rldf/debater@3", "rldf/referee@2"]


async def test_a_run_of_something_else_is_refused(tmp_path: Path) -> None:
    run = await aio.mitigate(
        ["hi"],
        model=ScriptedModel(lambda _: "x"),
        method=DefaultPrompt(),
        out=tmp_path / "run",
    )
    with raises_naming(UserError, "run", "train debate run"):
        statements(run.reader)


async def test_a_replay_has_the_same_bytes(tmp_path: Path) -> None:
    topics = _topics("buses", "broken", "looks tea", "rent")
    first = await _run(tmp_path, _cast(_by_role_and_round), topics, referees=2)
    again = await aio.mitigate(
        topics,
        model=replay_of(first.path),
        method=Debate(rounds=2, referees=2),
        out=tmp_path / "again",
    )
    parts = [sorted(Path(run.path).glob("results/*")) for run in (first, again)]
    assert [part.read_bytes() for part in parts[0]] == [part.read_bytes() for part in parts[1]]
    assert parts[0]


# -- what it is good for -------------------------------------------------------------------------


async def test_the_summary_is_as_worked_by_hand(tmp_path: Path) -> None:
    """Scores of the two debates: 6 4 3 1 and 3 3 3 0 0 0. Two of ten are above 3."""
    run = await _run(tmp_path, _cast(_by_role_and_round), _topics("buses", "looks tea"))
    found = debates(run)
    assert found.statements == 10
    assert {k: n for k, n in found.distribution.items() if n} == {
        "0": 3,
        "1": 1,
        "3": 4,
        "4": 1,
        "6": 1,
    }
    assert found.high.value == pytest.approx(0.2)
    assert found.high.clusters == 2
    assert [e.value for e in found.mean_by_round] == pytest.approx([19 / 5, 4 / 5])
    means = {entry.bias_type: entry.mean.value for entry in found.by_type}
    assert means == pytest.approx({"age": 3.5, "looks": 1.5})
    assert found.topics_with_both == 1
    assert found.rounds == Rounds(
        rounds=4, all_equal=2, same_words=0, unranked=0, rank_against_score=0
    )
    assert found.agreement is None


async def test_a_referee_who_gives_all_the_same_score_is_said_to_tell_nothing(
    tmp_path: Path,
) -> None:
    run = await _run(tmp_path, _cast(lambda _: 3), _topics("buses", "rent"), referees=2)
    found = debates(run)
    assert codes(found.problems) == [
        "debates.one_score",
        "debates.referee",
        "debates.no_pairs",
    ]
    assert found.agreement is not None
    assert found.agreement.ordinal_alpha is None
    assert "0/0" in (found.agreement.undefined or "")


async def test_roles_that_say_the_same_words_are_no_roles(tmp_path: Path) -> None:
    cast = _cast(_by_role_and_round, speak=lambda _, number: f"As a boy, round {number}.")
    found = debates(await _run(tmp_path, cast, _topics("buses", "rent")))
    assert "debates.same_words" in codes(found.problems)


async def test_a_referee_with_a_liking_for_the_first_place_disagrees_with_itself(
    tmp_path: Path,
) -> None:
    """It marks by place: 1 for the first, 9 for the second. Read in the other order each statement
    gets the other mark, so alpha is negative and every mean is 5."""
    cast = _cast(_by_role_and_round)

    def by_place(request: ModelRequest) -> str:
        return json.dumps({"reasons": ["", ""], "ranking": [1, 2], "scores": [1, 9]})

    cast = Cast(cast.default, {"referee": ScriptedModel(by_place)})
    found = debates(await _run(tmp_path, cast, _topics("buses", "rent"), referees=2))
    assert found.agreement is not None
    assert (found.agreement.ordinal_alpha or 0) < 0
    assert found.agreement.statements == 8
    assert coded(found.problems, "debates.referee")["alpha"] < 0


async def test_a_steady_referee_with_both_kinds_of_statements_is_of_use(tmp_path: Path) -> None:
    topics = _topics("buses", "rent", "tea")
    found = debates(await _run(tmp_path, _cast(_by_role_and_round), topics, referees=2))
    assert found.problems == ()
    assert found.agreement is not None
    assert found.agreement.ordinal_alpha == pytest.approx(1.0)


async def test_a_ranking_against_the_scores_is_counted(tmp_path: Path) -> None:
    """The scores rise with the place, the ranking says the opposite."""

    def contrary(request: ModelRequest) -> str:
        return json.dumps({"reasons": ["", ""], "ranking": [2, 1], "scores": [2, 8]})

    cast = Cast(_cast(_by_role_and_round).default, {"referee": ScriptedModel(contrary)})
    found = debates(await _run(tmp_path, cast, _topics("buses", "rent")))
    assert found.rounds.rank_against_score == 4


async def test_debates_that_all_failed_give_no_statement_and_say_so(tmp_path: Path) -> None:
    run = await _run(tmp_path, _cast(_by_role_and_round), _topics("broken"))
    assert statements(run) == []
    found = debates(run)
    assert codes(found.problems) == ["debates.none"]
    assert page_of(found)
