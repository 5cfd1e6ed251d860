"""Every command has its function of the same name in Python, awaited and not."""

import inspect
import re
import typing
from typing import Any

import pytest

import evenhand
from evenhand import aio
from evenhand.cli.app import leaves

# Groups whose commands are values of the first argument of one function.
BY_ARGUMENT = {"measure", "audit"}
# The name is taken: by the language, or by a package of evenhand.
RENAMED = {
    "methods": "list_methods",
    "self_test": "run_self_test",
    "conformance": "run_conformance",
}


def function_name(path: tuple[str, ...]) -> str:
    """The rule: the words of the command with underscores between, those of `dev` without it."""
    words = path[:1] if path[0] in BY_ARGUMENT else path[1:] if path[0] == "dev" else path
    name = "_".join(words).replace("-", "_")
    return RENAMED.get(name, name)


def functions() -> list[str]:
    return sorted(name for name in aio.__all__ if inspect.isfunction(getattr(aio, name)))


def test_every_command_has_its_function_awaited_and_not() -> None:
    named = {function_name(path) for path, _ in leaves()}
    missing = {name for name in named if name not in aio.__all__ or name not in evenhand.__all__}
    assert not missing


def holds_any(hint: object) -> bool:
    if isinstance(hint, str):
        return re.search(r"\bAny\b", hint) is not None
    return hint is Any or any(map(holds_any, typing.get_args(hint)))


@pytest.mark.parametrize("name", functions())
def test_every_argument_and_result_of_a_function_has_a_type_and_none_is_any(name: str) -> None:
    function = getattr(aio, name)
    hints = dict(function.__annotations__)
    settings = typing.get_type_hints(evenhand.RunOptions)  # what `**settings` may hold
    assert set(inspect.signature(function).parameters) <= {*hints, *settings}
    assert "return" in hints
    assert not {argument for argument, hint in {**settings, **hints}.items() if holds_any(hint)}


@pytest.mark.parametrize("name", functions())
def test_the_docstring_of_a_function_with_arguments_says_what_each_is(name: str) -> None:
    function = getattr(aio, name)
    docstring = inspect.getdoc(function) or ""
    described = docstring.partition("\nArgs:\n")[2].partition("\n\n")[0]
    arguments = set(function.__annotations__) - {"return"}
    missing = {
        argument for argument in arguments if f"    {argument}: " not in described.replace("*", "")
    }
    assert not missing, f"{name} does not describe {missing}"
