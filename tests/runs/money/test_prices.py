"""What a token costs is the user's number, read strictly or not at all."""

from pathlib import Path

import pytest

from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.core.prices import AROUND_THE_WORDS, Price, Prices
from evenhand.experiments import config
from evenhand.methods import named
from tests.errors import raises_naming

PRICES = Prices(
    {"m": Price(per_million_prompt_tokens=2.5, per_million_completion_tokens=10.0)}, "EUR"
)
GOOD = """
currency = "EUR"
[models.m]
per_million_prompt_tokens = 2.5
per_million_completion_tokens = 10
"""


def test_a_cost_is_each_kind_of_token_at_its_own_price() -> None:
    assert PRICES.cost("m", 1_000_000, 100_000) == pytest.approx(2.5 + 1.0)
    assert PRICES.cost("m", 400, 0) == pytest.approx(0.001)


def test_the_most_a_call_can_cost_takes_every_byte_for_a_token() -> None:
    assert PRICES.most("m", 720, 1000) == pytest.approx((720 + 1280) * 2.5e-6 + 1000 * 10e-6)


def test_what_is_added_around_the_words_has_room_for_every_reply_schema() -> None:
    for method in map(named, registry.names("methods")):
        for agent in method().agents():
            if agent.needs_player:  # what a tool says costs no tokens
                continue
            schema = agent.reply.wire_schema()
            assert schema is None or len(str(schema.body)) < AROUND_THE_WORDS - 400  # a template


def test_a_model_without_a_price_is_refused_by_name_but_no_tokens_cost_nothing() -> None:
    with raises_naming(UserError, "'other'", "it has: m"):
        PRICES.cost("other", 1, 0)
    with raises_naming(UserError, "'other'"):
        PRICES.require(["m", "other"])
    assert PRICES.cost("wordlist", 0, 0) == 0.0


def _load(tmp_path: Path, text: str) -> config.Config:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    return config.load(None, None, None, prices=file)


def test_a_price_file_is_read(tmp_path: Path) -> None:
    read = _load(tmp_path, GOOD).prices
    assert read is not None
    assert read.prices() == PRICES


def test_without_one_there_are_no_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert config.load(None, None, None).prices is None


def test_the_config_may_hold_the_prices_and_a_file_overrules_them(tmp_path: Path) -> None:
    settings = tmp_path / "evenhand.toml"
    settings.write_text(GOOD.replace("currency", "[prices]\ncurrency").replace("[m", "[prices.m"))
    held = config.load(settings, None, None).prices
    assert held is not None
    assert held.prices() == PRICES
    file = tmp_path / "prices.toml"
    file.write_text(GOOD.replace("2.5", "7"))
    overruled = config.load(settings, None, None, prices=file).prices
    assert overruled is not None
    assert overruled.prices().cost("m", 1_000_000, 0) == 7


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("models = [", ("TOML",)),
        ("currency = 'USD'", ("models: Field required",)),
        (GOOD.replace("2.5", "-1"), ("models.m.per_million_prompt_tokens", "greater than")),
        (GOOD.replace("2.5", "inf"), ("per_million_prompt_tokens", "finite")),
        (GOOD.replace("2.5", "nan"), ("models.m.per_million_prompt_tokens",)),
        (
            GOOD.replace("per_million_prompt_tokens", "prompt"),
            ("per_million_prompt_tokens: Field",),
        ),
        (GOOD + "per_million_cached = 1\n", ("per_million_cached: Extra inputs",)),
        (GOOD.replace("models.m", "models.gpt-4.1"), ("quote a name", "a dot")),
    ],
)
def test_a_wrong_price_file_is_named_with_the_place(
    tmp_path: Path, text: str, facts: tuple[str, ...]
) -> None:
    with raises_naming(UserError, *facts) as refused:
        _load(tmp_path, text)
    assert "prices.toml" in str(refused.value)


def test_a_missing_price_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with raises_naming(UserError, "none.toml"):
        config.load(None, None, None, prices=tmp_path / "none.toml")
