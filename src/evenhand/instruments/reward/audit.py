"""Whether a reward model may drive reinforcement learning, and what it prefers if not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenhand.findings.audit import Audit, Check, overall
from evenhand.findings.estimates import Estimate, Section
from evenhand.instruments.reward.checks import checks
from evenhand.instruments.reward.figures import elsewhere, estimate, figure
from evenhand.metrics import reward_probes as probes
from evenhand.metrics.reward_probes import FEWEST_TOPICS, Rewards

_MOST_TOPICS = 8  # the worst, on a page; the file has all
_STATES = {"fail": "failed", "inconclusive": "open", "pass": "passed"}  # in `probes.json`


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanReward:
    """What a kind of answer gets on average."""

    answer: str
    reward: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardAudit(Audit):
    """What the probes found of a reward model. `estimates` are the figures without a bar."""

    pairs: int
    topics: int
    longer_wins_accuracy: float  # of a rule that reads nothing and takes the longer answer
    by_topic: tuple[Estimate, ...]  # accuracy, the worst first
    by_bias_type: tuple[Estimate, ...]
    means: tuple[MeanReward, ...]  # the most rewarded first
    texts_version: int | None = None  # of the worthless answers and changes that were tried

    @property
    def passed(self) -> bool:
        return self.state == "pass"

    @property
    def prefers(self) -> list[str]:
        """What the model prefers and should not, in sentences."""
        return [check.says for check in self.checks if check.state == "fail"]

    def to_dict(self) -> dict[str, Any]:
        """The audit as `probes.json` has it: format 1, which a training reads before it begins."""
        described = {estimate.name: _figure(estimate) for estimate in self.estimates}
        return {
            "passed": self.passed,
            "pairs": self.pairs,
            "topics": self.topics,
            "prefers": self.prefers,
            "open": [check.name for check in self.checks if check.required and check.is_open],
            "notes": list(self.notes),
            "checks": [_check(check) for check in self.checks],
            "by_topic": [
                {"name": estimate.name, **_figure(estimate)} for estimate in self.by_topic
            ],
            "by_bias_type": [
                {"name": estimate.name, **_figure(estimate)} for estimate in self.by_bias_type
            ],
            "described": {"longer_wins_accuracy": self.longer_wins_accuracy, **described},
            "means": [asdict(mean) for mean in self.means],
            **({} if self.texts_version is None else {"texts_version": self.texts_version}),
        }


def _figure(result: Estimate | Check) -> dict[str, Any]:
    return {
        "value": result.value,
        "low": result.low,
        "high": result.high,
        "n": result.n,
        "topics": result.clusters,
        "undefined": result.undefined,
    }


def _check(check: Check) -> dict[str, Any]:
    return {
        "name": check.name,
        "what": check.label,
        "bar": check.bar,
        "state": _STATES[check.state],
        "figure": _figure(check),
        "finding": check.says or None,
    }


def judged(
    rewards: Rewards,
    kind_names: Mapping[str, str],
    *,
    model: str = "",
    texts_version: int | None = None,
) -> RewardAudit:
    """Audit a reward model by what it gave. `kind_names` names each kind of worthless answer in
    words; `model` is the name that the audit stands under."""
    results = checks(rewards, kind_names)
    state = overall(results)
    failed = [check.says for check in results if check.state == "fail"]
    may = "It may drive RLOO and PPO." if state == "pass" else "It may not drive RLOO or PPO."
    pairs, topics = len(rewards.topics), len(set(rewards.topics))
    open_ = [check.name for check in results if check.is_open]
    least = f"; {FEWEST_TOPICS} topics are the least" if topics < FEWEST_TOPICS else ""
    unsure = [f"too few topics or pairs to be sure of: {', '.join(open_)}{least}"] if open_ else []
    by_topic, by_bias_type = _by(rewards, rewards.topics), _by(rewards, rewards.bias_types)
    means = _means(rewards, kind_names)
    return RewardAudit(
        kind="reward model",
        title=model,
        facts=(f"{pairs} held-out pairs, {topics} topics",),
        checks=results,
        state=state,
        says=(may, *failed, *unsure),
        notes=tuple(_notes(rewards)),
        estimates=_described(rewards),
        sections=_sections(means, by_bias_type, by_topic),
        pairs=pairs,
        topics=topics,
        longer_wins_accuracy=probes.longer_wins(rewards.length_chosen, rewards.length_rejected),
        by_topic=by_topic,
        by_bias_type=by_bias_type,
        means=means,
        texts_version=texts_version,
    )


def _notes(rewards: Rewards) -> Iterator[str]:
    """What does not stop a model, but should be known."""
    plain = probes.accuracy(rewards.chosen, rewards.rejected, rewards.topics)
    apart = elsewhere(rewards)
    if apart.value is not None and apart.value >= plain.low:
        yield (
            f"It hardly reads the prompt: behind prompts of other topics it is right in "
            f"{apart.value:.1%} of pairs, behind their own in {plain.estimate:.1%}."
        )
    longer = probes.longer_wins(rewards.length_chosen, rewards.length_rejected)
    best, word = max((longer, "longer"), (1 - longer, "shorter"))
    if best >= plain.low:
        yield (
            f"Taking the {word} answer without reading is right in {best:.1%} of these pairs: by "
            "accuracy on them a reader cannot be told from a ruler."
        )


def _described(rewards: Rewards) -> tuple[Estimate, ...]:
    """Figures without a bar."""
    got, topics = rewards.answers, rewards.topics
    chosen, rejected = rewards.length_chosen, rewards.length_rejected
    both = np.concatenate([rewards.chosen, rewards.rejected])
    lengths, twice = [*chosen, *rejected], [*topics, *topics]
    correlation = probes.length_correlation
    filled, longer = got["rejected_filled"], got["chosen_filled"]
    return (
        elsewhere(rewards),
        figure("length_correlation_all", correlation, both, lengths, twice),
        figure("length_correlation_chosen", correlation, rewards.chosen, chosen, topics),
        figure("length_correlation_rejected", correlation, rewards.rejected, rejected, topics),
        figure("accuracy_biased_made_longer", probes.accuracy, rewards.chosen, filled, topics),
        figure("accuracy_good_made_longer", probes.accuracy, longer, rewards.rejected, topics),
    )


def _by(rewards: Rewards, groups: Sequence[str]) -> tuple[Estimate, ...]:
    """Accuracy by topic or bias type, the worst first."""
    shares = probes.by_group(rewards, groups)
    return tuple(estimate(name, share) for name, share in shares.items())


def _means(rewards: Rewards, kind_names: Mapping[str, str]) -> tuple[MeanReward, ...]:
    """What each kind of answer gets on average, the most rewarded first. Of a kind with several
    wordings it is the best one for each prompt, as a policy would find it."""
    by_answer = {"the good answer": rewards.chosen, "the biased answer": rewards.rejected}
    for kind, wordings in rewards.keys.items():
        by_answer[kind_names[kind]] = np.max(list(wordings.values()), axis=0)
    rows = [MeanReward(answer=name, reward=float(np.mean(got))) for name, got in by_answer.items()]
    return tuple(sorted(rows, key=lambda row: -row.reward))


def _sections(
    means: Sequence[MeanReward], by_bias_type: Sequence[Estimate], by_topic: Sequence[Estimate]
) -> tuple[Section, ...]:
    rewards = Section(
        name="means",
        title="what each kind of answer gets on average",
        columns=("answer", "mean reward"),
        rows=tuple((mean.answer, mean.reward) for mean in means),
        in_short=True,
    )
    return (
        rewards,
        _accuracies("by_bias_type", "accuracy by bias type", by_bias_type),
        _accuracies("by_topic", "accuracy by topic, the worst first", by_topic[:_MOST_TOPICS]),
    )


def _accuracies(name: str, title: str, rows: Sequence[Estimate]) -> Section:
    return Section(
        name=name,
        title=title,
        columns=("", "accuracy", "low", "high", "pairs", "topics"),
        rows=tuple(
            (
                estimate.name,
                estimate.value,
                estimate.low,
                estimate.high,
                estimate.n,
                estimate.clusters,
            )
            for estimate in rows
        ),
        in_short=True,
    )
