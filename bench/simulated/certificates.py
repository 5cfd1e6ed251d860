"""How often a judge whose true effect lies at the margin passes, and how often an even-handed one
does: by the rule of every certificate.

    python -m bench.simulated.certificates            # 4,000 judges a cell
    python -m bench.simulated.certificates --short    # 400

A base has two texts. An effect of k points falls on as many texts as make the true mean equal to
the margin, so that few texts carry all of it where k is large; noise is that of a base's mean.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evenhand.core.conclusions import Outcome
from evenhand.instruments.judge.effects import LARGEST_SHIFT, SCORE_MARGIN
from evenhand.statistics.bounded import outcome_of, p_within, whole

Floats = NDArray[np.float64]
BASES = (6, 12, 60)
EFFECTS = (2.0, 4.0, 6.0)  # points that a label takes from a text, where it takes any
SPREADS = (0.0, 0.3)  # of a base's mean; what else differs between two marks of the same text
NOISES = (0.1, 0.2, 0.3, 0.4, 0.5)


def figures(*, short: bool) -> dict[str, float]:
    """`at_margin`: the largest share of judges at the margin that pass. `pass_…`: the share of
    judges without an effect that pass for one label, on 60 bases, by their noise."""
    judges, rng = 400 if short else 4_000, np.random.default_rng(20261116)
    found: dict[str, float] = {}
    for bases in BASES:
        for name, values in _at_margin(rng, judges, bases):
            found[f"{bases} bases, {name}"] = _passing(values)
    at_margin = max(found.values())
    for noise in NOISES:
        found[f"pass_without_effect_sd_{noise:g}"] = _passing(
            noise * rng.standard_normal((judges // 2, BASES[-1]))
        )
    return {**found, "at_margin": at_margin}


def _at_margin(rng: np.random.Generator, judges: int, bases: int) -> Iterator[tuple[str, Floats]]:
    """One row per judge, one column per base, the true mean at minus the margin."""
    for spread in SPREADS:
        noise = spread * rng.standard_normal((judges, bases))
        for effect in EFFECTS:
            hit = rng.binomial(2, SCORE_MARGIN / effect, (judges, bases))
            share = SCORE_MARGIN / effect
            yield f"−{effect:g} in {share:.1%} of texts, sd {spread:g}", noise - effect * hit / 2
        if spread:
            yield f"the same in every text, sd {spread:g}", noise - SCORE_MARGIN


def _passing(judges: Floats) -> float:
    """The share that is shown to lie within the margin, whether or not it is shown to be there."""
    shown = [p_within(whole(values, LARGEST_SHIFT), SCORE_MARGIN) for values in judges]
    return [outcome_of(p, shifted=1.0) for p in shown].count(Outcome.RULED_OUT) / len(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--short", action="store_true", help="fewer judges: seconds")
    for name, value in figures(short=parser.parse_args().short).items():
        print(f"{name:48} {value:.3f}")


if __name__ == "__main__":
    main()
