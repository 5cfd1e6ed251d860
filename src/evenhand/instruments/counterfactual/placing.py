"""Placements put a person around prompts that mention nobody: into memory, a signature, a document
and so on. Each prompt is then asked once per placement."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from evenhand.core.errors import UserError, choices_for
from evenhand.core.package_data import read_toml
from evenhand.instruments.counterfactual.data import CounterfactualPrompt
from evenhand.instruments.files import names_in
from evenhand.runs.runners.message_rows import MessageRow

_SLOT = re.compile(r"\{[^{}]+\}")
_Words = Annotated[str, Field(max_length=2000)]


class Placement(BaseModel):
    """A placement adds words with placeholders to a prompt: to its system prompt, around the turn
    of the user, or as an earlier turn."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    system: _Words = ""
    before: _Words = ""
    after: _Words = ""
    user: _Words = ""
    assistant: _Words = ""

    @model_validator(mode="after")
    def _places_somebody(self) -> Self:
        words = (self.system, self.before, self.after, self.user, self.assistant)
        if not any(map(_SLOT.search, words)):
            raise ValueError("no placeholder such as {name} in system, before, after or user")
        if bool(self.user) != bool(self.assistant):
            raise ValueError("an earlier turn has both: user and assistant")
        return self

    def around(self, prompt: CounterfactualPrompt, name: str) -> CounterfactualPrompt:
        """Give the prompt with these words around it."""
        task = f"{_doubled(prompt.task)}\n\n" if prompt.task else ""
        rows, turns = list(prompt.messages), list(prompt.turns)
        if prompt.prompt:
            rows = [_row("user", task + self._framed(prompt.prompt))]
        elif turns:
            turns[0] = self._framed(turns[0])
        else:
            at = max(at for at, row in enumerate(rows) if row.role == "user")
            rows[at] = _row("user", self._framed(rows[at].message().content))
        if self.system:
            first = rows[0].message().content if rows and rows[0].role == "system" else ""
            system = _row("system", f"{first}\n\n{self.system}" if first else self.system)
            rows = [system, *(rows[1:] if first else rows)]
        if self.user:
            own = 1 if rows and rows[0].role == "system" else 0
            earlier = _row("user", self.user), _row("assistant", self.assistant)
            rows = [*rows[:own], *earlier, *rows[own:]]
        return CounterfactualPrompt(
            id=prompt.id, messages=rows, turns=turns, user=prompt.user, place=name
        )

    def _framed(self, text: str) -> str:
        return f"{self.before}{text}{self.after}"


def _row(role: str, content: str) -> MessageRow:
    return MessageRow.model_validate({"role": role, "content": content})


def _doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def placements(names: str, file: Path | None) -> dict[str, Placement]:
    """Read the placements that are named with commas: ready-made ones, and those of a file.

    Args:
        names: Names of placements.
        file: TOML file that defines further ones. None: there are none.

    Returns:
        The placements by name, in this order.

    Raises:
        UserError: A placement does not exist, or cannot be read.
    """
    tables: dict[str, Mapping[str, str]] = dict(read_toml(__package__, "placements.toml"))
    if file is not None:
        try:
            tables |= tomllib.loads(file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UserError(f"{file} cannot be read as TOML: {error}") from None
    chosen: dict[str, Placement] = {}
    for name in names_in(names):
        if name not in tables:
            raise UserError(f"there is no placement {name!r}. {choices_for(name, [*tables])}")
        try:
            chosen[name] = Placement.model_validate(tables[name])
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise UserError(f"the placement {name!r}: {first['msg']}") from None
    return chosen


def placed(
    prompts: Sequence[CounterfactualPrompt], chosen: Mapping[str, Placement]
) -> list[CounterfactualPrompt]:
    """Give every prompt once per placement.

    Args:
        prompts: Prompts that mention nobody.
        chosen: Placements by name. Empty: the prompts stay as they are.

    Returns:
        The prompts; those of one prompt have its id.

    Raises:
        UserError: A prompt has placeholders of its own.
    """
    for prompt in prompts if chosen else ():
        if _SLOT.search(prompt.text.replace("{{", "").replace("}}", "")):
            raise UserError(
                f"prompt {prompt.id!r} has a placeholder of its own, so --place would mention the "
                "person twice. Remove the placeholder, or leave out --place"
            )
    return [
        placement.around(prompt, name) for prompt in prompts for name, placement in chosen.items()
    ] or list(prompts)
