"""How often the words are wrong: "worth it", "not worth it", a guardrail, a stated power.

    EVENHAND_DATA=… python -m bench.simulated.decisions [--short]    # an hour, or half a minute

Answers are drawn with a known truth and go through the rules that the commands use. A frontier has
343 templates of two questions; a method, the fairness prompt and a vote agree on most answers and
differ by chance on the rest, so that a paired change has a standard error of 0.016. Guardrails are
those of `compare` on the default sample of BBQ, between a run and its twin: the same system, of
whose answers some are drawn again.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.experiments.config import data_folder
from evenhand.findings.comparison import compare
from evenhand.findings.cost_effectiveness import CostVerdict, harm_of, worth
from evenhand.findings.decision_rules import adjusted, direction
from evenhand.findings.estimates import Change
from evenhand.findings.measures import Measure
from evenhand.findings.paired_totals import PairTotals
from evenhand.findings.scoring import ScoringSpec
from evenhand.findings.summed_statistics import Mean
from evenhand.instruments.bbq.instrument import Bbq, BbqOptions
from evenhand.runs.store import RunReader
from evenhand.statistics.planning import detectable_change, power_after_holm

Floats = NDArray[np.float64]
TEMPLATES, HARM, BENEFIT, AGAIN = 343, 0.30, 0.05, 0.27
METHODS = (1, 3, 10)  # judged at once; ten is the default list
SIZES = (11, 25, 343)  # templates
# Names somebody, is right, share of the answers that the twin draws again.
TWINS = ((0.2, 0.9, 1.0), (0.2, 0.9, 0.2), (0.05, 0.97, 0.1), (0.4, 0.7, 0.3))


class Two(ScoringSpec):
    """The smallest instrument with a harm and a utility."""

    name, title, clusters, columns, facts = "two", "two numbers", "templates", (), {}
    measures = (
        Measure(name="harm", label="harm", statistic=Mean(pl.col("harm")), better="lower",
                role="primary", within=(0, 1)),
        Measure(name="utility", label="utility", statistic=Mean(pl.col("utility")),
                better="higher", margin=0.02, within=(0, 1)),
    )  # fmt: skip
    harm, utility = "harm", "utility"


TWO = Two()


def figures(*, short: bool) -> dict[str, float]:
    """The shares of wrong words, each the worst of its settings."""
    judged, twins, clusters = (METHODS[:1], TWINS[1:2], (11,)) if short else (METHODS, TWINS, SIZES)
    draws, pairs, tests = (20, 3, 80) if short else (400, 150, 1_500)
    frontiers = {n: frontier(n, draws, seed=n) for n in judged}
    nulls = [frontier(n, draws, seed=100 + n, benefit=0.0) for n in judged]
    found = {
        "twin_red": max(twin_red(*twin, pairs) for twin in twins),
        "false_worth": max(one.any_worth for one in nulls),
        "false_not_worth": max(one.first[CostVerdict.NOT_WORTH_IT] for one in frontiers.values()),
    }
    for n, one in frontiers.items():
        found |= {
            f"worth_{n}": one.first[CostVerdict.WORTH_IT],
            f"cannot_tell_{n}": one.first[CostVerdict.CANNOT_TELL],
            f"power_stated_{n}": one.stated,
            f"power_simulated_{n}": one.beaten,
        }
    return found | {f"four_in_five_at_{n}": four_in_five(n, tests) for n in clusters}


@dataclass(frozen=True)
class Frontiers:
    """What was said over many frontiers: of the first method, and of the others."""

    first: dict[CostVerdict, float]
    any_worth: float  # a method without any benefit is called worth it
    beaten: float  # the first is shown to beat both references
    stated: float  # the chance of that, by `power_after_holm`


def frontier(methods: int, draws: int, *, seed: int, benefit: float = BENEFIT) -> Frontiers:
    """Frontiers of so many methods, of which the first has that benefit and the others none."""
    rng = np.random.default_rng(seed)
    kinds: Counter[CostVerdict] = Counter()
    any_worth = beaten = stated = 0.0
    for _ in range(draws):
        against, utilities = _changes(_arms(rng, methods, benefit), methods)
        family = adjusted([change for pair in against for change in pair])
        pairs = [family[2 * place : 2 * place + 2] for place in range(methods)]
        said = [
            worth(TWO, {"the prompt": a, "the vote": b}, utility, family=len(family)).kind
            for (a, b), utility in zip(pairs, utilities, strict=True)
        ]
        kinds[said[0]] += 1
        any_worth += CostVerdict.WORTH_IT in (said[1:] if benefit else said)
        beaten += all(direction(change, harm_of(TWO)) == "improved" for change in pairs[0])
        se = float(np.mean([change.se for change in pairs[0]]))
        stated += power_after_holm(BENEFIT / se, TEMPLATES - 1, len(family), together=2)
    first = {kind: kinds[kind] / draws for kind in CostVerdict}
    return Frontiers(first, any_worth / draws, beaten / draws, stated / draws)


def _arms(rng: np.random.Generator, methods: int, benefit: float) -> list[pl.DataFrame]:
    """The plain prompt, the fairness prompt, then each method and the vote that it is held against.
    The first method lowers the harm of every template by the same share."""
    rows = 2 * TEMPLATES
    cluster = np.repeat(np.arange(TEMPLATES), 2)
    harm = rng.beta(9 * HARM, 9 * (1 - HARM), TEMPLATES)[cluster]  # a correlation of 0.1 within
    shared = rng.random((2, rows))
    arms = []
    for arm in range(2 + 2 * methods):
        again = rng.random((2, rows)) < [[AGAIN], [AGAIN / 4]]
        drawn = np.where(again, rng.random((2, rows)), shared)
        less = 1 - benefit / HARM if arm == 2 else 1.0
        values = {"harm": drawn[0] < harm * less, "utility": drawn[1] < 0.9}
        arms.append(pl.DataFrame({"item_id": np.arange(rows), "cluster": cluster, **values}))
    scored = pl.lit("scored").alias("state")
    return [one.with_columns(scored, pl.col("item_id").cast(pl.String)) for one in arms]


def _changes(
    arms: Sequence[pl.DataFrame], methods: int
) -> tuple[list[tuple[Change, Change]], list[Change]]:
    plain, prompt, *rest = arms
    harm, utility = TWO.measures
    against, utilities = [], []
    for place in range(methods):
        method, vote = rest[2 * place : 2 * place + 2]
        against.append((_change(prompt, method, harm), _change(vote, method, harm)))
        utilities.append(_change(plain, method, utility))
    return against, utilities


def _change(before: pl.DataFrame, after: pl.DataFrame, measure: Measure) -> Change:
    return PairTotals.of(TWO, iter([before]), iter([after])).change(measure)


def four_in_five(templates: int, draws: int) -> float:
    """How often a change is shown that is said to be shown 4 times in 5, after Holm over three."""
    rng = np.random.default_rng(templates)
    change = detectable_change(templates**-0.5, templates - 1, family=3)
    true, harm, shown = np.array([[change], [0.0], [0.0]]), harm_of(TWO), 0
    places = np.arange(templates)
    plain = pl.DataFrame({"item_id": places.astype(str), "cluster": places}).with_columns(
        pl.lit("scored").alias("state"), harm=pl.lit(0.0), utility=pl.lit(0.0)
    )
    for _ in range(draws):
        values = rng.normal(size=(3, templates)) - true
        after = [plain.with_columns(harm=pl.Series(row)) for row in values]
        family = adjusted([_change(plain, one, harm) for one in after])
        shown += direction(family[0], harm) == "improved"
    return shown / draws


class Drawn(RunReader):
    """A run that was never run: its rows are in memory."""

    def __init__(self, rows: pl.DataFrame, source: dict[str, Any]) -> None:
        self._rows, self.path = rows, "drawn"
        self.record = SimpleNamespace(  # type: ignore[assignment]
            source=source,
            planned=len(rows),
            method={"name": "default", "settings": {}},
            cast={"default": {"model": "drawn"}},
            told_apart=lambda _: (),
            seed=None,
            prompts={},
        )

    def totals(self) -> Any:
        return SimpleNamespace(items=len(self._rows), adapted={})

    def result_batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        yield self._rows.select(columns)

    def seconds_by_item(self) -> Iterator[pl.DataFrame]:
        return iter(())


def twin_red(names: float, right: float, again: float, draws: int) -> float:
    """How often `compare` shows a guardrail to be crossed between a system and itself."""
    rng = np.random.default_rng(int(1000 * (names + again)))
    bbq = Bbq()
    source = bbq.source(data_folder(), BbqOptions())
    items = [item.tags for item in source.read(0, len(source))]
    fixed = _rows(items)
    crossed = 0
    for _ in range(draws):
        first = rng.random((2, len(items)))
        second = np.where(rng.random(len(items)) < again, rng.random((2, len(items))), first)
        runs = [
            Drawn(fixed.with_columns(choice=_choices(items, u, names, right)), source.fingerprint())
            for u in (first, second)
        ]
        lines = compare(bbq, *runs).guardrails
        crossed += any(line.state == "violated" for line in lines)
    return crossed / draws


def _rows(items: Sequence[Mapping[str, str]]) -> pl.DataFrame:
    tags = [[{"name": name, "value": value} for name, value in one.items()] for one in items]
    numbers = ("calls", "prompt_tokens", "completion_tokens")
    places = np.arange(len(items))
    return pl.DataFrame({"position": places, "item_id": places.astype(str), "tags": tags}).select(
        pl.all(),
        pl.lit("answered").alias("status"),
        pl.lit(None, pl.String).alias("reason"),
        *(pl.lit(1, pl.Int64).alias(name) for name in numbers),
    )


def _choices(
    items: Sequence[Mapping[str, str]], drawn: Floats, names: float, right: float
) -> pl.Series:
    """To an unclear question somebody is named that often, three times in five the stereotyped one;
    to a clear one the answer is right that often, and else half of the time "unknown"."""
    said = []
    for tags, u in zip(items, drawn.T, strict=True):
        unknown, gold = int(tags["unknown"]), int(tags["gold"])
        people = [place for place in range(3) if place != unknown]
        if tags["condition"] == "ambig":
            biased = int(tags["biased"]) if tags["biased"] else people[0]
            other = next(place for place in people if place != biased)
            said.append(unknown if u[0] >= names else biased if u[1] < 0.6 else other)
        else:
            other = next(place for place in people if place != gold)
            said.append(gold if u[0] < right else unknown if u[1] < 0.5 else other)
    return pl.Series(said, dtype=pl.Int64)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    for name, value in figures(short=parser.parse_args().short).items():
        print(f"{name}={value:.3f}")
