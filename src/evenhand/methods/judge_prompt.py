"""A judge's prompt of the user's, as a text in TOML, so that it is audited as ours is.

    scale = [1, 5]            # the lowest and the highest mark
    answer = "json:score"     # where the mark stands in a reply; the forms are below
    open = ["text"]           # variables that are pasted as they are; all others are fenced
    system = "You grade replies to customers."
    prompt = '''
    Request: {{ task | marked("request") }}
    Reply: {{ text }}
    Give a grade from 1 to 5 as JSON: {"score": …}
    '''

The prompt must use `text`, and may use `task` and `author`. `author` is the sentence about who
wrote the text; where the prompt has no place for it, it stands before the text.

| answer                   | the mark                                                      |
| ------------------------ | ------------------------------------------------------------- |
| number                   | the only number in the reply                                  |
| json:FIELD               | the number in this field of a JSON object                     |
| label: good=5, poor=1    | that of the word that the reply is                            |
| logprob                  | the mean of the digits of the scale by their log-probability  |

Marks are held in points of ten, 0 for the lowest of the scale, so that a margin means the same for
every prompt. A reply without a mark on the scale is unreadable; none is clipped.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.agents import Agent, OnScale, Reply, one_token, strict_json
from evenhand.agents.prompts import Prompt, refuse_undeclared
from evenhand.core.errors import UnreadableReply, UserError
from evenhand.statistics.metrics.malibu import TOP

VARIABLES = ("text", "task", "author")
_FORMS = (
    'answer = "number", answer = "json:FIELD", answer = "label: good=5, poor=1" or '
    'answer = "logprob"'
)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\d)")
_LABELS = re.compile(r"([^=,]+)=\s*(-?\d+(?:\.\d+)?)\s*(?:,|$)")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    scale: Annotated[list[float], Field(min_length=2, max_length=2)]
    answer: str
    prompt: Annotated[str, Field(min_length=1)]
    system: str = ""
    open: list[str] = []


@dataclass(frozen=True)
class JudgePrompt:
    """A prompt on one text, and how a mark is read from the reply."""

    prompt: Prompt
    low: float
    high: float
    form: str  # "number", "json", "label" or "logprob"
    key: str = ""  # of a JSON object
    labels: Mapping[str, float] = field(default_factory=dict)

    def points(self, mark: float) -> float:
        """Give a mark of the scale in points of ten."""
        return (mark - self.low) / (self.high - self.low) * TOP

    def mark_in(self, reply: str) -> float:
        """Read the mark of a reply, or raise `UnreadableReply`."""
        mark = self._written(reply)
        if not self.low <= mark <= self.high:
            raise UnreadableReply(
                "off_scale", f"{mark:g} is not from {self.low:g} to {self.high:g}"
            )
        return mark

    def _written(self, reply: str) -> float:
        if self.form == "json":
            value = strict_json.parse(reply)
            mark = value.get(self.key) if isinstance(value, dict) else None
            if isinstance(mark, bool) or not isinstance(mark, int | float):
                raise UnreadableReply("wrong_shape", f"no number in the field {self.key!r}")
            return float(mark)
        if self.form == "label":
            word = reply.strip(" \n\t.!*\"'").casefold()
            if word not in self.labels:
                known = ", ".join(self.labels)
                raise UnreadableReply("off_scale", f"{word[:40]!r} is none of {known}")
            return self.labels[word]
        numbers = _NUMBER.findall(reply)
        if len(numbers) != 1:
            raise UnreadableReply("wrong_shape", f"{len(numbers)} numbers, and one is asked for")
        return float(numbers[0])

    @cached_property
    def agent(self) -> Agent[Any]:
        """The judge who is asked with this prompt."""
        if self.form != "logprob":
            return Agent("judge", self.prompt, _reply_of(self), temperature=0.0, kind="judge")
        return one_token("judge", self.prompt, _digit_of(self), "judge")

    def variables(self, task: str, author: str, text: str) -> dict[str, str]:
        """Fill the prompt; what is said of the author stands before the text if nowhere else."""
        if "author" not in self.prompt.variables and author:
            text = f"{author}\n\n{text}"
        values = {"task": task, "author": author, "text": text}
        return {name: values[name] for name in self.prompt.variables}


class _MarkOnScale(Reply):
    """A reply in the user's own form."""

    may_be_verdict: ClassVar[bool] = True
    judge: ClassVar[JudgePrompt]

    reason: str  # the whole reply
    overall: float

    @classmethod
    def wire_schema(cls) -> None:
        return None

    @classmethod
    def read(cls, text: str) -> Self:
        return cls(reason=text.strip(), overall=cls.judge.points(cls.judge.mark_in(text)))

    def scores(self) -> dict[str, float]:
        return {"overall": self.overall}


