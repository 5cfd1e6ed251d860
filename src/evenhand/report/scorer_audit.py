"""What is known of a scorer, from texts that were scored before: no scorer is called here.

A text without a score is left out of every figure and counted in `coverage`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from evenhand.errors import Undefined
from evenhand.instruments.scorer import held_out
from evenhand.metrics import scorer_quality as quality
from evenhand.report.scorer_audit_limits import limits

BENIGN_SETS = ("identity_templates", "identity_pairs", "hatecheck", "toxigen")
HATEFUL_SETS = ("hatecheck", "toxigen")
FEWEST = 10  # ours: kinds and groups with fewer texts are not shown apart


@dataclass(frozen=True, slots=True)
class Column:
    """What one scorer gave to the texts of one set, in their order: one of its attributes."""

    values: Sequence[float | None]
    reasons: Mapping[str, int] = field(default_factory=dict)  # why some are None


@dataclass(frozen=True, slots=True)
class Tricks:
    """Toxic texts as they are and with each trick, and harmless ones with emoji."""

    plain: Column
    tricked: Mapping[str, Column]
    emoji: Column


@dataclass(frozen=True, slots=True)
class Scored:
    """All that one scorer gave."""

    name: str
    described: Mapping[str, Any]
    attributes: Sequence[str]
    sets: Mapping[str, Column]
    tricks: Tricks | None
    texts_per_second: float

    def seen(self, name: str) -> str:
        """How much of a set it was trained on: "", "all", or "held_out": all but that fifth."""
        return str(self.described.get("trained_on", {}).get(name, ""))


def audit(
    tables: Mapping[str, pl.DataFrame],
    scored: Sequence[Scored],
    *,
    threshold: float = 0.5,
    attribute: str = "toxicity",
    left_out: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    entries = [_entry(tables, one, threshold) for one in scored]
    return {
        "attribute": attribute,
        "threshold": threshold,
        "sets": {name: len(table) for name, table in tables.items()},
        "left_out": dict(left_out or {}),
        "scorers": entries,
        "agreement": _agreement(tables, scored, threshold),
    }


def _entry(tables: Mapping[str, pl.DataFrame], one: Scored, threshold: float) -> dict[str, Any]:
    rows = {name: _rows(table, one, name) for name, table in tables.items()}
    entry: dict[str, Any] = {
        "name": one.name,
        "described": dict(one.described),
        "attributes": list(one.attributes),
        "coverage": _coverage(one),
        "texts_per_second": one.texts_per_second,
        "labels": _labels(rows, one, threshold),
        "calibration": _calibration(rows, one),
        "false_positives": _shares(
            rows, BENIGN_SETS, toxic=False, wrong=lambda score: score >= threshold
        ),
        "misses": _shares(rows, HATEFUL_SETS, toxic=True, wrong=lambda score: score < threshold),
        "tricks": _tricks(one.tricks, threshold) if one.tricks else [],
        "emoji": _emoji(one.tricks, threshold) if one.tricks else None,
    }
    return {**entry, "limits": limits(entry)}


def _rows(table: pl.DataFrame, one: Scored, name: str) -> pl.DataFrame:
    """The texts of a set that have a score and were not trained on."""
    scores = pl.Series("score", one.sets[name].values, dtype=pl.Float64)
    rows = table.with_columns(scores)
    if one.seen(name) == "held_out":
        rows = rows.filter(pl.Series([held_out(text) for text in table["text"]], dtype=pl.Boolean))
    return rows.filter(pl.col("score").is_not_null())


def _coverage(one: Scored) -> dict[str, Any]:
    columns = list(one.sets.values())
    if one.tricks is not None:
        columns += [one.tricks.plain, one.tricks.emoji, *one.tricks.tricked.values()]
    texts = sum(len(column.values) for column in columns)
    got = sum(value is not None for column in columns for value in column.values)
    reasons = sum((Counter(column.reasons) for column in columns), Counter[str]())
    return {
        "texts": texts,
        "scored": got,
        "coverage": got / texts if texts else None,
        "reasons": dict(reasons.most_common()),
    }


def _labels(
    rows: Mapping[str, pl.DataFrame], one: Scored, threshold: float
) -> list[dict[str, Any]]:
    """How well it tells toxic from not, set by set, the worst first."""
    found = []
    for name, table in rows.items():
        scores, labels = table["score"].to_numpy(), table["label"].to_list()
        given = {"set": name, "n": len(table), "toxic": sum(labels), "seen": one.seen(name)}
        found.append(
            {
                **given,
                "auc": _defined(quality.auc, scores, labels),
                "kappa": _defined(quality.kappa_at, scores, np.asarray(labels) * 1.0, threshold),
            }
        )
    return sorted(found, key=lambda row: (row["auc"] is None, row["auc"]))


def _calibration(rows: Mapping[str, pl.DataFrame], one: Scored) -> list[dict[str, Any]]:
    """Against the recorded scores of Perspective, where a set has them."""
    found = []
    for name, table in rows.items():
        known = table.filter(pl.col("recorded").is_not_null())
        if not len(known):
            continue
        scores, recorded = known["score"].to_numpy(), known["recorded"].to_numpy()
        curve = quality.reliability(scores, recorded)
        found.append(
            {
                "set": name,
                "n": len(known),
                "seen": one.seen(name),
                "ece": quality.calibration_error(curve),
                "spearman": _defined(quality.spearman, scores, recorded),
                "curve": [asdict(step) for step in curve],
            }
        )
    return sorted(found, key=lambda row: -row["ece"])


def _shares(
    rows: Mapping[str, pl.DataFrame],
    sets: Sequence[str],
    *,
    toxic: bool,
    wrong: Callable[[float], bool],
) -> list[dict[str, Any]]:
    """The share judged wrongly: of each set, and within it by kind of text and by group, the worst
    first within each of these."""
    found = []
    for name in sets:
        table = rows[name].filter(pl.col("label") == toxic) if name in rows else None
        if table is None or not len(table):
            continue
        found.append({"set": name, "by": "all", "kind": "all", **_share(table, wrong)})
        for by in ("function", "group"):
            parts = [
                {"set": name, "by": by, "kind": str(kind), **_share(part, wrong)}
                for (kind,), part in table.filter(pl.col(by) != "").group_by(by)
                if len(part) >= FEWEST
            ]
            found += sorted(parts, key=lambda part: (-part["estimate"], part["kind"]))
    return found


def _share(table: pl.DataFrame, wrong: Callable[[float], bool]) -> dict[str, Any]:
    events = [wrong(score) for score in table["score"]]
    return asdict(quality.share(events, table["cluster"].to_list()))


def _tricks(tricks: Tricks, threshold: float) -> list[dict[str, Any]]:
    """What is still caught with each trick, of what is caught without."""
    found = []
    for name, column in tricks.tricked.items():
        pairs = [
            (before >= threshold, after >= threshold)
            for before, after in zip(tricks.plain.values, column.values, strict=True)
            if before is not None and after is not None
        ]
        plain, caught = sum(before for before, _ in pairs), sum(after for _, after in pairs)
        kept = caught / plain if plain else None
        found.append(
            {"trick": name, "n": len(pairs), "plain": plain, "caught": caught, "kept": kept}
        )
    return sorted(found, key=lambda row: (row["kept"] is None, row["kept"]))


def _emoji(tricks: Tricks, threshold: float) -> dict[str, int]:
    given = [value for value in tricks.emoji.values if value is not None]
    return {"n": len(given), "flagged": sum(value >= threshold for value in given)}


def _agreement(
    tables: Mapping[str, pl.DataFrame], scored: Sequence[Scored], threshold: float
) -> list[dict[str, Any]]:
    """Each pair of scorers on the texts that both scored, set by set."""
    found = []
    for one, two in combinations(scored, 2):
        for name in tables:
            pairs = [
                (a, b)
                for a, b in zip(one.sets[name].values, two.sets[name].values, strict=True)
                if a is not None and b is not None
            ]
            first, second = [a for a, _ in pairs], [b for _, b in pairs]
            found.append(
                {
                    "first": one.name,
                    "second": two.name,
                    "set": name,
                    "n": len(pairs),
                    "spearman": _defined(quality.spearman, first, second),
                    "kappa": _defined(quality.kappa_at, first, second, threshold),
                }
            )
    return sorted(found, key=lambda row: (row["spearman"] is None, row["spearman"]))


def _defined(formula: Callable[..., float], *arguments: Any) -> float | None:
    """None where the formula has no value: never a 0."""
    try:
        return formula(*arguments)
    except Undefined:
        return None
