# ruff: noqa: T201
"""Find the bound of the context-support classifier: at or below it, a context decides nothing.

    python scripts/support_bound.py --data DATA

DATA is the folder that EVENHAND_DATA names, with SQuAD v2. Needs torch. BBQ is not read.

The rule was written before any benchmark was read by it: the largest bound, in steps of 0.001, at
which the share of decided contexts taken for undecided is shown to stay within 2 points, the
margin to which comparisons hold accuracy: the upper end of the 95% CI over situations. Each context
is scored by networks that have seen nothing of its situation. A stricter rule counts situations:
at most 2% of them have a decided context at or below the bound (`design/support-bound.md`).
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from scipy.stats import t as student
from support_judge.contexts import Example
from support_judge.sources import own, squad
from train_support_judge import EVERY, FOLDS, MANY, direction, ensemble, folds, logits

from evenhand.scorers.support.features import Features, WordSimilarity

MARGIN = 0.02
BOUNDS = np.arange(0.001, 1.0, 0.001)


def held_out_scores(examples: list[Example], features: Features) -> np.ndarray:
    """Score each claim by networks that have seen nothing of its situation."""
    rows = [features.of(example.claim) for example in examples]
    values = np.array([list(row.values()) for row in rows], dtype=np.float32)
    x = (values - values.mean(0)) / (values.std(0) + np.float32(1e-3))
    y = np.array([example.supported for example in examples], dtype=np.float32)
    from_squad = np.array([example.kind not in ("stated", "withheld") for example in examples])
    fold, scores = folds(examples), np.zeros(len(x), dtype=np.float32)
    for number in range(FOLDS):
        seen = fold != number
        scores[~seen] = logits(ensemble(x[seen], y[seen], from_squad[seen]), x[~seen])
    return 1 / (1 + np.exp(-scores))


def best_of_each_context(
    examples: Sequence[Example], scores: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Take the best option of each question of ours that lists its options.

    Returns:
        The best scores, whether the context decides the question, and the situations.
    """
    options = defaultdict(list)
    for example, score in zip(examples, scores, strict=True):
        if example.kind in ("stated", "withheld") and example.claim.others:
            asked = (example.group, example.claim.context, example.claim.question)
            options[asked].append((float(score), example.supported, example.claim.answer))
    whole = {asked: claims for asked, claims in options.items() if len({c[2] for c in claims}) > 1}
    best = np.array([max(score for score, _, _ in claims) for claims in whole.values()])
    decided = np.array([any(supported for _, supported, _ in c) for c in whole.values()])
    return best, decided, [asked[0] for asked in whole]


def share(below: np.ndarray, situations: Sequence[str]) -> tuple[float, float]:
    """Estimate a share of contexts, with the upper end of its 95% CI over situations."""
    names, at = np.unique(situations, return_inverse=True)
    sizes = np.bincount(at)
    estimate = below.mean()
    residuals = np.bincount(at, weights=below) - estimate * sizes
    k = len(names)
    error = np.sqrt(k / (k - 1) * (residuals**2).sum()) / sizes.sum()
    return float(estimate), float(estimate + student.ppf(0.975, k - 1) * error)


def bound_of(decided_scores: np.ndarray, situations: Sequence[str]) -> float:
    """Give the largest bound whose loss of decided contexts is shown to be within the margin."""
    within = [b for b in BOUNDS if share(decided_scores <= b, situations)[1] <= MARGIN]
    return round(max(within), 3)


def stricter_bound_of(decided_scores: np.ndarray, situations: Sequence[str]) -> float:
    """Give the largest bound at which no more situations than the margin have a lost context."""
    lowest: dict[str, float] = {}
    for name, score in zip(situations, decided_scores, strict=True):
        lowest[name] = min(score, lowest.get(name, 1.0))
    scores = np.array(list(lowest.values()))
    return round(max(b for b in BOUNDS if (scores <= b).mean() <= MARGIN), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    meanings = WordSimilarity()
    features = Features(meanings, direction(meanings))
    examples = own(many=MANY) + squad(arguments.data / "squad_v2", EVERY)
    scores = held_out_scores(examples, features)
    best, decided, situations = best_of_each_context(examples, scores)
    of = [name for name, is_decided in zip(situations, decided, strict=True) if is_decided]
    bound = bound_of(best[decided], of)
    print(
        f"contexts: {decided.sum():,} decided, {(~decided).sum():,} not, of {len(set(situations))}"
    )
    stricter = stricter_bound_of(best[decided], of)
    print(f"bound: {bound:.3f}, by situations: {stricter:.3f}")
    for value in (0.006, stricter, 0.025, bound, 0.05, 0.1, 0.5, 0.8):
        lost, upper = share(best[decided] <= value, of)
        passed = (best[~decided] > value).mean()
        print(f"{value:.3f}: decided taken for undecided {lost:.4f} (to {upper:.4f}), ", end="")
        print(f"undecided above {passed:.4f}")


if __name__ == "__main__":
    main()
