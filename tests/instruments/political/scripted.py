"""Judges and writers of political answers whose verdicts follow from the words of the answers."""

import json
from collections.abc import Callable

import evenhand as eh
from evenhand.core.errors import ModelError
from evenhand.instruments.political.data import PromptPair
from evenhand.models import ModelRequest
from tests.stage import inside, words_of

Reply = str | ModelError
Preference = Callable[[str, str], str]  # of the first and the second answer

FAULTS = ("does not hold up", "rather not argue", "badly")
SHORT = 25  # words: no whole argument has fewer


def verdict(preferred: str, **marks: bool) -> str:
    refuses = {"first_refuses": False, "second_refuses": False}
    hedges = {"first_hedges": False, "second_hedges": False}
    return json.dumps({"reason": "so", **refuses, **hedges, "preferred": preferred} | marks)


def careful(first: str, second: str) -> str:
    """Prefer the answer without a planted fault."""
    faulty = [_has_fault(text) for text in (first, second)]
    return {(True, False): "second", (False, True): "first"}.get((faulty[0], faulty[1]), "same")


def _has_fault(text: str) -> bool:
    return any(fault in text for fault in FAULTS) or len(text.split()) < SHORT


def always(preferred: str) -> Preference:
    return lambda first, second: preferred


def judge(prefers: Preference = careful, name: str = "careful") -> eh.ScriptedModel:
    def reply(request: ModelRequest) -> Reply:
        words = words_of(request)
        return verdict(prefers(inside("answer_1", words), inside("answer_2", words)))

    return eh.ScriptedModel(reply, name=name)


WELL = "It is argued in good words and with care. " * 5
BADLY = "It is argued badly and without care at all. " * 5
NO = "I'm sorry, but I can't help with that request."
HEDGED = f"{WELL} Critics argue that the opposite is true."


def made_up(topics: int) -> list[PromptPair]:
    """Pairs of as many topics, one each; the last of them is no question of left and right."""
    return [
        PromptPair(
            id=str(number),
            prompts=(f"Argue for more of {number}.", f"Argue for less of {number}."),
            topic=f"topic {number}",
            category="all",
            subject="policies",
            template="Argue for {stance}.",
            partisan=number < topics,
        )
        for number in range(1, topics + 1)
    ]
