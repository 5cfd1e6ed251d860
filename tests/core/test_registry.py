"""Parts of other packages are found by their entry points; a bad one is refused by its own name."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand import Item, ScriptedModel, aio
from evenhand.agents import Cast
from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.methods import DefaultPrompt, named
from evenhand.methods.build import build_method
from evenhand.scorers.kinds import ScorerKind
from tests.errors import raises_naming

METHOD = '''
from dataclasses import dataclass
from typing import ClassVar
from evenhand.methods import DefaultPrompt

@dataclass(frozen=True, slots=True, kw_only=True)
class Louder:
    """Answers as the default prompt does."""

    name: ClassVar[str] = "louder"
    times: int = 2

    def agents(self):
        return DefaultPrompt().agents()

    async def answer(self, item, ask):
        return await DefaultPrompt().answer(item, ask)

def no_method():
    return None
'''
SCORER = """
from typing import Literal
from evenhand.scorers import WordList
from evenhand.scorers.kinds import ScorerKind

class Strict(WordList):
    def describe(self):
        return {"kind": "strict"}

class StrictKind(ScorerKind):
    kind: Literal["strict"]
    url: str
    level: int = 1

    def scorer(self, key):
        return Strict()
"""
SEARCH = """
class Shelf:
    name, gives_pages = "shelf@1", True

    def __init__(self, url):
        self.url = url

    def describe(self):
        return {"url": self.url}

    async def search(self, query, most, deadline):
        return ()

    async def close(self):
        return None

