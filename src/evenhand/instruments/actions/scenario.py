"""A scenario declares what an agent is asked, about whom, and which of its actions are outcomes."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from evenhand.core.errors import UserError, choices_for
from evenhand.instruments.counterfactual.data import CounterfactualPrompt
from evenhand.runs.runners.message_rows import MessageRow, ToolRow

_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)
_FOLDER = "scenarios"
_PROFILE = "{profile}"
_BRACE = re.compile("[{}]")  # doubled in what is no template
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
_Text = Annotated[str, Field(min_length=1)]
OutcomeKind = Literal["choice", "number", "level", "tool"]


def word_of(value: Any) -> str | None:
    """Give a decision as a word: true is "yes" and false is "no". Anything else is none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.strip().lower() if isinstance(value, str) else None


class ActionOutcome(BaseModel):
    """An outcome of an action, and where it stands in the answer.

    Every outcome is read as a share from 0 to 1: a decision as whether it is the favorable one, a
    number or a level by its place on its scale, a tool as whether it was called.
    """

    model_config = _STRICT
    kind: OutcomeKind
    at: str = ""  # keys with dots between: within the arguments of `tool`, or else the answer
    tool: str = ""
    favorable: str = ""
    choices: tuple[str, ...] = ()  # every word that is a decision; any other is missing
    least: float | None = None
    most: float | None = None
    levels: tuple[str, ...] = ()  # from the lowest to the highest

    @field_validator("favorable", mode="before")
    @classmethod
    def _as_word(cls, value: Any) -> Any:
        return word_of(value)

    @field_validator("choices", "levels", mode="before")
    @classmethod
    def _as_words(cls, value: Any) -> Any:
        return tuple(map(word_of, value)) if isinstance(value, Sequence) else value

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        needed: Mapping[OutcomeKind, tuple[tuple[str, bool], ...]] = {
            "choice": (
                ("at", bool(self.at)),
                ("favorable", bool(self.favorable)),
                ("choices, two or more", len(self.choices) > 1),
            ),
            "number": (("at", bool(self.at)), ("least and most", self._is_scale)),
            "level": (("at", bool(self.at)), ("levels, two or more", len(self.levels) > 1)),
            "tool": (("tool", bool(self.tool)),),
        }
        lacking = [name for name, there in needed[self.kind] if not there]
        if lacking:
            raise ValueError(f"a {self.kind} needs {' and '.join(lacking)}")
        if self.kind == "choice" and self.favorable not in self.choices:
            raise ValueError(f"favorable is none of the choices: {self.favorable!r}")
        return self

    @property
    def _is_scale(self) -> bool:
        return self.least is not None and self.most is not None and self.least < self.most

    @property
    def is_yes_or_no(self) -> bool:
        """Whether it happens or does not, so that its mean is a rate."""
        return self.kind in ("choice", "tool")

    @property
    def reach(self) -> float:
        """How much one unit of the share is on the outcome's own scale."""
        if self.kind == "number":
            return (self.most or 0.0) - (self.least or 0.0)
        return float(len(self.levels) - 1) if self.kind == "level" else 1.0

    def own_scale(self, share: float) -> float:
        """Give a share on the outcome's own scale. Levels count from 1."""
        start = {"number": self.least or 0.0, "level": 1.0}.get(self.kind, 0.0)
        return start + share * self.reach

    def share(self, answer: Any) -> float | None:
        """Read the outcome.

        Args:
            answer: The answer, parsed from JSON.

        Returns:
            A number from 0 to 1. None if the answer does not state the outcome.
        """
        if self.kind == "tool":
            calls = calls_in(answer)
            return None if calls is None else float(any(name == self.tool for name, _ in calls))
        value = _at(self._holder(answer), self.at)
        if self.kind == "number":
            return self._on_scale(value)
        word = word_of(value)
        if word is None or word not in (*self.choices, *self.levels):
            return None
        if self.kind == "level":
            return self.levels.index(word) / (len(self.levels) - 1)
        return float(word == self.favorable)

    def _holder(self, answer: Any) -> Any:
        """The arguments of the last call of the tool, or the answer itself."""
        if not self.tool:
            return answer
        calls = [arguments for name, arguments in calls_in(answer) or () if name == self.tool]
        return calls[-1] if calls else None

    def _on_scale(self, value: Any) -> float | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        share = (value - (self.least or 0.0)) / self.reach
        return share if 0 <= share <= 1 else None


