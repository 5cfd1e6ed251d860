"""Labels of authors, and the scenarios that a judge is asked about: a task, and two responses of
equal content in other words. All of it is data.

A label is said in a sentence beside the text, or stands in the text itself: `{person}` in a task or
a response is filled with a name, and a response can have a version under each label.
"""

import tomllib
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from evenhand.core.errors import UserError
from evenhand.instruments.counterfactual.families import NAME, families
from evenhand.instruments.files import card_of
from evenhand.runs.runners.source import read_jsonl
from evenhand.statistics.metrics.malibu import CONTROLS, NO_LABEL

CONTROL_FAMILY = "control"
PERSON = "{person}"
BETWEEN = "|"  # the names of one label
Text = str | Mapping[str, str]  # or its version under each label, "none" among them


@dataclass(frozen=True, slots=True)
class LabelFamily:
    """Labels that are compared with each other: the name of each, and what is said of the author
    under it, or the names that stand in a text."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeLabels:
    language: str
    sentence: str  # with {author}; it stands before the response
    sentence_after: str | None  # that for after the response; None where the file has none
    controls: Mapping[str, str]
    families: tuple[LabelFamily, ...]
    in_text: bool = False  # the words of a label fill {person}, and no sentence says it

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

    def placed_last(self) -> Self:
        """Say it after the response."""
        if self.sentence_after is None:
            raise UserError(
                "--label-last needs a sentence that stands after the response. Add "
                "`sentence_after` with {author} in it to the file of --identities-file."
            )
        return replace(self, sentence=self.sentence_after)

    def author(self, label: str) -> str:
        """Empty where nothing is said."""
        if label == NO_LABEL:
            return self.controls[NO_LABEL] if self.in_text else ""
        if self.family_of(label) == CONTROL_FAMILY:
            return self.controls[label]
        return next(f.labels[label] for f in self.families if label in f.labels)

    def person(self, label: str, base: str) -> str:
        """The name that fills {person} in the texts of a base: of several, the same place in the
        list of every label, so that a name stands for more than itself."""
        names = self.author(label).split(BETWEEN)
        return names[zlib.crc32(base.encode()) % len(names)]

    def text_of(self, text: "Text", label: str, base: str) -> str:
        """A text as it stands under a label."""
        written = text if isinstance(text, str) else text[label]
        return written.replace(PERSON, self.person(label, base)) if self.in_text else written

    def said(self, label: str) -> str:
        if self.in_text:
            return ""
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
    if custom.in_text:
        return _checked([custom], str(path))
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
    none: _Line | None = None  # what fills {person} without a label
    neutral: _Line
    placebo: _Line


class _LabelFamilyEntry(_LabelFilePart):
    name: _Name
    labels: dict[_Name, _Line | Annotated[list[_Line], Field(min_length=1)]] = {}
    names: str | None = None  # of an attribute of `evenhand counterfactual`

    def said(self) -> LabelFamily:
        """The family, of whose labels several names stand in one text, apart by `BETWEEN`."""
        if self.names is not None:
            named = families((self.names,))[0]
            by_label = {label.name: label.forms.get(NAME, ()) for label in named.labels}
        else:
            by_label = {
                label: (words,) if isinstance(words, str) else tuple(words)
                for label, words in self.labels.items()
            }
        if len({len(words) for words in by_label.values()}) != 1 or not all(by_label.values()):
            raise UserError(
                f"The attribute {self.name!r} needs [family.labels] with as many names for every "
                'label, or names = "ATTRIBUTE" of `evenhand counterfactual`.'
            )
        return LabelFamily(self.name, {k: BETWEEN.join(words) for k, words in by_label.items()})


_Sentence = Annotated[_Line, AfterValidator(_one_author)]


class _LabelFile(_LabelFilePart):
    language: _Name = "en"
    in_text: bool = False
    sentence: _Sentence | None = None
    sentence_after: _Sentence | None = None
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
    sentence = sentence_after = controls = None
    by_name: dict[str, LabelFamily] = {}
    for file in files:
        if file.sentence or file.sentence_after:
            sentence, sentence_after = file.sentence or sentence, file.sentence_after
        controls = file.controls or controls
        names = [family.name for family in file.family]
        _refuse_twice(names, f"{where}: the attribute {{}} appears twice. Merge the two.")
        by_name |= {f.name: f.said() for f in file.family}
    in_text = files[-1].in_text
    if in_text and (controls is None or controls.none is None):
        raise UserError(
            f"{where}: with in_text = true the words of a label fill {PERSON}, also without a "
            'label. Add [controls] with none = "the applicant", `neutral` and `placebo`.'
        )
    if controls is None or (sentence is None and not in_text):
        raise UserError(
            f"{where}: the language is {files[-1].language!r}, so the English sentence and "
            "controls cannot be used. Add `sentence` with {author} in it, and [controls] with "
            "`neutral` and `placebo`."
        )
    if CONTROL_FAMILY in by_name:
        raise UserError(f"{where}: the name {CONTROL_FAMILY!r} is reserved. Rename that attribute.")
    said = controls.model_dump(exclude_none=True)
    entries = [(name, words) for name, words in said.items() if name != NO_LABEL]
    entries += [entry for family in by_name.values() for entry in family.labels.items()]
    several = [name for name, words in entries if BETWEEN in words and not in_text]
    if several:
        raise UserError(
            f"{where}: the label {several[0]!r} has several names, and one sentence says one. "
            "Write one, or set in_text = true."
        )
    _refuse_twice(
        [*(name for name, _ in entries), NO_LABEL],
        f"{where}: the label {{}} appears twice, or is one of {', '.join(CONTROLS)}. Rename one.",
    )
    _refuse_twice(
        [words for _, words in entries], f"{where}: two labels have the text {{}}. Remove one."
    )
    return JudgeLabels(
        language=files[-1].language,
        sentence=sentence or "",
        sentence_after=sentence_after,
        controls=said,
        families=tuple(by_name.values()),
        in_text=in_text,
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
    responses: tuple[Text, Text]

    @property
    def shared(self) -> tuple[str, ...]:
        """The responses that are the same for every label."""
        return tuple(text for text in self.responses if isinstance(text, str))

    @property
    def labels(self) -> set[str]:
        """The labels that have a version of a response of their own; empty where none has."""
        return {label for text in self.responses if not isinstance(text, str) for label in text}


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
_Versions = Annotated[dict[_Name, _Text], Field(min_length=2)]


class _ScenarioRow(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    id: _Id
    base: _Id
    kind: _Id
    task: _Text
    responses: Annotated[list[_Text | _Versions], Field(min_length=2, max_length=2)]
