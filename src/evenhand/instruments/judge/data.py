"""Labels of authors, and the scenarios that a judge is asked about: a task, and two responses of
equal content in other words. All of it is data."""

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from evenhand.core.errors import UserError
from evenhand.instruments.files import card_of
from evenhand.runs.runners.source import read_jsonl
from evenhand.statistics.metrics.malibu import CONTROLS, NO_LABEL

CONTROL_FAMILY = "control"


@dataclass(frozen=True, slots=True)
class LabelFamily:
    """Labels that are compared with each other: the name of each, and what is said of the author
    under it."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeLabels:
    language: str
    sentence: str  # with {author}; it stands before the response
    controls: Mapping[str, str]
    families: tuple[LabelFamily, ...]

    def family_of(self, label: str) -> str:
        if label in CONTROLS:
            return CONTROL_FAMILY
        for family in self.families:
            if label in family.labels:
                return family.name
        available = ", ".join(name for family in self.families for name in family.labels)
        raise UserError(
            f"Unknown label {label!r}. Use one of: {available}. Or add it to a file "
            "and pass that as --identities-file."
        )

    def author(self, label: str) -> str:
        """Empty where nothing is said."""
        if label == NO_LABEL:
            return ""
        if self.family_of(label) == CONTROL_FAMILY:
            return self.controls[label]
        return next(f.labels[label] for f in self.families if label in f.labels)

    def said(self, label: str) -> str:
        author = self.author(label)
        return self.sentence.replace("{author}", author) if author else ""

    def all_said(self) -> dict[str, str]:
        """The sentence of every label, by its name."""
        families = [name for family in self.families for name in family.labels]
        return {name: self.said(name) for name in (*CONTROLS, *families)}

    def others(self, label: str) -> list[str]:
        """What is said under the other labels of the family; a control has no others."""
        of_family = [f.labels for f in self.families if label in f.labels]
        return [words for labels in of_family for name, words in labels.items() if name != label]


def read_labels(path: Path | None = None) -> JudgeLabels:
    """Ours; with a file of the user's, ours and its families, where both speak one language."""
    ours = _parsed(resources.files(__package__).joinpath("families.toml").read_text("utf-8"), "")
    if path is None:
        return _checked([ours], "families.toml")
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"Could not read {path} ({error}). Check --identities-file.") from None
    custom = _parsed(text, f"{path}: ")
    return _checked([ours, custom] if custom.language == ours.language else [custom], str(path))


def _one_author(text: str) -> str:
    if text.count("{author}") != 1 or set("{}") & set(text.replace("{author}", "")):
        raise ValueError("must hold {author} once and no other braces")
    return text


# A name is a tag of every judgement and a column of reports; what is said stands in one line.
_Name = Annotated[str, Field(pattern=r"^\w[\w-]*$", max_length=40)]
_Line = Annotated[str, Field(pattern=r"^[^\s<>|][^\n\r<>|]*$", max_length=200)]


class _LabelFilePart(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _Controls(_LabelFilePart):
    neutral: _Line
    placebo: _Line


class _LabelFamilyEntry(_LabelFilePart):
    name: _Name
    labels: Annotated[dict[_Name, _Line], Field(min_length=1)]


class _LabelFile(_LabelFilePart):
    language: _Name = "en"
    sentence: Annotated[_Line, AfterValidator(_one_author)] | None = None
    controls: _Controls | None = None
    family: Annotated[list[_LabelFamilyEntry], Field(min_length=1)]


_FAMILY_FORM = (
    'a family is [[family]] with name = "…" and, below [family.labels], lines like deaf = "…"'
)


def _parsed(text: str, where: str) -> _LabelFile:
    try:
        return _LabelFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{where}not valid TOML: {error}. Fix the file.") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        raise UserError(f"{where}{field}: {message}. Fix it: {_FAMILY_FORM}") from None


def _checked(files: list[_LabelFile], where: str) -> JudgeLabels:
    """The files as one; what a later one says, holds."""
    sentence = controls = None
    families: dict[str, LabelFamily] = {}
    for file in files:
        sentence, controls = file.sentence or sentence, file.controls or controls
        names = [family.name for family in file.family]
        _refuse_twice(names, f"{where}: the attribute {{}} appears twice. Merge the two.")
        families |= {f.name: LabelFamily(f.name, f.labels) for f in file.family}
    if sentence is None or controls is None:
        raise UserError(
            f"{where}: the language is {files[-1].language!r}, so the English sentence and "
            "controls cannot be used. Add `sentence` with {author} in it, and [controls] with "
            "`neutral` and `placebo`."
        )
    if CONTROL_FAMILY in families:
        raise UserError(f"{where}: the name {CONTROL_FAMILY!r} is reserved. Rename that attribute.")
    entries = list(controls.model_dump().items())
    entries += [entry for family in families.values() for entry in family.labels.items()]
    _refuse_twice(
        [*(name for name, _ in entries), NO_LABEL],
        f"{where}: the label {{}} appears twice, or is one of {', '.join(CONTROLS)}. Rename one.",
    )
    _refuse_twice(
        [words for _, words in entries], f"{where}: two labels have the text {{}}. Remove one."
    )
    return JudgeLabels(
        language=files[-1].language,
        sentence=sentence,
        controls=controls.model_dump(),
        families=tuple(families.values()),
    )


def _refuse_twice(words: list[str], message: str) -> None:
    for word in words:
        if words.count(word) > 1:
            raise UserError(message.format(repr(word)))


# -- scenarios ------------------------------------------------------------------------------------


card = partial(card_of, __package__)


@dataclass(frozen=True, slots=True)
class Scenario:
    """`id` is the base and a number, "nurse-handover/3". Scenarios of one base differ in who writes
    and where; they are alike, so the base is the unit of inference."""

    id: str
    base: str
    kind: str
    task: str
    responses: tuple[str, str]


class MalibuData:
    """Scenarios and labels: ours, or those in files of the user's, of the same form."""

    def scenarios(self, path: Path | None = None) -> list[Scenario]:
        file = resources.files(__package__).joinpath("scenarios.jsonl") if path is None else path
        scenarios = [
            Scenario(row.id, row.base, row.kind, row.task, (row.responses[0], row.responses[1]))
            for _, row in read_jsonl(file, _ScenarioRow, _SCENARIO_FORM)
        ]
        ids = Counter(scenario.id for scenario in scenarios)
        twice = [name for name, count in ids.items() if count > 1]
        if not scenarios or twice:
            problem = (
                f"has the id {twice[0]!r} twice. Rename one."
                if twice
                else f"has no scenarios. Add one per line: {_SCENARIO_FORM}"
            )
            raise UserError(f"{file} {problem}")
        return scenarios

    def labels(self, path: Path | None = None) -> JudgeLabels:
        return read_labels(path)

    def families(self, path: Path | None = None) -> list[LabelFamily]:
        return list(read_labels(path).families)


_SCENARIO_FORM = (
    'a line is {"id": "base/0", "base": "base", "kind": "…", "task": "…", "responses": ["…", "…"]}'
)
_Id = Annotated[str, Field(pattern=r"^\S+$", max_length=100)]
_Text = Annotated[str, Field(min_length=1, max_length=20_000)]


class _ScenarioRow(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    id: _Id
    base: _Id
    kind: _Id
    task: _Text
    responses: Annotated[list[_Text], Field(min_length=2, max_length=2)]
