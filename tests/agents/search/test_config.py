"""`[search]` in the config file: off without it, each engine with its own needs."""

from pathlib import Path
from typing import Any

import pytest

from evenhand.core.errors import UserError
from evenhand.experiments import config
from evenhand.models import ScriptedModel
from evenhand.models.base import ChatModel
from tests.errors import raises_naming


def cast_of(tmp_path: Path, text: str) -> dict[str, Any]:
    file = tmp_path / "evenhand.toml"
    file.write_text(text)
    models: dict[str, ChatModel] = {"default": ScriptedModel(lambda request: "")}
    cast = config.build_cast(config.load(file, None, None), models)
    return {role: model.describe() for role, model in cast.roles.items()}


def test_without_the_section_nobody_searches(tmp_path: Path) -> None:
    assert "search" not in cast_of(tmp_path, "")


@pytest.mark.parametrize(
    ("section", "engine", "url"),
    [
        ('engine = "mediawiki"', "mediawiki@1", "https://en.wikipedia.org/w/api.php"),
        (
            'engine = "mediawiki"\nurl = "http://127.0.0.1:8000/api.php"',
            "mediawiki@1",
            "http://127.0.0.1:8000/api.php",
        ),
        (
            'engine = "searxng"\nurl = "http://127.0.0.1:8888/"',
            "searxng@1",
            "http://127.0.0.1:8888/search",
        ),
        ('engine = "duckduckgo"\npages = false', "duckduckgo@1", None),
    ],
)
def test_an_engine_takes_the_role_of_the_search(
    tmp_path: Path, section: str, engine: str, url: str | None
) -> None:
    described = cast_of(tmp_path, f"[search]\n{section}\n")["search"]
    assert (described["kind"], described["model"]) == ("search", engine)
    assert described.get("url") == url


def test_a_corpus_is_named_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "facts.txt").write_text("Facts.")
    described = cast_of(tmp_path, f'[search]\nengine = "corpus"\npath = "{tmp_path}"\nmost = 2\n')
    assert described["search"]["most"] == 2
    assert len(described["search"]["sha256"]) == 64


def test_a_key_comes_from_the_environment_and_is_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "brave-key-0123456789")
    text = '[search]\nengine = "brave"\napi_key_env = "MY_KEY"\n'
    described = cast_of(tmp_path, text)
    assert described["search"]["model"] == "brave@1"
    assert "brave-key" not in str(described)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ('engine = "searxng"', "url = "),
        ('engine = "corpus"', "path = "),
        ('engine = "brave"\napi_key_env = "NO_SUCH_KEY"', "NO_SUCH_KEY"),
        ('engine = "google"', "search.engine"),
        ('engine = "mediawiki"\nmost = 50', "search.most"),
        ('engine = "mediawiki"\napi_key = "secret"', "search.api_key"),
        ('engine = "mediawiki"\nurl = "en.wikipedia.org"', "url"),
    ],
)
def test_what_is_missing_or_wrong_is_said(tmp_path: Path, section: str, said: str) -> None:
    with raises_naming(UserError, said):
        cast_of(tmp_path, f"[search]\n{section}\n")
