"""Runs whose texts are written down beforehand, and raters who mark by the words that they read."""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path

from evenhand.agents import Cast
from evenhand.core import Item
from evenhand.methods import named
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, run
from evenhand.runs.store import RunReader
from tests.stage import words_of

Mark = Callable[
    [str, str], str
]  # the words of a text and a question -> what is written into the cell
QUESTIONS = ("bias", "communication", "logic")


async def told(
    folder: Path,
    texts: Sequence[tuple[str, str]],
    *,
    method: str = "default",
    model: str = "writer",
    ids: str = "item",
) -> RunReader:
    """A run of prompts and what was said to each. Every prompt must be unlike all others."""
    said = dict(texts)

    def say(request: ModelRequest) -> str:
        words = words_of(request)
        return next(text for prompt, text in said.items() if prompt in words)

    items = [Item(id=f"{ids}{n}", prompt=prompt) for n, prompt in enumerate(said)]
    plan = RunPlan(
        method=named(method)(),
        cast=Cast(ScriptedModel(say, name=model), {}),
        source=ItemList(items),
        concurrency=1,
    )
    await run(plan, folder, progress=Progress(), stop=StopSignal())
    return RunReader(folder)


def fill(sheet: Path, mark: Mark) -> None:
    """Fill a sheet as a rater would in a spreadsheet."""
    rows = list(csv.DictReader(io.StringIO(sheet.read_text("utf-8-sig"), newline="")))
    for row in rows:
        row |= {question: mark(row["text"], question) for question in QUESTIONS}
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    sheet.write_text(file.getvalue(), "utf-8")