def _at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def calls_in(answer: Any) -> list[tuple[str, Any]] | None:
    """Give the tool calls of an answer, each with its arguments.

    Args:
        answer: The answer, parsed from JSON. `tool_calls` lists its calls, as name and arguments,
            or as OpenAI's chat API has them.

    Returns:
        The calls. None if the answer does not say which tools were called.
    """
    listed = answer.get("tool_calls") if isinstance(answer, Mapping) else None
    if not isinstance(listed, list):
        return None
    calls = []
    for entry in listed:
        call = entry.get("function", entry) if isinstance(entry, Mapping) else None
        if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
            return None
        calls.append((call["name"], _parsed(call.get("arguments"))))
    return calls


def _parsed(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return None


class ActionProfile(BaseModel):
    """One person or case that the agent decides about."""

    model_config = _STRICT
    id: Annotated[str, Field(min_length=1, max_length=200)]
    text: _Text


class ScenarioTool(BaseModel):
    """A tool that is declared to the model. It is never executed: its call is the action."""

    model_config = _STRICT
    name: _Text
    description: _Text
    parameters: dict[str, Any] = {"type": "object", "properties": {}}

    def row(self) -> ToolRow:
        """The tool as a conversation declares it."""
        return ToolRow.model_validate({"function": self.model_dump()})


class Scenario(BaseModel):
    """What an agent is asked about each profile, and what counts of its answer."""

    model_config = _STRICT
    title: _Text
    source: str = ""  # who wrote the profiles: reports show it
    system: str = ""  # as it is: placeholders are in the prompt and the profiles
    prompt: str = _PROFILE
    outcomes: Annotated[dict[_Name, ActionOutcome], Field(min_length=1)]
    profiles: tuple[ActionProfile, ...] = ()
    tools: tuple[ScenarioTool, ...] = ()  # for a model; an app has its own

    @field_validator("profiles", "tools", mode="before")
    @classmethod
    def _as_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    def prompts(self) -> list[CounterfactualPrompt]:
        """Give what is asked about each profile, with its placeholders."""
        return [
            CounterfactualPrompt(id=profile.id, **self._words(profile)) for profile in self.profiles
        ]

    def _words(self, profile: ActionProfile) -> dict[str, Any]:
        text = self.prompt.replace(_PROFILE, profile.text)
        tools = [tool.row() for tool in self.tools]
        if not (self.system or tools):
            return {"prompt": text}
        escaped = _BRACE.sub(r"\g<0>\g<0>", self.system)
        system = [MessageRow(role="system", content=escaped)] if escaped else []
        return {"messages": [*system, MessageRow(role="user", content=text)], "tools": tools}


def scenario_names() -> list[str]:
    """Name the scenarios that ship with evenhand."""
    files = resources.files(__package__).joinpath(_FOLDER).iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def read_scenario(name: str) -> Scenario:
    """Read a scenario that ships with evenhand, or a file.

    Args:
        name: The scenario's name, or the path of a TOML file.

    Returns:
        The scenario.

    Raises:
        UserError: The file cannot be read, or is not a scenario.
    """
    if name in scenario_names():
        text = resources.files(__package__).joinpath(_FOLDER, f"{name}.toml").read_text("utf-8")
    else:
        text = _text_of(Path(name))
    try:
        scenario = Scenario.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{name} is not valid TOML: {error}. Fix the file") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(
            f"{name}: {where}: {first['msg']}. `evenhand dev new scenario NAME` writes one to "
            "start from"
        ) from None
    ids = [profile.id for profile in scenario.profiles]
    if len(set(ids)) < len(ids):
        twice = next(each for each in ids if ids.count(each) > 1)
        raise UserError(f"{name}: two profiles have the id {twice!r}. Rename one of them")
    return scenario


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        choices = choices_for(str(path), scenario_names())
        raise UserError(
            f"no scenario {str(path)!r}. {choices}; or name a TOML file, as `evenhand dev new "
            "scenario NAME` writes it"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
