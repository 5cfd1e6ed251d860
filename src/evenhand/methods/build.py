"""A method from its name and its settings as they are written on a command line."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from evenhand.errors import UserError
from evenhand.methods import Method
from evenhand.methods import named as method_named


def build_method(name: str, assignments: Sequence[str] = ()) -> Method:
    """A method by name, with settings such as `max_iterations=3`, or `evaluators=@team.toml` for
    what stands in a file."""
    method = method_named(name)
    settings: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"--set {assignment}: write it as name=value")
        settings[key.strip()] = _text_of(value.strip())
    known = [field.name for field in fields(method)]
    unknown = settings.keys() - set(known)
    if unknown:
        raise UserError(
            f"{name} has no setting {sorted(unknown)[0]!r}; it has: {', '.join(known) or 'none'}"
        )
    try:
        built: Method = TypeAdapter(method).validate_python(settings)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UserError(f"--set {first['loc'][0]}: {first['msg']}") from None
    return built


def _text_of(value: str) -> str:
    """A value as it is written, or what stands in the file that `@FILE` names."""
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{value[1:]} cannot be read: {error}") from None
