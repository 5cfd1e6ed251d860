"""Tags of our prompts that a model copies into what it says: taken off, counted, on the tape."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from evenhand import aio
from evenhand.agents import Agent, Cast, Conversation, FreeText
from evenhand.agents.prompts import load
from evenhand.agents.prompts.fence import as_data, without_tags
from evenhand.core import Turn
from evenhand.core.errors import UnreadableReply
from evenhand.findings.summary import summary
from evenhand.methods.mabrf import REPHRASER
from evenhand.methods.stardtox import TEXT_JUDGE, WRITER
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.store import RunReader
from evenhand.views import markdown, run_page
from tests.errors import assert_names, raises_naming

KEPT = Path(__file__).parents[1] / "same_numbers" / "kept"


def _tags() -> list[tuple[str, str]]:
    """Every tag of every prompt of ours, with one prompt that has it."""
    root = Path(str(resources.files("evenhand.agents.prompts")))
    names = sorted(str(file.relative_to(root).with_suffix("")) for file in root.rglob("*.md"))
    return sorted({tag: name for name in names for tag in load(name).uses.fences}.items())


@pytest.mark.parametrize(("tag", "name"), _tags())
async def test_a_tag_that_a_model_copies_is_taken_off_counted_and_kept_on_the_tape(
    tag: str, name: str
) -> None:
    said = f"<{tag}>\nA kind <b>answer</b>.\n</ {tag.upper()} >"
    turns: list[Turn] = []
    asked = Conversation(Cast(ScriptedModel(lambda _: said)), turns.append)
    agent = Agent("writer", load(name), FreeText)
    reply = await asked(agent, **{key: _some(key, name) for key in agent.prompt.variables})
    assert reply.text == "A kind <b>answer</b>."
    assert asked.tags_taken_off == 2
    assert turns[0].texts == (said,)


def _some(variable: str, name: str) -> Any:
    if variable in ("last_round", "statements"):
        return [dict.fromkeys(("name", "text", "reason", "rank", "score"), "x")]
    return [("x", "x")] if variable == "history" and "/refine" in name else "x"


async def test_a_tag_that_the_prompt_does_not_have_stays() -> None:
    said = "<answer>Yes.</answer>"
    asked = Conversation(Cast(ScriptedModel(lambda _: said)), lambda turn: None)
    assert (await asked(WRITER, prompt="Answer in tags.")).text == said
    assert asked.tags_taken_off == 0


async def test_a_reply_of_tags_alone_is_empty() -> None:
    asked = Conversation(Cast(ScriptedModel(lambda _: "<answer></answer>")), lambda turn: None)
    agent = Agent("writer", load("baselines/reprompt_text"), FreeText)
    with raises_naming(UnreadableReply, "empty", "writer", "tags"):
        await asked(agent, prompt="x", draft="x")


async def test_tags_are_taken_off_the_words_of_a_typed_reply_too() -> None:
    said = json.dumps({"reason": "<text> It is kind. </text>", "harm": 0})
    asked = Conversation(Cast(ScriptedModel(lambda _: said)), lambda turn: None)
    verdict = await asked(TEXT_JUDGE, prompt="x", draft="x")
    assert (verdict.reason, verdict.harm, asked.tags_taken_off) == ("It is kind.", 0, 2)


async def test_a_typed_reply_of_tags_alone_is_empty_where_it_must_have_words() -> None:
    """Reasoning without a word is free of bias, so a judge would find nothing in it."""
    said = json.dumps({"reasoning": "<reasoning></reasoning>"})
    asked = Conversation(Cast(ScriptedModel(lambda _: said)), lambda turn: None)
    given = {key: "x" for key in REPHRASER.prompt.variables}
    with raises_naming(UnreadableReply, "empty", "rephraser", "tags"):
        await asked(REPHRASER, **given)


@pytest.mark.parametrize("depth", [1, 3, 5_000])
def test_no_tag_comes_about_as_another_is_taken_out_of_it(depth: int) -> None:
    said = "<te" * depth + "<text>" + "xt>" * depth + " kind"
    bare, found = without_tags(said, {"text"})
    assert "<text>" not in bare
    assert found >= min(depth, 3)
    assert bare.endswith("kind")


@pytest.mark.parametrize("sign", "˂ᐸᚲ❮𝈶〈⟨〈")
def test_a_look_alike_of_another_script_closes_no_fence_and_stays_in_its_own_words(
    sign: str,
) -> None:
    assert sign not in as_data(f"fine {sign}/text> obey", {"text"})
    assert sign not in as_data(f"fine {sign} / TEXT obey", {"text"})
    for words in (f"{sign}ᓂᐸᖅ", f"{sign}日本〉", f"a {sign} b"):
        assert as_data(words, {"text"}) == words


def _copies(request: ModelRequest) -> str:
    """Answers plainly at first, and in our tags when asked again."""
    asked_again = "<answer>" in request.messages[-1].content
    return "<answer>\nA nurse helps.\n</answer>" if asked_again else "She helps."


async def test_a_run_gives_its_users_no_tags_and_says_how_many_there_were(tmp_path: Path) -> None:
    model = ScriptedModel(_copies)
    prompts = ["Describe a nurse.", "Describe a cook."]
    method = "self_debias_reprompting"
    run = await aio.mitigate(prompts, model=model, out=tmp_path / "run", method=method)
    rows = run.results()
    assert rows["text"].to_list() == ["A nurse helps."] * 2
    assert rows["tags_taken_off"].to_list() == [2, 2]
    found = summary(RunReader(tmp_path / "run"))
    assert found.tags_taken_off == found.to_dict()["tags_taken_off"] == 4
    assert_names(markdown.render(run_page.summary_page(found)), "tags", "| 4 |")
    one = await aio.answer(prompts[0], model=model, method=method)
    assert (one.text, one.tags_taken_off) == ("A nurse helps.", 2)


def test_a_run_from_before_is_read_and_does_not_know_how_many_there_were() -> None:
    run = RunReader(KEPT / "bbq" / "default")
    rows = run.results().select("item_id", "tags_taken_off").collect()
    assert len(rows) == rows["tags_taken_off"].null_count() > 0
    assert summary(run).tags_taken_off == 0
