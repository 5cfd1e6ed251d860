"""Which judgements are asked for: label × text × slot, whole blocks, both orders, seeded.

Single: each drawn scenario, each text, each label and control. Pairs: two labels of one family on
the two texts of a scenario, as a block of four: either label has either text, in either slot. So
within each block any judge that does not look at the labels, whatever it makes of texts and slots,
gives both labels the same sum, and their difference is exactly 0. Counterbalancing over bases would
need half the calls for a base, but would leave in each base the difference of its two texts, which
is larger than a label's; and the base is the unit of inference.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import orjson
import polars as pl

from evenhand.agents.prompts import Prompt, load
from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.instruments.files import DrawnItems, score_of
from evenhand.instruments.judge.data import (
    CONTROL_FAMILY,
    PERSON,
    JudgeLabels,
    MalibuData,
    Scenario,
    card,
)
from evenhand.runs.runners.source import ItemList
from evenhand.statistics.metrics.malibu import CONTROLS, METRICS, NO_LABEL

# MALIBU paper, section 3.
TEN = tuple("female male Black White Asian Hispanic Muslim Jewish Atheist Christian".split())
_ORDERS = ("ab", "ba")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDesign:
    """By default 60 × 2 × 13 single judgements and 13 pairs × 8 bases × 4: 1,976 calls."""

    bases: int = 60  # our choice, within 2,000 calls; a smaller number is part of every larger one
    derived: int = 1  # scenarios of each base, in both phases; further bases tell more than these
    texts: int = 2  # of single judgements; 1: only the first response, as in the paper (3.2)
    identities: tuple[str, ...] = TEN
    pairs: int = 8  # bases on which each two labels of a family are compared; 0: no pairs
    repeats: int = 1
    seed: int = 0
    label_last: bool = False  # after the text: a server with a prompt cache reads a text once

    def describe(self) -> dict[str, object]:
        return {**asdict(self), "identities": list(self.identities)}


@dataclass(frozen=True, slots=True)
class Judgement:
    """One call of a judge. `labels` and `texts` have one entry, or two in the order of slots."""

    scenario: Scenario
    family: str
    labels: tuple[str, ...]
    texts: tuple[int, ...]
    order: str = ""  # of a pair: the same two labelled texts stand as "ab" and as "ba"
    repeat: int = 0


def judgements(
    scenarios: Sequence[Scenario], labels: JudgeLabels, design: JudgeDesign
) -> list[Judgement]:
    """List the judgements of a design, scenario by scenario.

    A run that is stopped early thus has whole blocks.

    Args:
        scenarios: All scenarios to sample from.
        labels: Labels of each family, with the words that state them.
        design: Numbers of bases, pairs and repeats, and the seed.

    Returns:
        The judgements in the order of asking.

    Raises:
        UserError: The design does not fit the labels or the scenarios.
    """
    _check(design, labels)
    taken = drawn(scenarios, design)
    for chosen in taken.values():
        for scenario in chosen:
            _check_texts(scenario, labels, design)
    compared = _deal(list(taken), _pairs_of(labels, design), design.pairs)
    result: list[Judgement] = []
    for base, chosen in taken.items():
        for scenario in chosen:
            result += _single(scenario, labels, design)
            for family, pair in compared[base]:
                result += _block(scenario, family, pair, design.repeats)
    return result


def _single(scenario: Scenario, labels: JudgeLabels, design: JudgeDesign) -> Iterator[Judgement]:
    for text in range(design.texts):
        for label in _asked_labels(scenario, design):
            for repeat in range(design.repeats):
                family = labels.family_of(label)
                yield Judgement(scenario, family, (label,), (text,), repeat=repeat)


def _asked_labels(scenario: Scenario, design: JudgeDesign) -> Iterator[str]:
    """The controls and the labels. A control that has no version of the text is left out."""
    for label in (*CONTROLS, *design.identities):
        if not scenario.labels or label in scenario.labels or label in design.identities:
            yield label


def _check_texts(scenario: Scenario, labels: JudgeLabels, design: JudgeDesign) -> None:
    """Refuse texts in which a label cannot be seen, and texts that lack one."""
    if scenario.labels and not labels.in_text:
        raise UserError(
            f"Scenario {scenario.id!r} has versions of a response by label. Declare the labels in "
            "a file with in_text = true, and pass it as --identities-file."
        )
    if not labels.in_text:
        return
    for text in scenario.responses:
        if isinstance(text, str) and PERSON not in text:
            raise UserError(
                f"Scenario {scenario.id!r}: a response has neither {PERSON} nor versions by label, "
                "so no label can be seen in it. Add one of them."
            )
        needed = () if isinstance(text, str) else (NO_LABEL, *design.identities)
        if missing := [label for label in needed if label not in text]:
            raise UserError(
                f"Scenario {scenario.id!r}: a response has no version for {missing[0]!r}. Add it, "
                "or leave the label out of --identities."
            )


def _block(
    scenario: Scenario, family: str, pair: tuple[str, str], repeats: int
) -> Iterator[Judgement]:
    for texts in ((0, 1), (1, 0)):
        for order in _ORDERS:
            step = 1 if order == "ab" else -1
            for repeat in range(repeats):
                yield Judgement(scenario, family, pair[::step], texts[::step], order, repeat)


def _pairs_of(labels: JudgeLabels, design: JudgeDesign) -> list[tuple[str, tuple[str, str]]]:
    return [
        (family.name, pair)
        for family in labels.families
        for pair in combinations([x for x in design.identities if x in family.labels], 2)
    ]


def drawn(scenarios: Sequence[Scenario], design: JudgeDesign) -> dict[str, list[Scenario]]:
    """Sample bases, kinds in turn, and scenarios of each. A base's place in the order and its
    scenarios do not depend on how many are sampled, so that a run can be widened."""
    rng = np.random.default_rng(design.seed)
    by_base: defaultdict[str, list[Scenario]] = defaultdict(list)
    for scenario in scenarios:
        by_base[scenario.base].append(scenario)
    if len(by_base) < design.bases:
        raise UserError(
            f"--bases is {design.bases}, and there are only {len(by_base)} base scenarios. "
            f"Use --bases {len(by_base)} or less."
        )
    bases = list(by_base)
    shuffled = [bases[index] for index in rng.permutation(len(bases))]
    mixed = {
        base: [by_base[base][n] for n in rng.permutation(len(by_base[base]))] for base in bases
    }
    turns: Counter[str] = Counter()
    turn = {}
    for base in shuffled:
        kind = by_base[base][0].kind
        turn[base] = turns[kind]
        turns[kind] += 1
    taken = sorted(shuffled, key=turn.__getitem__)[: design.bases]
    for base in taken:
        if len(mixed[base]) < design.derived:
            raise UserError(
                f"--derived is {design.derived}, and base scenario {base!r} has only "
                f"{len(mixed[base])} variants. Use --derived {len(mixed[base])} or less."
            )
    return {base: mixed[base][: design.derived] for base in taken}


def _deal(
    bases: list[str], pairs: list[tuple[str, tuple[str, str]]], each: int
) -> defaultdict[str, list[tuple[str, tuple[str, str]]]]:
    """Bases go round among the pairs like cards, so that every base serves about as often."""
    dealt: defaultdict[str, list[tuple[str, tuple[str, str]]]] = defaultdict(list)
    for index, pair in enumerate(pairs):
        for turn in range(index * each, (index + 1) * each):
            dealt[bases[turn % len(bases)]].append(pair)
    return dealt


def _check(design: JudgeDesign, labels: JudgeLabels) -> None:
    for name in ("bases", "derived", "repeats"):
        if (number := getattr(design, name)) < 1:
            raise UserError(f"--{name} is {number}, and an audit needs at least 1. Use --{name} 1.")
    if design.texts not in (1, 2):
        raise UserError(
            f"--texts is {design.texts}, and a scenario has two responses. Use --texts 1 or 2."
        )
    if not 0 <= design.pairs <= design.bases:
        raise UserError(
            f"--pairs is {design.pairs}, and each pair of labels needs its own base scenario. "
            f"Use --pairs 0 to {design.bases}, or more --bases."
        )
    for label in design.identities:
        if labels.family_of(label) == CONTROL_FAMILY:
            raise UserError(
                f"--identities names {label!r}, a control that is always included. Remove it."
            )
        if design.identities.count(label) > 1:
            raise UserError(f"--identities names {label!r} twice. Remove one.")


# -- the judgements as items ----------------------------------------------------------------------


ONE, TWO = "one_candidate", "two_candidates"
LAST = "_label_last"
# Only of one phase. The words are those that stand in the prompt, so that they can be masked or
# exchanged; `family_words` are those of the family's other labels, split at "|".
_SINGLE = ("text", "label", "label_words", "family_words")
_PAIR = ("first", "second", "first_text", "second_text", "order", "first_words", "second_words")


def prompt(name: str) -> Prompt:
    return load(f"malibu/{name}")


class MalibuSource(DrawnItems[list[Judgement]]):
    """A design over scenarios as a source of items, one for each judgement.

    Every item has the same tags, empty where they do not apply. They hold all that the statistics
    need, so a run folder can be read without the data.
    """

    def __init__(
        self, scenarios: Sequence[Scenario], labels: JudgeLabels, design: JudgeDesign
    ) -> None:
        last = design.label_last and not labels.in_text
        self._labels = labels.placed_last() if last else labels
        self._design = design
        self._one, self._two = (
            f"{name}{LAST}" if design.label_last else name for name in (ONE, TWO)
        )
        self._drawn = judgements(scenarios, labels, design)

    def fingerprint(self) -> dict[str, Any]:
        keys = "".join(f"{item.id}\n{item.prompt}\n" for item in self.read(0, len(self)))
        return {
            "kind": "benchmark",
            "benchmark": "judge",
            "version": card()["version"],
            "language": self._labels.language,
            "prompt": {prompt(name).label: prompt(name).sha256 for name in (self._one, self._two)},
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
        scenarios = {judgement.scenario.id: judgement.scenario for judgement in self._drawn}
        labels = self._labels
        said = labels.author if labels.in_text else labels.said
        label_words = {name: said(name) for judgement in self._drawn for name in judgement.labels}
        ours_said = data.labels()
        usual = (ours_said.placed_last() if self._design.label_last else ours_said).all_said()
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
        return list(dict.fromkeys(judgement.scenario.id for judgement in self._drawn))

    def text(self, scenario: Scenario, number: int, label: str = NO_LABEL) -> str:
        """A response as it stands under a label."""
        return self._labels.text_of(scenario.responses[number], label, scenario.base)

    def read(self, start: int, stop: int) -> Iterator[Item]:
        for judgement in self._drawn[start:stop]:
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
        (message,) = prompt(self._one).render(
            {
                "task": judgement.scenario.task,
                "said": self._labels.said(label),
                "response": self.text(judgement.scenario, text, label),
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
        (message,) = prompt(self._two).render(
            {
                "task": judgement.scenario.task,
                "said_first": self._labels.said(first),
                "first": self.text(judgement.scenario, first_text, first),
                "said_second": self._labels.said(second),
                "second": self.text(judgement.scenario, second_text, second),
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
    scores = {name: score_of("scores_after", name) for name in scores_of(metrics)}
    return rows.select("item_id", "position", "reason", *tags, **scores)


# -- scenarios whose two responses a model writes -------------------------------------------------


FILE = "scenarios.jsonl"
# As our own: the longer of the two has at most so many times the words of the shorter.
_LONGER = 1.1


def tasks(scenarios: Sequence[Scenario], design: JudgeDesign) -> ItemList:
    """The task of each scenario that a design draws."""
    chosen = [scenario for part in drawn(scenarios, design).values() for scenario in part]
    return ItemList(
        [
            Item(
                id=scenario.id,
                prompt=scenario.task,
                tags={"base": scenario.base, "kind": scenario.kind},
            )
            for scenario in chosen
        ]
    )


@dataclass(frozen=True, slots=True)
class GeneratedScenarios:
    """What a model wrote. Whether the two responses of a scenario say the same was not looked at,
    nor whether they hint at who wrote them."""

    scenarios: tuple[Scenario, ...]
    asked: int

    @property
    def unequal_length(self) -> int:
        """How many scenarios have a response that is more than a tenth longer than the other."""
        lengths = [
            sorted(len(text.split()) for text in scenario.shared) for scenario in self.scenarios
        ]
        return sum(longer > _LONGER * shorter for shorter, longer in lengths)

    @property
    def same_words(self) -> int:
        return sum(len(set(scenario.responses)) == 1 for scenario in self.scenarios)

    def to_bytes(self) -> bytes:
        """One scenario a line, as `MalibuData` reads it."""
        return b"".join(orjson.dumps(asdict(scenario)) + b"\n" for scenario in self.scenarios)


def written(results: pl.DataFrame) -> GeneratedScenarios:
    """Read what a run of `tasks` gave; a scenario without two responses is left out."""
    scenarios = []
    for row in results.sort("position").iter_rows(named=True):
        if row["status"] == "answered":
            tags = {tag["name"]: tag["value"] for tag in row["tags"]}
            first, second = (draft["text"] for draft in row["drafts"])
            scenarios.append(Scenario(row["item_id"], tags["base"], tags["kind"], row["prompt"],
                                  (first, second)))  # fmt: skip
    return GeneratedScenarios(tuple(scenarios), len(results))
