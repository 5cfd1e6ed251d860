"""Describe the methods that are installed: calls per item, settings, and an example."""

import inspect
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.findings.display import Remark, RemarkOrText
from evenhand.methods import named as method_named

# Those that do not answer the questions of a benchmark by themselves.
_OWN_EXAMPLES = ("stored", "rate", "panel", "two_responses", "averaged", "blind")


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodDescription:
    """A method as a list shows it. `about` holds the error of one that cannot be loaded."""

    about: str
    calls_an_item: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    example: RemarkOrText = ""


def described_methods(name: str | None = None) -> dict[str, MethodDescription]:
    """Describe every method, or the one of this name.

    Raises:
        UserError: If there is no method of this name.
    """
    available = registry.names("methods")
    if name is not None and name not in available:
        raise UserError(f"there is no method {name!r}; there are: {', '.join(available)}")
    return {each: _described(each) for each in available if name in (None, each)}


def _described(name: str) -> MethodDescription:
    try:
        kind = method_named(name)
    except UserError as problem:  # with a method of another package; ours are listed all the same
        return MethodDescription(about=str(problem))
    settings = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    return MethodDescription(
        about=_about(kind),
        calls_an_item=getattr(kind, "calls_an_item", "not said"),
        settings=settings,
        example=_example(kind.name, settings),
    )


def _about(kind: type[Any]) -> str:
    """A file that is one method is its description; where a file has several, the class is."""
    modules = [path.partition(":")[0] for path in registry.OWN["methods"].values()]
    alone = modules.count(kind.__module__) == 1
    text = inspect.getdoc(inspect.getmodule(kind) if alone else kind) or ""
    return text.partition("\n\n")[0].replace("\n", " ")


def _example(name: str, settings: dict[str, Any]) -> Remark:
    if name in _OWN_EXAMPLES:
        return Remark(f"example.{name}")
    first = next((f" --set {key}={value}" for key, value in settings.items()), "")
    return Remark("example.method", name=name, setting=first)
