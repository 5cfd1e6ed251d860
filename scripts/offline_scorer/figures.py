# ruff: noqa: T201
"""The figures of the card, each printed with how many texts it rests on."""

import time

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata, spearmanr

from evenhand.scorers import Scores
from evenhand.scorers.offline import OfflineScorer
from offline_scorer.sets import ATTRIBUTES, RECORDED, Example, TestSet, of_new_frames
from offline_scorer.sets import held_out as is_held_out

OURS = {"sexually_explicit": "sexual"}
RAW = np.tile([[-80.0, 80.0]] * 2, (len(ATTRIBUTES), 1, 1))  # knots that leave logits as they are


def scores(scorer: OfflineScorer, texts: list[str]) -> np.ndarray:
    found = scorer.score_now(texts)
    return np.array(
        [
            [one.values[OURS.get(name, name)] for name in ATTRIBUTES]
            if isinstance(one, Scores)
            else [np.nan] * len(ATTRIBUTES)
            for one in found
        ]
    )


def auc(score: np.ndarray, toxic: np.ndarray) -> float:
    """The chance that a toxic text scores above another; ties count half."""
    there = ~np.isnan(score)
    score, toxic = score[there], np.asarray(toxic)[there]
    n, ranks = toxic.sum(), rankdata(score)
    return float((ranks[toxic].sum() - n * (n + 1) / 2) / (n * (len(toxic) - n)))


def cross_validated(recorded: list[Example], logits: np.ndarray) -> None:
    human = np.array([not one.source.startswith("gpt") for one in recorded])
    for at, name in enumerate(ATTRIBUTES[:RECORDED]):
        wanted = np.array([one.wanted.get(name, np.nan) for one in recorded])
        there = ~np.isnan(wanted) & ~np.isnan(logits[:, at])
        for which, rows in (("all", there), ("human-written", there & human)):
            rho = spearmanr(logits[rows, at], wanted[rows])[0]
            area = auc(logits[rows, at], wanted[rows] >= 0.5)
            figures = f"Spearman {rho:.4f}, AUC at 0.5 {area:.4f}"
            print(f"cross-validated {name}, {which}, n={rows.sum()}: {figures}")


def knots(recorded: list[Example], logits: np.ndarray, n: int = 16) -> np.ndarray:
    """Isotonic regression, thinned to `n` points that rise strictly, so that order is kept."""
    found = []
    for at, name in enumerate(ATTRIBUTES[:RECORDED]):
        wanted = np.array([one.wanted.get(name, np.nan) for one in recorded])
        rows = ~np.isnan(wanted) & ~np.isnan(logits[:, at])
        order = np.argsort(logits[rows, at])
        x, y = logits[rows, at][order], isotonic_regression(wanted[rows][order]).x
        parts = np.array_split(np.arange(len(x)), n)
        xs, ys = [x[part].mean() for part in parts], [y[part].mean() for part in parts]
        xs, ys = [xs[0] - 4, *xs, xs[-1] + 4], [ys[0] / 3, *ys, 1 - (1 - ys[-1]) / 3]
        found.append([xs, np.maximum.accumulate(ys) + np.arange(len(ys)) * 1e-4])
    # Hate has no recorded scale: its logits as they are, through the logistic curve.
    xs = np.linspace(-8.5, 8.5, n + 2)
    found.append([xs, 1 / (1 + np.exp(-xs))])
    return np.clip(np.array(found), -90, None)


def held_out(scorer: OfflineScorer, labelled: list[Example], own: list[Example]) -> None:
    rest = [one for one in labelled if is_held_out(one.text)] + of_new_frames(own)
    for source in dict.fromkeys(one.source for one in rest):
        some = [one for one in rest if one.source == source]
        found = scores(scorer, [one.text for one in some])
        for name in ("toxicity", "hate"):
            wanted = np.array([one.wanted.get(name, np.nan) for one in some])
            rows = ~np.isnan(wanted)
            if rows.any():
                area = auc(found[rows, ATTRIBUTES.index(name)], wanted[rows] >= 0.5)
                print(f"held-out fifth of {source}, n={rows.sum()}: AUC by {name} {area:.4f}")


def tests(scorer: OfflineScorer, sets: list[TestSet]) -> None:
    toxicity, hate = ATTRIBUTES.index("toxicity"), ATTRIBUTES.index("hate")
    for test in sets:
        texts, toxic = test.texts[:: test.every], np.array(test.toxic[:: test.every])
        began, cpu = time.perf_counter(), time.process_time()
        found = scores(scorer, texts)
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        areas = ", ".join(
            f"{name} {auc(found[:, ATTRIBUTES.index(name)], toxic):.4f}"
            for name in ("toxicity", "identity_attack", "hate")
        )
        print(f"test-only {test.name}, n={len(texts)}: AUC by {areas}")
        print(f"  {len(texts) / took:.0f} texts/s, {len(texts) / cpu:.0f} per CPU-second")
        logits = np.log((found + 1e-4) / (1 - found + 1e-4))
        for share in (0, 0.3, 0.5, 0.7, 0.9, 1):
            mixed = share * logits[:, hate] + (1 - share) * logits[:, toxicity]
            print(f"  share of hate in the mean of the two logits {share}: {auc(mixed, toxic):.4f}")
        _by_kind(test, found[:, hate])


def _by_kind(test: TestSet, hate: np.ndarray) -> None:
    """Each kind of case against all cases of the other label."""
    toxic, kinds = np.array(test.toxic), np.array(test.kinds)
    for kind in dict.fromkeys(test.kinds):
        of_kind = kinds == kind
        rows = of_kind | (toxic != toxic[of_kind][0])
        label = "hateful" if toxic[of_kind][0] else "not"
        area = auc(hate[rows], toxic[rows])
        print(f"  {kind} ({label}), n={of_kind.sum()}: AUC by hate {area:.3f}")
