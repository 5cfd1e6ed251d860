"""The audit of one judge or panel, as plain data: what labels, slots and repeats do to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from evenhand.errors import Undefined
from evenhand.instruments.judge import TEN
from evenhand.metrics import malibu, scorer_quality
from evenhand.report.judge_effects import (
    SCORE_MARGIN,
    WIN_MARGIN,
    Measured,
    adjusted,
    checked,
    of_labels,
    of_labels_in_pairs,
    of_pairs,
    primary,
)
from evenhand.report.summary import COVERAGE_FLOOR, below_floor
from evenhand.statistics import margins
from evenhand.statistics.clusters import clustered_ratio
from evenhand.statistics.multiplicity import benjamini_hochberg
from evenhand.statistics.proportions import wilson
from evenhand.statistics.tables import chi_square, friedman

Report = dict[str, Any]


def audit(
    rows: pl.DataFrame,
    *,
    identities: Sequence[str] = TEN,
    score_margin: float = SCORE_MARGIN,
    win_margin: float = WIN_MARGIN,
    alpha: float = 0.05,
    seed: int = 0,
    draws: int = 10_000,
) -> Report:
    """Everything that may be said of the judgements in `rows` (columns: `metrics.malibu`; a column
    `reason` says why a score is missing).

    Primary: each identity against no label on the combined score, Holm. All other comparisons are
    exploratory and share one Benjamini-Hochberg family.
    """
    judged, met = malibu.single(rows), malibu.duels(rows)
    main = checked(
        primary(judged, identities, margin=score_margin, alpha=alpha), seed=seed, draws=draws
    )
    others = _exploratory(judged, met, identities, score_margin, win_margin)
    others = adjusted(others, benjamini_hochberg, alpha)
    report = {
        "margins": {"score": score_margin, "win_rate": win_margin},
        "alpha": alpha,
        "bootstrap": {"seed": seed, "draws": draws},
        "coverage": _coverage(rows, judged),
        "verdict": margins.of_family([one.effect.verdict for one in main]),
        "primary": _sorted(main),
        "omnibus": _omnibus(judged, [one.effect.label for one in main]),
        "exploratory": _sorted(others),
        "pairs": _pairs(met),
        "repeats": _repeats(rows, judged),
        "scale": _scale(judged),
        "as_the_paper_prints_it": paper_figures(rows, judged),
    }
    return {**report, "notes": _notes(report)}


def _exploratory(
    judged: pl.DataFrame,
    met: pl.DataFrame,
    identities: Sequence[str],
    score_margin: float,
    win_margin: float,
) -> list[Measured]:
    labels = _labels(judged)
    main = [label for label in labels if label in identities]
    found = of_labels(judged, [label for label in labels if label not in main], margin=score_margin)
    for metric in malibu.METRICS:
        found += of_labels(judged, labels, metric, margin=score_margin)
    # Does the group matter, or only that a label is there at all?
    if malibu.PLACEBO in labels:
        found += of_labels(judged, main, margin=score_margin, against=malibu.PLACEBO)
    for value, margin in (("win", win_margin), ("gap", score_margin)):
        effects = malibu.pair_effects(met, value)
        found += of_pairs(effects, value, margin=margin)
        found += of_labels_in_pairs(effects, value, margin=margin)
    return found


def _labels(judged: pl.DataFrame) -> list[str]:
    """All labels but none, in the order in which they were first asked about."""
    return [
        label for label in judged["label"].unique(maintain_order=True) if label != malibu.NO_LABEL
    ]


def _sorted(family: list[Measured]) -> list[dict[str, Any]]:
    """What is worst comes first: shifted, then underpowered, then equivalent, by size."""
    order = (margins.SHIFTED, margins.UNDERPOWERED, margins.EQUIVALENT)
    effects = [one.effect for one in family]
    effects.sort(key=lambda e: (order.index(e.verdict), e.estimate is None, -abs(e.estimate or 0)))
    return [asdict(effect) for effect in effects]


# -- coverage and the judge itself -----------------------------------------------------------------


def _coverage(rows: pl.DataFrame, judged: pl.DataFrame) -> Report:
    scored = judged.group_by("label", maintain_order=True).agg(
        n=pl.len(), scored=pl.col("combined").count()
    )
    pair = rows.filter(pl.col("phase") == "pair")
    single = _covered(len(judged), judged["combined"].count())
    pairs = _covered(len(pair), pair["preferred"].count())
    both = _covered(single["n"] + pairs["n"], single["scored"] + pairs["scored"])
    reasons = rows["reason"].drop_nulls().value_counts(sort=True) if "reason" in rows else None
    return {
        **both,
        "single": single,
        "pair": pairs,
        "by_label": [{"label": label, **_covered(n, got)} for label, n, got in scored.iter_rows()],
        "by_reason": dict(reasons.iter_rows()) if reasons is not None else {},
        "bases": rows["base"].n_unique(),
    }


def _covered(n: int, scored: int) -> Report:
    return {"n": n, "scored": scored, "coverage": scored / n if n else None}


def _scale(judged: pl.DataFrame) -> Report:
    """How much of the scale the judge uses: one that gives everything the same is even-handed, and
    useless."""
    given = judged["combined"].drop_nulls()
    if given.is_empty():
        return {"mean": None, "sd": None, "distinct": 0}
    return {"mean": given.mean(), "sd": given.std(), "distinct": given.n_unique()}


def _omnibus(judged: pl.DataFrame, labels: Sequence[str]) -> Report:
    """Friedman over no label and the primary labels; bases with no whole cell are left out."""
    blocks = malibu.base_means(judged, [malibu.NO_LABEL, *labels])
    names = blocks.columns[1:]
    try:
        return {"labels": names, **asdict(friedman(blocks.select(names).to_numpy()))}
    except Undefined as reason:
        return {"labels": names, "undefined": str(reason)}


def _repeats(rows: pl.DataFrame, judged: pl.DataFrame) -> Report:
    asked = ("base", "scenario", "text", "label", "judge")
    shown = ("base", "scenario", "first", "second", "first_text", "second_text", "judge")
    pair = rows.filter(pl.col("phase") == "pair")
    return {
        "score": _defined(lambda: asdict(malibu.repeats(judged, "combined", asked))),
        "preferred": _defined(lambda: asdict(malibu.repeats(pair, "preferred", shown))),
    }


# -- pairs -----------------------------------------------------------------------------------------


def _pairs(met: pl.DataFrame) -> Report:
    """Both orders: all pairs together, and each."""
    parts = [
        {"label": label, "other": other, **_orders(part)}
        for (label, other), part in met.group_by("label", "other", maintain_order=True)
    ]
    parts.sort(key=lambda row: (row["label"], row["other"]))
    return {"all": {**_orders(met), **_position(met)}, "by_pair": parts}


def _orders(met: pl.DataFrame) -> Report:
    whole = met.drop_nulls(["win_first", "win_second"])
    counted = {"n_asked": len(met), "n": len(whole)}
    try:
        found = malibu.both_orders(whole["win_first"].to_list(), whole["win_second"].to_list())
    except Undefined as reason:
        return {**counted, "undefined": str(reason)}
    return {
        **counted,
        **asdict(found),
        "inconsistent": found.inconsistent,
        "flip_rate": found.flip_rate,
    }


def _position(met: pl.DataFrame) -> Report:
    """Consistency and the first slot's share of decided verdicts, with intervals over bases."""
    whole = met.drop_nulls(["win_first", "win_second"])
    win_first, win_second = whole["win_first"].to_numpy(), whole["win_second"].to_numpy()
    bases = whole["base"].to_list()
    decided = (win_first != malibu.TIE).astype(float) + (win_second != malibu.TIE)
    taken = (win_first > malibu.TIE).astype(float) + (win_second < malibu.TIE)
    same = (win_first == win_second).tolist()
    return {
        "consistency": _defined(lambda: asdict(scorer_quality.share(same, bases))),
        "first_slot": _defined(lambda: asdict(clustered_ratio(taken, decided, bases))),
    }


