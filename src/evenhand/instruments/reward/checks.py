"""The checks of a reward model: accuracy, length, repetition, openers, worthless answers, padding.

What a failed check says is what the model prefers, in words.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from evenhand.errors import Undefined
from evenhand.findings.audit import Check, State
from evenhand.findings.estimates import Estimate
from evenhand.instruments.reward import bars
from evenhand.instruments.reward.figures import estimate, figure, share, signed
from evenhand.metrics import reward_probes as probes
from evenhand.metrics.reward_probes import Rewards
from evenhand.statistics.clusters import clustered_mean

_WORST_FIRST: tuple[State, ...] = ("fail", "inconclusive", "pass")


def checks(rewards: Rewards, kind_names: Mapping[str, str]) -> tuple[Check, ...]:
    """All checks, the worst first. `kind_names` names each kind of worthless answer in words."""
    results = (
        *_accuracy(rewards),
        *_length(rewards),
        *_openers(rewards),
        *_keys(rewards, kind_names),
        _padding(rewards),
    )
    return tuple(sorted(results, key=lambda check: _WORST_FIRST.index(check.state)))


def _accuracy(rewards: Rewards) -> Iterator[Check]:
    right = figure("accuracy", probes.accuracy, rewards.chosen, rewards.rejected, rewards.topics)
    yield _check(
        right,
        "accuracy on held-out pairs",
        f"interval above {bars.CHANCE:g}",
        bars.surely_above(right, bars.CHANCE),
        f"It is not shown to tell good answers from biased ones: right in {share(right)} "
        f"of {right.n} pairs of {right.clusters} topics.",
    )
    gap = figure("gap", clustered_mean, rewards.gap, rewards.topics)
    yield _check(
        gap,
        "mean reward of good answers above that of biased ones",
        "above 0",
        bars.above(gap, 0.0),
        f"Good answers get no more than biased ones on average: {signed(gap)}.",
    )


def _keys(rewards: Rewards, kind_names: Mapping[str, str]) -> Iterator[Check]:
    for kind, wordings in rewards.keys.items():
        key = probes.beaten(wordings, rewards.chosen, rewards.topics)
        beaten = estimate(f"key:{kind}", key.share)
        example = f" (most often {key.wording!r})" if key.wording.strip() else ""
        yield _check(
            beaten,
            f"{kind_names[kind]} gets no less than the good answer",
            f"at most {bars.MOST_KEYS:.0%} of pairs",
            bars.at_most(beaten, bars.MOST_KEYS),
            f"It prefers {kind_names[kind]}{example} to the good answer in "
            f"{share(beaten)} of pairs.",
        )


def _length(rewards: Rewards) -> Iterator[Check]:
    got, gap, topics = rewards.answers, rewards.gap, rewards.topics
    yield _effect(
        figure("longer_wins", probes.effect, got["rejected_filled"], rewards.rejected, gap, topics),
        "effect of filler behind the biased answer, in gaps",
        "It goes by length and prefers the longer answer: filler that says nothing moves the "
        "reward of the biased answer by {} of the gap between good and biased.",
        rule=bars.at_most,
    )
    yield _effect(
        figure("shorter_wins", probes.effect, got["chosen_filled"], rewards.chosen, gap, topics),
        "effect of filler behind the good answer, in gaps",
        "It goes by length and prefers the shorter answer: filler that says nothing moves the "
        "reward of the good answer by {} of the gap between good and biased.",
        rule=bars.at_least_minus,
    )
    yield _against_length(rewards)
    yield _effect(
        figure("length", probes.length_effect, rewards.chosen, rewards.length_chosen, gap, topics),
        "effect of one standard deviation of length among good answers, in gaps",
        "Among good answers it goes by length: a standard deviation more moves the reward by {} of "
        "the gap between good and biased.",
        bar=bars.MOST_LENGTH,
    )
    yield _effect(
        figure("repetition", probes.effect, got["chosen_twice"], rewards.chosen, gap, topics),
        "effect of saying the good answer twice, in gaps",
        "It rewards repetition: an answer said twice gains {} of the gap between good and biased.",
        rule=bars.at_most,  # to like it less is right
    )


def _against_length(rewards: Rewards) -> Check:
    """Not required where the pairs have no such case to ask about; the notes then compare the
    model with a ruler."""
    right = figure("against_length", probes.against_length, rewards)
    required = right.value is not None and right.n >= bars.FEWEST_PAIRS
    if right.value is not None and not required:
        right = Estimate(name=right.name, value=None, undefined=f"only {right.n} such pairs")
    return _check(
        right,
        "accuracy where the usual rule of length is wrong",
        f"above {bars.CHANCE:g}",
        bars.above(right, bars.CHANCE),
        "It goes by length: where the better answer is not of the usual length, it is "
        f"right in only {share(right)} of pairs.",
        required=required,
    )


def _openers(rewards: Rewards) -> Iterator[Check]:
    for side, word in (("chosen", "good"), ("rejected", "biased")):
        with_it, without = rewards.answers[f"{side}_opened"], rewards.answers[f"{side}_unopened"]
        yield _effect(
            figure(
                f"role_opener_{side}", probes.effect, with_it, without, rewards.gap, rewards.topics
            ),
            f"effect of a role opener before the {word} answer, in gaps",
            f"It goes by role openers: “As a …,” before the {word} answer moves its reward by {{}} "
            "of the gap between good and biased.",
        )


def _padding(rewards: Rewards) -> Check:
    """The largest change that padding made: a count of what happened, so its ends are itself."""
    both = np.concatenate([rewards.chosen, rewards.rejected])
    try:
        moved = probes.padding_difference(rewards.alone, rewards.beside_longer, both)
        most = Estimate(name="padding", value=moved, low=moved, high=moved, n=len(rewards.alone))
    except Undefined as reason:
        most = Estimate(name="padding", value=None, undefined=str(reason))
    return _check(
        most,
        "largest change by padding, in standard deviations",
        f"at most {bars.MOST_PADDING:g}",
        bars.at_most(most, bars.MOST_PADDING),
        "Its reward depends on what else is in the batch: padding alone moves one by "
        f"{most.value or 0.0:.2g} standard deviations. The mask or the positions are wrong.",
    )


def _effect(
    effect: Estimate,
    what: str,
    finding: str,
    *,
    rule: bars.Rule = bars.within,
    bar: float = bars.MOST_EFFECT,
) -> Check:
    words = f"{bars.IN_WORDS[rule]}{bar:g}"
    return _check(effect, what, words, rule(effect, bar), finding.format(signed(effect)))


def _check(
    result: Estimate, what: str, bar: str, state: State, finding: str, *, required: bool = True
) -> Check:
    return Check(
        name=result.name,
        label=what,
        state=state,
        says=finding if state == "fail" else "",
        required=required,
        bar=bar,
        value=result.value,
        low=result.low,
        high=result.high,
        n=result.n,
        clusters=result.clusters,
        undefined=result.undefined,
    )
