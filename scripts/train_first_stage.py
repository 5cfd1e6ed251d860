# ruff: noqa: T201
"""Fit the first stage of the staged scorer, find its cut-off, and print the figures of its card.

    python scripts/train_first_stage.py --data DATA --out src/evenhand/scorers/offline

DATA is the folder that EVENHAND_DATA names. Minutes of one core, most of them for what the network
says of the texts; `--logits FOLDER` keeps that.

1. A ridge regression over pieces and nearby pairs learns, of what the offline scorer was trained
   on, the network's logit and the label; of harmless prose it learns one low value. The prose is
   that of permissively licensed sets: LLMBar and clinical answers (MIT), EvalBiasBench (BSD-3),
   reference letters and political statements (MIT).
2. The cut-off comes from texts that neither stage was trained on. With 95% confidence the first
   stage clears at most 1% of the toxic texts that the network holds back, of each of three kinds.
3. The last quarter of those texts says how many it clears; the areas are of all of them.
"""

import argparse
import csv
import gzip
import hashlib
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from offline_scorer import figures, packing, sets
from offline_scorer.figures import auc
from offline_scorer.linear import matrix
from offline_scorer.sets import Example
from scipy.optimize import isotonic_regression
from scipy.sparse import vstack
from scipy.sparse.linalg import lsqr

from evenhand.scorers.offline import OfflineScorer
from evenhand.scorers.offline.staged import HASH_BYTES, FirstStage, digest
from evenhand.scorers.passages import passages
from evenhand.statistics.proportions import clopper_pearson
from evenhand.statistics.screening import calibrate

OWN = 8_000  # sentences of our own
RIDGE, STEPS = 1.5, 40  # by held-out texts that also give the cut-off
NETWORK = 0.25  # the share of the network's logit in what is learned; the rest is the label
HARMLESS = -3.0  # what is learned of prose
NEAREST = 0.02  # to 0 and 1, where the logit has no end
MISSED = 0.01  # of what the network holds, for each kind; our choice: no area falls by 0.01
KINDS = {"toxigen": "statements", "HateCheck": "statements", "identity templates": "templates"}
OTHERS = "comments"
MOST_SCORE = 0.3  # of what is cleared: below the band
HELD = 0.35  # the score from which the gateway's default band holds a text back
NEVER = 99.0  # a sum that clears nothing
MOST_STRANGE = 0.25
PROSE = (
    "llmbar/Dataset/**/*.json*",
    "evalbiasbench/*.json.gz",
    "recorded/clinical_geo/*.jsonl.gz",
    "recorded/reference_letters/*.csv.gz",
    "recorded/political_monthly/statements_answers.jsonl.gz",
)


def prose(data: Path) -> list[str]:
    """Harmless passages, and whole texts that are not long."""
    files = sorted(file for pattern in PROSE for file in data.glob(pattern))
    strings = dict.fromkeys(
        string.strip() for file in files for string in _strings(_read(file)) if len(string) < 6_000
    )
    texts = [text for text in strings if len(text.split()) >= 6]
    cut = [passage for text in texts for passage in passages(text)]
    return list(dict.fromkeys([*cut, *(text for text in texts if len(text) < 800)]))


def _read(file: Path) -> object:
    text = gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else file.read_text()
    if ".jsonl" in file.name:
        return [json.loads(line) for line in text.splitlines()]
    if ".csv" in file.name:
        return list(csv.DictReader(text.splitlines()))
    return json.loads(text)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


def trained_on(data: Path) -> list[Example]:
    """What the network was trained on, but for most of our own sentences."""
    recorded = [one for one in sets.recorded(data) if not one.source.startswith("gpt")]
    known = [one for one in sets.labelled(data) if not sets.held_out(one.text)]
    return [*recorded, *known, *sets.of_known_frames(sets.own(OWN, 1))]


def not_trained_on(data: Path) -> list[tuple[str, bool, str, str]]:
    """Text, whether it is toxic, its set, and what it shares with others like it."""
    held = [one for one in sets.labelled(data) if sets.held_out(one.text)]
    rows = [
        (one.text, one.wanted["toxicity"] >= 0.5, one.source.removesuffix(" demonstrations"),
         one.text)
        for one in held
    ]  # fmt: skip
    for test in sets.test_sets(data):
        texts, toxic = test.texts[:: test.every], test.toxic[:: test.every]
        like = test.templates[:: test.every] if test.templates else texts
        rows += [(text, bad, test.name, key)
                 for text, bad, key in zip(texts, toxic, like, strict=True)]  # fmt: skip
    return rows


def for_the_cut(key: str) -> bool:
    """Three quarters of all texts and templates."""
    return hashlib.sha256(f"cut {key}".encode()).digest()[0] % 4 != 0


def scores(scorer: OfflineScorer, texts: list[str], kept: Path | None) -> np.ndarray:
    """The network's toxicity of each text; NaN without words."""
    if kept is not None and kept.exists():
        return np.load(kept)
    found = figures.scores(scorer, texts)[:, 0]
    if kept is not None:
        np.save(kept, found)
    return found


def logit(share: np.ndarray) -> np.ndarray:
    clipped = share.clip(NEAREST, 1 - NEAREST)
    return np.log(clipped / (1 - clipped))


def fitted(
    examples: list[Example], network: np.ndarray, harmless: list[str], vocabulary: dict[str, int]
) -> tuple[np.ndarray, float]:
    """A weight a feature, and what is added to every sum."""
    features = vstack(
        [matrix([one.text for one in examples], vocabulary), matrix(harmless, vocabulary)]
    ).tocsr()
    network = np.nan_to_num(network, nan=0.1)
    label = np.array([one.wanted.get("toxicity", np.nan) for one in examples])
    label = np.where(np.isnan(label), network, label)
    learned = NETWORK * logit(network) + (1 - NETWORK) * logit(label)
    goal = np.concatenate([learned, np.full(len(harmless), HARMLESS)])
    return lsqr(features, goal - goal.mean(), RIDGE, iter_lim=STEPS)[0], float(goal.mean())


