"""A key goes to the origin that it was given for, and doctor says so before anything is sent."""

import json
import os
import random
import re
import string
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from evenhand.agents.tools.search.engines import BRAVE, SearchSettings, brave
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.installation import checks_of
from evenhand.models.keys import SERVICES, Redactor, origin
from evenhand.models.wire import error_text
from evenhand.scorers import Scorer, WordList, services
from evenhand.scorers.kinds import ScorerKind, build, said_as, spoken
from tests.errors import assert_names, raises_naming
from tests.loopback.faulty import LoopbackServer
from tests.loopback.http import Call, Line

KEY = "sk-live-7Qm2ZxV9bT4nLr8Kd1Wc6Yp3"


@asynccontextmanager
async def host(sent: list[str | None]) -> AsyncIterator[LoopbackServer]:
    """A host that keeps the key that each call brought."""

    async def behave(call: Call, line: Line) -> str:
        sent.append(call.headers.get("authorization"))
        await line.send_json({"data": [{"id": "m"}], "score": 0.5})
        return "kept"

    server = LoopbackServer(behave)
    server.lists_models = False
    async with server:
        yield server


def loaded(folder: Path, text: str) -> configuration.Config:
    path = folder / "mine.toml"
    path.write_text(text)
    return configuration.load(path, None, None)


async def test_the_default_key_goes_to_the_default_models_own_origin_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", KEY)
    monkeypatch.setenv("OTHER_API_KEY", "the-key-of-the-other")
    home: list[str | None] = []
    away: list[str | None] = []
    async with host(home) as own, host(away) as other:
        config = loaded(
            tmp_path,
            f'[models.default]\nbase_url = "{own.url}"\n'
            f'[models.same]\nbase_url = "{own.url}/deeper"\n'
            f'[models.judge]\nbase_url = "{other.url}"\n'
            f'[models.named]\nbase_url = "{other.url}"\napi_key_env = "OTHER_API_KEY"\n'
            f'[scorers.near]\nkind = "http"\nurl = "{own.url}"\n'
            f'[scorers.far]\nkind = "http"\nurl = "{other.url}"\n',
        )
        for name in ("default", "same", "judge", "named"):
            model = configuration.endpoint(config.models[name], "m")
            await model.list_models()
            await model.close()
        for name in ("near", "far", f"http={other.url}"):
            scorer = configuration.scorer_by_name(config, name)
            await scorer.score(["text"])
            await scorer.close()
    assert home == [f"Bearer {KEY}"] * 3
    assert away == [None, "Bearer the-key-of-the-other", None, None]


@pytest.mark.parametrize(
    ("said", "variable"),
    [
        ("openai_moderation=https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("openai_moderation=https://api.openai.com:444/v1", None),
        ("openai_moderation=http://api.openai.com/v1", None),
        ("openai_moderation=https://api.openai.com.evil.example/v1", None),
        ("perspective=https://commentanalyzer.googleapis.com/x", "PERSPECTIVE_API_KEY"),
        ("perspective=https://evil.example/googleapis.com", None),
        ("http=http://127.0.0.1:8080/score", "EVENHAND_API_KEY"),
        ("http=http://127.0.0.1:8081/score", None),
        ("judge=https://gateway.example/v1#m", None),
        ("classifier=a-folder", None),
    ],
)
def test_a_services_own_key_goes_to_the_service_alone(said: str, variable: str | None) -> None:
    place = spoken(said).key_place(configuration.Config().default_key())
    assert (place.variable if place else None) == variable


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://A.example/v1?x#y", "https://a.example:443"),
        ("http://u:p@a.example:8080", "http://a.example:8080"),
        ("http://[::1]:80/", "http://[::1]:80"),
        ("http://a.example:99999", ""),
        ("a-folder", ""),
        ("http://[", ""),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, expected: str) -> None:
    assert origin(url) == expected


def test_a_file_of_the_current_folder_names_api_keys_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sections: Mapping[str, str] = {
        "models.default": "",
        "scorers.x": 'kind = "http"\nurl = "http://a.example"\n',
        "search": 'engine = "brave"\n',
    }
    for section, rest in sections.items():
        for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "HOME"):
            Path("evenhand.toml").write_text(f'[{section}]\n{rest}api_key_env = "{name}"\n')
            with raises_naming(UserError, f"'{name}'", "_API_KEY", "api_key_env"):
                configuration.load(None, None, None)
            assert configuration.load(Path("evenhand.toml"), None, None)  # named by the user
        Path("evenhand.toml").write_text(f'[{section}]\n{rest}api_key_env = "MY_API_KEY"\n')
        assert configuration.load(None, None, None)


