# ruff: noqa: T201
"""Train the context-support classifier of the package, and print the figures of its card.

    python scripts/train_support_judge.py --data DATA --out FOLDER

FOLDER is src/evenhand/scorers/support, DATA the folder that EVENHAND_DATA names, with SQuAD v2.
Needs torch. No BBQ: its figures are those of `evenhand scorers audit-support`.

1. A direction among the word vectors of the offline scorer, from bad to good, is fitted to a list
   of words of our own by ridge regression.
2. Each claim becomes features. Networks with other beginnings learn from contexts of our own
   (three quarters of the weight) and from SQuAD v2 (one quarter).
3. Folds that leave out whole situations, and whole articles of SQuAD, give the figures.
"""

import argparse
import random
from pathlib import Path

import numpy as np
import torch
from offline_scorer import packing
from support_judge.contexts import Example, beside_the_point
from support_judge.sources import own, squad
from torch import nn
from torch.nn import functional

from evenhand.scorers.support import WEIGHTS, SupportJudge
from evenhand.scorers.support.features import Features, WordSimilarity
from evenhand.statistics.metrics.scorer_quality import auc

FOLDS, NETWORKS, WIDTH, EPOCHS, BATCH, RATE, DECAY = 4, 3, 32, 12, 256, 3e-3, 1e-2
RIDGE = 1.0
SHARE_OF_SQUAD = 0.25
EVERY = 3  # question of SQuAD: reading them takes most of the time
MANY = 50  # contexts a situation, each asked twice and answered twice


def direction(meanings: WordSimilarity) -> np.ndarray:
    """From bad to good, and how many words it puts on their own side when it has not seen them."""
    text = Path(__file__).with_name("support_judge") / "valence.txt"
    good, bad = (line.split() for line in text.read_text().splitlines() if line[0] != "#")
    x = meanings.vectors([*good, *bad])
    y = np.array([1.0] * len(good) + [-1.0] * len(bad))
    order = np.random.default_rng(0).permutation(len(y))
    right = 0
    for fold in range(5):
        seen = np.ones(len(y), dtype=bool)
        seen[order[fold::5]] = False
        right += int((np.sign(x[~seen] @ _ridge(x[seen], y[seen])) == y[~seen]).sum())
    print(f"valence: {right} of {len(y)} unseen words on their own side")
    return _ridge(x, y).astype(np.float32)


def _ridge(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.linalg.solve(x.T @ x + RIDGE * np.eye(x.shape[1]), x.T @ y)


def network(features: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(features, WIDTH),
        nn.Tanh(),
        nn.Dropout(0.2),
        nn.Linear(WIDTH, WIDTH),
        nn.Tanh(),
        nn.Linear(WIDTH, 1),
    )


def trained(x: np.ndarray, y: np.ndarray, weight: np.ndarray, seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    model = network(x.shape[1])
    steps = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(steps, EPOCHS)
    xs, ys, ws = (torch.tensor(one, dtype=torch.float32) for one in (x, y, weight))
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(xs)).split(BATCH):
            steps.zero_grad()
            said = model(xs[batch])[:, 0]
            functional.binary_cross_entropy_with_logits(said, ys[batch], ws[batch]).backward()
            steps.step()
        slower.step()
    return model.eval()


def ensemble(x: np.ndarray, y: np.ndarray, from_squad: np.ndarray) -> list[nn.Sequential]:
    weight = np.where(from_squad, SHARE_OF_SQUAD / from_squad.sum(), 0.0)
    weight += np.where(from_squad, 0.0, (1 - SHARE_OF_SQUAD) / (~from_squad).sum())
    return [trained(x, y, weight * len(x), seed) for seed in range(NETWORKS)]


def logits(models: list[nn.Sequential], x: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        said = [model(torch.tensor(x, dtype=torch.float32))[:, 0] for model in models]
    return torch.stack(said).mean(0).numpy()


def folds(examples: list[Example]) -> np.ndarray:
    groups = sorted({one.group for one in examples})
    random.Random(0).shuffle(groups)
    place = {group: at % FOLDS for at, group in enumerate(groups)}
    return np.array([place[one.group] for one in examples])


def figures(examples: list[Example], said: np.ndarray) -> None:
    """AUC in cross-validation, of all and of parts, and what a bound does."""
    y = np.array([one.supported for one in examples])
    kinds = np.array([one.kind for one in examples])
    ours = np.isin(kinds, ["stated", "withheld"])
    options = np.array([bool(one.claim.others) for one in examples])
    shown = {
        "own": ours,
        "own, options given": ours & options,
        "own, answer alone": ours & ~options,
        "own, stated only": kinds == "stated",
        "own, stated, options given": (kinds == "stated") & options,
        "own, supported against withheld": ours & (y | (kinds == "withheld")),
        "squad": ~ours,
        "squad, against what models said": ~ours & (kinds != "other question"),
        "squad, against other answers": ~ours & (kinds != "model"),
    }
    for name, part in shown.items():
        found = auc(said[part].tolist(), y[part].tolist())
        print(f"{name}: n={part.sum():,} AUC {found:.3f}")
    for bound in (0.0, np.log(4)):  # 0.5 and 0.8
        above = said > bound
        kept, let = above[ours & options & y].mean(), above[ours & options & ~y].mean()
        print(f"own, options given, above {1 / (1 + np.exp(-bound)):.1f}: {kept:.2f} / {let:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    said = parser.parse_args()
    torch.set_num_threads(1)
    meanings = WordSimilarity()
    valence = direction(meanings)
    features = Features(meanings, valence)
    examples = own(many=MANY) + squad(said.data / "squad_v2", EVERY)
    rows = [features.of(one.claim) for one in examples]
    names = list(rows[0])
    given = np.array([[row[name] for name in names] for row in rows], dtype=np.float32)
    mean, spread = given.mean(0), given.std(0) + np.float32(1e-3)
    x, y = (given - mean) / spread, np.array([one.supported for one in examples], dtype=np.float32)
    from_squad = np.array([one.kind not in ("stated", "withheld") for one in examples])
    fold, left_out = folds(examples), np.zeros(len(x), dtype=np.float32)
    for number in range(FOLDS):
        seen = fold != number
        left_out[~seen] = logits(ensemble(x[seen], y[seen], from_squad[seen]), x[~seen])
    figures(examples, left_out)
    models = ensemble(x, y, from_squad)
    layers = [[model[at] for model in models] for at in (0, 3, 5)]
    arrays = {"valence": valence, "mean": mean, "spread": spread}
    for at, layer in enumerate(layers):
        arrays[f"w{at}"] = np.stack([one.weight.detach().numpy().T for one in layer])
        arrays[f"b{at}"] = np.stack([one.bias.detach().numpy() for one in layer])
    metadata = {"features": " ".join(names), "layers": str(len(layers))}
    packing.write(said.out / WEIGHTS.name, arrays, metadata)
    asides = list(beside_the_point(random.Random(5)))
    scores = np.array(SupportJudge(said.out / WEIGHTS.name).of(asides))
    print(f"beside the point: n={len(asides)}, above 0.5 {(scores > 0.5).mean():.3f}")


if __name__ == "__main__":
    main()