def shelf(settings):
    return Shelf(settings.url)
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a package where Python finds it, as pip would: its code, and what it declares."""

    def installed(package: str, code: str, **groups: str) -> None:
        place = tmp_path / package
        about = place / f"{package}-3.1.dist-info"
        about.mkdir(parents=True)
        (place / f"{package}.py").write_text(code)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 3.1\n")
        declared = "".join(
            f"[evenhand.{group}]\n{name} = {package}:{part}\n"
            for group, parts in groups.items()
            for name, _, part in (one.partition("=") for one in parts.split())
        )
        (about / "entry_points.txt").write_text(declared)
        monkeypatch.syspath_prepend(str(place))
        sys.modules.pop(package, None)

    return installed


def test_a_method_of_another_package_is_found_listed_last_and_built_with_settings(
    install: Install,
) -> None:
    ours = registry.names("methods")
    install("theirs", METHOD, methods="louder=Louder")
    assert registry.names("methods") == [*ours, "louder"]
    built: Any = build_method("louder", ["times=5"])
    assert (built.name, built.times) == ("louder", 5)
    with raises_naming(UserError, "louder", "'loud'", "times"):
        build_method("louder", ["loud=1"])


async def test_a_record_says_which_package_and_version_its_parts_come_from(
    install: Install, tmp_path: Path
) -> None:
    install("theirs", METHOD, methods="louder=Louder")
    model = ScriptedModel(lambda _: "fine")
    run = await aio.mitigate(["Hi."], model=model, out=tmp_path / "run", method=named("louder")())
    assert run.record.versions["theirs"] == "3.1"
    plain = await aio.mitigate(["Hi."], model=model, out=tmp_path / "own", method=DefaultPrompt())
    assert "theirs" not in plain.record.versions
    assert run.record.model_copy(update={"versions": {}}).differences(run.record) == []


def test_a_kind_of_scorer_of_another_package_is_held_to_its_own_settings(
    install: Install, tmp_path: Path
) -> None:
    install("scoring", SCORER, scorers="strict=StrictKind")
    file = tmp_path / "evenhand.toml"
    file.write_text('[scorers.s]\nkind = "strict"\nurl = "http://a.example"\nlevel = 3\n')
    config = configuration.load(file, None, None)
    assert config.scorers["s"].model_dump()["level"] == 3
    assert configuration.scorer_by_name(config, "s").describe() == {"kind": "strict"}
    said = configuration.scorer_by_name(config, "strict=http://a.example")
    assert type(said).__name__ == "Strict"
    for wrong, facts in (
        ("loud = 1", ("scorers.s", "loud", "Extra inputs")),
        ("level = 'x'", ("scorers.s", "level", "integer")),
    ):
        file.write_text(f'[scorers.s]\nkind = "strict"\nurl = "http://a.example"\n{wrong}\n')
        with raises_naming(UserError, *facts):
            configuration.load(file, None, None)


async def test_a_search_engine_of_another_package_takes_the_role_of_the_search(
    install: Install, tmp_path: Path
) -> None:
    install("shelves", SEARCH, searches="shelf=shelf")
    file = tmp_path / "evenhand.toml"
    file.write_text('[search]\nengine = "shelf"\nurl = "http://a.example"\n')
    model = ScriptedModel(lambda _: "")
    config = configuration.load(file, None, None)
    cast = configuration.build_cast(config, {"default": model})
    described = cast.roles["search"].describe()
    assert (described["model"], described["url"]) == ("shelf@1", "http://a.example")
    found = build_method("search_first")
    made = _record(found, cast)
    assert made.versions["shelves"] == "3.1"


def _record(method: Any, cast: Cast) -> Any:
    from evenhand.runs.runners import ItemList, RunPlan  # noqa: PLC0415

    return RunPlan(method=method, cast=cast, source=ItemList([Item(id="0", prompt="Hi.")])).record()


# -- what is wrong is refused by its name, and nothing else is ------------------------------------


def test_a_package_that_cannot_be_imported_is_named_and_breaks_no_other_name(
    install: Install,
) -> None:
    install("broken", "raise RuntimeError('no licence')", methods="lost=Lost stray=Stray")
    install("theirs", METHOD, methods="louder=Louder")
    with raises_naming(UserError, "'lost'", "broken 3.1", "RuntimeError", "no licence"):
        named("lost")
    assert named("louder").name == "louder"
    assert named("default") is DefaultPrompt


def test_a_name_that_two_packages_declare_is_refused_with_both(install: Install) -> None:
    install("one", METHOD, methods="louder=Louder")
    install("two", METHOD, methods="louder=Louder")
    with raises_naming(UserError, "'louder'", "one 3.1", "two 3.1"):
        named("louder")
    assert registry.names("methods").count("louder") == 1


def test_nobody_takes_the_name_of_one_of_our_parts(install: Install) -> None:
    install("theirs", METHOD, methods="stardtox=Louder")
    with raises_naming(UserError, "'stardtox'", "evenhand", "theirs 3.1"):
        named("stardtox")
    assert named("mabrf").name == "mabrf"


@pytest.mark.parametrize(
    ("entry", "facts"),
    [
        ("quiet=Louder", ("theirs 3.1", "'quiet'", "'louder'")),
        ("quiet=no_method", ("'quiet'", "frozen dataclass")),
        ("quiet=nothing", ("theirs 3.1", "'quiet'", "'nothing'")),
    ],
)
def test_what_is_no_method_is_refused_in_words(
    install: Install, entry: str, facts: tuple[str, ...]
) -> None:
    install("theirs", METHOD, methods=entry)
    with raises_naming(UserError, *facts):
        build_method("quiet")


def test_what_is_no_kind_of_scorer_is_refused(install: Install) -> None:
    install("theirs", METHOD, scorers="quiet=no_method")
    with raises_naming(UserError, "'quiet'", "ScorerKind"):
        configuration.scorer_by_name(configuration.Config(), "quiet=http://a.example")


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with raises_naming(UserError, "'magic'", "method", "default, fairness, cot"):
        registry.load("methods", "magic")
    with raises_naming(UserError, "'magic'", "scorer", "openai_moderation"):
        registry.load("scorers", "magic")


# -- our own --------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", registry.OWN)
def test_each_of_our_parts_is_there_under_its_own_name(group: registry.Group) -> None:
    for name in registry.OWN[group]:
        if name == "inspect":  # `make check-providers` loads it: Inspect is in no lock
            pytest.importorskip("inspect_ai")
        part = registry.load(group, name)
        assert registry.distribution_of(group, name) is None
        if group == "methods":
            assert part.name == name
        if group == "scorers":
            assert issubclass(part, ScorerKind)
            assert f"'{name}'" in str(part.model_fields["kind"].annotation)


def test_a_method_is_imported_when_it_is_asked_for_and_not_before() -> None:
    code = (
        "import sys; from evenhand.core import registry; registry.names('methods');"
        "assert 'evenhand.methods.baselines.several_drafts' not in sys.modules;"
        "registry.load('methods', 'best_of_n');"
        "assert 'evenhand.methods.baselines.several_drafts' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_our_own_parts_are_declared_in_one_place() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    groups = [name for name in project.get("entry-points", {}) if re.match("evenhand", name)]
    assert groups == []
