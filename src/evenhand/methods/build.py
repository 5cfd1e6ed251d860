"""A method from its name and its settings as they are written on a command line."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from evenhand.core import registry
from evenhand.core.errors import UserError, choices_for
from evenhand.methods import Method, StoredAnswer
from evenhand.methods import named as method_named
from evenhand.methods.baselines.detect_first import DetectFirst
from evenhand.methods.shared_settings import has_wordings

_WORDING = "wording"
# Methods whose first draft is `Item.answer`; the others would write a new answer.
FROM_AN_ANSWER = ("stardtox", "self_refine", "self_debias_reprompting")


def of_stored_answers(method: Method) -> Method:
    """Give the method for items whose answers exist: it returns them, or repairs them.

    Args:
        method: The method that was asked for.

    Returns:
        `stored` for the plain prompt; else the method, which begins from the stored answer.

    Raises:
        UserError: The method would answer by itself, and the stored answers would be ignored.
    """
    if method.name in ("default", StoredAnswer.name):
        return StoredAnswer()
    if isinstance(method, DetectFirst):
        return replace(method, first="stored")
    if method.name in FROM_AN_ANSWER:
        return method
    raise UserError(
        f"{method.name} answers by itself, so stored answers would be ignored. Leave out --method "
        f"to score them, or repair them with detect_first, {', '.join(FROM_AN_ANSWER)}"
    )


def build_method(name: str, assignments: Sequence[str] = (), wording: str | None = None) -> Method:
    """Build a method from its name and its settings.

    Args:
        name: The method's name.
        assignments: Settings such as `max_iterations=3`, or `evaluators=@team.toml` to read the
            value from a file.
        wording: Whose prompts are used. None and "ours" mean the usual ones of the method.

    Returns:
        The method.

    Raises:
        UserError: If the method does not have a setting, or a value does not fit.
    """
    method = method_named(name)
    settings = _assigned(assignments)
    names = [field.name for field in fields(method)]
    if wording not in (None, "ours"):
        if _WORDING in settings:
            raise UserError("--wording and --set wording are both given. Leave one out.")
        if _WORDING not in names:
            raise UserError(_no_wording(name, wording))
        settings[_WORDING] = wording
    unknown = settings.keys() - set(names)
    if unknown:
        raise UserError(
            f"{name} has no setting {sorted(unknown)[0]!r}. "
            f"{choices_for(sorted(unknown)[0], names)}"
        )
    return _built(name, method, settings)


def _assigned(assignments: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"--set {assignment}: write it as name=value")
        settings[key.strip()] = _text_of(value.strip())
    return settings


def _built(name: str, method: type[Any], settings: dict[str, Any]) -> Method:
    try:
        built: Method = TypeAdapter(method).validate_python(settings)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["loc"][0] == _WORDING:
            raise UserError(_no_wording(name, settings[_WORDING])) from None
        raise UserError(f"--set {first['loc'][0]}: {first['msg']}") from None
    return built


def _no_wording(name: str, wording: Any) -> str:
    have = [method for method in registry.OWN["methods"] if has_wordings(method_named(method))]
    return (
        f"{name} has no wording {wording!r}; `evenhand methods {name}` lists what can be set. The "
        f"intent of a paper's prompts is a wording of {' and '.join(have)}: "
        f"--method {have[0]} --wording paper"
    )


def _text_of(value: str) -> str:
    """A value as it is written, or what stands in the file that `@FILE` names."""
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"Could not read {value[1:]} ({error}). Check the path after @.") from None
