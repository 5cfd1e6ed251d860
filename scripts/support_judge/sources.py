"""What the judge is trained on: contexts of our own, and SQuAD v2 with recorded answers."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

from evenhand.scorers.support.features import SupportClaim
from support_judge.contexts import Example, examples, frames

_MODELS = ("bert_single_google", "bidaf_selfattn_elmo_single", "nlnet_single_msra")


def own(seed: int = 7, many: int = 90) -> list[Example]:
    """The same claims for the same seed."""
    return [e for i, f in enumerate(frames()) for e in examples(f, Random(f"{seed} {i}"), many)]


def squad(folder: Path, every: int) -> list[Example]:
    """People's answers to questions that have one are supported. What models answered and nobody
    agrees with is not, nor is anything that they answered to a question without an answer, nor what
    answers another question about the paragraph."""
    data = _read(folder / "dev-v2.0.from-explorer.json.gz")["data"]
    said = [_read(folder / f"model_predictions/{model}.json.gz") for model in _MODELS]
    return [
        example
        for article in data
        for paragraph in article["paragraphs"]
        for number, question in list(enumerate(paragraph["qas"]))[::every]
        for example in _of(article["title"], paragraph, number, question, said)
    ]


def _of(
    title: str, paragraph: dict, number: int, question: dict, said: list[dict]
) -> Iterator[Example]:
    def claim(answer: str, supported: bool, kind: str) -> Example:
        about = SupportClaim(paragraph["context"], question["question"], answer)
        return Example(about, supported, title, kind)

    people = list(dict.fromkeys(answer["text"] for answer in question["answers"]))
    if people:
        yield claim(people[0], True, "answer")
    words = {word for answer in people for word in _plain(answer)}
    wrong = (one.get(question["id"], "") for one in said)
    for answer in wrong:
        if answer and not words & set(_plain(answer)):
            yield claim(answer, False, "model")
            break  # one each, so that hard questions do not weigh more
    following = paragraph["qas"][number + 1 :] + paragraph["qas"][:number]
    for answer in (other["answers"][0]["text"] for other in following if other["answers"]):
        if not words & set(_plain(answer)):
            yield claim(answer, False, "other question")
            break


def _read(path: Path) -> dict:
    return json.loads(gzip.decompress(path.read_bytes()))


def _plain(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
