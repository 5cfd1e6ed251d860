"""What a judge said of the texts that people rated: a run that scored those words, or a table.

Verdicts on a run's texts are a separate run in a folder within that run. The rater asks a model
the three questions of the rubric that people get (RLDF paper, 4.1: the marks of GPT-3.5-turbo in
Tables 3 to 5, 11 to 14). The judge is asked about texts that are stored, so it can be another
model, asked later, and asked again by itself.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import orjson
import polars as pl
from pydantic import Field

from evenhand.agents import Agent, Ask, Digit, Read, Reply, one_token, side_by_side, words
from evenhand.agents.prompts import load
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import UserError
from evenhand.core.items import RUBRIC
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.training.debates.debate import model_of, named
from evenhand.training.rating import rubric
from evenhand.training.rating.sheets import ID, SHEET, TEXT, read_table
from evenhand.training.rating.texts import SheetKey, said

BY_LOGPROB = ", by log-probabilities"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeWithin:
    """Where the verdicts of a judge lie, who gives them, and the scores that each has."""

    folder: str
    role: str
    traits: tuple[str, ...]
    # What to say of a judge that wrote the texts.
    own_texts: str = "The judge is the model that wrote the texts: models rate their own higher."

    def run_of(self, run: RunReader) -> RunReader | None:
        """The judge's run over a run's texts; None where no judge was asked."""
        if not open_folder(run.path).exists(f"{self.folder}/run.json"):
            return None
        return RunReader(f"{run.path}/{self.folder}")

    def judge_of(self, run: RunReader) -> str | None:
        """The model that judged a run's texts, and how it was read where that is not as JSON: the
        same model read in another way is another judge."""
        inner = self.run_of(run)
        if inner is None:
            return None
        by_logprob = inner.record.method["settings"].get("read") == "logprob"
        return model_of(inner, self.role) + (BY_LOGPROB if by_logprob else "")

    def marks(self, run: RunReader) -> pl.DataFrame:
        """`item_id` and a column for each score, null where the judge failed; no row where no judge
        was asked."""
        inner = self.run_of(run)
        if inner is None:
            return self.none()
        columns = [named(pl.col("scores_after"), trait) for trait in self.traits]
        return inner.results().select("item_id", *columns).collect()

    def none(self) -> pl.DataFrame:
        """The marks of nobody."""
        schema = {"item_id": pl.String, **dict.fromkeys(self.traits, pl.Float64)}
        return pl.DataFrame(schema=schema)

    def doubts(self, run: RunReader) -> list[str]:
        """List the reasons not to rely on the judge of a run's texts."""
        inner = self.run_of(run)
        if inner is None:
            return []
        judge, reasons = model_of(inner, self.role), []
        if judge == run.record.cast["default"]["model"]:
            reasons.append(self.own_texts)
        in_loop = (pl.col("role") == self.role) & (pl.col("model") == judge)
        if not run.turns().filter(in_loop).head(1).collect().is_empty():
            reasons.append(f"The judge of {self.folder} also steered the method.")
        return reasons


# A score: the question of the rubric that it answers. High is good, so the first is not called
# "bias": a model that is asked for its "bias" gives a biased text the high mark.
SCORES = {"freedom_from_bias": rubric.BIAS, "communication": "communication", "logic": "logic"}
_Mark = Annotated[int, Field(ge=rubric.LEAST, le=rubric.MOST)]


class Rating(Reply):
    reason: Annotated[str, words(240)]
    freedom_from_bias: _Mark
    communication: _Mark
    logic: _Mark


RATER = Agent("rater", load("rldf/rater"), Rating, temperature=0.0, kind="judge")
DIGIT_RATER = one_token(RATER.role, load("rldf/rater_digit"), Digit, "judge")
RATINGS = JudgeWithin(folder="ratings", role=RATER.role, traits=tuple(SCORES))


async def rated(item: Item, ask: Ask) -> dict[str, float]:
    """Ask the rater for all scores of the item's `answer` in one call."""
    rating = await ask(RATER, rubric=rubric.for_a_model(), task=item.prompt, text=item.answer)
    return {name: float(getattr(rating, name)) for name in SCORES}


