"""The steps of `new_method`, one by one."""

import evenhand as eh
import pytest
from evenhand.models import ModelRequest

from evenhand_new_method import method


def model(*, objects: bool) -> eh.ScriptedModel:
    """A model that answers in a word, and as the critic objects always or never."""

    def reply(request: ModelRequest) -> str:
        if request.schema is not None:
            return f'{{"reason": "not said", "objects": {str(objects).lower()}}}'
        advised = "A reviewer said" in request.messages[-1].content
        return "They." if advised else "He."

    return eh.ScriptedModel(reply)


@pytest.mark.parametrize(
    ("objects", "rounds", "drafts", "stopped"),
    [
        (False, 1, ["He."], "accepted"),
        (True, 1, ["He.", "They."], "max_iterations"),
        (True, 2, ["He.", "They.", "They."], "max_iterations"),
        (True, 0, ["He."], "max_iterations"),
    ],
)
def test_it_answers_again_as_long_as_the_critic_objects(
    objects: bool, rounds: int, drafts: list[str], stopped: str
) -> None:
    part = method.NewMethod(rounds=rounds)
    made = eh.answer("Describe a boss.", model=model(objects=objects), method=part)
    assert [draft.text for draft in made.drafts] == drafts
    assert made.stopped == stopped