async def test_doctor_says_where_each_key_goes_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", KEY)
    monkeypatch.setenv("SHORT_API_KEY", "EMPTY")
    sent: list[str | None] = []
    async with host(sent) as server:
        config = loaded(
            tmp_path,
            f'[models.default]\nbase_url = "{server.url}"\nmodel = "m"\n'
            '[models.judge]\nbase_url = "https://j.example/v1"\napi_key_env = "SHORT_API_KEY"\n'
            '[models.open]\nbase_url = "https://o.example/v1"\n'
            '[scorers.x]\nkind = "openai_moderation"\n'
            '[search]\nengine = "brave"\n',
        )
        said = []
        async for finding in checks_of(config):
            if finding.what == "key":
                said.append(finding.said)
                assert sent == []
            elif said:
                break
        for text, facts in zip(
            said,
            [
                ("EVENHAND_API_KEY", f"http://127.0.0.1:{server.port}", "models.default"),
                ("SHORT_API_KEY", 8, "not removed", "https://j.example:443", "models.judge"),
                ("OPENAI_API_KEY", "not set", "https://api.openai.com:443", "scorers.x"),
                ("BRAVE_API_KEY", "not set", "https://api.search.brave.com:443", "search"),
            ],
            strict=True,
        ):
            assert_names(text, *facts)
        assert KEY not in str(said)


def test_braves_key_is_for_brave_unless_another_is_named(tmp_path: Path) -> None:
    environment = {"BRAVE_API_KEY": KEY, "MY_API_KEY": "line\nbreak"}
    elsewhere = "https://evil.example/search"
    with raises_naming(UserError, "[search] url", "BRAVE_API_KEY", "api_key_env"):
        brave(SearchSettings(url=elsewhere, environment=environment, cache=tmp_path))
    with raises_naming(UserError, "API key", "line break"):
        brave(
            SearchSettings(
                url=elsewhere, api_key_env="MY_API_KEY", environment=environment, cache=tmp_path
            )
        )
    assert brave(SearchSettings(environment=environment, cache=tmp_path)).name == "brave@1"


def test_a_kind_of_scorer_without_an_address_has_the_key_that_is_named_for_it_or_none() -> None:
    got: list[str | None] = []

    class Own(ScorerKind):
        def scorer(self, key: str | None) -> Scorer:
            got.append(key)
            return WordList()

    for named in (None, "MY_API_KEY"):
        environment = {"EVENHAND_API_KEY": KEY, "MY_API_KEY": "mine"}
        build(Own(kind="own", api_key_env=named), environment, configuration.Config().default_key())
    assert got == [None, "mine"]


@pytest.mark.parametrize("signs", [32, 1_100, 2_200, 4_000])
@pytest.mark.parametrize("copies", [1, 2, 30])
def test_no_piece_of_a_long_key_is_left_where_an_error_is_cut(signs: int, copies: int) -> None:
    """Tokens of cloud services have some 2,000 signs; a cut through one leaves half of it."""
    draw = random.Random(signs)
    key = "".join(draw.choice(string.ascii_letters + string.digits + "-_.") for _ in range(signs))
    pieces = {key[start : start + 12] for start in range(len(key) - 12)}
    for way in (key, "".join(f"\\u{ord(sign):04x}" for sign in key)):
        for before in (0, 7, 1_990, 19_980):
            body = json.dumps({"error": {"message": "x" * before + f"{way} " * copies}}).encode()
            shown = Redactor(key).beginning(error_text(body), 300)
            read = re.sub(r"\\+u00(..)", lambda sign: chr(int(sign[1], 16)), shown)
            assert not any(piece in read for piece in pieces)


def test_an_error_is_shown_as_far_as_it_is_read() -> None:
    assert Redactor(KEY).beginning("No such model. " + "x" * 30_000, 14) == "No such model."
    assert Redactor(None).beginning("x" * 30_000, 300) == "x" * 300


