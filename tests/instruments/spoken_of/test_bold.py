"""BOLD: the set recounted, and runs of scripted models that speak ill of one group or of none."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.core.errors import ModelError
from evenhand.instruments import DataFolder
from evenhand.instruments._spoken_of import NOT_KNOWN, NOT_SHOWN, SHOWN, refuse_own_scorers, scorers
from evenhand.instruments.bold.instrument import BoldPrompt, drawn, hidden, prompts
from evenhand.models import ModelRequest
from tests.errors import assert_names, raises_naming

ILL = "was a liar and a thief who beat the servants and cheated everybody."
PLAIN = "lived in a small flat near the station and took the bus to work."


@pytest.fixture(scope="module")
def data(data_folder: Path) -> DataFolder:
    if not (data_folder / "bold").is_dir():
        pytest.skip(f"no BOLD at {data_folder}; name its folder in EVENHAND_DATA")
    return DataFolder(local=data_folder, cache=Path("none"))


@pytest.fixture(scope="module")
def every(data: DataFolder) -> list[BoldPrompt]:
    return prompts(data)


def test_the_set_has_23679_prompts_of_43_groups_in_five_domains(every: list[BoldPrompt]) -> None:
    """The counts of the paper's table 1."""
    assert Counter(one.domain for one in every) == {
        "gender": 3204, "race": 7657, "political_ideology": 1984, "religious_ideology": 639,
        "profession": 10195,
    }  # fmt: skip
    assert len({(one.domain, one.group) for one in every}) == 43
    actors = Counter(one.group for one in every if one.domain == "gender")
    assert actors == {"American_actors": 2048, "American_actresses": 1156}
    assert len({one.id for one in every}) == 23_679


def test_nearly_every_prompt_is_the_beginning_of_its_sentence(every: list[BoldPrompt]) -> None:
    begun = sum(one.wikipedia.startswith(one.text) for one in every)
    assert begun / len(every) > 0.99


def test_a_sample_takes_each_group_in_turn_and_no_text_twice(
    every: list[BoldPrompt], data: DataFolder
) -> None:
    part = [one for one in every if one.domain in ("gender", "religious_ideology")]
    found = drawn(part, 15, seed=1)
    assert Counter(one.group for one in found)["hinduism"] == 12  # all that there are
    assert len(found) == 8 * 15 + 12
    assert len({one.group for one in found[:9]}) == 9
    assert len({(one.group, one.text) for one in found}) == len(found)
    assert found != drawn(part, 15, seed=2)
    with raises_naming(eh.UserError, "'age'", "--domains gender,race"):
        prompts(data, "age")
    assert {one.domain for one in prompts(data, "gender")} == {"gender"}


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bold/data/prompts").mkdir(parents=True)
    (tmp_path / "bold/data/prompts/gender_prompt.json").write_text("{}")
    with raises_naming(eh.UserError, "gender_prompt.json", tmp_path, "3ad652c7"):
        prompts(DataFolder(local=tmp_path, cache=tmp_path))


def test_the_words_of_an_articles_title_are_hidden() -> None:
    article = "A metalsmith met Metalsmiths."
    masked = "A someone met someone."
    assert hidden(article, "Metalsmith") == masked
    app = "An app is new."
    hidden_app = "An app is new."
    assert hidden(app, "App") == hidden_app


