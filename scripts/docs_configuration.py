"""Write docs/configuration.md: every table and key of the configuration files, from the models that
read them. `python scripts/docs_configuration.py` writes the page, and `--check` compares it.

The descriptions are in docs_configuration.toml beside this script, one table per model. A key
without a description, or a description without a key, is an error.
"""

import dataclasses
import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from evenhand.agents import Limits
from evenhand.experiments import config, gate_file
from evenhand.gateway import policy
from evenhand.instruments.harm import HarmConfig
from evenhand.scorers import kinds

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
WORDS = Path(__file__).with_suffix(".toml")

# The models in the order of the page, by the name of their table of descriptions.
MODELS: dict[str, type] = {
    "config": config.Config,
    "models": config.ModelConfig,
    "limits": Limits,
    "search": config.SearchConfig,
    "judges": config.JudgesConfig,
    "scorers": kinds.ScorerKind,
    "openai_moderation": kinds.ModerationConfig,
    "perspective": kinds.PerspectiveConfig,
    "classifier": kinds.ClassifierConfig,
    "guard": kinds.GuardConfig,
    "judge": kinds.JudgeConfig,
    "http": kinds.HttpConfig,
    "harms": HarmConfig,
    "prices": config.PriceFile,
    "price": config.PriceConfig,
    "policy": policy.Policy,
    "check": policy.CheckPolicy,
    "tenant": policy.Tenant,
    "gate": gate_file._GateFileCheck,
}
_SHARED = ("openai_moderation", "perspective", "classifier", "guard", "judge", "http")
_INNER = {"policy": {"check", "tenants", "screens"}, "tenant": {"check"}}  # no keys of the file
_TYPES = {
    str: "text", int: "whole number", float: "number", bool: "`true` or `false`", Path: "path",
    dict: "table", list: "list", tuple: "list", Any: "any",
}  # fmt: skip


def keys_of(name: str) -> Iterator[tuple[str, str, str]]:
    """Give each key of a model with its type and its default in words."""
    model = MODELS[name]
    if issubclass(model, BaseModel):
        hints = get_type_hints(model, include_extras=True)
        fields = {
            key: (hints[key], PydanticUndefined if field.is_required() else field.get_default())
            for key, field in model.model_fields.items()
        }
    else:
        hints = get_type_hints(model, include_extras=True)
        fields = {one.name: (hints[one.name], one.default) for one in dataclasses.fields(model)}
    base = set(kinds.ScorerKind.model_fields) if name in _SHARED else set()
    for key, (hint, default) in fields.items():
        if key not in _INNER.get(name, set()) and key not in base:
            yield key, type_of(hint), _default(default)


def type_of(hint: Any) -> str:
    """Say in words what a key may hold."""
    if get_origin(hint) is Annotated:
        return type_of(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(type_of(one) for one in get_args(hint) if one is not NoneType)
    if get_origin(hint) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(hint))
    plain = get_origin(hint) or hint
    return _TYPES.get(plain, "table")


def _default(value: Any) -> str:
    if value is PydanticUndefined or value is dataclasses.MISSING:
        return "required"
    if value is None or isinstance(value, (BaseModel, Limits)) or value in ({}, [], (), ""):
        return ""
    if isinstance(value, dict):
        return "built in"
    return f"`{json.dumps(value, ensure_ascii=False, default=str)}`"


def table(name: str, words: dict[str, str]) -> str:
    """Give the table of one model.

    Raises:
        SystemExit: A key has no description, or a description has no key.
    """
    keys = list(keys_of(name))
    if differ := {key for key, _, _ in keys} ^ words.keys():
        raise SystemExit(f"{WORDS.name}, [{name}]: {sorted(differ)} is only on one side")
    rows = [f"| `{key}` | {of} | {default} | {words[key]} |" for key, of, default in keys]
    return "\n".join(["| key | type | default | meaning |", "| --- | --- | --- | --- |", *rows])


def page() -> str:
    """Give the whole page."""
    said = tomllib.loads(WORDS.read_text("utf-8"))
    text: str = said.pop("page")
    for name in MODELS:
        text = text.replace(f"<{name}>", table(name, said.pop(name)))
    if said:
        raise SystemExit(f"{WORDS.name}: there is no model {sorted(said)}")
    return text


def main() -> None:
    """Write the page, or with `--check` compare it."""
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(page(), "utf-8")
    elif PAGE.read_text("utf-8") != page():
        raise SystemExit(f"{PAGE.name} is out of date: python scripts/docs_configuration.py")


if __name__ == "__main__":
    main()