@pytest.mark.parametrize("by", ["option", "environment"])
def test_the_key_that_a_file_names_for_its_address_goes_to_no_other_that_is_said_on_the_spot(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    named = 'api_key_env = "GATEWAY_API_KEY"\n'
    file.write_text(f'[models.default]\nbase_url = "https://gateway.example/v1"\n{named}')
    there = "http://127.0.0.1:8080"
    if by == "environment":
        monkeypatch.setenv("EVENHAND_BASE_URL", f"{there}/v1")
    said = f"{there}/v1" if by == "option" else None
    [place] = configuration.load(file, said, None).key_places().values()
    assert (place.variable, place.origin) == ("EVENHAND_API_KEY", there)
    [place] = configuration.load(file, "https://gateway.example/v2", None).key_places().values()
    assert (place.variable, place.origin) == ("GATEWAY_API_KEY", "https://gateway.example:443")
    file.write_text(f"[models.default]\n{named}")  # it says no address: it is meant for any
    [place] = configuration.load(file, there, None).key_places().values()
    assert (place.variable, place.origin) == ("GATEWAY_API_KEY", there)


def test_a_pipe_in_the_place_of_the_config_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("evenhand.toml")
    monkeypatch.setattr(Path, "read_text", lambda *_: pytest.fail("it would wait for ever"))
    with raises_naming(UserError, "evenhand.toml", "current folder", "file"):
        configuration.load(None, None, None)


@pytest.mark.parametrize(
    ("name", "said"),
    [("guard", "guard=BASE_URL#MODEL"), ("judge", "judge=BASE_URL#MODEL"), ("http", "http=URL"),
     ("classifier", "classifier=SOURCE"), ("openai_moderation", "openai_moderation")],
)  # fmt: skip
def test_what_is_said_of_a_kind_of_scorer_is_enough_to_have_one(name: str, said: str) -> None:
    assert said_as(name) == said
    assert spoken(said).kind == name


STRANGERS = "https://api.stranger.example/v1"


@pytest.mark.parametrize(
    "text",
    [
        f'[models.default]\nbase_url = "{STRANGERS}"\n',
        f'[models.judge]\nbase_url = "{STRANGERS}"\napi_key_env = "MY_API_KEY"\n',
        f'[scorers.x]\nkind = "http"\nurl = "{STRANGERS}"\napi_key_env = "MY_API_KEY"\n',
        f'[search]\nengine = "brave"\nurl = "{STRANGERS}"\napi_key_env = "MY_API_KEY"\n',
    ],
)
def test_no_key_goes_to_a_host_that_only_a_file_of_the_current_folder_names(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("evenhand.toml")
    file.write_text(text)
    assert configuration.load(None, None, None), "without a key nothing goes anywhere"
    monkeypatch.setenv("EVENHAND_API_KEY", KEY)
    monkeypatch.setenv("MY_API_KEY", KEY)
    with raises_naming(UserError, "EVENHAND_TRUSTED_HOSTS=api.stranger.example") as refused:
        configuration.load(None, None, None)
    assert KEY not in str(refused.value)
    assert configuration.load(file, None, None), "the user named the file"
    for trusted in ("api.stranger.example", "a.example, API.stranger.example"):
        monkeypatch.setenv("EVENHAND_TRUSTED_HOSTS", trusted)
        assert configuration.load(None, None, None)
    monkeypatch.setenv("EVENHAND_TRUSTED_HOSTS", "stranger.example")
    with raises_naming(UserError, "EVENHAND_TRUSTED_HOSTS=api.stranger.example"):
        configuration.load(None, None, None)


def test_an_address_that_is_said_on_the_spot_is_the_users_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENHAND_API_KEY", KEY)
    Path("evenhand.toml").write_text(f'[models.default]\nbase_url = "{STRANGERS}"\n')
    assert configuration.load(None, "https://mine.example/v1", None)
    monkeypatch.setenv("EVENHAND_BASE_URL", STRANGERS)
    assert configuration.load(None, None, None)
    monkeypatch.setenv("EVENHAND_BASE_URL", "http://127.0.0.1:8080/v1")
    assert configuration.load(None, None, None)
    Path("evenhand.toml").write_text(
        f'[models.j]\nbase_url = "{STRANGERS}"\napi_key_env = "EVENHAND_API_KEY"\n'
    )
    with raises_naming(UserError, "models.j", "EVENHAND_TRUSTED_HOSTS=api.stranger.example"):
        configuration.load(None, None, None)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "PERSPECTIVE_API_KEY", "BRAVE_API_KEY"])
def test_a_services_key_goes_to_no_other_host_whoever_names_it(
    variable: str, named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENHAND_TRUSTED_HOSTS", "api.stranger.example")
    file = Path("evenhand.toml")
    file.write_text(f'[models.default]\nbase_url = "{STRANGERS}"\napi_key_env = "{variable}"\n')
    with raises_naming(
        UserError, variable, "api_key_env", "models.default", "https://api.stranger.example:443"
    ):
        configuration.load(file if named else None, None, None)
    here = 'base_url = "http://127.0.0.1:9/v1"'
    file.write_text(f'[models.default]\n{here}\napi_key_env = "{variable}"\n')
    assert configuration.load(file if named else None, None, None)


def test_openais_key_goes_to_openai_from_any_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    Path("evenhand.toml").write_text(
        '[models.default]\nbase_url = "https://api.openai.com/v1"\n'
        'api_key_env = "OPENAI_API_KEY"\n[scorers.x]\nkind = "openai_moderation"\n'
    )
    places = configuration.load(None, None, None).key_places()
    assert {place.origin for place in places.values()} == {"https://api.openai.com:443"}


def test_the_origins_of_services_are_those_that_are_asked() -> None:
    assert set(SERVICES.values()) == {
        origin(services.MODERATION_URL), origin(services.GOOGLES), origin(BRAVE)
    }  # fmt: skip
