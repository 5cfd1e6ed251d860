# ruff: noqa: T201
"""The figures of the card, each printed with how many texts it rests on."""

import time

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata, spearmanr

from evenhand.scorers.offline import OfflineScorer, Scores
from offline_scorer.sets import ATTRIBUTES, Example, TestSet
from offline_scorer.sets import held_out as is_held_out

RAW = np.tile([[-40.0, 40.0]] * 2, (len(ATTRIBUTES), 1, 1))  # knots that leave logits as they are


def scores(scorer: OfflineScorer, texts: list[str]) -> np.ndarray:
    found = scorer.score_now(texts)
    return np.array(
        [
            list(one.attributes.values()) if isinstance(one, Scores) else [np.nan] * 8
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
    for at, name in enumerate(ATTRIBUTES):
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
    for at, name in enumerate(ATTRIBUTES):
        wanted = np.array([one.wanted.get(name, np.nan) for one in recorded])
        rows = ~np.isnan(wanted) & ~np.isnan(logits[:, at])
        order = np.argsort(logits[rows, at])
        x, y = logits[rows, at][order], isotonic_regression(wanted[rows][order]).x
        parts = np.array_split(np.arange(len(x)), n)
        xs, ys = [x[part].mean() for part in parts], [y[part].mean() for part in parts]
        xs, ys = [xs[0] - 4, *xs, xs[-1] + 4], [ys[0] / 3, *ys, 1 - (1 - ys[-1]) / 3]
        found.append([xs, np.maximum.accumulate(ys) + np.arange(len(ys)) * 1e-4])
    return np.clip(np.array(found), -50, None)


def held_out(scorer: OfflineScorer, labelled: list[Example], own: list[Example]) -> None:
    rest = [one for one in labelled if is_held_out(one.text)]
    rest += [one for one in own if is_held_out(one.group)]
    for source in dict.fromkeys(one.source for one in rest):
        some = [one for one in rest if one.source == source]
        toxic = np.array([one.wanted["toxicity"] >= 0.5 for one in some])
        area = auc(scores(scorer, [one.text for one in some])[:, 0], toxic)
        print(f"held-out fifth of {source}, n={len(some)}: AUC {area:.4f}")


def tests(scorer: OfflineScorer, sets: list[TestSet]) -> None:
    for test in sets:
        began, cpu = time.perf_counter(), time.process_time()
        found = scores(scorer, test.texts)
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        areas = {
            name: auc(found[:, ATTRIBUTES.index(name)], np.array(test.toxic))
            for name in ("toxicity", "identity_attack")
        }
        print(
            f"test-only {test.name}, n={len(test.texts)}: AUC by toxicity {areas['toxicity']:.4f},"
            f" by identity_attack {areas['identity_attack']:.4f};"
            f" {len(test.texts) / took:.0f} texts/s, {len(test.texts) / cpu:.0f} per CPU-second"
        )
