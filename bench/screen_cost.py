"""What the gateway's screen takes for a harmless answer of some 230 characters, all included.

    EVENHAND_DATA=… OMP_NUM_THREADS=1 python -m bench.screen_cost

Answers are the first sentences of SQuAD paragraphs and of PandaLM's model answers. Each is decoded,
cut, read whole and by sentence, told from other languages and scored, by each arm in turn, so that
all arms meet the same load, `--repeats` times. The least processor time of the process counts, and
no score is remembered.
"""

import argparse
import asyncio
import random
import re
import time
from collections.abc import Iterator, Sequence

import numpy as np

from bench.screen_band import pandalm, squad
from evenhand.experiments.config import data_folder
from evenhand.gateway.policy import ANYBODY, CheckPolicy
from evenhand.gateway.screening import FairQueue, Screening
from evenhand.scorers.base import Canonicalised, Scorer
from evenhand.scorers.kinds import offline, staged
from evenhand.scorers.offline import OfflineScorer
from evenhand.scorers.offline.network import Network, NumpyLayers

BETWEEN = (190, 280)  # characters
_SENTENCE = re.compile(r"(?<=[.!?]) ")


def shortened(texts: Sequence[str]) -> Iterator[str]:
    """The first sentences of each text, where they have about the right length."""
    for text in texts:
        answer = ""
        for sentence in _SENTENCE.split(text):
            answer = f"{answer} {sentence}".strip()
            if len(answer) >= BETWEEN[0]:
                break
        if BETWEEN[0] <= len(answer) <= BETWEEN[1]:
            yield answer


def in_numpy() -> Canonicalised:
    """The offline scorer as it is without ONNX Runtime."""
    scorer = OfflineScorer()
    weights = scorer._model.weights
    scorer._model.network = Network(weights, NumpyLayers(weights))
    return Canonicalised(scorer)


async def timed(answers: Sequence[str], repeats: int) -> dict[str, list[float]]:
    """Milliseconds of each arm for each answer."""
    scorers = {"numpy": in_numpy(), "onnx": offline(), "staged": staged()}

    async def once(scorer: Scorer, answer: str) -> float:
        screen = Screening(CheckPolicy(), scorer, FairQueue())
        began = time.process_time()
        await screen.score(ANYBODY, answer)
        return (time.process_time() - began) * 1e3

    for scorer in scorers.values():
        await once(scorer, "It is a fine day, you stupid fool. Is it not?")
    spent: dict[str, list[float]] = {name: [] for name in scorers}
    for answer in answers:
        rounds = [{n: await once(s, answer) for n, s in scorers.items()} for _ in range(repeats)]
        for name in scorers:
            spent[name].append(min(times[name] for times in rounds))
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--answers", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    folder = data_folder().local
    if folder is None:
        raise SystemExit("EVENHAND_DATA names no folder")
    rng = random.Random(1)
    texts = [*squad(folder, True, rng), *squad(folder, False, rng), *pandalm(folder, rng)]
    answers = list(shortened(texts))
    rng.shuffle(answers)
    spent = asyncio.run(timed(answers[: asked.answers], asked.repeats))
    base = np.array(spent["numpy"])
    for name, values in spent.items():
        mine = np.array(values)
        middle, most = np.percentile(mine, [50, 99])
        print(f"{name}: mean {mine.mean():.2f} ms, median {middle:.2f}, 99% {most:.2f}, "
              f"worst {mine.max():.2f}; {mine.mean() / base.mean():.3f} of numpy")  # fmt: skip
    mine = np.array(spent["staged"])
    print(
        f"RESULT answers={len(mine)} mean_ms={mine.mean():.2f} worst_ms={mine.max():.2f} "
        f"of_numpy={mine.mean() / base.mean():.3f}"
    )


if __name__ == "__main__":
    main()
