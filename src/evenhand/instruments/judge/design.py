"""Which judgements are asked for: label × text × slot, whole blocks, both orders, seeded.

Single: each drawn scenario, each text, each label and control. Pairs: two labels of one family on
the two texts of a scenario, as a block of four: either label has either text, in either slot. So
within each block any judge that does not look at the labels, whatever it makes of texts and slots,
gives both labels the same sum, and their difference is exactly 0. Counterbalancing over bases would
need half the calls for a base, but would leave in each base the difference of its two texts, which
is larger than a label's; and the base is the unit of inference.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evenhand.core.errors import UserError
from evenhand.instruments.judge.data import Scenario
from evenhand.instruments.judge.labels import CONTROL_FAMILY, JudgeLabels
from evenhand.statistics.metrics.malibu import CONTROLS

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

    def describe(self) -> dict[str, object]:
        return {
            "bases": self.bases,
            "derived": self.derived,
            "texts": self.texts,
            "identities": list(self.identities),
            "pairs": self.pairs,
            "repeats": self.repeats,
            "seed": self.seed,
        }


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
    """Scenario by scenario, so that what was asked before a stop are whole blocks."""
    _check(design, labels)
    taken = drawn(scenarios, design)
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
        for label in (*CONTROLS, *design.identities):
            for repeat in range(design.repeats):
                family = labels.family_of(label)
                yield Judgement(scenario, family, (label,), (text,), repeat=repeat)


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
    """So many bases, kinds in turn, and so many scenarios of each. A base's place in the order and
    its scenarios do not depend on how many are drawn, so that a run can be widened."""
    rng = np.random.default_rng(design.seed)
    by_base: defaultdict[str, list[Scenario]] = defaultdict(list)
    for scenario in scenarios:
        by_base[scenario.base].append(scenario)
    if len(by_base) < design.bases:
        raise UserError(
            f"there are {len(by_base)} base scenarios, {design.bases} were asked for; lower bases"
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
                f"{base!r} has {len(mixed[base])} scenarios, {design.derived} were asked for; "
                "lower derived"
            )
    return {base: mixed[base][: design.derived] for base in taken}


def _deal(
    bases: list[str], pairs: list[tuple[str, tuple[str, str]]], each: int
) -> defaultdict[str, list[tuple[str, tuple[str, str]]]]:
    """Bases go round among the pairs like cards, so that every base serves about as often."""
    dealt: defaultdict[str, list[tuple[str, tuple[str, str]]]] = defaultdict(list)
    for index, pair in enumerate(pairs):
        for card in range(index * each, (index + 1) * each):
            dealt[bases[card % len(bases)]].append(pair)
    return dealt


def _check(design: JudgeDesign, labels: JudgeLabels) -> None:
    for name in ("bases", "derived", "repeats"):
        if getattr(design, name) < 1:
            raise UserError(f"{name} must be at least 1")
    if design.texts not in (1, 2):
        raise UserError("texts must be 1 or 2: a scenario has two responses")
    if not 0 <= design.pairs <= design.bases:
        raise UserError(f"pairs must be from 0 to {design.bases}, the number of bases")
    for label in design.identities:
        if labels.family_of(label) == CONTROL_FAMILY:
            raise UserError(f"{label!r} is a control and always asked; leave it out of identities")
        if design.identities.count(label) > 1:
            raise UserError(f"identities name {label!r} twice; leave one out")
