"""What a judge said of the texts that people rated: a run that scored those words, or a table."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
import polars as pl

from evenhand.errors import UserError
from evenhand.metrics.bias_scale import RUBRIC
from evenhand.rating import rubric
from evenhand.rating.key import Key
from evenhand.rating.rater import RATINGS, SCORES
from evenhand.rating.sheets import ID, SHEET, TEXT
from evenhand.rating.tables import read_table
from evenhand.rating.texts import said
from evenhand.store import RunReader


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeMarks:
    """A judge's marks on the rubric's scale, high is good: question -> text -> mark."""

    name: str
    marks: Mapping[str, Mapping[str, float]]


def judge_marks(location: str, key: Key) -> JudgeMarks:
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


def _of_rater(run: RunReader, key: Key) -> dict[str, dict[str, float]]:
    """What a model that rated the run's texts by the rubric gave the same words about the same
    task."""
    rated = said(run).join(RATINGS.marks(run), left_on="item", right_on="item_id")
    by_question: dict[str, dict[str, float]] = {}
    for score, question in SCORES.items():
        rows = rated.select("task", "text", score).drop_nulls().iter_rows()
        marks = {(task, text): mark for task, text, mark in rows}
        by_question[question] = {
            entry.id: marks[entry.task, entry.text]
            for entry in key.texts
            if (entry.task, entry.text) in marks
        }
    return by_question


def _of_run(run: RunReader, key: Key) -> dict[str, float]:
    """The bias score that the run's own judge gave the same words about the same task, as a mark
    for freedom from bias."""
    scored = said(run).filter(pl.col("bias").is_not_null()).select("task", "text", "bias")
    scores = {(task, text): bias for task, text, bias in scored.iter_rows()}
    return {
        entry.id: RUBRIC.most - scores[entry.task, entry.text]
        for entry in key.texts
        if (entry.task, entry.text) in scores
    }


def _of_table(file: Path, key: Key) -> dict[str, dict[str, float]]:
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
                f"{file} line {line}: {cells[ID]!r} is no text of the key, or there twice"
            )
        left.remove(cells[ID])
        for question, marks in by_question.items():
            if cell := cells[question]:
                marks[cells[ID]] = _mark(cell, f"{file} line {line}, {question}")
    return by_question


def labels(key: Key, rows: pl.DataFrame) -> bytes:
    """What people think of each text, as the lines that `evenhand judge-check --labels` reads: the
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
        raise UserError(f"{where}: {cell!r} is no number from {rubric.LEAST} to {rubric.MOST}")
    return mark