class DigitOnScale(OnScale):
    """A digit that is read by its log-probabilities."""

    scale: ClassVar[Mapping[str, float]] = {}

    @property
    def reason(self) -> str:
        return self.said

    def scores(self) -> dict[str, float]:
        return {"overall": self.mark}


def _reply_of(prompt: JudgePrompt) -> type[_MarkOnScale]:
    class OwnMark(_MarkOnScale):
        judge: ClassVar[JudgePrompt] = prompt

    return OwnMark


def _digit_of(prompt: JudgePrompt) -> type[DigitOnScale]:
    digits = range(int(prompt.low), int(prompt.high) + 1)

    class OwnDigit(DigitOnScale):
        scale: ClassVar[Mapping[str, float]] = {
            str(digit): prompt.points(digit) for digit in digits
        }

    return OwnDigit


@cache
def judge_prompt(text: str) -> JudgePrompt:
    """Read a judge's prompt.

    Raises:
        UserError: If the text is no TOML, or lacks a scale, a form of answer or `{{ text }}`.
    """
    try:
        file = _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"The judge's prompt is not valid TOML: {error}. Fix the file.") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(
            f"The judge's prompt: {where}: {first['msg']}. Write scale = [1, 5], {_FORMS}, and "
            "prompt = '''…{{ text | marked(\"text\") }}…'''."
        ) from None
    low, high = file.scale
    if not low < high:
        raise UserError(
            f"The judge's prompt: scale is [{low:g}, {high:g}]. Write the lowest mark first."
        )
    return _answered(file, _worded(file), low, high)


def _worded(file: _File) -> Prompt:
    prompt = Prompt.of(file.prompt, file.system)
    if "text" not in prompt.variables or not prompt.variables <= {*VARIABLES}:
        raise UserError(
            f"The judge's prompt uses {sorted(prompt.variables)}. It must use {{{{ text }}}}, and "
            "may use {{ task }} and {{ author }}."
        )
    if loose := (prompt.uses.bare & {"text", "task"}) - {*file.open}:
        name = sorted(loose)[0]
        raise UserError(
            f"The judge's prompt pastes {{{{ {name} }}}} as it is. Fence it, "
            f'{{{{ {name} | marked("{name}") }}}}, or declare it: open = ["{name}"].'
        )
    pasted = {*file.open} | ({"author"} & prompt.variables)
    declared = {"open": sorted(pasted), "fenced": sorted(prompt.variables - pasted)}
    refuse_undeclared("of the judge", declared, prompt.uses)
    return prompt


def _answered(file: _File, prompt: Prompt, low: float, high: float) -> JudgePrompt:
    form, _, detail = (part.strip() for part in file.answer.partition(":"))
    if form == "json" and detail:
        return JudgePrompt(prompt, low, high, form, key=detail)
    if form == "label" and detail:
        labels = {word.strip().casefold(): float(mark) for word, mark in _LABELS.findall(detail)}
        outside = [word for word, mark in labels.items() if not low <= mark <= high]
        if len(labels) != detail.count("=") or outside:
            raise UserError(
                f"The judge's prompt: answer is {file.answer!r}. Write each label once with a mark "
                f'from {low:g} to {high:g}: answer = "label: good={high:g}, poor={low:g}".'
            )
        return JudgePrompt(prompt, low, high, form, labels=labels)
    if form == "logprob" and not detail:
        if not (low.is_integer() and high.is_integer() and 0 <= low < high <= 9):
            raise UserError(
                f"The judge's prompt: scale is [{low:g}, {high:g}]. A mark that is read by "
                "log-probabilities is one digit. Write a scale of whole numbers within [0, 9]."
            )
        return JudgePrompt(prompt, low, high, form)
    if form == "number" and not detail:
        return JudgePrompt(prompt, low, high, form)
    raise UserError(f"The judge's prompt: answer is {file.answer!r}. Write {_FORMS}.")
