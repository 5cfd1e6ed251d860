"""Which texts are rated: the same items of every run, each under a name that says nothing."""

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson
import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from evenhand.agents.agent import repairs_of
from evenhand.core.errors import UserError
from evenhand.core.items import REFEREE, BiasScale
from evenhand.runs.store import RunReader
from evenhand.training.debates.debate import Debate, named, table

LONGEST = 20_000  # our choice, in characters: some ten pages, which fit a spreadsheet cell
ITEM = ("item", "task")  # what two runs were both asked
_ALIKE = ("topic", "template", "article")  # tags of items that were made from one thing


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingText:
    """A text to rate. Where two runs said the same words of an item, it is shown once and counts
    for both: `uses` has the place of each run, and the item there."""

    id: str
    task: str
    text: str
    cluster: str
    uses: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnTexts:
    texts: tuple[RatingText, ...]
    items: int  # of each run
    shared: bool  # the runs have their items in common
    left_out: Mapping[str, int]  # reason -> items


def said(run: RunReader) -> pl.DataFrame:
    """All texts of a run: item, task, text, cluster, and `bias` from 0 to 10 as the run's own judge
    has it, null where it has none. A debate has a row for each statement."""
    return _statements(run) if run.record.method["name"] == Debate.name else _answers(run)


def _statements(run: RunReader) -> pl.DataFrame:
    rows = table(run)
    item = pl.format("{} | round {} | {}", "topic", "round", "role")
    return rows.select(
        item=item,
        task=pl.col("topic"),
        text=pl.col("text"),
        cluster=pl.col("topic"),
        bias=_on_scale(pl.col("bias"), REFEREE),
    )


def _answers(run: RunReader) -> pl.DataFrame:
    run.require_texts()
    rows = run.results().filter(pl.col("status") == "answered").collect()
    if rows["choice"].is_not_null().any():
        raise UserError(
            f"{run.path} holds options that were chosen, not texts: `evenhand report "
            f"{run.path}` scores them; rate a run over prompts, such as one of `evenhand mitigate`"
        )
    repairs = repairs_of(run.record.method["name"])
    scales = repairs.scales if repairs else {}
    bias = [_on_scale(named(pl.col("scores_after"), name), scale) for name, scale in scales.items()]
    alike = [named(pl.col("tags"), name) for name in _ALIKE]
    return rows.select(
        item=pl.col("item_id"),
        task=pl.col("prompt"),
        text=pl.col("text"),
        cluster=pl.coalesce(*alike, "item_id"),
        bias=pl.coalesce(*bias, pl.lit(None, pl.Float64)),
    )


def _on_scale(score: pl.Expr, scale: BiasScale) -> pl.Expr:
    zero, top = scale.bias(scale.least), scale.bias(scale.most)
    up = (score - scale.least) / (scale.most - scale.least)
    return zero + (top - zero) * up


def drawn(runs: Sequence[RunReader], sample: int, seed: int) -> DrawnTexts:
    """Sample items and give their texts random ids.

    Runs that share items are rated on the same ones; runs that share none, each on its items.

    Args:
        runs: The runs.
        sample: The number of items per run.
        seed: The seed of the sample.

    Returns:
        The texts, and how many items could not be used.
    """
    frames = [said(run) for run in runs]
    rated = [
        frame.filter(_fits()).unique(ITEM, keep="first", maintain_order=True) for frame in frames
    ]
    item_frames = [frame.select(ITEM).unique(maintain_order=True) for frame in rated]
    shared = item_frames[0]
    for other in item_frames[1:]:
        shared = shared.join(other, on=ITEM, how="semi", maintain_order="left")
    chance = random.Random(seed)
    if len(shared):
        picked = [_sample(shared, sample, "answered in all runs", chance)] * len(runs)
    else:
        picked = [
            _sample(items, sample, f"answered in {run.path}", chance)
            for items, run in zip(item_frames, runs, strict=True)
        ]
    selected = [
        items.join(frame, on=ITEM, maintain_order="left")
        for items, frame in zip(picked, rated, strict=True)
    ]
    return DrawnTexts(
        texts=_texts(selected, chance),
        items=sample,
        shared=bool(len(shared)) or len(runs) == 1,
        left_out=_left_out(runs, frames),
    )


def _fits() -> pl.Expr:
    return pl.col("task").str.len_chars() + pl.col("text").str.len_chars() <= LONGEST


def _left_out(runs: Sequence[RunReader], frames: Sequence[pl.DataFrame]) -> dict[str, int]:
    failed = sum(sum(run.totals().failed.values()) for run in runs)
    left = sum(max(0, run.planned - run.totals().items) for run in runs)
    long = sum(len(frame.filter(~_fits())) for frame in frames)
    counts = {"not answered": failed, "not run yet": left, f"over {LONGEST:,} characters": long}
    return {reason: n for reason, n in counts.items() if n}


def _sample(items: pl.DataFrame, sample: int, where: str, chance: random.Random) -> pl.DataFrame:
    if len(items) < sample:
        raise UserError(f"{len(items)} items are {where}. Use --sample {len(items)} or less.")
    return items[sorted(chance.sample(range(len(items)), sample))]


def _texts(frames: Sequence[pl.DataFrame], chance: random.Random) -> tuple[RatingText, ...]:
    uses: defaultdict[tuple[str, str, str], list[tuple[int, str]]] = defaultdict(list)
    for index, frame in enumerate(frames):
        for row in frame.iter_rows(named=True):
            uses[row["task"], row["text"], row["cluster"]].append((index, row["item"]))
    names = chance.sample(range(100_000, 1_000_000), len(uses))
    return tuple(
        RatingText(id=f"t{name}", task=task, text=text, cluster=cluster, uses=tuple(of))
        for name, ((task, text, cluster), of) in zip(names, uses.items(), strict=True)
    )


def naming_a_model(texts: Sequence[RatingText], runs: Sequence[RunReader]) -> int:
    """How many texts hold the first word of a model's name: their raters may guess it."""
    names = [str(player.get("model", "")) for run in runs for player in run.record.cast.values()]
    words = {match[0].casefold() for name in names if (match := re.search(r"[^\W\d_]{4,}", name))}
    return sum(any(word in text.text.casefold() for word in words) for text in texts)


class _SheetKeyPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KeyRun(_SheetKeyPart):
    run: str
    method: dict[str, Any]
    cast: dict[str, Any]


class SheetKey(_SheetKeyPart):
    """What was drawn from which runs, and who was given what in which order."""

    format: Literal[1] = 1
    evenhand: str
    rubric: str  # sha256
    seed: int
    overlap: int  # raters of each text
    shared: bool
    left_out: dict[str, int]
    runs: tuple[KeyRun, ...]
    texts: tuple[RatingText, ...]
    sheets: dict[str, tuple[str, ...]]  # rater -> ids, in the order shown

    def to_bytes(self) -> bytes:
        return orjson.dumps(self.model_dump(), option=orjson.OPT_INDENT_2) + b"\n"


def read_key(path: Path) -> SheetKey:
    try:
        key = SheetKey.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"Could not read {path} ({error.strerror}). Check the path.") from None
    except ValidationError:
        raise UserError(
            f"{path} is not a key of rating sheets; `evenhand annotate export` writes one with them"
        ) from None
    return key
