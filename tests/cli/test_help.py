"""What is shown before anything runs: the first screen, the help, the version, and how soon."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli.app import COMMANDS, app, leaves, load
from tests.cli.conftest import Run, clean_environment
from tests.errors import assert_names

SLOW = ("polars", "scipy", "pyarrow", "aiohttp", "rich", "numpy")


ALL = dict(leaves())


def _shown(path: tuple[str, ...], flag: str = "--help") -> str:
    shown = CliRunner().invoke(app, [*path, flag], env={"COLUMNS": "80"})
    assert shown.exit_code == 0, shown.output
    return shown.output


def _squeezed(text: str) -> str:
    """Without blanks and line breaks, which depend on the width."""
    return "".join(text.split())


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("--version",)])
def test_the_first_screens_import_nothing_large(tmp_path: Path, arguments: tuple[str]) -> None:
    code = (
        "import sys\ntry:\n    from evenhand.cli import main\n    main()\n"
        f"finally:\n    print('loaded', {set(SLOW)} & sys.modules.keys(), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
    assert ran.stderr.strip() == "loaded set()"


@pytest.mark.parametrize(("said", "used"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_a_command_multiplies_matrices_with_one_thread_unless_told_otherwise(
    said: dict[str, str], used: str
) -> None:
    code = (
        "import os, sys\nfrom evenhand.cli import main\ntry:\n    main()\n"
        "finally:\n    print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules)"
    )
    environment = {**clean_environment(), **said}
    if not said:
        environment.pop("OPENBLAS_NUM_THREADS", None)
    ran = subprocess.run(
        [sys.executable, "-c", code, "--version"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.splitlines()[-1] == f"{used} False"


def test_importing_the_package_imports_nothing_large_and_then_every_name_is_there() -> None:
    code = (
        f"import sys, evenhand; print({set(SLOW)} & sys.modules.keys()); "
        "print(evenhand.Item(id='0', prompt='a').prompt, evenhand.methods.named('cot').name, "
        "'Report' in dir(evenhand)); evenhand.nothing"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines() == ["set()", "a cot True"]
    assert_names(ran.stderr, "AttributeError", "'evenhand'", "'nothing'")


def test_evenhand_alone_names_the_questions_and_the_endpoint_without_its_secrets(
    cold_evenhand: Run,
) -> None:
    shown = cold_evenhand(EVENHAND_BASE_URL="http://me:hunter2@127.0.0.1:7/v1?key=sk-1")
    assert shown.returncode == 0
    assert_names(shown.stdout, "measure bbq", "--out runs/now")
    assert "Endpoint: http://127.0.0.1:7/v1\n" in shown.stdout
    unset = cold_evenhand(EVENHAND_BASE_URL="").stdout
    assert_names(unset, "Endpoint:", "(EVENHAND_BASE_URL)")
    assert all(len(line) <= 80 for line in unset.splitlines())


def test_every_command_has_help_with_an_example() -> None:
    assert {
        ("doctor", "litellm"),
        ("measure", "bbq"),
        ("train", "ppo"),
        ("audit", "judge"),
    } <= ALL.keys()
    for path, command in ALL.items():
        assert f"Example: evenhand {' '.join(path)}" in command.help, path


def test_the_help_lists_every_command_under_one_heading() -> None:
    lines = [line.split()[0] for line in _shown(()).splitlines() if line.startswith("  ")]
    first_words = {path.partition(" ")[0] for path in COMMANDS}
    assert {name: lines.count(name) for name in first_words} == dict.fromkeys(first_words, 1)


def test_the_list_of_commands_says_of_each_what_its_own_help_says_first() -> None:
    for name, (_, summary) in COMMANDS.items():
        assert load(name).help.splitlines()[0] == summary


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_shows_every_word_it_was_given(path: tuple[str, ...]) -> None:
    """As markup, `[env: …]` and `[judges]` would be taken for styles and left out."""
    shown = _squeezed(_shown(path))
    assert "<bool>" not in shown
    assert _squeezed(ALL[path].help) in shown
    for parameter in ALL[path].params:
        assert _squeezed(parameter.help) in shown, parameter.name


def test_the_variable_that_sets_an_option_stands_beside_it() -> None:
    for path in (("answer",), ("measure", "bbq"), ("doctor", "endpoint")):
        assert "[env:EVENHAND_BASE_URL]" in _squeezed(_shown(path))


@pytest.mark.parametrize("path", [path for path in COMMANDS if hasattr(load(path), "commands")])
def test_a_list_of_commands_is_not_cut_off(path: str) -> None:
    assert "..." not in _shown(tuple(path.split())).partition("Commands:")[2]


def test_h_is_help_and_o_is_out_everywhere() -> None:
    for path, command in ALL.items():
        assert _shown(path, "-h") == _shown(path)
        for parameter in command.params:
            assert ("--out" in parameter.opts) == ("-o" in parameter.opts), path
