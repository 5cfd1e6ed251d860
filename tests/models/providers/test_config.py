"""Where a name may stand: the config, the command line, the cast, a scorer."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.models.endpoint import Endpoint
from evenhand.scorers.kinds import JudgeConfig, spoken
from tests.cli.conftest import clean_environment
from tests.errors import assert_names, raises_naming
from tests.models.providers.conftest import FAKE

NAME = "litellm:openai/plain"


def read(tmp_path: Path, text: str, model: str | None = None, **said: str) -> configuration.Config:
    file = tmp_path / "c.toml"
    file.write_text(text)
    return configuration.load(file, said.get("base_url"), model)


def test_a_model_of_the_config_is_opened_by_its_library(
    tmp_path: Path, litellm: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable for the endpoint does not move it."""
    monkeypatch.setenv("EVENHAND_BASE_URL", "http://127.0.0.1:9/v1")
    config = read(tmp_path, f"[models.default]\nmodel = {NAME!r}\nparams = {{ top_k = 5 }}\n")
    opened = configuration.endpoint(config.default_model(), NAME)
    assert opened.describe() == {"kind": "litellm", "model": NAME, "params": {"top_k": 5}}
    assert config.key_places() == {}


def test_an_address_beside_the_name_is_where_the_library_asks(
    tmp_path: Path, litellm: ModuleType
) -> None:
    text = f'[models.default]\nmodel = "{NAME}"\nbase_url = "http://127.0.0.1:9/v1"\n'
    config = read(tmp_path, text)
    assert configuration.endpoint(config.default_model(), NAME).describe()["url"]
    assert config.key_places()["models.default"].variable == "EVENHAND_API_KEY"


def test_a_name_said_on_the_spot_leaves_the_address_of_the_file(tmp_path: Path) -> None:
    text = '[models.default]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\nmax_wait = 5\n'
    default = read(tmp_path, text, NAME).default_model()
    assert (default.named_url, default.max_wait) == (None, 5.0)
    moved = read(tmp_path, text, NAME, base_url="http://127.0.0.1:8/v1").default_model()
    assert moved.named_url == "http://127.0.0.1:8/v1"


def test_api_is_of_an_endpoint(tmp_path: Path) -> None:
    with raises_naming(UserError, "api", "library"):
        read(tmp_path, f'[models.default]\nmodel = "{NAME}"\napi = "responses"\n')
    config = read(tmp_path, '[models.default]\nmodel = "o3-pro"\napi = "responses"\n')
    opened = configuration.endpoint(config.default_model(), "o3-pro")
    assert isinstance(opened, Endpoint)
    assert opened.describe()["api"] == "responses"


def test_the_key_of_a_service_is_left_to_the_library(tmp_path: Path) -> None:
    with raises_naming(UserError, "api_key_env", "OPENAI_API_KEY"):
        read(tmp_path, f'[models.default]\nmodel = "{NAME}"\napi_key_env = "OPENAI_API_KEY"\n')


@pytest.mark.parametrize(
    "text",
    [
        f'[models.default]\nmodel = "{NAME}"\nbase_url = "https://elsewhere.example/v1"\n',
        f'[scorers.s]\nkind = "judge"\nmodel = "{NAME}"\nbase_url = "https://elsewhere.example"\n',
    ],
)
def test_a_file_that_was_found_sends_no_library_to_a_host_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A library may send cloud credentials there, which are no keys that we hold."""
    monkeypatch.chdir(tmp_path)
    Path("evenhand.toml").write_text(text)
    with raises_naming(UserError, "elsewhere.example", "--config evenhand.toml"):
        configuration.load(None, None, None)
    monkeypatch.setenv("EVENHAND_TRUSTED_HOSTS", "elsewhere.example")
    configuration.load(None, None, None)


async def test_a_scorer_may_ask_by_a_library(litellm: ModuleType, tmp_path: Path) -> None:
    config = read(tmp_path, f'[scorers.second]\nkind = "judge"\nmodel = "{NAME}"\n')
    said = spoken(f"judge={NAME}")
    assert isinstance(said, JudgeConfig)
    assert said.model == NAME
    for scorer in (configuration.scorer_by_name(config, "second"), said.scorer(None)):
        assert scorer.describe()["model"]["model"] == NAME
        await scorer.close()
    with raises_naming(UserError, "base_url"):
        read(tmp_path, '[scorers.second]\nkind = "judge"\nmodel = "plain"\n')


def test_the_command_takes_the_name(tmp_path: Path) -> None:
    """As a user types it, with a `litellm` on the path that asks nobody."""
    environment = {**clean_environment(), "PYTHONPATH": ":".join([str(FAKE), *sys.path])}
    command = [sys.executable, "-c", "from evenhand.cli import main; main()"]
    ran = subprocess.run(
        [*command, "answer", "How are people?", "--method", "default", "--model", NAME, "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert_names(ran.stdout, "People differ")