# -- what the paper prints -------------------------------------------------------------------------


def paper_figures(rows: pl.DataFrame, judged: pl.DataFrame) -> Report:
    """Its histograms with chi-square, its difference matrix and its win rates, row by row as if
    each were independent: to compare with the paper, not to conclude from."""
    labels = [label for part in _families(judged).values() for label in part]
    means = malibu.paper_means(judged, labels)
    wins = {
        label: asdict(wilson(won, n)) for label, (won, n) in malibu.paper_wins(rows).items() if n
    }
    return {
        "paper_chi_square": paper_chi_squares(judged),
        "paper_difference_matrix": {
            "labels": list(means),
            "means": list(means.values()),
            "x_minus_y": malibu.difference_matrix(means),
        },
        "paper_win_rates": wins,
    }


def paper_chi_squares(judged: pl.DataFrame) -> list[Report]:
    """One test per family and metric; a table without two rows and two columns has none."""
    found = []
    for family, labels in _families(judged).items():
        for metric in malibu.METRICS:
            table = malibu.paper_histogram(judged, metric, labels)
            try:
                test = asdict(chi_square(table))
            except Undefined:
                continue
            found.append(
                {"family": family, "metric": metric, "labels": labels, "histogram": table, **test}
            )
    return found


def _families(judged: pl.DataFrame) -> dict[str, list[str]]:
    """Labels by family, the controls left out: the paper has none."""
    named = judged.filter(~pl.col("label").is_in(malibu.CONTROLS))
    pairs = named.select("family", "label").unique(maintain_order=True)
    return {
        str(family): part["label"].to_list()
        for (family,), part in pairs.group_by("family", maintain_order=True)
    }


# -- what a reader must know first -----------------------------------------------------------------


def _notes(report: Mapping[str, Any]) -> list[str]:
    coverage, scale, pairs = report["coverage"], report["scale"], report["pairs"]["all"]
    notes = []
    if below_floor(coverage):
        notes.append(
            f"Coverage {coverage['coverage']:.1%} is below {COVERAGE_FLOOR:.0%}: "
            "what could not be scored may differ from what could."
        )
    if scale["distinct"] == 1:
        notes.append("Every text got the same score: even-handed, and no judge.")
    shifted = {
        e["label"]
        for e in report["exploratory"]
        if e["value"] == "combined" and e["against"] == malibu.NO_LABEL and e["detected"]
    }
    if shifted & {malibu.NEUTRAL, malibu.PLACEBO}:
        notes.append(
            "A label without any identity moves the score too: see the identities against the "
            "placebo before blaming the group."
        )
    slot = pairs["first_slot"]
    if slot and not slot["low"] <= malibu.TIE <= slot["high"]:
        side = "first" if slot["estimate"] > malibu.TIE else "second"
        notes.append(
            f"The {side} slot is favoured: the first one wins {slot['estimate']:.0%} of decided "
            f"verdicts ({slot['low']:.0%} to {slot['high']:.0%}). Ask in both orders."
        )
    return notes


def _defined(compute: Callable[[], Report]) -> Report | None:
    try:
        return compute()
    except Undefined:
        return None
