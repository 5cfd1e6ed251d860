"""The house itself: the contracts bite, the front door is pinned, the network is off."""

import ast
import inspect
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import evenhand
from evenhand.aio import FUNCTIONS
from tests.errors import raises_naming

ROOT = Path(__file__).parents[2]


def test_the_front_door_offers_exactly_these_names() -> None:
    do = {name for names in FUNCTIONS.values() for name in names}
    models = "Cast Endpoint ScriptedModel replay_of"
    write = "Agent Ask FreeText Instrument Measure Method Prompt Reply"
    data = "Answer Draft Item Limits"
    found = "Comparison Report Run"
    rest = "EvenhandError RunOptions UserError"
    names = " ".join((models, write, data, found, rest)).split()
    assert sorted(evenhand.__all__) == sorted({*names, *do})
    for name in evenhand.__all__:
        assert getattr(evenhand, name).__doc__, f"{name} has no docstring"


def test_what_can_be_called_can_also_be_awaited_under_the_same_name_with_the_same_arguments() -> (
    None
):
    names = sorted(name for listed in FUNCTIONS.values() for name in listed)
    assert ["Watch", *names] == evenhand.aio.__all__
    for name in names:
        waits, awaited = getattr(evenhand, name), getattr(evenhand.aio, name)
        assert inspect.iscoroutinefunction(awaited)
        assert not inspect.iscoroutinefunction(waits)
        assert inspect.signature(waits) == inspect.signature(awaited)


# What belongs to no single package: whole programs, pages, attacks, and what tests stand on.
ACROSS = {
    *("docs", "examples", "fuzz", "hostile", "house", "real", "release", "same_numbers"),
    "loopback",
}


def test_tests_stand_beside_their_packages_in_a_mirrored_tree() -> None:
    packages = {path.name for path in (ROOT / "src/evenhand").iterdir() if path.is_dir()}
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")}
    assert folders - ACROSS <= packages
    assert not list((ROOT / "tests").glob("test_*.py"))


@pytest.mark.parametrize(
    "package", "aio core instruments methods models scorers statistics testing".split()
)
def test_a_public_package_is_there_without_an_import_of_its_own(package: str) -> None:
    code = f"import evenhand; print(evenhand.{package}.__name__)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout == f"evenhand.{package}\n", ran.stderr


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert evenhand.__version__ == project["version"]


def _lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environment = {"PYTHONPATH": str(root / "src"), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("planted_in", "forbidden"),
    [
        ("core/items.py", "import evenhand.runs"),
        ("methods/stardtox.py", "import evenhand.runs"),
        ("findings/report.py", "import evenhand.models"),
        ("runs/store/reader.py", "import evenhand.experiments.config"),
        ("methods/stardtox.py", "import aiohttp"),
    ],
)
def test_a_forbidden_import_breaks_the_contracts(
    tmp_path: Path, planted_in: str, forbidden: str
) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert _lint_imports(tmp_path).returncode == 0
    target = tmp_path / "src" / "evenhand" / planted_in
    target.write_text(f"{target.read_text()}\n\n{forbidden}\n")
    broken = _lint_imports(tmp_path)
    assert broken.returncode == 1, broken.stdout + broken.stderr
    assert "BROKEN" in broken.stdout


def test_a_test_cannot_reach_the_network() -> None:
    with socket.socket() as outward, raises_naming(OSError, "network", "192.0.2.1"):
        outward.connect(("192.0.2.1", 80))


def test_only_config_reads_the_environment_and_only_the_cli_prints() -> None:
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text()
        if file.name not in ("config.py", "environment.py"):
            assert "os.environ" not in text, file
            assert "getenv" not in text, file
        if "cli" not in file.parts:
            assert not re.search(r"\bprint\(", text), file


def test_the_package_runs_without_what_only_its_tests_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [re.match(r"[\w-]+", line)[0] for line in project["dependencies"]]  # type: ignore[index]
    imported = "\n".join(file.read_text() for file in (ROOT / "src").rglob("*.py"))
    names = {"pyyaml": "yaml"}
    for package in wanted:
        name = names.get(package, package)
        assert re.search(rf"^\s*(import|from) {name}\b", imported, re.MULTILINE), package


def test_importing_the_training_package_leaves_the_environment_alone() -> None:
    code = "import os; b = dict(os.environ); import evenhand.training; print(b == dict(os.environ))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout == "True\n", ran.stderr


PLAIN_WORDS = ("findings/*.py", "views/*.py", "experiments/*.py", "instruments/_contract.py")


def _fragment(docstring: str) -> bool:
    """Whether the first paragraph is no sentence, as far as a rule can tell."""
    first = docstring.split("\n\n", maxsplit=1)[0].strip()
    return not first.endswith(".") or first.startswith("Of ") or first[0].islower()


@pytest.mark.parametrize("pattern", PLAIN_WORDS)
def test_a_public_docstring_begins_with_a_whole_sentence(pattern: str) -> None:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in sorted((ROOT / "src/evenhand").glob(pattern)):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node, "name", "")
            if isinstance(node, documented) and not name.startswith("_"):
                docstring = ast.get_docstring(node)
                assert not (docstring and _fragment(docstring)), f"{path.name}: {name}: {docstring}"


@pytest.mark.parametrize(
    ("docstring", "fragment"),
    [
        ("A change is after minus before.", False),
        ("`run.json` says what a run is.\n\nmore", False),
        ("Of one reply.", True),
        ("scale times a ratio.", True),
        ("A page without an end", True),
    ],
)
def test_a_fragment_is_told_from_a_sentence(docstring: str, fragment: bool) -> None:
    assert _fragment(docstring) is fragment


WORDS = sorted((ROOT / "src/evenhand").rglob("words.toml"))


@pytest.mark.parametrize("file", WORDS, ids=lambda file: file.parent.name)
def test_every_text_that_is_asked_for_is_there_and_every_text_is_asked_for(file: Path) -> None:
    words = tomllib.loads(file.read_text("utf-8"))
    code = "\n".join(path.read_text("utf-8") for path in file.parent.glob("*.py"))
    named = {"measure": words.get("measures", {}), "section": words.get("sections", {})}
    calls = {"measure": "measure", "section": "(?:section|table)"}
    for kind, texts in named.items():
        call = calls[kind]
        asked = set(re.findall(rf'_?(?:WORDS|TEXTS)\.{call}\(\s*"(\w+)"', code))
        assert asked <= texts.keys(), kind
    sentences = {key for key, text in words.items() if isinstance(text, str)}
    assert set(re.findall(r'\b_?(?:WORDS|TEXTS)\(\s*"(\w+)"', code)) <= sentences
    quoted = set(re.findall(r'"(\w+)"', code))
    made = set(re.findall(r'f"(\w+?_)\{', code)) | set(re.findall(r'\}(_\w+)"', code))
    for key in {*sentences, *named["measure"], *named["section"]} - quoted:
        assert any(key.startswith(part) or key.endswith(part) for part in made), key


def test_the_published_schemas_are_those_of_the_code() -> None:
    """After a change: python scripts/json_schemas.py. A released format gets a new number."""
    command = [sys.executable, str(ROOT / "scripts/json_schemas.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0


def test_the_drawing_of_the_rooms_is_the_one_that_the_imports_give() -> None:
    """After a change: python scripts/architecture_drawing.py."""
    command = [sys.executable, str(ROOT / "scripts/architecture_drawing.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0
