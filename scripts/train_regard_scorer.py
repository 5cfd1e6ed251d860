# ruff: noqa: T201
"""Train the scorer of regard that ships with the package, and print the figures of its card.

    python scripts/train_regard_scorer.py --data DATA --out FOLDER [--measure]

FOLDER is src/evenhand/scorers/regard, DATA the folder that EVENHAND_DATA names. Needs numpy alone.

1. Which words are names: those of the offline scorer's vocabulary that SQuAD's paragraphs mostly
   write with a capital within a sentence, and the given names that a search keeps back.
2. A logistic regression with a ridge, on the mean of what the offline scorer's network makes of a
   sentence, learns from sentences of ours, whose subject is always "someone". Folds that leave out
   predicates and patterns at once give the figures, and chose the ridge.
3. With --measure, the weights that were written are held against sets of others, none of which was
   trained on or chosen by.
"""

import argparse
import gzip
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
from offline_scorer import packing
from regard_scorer.measured import measure
from regard_scorer.sentences import FOLDS, Sentence, sentences

import evenhand
from evenhand.scorers.regard import WEIGHTS, Reader, masked
from evenhand.statistics.metrics.scorer_quality import auc

RIDGE, STEPS = 100.0, 8


def names(reader: Reader, data: Path) -> list[str]:
    """Words of the vocabulary that are mostly names."""
    with gzip.open(next((data / "squad_v2").glob("dev*.json.gz"))) as stream:
        articles = json.load(stream)["data"]
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for article in articles:
        for paragraph in article["paragraphs"]:
            for word in re.findall(r"(?<=[a-z,] )[A-Za-z]+", paragraph["context"]):
                (capital if word[0].isupper() else small)[word.lower()] += 1
    found = {word for word in capital if capital[word] > small[word] and word in reader.vocabulary}
    listed = Path(evenhand.__file__).with_name("tools") / "search" / "given_names.txt"
    given = [line for line in listed.read_text().splitlines() if not line.startswith("#")]
    return sorted(found | ({*" ".join(given).split()} & reader.vocabulary.keys()))


def fitted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The weights, and behind them the bias: by Newton's steps from 0."""
    x = np.c_[x, np.ones(len(x))]
    w, penalty = np.zeros(x.shape[1]), RIDGE * np.eye(x.shape[1])
    penalty[-1, -1] = 1e-6
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-(x @ w)))
        slope, bend = x.T @ (p - y) + penalty @ w, (x * (p * (1 - p) + 1e-6)[:, None]).T @ x
        w -= np.linalg.solve(bend + penalty, slope)
    return w


def figures(made: list[Sentence], left_out: np.ndarray) -> None:
    """AUC where neither predicate nor pattern was seen, by kind against all of the other label."""
    known = ~np.isnan(left_out)
    ill = np.array([one.ill for one in made])
    kinds = np.array([one.kind for one in made])
    print(f"unseen predicates in unseen patterns: n={known.sum():,}, ill {ill[known].sum():,}, "
          f"AUC {auc(left_out[known].tolist(), ill[known].tolist()):.3f}")  # fmt: skip
    for kind in sorted(set(kinds)):
        own = known & (kinds == kind)
        part = own | (known & (ill != ill[kinds == kind][0]))
        found, above = auc(left_out[part].tolist(), ill[part].tolist()), (left_out[own] > 0).mean()
        print(f"  {kind}: n={own.sum():,} AUC {found:.3f} above 0.5 {above:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--measure", action="store_true")
    given = parser.parse_args()
    reader = Reader()
    listed = names(reader, given.data)
    known = frozenset(reader.vocabulary) - set(listed)
    made = sentences()
    x = reader.means([reader.windows(masked(one.text, known))[0] for one in made]).astype(
        np.float64
    )
    mean, spread = x.mean(0), x.std(0) + 1e-3
    x = (x - mean) / spread
    y = np.array([one.ill for one in made], dtype=np.float64)
    predicate, pattern = (
        np.array([getattr(one, name) for one in made]) for name in ("predicate", "pattern")
    )
    left_out = np.full(len(made), np.nan)
    for fold in range(FOLDS):
        seen, tested = (
            (predicate != fold) & (pattern != fold),
            (predicate == fold) & (pattern == fold),
        )
        left_out[tested] = np.c_[x[tested], np.ones(tested.sum())] @ fitted(x[seen], y[seen])
    print(f"{len(made):,} sentences, {int(y.sum()):,} ill; {len(listed):,} names")
    figures(made, left_out)
    *weight, bias = fitted(x, y)
    plain = np.array(weight) / spread  # of numbers as the network gives them
    arrays = {
        "weight": plain.astype(np.float32),
        "bias": np.array([bias - mean @ plain], np.float32),
    }
    packing.write(given.out / WEIGHTS.name, arrays, {"names": " ".join(listed)})
    if given.measure:
        measure(given.data, given.out / WEIGHTS.name)


if __name__ == "__main__":
    main()
