"""Audits of a scorer, as they were: figures had no intervals, and what a trick revealed counted as
kept; AUC, calibration error and tricks failed by the figure alone. Texts without a score were left
out of every check."""

from collections.abc import Sequence
from typing import Any

from evenhand.instruments.scorer.audit import ScorerAudits
from evenhand.instruments.scorer.figures import GivenScores, Tricks
from evenhand.instruments.scorer.limits import (
    LEAST_AUC,
    LEAST_KEPT,
    MOST_ECE,
    MOST_FALSE_POSITIVES,
    MOST_MISSES,
)

_NEW = ("intervals", "clusters", "ends", "if_known")
_SHARES = ("false_positives", "misses")
_BY_ENDS = ("Tells toxic from harmless poorly", "Its numbers are not on", "Is got round by")
_COUNTED = ("Calls ", "Misses ")


def scorers(found: ScorerAudits, given: Sequence[GivenScores]) -> dict[str, Any]:
    plain = found.to_dict()
    audits = [
        _scorer(one, scores.tricks, found.threshold)
        for one, scores in zip(plain["scorers"], given, strict=True)
    ]
    return plain | {"scorers": audits, "agreement": _without(plain["agreement"])}


def _scorer(one: dict[str, Any], tricks: Tricks | None, threshold: float) -> dict[str, Any]:
    lists = {name: _without(one[name]) for name in ("labels", "calibration")}
    rows = {row["trick"]: row for row in _without(one["tricks"])}
    kept = [_tricked(rows[name], tricks, threshold) for name in tricks.tricked] if tricks else []
    kept.sort(key=lambda row: (row["kept"] is None, row["kept"]))
    shares = {
        name: [
            {key: value for key, value in row.items() if key != "if_known"}
            for row in one[name]
            if row["estimate"] is not None
        ]
        for name in _SHARES
    }
    emoji = one["emoji"] and {name: one["emoji"][name] for name in ("n", "flagged")}
    old = one | lists | shares | {"tricks": kept, "emoji": emoji}
    return old | {"limits": _limits(old)}


def _tricked(row: dict[str, Any], tricks: Tricks, threshold: float) -> dict[str, Any]:
    pairs = zip(tricks.plain.values, tricks.tricked[row["trick"]].values, strict=True)
    after = [two for one, two in pairs if one is not None and two is not None]
    caught = sum(value >= threshold for value in after)
    return row | {"caught": caught, "kept": caught / row["plain"] if row["plain"] else None}


def _limits(one: dict[str, Any]) -> list[str]:
    rest = [line for line in one["limits"] if not line.startswith(_BY_ENDS + _COUNTED)]
    rest += _wrong(one["false_positives"], "Calls harmless texts toxic", MOST_FALSE_POSITIVES)
    rest += _wrong(one["misses"], "Misses hateful texts", MOST_MISSES)
    emoji = one["emoji"] or {"n": 0, "flagged": 0}
    last = [f"Calls {emoji['flagged']} of {emoji['n']} harmless texts with emoji toxic."]
    poor = [f"{row['set']} {row['auc']:.2f}" for row in one["labels"]
            if row["auc"] is not None and row["auc"] < LEAST_AUC]  # fmt: skip
    off = [f"{row['set']} {row['ece']:.2f}" for row in one["calibration"] if row["ece"] > MOST_ECE]
    lost = [f"{row['trick']} keeps {row['kept']:.0%}" for row in one["tricks"]
            if row["kept"] is not None and row["kept"] < LEAST_KEPT]  # fmt: skip
    said = [
        (poor, "Tells toxic from harmless poorly (AUC below 0.8): {}."),
        (off, "Its numbers are not on Perspective's scale (calibration error {}): do not compare "
              "them with published ones, and choose a threshold of its own."),
        (lost, "Is got round by Unicode tricks (of what it catches in plain writing): {}."),
    ]  # fmt: skip
    by_figure = [words.format(", ".join(listed)) for listed, words in said if listed]
    return [*rest, *by_figure, *(last if emoji["flagged"] else [])]


def _wrong(rows: Sequence[dict[str, Any]], what: str, bound: float) -> list[str]:
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows):
        for by, said in (("all", ""), ("function", " by kind"), ("group", " by group")):
            bad = [row for row in rows if (row["set"], row["by"]) == (name, by)]
            shown = [f"{'' if by == 'all' else row['kind'] + ' '}{row['estimate']:.0%}"
                     for row in bad if row["low"] > bound]  # fmt: skip
            if shown:
                lines.append(f"{what} in {name}{said}: {', '.join(shown)}.")
    return lines


def _without(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in _NEW} for row in rows]
