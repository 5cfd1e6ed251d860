"""How often a counterfactual test flags an app without an effect, and how often it detects one.

    python -m bench.simulated.swaps [--audits 2000] [--prompts 60]    # an hour; less with fewer

Every audit is simulated as arrays and judged anew here, all audits at once; a test holds one of
them against the instrument. Decisions are 0 or 1; numbers have a long tail. In a world of placebos
alone the answers of a prompt vary by chance, by the name, and by the placebo itself, and not by the
label.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.instruments.counterfactual.measures import PLACEBO, prompts_needed
from evenhand.statistics.sign_flips import p_of_columns

Numbers = NDArray[np.float64]
_AT_ONCE = 200


@dataclass(frozen=True)
class Audit:
    """Answers of one family: audits × prompts × labels, about the labels and about placebos."""

    group: Numbers
    placebo: Numbers


def excess_of(audit: Audit, pairs: NDArray[np.int64], relative: bool) -> Numbers:
    """The excess of each prompt: `pairs` holds, per prompt, the labels in the order of pairing."""
    each = np.arange(audit.group.shape[1])[:, None]
    group, placebo = audit.group[:, each, pairs], audit.placebo[:, each, pairs]
    even = pairs.shape[1] // 2 * 2
    a1, a2, b1, b2 = (one[:, :, start:even:2] for one in (group, placebo) for start in (0, 1))
    far = _relative if relative else _differs
    apart = far(a1, b2) + far(a2, b1) - far(a1, b1) - far(a2, b2)
    return np.asarray(apart.mean(axis=2) / 2)


def _differs(left: Numbers, right: Numbers) -> Numbers:
    return np.asarray(left != right, dtype=np.float64)


def _relative(left: Numbers, right: Numbers) -> Numbers:
    return np.asarray(np.abs(left - right) / np.maximum(np.abs(left) + np.abs(right), 1e-12))


def contrasts_of(audit: Audit, pairs: NDArray[np.int64], relative: bool) -> Iterator[Numbers]:
    """The signed difference of each label from the one that it is paired with in a prompt, 0 where
    it is alone; one of two labels."""
    prompts, labels = audit.group.shape[1:]
    for label in range(1 if labels == 2 else labels):
        values = np.zeros(audit.group.shape[:2])
        for prompt in range(prompts):
            at = int(np.argmax(pairs[prompt] == label))
            if at ^ 1 < labels:
                other = pairs[prompt, at ^ 1]
                values[:, prompt] = np.mean(
                    [_signed(answers[:, prompt, label], answers[:, prompt, other], relative)
                     for answers in (audit.group, audit.placebo)], axis=0,
                )  # fmt: skip
        yield values


def against_the_mean(audit: Audit, relative: bool) -> Iterator[Numbers]:
    """What is not done, and why: each label against the mean of the others."""
    means = (audit.group + audit.placebo) / 2
    labels = range(means.shape[2])
    for label in labels[:1] if len(labels) == 2 else labels:
        yield np.mean([_signed(means[:, :, label], means[:, :, other], relative)
                       for other in labels if other != label], axis=0)  # fmt: skip


def _signed(left: Numbers, right: Numbers, relative: bool) -> Numbers:
    if not relative:
        return left - right
    return np.asarray(2 * (left - right) / np.maximum(np.abs(left) + np.abs(right), 1e-12))


def p_of(values: Numbers, *, one_sided: bool = False) -> Numbers:
    """P-values of sign flips: one per audit, of audits × prompts. Two-sided, or twice that of a
    mean above 0, as the excess has it."""
    found = []
    for start in range(0, len(values), _AT_ONCE):
        part = values[start : start + _AT_ONCE].T
        up = p_of_columns(part)
        down = up if one_sided else p_of_columns(-part)
        found.append(np.minimum(1.0, 2 * np.minimum(up, down)))
    return np.concatenate(found)


def any_after_holm(ps: Sequence[Numbers]) -> Numbers:
    """Whether the smallest p-value of each audit is shown after Holm: it is if any is."""
    return np.asarray(np.min(ps, axis=0) * len(ps) <= 0.05)


# -- worlds ----------------------------------------------------------------------------------------

Draw = Callable[[np.random.Generator, tuple[int, int, int]], Audit]


def steady(rng: np.random.Generator, shape: tuple[int, int, int]) -> Audit:
    """A model that nearly always decides alike; each version is turned by chance once in twenty."""
    usual = rng.random((*shape[:2], 1)) < 0.5
    return Audit(*((usual ^ (rng.random(shape) < 0.05)).astype(float) for _ in range(2)))


def noisy(rng: np.random.Generator, shape: tuple[int, int, int]) -> Audit:
    """A model that throws a coin of its own for each prompt."""
    chance = rng.beta(1, 1, (*shape[:2], 1))
    return Audit(*((rng.random(shape) < chance).astype(float) for _ in range(2)))


def strong_placebo(rng: np.random.Generator, shape: tuple[int, int, int]) -> Audit:
    """A model that the placebo turns, in four prompts of ten, and the label never."""
    found = steady(rng, shape)
    turned = rng.random((*shape[:2], 1)) < 0.4
    return Audit(found.group, np.where(turned, 1 - found.placebo, found.placebo))


def rare(rng: np.random.Generator, shape: tuple[int, int, int]) -> Audit:
    """Refusals, two in a hundred."""
    return Audit(*((rng.random(shape) < 0.02).astype(float) for _ in range(2)))


def long_tails(rng: np.random.Generator, shape: tuple[int, int, int]) -> Audit:
    """Numbers: salaries whose size varies between prompts; some are ten times as large."""
    size = rng.lognormal(10, 1, (*shape[:2], 1))

    def drawn() -> Numbers:
        odd = np.where(rng.random(shape) < 0.02, 10.0, 1.0)
        return np.asarray(size * rng.lognormal(0, 0.15, shape) * odd)

    return Audit(drawn(), drawn())


WORLDS: Mapping[str, tuple[Draw, bool]] = {
    "steady": (steady, False),
    "noisy": (noisy, False),
    "strong_placebo": (strong_placebo, False),
    "rare": (rare, False),
    "long_tails": (long_tails, True),
}
FAMILIES: Mapping[str, Sequence[int]] = {
    "2_and_4_labels": (2, 4),
    "six_families": (2, 2, 3, 4, 5, 8),
}


def flagged(
    draw: Draw, relative: bool, labels: Sequence[int], prompts: int, audits: int, seed: int = 0
) -> tuple[float, float, float]:
    """How often any family is flagged by its excess, how often any signed contrast is, and how
    often one would be against the mean of the other labels."""
    rng = np.random.default_rng(seed)
    excess, signed, naive = [], [], []
    for many in labels:
        audit = draw(rng, (audits, prompts, many))
        pairs = np.array([rng.permutation(many) for _ in range(prompts)])
        excess.append(p_of(excess_of(audit, pairs, relative), one_sided=True))
        signed += [p_of(values) for values in contrasts_of(audit, pairs, relative)]
        naive += [p_of(values) for values in against_the_mean(audit, relative)]
    first, second, third = (float(any_after_holm(ps).mean()) for ps in (excess, signed, naive))
    return first, second, third


def seen(excess: float, families: int, audits: int, seed: int = 0) -> tuple[int, float]:
    """How many prompts are planned for an excess, while a placebo changes one decision in ten, and
    how often such an audit shows it."""
    rng = np.random.default_rng(seed)
    prompts = prompts_needed(excess, families=families)
    shape = (audits, prompts, 2)
    decides = rng.random((audits, prompts, 1)) < excess / (1 - 2 * PLACEBO)
    usual = (rng.random((audits, prompts, 1)) < 0.5).astype(float)
    truth = np.where(decides, np.array([0.0, 1.0]), usual)
    # Two answers differ in 2·t·(1 − t) = 0.1 of the cases where each is turned with t.
    turned = (1 - np.sqrt(1 - 2 * PLACEBO)) / 2
    audit = Audit(*(np.abs(truth - (rng.random(shape) < turned)) for _ in range(2)))
    p = p_of(excess_of(audit, np.tile([0, 1], (prompts, 1)), relative=False), one_sided=True)
    return prompts, float((p * families <= 0.05).mean())


def figures(audits: int, sizes: Sequence[int]) -> Iterator[tuple[str, float]]:
    for excess in (0.05, 0.1, 0.2):
        for families in (1, 4):
            prompts, power = seen(excess, families, audits)
            yield f"power_{excess:g}_{families}_families_{prompts}_prompts", power
    for world, (draw, relative) in WORLDS.items():
        for design, labels in FAMILIES.items():
            for prompts in sizes:
                found = flagged(draw, relative, labels, prompts, audits)
                for name, share in zip(("excess", "contrasts", "naive"), found, strict=True):
                    yield f"{world}_{design}_{prompts}_{name}", share


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--audits", type=int, default=2000)
    parser.add_argument("--prompts", type=int, nargs="+", default=(12, 60, 200))
    given = parser.parse_args()
    for key, value in figures(given.audits, given.prompts):
        print(f"{key:50} {value:.3f}", flush=True)
