"""Judgements as items: a task, its labelled response or two, and tags that say what was shown. The
results of a run become one row per judgement, which needs the run folder alone."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import polars as pl

from evenhand.agents.prompts import Prompt, load
from evenhand.core import Item
from evenhand.instruments.judge.data import MalibuData, Scenario, card
from evenhand.instruments.judge.design import JudgeDesign, Judgement, judgements
from evenhand.instruments.judge.labels import JudgeLabels
from evenhand.statistics.metrics.malibu import METRICS

ONE, TWO = _PROMPTS = ("one_candidate", "two_candidates")
# Only of one phase. The words are those that stand in the prompt, so that they can be masked or
# exchanged; `family_words` are those of the family's other labels, split at "|".
_SINGLE = ("text", "label", "label_words", "family_words")
_PAIR = ("first", "second", "first_text", "second_text", "order", "first_words", "second_words")


def prompt(name: str) -> Prompt:
    return load(f"malibu/{name}")


class MalibuSource:
    """A design over scenarios as a source of items, one for each judgement.

    Every item has the same tags, empty where they do not apply. They hold all that the statistics
    need, so a run folder can be read without the data.
    """

    def __init__(
        self, scenarios: Sequence[Scenario], labels: JudgeLabels, design: JudgeDesign
    ) -> None:
        self._labels = labels
        self._design = design
        self._asked = judgements(scenarios, labels, design)

    def fingerprint(self) -> dict[str, Any]:
        keys = "".join(f"{item.id}\n{item.prompt}\n" for item in self.read(0, len(self)))
        return {
            "kind": "benchmark",
            "benchmark": "judge",
            "version": card()["version"],
            "language": self._labels.language,
            "prompt": {prompt(name).label: prompt(name).sha256 for name in _PROMPTS},
            "sampling": self._design.describe(),
            "own": self._own(),
            "items": len(self),
            "sha256": _sha256(keys.encode()),
        }

    def _own(self) -> dict[str, Any]:
        """What is asked and is not ours: a checksum of the scenarios if one of them differs from
        the one that evenhand ships, and of each label that is said in other words."""
        data = MalibuData()
        ours = {scenario.id: scenario for scenario in data.scenarios()}
        scenarios = {judgement.scenario.id: judgement.scenario for judgement in self._asked}
        label_words = {
            name: self._labels.said(name) for judgement in self._asked for name in judgement.labels
        }
        usual = data.labels().all_said()
        return {
            "scenarios": None
            if scenarios.items() <= ours.items()
            else _sha256(_as_json(scenarios)),
            "labels": {
                name: _sha256(words.encode())
                for name, words in label_words.items()
                if usual.get(name) != words
            },
        }

    def scenarios(self) -> list[str]:
        """The ids of the scenarios that are asked about, each once, in the order of the design."""
        return list(dict.fromkeys(judgement.scenario.id for judgement in self._asked))

    def __len__(self) -> int:
        return len(self._asked)

    def chunks(self) -> list[tuple[int, int]]:
        return [(0, len(self))]

    def read(self, start: int, stop: int) -> Iterator[Item]:
        for judgement in self._asked[start:stop]:
            yield self._pair(judgement) if judgement.order else self._single(judgement)

    def _single(self, judgement: Judgement) -> Item:
        (label,), (text,) = judgement.labels, judgement.texts
        tags = {
            "phase": "single",
            "text": str(text),
            "label": label,
            "label_words": self._labels.author(label),
            "family_words": "|".join(self._labels.others(label)),
        }
        (message,) = prompt(ONE).render(
            {
                "task": judgement.scenario.task,
                "said": self._labels.said(label),
                "response": judgement.scenario.responses[text],
            }
        )
        return _item(judgement, message.content, tags)

    def _pair(self, judgement: Judgement) -> Item:
        (first, second), (first_text, second_text) = judgement.labels, judgement.texts
        tags = {
            "phase": "pair",
            "first": first,
            "second": second,
            "first_text": str(first_text),
            "second_text": str(second_text),
            "order": judgement.order,
            "first_words": self._labels.author(first),
            "second_words": self._labels.author(second),
        }
        (message,) = prompt(TWO).render(
            {
                "task": judgement.scenario.task,
                "said_first": self._labels.said(first),
                "first": judgement.scenario.responses[first_text],
                "said_second": self._labels.said(second),
                "second": judgement.scenario.responses[second_text],
            }
        )
        return _item(judgement, message.content, tags)


def _item(judgement: Judgement, content: str, phase_tags: dict[str, str]) -> Item:
    slots = ",".join(
        f"{label}={text}" for label, text in zip(judgement.labels, judgement.texts, strict=True)
    )
    tags = {
        "base": judgement.scenario.base,
        "scenario": judgement.scenario.id,
        "family": judgement.family,
        "repeat": str(judgement.repeat),
        **dict.fromkeys((*_SINGLE, *_PAIR), ""),
        **phase_tags,
    }
    return Item(id=f"{judgement.scenario.id}:{slots}:{judgement.repeat}", prompt=content, tags=tags)


def _as_json(scenarios: dict[str, Scenario]) -> bytes:
    return orjson.dumps(scenarios, option=orjson.OPT_SORT_KEYS)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# -- what came back --------------------------------------------------------------------------------

# What every judgement says of itself; "" where it does not apply.
TAGS = (
    *("phase", "base", "scenario", "family", "repeat", "text", "label"),
    *("first", "second", "first_text", "second_text", "order", "check", "probe", "human"),
)


def scores_of(metrics: Sequence[str]) -> tuple[str, ...]:
    """The names of all scores that a judge asked for these metrics gives."""
    in_pairs = (f"{slot}_{metric}" for slot in ("first", "second") for metric in metrics)
    return (*metrics, *in_pairs, "preferred", "preferred_by_other")


def judgements_of(rows: pl.DataFrame, metrics: Sequence[str] = METRICS) -> pl.DataFrame:
    """Return one row per judgement: item_id, position, reason, the tags (null where they do not
    apply) and the judge's scores (null where there is none).

    Args:
        rows: Results with their tags as columns.
        metrics: What the judge was asked to mark.
    """
    tags = [pl.col(name).replace("", None) for name in TAGS]
    scores = {name: _score(name) for name in scores_of(metrics)}
    return rows.select("item_id", "position", "reason", *tags, **scores)


def _score(name: str) -> pl.Expr:
    mine = pl.element().filter(pl.element().struct.field("name") == name).struct[1]
    return pl.col("scores_after").list.eval(mine).list.first()
