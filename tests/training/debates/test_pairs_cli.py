"""`evenhand train pairs …` as a user runs it."""

import json
from pathlib import Path

import polars as pl
import pytest

from evenhand.core import Item
from evenhand.methods import StarDTox
from evenhand.training.debates.dataset import trained_topics
from evenhand.training.debates.debate import Debate
from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names
from tests.stage import harm

from .repaired import written

__all__ = ["endpoint", "evenhand"]  # the fixtures

# By topic, what the boy and the man say and how the referee scores it, in the order said: it sees
# the man first.
SCORES = {"cats": (8, 1), "dogs": (5, 0), "horses": (2, 2), "pigs": (9, 3)}


@pytest.fixture
async def debated(tmp_path: Path) -> Path:
    items = [
        Item(id=topic, prompt=topic, tags={"bias_type": "age", "roles": "a boy|a man"})
        for topic in SCORES
    ]
    lines = {
        topic: {
            "debater": [f"As a boy, I say {topic} one", f"The {topic} two of it all"],
            "referee": [_verdict(man, boy)],
        }
        for topic, (boy, man) in SCORES.items()
    }
    await written(tmp_path / "debates", Debate(rounds=1), items, lines)
    return tmp_path / "debates"


def _verdict(*scores: int) -> str:
    reasons = ["so it is" for _ in scores]
    return json.dumps({"reasons": reasons, "ranking": [1, 2], "scores": scores})


def _pairs(folder: Path) -> list[dict[str, object]]:
    return pl.read_parquet(folder / "*/*.parquet").to_dicts()


def test_debates_become_pairs(evenhand: Run, debated: Path, tmp_path: Path) -> None:
    ran = evenhand(
        "train", "pairs", "from-debates", "debates", "--out", "pairs", "--test-share", "0.3"
    )
    assert ran.returncode == 0, ran.stderr
    rows = {str(row["topic"]): row for row in _pairs(tmp_path / "pairs")}
    assert {topic: row["margin"] for topic, row in rows.items()} == {
        "cats": 0.7,
        "dogs": 0.5,
        "pigs": pytest.approx(0.6),
    }
    cats = "I say cats one"
    assert rows["cats"]["rejected"] == [{"role": "assistant", "content": cats}]
    assert (rows["cats"]["role_chosen"], rows["cats"]["run"]) == ("a man", "debates")
    shown = " ".join(ran.stdout.split())
    assert_names(shown, "3 high", "5 low")
    assert_names(shown, "100.0%")
    assert_names(shown, "pair: 1")
    assert_names(shown, "same_topic 3", "same_round 3", "same_role 0")
    assert 1 <= len(trained_topics(tmp_path / "pairs")) <= 2


def test_json_is_the_report_of_the_folder(evenhand: Run, debated: Path, tmp_path: Path) -> None:
    ran = evenhand("train", "pairs", "from-debates", "debates", "--out", "pairs", "--json")
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert json.loads((tmp_path / "pairs/pairs.json").read_bytes()) == report
    assert sum(report["pairs"]["train"].values()) + sum(report["pairs"]["test"].values()) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--strategy", "same_role"), "there are some with --strategy same_topic or same_round"),
        (("--threshold", "9.5"), "the scores go from 0 to 9: set --threshold between"),
        (("--min-gap", "10"), "lower --min-gap"),
        (("--match-lengths",), "out --match-lengths"),
    ],
)
def test_without_a_pair_nothing_is_written_and_the_way_out_is_said(
    evenhand: Run, debated: Path, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    ran = evenhand("train", "pairs", "from-debates", "debates", "--out", "pairs", *options)
    assert ran.returncode == 1
    assert said in " ".join(ran.stderr.split())
    assert not (tmp_path / "pairs").exists()


def test_a_folder_that_is_there_is_left_alone(evenhand: Run, debated: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs/mine.txt").write_text("keep")
    ran = evenhand("train", "pairs", "from-debates", "debates", "--out", "pairs")
    assert ran.returncode == 1
    assert_names(ran.stderr, "pairs", "--out")
    assert [file.name for file in (tmp_path / "pairs").iterdir()] == ["mine.txt"]


async def test_a_repair_becomes_a_pair(evenhand: Run, tmp_path: Path) -> None:
    lines = {
        "alpha": {"generator": ["alpha rude", "alpha kind"], "bias_evaluator": [harm(90), harm(0)]}
    }
    items = [Item(id="1", prompt="alpha asks", tags={"category": "Age"})]
    await written(tmp_path / "run", StarDTox(performance=False), items, lines)
    ran = evenhand("train", "pairs", "from-run", "run", "--out", "pairs", "--license", "apache-2.0")
    assert ran.returncode == 0, ran.stderr
    (row,) = _pairs(tmp_path / "pairs")
    assert (row["source"], row["bias_type"], row["margin"]) == ("stardtox", "age", 0.9)
    assert_names(ran.stdout, "used: 1 repaired", "used: none")
    assert "license: apache-2.0" in (tmp_path / "pairs/README.md").read_text()


def test_items_become_pairs(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(
        "bias_type,context,anti_stereotype,stereotype,unrelated\n"
        "beauty,She looks BLANK; she is wise.,plain,pretty,solemn\n"
    )
    ran = evenhand("train", "pairs", "from-items", "items.csv", "--out", "pairs")
    assert ran.returncode == 0, ran.stderr
    (row,) = _pairs(tmp_path / "pairs")
    looks = "She looks pretty; she is wise."
    assert row["rejected"] == [{"role": "assistant", "content": looks}]
    assert "items read: 1" in ran.stdout


def test_a_run_of_another_kind_says_what_to_give(evenhand: Run, debated: Path) -> None:
    ran = evenhand("train", "pairs", "from-run", "debates", "--out", "pairs", "--json")
    assert ran.returncode == 1
    error = json.loads(ran.stdout)["error"]
    assert error["reason"] == "user_error"
    assert_names(error["message"], "debates", "run of debate")
