"""A sweep of debates: one thing varied at a time, worked by hand."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.experiments.debating import write_once
from evenhand.training.debates.building import from_statements
from evenhand.training.debates.debate import first_of, roles_of
from evenhand.training.debates.pairs import Pairing, Split
from evenhand.training.debates.sweep import DebateArm, first_topics, read_plan
from evenhand.training.debates.topics import bias_types
from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names, raises_naming
from tests.loopback.process import RemoteServer, in_own_process
from tests.training.debates.planted import everything, statement
from tests.training.debates.speakers import Speakers

__all__ = ["endpoint", "evenhand"]  # the fixtures

PLAN = """
[usual]
roles = 3
rounds = 2
topics = 2
pairs = 8
[vary]
roles = [2, 3, 4]
rounds = [1, 3]
topics = [1]
pairs = [1]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[RemoteServer]:
    with in_own_process(Speakers()) as server:
        yield server


def test_the_plan_of_the_paper_is_fifteen_settings_around_the_best(tmp_path: Path) -> None:
    """3 + 3 + 4 + 4 other values and the usual: 15 settings, and four numbers of roles to debate:
    the usual one in ten rounds about 2,500 topics, the others in five about 2,000."""
    plan = read_plan()
    arms = plan.arms()
    assert len(arms) == 15
    assert arms["usual"] == DebateArm(roles=3, rounds=5, topics=2000, pairs=5000)
    assert arms["rounds-10"] == DebateArm(roles=3, rounds=10, topics=2000, pairs=5000)
    assert plan.debates() == {3: (10, 2500), 2: (5, 2000), 4: (5, 2000), 5: (5, 2000)}
    assert all(len(kind.roles) + len(kind.more) == 5 for kind in bias_types().values())
    (tmp_path / "plan.toml").write_text(PLAN.replace("pairs = 8", "pairs = 0"))
    with raises_naming(UserError, "plan.toml", "usual.pairs"):
        read_plan(tmp_path / "plan.toml")


def test_a_long_debate_about_many_topics_holds_the_short_one_about_few() -> None:
    said = [
        statement(10 * topic + number, 1, topic=f"t{topic}", round=number, bias_type=kind)
        for topic, kind in enumerate(("age", "beauty", "age", "age"))
        for number in (1, 2, 3)
    ]
    kept = first_of(said, rounds=2, topics=2)
    assert [(one.topic, one.round) for one in kept] == [
        ("t0", 1), ("t0", 2), ("t1", 1), ("t1", 2), ("t2", 1), ("t2", 2),
    ]  # fmt: skip
    assert first_of(said) == said
    topics = [Item(id=str(n), prompt="t", tags={"bias_type": kind})
              for n, kind in enumerate(("age", "beauty", "age"))]  # fmt: skip
    assert [one.id for one in first_topics(topics, 1)] == ["0", "1"]
    with raises_naming(UserError, "2 topics", "beauty has 1", "--count"):
        first_topics(topics, 2)


def test_fewer_pairs_to_train_on_are_among_the_more_and_leave_those_held_out_alone() -> None:
    said = [
        statement(10 * topic + number, score, topic=f"thing{topic} word{topic}")
        for topic in range(12)
        for number, score in enumerate((9, 8, 1, 0))
    ]
    every, some, one = (
        from_statements(said, Pairing(), Split(test_share=0.3, train_pairs=most))
        for most in (None, 10, 3)
    )
    assert len(everything(every)) == 48  # four of each topic
    assert [len(built.pairs["train"]) for built in (some, one)] == [10, 3]
    words = [{pair.chosen + pair.rejected for pair in built.pairs["train"]}
             for built in (one, some, every)]  # fmt: skip
    assert words[0] < words[1] < words[2]
    assert every.pairs["test"] == some.pairs["test"] == one.pairs["test"] != []
    assert len({pair.topic for pair in one.pairs["train"]}) == 3  # topics in turn


def test_a_sweep_debates_each_number_of_roles_once_and_takes_the_rest_from_it(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    """Scores by age: 20 has 6, 40 has 4, 60 has 2, 14 has 5, one less each round; high is above 3.
    Both topics are debated in the same words, which make pairs once. Calls: 2 topics × (3 rounds ×
    4 + 2 × 3 + 2 × 5)."""
    (tmp_path / "plan.toml").write_text(PLAN)
    usual, more = "a 20-year-old|a 40-year-old|a 60-year-old", "a 14-year-old"
    tags = {"bias_type": "age", "roles": usual, "more_roles": more}
    lines = [{"id": str(n), "prompt": f"thing {n}", "tags": tags} for n in (1, 2)]
    (tmp_path / "topics.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    command = (
        "train",
        "debate",
        "sweep",
        "topics.jsonl",
        "--plan",
        "plan.toml",
        "--out",
        "sweep",
        "--json",
    )
    ran = evenhand(*command, EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 0, ran.stderr
    assert server.read().outcomes["said"] == 56
    arms = {one["arm"]: one for one in json.loads(ran.stdout)["arms"]}
    found = {
        name: (one["statements"], one["high"], one["train_pairs"]) for name, one in arms.items()
    }
    assert found == {
        "usual": (12, pytest.approx(3 / 6), 8),  # 3 high × 3 low are 9
        "roles-2": (8, pytest.approx(3 / 4), 3),
        "roles-4": (16, pytest.approx(5 / 8), 8),
        "rounds-1": (6, pytest.approx(2 / 3), 2),
        "rounds-3": (18, pytest.approx(4 / 9), 8),
        "topics-1": (6, None, 8),  # one topic has no interval, and its share says little
        "pairs-1": (12, pytest.approx(3 / 6), 1),
    }
    again = evenhand(*command[:-1], EVENHAND_BASE_URL=server.url)
    assert again.returncode == 0, again.stderr
    assert server.read().outcomes["said"] == 56
    assert_names(again.stdout, "roles-2 (8)", "rounds-1 (8)")


def test_pairs_of_another_plan_are_left_alone(tmp_path: Path) -> None:
    said = [statement(number, score) for number, score in enumerate((9, 8, 1, 0))]
    four, one = (from_statements(said, Pairing(), Split(train_pairs=most)) for most in (None, 1))
    for _ in range(2):
        write_once(tmp_path / "pairs", four)
    with raises_naming(UserError, "pairs", "--out"):
        write_once(tmp_path / "pairs", one)


def test_more_roles_than_a_topic_names_are_refused_by_its_name() -> None:
    topic = Item(id="7", prompt="t", tags={"bias_type": "age", "roles": "a|b", "more_roles": "c"})
    assert roles_of(topic) == ["a", "b"]
    assert roles_of(topic, 3) == ["a", "b", "c"]
    with raises_naming(UserError, "item 7", 4, 3):
        roles_of(topic, 4)
