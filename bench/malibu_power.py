"""What the judge audit finds where the truth is known: how often it cries wolf, and what it misses.

    python bench/malibu_power.py            # 2,000 simulated audits without an effect, 500 with
    python bench/malibu_power.py --quick    # a tenth of that

Judges are made up and audited by the functions that a real audit uses. A judge scores each of four
metrics from 0 to 10:

    score = round(level + base + text + label + reaction + call + metric), kept within 0 to 10

`base` and `text` are shared by all labels, `label` is the planted effect, `reaction` is what one
base makes of one label (0 on average), `call` is shared by the four metrics of one judgement and
`metric` is not. Their deviations are ours, see `Noise`; how the result hangs on them is printed.
A panel is four judges in one chat: they share everything, and add a little of their own.

Beside it stands the paper's analysis of the same null data: chi-square tests on histograms of
scores, with every score counted as if it were drawn on its own.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, cycle, islice

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.instruments.judge.design import TEN
from evenhand.instruments.judge.effects import (
    WIN_MARGIN,
    LabelEffect,
    adjusted,
    of_labels_in_pairs,
    of_pairs,
    primary,
)
from evenhand.instruments.judge.figures import paper_tests
from evenhand.statistics.metrics import malibu
from evenhand.statistics.proportions import Proportion, wilson

Floats = NDArray[np.float64]
FAMILIES = {
    "gender": TEN[:2],
    "race": TEN[2:6],
    "religion": TEN[6:],
}
PAIRS = [pair for labels in FAMILIES.values() for pair in combinations(labels, 2)]
ARMS = (*malibu.CONTROLS, *TEN)
PLANTED = "female"  # one label only: the hardest case for a correction over ten
EFFECTS = (0.1, 0.25, 0.5)
CALLS = 2_000  # an audit should need no more
PERSONAS = 4  # paper 3.3


@dataclass(frozen=True)
class Noise:
    """Standard deviations in points of ten, all ours, of a judge at temperature 0 whose scores
    lie where language models like to put them. A metric's score of one text then changes with the
    label in somewhat more than half of all cases, which is a lot at temperature 0."""

    level: float = 7.5
    base: float = 0.8
    text: float = 0.3
    reaction: float = 0.15
    call: float = 0.35
    metric: float = 0.5
    persona: float = 0.3

    def times(self, factor: float) -> "Noise":
        """As much scenario, but `factor` times what differs between labels by chance."""
        return replace(
            self,
            reaction=factor * self.reaction,
            call=factor * self.call,
            metric=factor * self.metric,
        )


@dataclass(frozen=True)
class Shape:
    """The default design, without its texts: `benchmarks.malibu.Design`, which a test compares."""

    bases: int = 60
    texts: int = 2
    pairs: int = 8  # bases for each pair of labels
    judges: int = 1

    @property
    def calls(self) -> int:
        return self.judges * (self.bases * self.texts * len(ARMS) + 4 * len(PAIRS) * self.pairs)

    def keys(self) -> pl.DataFrame:
        """The single phase without its scores, in the order of `scores` flattened."""
        family = {label: name for name, labels in FAMILIES.items() for label in labels}
        bases = pl.DataFrame({"base": [f"base-{n}" for n in range(self.bases)]})
        return (
            bases.join(pl.DataFrame({"text": [str(n) for n in range(self.texts)]}), how="cross")
            .join(pl.DataFrame({"label": ARMS}), how="cross")
            .join(pl.DataFrame({"judge": [str(n) for n in range(self.judges)]}), how="cross")
            .with_columns(
                phase=pl.lit("single"),
                scenario=pl.col("base") + "/0",
                repeat=pl.lit("0"),
                family=pl.col("label").replace_strict(family, default="control"),
            )
        )

    def pair_keys(self) -> pl.DataFrame:
        """The pair phase: each pair on so many bases, either label with either text, either way."""
        dealt = cycle(range(self.bases))
        rows = [
            (f"base-{base}", order, *two[::step], *texts[::step])
            for two in PAIRS
            for base in islice(dealt, self.pairs)
            for texts in (("0", "1"), ("1", "0"))
            for order, step in (("ab", 1), ("ba", -1))
        ]
        names = ["base", "order", "first", "second", "first_text", "second_text"]
        return pl.DataFrame(rows, names, orient="row").with_columns(
            phase=pl.lit("pair"), scenario=pl.col("base") + "/0", repeat=pl.lit("0")
        )


DEFAULT, USUAL = Shape(), Noise()


def scores(rng: np.random.Generator, shape: Shape, noise: Noise, effect: float) -> Floats:
    """One row per judgement (base, text, label, judge), one column per metric."""
    b, t, j, m = shape.bases, shape.texts, shape.judges, len(malibu.METRICS)
    arms = len(ARMS)
    reaction = noise.reaction * rng.standard_normal((b, 1, arms, 1, 1))
    reaction[:, :, ARMS.index(malibu.NO_LABEL)] = 0.0
    planted = np.zeros((1, 1, arms, 1, 1))
    planted[:, :, ARMS.index(PLANTED)] = effect
    latent = (
        noise.level
        + noise.base * rng.standard_normal((b, 1, 1, 1, 1))
        + noise.text * rng.standard_normal((b, t, 1, 1, 1))
        + planted
        + reaction
        + noise.call * rng.standard_normal((b, t, arms, 1, 1))
        + noise.metric * rng.standard_normal((b, t, arms, 1, m))
    )
    if j > 1:
        latent = latent + noise.persona * rng.standard_normal((b, t, arms, j, m))
    return np.clip(np.rint(latent), 0, malibu.TOP).reshape(-1, m)


def judged(
    keys: pl.DataFrame, given: Floats, rng: np.random.Generator, missing: float = 0.0
) -> pl.DataFrame:
    """What the report takes: rows with scores, some of them missing."""
    columns = [pl.Series(name, given[:, n]) for n, name in enumerate(malibu.METRICS)]
    rows = keys.with_columns(columns)
    if missing:
        lost = pl.Series(rng.random(len(rows)) < missing)
        rows = rows.with_columns(pl.when(~lost).then(pl.col(malibu.METRICS)))
    return malibu.single(rows)


@dataclass(frozen=True)
class Found:
    """Of so many audits: how many found what was planted, or anything where nothing was."""

    any_label: Proportion
    planted: Proportion
    estimate: float  # mean over the audits, of the planted label
    bases_needed: float
    chi2_any: Proportion | None = None
    chi2_each: Proportion | None = None


def simulate(
    *,
    draws: int,
    seed: int,
    effect: float = 0.0,
    shape: Shape = DEFAULT,
    noise: Noise = USUAL,
    missing: float = 0.0,
    chi2: bool = False,
) -> Found:
    rng, keys = np.random.default_rng(seed), shape.keys()
    found: list[list[LabelEffect]] = []
    p_values: list[list[float]] = []
    for _ in range(draws):
        rows = judged(keys, scores(rng, shape, noise, effect), rng, missing)
        found.append([one.effect for one in primary(rows)])
        if chi2:
            p_values.append([one.test.p_value for one in paper_tests(rows)])
    planted = [e for family in found for e in family if e.label == PLANTED]
    return Found(
        any_label=_share([any(e.detected for e in family) for family in found]),
        planted=_share([e.detected for e in planted]),
        estimate=float(np.mean([e.estimate for e in planted])),
        bases_needed=float(np.mean([e.bases_needed for e in planted])),
        chi2_any=_share([min(tests) < 0.05 for tests in p_values]) if chi2 else None,
        chi2_each=_share([p < 0.05 for tests in p_values for p in tests]) if chi2 else None,
    )


def first_slot(
    *, draws: int, seed: int, preference: float = 1.0, shape: Shape = DEFAULT
) -> tuple[float, Proportion]:
    """A judge that takes the first slot with this probability and looks at nothing else: the
    largest effect of any label in any audit, and how often an audit finds one."""
    rng, keys = np.random.default_rng(seed), shape.pair_keys()
    nothing = [
        pl.lit(7.0).alias(f"{side}_{metric}")
        for side in ("first", "second")
        for metric in malibu.METRICS
    ]
    largest, alarms = 0.0, []
    for _ in range(draws):
        taken = (rng.random(len(keys)) < preference).astype(float)
        met = malibu.duels(keys.with_columns(*nothing, preferred=pl.Series(taken)))
        effects = malibu.pair_effects(met)
        largest = max(largest, float(effects["effect"].abs().max()))  # type: ignore[arg-type]
        family = [
            *of_pairs(met, "win", margin=WIN_MARGIN),
            *of_labels_in_pairs(met, "win", margin=WIN_MARGIN),
        ]
        alarms.append(any(one.effect.detected for one in adjusted(family)))
    return largest, _share(alarms)


def _share(events: Sequence[bool]) -> Proportion:
    return wilson(sum(events), len(events))


def _shown(found: Proportion) -> str:
    return f"{found.estimate:6.1%} ({found.low:.1%} to {found.high:.1%})"


def beside_the_paper(judges: int, draws: int) -> float:
    """False alarms on the same null data, ours and those of the paper's analysis."""
    found = simulate(draws=draws, seed=5, shape=Shape(judges=judges), chi2=True)
    assert found.chi2_any is not None
    assert found.chi2_each is not None
    who = "one judge" if judges == 1 else f"{judges} judges in one chat"
    print(
        f"{who}, no effect: ours finds one in {_shown(found.any_label)}; of the paper's twelve "
        f"chi-square tests each in {_shown(found.chi2_each)}, any in {_shown(found.chi2_any)}",
        flush=True,
    )
    return found.chi2_any.estimate


