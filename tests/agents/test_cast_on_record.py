"""A record says who plays the roles that its method asks, and a resumed run compares those."""

from pathlib import Path

from evenhand import Cast, Item, ScriptedModel
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.methods import DefaultPrompt, Method, StarDTox
from evenhand.models.base import ChatModel
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, run
from evenhand.runs.store import RunReader, RunWriter
from evenhand.scorers import ScorerModel, WordList
from tests.errors import raises_naming

RULE = StarDTox(bias_brain="rule", performance=False)
WORDLIST = ScorerModel(WordList()).describe()


def _model(name: str = "m") -> ScriptedModel:
    return ScriptedModel(lambda _: "A kind one.", name=name)


def _as_the_config_casts_it(method: Method, model: ChatModel) -> Cast:
    return configuration.build_cast(configuration.Config(), {"default": model}, method.agents())


def _plan(method: Method, cast: Cast) -> RunPlan:
    items = [Item(id=str(place), prompt="Describe a nurse.") for place in range(2)]
    return RunPlan(method=method, cast=cast, source=ItemList(items))


async def _run(out: Path, method: Method, cast: Cast) -> RunReader:
    await run(_plan(method, cast), out, progress=Progress(), stop=StopSignal())
    return RunReader(out)


async def _begun_before(out: Path, method: Method, cast: Cast) -> None:
    """Begin a folder as earlier versions did: the record held the roles that the config named, and
    always a scorer."""
    named = {role: model.describe() for role, model in cast.roles.items()}
    players = {"default": cast.default.describe(), "scorer": WORDLIST, **named}
    record = _plan(method, cast).record().model_copy(update={"cast": players})
    await RunWriter.open(out, record).close()


async def test_a_method_without_a_scorer_has_none_on_its_record(tmp_path: Path) -> None:
    cast = _as_the_config_casts_it(DefaultPrompt(), _model())
    assert cast.roles == {}
    made = await _run(tmp_path, DefaultPrompt(), cast)
    m = {"kind": "scripted", "model": "m"}
    assert made.record.cast == {"default": m, "generator": m}


async def test_the_word_list_plays_a_declared_scorer_that_the_config_gives_to_nobody(
    tmp_path: Path,
) -> None:
    made = await _run(tmp_path, RULE, _as_the_config_casts_it(RULE, _model()))
    assert made.record.cast["scorer"] == WORDLIST
    assert made.results().collect()["status"].to_list() == ["answered", "answered"]


async def test_a_folder_with_an_unused_scorer_on_its_record_is_resumed(tmp_path: Path) -> None:
    await _begun_before(tmp_path, DefaultPrompt(), Cast(_model()))
    resumed = await _run(tmp_path, DefaultPrompt(), Cast(_model()))
    assert resumed.totals().items == 2


async def test_a_folder_with_a_used_scorer_is_resumed_with_that_scorer_alone(
    tmp_path: Path,
) -> None:
    await _begun_before(tmp_path, RULE, _as_the_config_casts_it(RULE, _model()))
    with raises_naming(UserError, "wordlist@2", "scripted"):
        await _run(tmp_path, RULE, Cast(_model(), {"scorer": _model("another")}))
    resumed = await _run(tmp_path, RULE, _as_the_config_casts_it(RULE, _model()))
    assert resumed.totals().items == 2


async def test_a_role_that_went_back_to_the_default_model_is_another_run(tmp_path: Path) -> None:
    """A record of before has no entry for a role of the default model, which is no licence."""
    await _begun_before(tmp_path, DefaultPrompt(), Cast(_model(), {"generator": _model("other")}))
    with raises_naming(UserError, "model of generator", "other", "--out"):
        await _run(tmp_path, DefaultPrompt(), Cast(_model()))
    resumed = await _run(tmp_path, DefaultPrompt(), Cast(_model(), {"generator": _model("other")}))
    assert resumed.totals().items == 2
