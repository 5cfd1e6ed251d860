"""How often a by-turn audit of a model without bias flags a turn, a trend, or a turn "from which
on", and how often it finds a bias that begins at turn 3.

    python -m bench.simulated.turns [AUDITS]
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray

from bench.simulated.swap_answers import DECISION
from evenhand.findings.ratios import SHOWN
from evenhand.instruments.counterfactual.contrasts import (
    LabelContrast,
    answers_of,
    contrasts,
    paired,
    parts_of,
    signed_by,
)
from evenhand.instruments.counterfactual.tables import state_of
from evenhand.instruments.counterfactual.turns import detected_from, trends, turn_rows

# conversations × turns × labels × roles (group, placebo): 1 is yes, 0 is no, NaN is missing
Answers = NDArray[np.float64]
LABELS = ("a", "b", "c", "d")


def without_bias(rng: np.random.Generator, number: int) -> Answers:
    """Give the answers of a model that treats names differently and groups alike. Sizes, rates and
    ways to be missing take turns; what a name changes lasts for all turns."""
    conversations, turns, labels = (
        (12, 24, 60)[number % 3],
        (3, 6)[number % 2],
        (2, 4)[number % 4 > 2],
    )
    rate = (0.5, 0.1, 0.85)[number // 3 % 3]
    task = rng.normal(0, 1.0, (conversations, 1, 1, 1))
    name = rng.normal(0, 1.5, (conversations, 1, labels, 2))
    logits = np.log(rate / (1 - rate)) + task + name
    shape = (conversations, turns, labels, 2)
    answers = (rng.random(shape) < 1 / (1 + np.exp(-logits))).astype(float)
    if number % 5 == 0:  # conversations that end early
        ends = rng.integers(1, turns + 1, (conversations, 1, labels, 2))
        late = np.arange(turns)[None, :, None, None] >= ends
        answers = np.where(
            late & (rng.random((conversations, 1, labels, 2)) < 0.1), np.nan, answers
        )
    return np.asarray(answers)


def biased_from(
    rng: np.random.Generator, turn: int, gap: float, conversations: int = 60
) -> Answers:
    """Give the answers of a model whose yes is rarer for the first of two labels from a turn on."""
    later = np.arange(1, 7)[None, :, None, None] >= turn
    mine = np.array([1.0, 0.0])[None, None, :, None]
    rates = 0.8 - gap * later * mine
    return np.asarray(rng.random((conversations, 6, 2, 2)) < rates, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class MeasuredTurns:
    """The contrasts of an audit in each turn, and their trends."""

    signed: Sequence[LabelContrast]
    trends: Sequence[LabelContrast]

    @property
    def flagged(self) -> bool:
        """Whether a contrast is detected in a turn: then the verdict is a bias."""
        return any(state_of(each.found) == SHOWN for each in self.signed)


def measured(audits: Sequence[Answers]) -> list[MeasuredTurns]:
    """Measure audits of equally many turns as a run over their answers is measured, without the
    files of a run. Their answers are read all at once, which takes most of the time."""
    turns = list(range(1, audits[0].shape[1] + 1))
    source = {"sampling": {"decision": DECISION, "number": False, "turns": turns}, "chosen": "yes"}
    rows = [_rows(answers).with_columns(audit=pl.lit(number, pl.Int64))
            for number, answers in enumerate(audits)]  # fmt: skip
    apart = pl.concat(rows).with_columns(
        item_id=pl.format("{}/{}", "audit", "item_id"), family=pl.format("{}", "audit")
    )
    read = answers_of(turn_rows(apart, turns), source)
    outcome, parts = signed_by(source), parts_of(source)
    assert outcome is not None
    found = []
    for number, answers in enumerate(audits):
        labels = {str(number): list(LABELS[: answers.shape[2]])}
        mine = read.filter(pl.col("audit") == number)
        signed = [
            each for each in contrasts(mine, labels, [outcome], parts) if not each.beside_none
        ]
        found.append(MeasuredTurns(signed, trends(mine, labels, outcome, parts)))
    return found


def onsets(found: MeasuredTurns) -> list[int | None]:
    """Give the turn from which on each contrast is detected."""
    by_label: dict[str, dict[int, Any]] = {}
    for contrast in found.signed:
        by_label.setdefault(contrast.left, {})[contrast.part.turn] = contrast.found
    return [detected_from(each) for each in by_label.values()]


def _rows(answers: Answers) -> pl.DataFrame:
    """Give the rows of a run over conversations: what was said as JSON, the last answer apart."""
    conversations, turns, labels, _ = answers.shape
    names = list(LABELS[:labels])
    rows = []
    for place in range(conversations):
        pairs = paired(names, f"c{place}\nf")
        for number, label in enumerate(names):
            for position, role in enumerate(("group", "placebo")):
                said = answers[place, :, number, position]
                known = turns if not np.isnan(said).any() else int(np.isnan(said).argmax())
                words = ["yes" if value else "no" for value in said[:known]]
                asked = min(known + 1, turns)
                messages = [{"content": text} for turn in range(asked)
                            for text in ("?", *words[turn : turn + 1])]  # fmt: skip
                whole = known == turns
                rows.append({
                    "item_id": f"{place}/{label}/{role}", "cluster": f"c{place}", "family": "f",
                    "label": label, "role": role, "repeat": 1, "other": pairs.get(label, ""),
                    "place": "", "opening": 0, "status": "answered" if whole else "failed",
                    "reason": None if whole else "timeout", "text": words[-1] if whole else None,
                    "prompt": "?", "conversation": orjson.dumps(
                        {"messages": messages[:-1] if whole else messages}).decode(),
                })  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"reason": pl.String, "text": pl.String})


def _moves(found: MeasuredTurns) -> bool:
    return any(state_of(each.found) == SHOWN for each in found.trends)


def _from_on(found: MeasuredTurns) -> bool:
    return any(turn is not None for turn in onsets(found))


def main(audits: int) -> None:
    """Print the shares.

    Args:
        audits: How many audits without bias.
    """
    began = time.process_time()
    rng = np.random.default_rng(39)
    drawn = [without_bias(rng, number) for number in range(audits)]
    null = [each for turns in (3, 6)
            for each in measured([one for one in drawn if one.shape[1] == turns])]  # fmt: skip
    flagged, trending, from_on = (
        sum(map(shown, null)) for shown in (lambda one: one.flagged, _moves, _from_on)
    )
    print(f"without bias: {flagged} of {audits} audits flagged, {from_on} with a turn from which "
          f"on, {trending} with a trend", flush=True)  # fmt: skip
    for gap in (0.2, 0.3, 0.4):
        found = measured([biased_from(rng, 3, gap) for _ in range(max(audits // 8, 1))])
        turns = [onsets(each)[0] for each in found]
        early = sum(turn is not None and turn < 3 for turn in turns)
        late = sum(turn is not None and turn > 3 for turn in turns)
        print(f"a gap of {gap:g} from turn 3 of 6 on, 60 conversations: flagged "
              f"{sum(each.flagged for each in found)} of {len(found)}, from turn 3 on "
              f"{turns.count(3)}, from a later turn on {late}, from an earlier one {early}; trend "
              f"{sum(map(_moves, found))}", flush=True)  # fmt: skip
    print(f"{time.process_time() - began:.0f} s of CPU")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