def cut_off(sums: np.ndarray, network: np.ndarray, rows: list[tuple[str, bool, str, str]]) -> float:
    """Below it the first stage clears a text; one text of a template counts."""
    use, keys = list[int](), set[str]()
    for i, (_, toxic, name, key) in enumerate(rows):
        if toxic and network[i] >= HELD and for_the_cut(key) and (name, key) not in keys:
            keys.add((name, key))
            use.append(i)
    groups = [KINDS.get(rows[i][2], OTHERS) for i in use]
    screen = calibrate(
        sums[use].clip(max=NEVER), np.ones(len(use), dtype=bool), groups, missed=MISSED
    )
    for promise in screen.promises:
        print(promise)
    return screen.low


def knots(sums: np.ndarray, network: np.ndarray, cut: float, n: int = 8) -> np.ndarray:
    """What the network gives texts with such a sum, rising, and below the band."""
    below = (sums < cut) & ~np.isnan(network)
    order = np.argsort(sums[below])
    x, y = sums[below][order], isotonic_regression(network[below][order]).x
    parts = np.array_split(np.arange(len(x)), n)
    xs = np.array([x[part].mean() for part in parts])
    ys = np.minimum([y[part].mean() for part in parts], MOST_SCORE)
    return np.array([xs, np.maximum.accumulate(ys) + np.arange(n) * 1e-4])


def strange(vocabulary: dict[str, int]) -> np.ndarray:
    """The pieces that a spelling trick leaves of a word: unknown ones and single letters."""
    return np.array(
        [
            word == "[UNK]"
            or (len(word.removeprefix("##")) == 1 and word[-1].isalnum() and word not in "ai")
            for word in vocabulary
        ],
        dtype=np.uint8,
    )


def tell(rows: list[tuple[str, bool, str, str]], stage: np.ndarray, network: np.ndarray) -> None:
    """The areas of each set, and by the quarter that had no part in the cut-off what is cleared."""
    staged = np.where(np.isnan(stage), network, stage)
    name_of, toxic = np.array([row[2] for row in rows]), np.array([row[1] for row in rows])
    last = np.array([not for_the_cut(row[3]) for row in rows])
    for name in (*dict.fromkeys(name_of), "all"):
        mine = ((name_of == name) | (name == "all")) & ~np.isnan(network)
        held = mine & last & toxic & (network >= HELD)
        cleared = clopper_pearson(int((~np.isnan(stage))[held].sum()), int(held.sum()))
        harmless = (~np.isnan(stage))[mine & last & ~toxic].mean()
        print(f"{name}: n={mine.sum()}, AUC {auc(network[mine], toxic[mine]):.4f} -> "
              f"{auc(staged[mine], toxic[mine]):.4f}; of toxic texts that the network holds it "
              f"clears {cleared.events} of {cleared.n} ({cleared.low:.4f} to {cleared.high:.4f}), "
              f"of harmless ones {harmless:.3f}")  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, default=os.environ.get("EVENHAND_DATA"))
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--logits", type=Path, help="a folder that keeps what the network says")
    asked = options.parse_args()
    scorer, kept = OfflineScorer(), asked.logits
    vocabulary = scorer.vocabulary
    examples, harmless = trained_on(asked.data), prose(asked.data)
    random.Random(0).shuffle(harmless)
    rows = not_trained_on(asked.data)
    trained = [one.text for one in examples] + harmless
    learned = scores(scorer, [one.text for one in examples], kept and kept / "train.npy")
    network = scores(scorer, [row[0] for row in rows], kept and kept / "test.npy")
    hashes = {digest(text)[:HASH_BYTES] for text in trained}
    new = [i for i, row in enumerate(rows) if digest(row[0])[:HASH_BYTES] not in hashes]
    print(f"{len(rows) - len(new)} held-out texts are in training too, and are left out")
    rows, network = [rows[i] for i in new], network[new]
    texts = [row[0] for row in rows]
    weights, mean = fitted(examples, learned, harmless, vocabulary)
    path = asked.out / "first_stage.safetensors"
    arrays = packing.packed("pairs", weights[None].astype(np.float32), 8) | {
        "strange": strange(vocabulary),
        "trained_on": np.frombuffer(b"".join(sorted(hashes)), dtype=np.uint8),
    }

    def write(cut: float, curve: np.ndarray) -> FirstStage:
        cuts = np.array([cut, MOST_STRANGE, mean], dtype=np.float32)
        packing.write(path, arrays | {"cuts": cuts, "knots": curve.astype(np.float32)}, {})
        return FirstStage.read(path, len(vocabulary))

    def sums(stage: FirstStage, some: list[str]) -> np.ndarray:
        return np.array(stage.worst([scorer.windows(text) for text in some]))

    stage = write(-np.inf, np.array([[-1.0, 1.0], [0.0, 1.0]]))
    found = sums(stage, texts)
    cut = cut_off(found, network, rows)
    stage = write(cut, knots(sums(stage, [one.text for one in examples]), learned, cut))
    cleared = [stage.score(total) for total in found]
    print(f"{path}: {path.stat().st_size:,} bytes, clears below {stage.clears_below:.4f}")
    tell(rows, np.array([np.nan if one is None else one for one in cleared]), network)


if __name__ == "__main__":
    main()
