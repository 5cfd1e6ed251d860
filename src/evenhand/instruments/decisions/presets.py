"""Presets: what a rule asks of an audit, as data with its source and the day it was read."""

from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.core.errors import UserError
from evenhand.core.package_data import read_toml
from evenhand.findings.estimates import Section
from evenhand.instruments.files import InstrumentWords

_TEXTS = InstrumentWords(__package__)
NOT_ADVICE = _TEXTS("not_advice")
_Words = Annotated[str, Field(min_length=1)]


class DecisionsPreset(BaseModel):
    """A preset says which tables a rule asks for, whether a threshold or a test is in it, what it
    says of small categories, and what must be stated beside the numbers."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    title: _Words
    source: _Words
    read: _Words  # the day, and whether the text itself or what others write of it
    in_force: _Words
    categories: _Words
    threshold: float | None = Field(default=None, gt=0, lt=1)
    threshold_says: _Words
    test: bool
    test_says: _Words
    small: float | None = Field(default=None, gt=0, lt=1)
    small_says: _Words
    stated: list[_Words] = []

    def section(self) -> Section:
        """Make the table of what the rule says."""
        rows = [
            ("source", self.source),
            ("read", self.read),
            ("in force", self.in_force),
            ("categories", self.categories),
            ("threshold", self.threshold_says),
            ("significance test", self.test_says),
            ("small categories", self.small_says),
            *(("to be stated", statement) for statement in self.stated),
        ]
        texts = _TEXTS.section("preset", not_advice=NOT_ADVICE)
        return Section(
            name="preset", title=self.title, columns=("", texts["column"]), rows=tuple(rows),
            note=texts["note"], in_short=True,
        )  # fmt: skip


def names() -> list[str]:
    """Name the presets that there are."""
    files = resources.files(__package__).joinpath("presets").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def preset(name: str) -> DecisionsPreset:
    """Give the preset of this name."""
    if name not in names():
        raise UserError(f"there is no preset {name!r}; there are: {', '.join(names())}")
    try:
        return DecisionsPreset.model_validate(read_toml(__package__, "presets", f"{name}.toml"))
    except ValidationError as error:
        raise UserError(f"the preset {name!r} is broken: {error}") from None
