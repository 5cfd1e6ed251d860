"""A function of Python gives what the command of its name gives."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from cli.conftest import Run, endpoint, evenhand
from debates.speakers import Speakers
from errors import raises_naming
from evenhand.scorers import Unscored
from evenhand.views.files import plain
from loopback.process import RemoteServer, in_own_process

__all__ = ["endpoint", "evenhand"]  # the fixtures


def printed(evenhand: Run, *arguments: str) -> Any:
    """The JSON that a command prints."""
    ran = evenhand(*arguments, "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


# -- scorers --------------------------------------------------------------------------------------


def test_the_list_of_scorers_is_that_of_the_command(evenhand: Run) -> None:
    lines = [
        {"name": line.name, "kind": line.kind, **({"says": line.says} if line.says else {})}
        for line in eh.scorers_list()
    ]
    assert lines == printed(evenhand, "scorers", "list")
    assert [line["name"] for line in lines][:3] == ["offline", "wordlist", "regard"]


def test_texts_get_the_scores_of_the_command(evenhand: Run) -> None:
    texts = ["You idiot.", "Good day."]
    scored = eh.scorers_score("wordlist", texts)
    assert scored.values("toxicity") == [0.45, 0.0]
    assert scored.coverage == 1.0
    rows = printed(evenhand, "scorers", "score", "wordlist", *texts)
    assert [row["scores"]["toxicity"] for row in rows] == [0.45, 0.0]


async def test_a_text_without_a_score_is_missing_and_no_text_is_refused() -> None:
    scored = await eh.aio.scorers_score("wordlist", ["Good day.", " "])
    assert scored.coverage == 0.5
    assert isinstance(scored.outcomes[1], Unscored)
    with raises_naming(eh.UserError, "no texts"):
        await eh.aio.scorers_score("wordlist", [])


def test_the_judge_of_support_has_the_auc_that_the_command_prints(
    evenhand: Run, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_DATA", "/nowhere")
    audited = eh.scorers_audit_support(sample=1, data=data_folder)
    ran = evenhand(
        *("scorers", "audit-support", "--sample", "1", "--json"), EVENHAND_DATA=str(data_folder)
    )
    assert json.loads(ran.stdout) == json.loads(json.dumps(plain(audited.to_dict())))


# -- debates --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def speakers() -> Iterator[RemoteServer]:
    with in_own_process(Speakers()) as server:
        yield server


def speaker(server: RemoteServer) -> eh.Endpoint:
    return eh.Endpoint(server.url, model="faulty")


def test_topics_are_those_of_the_command_byte_for_byte(
    evenhand: Run, speakers: RemoteServer, tmp_path: Path
) -> None:
    made = eh.debate_topics(
        tmp_path / "mine.jsonl", types=["age"], count=25, model=speaker(speakers), seed=1
    )
    numbers = {"listed": 40, "duplicates": 2, "topics": 25, "wanted": 25}
    assert (made.numbers(), made.short()) == ({"age": numbers}, [])
    ran = evenhand(
        *("debate", "topics", "--types", "age", "--count", "25", "--out", "theirs.jsonl"),
        *("--seed", "1"),
        EVENHAND_BASE_URL=speakers.url,
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "mine.jsonl").read_bytes() == (tmp_path / "theirs.jsonl").read_bytes()


def test_a_list_of_ones_own_needs_no_model_and_a_cap_writes_no_topics(
    speakers: RemoteServer, tmp_path: Path
) -> None:
    (tmp_path / "list.txt").write_text("1. Night buses\n2. night bus\n3. School meals\n")
    made = eh.debate_topics(tmp_path / "own.jsonl", types=["age"], topics=tmp_path / "list.txt")
    assert made.chosen() == {"age": ["Night buses", "School meals"]}
    with raises_naming(eh.UserError, "--max-calls", "higher cap"):
        eh.debate_topics(
            tmp_path / "few.jsonl", types=["age"], model=speaker(speakers), max_calls=1
        )
    assert not (tmp_path / "few.jsonl").exists()


def test_a_sweep_has_the_pairs_that_the_command_makes(
    evenhand: Run, speakers: RemoteServer, tmp_path: Path
) -> None:
    (tmp_path / "plan.toml").write_text(
        "[usual]\nroles = 3\nrounds = 2\ntopics = 2\npairs = 8\n[vary]\nroles = [2]\n"
    )
    tags = {"bias_type": "age", "roles": "a 20-year-old|a 40-year-old|a 60-year-old"}
    rows = [{"id": str(n), "prompt": f"thing {n}", "tags": tags} for n in (1, 2)]
    (tmp_path / "topics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    swept = eh.debate_sweep(
        tmp_path / "topics.jsonl",
        plan=tmp_path / "plan.toml",
        model=speaker(speakers),
        out=tmp_path / "mine",
    )
    assert [(arm.name, arm.statements, arm.train_pairs) for arm in swept.arms] == [
        ("usual", 12, 8),
        ("roles-2", 8, 3),
    ]
    ran = evenhand(
        *("debate", "sweep", "topics.jsonl", "--plan", "plan.toml", "--out", "theirs", "--json"),
        EVENHAND_BASE_URL=speakers.url,
    )
    theirs = json.loads(ran.stdout)["arms"]
    assert [(arm["arm"], arm["statements"], arm["train_pairs"]) for arm in theirs] == [
        (arm.name, arm.statements, arm.train_pairs) for arm in swept.arms
    ]
