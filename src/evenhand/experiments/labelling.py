"""Texts are drawn to be labelled, more where a scorer is unsure, and their chances are kept."""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import orjson
from pydantic import BaseModel, ConfigDict, Field

from evenhand.core.errors import UserError
from evenhand.findings.labelled import LabelledRate, SampledText, labelled_rate
from evenhand.runs.runners.source import read_jsonl, read_row
from evenhand.scorers import Scorer
from evenhand.scorers.base import TOXICITY, scores_of
from evenhand.statistics.prediction_powered import chances_to_label

PLAN, PREDICTIONS, LABELS = "plan.json", "predictions.jsonl", "labels.jsonl"
_FORM = 'a line is like {"text": "…"}, with "id" and "cluster" where there are any'
_LABEL = 'a line is like {"id": "7", "text": "…", "label": 1}; label is 0, 1 or null'
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Name = Annotated[str, Field(min_length=1, max_length=500)]


class LabellingText(BaseModel):
    """A text as the user gives it."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    text: Annotated[str, Field(min_length=1)]
    id: _Name | None = None
    cluster: str | None = None


class _Predicted(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    id: _Name
    cluster: str
    prediction: _Share | None
    chance: Annotated[float, Field(gt=0, le=1)]
    drawn: bool


class _LabelledRow(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    id: _Name
    text: str = ""
    label: Annotated[int, Field(ge=0, le=1)] | None = None


class _LabellingPlan(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    format: int = 1
    scorer: str
    budget: int
    seed: int
    sha256: str  # of the predictions, with the chances


def given_texts(path: Path) -> list[LabellingText]:
    """Read texts, one JSON object a line; an id that comes twice is refused."""
    texts = [row for _, row in read_jsonl(path, LabellingText, _FORM)]
    if not texts:
        raise UserError(f"{path} has no texts. Add some: {_FORM}")
    ids = [text.id or str(position) for position, text in enumerate(texts)]
    _refuse_twins(ids, path)
    return [text.model_copy(update={"id": name}) for text, name in zip(texts, ids, strict=True)]


def draw(
    texts: Sequence[LabellingText],
    predictions: Sequence[float | None],
    *,
    scorer: str,
    budget: int,
    seed: int,
    out: Path,
) -> int:
    """Sample about `budget` texts for labeling, unsure predictions first, into a new folder.

    A prediction p is as unsure as √(p·(1 − p)).

    Args:
        texts: The texts.
        predictions: The scorer's probability for each text; None counts as the least sure of all.
        scorer: The name of the scorer, for the record.
        budget: The expected number of texts to label.
        seed: The seed of the sample.
        out: The folder to make.

    Returns:
        How many texts were drawn.

    Raises:
        UserError: If the budget covers all texts, or the folder exists.
    """
    if budget >= len(texts):
        raise UserError(
f"{budget} labels of {len(texts)} texts leave nothing to estimate. Use fewer labels, "
"or label all texts.")  # fmt: skip
    unsure = [math.nan if p is None else math.sqrt(p * (1 - p)) for p in predictions]
    chances = chances_to_label(unsure, budget)
    selected = np.random.default_rng(seed).random(len(texts)) < chances
    rows = [
        _Predicted(id=text.id or "", cluster=text.cluster or f"text {text.id}", prediction=p,
                   chance=float(chance), drawn=bool(taken))
        for text, p, chance, taken in zip(texts, predictions, chances, selected, strict=True)
    ]  # fmt: skip
    written = _jsonl([row.model_dump() for row in rows])
    plan = _LabellingPlan(scorer=scorer, budget=budget, seed=seed,
                          sha256=hashlib.sha256(written).hexdigest())  # fmt: skip
    sheet = [{"id": text.id, "text": text.text, "label": None}
             for text, taken in zip(texts, selected, strict=True) if taken]  # fmt: skip
    try:
        out.mkdir(parents=True)
    except FileExistsError:
        raise UserError(
            f"{out} already exists and may have labels. Choose another --out."
        ) from None
    (out / PREDICTIONS).write_bytes(written)
    (out / LABELS).write_bytes(_jsonl(sheet))
    (out / PLAN).write_bytes(orjson.dumps(plan.model_dump(), option=orjson.OPT_INDENT_2))
    return len(sheet)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSample:
    """Texts that were drawn to be labelled."""

    folder: Path
    texts: int
    drawn: int
    unscored: int

    @property
    def sheet(self) -> Path:
        """The file to fill in."""
        return self.folder / LABELS


async def sample(
    texts: Path,
    scorer: Scorer,
    out: Path,
    *,
    attribute: str = TOXICITY,
    labels: int = 200,
    seed: int = 0,
    on_batch: Callable[[int], None] | None = None,
) -> LabelSample:
    """Score texts, and draw some to be labelled, more where the scorer is unsure.

    Args:
        texts: A JSONL file with `text`, and optionally `id` and `cluster`.
        scorer: The scorer.
        out: A new folder for the sheet and the predictions.
        attribute: Which of its scores is the prediction.
        labels: About how many texts are drawn.
        seed: Random seed for sampling.
        on_batch: Receives the number of texts in each scored batch.

    Returns:
        The number of texts, and of those drawn and not scored.

    Raises:
        UserError: If the file cannot be read, or `out` exists.
    """
    population = given_texts(texts)
    predictions = await scores_of(scorer, [entry.text for entry in population], attribute, on_batch)
    drawn = draw(
        population,
        predictions,
        scorer=f"{scorer.name} ({attribute})",
        budget=labels,
        seed=seed,
        out=out,
    )
    unscored = sum(prediction is None for prediction in predictions)
    return LabelSample(folder=out, texts=len(population), drawn=drawn, unscored=unscored)


def estimate(folder: Path) -> LabelledRate:
    """Estimate the rate from a folder whose labels were filled in."""
    plan, rows = _planned(folder)
    path = folder / LABELS
    labels = [row for _, row in read_jsonl(path, _LabelledRow, _LABEL)]
    _refuse_twins([row.id for row in labels], path)
    label_by_id = {row.id: row.label for row in labels}
    strangers = sorted(label_by_id.keys() - {row.id for row in rows if row.drawn})
    if strangers:
        raise UserError(
            f"{path}: the text {strangers[0]!r} was not sampled, so it has no sampling weight. "
            "Remove that line."
        )
    texts = [SampledText(**row.model_dump(), label=label_by_id.get(row.id)) for row in rows]
    return labelled_rate(texts, plan.scorer)


def _planned(folder: Path) -> tuple[_LabellingPlan, list[_Predicted]]:
    path = folder / PREDICTIONS
    if not (folder / PLAN).is_file() or not path.is_file():
        raise UserError(
            f"{folder} has no sampled texts. Sample some: evenhand scorers sample offline "
            f"texts.jsonl --labels 200 --out {folder}"
        )
    plan = read_row(_LabellingPlan, (folder / PLAN).read_bytes(), str(folder / PLAN))
    if hashlib.sha256(path.read_bytes()).hexdigest() != plan.sha256:
        raise UserError(
            f"{path} changed after the texts were sampled. Restore the old file, or sample again."
        )
    return plan, [row for _, row in read_jsonl(path, _Predicted)]


def _jsonl(rows: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def _refuse_twins(names: Sequence[str], path: Path) -> None:
    twin = next((name for name, times in Counter(names).items() if times > 1), None)
    if twin is not None:
        raise UserError(f"{path}: the id {twin[:60]!r} appears twice. Give each text its own id.")
