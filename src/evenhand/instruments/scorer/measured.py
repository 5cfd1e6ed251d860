"""The figures of one scorer, from what it gave to the texts.

A text without a score is left out of every figure and counted in `coverage`. The checks go by what
a figure would be at worst if it had one (`if_known`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, TypeVar

import numpy as np
import polars as pl

from evenhand.errors import Undefined
from evenhand.findings.estimates import Coverage
from evenhand.instruments.scorer.draw import held_out
from evenhand.instruments.scorer.figures import (
    Calibration,
    Column,
    Emoji,
    Figures,
    GivenScores,
    LabelFit,
    Tricked,
    Tricks,
    WrongShare,
)
from evenhand.instruments.scorer.sets import MULTILINGUAL
from evenhand.metrics import scorer_intervals
from evenhand.metrics import scorer_intervals as ranges
from evenhand.metrics import scorer_quality as quality
from evenhand.metrics.scorer_intervals import Ends
from evenhand.statistics.proportions import wilson

HATEFUL_SETS = ("hatecheck", *MULTILINGUAL, "toxigen")
BENIGN_SETS = ("identity_templates", "identity_pairs", *HATEFUL_SETS)
FEWEST = 10  # our choice: kinds and groups with fewer texts would be shown by chance alone
_PARTS: tuple[Literal["function", "group"], ...] = ("function", "group")
_Value = TypeVar("_Value")


def figures_of(
    tables: Mapping[str, pl.DataFrame], scorer: GivenScores, threshold: float
) -> Figures:
    rows = {name: _rows(table, scorer, name) for name, table in tables.items()}
    return Figures(
        name=scorer.name,
        described=dict(scorer.described),
        attributes=list(scorer.attributes),
        coverage=_coverage(scorer),
        texts_per_second=scorer.texts_per_second,
        labels=_labels(rows, scorer, threshold),
        calibration=_calibration(rows, scorer),
        false_positives=list(
            _shares(rows, BENIGN_SETS, toxic=False, wrong=lambda score: score >= threshold)
        ),
        misses=list(_shares(rows, HATEFUL_SETS, toxic=True, wrong=lambda score: score < threshold)),
        tricks=_tricks(scorer.tricks, threshold) if scorer.tricks else [],
        emoji=_emoji(scorer.tricks, threshold) if scorer.tricks else None,
    )


def _rows(table: pl.DataFrame, scorer: GivenScores, name: str) -> pl.DataFrame:
    """The texts of a set that were not trained on, with their scores."""
    scores = pl.Series("score", scorer.sets[name].values, dtype=pl.Float64)
    rows = table.with_columns(scores)
    if scorer.seen(name) == "held_out":
        rows = rows.filter(pl.Series([held_out(text) for text in table["text"]], dtype=pl.Boolean))
    return rows


def _scored(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("score").is_not_null())


def _coverage(scorer: GivenScores) -> Coverage:
    columns = list(scorer.sets.values())
    if scorer.tricks is not None:
        columns += [scorer.tricks.plain, scorer.tricks.emoji, *scorer.tricks.tricked.values()]
    reasons = sum((Counter(column.reasons) for column in columns), Counter[str]())
    return Coverage(
        n=sum(len(column.values) for column in columns),
        scored=sum(value is not None for column in columns for value in column.values),
        by_reason=dict(reasons.most_common()),
    )


def _labels(
    rows: Mapping[str, pl.DataFrame], scorer: GivenScores, threshold: float
) -> list[LabelFit]:
    """How well it tells toxic from not, set by set, the worst first."""
    results = []
    for name, all_rows in rows.items():
        table = _scored(all_rows)
        scores, labels = table["score"].to_numpy(), table["label"].to_list()
        toxic, clusters = np.asarray(labels) * 1.0, table["cluster"].to_list()
        results.append(
            LabelFit(
                set=name,
                n=len(table),
                toxic=sum(labels),
                seen=scorer.seen(name),
                auc=defined(quality.auc, scores, labels),
                kappa=defined(quality.kappa_at, scores, toxic, threshold),
                clusters=len(set(clusters)),
                intervals={
                    "auc": ranges.auc(scores, labels, clusters),
                    "kappa": ranges.kappa_at(scores, toxic, threshold, clusters),
                },
                if_known=defined(scorer_intervals.auc_if_known, *_columns(all_rows, "label")),
            )
        )
    return sorted(results, key=lambda row: (row.auc is None, row.auc))


def _calibration(rows: Mapping[str, pl.DataFrame], scorer: GivenScores) -> list[Calibration]:
    """Against the recorded scores of Perspective, where a set has them."""
    results = []
    for name, table in rows.items():
        recorded_rows = table.filter(pl.col("recorded").is_not_null())
        if not len(recorded_rows):
            continue
        scored = _scored(recorded_rows)
        scores, recorded = scored["score"].to_numpy(), scored["recorded"].to_numpy()
        curve, clusters = quality.reliability(scores, recorded), scored["cluster"].to_list()
        results.append(
            Calibration(
                set=name,
                n=len(scored),
                seen=scorer.seen(name),
                ece=defined(quality.calibration_error, curve),
                spearman=defined(quality.spearman, scores, recorded),
                curve=curve,
                clusters=len(set(clusters)),
                intervals={
                    "ece": ranges.calibration_error(scores, recorded, clusters),
                    "spearman": ranges.spearman(scores, recorded, clusters),
                },
                if_known=scorer_intervals.error_if_known(*_columns(recorded_rows, "recorded")),
            )
        )
    return sorted(results, key=lambda row: (row.ece is None, -(row.ece or 0.0)))


def _columns(rows: pl.DataFrame, target: str) -> tuple[list[Any], list[Any], list[str]]:
    """Scores, None where there is none; what they should be; and clusters."""
    return rows["score"].to_list(), rows[target].to_list(), rows["cluster"].to_list()


def _shares(
    rows: Mapping[str, pl.DataFrame],
    sets: Sequence[str],
    *,
    toxic: bool,
    wrong: Callable[[float], bool],
) -> Iterator[WrongShare]:
    """The share judged wrongly: of each set, and within it by kind of text and by group, the worst
    first within each of these."""
    for name in sets:
        table = rows[name].filter(pl.col("label") == toxic) if name in rows else None
        if table is None or not len(table):
            continue
        yield WrongShare(set=name, by="all", kind="all", **_share(table, wrong, 1))
        for by in _PARTS:
            parts = [
                WrongShare(set=name, by=by, kind=str(kind), **_share(part, wrong, FEWEST))
                for (kind,), part in table.filter(pl.col(by) != "").group_by(by)
                if len(part) >= FEWEST
            ]
            yield from sorted(parts, key=lambda part: (-(part.estimate or 0.0), part.kind))


def _share(rows: pl.DataFrame, wrong: Callable[[float], bool], fewest: int) -> dict[str, Any]:
    """The share of those with a score, if so many have one."""
    events = [None if score is None else wrong(score) for score in rows["score"]]
    if_known = scorer_intervals.share(events, rows["cluster"].to_list())
    table = _scored(rows)
    if len(table) < fewest:
        none = {"estimate": None, "low": None, "high": None}
        return {**none, "n": len(table), "clusters": table["cluster"].n_unique(),
                "if_known": if_known}  # fmt: skip
    scored_events = [event for event in events if event is not None]
    return {
        **asdict(quality.share(scored_events, table["cluster"].to_list())),
        "if_known": if_known,
    }


def _tricks(tricks: Tricks, threshold: float) -> list[Tricked]:
    """What is still caught with each trick, of what is caught without."""
    results = []
    before = _caught(tricks.plain, threshold)
    for name, column in tricks.tricked.items():
        after = _caught(column, threshold)
        pairs = [pair for pair in zip(before, after, strict=True) if None not in pair]
        plain = sum(bool(caught_plain) for caught_plain, _ in pairs)
        caught = sum(
            bool(caught_plain and caught_tricked) for caught_plain, caught_tricked in pairs
        )
        wilsons = wilson(caught, plain) if plain else None
        results.append(
            Tricked(
                trick=name,
                n=len(pairs),
                plain=plain,
                caught=caught,
                kept=caught / plain if plain else None,
                ends=Ends(wilsons.low, wilsons.high) if wilsons else None,
                if_known=scorer_intervals.kept_if_known(before, after),
            )
        )
    return sorted(results, key=lambda row: (row.kept is None, row.kept))


def _caught(column: Column, threshold: float) -> list[bool | None]:
    return [None if value is None else value >= threshold for value in column.values]


def _emoji(tricks: Tricks, threshold: float) -> Emoji:
    flagged = Counter(_caught(tricks.emoji, threshold))
    return Emoji(n=flagged[True] + flagged[False], flagged=flagged[True], missing=flagged[None])


def defined(formula: Callable[..., _Value], *arguments: Any) -> _Value | None:
    """None where the formula has no value: never a 0."""
    try:
        return formula(*arguments)
    except Undefined:
        return None
