"""Scorers named in a config file, in a cast, and said on the spot."""

import asyncio
from pathlib import Path

import pytest

from evenhand.core import Message
from evenhand.core.errors import DeadlinePassed, ScorerFailed, UserError
from evenhand.experiments import config as configuration
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.scorers import ScorerModel, WordList
from evenhand.scorers.services import HttpGuardrail

from .services import HANG, good, serving

FILE = """
[scorers.moderation]
kind = "openai_moderation"
url = "http://127.0.0.1:9/v1"
canonical = true

[scorers.google]
kind = "perspective"
url = "https://commentanalyzer.googleapis.com/v1alpha1/comments:analyze"

[scorers.toxic_bert]
kind = "classifier"
source = "models/toxic-bert"

[scorers.guard]
kind = "guard"
base_url = "http://127.0.0.1:9/v1"
model = "granite3-guardian"
form = "granite_guardian"
system = "social_bias"

[scorers.judge]
kind = "judge"
base_url = "http://127.0.0.1:9/v1"
model = "large"

[scorers.own]
kind = "http"
url = "http://127.0.0.1:9/score"

[roles]
scorer = "moderation"
"""


def _load(folder: Path, text: str) -> configuration.Config:
    path = folder / "evenhand.toml"
    path.write_text(text)
    return configuration.load(path, None, None)


def test_every_kind_can_be_named_in_the_config_file(tmp_path: Path) -> None:
    config = _load(tmp_path, FILE)
    kinds = {}
    for name in config.scorers:
        if name != "toxic_bert":  # its name hangs on weights that are not there
            kinds[name] = configuration.scorer_by_name(config, name).name.partition("@")[0]
    assert kinds == {
        "moderation": "openai_moderation",
        "google": "perspective",
        "guard": "guard",
        "judge": "judge",
        "own": "http",
    }
    cast = configuration.build_cast(config, {"default": ScriptedModel(lambda request: "x")})
    scorer = cast.roles["scorer"]
    assert scorer.name == "openai_moderation@1:omni-moderation-latest+canonical1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[scorers.x]\nkind = "oracle"', "kind"),
        ('[scorers.x]\nkind = "perspective"', "url"),
        ('[scorers.x]\nkind = "http"\nurl = "http://a.example"\nkey = "k"', "key"),
        ('[scorers.wordlist]\nkind = "http"\nurl = "http://a.example"', "built-in"),
        ('[roles]\nscorer = "nobody"', "wordlist"),
    ],
)
def test_a_config_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        _load(tmp_path, text)


def test_a_scorer_can_be_said_on_the_spot() -> None:
    config = configuration.Config()
    own = configuration.scorer_by_name(config, "http=http://127.0.0.1:9/score")
    assert own.describe()["url"] == "http://127.0.0.1:9/score"
    guard = configuration.scorer_by_name(config, "guard=http://127.0.0.1:9/v1#llama-guard3")
    assert guard.name.startswith("guard@1:llama-guard3+")
    for wrong in ("nobody", "oracle=http://a.example", "judge=http://127.0.0.1:9/v1"):
        with pytest.raises(UserError):
            configuration.scorer_by_name(config, wrong)


@pytest.mark.parametrize("said", ["http=", "openai_moderation=", "judge=#model"])
def test_a_scorer_without_an_address_is_refused(said: str) -> None:
    with pytest.raises(UserError, match=r"the \w+ is empty"):
        configuration.scorer_by_name(configuration.Config(), said)


def test_a_kind_that_needs_nothing_more_is_said_by_its_name_alone() -> None:
    config = configuration.Config()
    found = configuration.scorer_by_name(config, "openai_moderation")
    assert found.describe()["url"] == "https://api.openai.com/v1/moderations"
    with pytest.raises(UserError, match="perspective=…: url: Field required"):
        configuration.scorer_by_name(config, "perspective")


def test_the_key_comes_from_the_environment_that_the_config_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "line\nbreak")
    with pytest.raises(UserError, match="line break"):
        configuration.scorer_by_name(
            configuration.Config(), "openai_moderation=https://api.openai.com/v1"
        )


def _request(text: str, deadline: float | None = None) -> ModelRequest:
    return ModelRequest(messages=(Message("user", text),), deadline=deadline)


async def test_in_a_cast_a_text_without_a_score_is_a_failed_turn() -> None:
    with pytest.raises(ScorerFailed, match="wordlist@2: empty_text"):
        await ScorerModel(WordList()).complete(_request("  "))


async def test_in_a_cast_a_score_has_its_attributes_and_its_reasons() -> None:
    async with serving(lambda body: good({"score": 0.5})) as service:
        model = ScorerModel(HttpGuardrail(service.url))
        reply = await model.complete(_request("text"))
        await model.close()
    assert reply.samples[0].text == '{"toxicity":0.5,"attributes":{},"because":[]}'


async def test_a_score_ends_with_the_time_of_its_item() -> None:
    async with serving(lambda body: HANG) as service:
        model = ScorerModel(HttpGuardrail(service.url))
        with pytest.raises(DeadlinePassed):
            await model.complete(_request("text", asyncio.get_running_loop().time() + 0.1))
        await model.close()
