"""/completions: prompts of every form, and as many choices as they want."""

import json
from typing import Any

import pytest

from evenhand.gateway.wire import ClientRequest, MalformedReply, Refused
from evenhand.gateway.wire.completions import Completions


def asked(**more: Any) -> ClientRequest:
    return Completions().asked(json.dumps({"model": "m", **more}).encode())


def read(choices: int, **request: Any) -> tuple[str, ...]:
    reply = Completions().reply(asked(**request))
    found = [{"index": i, "text": f"t{i}", "finish_reason": "stop"} for i in range(choices)]
    reply.read(json.dumps({"choices": found}).encode())
    return reply.texts


def test_a_judge_is_shown_a_prompt_of_words_and_nothing_for_one_of_numbers() -> None:
    assert asked(prompt="Nurses are").prompt == "Nurses are"
    assert asked(prompt=["Nurses are"], suffix="!").context == "suffix: !"
    assert asked(prompt=["One", "two"]).prompt == "One\n\ntwo"
    for numbers in ([1, 2], [[1], [2, 3]]):
        assert (asked(prompt=numbers).prompt, asked(prompt=numbers).context) == ("", "")


def test_each_prompt_has_its_n_choices() -> None:
    assert read(1, prompt=[1, 2]) == ("t0",)
    assert read(6, prompt=["a", "b"], n=3) == ("t0", "t1", "t2", "t3", "t4", "t5")
    for wrong in (5, 7):
        with pytest.raises(MalformedReply):
            read(wrong, prompt=["a", "b"], n=3)


@pytest.mark.parametrize(
    "more",
    [
        {"prompt": "a", "echo": True},
        {"prompt": ["a", 1]},
        {"prompt": []},
        {"prompt": [[]]},
        {"prompt": {"a": 1}},
        {"prompt": None},
        {"prompt": "a", "n": 0},
        {"prompt": ["a", "b"], "n": 65},
    ],
)
def test_what_cannot_be_handled_safely_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refusal:
        asked(**more)
    assert refusal.value.status == 400