@pytest.fixture
def measured(
    data: DataFolder, every: list[BoldPrompt], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    monkeypatch.setenv("EVENHAND_DATA", str(data.local))
    by_text = {one.text: one for one in every if one.domain == "gender"}

    def run(policy: Any, out: str = "run", **more: Any) -> eh.Report:
        def say(request: ModelRequest) -> str | ModelError:
            text = request.messages[0].content.rpartition("\n\n")[2].strip()
            said: str | ModelError = policy(by_text[text])
            return said

        options = {"per_group": 12, "domains": "gender", **more}
        return eh.measure("bold", model=eh.ScriptedModel(say), out=tmp_path / out,
                          options=options)  # fmt: skip

    return run


def gap(found: eh.Report, measure: str = "negative regard") -> tuple[Any, ...]:
    table = found.section("gaps")
    assert table is not None
    return next(row for row in table.rows if row[1] == measure)


def test_a_model_that_speaks_ill_of_one_group_has_a_gap_against_it(measured: Any) -> None:
    found = measured(lambda one: ILL if one.group == "American_actresses" else PLAIN)
    domain, _, most, least, size, low, _, state, pairs = gap(found)
    assert (domain, most, least) == ("gender", "American_actresses", "American_actors")
    assert (state, pairs) == (SHOWN, 1)
    assert size > low > 0.2
    beyond = "negative regard beyond Wikipedia's"
    assert gap(found, beyond)[7] == SHOWN
    by_group = {name: one[0].value for name, one in found.groups["group"].items()}
    assert size == pytest.approx(
        by_group["American_actresses"] - by_group["American_actors"], abs=1e-4
    )
    assert any("American_actresses" in line for line in found.verdict.says)
    measures = {row[1] for row in found.section("gaps").rows}
    assert not any("toxicity" in one for one in measures)  # its text names the group


def test_a_model_that_says_the_same_of_all_has_no_gap(measured: Any) -> None:
    found = measured(lambda _: PLAIN)
    assert gap(found)[7] == NOT_SHOWN
    assert any("No significant gap" in line for line in found.verdict.says)
    worse = measured(lambda _: ILL, "worse")
    assert gap(worse)[7] == NOT_SHOWN
    assert worse["negative_regard"].value > found["negative_regard"].value + 0.2


def test_a_model_that_is_silent_where_it_would_speak_ill_is_not_cleared(measured: Any) -> None:
    def silent(one: BoldPrompt) -> str | ModelError:
        return ModelError("silent") if one.group == "American_actresses" else PLAIN

    found = measured(silent)
    assert gap(found)[7] == NOT_KNOWN
    assert found["negative_regard"].bounds.missing == 12
    assert_names(found.verdict.says[-1], "inconclusive", "gender", "12 texts")
    assert not any("No significant gap" in line for line in found.verdict.says)
    refusal = "I'm sorry, I can't help with that."
    refused = measured(
        lambda one: refusal if one.group == "American_actresses" else PLAIN, "refused"
    )
    assert gap(refused)[7] == NOT_KNOWN  # a refusal is lost for regard, and known as a refusal
    assert refused["negative_regard"].bounds.missing == 12
    assert (refused["refusal"].value, refused["refusal"].bounds) == (0.5, None)
    by_group = refused.groups["group"]["American_actresses"]
    assert next(one.value for one in by_group if one.name == "refusal") == 1.0
    blank = measured(lambda one: one.text if one.group == "American_actresses" else PLAIN, "echo")
    assert gap(blank)[7] == NOT_KNOWN  # the prompt alone is no continuation
    dots = measured(lambda one: "..." if one.group == "American_actresses" else PLAIN, "dots")
    assert dots["negative_regard"].bounds.missing == 12


def test_what_is_scored_is_the_prompt_with_its_continuation(measured: Any, every: Any) -> None:
    found = measured(lambda _: PLAIN, per_group=2)
    asked = drawn([one for one in every if one.domain == "gender"], 2, 0)
    regard, offline = scorers()
    texts = [f"{one.text} {PLAIN}" for one in asked]
    ill = regard.score_now(
        [hidden(text, one.title) for text, one in zip(texts, asked, strict=True)]
    )
    toxic = [one.toxicity for one in offline.score_now(texts)]  # type: ignore[union-attr]
    assert found["negative_regard"].value == pytest.approx(sum(ill) / 4, abs=1e-6)  # type: ignore[arg-type]
    assert found["toxicity"].value == pytest.approx(sum(toxic) / 4, abs=1e-3)
    assert found["words"].value == len(PLAIN.split())


def test_a_scorer_that_steers_a_method_may_not_score_it() -> None:
    for scorer in scorers():
        with raises_naming(eh.UserError, scorer.name, "own scorer"):
            refuse_own_scorers({"scorer": f"{scorer.name}+canonical"})
    refuse_own_scorers({"default": "a-model"})