def sensitivity(draws: int) -> None:
    print("\nhow this hangs on the noise between labels, and on missing judgements")
    print(
        f"{'noise':>8} {'missing':>8} {'false alarms':>26} {'power at 0.25':>26} "
        f"{'bases needed':>13}"
    )
    for factor, missing in ((0.5, 0.0), (1.0, 0.0), (1.0, 0.05), (1.5, 0.0), (2.0, 0.0)):
        noise = USUAL.times(factor)
        null = simulate(draws=draws, seed=11, noise=noise, missing=missing)
        power = simulate(draws=draws, seed=12, effect=0.25, noise=noise, missing=missing)
        print(
            f"{factor:7.1f}× {missing:8.0%} {_shown(null.any_label):>26} "
            f"{_shown(power.planted):>26} {power.bases_needed:13.0f}",
            flush=True,
        )


def curve(draws: int) -> None:
    print("\npower by size")
    print(f"{'bases':>8} {'calls':>8}" + "".join(f" {effect:>12.2f}" for effect in EFFECTS))
    for bases in (20, 40, 60, 80):
        shape = Shape(bases=bases)
        found = [simulate(draws=draws, seed=21, effect=e, shape=shape) for e in EFFECTS]
        shares = "".join(f" {one.planted.estimate:12.1%}" for one in found)
        print(f"{bases:8} {shape.calls:8}{shares}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    part = 10 if parser.parse_args().quick else 1
    shape = DEFAULT
    size = f"{shape.bases} bases × {shape.texts} texts × {len(ARMS)} arms, and pairs"
    print(f"{size}: {shape.calls} calls")
    null = simulate(draws=2_000 // part, seed=1)
    print(f"no effect: an audit finds one in {_shown(null.any_label)}", flush=True)
    power = {}
    for effect in EFFECTS:
        found = simulate(draws=500 // part, seed=2, effect=effect)
        power[effect] = found.planted.estimate
        print(
            f"{effect:.2f} points planted: found in {_shown(found.planted)}, "
            f"estimated as {found.estimate:.3f}",
            flush=True,
        )
    largest, _ = first_slot(draws=10, seed=3)
    _, alarms = first_slot(draws=500 // part, seed=4, preference=0.8)
    print(f"always the first slot: largest effect of any label {largest}")
    print(f"the first slot 8 times in 10: an audit finds a label effect in {_shown(alarms)}")
    chi2_fpr = [beside_the_paper(judges, 500 // part) for judges in (1, PERSONAS)][-1]
    sensitivity(200 // part)
    curve(100 // part)
    if power[0.25] < 0.8 or shape.calls > CALLS:
        print(f"not enough within {CALLS} calls: {found.bases_needed:.0f} bases are recommended")
    print(
        f"RESULT fpr={null.any_label.estimate:.4f} fpr_upper={null.any_label.high:.4f} "
        + " ".join(f"power_{round(100 * e):03}={share:.3f}" for e, share in power.items())
        + f" chi2_fpr={chi2_fpr:.3f}"
    )


if __name__ == "__main__":
    main()
