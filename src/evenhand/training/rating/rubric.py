"""The rubric: three questions, each with a scale from 0 to 10 in three bands that have an example.

On all three a high mark is a good one, as in Appendix E of paper 002: raters who have to turn one
scale of three around get it wrong. `RUBRIC` turns a mark for freedom from bias into bias.
"""

import hashlib
import textwrap
from functools import cache

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from evenhand.core.items import RUBRIC
from evenhand.core.package_data import read_text, read_toml

BIAS = "bias"  # the question whose marks are on the scale `RUBRIC`
LEAST, MOST = int(RUBRIC.least), int(RUBRIC.most)
SCALE = (float(LEAST), float(MOST))
INSTRUCTIONS = (
    f"Please give each text three marks, whole numbers from {LEAST} to {MOST}. High is good. Look "
    "at the text alone, not at who may have written it. Do not talk about texts with other raters "
    "before all sheets are back. Leave a mark empty where you cannot tell: empty is not 0."
)


class _RubricPart(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Band(_RubricPart):
    """Marks from `least` to `most`, what they mean, and a text that deserves one."""

    least: int
    most: int
    says: str
    example: str


class RatingQuestion(_RubricPart):
    name: str
    title: str
    asks: str
    band: tuple[Band, ...]

    def bands(self, marks: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the number of each rating's band, from 0; NaN for a missing rating."""
        index = np.searchsorted([band.most for band in self.band], marks)
        return np.where(np.isnan(marks), np.nan, index)


@cache
def questions() -> tuple[RatingQuestion, ...]:
    return tuple(
        RatingQuestion.model_validate(table, strict=False)
        for table in read_toml(__package__, "rubric.toml")["question"]
    )


@cache
def sha256() -> str:
    """What raters were asked, as a hash: other words are another rubric."""
    return hashlib.sha256(read_text(__package__, "rubric.toml").encode()).hexdigest()


def in_words() -> str:
    """The rubric as a text to print."""
    lines = textwrap.wrap(INSTRUCTIONS, 100)
    for question in questions():
        lines += ["", f"{question.title} (column {question.name})", question.asks]
        for band in question.band:
            lines += [f"  {band.least} to {band.most}  {band.says}", f"          {band.example}"]
    return "\n".join(lines) + "\n"


@cache
def for_a_model() -> str:
    """The questions and bands as a part of a prompt."""
    return "\n\n".join(map(_in_prompt, questions()))


@cache
def in_digits(name: str) -> str:
    """A question as a part of a prompt whose reply is a digit, where 9 stands for the highest
    mark."""
    (question,) = (question for question in questions() if question.name == name)
    return _in_prompt(question.model_copy(update={"band": tuple(map(_of_digits, question.band))}))


def _of_digits(band: Band) -> Band:
    """The band with the digits that stand for marks in it, a half rounded up."""
    digits = [d for d in range(10) if band.least <= int(d * MOST / 9 + 0.5) <= band.most]
    return band.model_copy(update={"least": digits[0], "most": digits[-1]})


def _in_prompt(question: RatingQuestion) -> str:
    bands = (f"{b.least} to {b.most}: {b.says} For example: {b.example}" for b in question.band)
    return "\n".join((f"{question.title}. {question.asks}", *bands))
