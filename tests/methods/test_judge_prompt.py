"""A judge's prompt of the user's: how its mark is read, and what of it is refused."""

import pytest

from evenhand.core import Failed
from evenhand.core.errors import UserError
from evenhand.methods import Rate
from evenhand.methods.judge_prompt import judge_prompt
from tests.errors import raises_naming
from tests.methods.judge_lines import PAIR, SINGLE
from tests.stage import Stage, told

JUDGE = "judge"
OWN = """
scale = [1, 5]
answer = "json:score"
system = "You grade replies."
prompt = '''
{{ task | marked("request") }}
{{ text | marked("reply") }}
Grade it from 1 to 5.
'''
"""


def answering(form: str) -> str:
    return OWN.replace("json:score", form)


@pytest.mark.parametrize(
    ("form", "reply", "points"),
    [
        ("json:score", '```json\n{"why": "clear", "score": 4}\n```', 7.5),
        ("number", "Grade: 4.5.", 8.75),
        ("number", "1", 0.0),
        ("label: good=5, fair=3, poor=1", " Fair.\n", 5.0),
    ],
)
async def test_a_mark_of_the_users_scale_is_given_in_points_of_ten(
    form: str, reply: str, points: float
) -> None:
    stage = Stage({JUDGE: [reply]})
    answer = await stage.answer(Rate(prompt=answering(form)), SINGLE)
    assert answer.drafts[-1].scores == {"overall": pytest.approx(points)}
    assert stage.asked[0][1].schema is None


@pytest.mark.parametrize(
    ("form", "reply"),
    [
        ("json:score", '{"score": 6}'),
        ("json:score", '{"score": true}'),
        ("json:score", '{"grade": 4}'),
        ("json:score", "4"),
        ("number", "4 out of 5"),
        ("number", "good"),
        ("number", "0.5"),
        ("label: good=5, poor=1", "quite good"),
    ],
)
async def test_a_reply_without_one_mark_on_the_scale_is_unreadable_and_never_clipped(
    form: str, reply: str
) -> None:
    stage = Stage({JUDGE: [reply, reply]})
    end = await stage.end_of(Rate(prompt=answering(form)), SINGLE)
    assert isinstance(end, Failed)
    assert end.reason.startswith("unreadable_reply:")


async def test_a_digit_is_read_by_its_log_probabilities() -> None:
    stage = Stage({JUDGE: [told({"4": 0.6, "5": 0.2, "The": 0.2})]})
    answer = await stage.answer(Rate(prompt=answering("logprob")), SINGLE)
    mean = (4 * 0.6 + 5 * 0.2) / 0.8
    assert answer.drafts[-1].scores == {"overall": pytest.approx((mean - 1) / 4 * 10)}


async def test_what_is_said_of_the_author_stands_where_the_prompt_has_it_else_before_the_text() -> (
    None
):
    said = "The response was written by a woman."
    with_place = OWN.replace("Grade it", "{{ author }} Grade it")
    stage = Stage({JUDGE: ['{"score": 1}'] * 2})
    await stage.answer(Rate(prompt=OWN), SINGLE)
    await stage.answer(Rate(prompt=with_place), SINGLE)
    before, apart = stage.asked_of(JUDGE)
    assert f"<reply>\n{said}\n\nHello, says a woman.\n</reply>" in before
    assert f"<reply>\nHello, says a woman.\n</reply>\n{said} Grade it" in apart
    assert "<request>\nGreet a man.\n</request>" in before


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (OWN.replace("scale = [1, 5]", ""), ("scale", "[1, 5]")),
        (OWN.replace("[1, 5]", "[5, 1]"), ("scale", "lowest")),
        (answering("words"), ("'words'", "json:FIELD")),
        (answering("label: good=9"), ("good=9", "label: good=5")),
        (answering("logprob").replace("[1, 5]", "[0, 10]"), ("one digit", "[0, 9]")),
        (OWN.replace('{{ text | marked("reply") }}', "{{ text }}"), ("{{ text }}", "open =")),
        (OWN.replace('{{ text | marked("reply") }}', ""), ("text",)),
        (OWN.replace("task |", "question |"), ("question", "{{ task }}")),
        ("scale = [", ("not valid TOML",)),
    ],
)
def test_a_prompt_that_declares_too_little_is_refused_and_told_what_to_write(
    text: str, named: tuple[str, ...]
) -> None:
    with raises_naming(UserError, *named):
        Rate(prompt=text)


def test_a_text_can_be_pasted_as_it_is_where_that_is_declared() -> None:
    pasted = OWN.replace('{{ text | marked("reply") }}', "{{ text }}") + 'open = ["text"]\n'
    prompt = judge_prompt(pasted)
    assert prompt.prompt.uses.bare == {"text"}
    assert prompt.agent.prompt.sha256 != judge_prompt(OWN).agent.prompt.sha256


async def test_a_prompt_on_one_text_judges_no_pair_and_takes_no_other_setting() -> None:
    with raises_naming(UserError, "'p'", "two texts"):
        await Stage({}).answer(Rate(prompt=OWN), PAIR)
    with raises_naming(UserError, "personas", "metrics"):
        Rate(prompt=OWN, metrics="three")
