"""What must hold of PPO on a real model, however small."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from torch import Tensor

from evenhand.core.errors import UserError
from evenhand.training.events import Note
from evenhand.training.ppo import networks as nets
from evenhand.training.ppo.loop import fitting, learn, prepare
from evenhand.training.ppo.networks import Episodes, Processes, noise, sample, texts
from evenhand.training.ppo.step import (
    Ppo,
    StepHistory,
    TokenStatistics,
    answer,
    estimate,
    look,
    rewards_of,
    step,
    token_rewards,
    update,
)
from evenhand.training.recipes import PpoRecipe
from evenhand.training.reward_model import RewardModel, RewardScale
from evenhand.training.weights import Messages
from tests.errors import assert_names, raises_naming

ALONE = Processes(0, 1, torch.device("cpu"))
RECIPE = PpoRecipe(max_new_tokens=12, micro_batch=2, learning_rate=1e-3, critic_learning_rate=1e-3)
TALKS: list[Messages] = [
    [{"role": "user", "content": "Your view on long commutes, and on old buses?"}],
    [{"role": "user", "content": "On exams?"}],
    [{"role": "system", "content": "Be fair."}, {"role": "user", "content": "Desks?"}],
    [{"role": "user", "content": "And on dress codes?"}],
]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def share_of_letters(_: Sequence[Messages], answers: Sequence[str]) -> list[float]:
    """A scripted reward: how much of an answer is plain letters."""
    return [sum(c.isascii() and c.isalpha() for c in said) / max(1, len(said)) for said in answers]


def _ppo(tiny: Path, recipe: PpoRecipe = RECIPE, score: Any = share_of_letters) -> Ppo:
    return prepare(tiny, recipe, score, ALONE)


def _played(ppo: Ppo) -> Episodes:
    return answer(ppo, fitting(ppo, TALKS), noise(0, range(4), ppo.recipe.max_new_tokens))


def _losses(ppo: Ppo, episodes: Episodes) -> tuple[TokenStatistics, dict[str, float]]:
    seen = look(ppo, episodes)
    scores = torch.tensor(share_of_letters([], texts(ppo.tokenizer, episodes)))
    log_ratio = seen.log_probs - seen.reference
    rewards = token_rewards(scores, log_ratio, episodes.mask, beta=0.05)
    advantages, returns = estimate(
        rewards, seen.values, episodes.mask, discount=1.0, gae_lambda=0.95
    )
    return seen, update(ppo, episodes, seen, advantages, returns)


@pytest.mark.parametrize("full", [False, True], ids=["lora", "full"])
def test_the_first_pass_has_ratio_1_and_kl_0_exactly(tiny: Path, full: bool) -> None:
    ppo = _ppo(tiny, replace(RECIPE, full=full))
    metrics = step(ppo, fitting(ppo, TALKS), noise(0, range(4), 12))
    assert metrics["first_pass_gap"] == 0.0
    assert metrics["kl"] == 0.0
    seen = look(ppo, _played(ppo))
    assert not torch.equal(seen.log_probs, seen.reference)  # and it has moved since
    assert float(seen.kl.min()) > -1e-6


def test_sampled_tokens_follow_the_model_and_the_mask_ends_with_the_end_token(tiny: Path) -> None:
    ppo = _ppo(tiny)
    model = _EndsAfter(ppo.networks.policy(), lengths=[3, 1, 12, 5], end=int(ppo.ends[0]))
    prompts = [prompt.ids for prompt in fitting(ppo, TALKS)]
    episodes = sample(model, prompts, noise(0, range(4), 12), ends=ppo.ends, pad=0, temperature=1.0)
    assert episodes.mask.sum(dim=1).tolist() == [3, 1, 12, 5]
    for tokens, held, length in zip(episodes.responses, episodes.mask, (3, 1, 12, 5), strict=True):
        assert held.tolist() == [True] * length + [False] * (12 - length)
        assert int(tokens[length - 1]) == int(ppo.ends[0])
        assert not torch.isin(tokens[: length - 1], ppo.ends).any()
    assert texts(ppo.tokenizer, episodes)[1] == ""


class _EndsAfter:
    """A model that gives the end token all of the probability at a place, and none before it."""

    def __init__(self, model: Any, lengths: Sequence[int], end: int) -> None:
        self._model, self._lengths, self._end, self._place = model, lengths, end, 0

    def __call__(self, **given: Any) -> Any:
        out = self._model(**given)
        self._place += 1
        for row, length in enumerate(self._lengths):
            out.logits[row, -1, self._end] = 1e4 if self._place == length else -1e4
        return out


def test_cached_sampling_sees_what_the_whole_sequence_shows(tiny: Path) -> None:
    """Greedy answers of left-padded prompts are those that each prompt gets alone, without a cache:
    the second route has no padding, no positions and no masks to get wrong."""
    ppo = _ppo(tiny)
    prompts = [prompt.ids for prompt in fitting(ppo, TALKS)]
    almost_greedy = noise(0, range(4), 6)
    episodes = sample(
        ppo.networks.policy(), prompts, almost_greedy, ends=ppo.ends, pad=0, temperature=1e-3
    )
    seen = look(ppo, episodes)
    for row, prompt in enumerate(prompts):
        ids = list(prompt)
        for place, token in enumerate(episodes.responses[row]):
            if episodes.mask[row, place]:
                with torch.no_grad():
                    logits = ppo.networks.policy()(input_ids=torch.tensor([ids])).logits
                assert int(logits[0, -1].argmax()) == int(token)
                alone = logits[0, -1].log_softmax(dim=-1)[token]
                assert float(seen.log_probs[row, place]) == pytest.approx(float(alone), abs=1e-4)
                ids.append(int(token))


def test_losses_do_not_change_with_padding(tiny: Path) -> None:
    ppo = _ppo(tiny)
    with torch.no_grad():
        ppo.networks.head.weight.fill_(0.02)  # a critic that says something
    episodes = _played(ppo)
    wider = _wider(episodes, left=5, right=4)
    seen, losses = _losses(ppo, episodes)
    again = _ppo(tiny)
    with torch.no_grad():
        again.networks.head.weight.fill_(0.02)
    seen_wider, losses_wider = _losses(again, wider)
    width, mask = episodes.mask.shape[1], episodes.mask
    for name in ("log_probs", "reference", "kl", "entropy", "values"):
        plain, padded = getattr(seen, name), getattr(seen_wider, name)[:, :width]
        torch.testing.assert_close(plain[mask], padded[mask], atol=2e-5, rtol=1e-4)
    for name in ("loss", "value_loss", "clip_fraction"):
        assert losses_wider[name] == pytest.approx(losses[name], abs=1e-5)


def _wider(episodes: Episodes, *, left: int, right: int) -> Episodes:
    def pad(tensor: Tensor, before: int, behind: int) -> Tensor:
        return torch.nn.functional.pad(tensor, (before, behind), value=0)

    return Episodes(
        pad(episodes.prompts, left, 0),
        pad(episodes.prompt_mask, left, 0),
        pad(episodes.responses, 0, right),
        pad(episodes.mask, 0, right),
    )


def test_the_split_into_passes_does_not_change_the_step(tiny: Path) -> None:
    whole, parted = (_ppo(tiny, replace(RECIPE, micro_batch=size)) for size in (4, 1))
    for ppo in (whole, parted):
        step(ppo, fitting(ppo, TALKS), noise(0, range(4), 12))
    for name, parameter in whole.networks.learning()[0].items():
        torch.testing.assert_close(
            parameter, parted.networks.learning()[0][name], atol=1e-4, rtol=1e-3
        )


def test_the_score_is_that_of_the_decoded_text_through_the_reward_models_template(
    tiny: Path, tmp_path: Path
) -> None:
    reward = _reward_model(tiny, tmp_path)
    ppo = _ppo(tiny, score=reward.score)
    prompts = fitting(ppo, TALKS)
    episodes = _played(ppo)
    found = rewards_of(ppo, prompts, episodes).tolist()
    answers = texts(ppo.tokenizer, episodes)
    for messages, said, score in zip(TALKS, answers, found, strict=True):
        talk = [*messages, {"role": "assistant", "content": said}]
        text = reward.tokenizer.apply_chat_template(talk, tokenize=False)
        assert text.endswith("<|im_end|>\n")
        ids = reward.tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            raw = float(reward.model(input_ids=ids).logits[0, 0])
        assert score == pytest.approx((raw - 0.5) / 2, abs=1e-5)


def _reward_model(tiny: Path, folder: Path) -> RewardModel:
    from transformers import (  # noqa: PLC0415
        AutoModelForSequenceClassification,
        AutoTokenizer,
    )

    torch.manual_seed(1)
    model = AutoModelForSequenceClassification.from_pretrained(tiny, num_labels=1)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny).save_pretrained(folder)
    RewardScale(shift=0.5, scale=2.0).save(folder)
    return RewardModel.load(folder)


def test_an_answer_that_does_not_end_pays_the_penalty(tiny: Path) -> None:
    ppo = _ppo(tiny, replace(RECIPE, missing_eos_penalty=1.0))
    episodes = _played(ppo)
    end = torch.full((1, 1), int(ppo.ends[0]))
    ending = Episodes(episodes.prompts[:1], episodes.prompt_mask[:1], end, end > 0)
    going_on = replace(ending, responses=torch.zeros(1, 1, dtype=torch.long))
    prompts = fitting(ppo, TALKS)[:1]
    assert float(rewards_of(ppo, prompts, ending)) == 0.0
    assert float(rewards_of(ppo, prompts, going_on)) <= 0.0
    assert (
        float(rewards_of(ppo, prompts, going_on))
        == share_of_letters([], texts(ppo.tokenizer, going_on))[0] - 1.0
    )


@pytest.mark.parametrize("full", [False, True], ids=["lora", "full"])
def test_what_the_critic_learns_does_not_move_the_policy(tiny: Path, full: bool) -> None:
    ppo = _ppo(tiny, replace(RECIPE, full=full))
    episodes = _played(ppo)
    seen = look(ppo, episodes)
    policy, critic = ppo.networks.learning()
    assert not {id(p) for p in policy.values()} & {id(p) for p in critic.values()}
    kept = {name: p.detach().clone() for name, p in policy.items()}
    nothing = torch.zeros_like(seen.values)
    for _ in range(2):  # the head starts at 0, so the weights below it move from the second on
        update(ppo, episodes, seen, nothing, nothing + 1)
    after = look(ppo, episodes)
    assert all(torch.equal(p, kept[name]) for name, p in policy.items())
    assert torch.equal(after.log_probs, seen.log_probs)
    assert not torch.equal(after.values, seen.values)


def test_what_the_policy_learns_moves_neither_the_reference_nor_the_critic(tiny: Path) -> None:
    ppo = _ppo(tiny)
    with torch.no_grad():
        ppo.networks.head.weight.fill_(0.02)
    episodes = _played(ppo)
    seen = look(ppo, episodes)
    update(ppo, episodes, seen, torch.ones_like(seen.values), seen.values)
    after = look(ppo, episodes)
    assert not torch.equal(after.log_probs, seen.log_probs)
    assert torch.equal(after.reference, seen.reference)
    assert torch.equal(after.values, seen.values)


def test_training_stops_where_kl_passes_its_target_and_says_so(tiny: Path, tmp_path: Path) -> None:
    told: list[Any] = []
    ppo = _ppo(tiny, replace(RECIPE, target_kl=0.001, learning_rate=3e-2, epochs=20))
    outcome = learn(ppo, fitting(ppo, TALKS), tmp_path, StepHistory([]), told.append)
    assert outcome.stopped_at_kl == len(outcome.history) < 20
    assert isinstance(told[-1], Note)
    assert_names(told[-1].text, "above", 0.001)
    *within, last = (one["kl"] for one in outcome.history)
    assert max(within) <= 0.001 < last
    assert "loss" not in outcome.history[-1]  # nothing was learnt beyond it


def test_the_mean_reward_rises(tiny: Path, tmp_path: Path) -> None:
    recipe = PpoRecipe(
        batch=16,
        micro_batch=16,
        max_new_tokens=8,
        epochs=160,
        learning_rate=1e-2,
        critic_learning_rate=1e-2,
        beta=0.001,
        target_kl=50,
        save_every=1000,
    )
    ppo = _ppo(tiny, recipe)
    told: list[Any] = []
    outcome = learn(ppo, fitting(ppo, TALKS), tmp_path, StepHistory([]), told.append)
    rewards = [one["reward"] for one in outcome.history]
    first, last = fmean(rewards[:8]), fmean(rewards[-8:])
    assert first < 0.3
    assert last > 0.55
    assert [event.reward for event in told] == rewards


def test_a_reward_that_is_no_number_ends_the_training_before_it_is_saved(
    tiny: Path, tmp_path: Path
) -> None:
    ppo = _ppo(
        tiny, replace(RECIPE, save_every=1), lambda _, answers: [float("nan")] * len(answers)
    )
    with raises_naming(UserError, "Step 1", "reward, loss", "learning_rate"):
        learn(ppo, fitting(ppo, TALKS), tmp_path, StepHistory([]), lambda _: None)
    assert not (tmp_path / "checkpoints").exists()


def test_a_prompt_too_long_to_answer_is_left_out(tiny: Path) -> None:
    long: Messages = [{"role": "user", "content": "x" * 600}]
    ppo = _ppo(tiny)
    assert len(fitting(ppo, [*TALKS, long])) == 4
    with raises_naming(UserError, "1 prompts", "max_prompt", "max_new_tokens"):
        fitting(ppo, [long])


def test_the_trained_policy_is_a_plain_model_that_answers_as_the_adapter_did(
    tiny: Path, tmp_path: Path
) -> None:
    ppo = _ppo(tiny)
    step(ppo, fitting(ppo, TALKS), noise(0, range(4), 12))
    episodes = _played(ppo)
    with torch.no_grad():
        before = nets.log_probs(ppo.networks.policy(), episodes, 1.0)
        after = nets.log_probs(ppo.networks.finished(tmp_path), episodes, 1.0)
    held = episodes.mask
    torch.testing.assert_close(after[held], before[held], atol=1e-4, rtol=1e-4)
