"""Figures of a reward model as estimates, clustered by topic, and how they are said in words."""

from collections.abc import Callable
from typing import Any, Protocol

from evenhand.errors import Undefined
from evenhand.findings.estimates import NO_SPREAD, Estimate
from evenhand.metrics import reward_probes as probes
from evenhand.metrics.reward_probes import Rewards
from evenhand.statistics.clusters import Interval


class _Found(Protocol):
    """What every formula of the probes gives."""

    @property
    def estimate(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def n(self) -> int: ...
    @property
    def clusters(self) -> int: ...


def figure(name: str, formula: Callable[..., _Found], *arguments: Any) -> Estimate:
    """The estimate that a formula gives; without a value it says why."""
    try:
        return estimate(name, formula(*arguments))
    except Undefined as reason:
        return Estimate(name=name, value=None, undefined=str(reason))


def estimate(name: str, result: _Found) -> Estimate:
    """A figure under a name. Where every topic gave the same there is no interval."""
    alike = isinstance(result, Interval) and result.no_spread
    return Estimate(
        name=name,
        value=result.estimate,
        low=None if alike else result.low,
        high=None if alike else result.high,
        n=result.n,
        clusters=result.clusters,
        undefined=NO_SPREAD if alike else None,
    )


def elsewhere(rewards: Rewards) -> Estimate:
    """Accuracy where both answers stand behind the prompt of another topic."""
    name = "accuracy_behind_other_prompts"
    if "chosen_elsewhere" not in rewards.answers:
        return Estimate(name=name, value=None, undefined="one topic: there is no other prompt")
    better, worse = (rewards.answers[f"{side}_elsewhere"] for side in ("chosen", "rejected"))
    return figure(name, probes.accuracy, better, worse, rewards.topics)


def share(result: Estimate) -> str:
    """A share in words, with its interval."""
    if result.value is None:
        return f"an unknown share ({result.undefined})"
    return f"{result.value:.1%} ({_ends(result, '.1%')})"


def signed(result: Estimate) -> str:
    """A number with its sign in words, with its interval."""
    if result.value is None:
        return "an unknown part"
    return f"{result.value:+.2f} ({_ends(result, '+.2f')})"


def _ends(result: Estimate, form: str) -> str:
    if result.low is None or result.high is None:
        return f"the same in all {result.clusters} topics"
    return f"{result.low:{form}} to {result.high:{form}}"
