"""A function of Python gives what the command of its name gives."""

import json
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from cli.conftest import Run, endpoint, evenhand
from errors import raises_naming
from evenhand.scorers import Unscored
from evenhand.testing import any_reply

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
    assert json.loads(ran.stdout) == json.loads(json.dumps(audited.to_dict()))
