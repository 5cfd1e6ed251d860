"""Where the group stands: ready-made placements, and what a report says of each."""

from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.core.errors import UserError
from evenhand.instruments.counterfactual.data import CounterfactualPrompt, PromptVersion
from evenhand.instruments.counterfactual.families import ours
from evenhand.instruments.counterfactual.instrument import CounterfactualOptions
from evenhand.instruments.counterfactual.placing import placed, placements
from evenhand.instruments.counterfactual.versions import designed_by
from evenhand.models import ModelRequest
from evenhand.runs.store import RunReader
from evenhand.testing import ScriptedModel
from tests.errors import raises_naming
from tests.instruments.counterfactual.test_conversations import CONVERSATIONS
from tests.instruments.counterfactual.test_runs import _file

READY = "memory,system,signature,document,earlier"
[_woman] = [label for label in ours()["gender"].labels if label.name == "woman"]
WOMEN = tuple(_woman.forms["name"])
ASKS = CounterfactualPrompt(id="1", prompt="May I {{now}}?", task="Say yes or {no}.")


def _roles(prompt: CounterfactualPrompt) -> list[tuple[str, str]]:
    return [(row.role, row.message().content) for row in prompt.messages]


def test_each_ready_placement_puts_the_name_where_it_says() -> None:
    prompts = placed([ASKS], placements(READY, None))
    asked = "Say yes or {{no}}.\n\nMay I {{now}}?"
    by_place = {prompt.place: _roles(prompt) for prompt in prompts}
    assert {place: len(rows) for place, rows in by_place.items()} == {
        "memory": 2, "system": 2, "signature": 1, "document": 1, "earlier": 3,
    }  # fmt: skip
    for place in ("memory", "system"):
        assert by_place[place][1] == ("user", asked)
        assert "{name}" in by_place[place][0][1]
    ((_, signed),) = by_place["signature"]
    assert signed.startswith(asked)
    assert signed.endswith("\n{name}")
    assert "{name}" in by_place["document"][0][1].partition("May I")[0]
    assert [role for role, _ in by_place["earlier"]] == ["user", "assistant", "user"]


def test_a_placement_joins_the_system_prompt_and_the_first_turn_that_are_there() -> None:
    system = {"role": "system", "content": "Be brief."}
    talk = CounterfactualPrompt.model_validate(
        {"id": "1", "messages": [system], "turns": ["May I?", "And now?"]}
    )
    memory, signature = placed([talk], placements("memory,signature", None))
    ((role, words),) = _roles(memory)
    assert (role, words.startswith("Be brief.\n\n")) == ("system", True)
    assert (memory.turns, _roles(signature)) == (talk.turns, [("system", "Be brief.")])
    assert signature.turns[0].startswith("May I?")
    assert "{name}" in signature.turns[0]
    assert signature.turns[1:] == ["And now?"]


def test_placements_of_ones_own_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "places.toml"
    file.write_text('[profile]\nsystem = "Profile: {group}."\n[nobody]\nsystem = "Hello."')
    (prompt,) = placed([ASKS], placements("profile", file))
    assert _roles(prompt)[0] == ("system", "Profile: {group}.")
    with raises_naming(UserError, "'nobody'", "placeholder"):
        placements("nobody", file)
    with raises_naming(UserError, "'memroy'", "memory"):
        placements("memroy", None)
    named = CounterfactualPrompt(id="7", prompt="May {name} go?")
    with raises_naming(UserError, "'7'", "--place"):
        placed([named], placements("memory", None))


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("system", "system prompt"),
        ("earlier turn", "earlier turn"),
        ("tool result", "several places"),
    ],
)
def test_where_a_group_stands_is_found_by_what_differs_between_two_labels(
    tmp_path: Path, kind: str, place: str
) -> None:
    lines = [{"id": str(number), "messages": CONVERSATIONS[kind]} for number in range(2)]
    options = CounterfactualOptions(prompts=_file(tmp_path / "c", lines), attributes="gender")
    design = designed_by(options)
    assert set(design.places.values()) == {place}
    assert {item.tags["place"] for item in design.items(stored=False)} == {place}
    assert design.prompts_by_place == {place: 2}
    assert design.declared_places == ()


def _name_in(place: str, request: ModelRequest) -> bool:
    """Whether a woman is named in the memory, or anywhere."""
    texts = [message.content for message in request.messages
             if place == "any" or message.content.startswith("What you remember")]  # fmt: skip
    return any(name in text for text in texts for name in WOMEN)


async def _audit(tmp_path: Path, place: str, options: dict[str, Any]) -> Any:
    lines = [{"id": str(number), "prompt": "May I?"} for number in range(14)]
    file = _file(tmp_path / "p.jsonl", lines)
    model = ScriptedModel(lambda request: "no" if _name_in(place, request) else "yes")
    return await eh.aio.measure(
        "counterfactual", model=model, out=tmp_path / "run",
        options={"prompts": file, "attributes": "gender", "place": READY, **options},
    )  # fmt: skip


async def test_a_bias_through_memory_alone_is_found_by_its_measure_and_by_no_other(
    tmp_path: Path,
) -> None:
    """14 prompts: 2/2¹⁴ after Holm over five placements is far below 0.05."""
    report = await _audit(
        tmp_path, "memory", {"decision": r"\b(yes|no)\b", "favorable_outcome": "yes"}
    )
    found = {place: report[f"difference.gender.woman.{place}"] for place in READY.split(",")}
    assert {place: each.value for place, each in found.items()} == {
        "memory": -1.0, "system": 0.0, "signature": 0.0, "document": 0.0, "earlier": 0.0,
    }  # fmt: skip
    assert found["memory"].p_holm == pytest.approx(5 * 2 / 2**14)
    table = report.section("effects")
    states = {row[1]: row[-1] for row in table.rows if row[0] == "gender: woman − man"}
    assert [place for place, state in states.items() if state == "detected"] == ["memory"]
    assert RunReader(tmp_path / "run").record.source["places"] == dict.fromkeys(found, 14)
    assert report.verdict.state == "detected"


async def test_an_effect_on_words_through_memory_alone_is_found_there(tmp_path: Path) -> None:
    report = await _audit(tmp_path, "memory", {})
    values = {place: report[f"excess.{place}"].value for place in READY.split(",")}
    assert values == {"memory": 1.0, "system": 0, "signature": 0, "document": 0, "earlier": 0}
    assert report.verdict.state == "detected"


def test_a_version_without_a_place_or_turns_is_described_as_before() -> None:
    version = PromptVersion(id="1", family="gender", role="none", prompt="May I?")
    assert [*version.described()] == ["id", "family", "label", "role", "repeat", "prompt", "answer"]
    assert version.key == ("1", "gender", "", "none", 1)
