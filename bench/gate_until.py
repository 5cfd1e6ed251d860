"""How often a gate that may stop early is wrong, looked at after every block. No endpoint.

    EVENHAND_DATA=… python -m bench.gate_until               # or `make bench-gate-until`
    EVENHAND_DATA=… python -m bench.gate_until --draws 100 --judged 20

Templates are those of BBQ with UnifiedQA's answers, 343 drawn anew with four unclear questions
each. The later run draws a tenth of the answers again, and is worse by a planted amount: 0, the
margin, or twice the margin. Passing a model that is worse by the margin or more is wrong, and so is
failing one that is no worse. First the bets alone, at every look; then the verdicts of the gate's
own code over the same kind of rows, looked at wherever a bet on the change has decided.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bench.cheaper import Templates
from bench.gate import DRAWN, EACH, NAMES, InMemory, answered
from evenhand.findings.gate import GateCheck, Verdict, gate
from evenhand.findings.sequential import SequentialPlan, block_of
from evenhand.statistics._shared import t_quantile
from evenhand.statistics.planning import Rule, shown_at

MARGIN, TEMPLATES, AGAIN = 0.05, 343, 0.10
Floats = NDArray[np.float64]
TOLD: tuple[Verdict, ...] = ("pass", "fail", "inconclusive", "error")
_TEMPLATE = pl.col("item_id").str.split("/").list.first().cast(pl.Int64)


class Early(InMemory):
    """The first templates of a run whose order was drawn: here that of their numbers."""

    def __init__(self, rows: pl.DataFrame, templates: int) -> None:
        super().__init__("after", rows)
        until = SequentialPlan(
            block=10,
            order=tuple(map(str, range(templates))),
            sizes=(EACH,) * templates,
            rows=dict.fromkeys(NAMES, (EACH, EACH * templates)),
        )
        self.record.source.update(until=until.to_dict(), items=EACH * templates)

    def totals(self) -> Any:
        return SimpleNamespace(items=len(self._rows), calls=len(self._rows), adapted={})


@cache
def _empty() -> pl.DataFrame:
    """The rows of a run, but for what was answered."""
    places = np.arange(TEMPLATES * EACH)
    item_id = [f"{place // EACH}/{place}" for place in places]
    return answered(pl.DataFrame({"position": places, "item_id": item_id, "text": "right"}))


def run_of(scores: Floats) -> InMemory:
    """The run with these answers: 1 fits the stereotype, −1 does not, 0 names nobody."""
    choice = np.select([scores == 1, scores == -1], [0, 1], 2).ravel()
    return InMemory("run", _empty().with_columns(choice=pl.Series(choice)))


@dataclass(frozen=True)
class Planted:
    """Pairs of runs of which the later one is worse in one measure, by a known amount."""

    measure: str
    templates: Templates

    def value(self, scores: Floats) -> Floats:
        """What an answer counts in the measure."""
        return (scores != 0).astype(float) if self.measure == "guesses" else scores

    @property
    def mean(self) -> float:
        known = np.arange(self.templates.scores.shape[1]) < self.templates.sizes[:, None]
        sums = np.where(known, self.value(self.templates.scores), 0).sum(axis=1)
        return float((sums / self.templates.sizes).mean())

    def pair(self, rng: np.random.Generator, worse: float) -> tuple[Floats, Floats]:
        """Answers of two runs: so many of the later one's become stereotyped ones that the measure
        rises by `worse` on average."""
        which = rng.integers(len(self.templates.sizes), size=(1, TEMPLATES))
        first, again = (self.templates.answers(which, rng)[0] for _ in range(2))
        second = np.where(rng.random(first.shape) < AGAIN, again, first)
        second[rng.random(first.shape) < worse / (1 - self.mean)] = 1.0
        return first, second


def check_of(name: str) -> GateCheck:
    measure = replace(DRAWN.measure(name), margin=MARGIN)
    return GateCheck(name=name, instrument=DRAWN, measure=measure)


def verdict(check: GateCheck, runs: tuple[InMemory, InMemory]) -> Verdict:
    return gate([check], {check.name: runs}).checks[0].verdict


def sequential(
    check: GateCheck, runs: tuple[InMemory, InMemory], change: Floats
) -> tuple[Verdict, int]:
    """The verdict at the first look that decides, and after how many templates that is."""
    for end in _worth_a_look(check, change):
        rows = runs[1].rows.filter(pl.lit(end) > _TEMPLATE)
        told = verdict(check, (runs[0], Early(rows, TEMPLATES)))
        if told != "inconclusive":
            return told, end
    return "inconclusive", TEMPLATES


def _worth_a_look(check: GateCheck, change: Floats) -> Iterator[int]:
    """The looks at which a bet on the change alone has decided: the gate decides at no other."""
    least, most = check.measure.range
    rule = Rule(margin=MARGIN, ends=(least - most, most - least), block=block_of(TEMPLATES))
    ways = [change] if check.measure.null is None else [change, -change]
    shown = [one[0] for way in ways for one in shown_at(way[None, :], rule)]
    for end in [*range(rule.block, TEMPLATES, rule.block), TEMPLATES]:
        if any(one[end - 1] for one in shown):
            yield end


def peeked(change: Floats) -> tuple[bool, bool]:
    """Whether t, looked at after every block from the second on, would ever have said pass, and
    ever fail: what the intervals of a fixed size must not be used for."""
    ends = np.array([*range(20, TEMPLATES, 10), TEMPLATES])
    mean = np.cumsum(change)[ends - 1] / ends
    se = np.sqrt((np.cumsum(change**2)[ends - 1] / ends - mean**2) / (ends - 1))
    reach = np.array([t_quantile(end - 1, 0.975) for end in ends]) * se
    return bool((mean + reach <= MARGIN).any()), bool((mean - reach > 0).any())


def bets(planted: Planted, check: GateCheck, margins: int, draws: int) -> float:
    """Prints how often the bets on the change alone are ever wrong, at any look: the gate asks for
    more, and so is wrong no more often. Beside it t, looked at as often."""
    rng = np.random.default_rng([1, margins, *check.name.encode()])
    least, most = check.measure.range
    rule = Rule(margin=MARGIN, ends=(least - most, most - least), block=block_of(TEMPLATES))
    wrong, looked = 0, 0
    for _ in range(draws):
        before, after = (planted.value(one).mean(axis=1)
                         for one in planted.pair(rng, margins * MARGIN))  # fmt: skip
        within, worse = shown_at((after - before)[None, :], rule)
        wrong += bool((within if margins else worse).any())
        looked += peeked(after - before)[0 if margins else 1]
    told = "passed" if margins else "failed"
    print(
        f"{check.name} worse by {margins} margins, {draws} draws: wrongly {told} by the bets at "
        f"any look {wrong / draws:.4f}, by t at any look {looked / draws:.4f}",
        flush=True,
    )
    return wrong / draws


def simulated(planted: Planted, check: GateCheck, margins: int, draws: int) -> float:
    """Prints the verdicts of the gate itself, sequential and fixed; gives the share of wrong ones
    of the sequential gate."""
    rng = np.random.default_rng([margins, *check.name.encode()])
    early, fixed, asked = Counter[Verdict](), Counter[Verdict](), 0
    for _ in range(draws):
        answers = planted.pair(rng, margins * MARGIN)
        runs = (run_of(answers[0]), run_of(answers[1]))
        before, after = (planted.value(one).mean(axis=1) for one in answers)
        told, end = sequential(check, runs, after - before)
        early[told] += 1
        asked += end
        fixed[verdict(check, runs)] += 1
    print(
        f"{check.name} worse by {margins} margins, {draws} draws: sequential "
        f"{_said(early, draws)}, {asked / draws / TEMPLATES:.3f} of the templates asked; fixed "
        f"{_said(fixed, draws)}",
        flush=True,
    )
    return early["pass" if margins else "fail"] / draws


def _said(told: Counter[Verdict], draws: int) -> str:
    return " ".join(f"{one} {told[one] / draws:.3f}" for one in TOLD if told[one])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--draws", type=int, default=2_000, help="of the bets at each effect")
    parser.add_argument("--judged", type=int, default=400, help="of the gate itself at each effect")
    names = ("guesses", "lean")
    parser.add_argument("--only", choices=names, action="append", help="one measure; may repeat")
    given = parser.parse_args()
    ever, wrong = list[float](), list[float]()
    for name in given.only or names:
        planted, check = Planted(name, Templates.of_bbq()), check_of(name)
        if check.measure.null is None:  # else the gate bets on the sum of both runs, too
            ever += [bets(planted, check, margins, given.draws) for margins in (0, 1, 2)]
        wrong += [simulated(planted, check, margins, given.judged) for margins in (0, 1, 2)]
    print(f"RESULT bets_wrong={max(ever, default=0.0):.4f} gate_wrong={max(wrong):.4f}")


if __name__ == "__main__":
    main()