async def rated_by_digit(name: str, item: Item, ask: Ask) -> float:
    """Ask the rater one question about the item's `answer`, and read the expected score off the
    log-probabilities of a digit.

    Args:
        name: Which of `SCORES`.
        item: The task, and the text as its answer.
        ask: Asks an agent.

    Returns:
        The score, from 0 to 10.
    """
    question = rubric.in_digits(SCORES[name])
    digit = await ask(DIGIT_RATER, rubric=question, task=item.prompt, text=item.answer)
    return digit.on(rubric.LEAST, rubric.MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateText:
    """Marks for the item's `answer`, from 0 to 10, high is good. Cast the role `rater` with another
    model than the one that wrote the texts: a model likes its own."""

    name: ClassVar[str] = "rate_text"

    read: Read = field(default="json", metadata={"left_out": "json"})

    def agents(self) -> tuple[Agent[Any], ...]:
        return (RATER if self.read == "json" else DIGIT_RATER,)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if self.read == "json":
            scores = await rated(item, ask)
        else:
            marks = await side_by_side(*(rated_by_digit(name, item, ask) for name in SCORES))
            scores = dict(zip(SCORES, marks, strict=True))
        return Answer(drafts=(Draft(text=item.answer or "", scores=scores),), stopped="single_pass")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeMarks:
    """A judge's marks on the rubric's scale, high is good: question -> text -> mark."""

    name: str
    marks: Mapping[str, Mapping[str, float]]


def judge_marks(location: str, key: SheetKey) -> JudgeMarks:
    if Path(location).is_file():
        return JudgeMarks(name=location, marks=_of_table(Path(location), key))
    run = RunReader(location)
    rated = RATINGS.run_of(run) is not None
    marks = _of_rater(run, key) if rated else {rubric.BIAS: _of_run(run, key)}
    if not any(marks.values()):
        raise UserError(
            f"{run.path} has no bias score of a text that was rated: give a run of a method that "
            "judges, such as stardtox, or of `measure statements`, over these very texts, or a "
            f"CSV with {ID} and a mark"
        )
    return JudgeMarks(name=location, marks=marks)


def _of_rater(run: RunReader, key: SheetKey) -> dict[str, dict[str, float]]:
    """What a model gave that rated the run's texts by the rubric."""
    rated = said(run).join(RATINGS.marks(run), left_on="item", right_on="item_id")
    return {question: _of_same_words(rated, score, key) for score, question in SCORES.items()}


def _of_run(run: RunReader, key: SheetKey) -> dict[str, float]:
    """The bias scores of the run's own judge, as marks for freedom from bias."""
    scores = _of_same_words(said(run), "bias", key)
    return {name: RUBRIC.most - bias for name, bias in scores.items()}


def _of_same_words(texts: pl.DataFrame, score: str, key: SheetKey) -> dict[str, float]:
    """The score that the same words about the same task have, by the name of the text."""
    rows = texts.filter(pl.col(score).is_not_null()).select("task", "text", score).iter_rows()
    scores = {(task, text): value for task, text, value in rows}
    return {
        entry.id: scores[entry.task, entry.text]
        for entry in key.texts
        if (entry.task, entry.text) in scores
    }


def _of_table(file: Path, key: SheetKey) -> dict[str, dict[str, float]]:
    """A CSV as raters fill it: `id`, and a column for each question that the judge answered. A mark
    of a judge may have decimals; an empty one is missing."""
    questions = [question.name for question in rubric.questions()]
    lines = read_table(
        file,
        lambda head: (
            ID in head and {*head} <= {ID, SHEET, TEXT, *questions} and bool({*head} & {*questions})
        ),
        f"{ID} and one or more of {', '.join(questions)}",
    )
    left = {entry.id for entry in key.texts}
    by_question: dict[str, dict[str, float]] = {
        name: {} for name in questions if lines and name in lines[0][1]
    }
    for line, cells in lines:
        if cells[ID] not in left:
            raise UserError(
                f"{file} line {line}: {cells[ID]!r} is not a text of the key, or it appears twice. "
                "Fix that line."
            )
        left.remove(cells[ID])
        for question, marks in by_question.items():
            if cell := cells[question]:
                marks[cells[ID]] = _mark(cell, f"{file} line {line}, {question}")
    return by_question


def labels(key: SheetKey, rows: pl.DataFrame) -> bytes:
    """What people think of each text, as the lines that `evenhand audit judge --labels` reads: the
    mean of the marks for communication and logic. A judge is audited by marks of quality, of which
    freedom from bias is none."""
    quality = rows.filter(pl.col("question") != rubric.BIAS).drop_nulls("mark")
    means = dict(quality.group_by("id").agg(pl.col("mark").mean()).iter_rows())
    lines = [
        {"task": entry.task, "text": entry.text, "label": means[entry.id]}
        for entry in key.texts
        if entry.id in means and entry.task
    ]
    return b"".join(orjson.dumps(line) + b"\n" for line in lines)


def _mark(cell: str, where: str) -> float:
    try:
        mark = float(cell)
    except ValueError:
        mark = math.nan
    if not rubric.LEAST <= mark <= rubric.MOST:
        raise UserError(
            f"{where}: {cell!r} is not a number from {rubric.LEAST} to {rubric.MOST}. Fix it."
        )
    return mark
