"""PPO's formulas on numbers worked by hand and against their closed forms."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, tensor

from evenhand.training.ppo.loop import order, steps_of
from evenhand.training.ppo.networks import Episodes, draw, noise
from evenhand.training.ppo.step import estimate, policy_loss, token_rewards, value_loss, whiten
from evenhand.training.recipes import PpoRecipe
from evenhand.training.stage import rates

_NUMBERS = st.floats(-3, 3, allow_nan=False, width=32)


def _row(*numbers: float) -> Tensor:
    return tensor([numbers], dtype=torch.float64)


def _held(*flags: int) -> Tensor:
    return tensor([flags], dtype=torch.bool)


def test_kl_is_paid_at_every_token_and_the_score_comes_at_the_last() -> None:
    log_ratio = tensor([[0.2, -0.1, 0.4], [1.0, 9.0, 9.0]])
    mask = tensor([[1, 1, 1], [1, 0, 0]], dtype=torch.bool)
    rewards = token_rewards(tensor([2.0, -1.0]), log_ratio, mask, beta=0.5)
    # 2 − ½·0.4 at the end of the first; the second is one token long: −1 − ½·1
    torch.testing.assert_close(rewards, tensor([[-0.1, 0.05, 1.8], [-1.5, 0.0, 0.0]]))


def test_advantages_of_an_example_worked_by_hand() -> None:
    """γ = 0.9, λ = 0.5, r = (1, 0, 2), V = (0.5, 1, 1.5), so γλ = 0.45.

    δ₂ = 2 − 1.5 = 0.5, δ₁ = 0 + 0.9·1.5 − 1 = 0.35, δ₀ = 1 + 0.9·1 − 0.5 = 1.4;
    A₂ = 0.5, A₁ = 0.35 + 0.45·0.5 = 0.575, A₀ = 1.4 + 0.45·0.575 = 1.65875.
    """
    advantages, returns = estimate(
        _row(1, 0, 2, 7), _row(0.5, 1, 1.5, 7), _held(1, 1, 1, 0), discount=0.9, gae_lambda=0.5
    )
    torch.testing.assert_close(advantages, _row(1.65875, 0.575, 0.5, 0))
    torch.testing.assert_close(returns, _row(2.15875, 1.575, 2.0, 0))


@settings(max_examples=30)
@given(
    st.lists(st.tuples(_NUMBERS, _NUMBERS), min_size=1, max_size=6),
    st.integers(0, 3),
    st.floats(0.5, 1),
)
def test_advantages_have_their_closed_forms_where_lambda_is_one_and_zero(
    tokens: list[tuple[float, float]], padding: int, discount: float
) -> None:
    """λ = 1: what all later rewards are worth, less V. λ = 0: one step's surprise."""
    rewards, values = zip(*tokens, strict=True)
    length = len(tokens)
    given_ = (
        _row(*rewards, *[5.0] * padding),
        _row(*values, *[5.0] * padding),
        _held(*[1] * length, *[0] * padding),
    )
    far, _ = estimate(*given_, discount=discount, gae_lambda=1.0)
    near, _ = estimate(*given_, discount=discount, gae_lambda=0.0)
    for t in range(length):
        worth = sum(discount ** (k - t) * rewards[k] for k in range(t, length))
        assert float(far[0, t]) == pytest.approx(worth - values[t], abs=1e-9)
        following = values[t + 1] if t + 1 < length else 0.0
        surprise = rewards[t] + discount * following - values[t]
        assert float(near[0, t]) == pytest.approx(surprise, abs=1e-9)
    assert not far[0, length:].any()
    assert not near[0, length:].any()


def test_whitened_advantages_have_mean_0_and_deviation_1_over_real_tokens_only() -> None:
    # 1, 3, 5: mean 3, deviation √(8/3)
    white = whiten(_row(1, 3, 5, 99), _held(1, 1, 1, 0), lambda total: total)
    one = 2 / math.sqrt(8 / 3)
    torch.testing.assert_close(white, _row(-one, 0, one, 0))


def test_the_clipped_loss_takes_the_worse_of_the_two_ratios() -> None:
    """ε = 0.2. ρ = 1.5 with A = 2: min(3, 2.4). ρ = 1.5 with A = −2: min(−3, −2.4). ρ = 0.5 with
    A = 1: min(0.5, 0.8). ρ = 0.5 with A = −1: min(−0.5, −0.8). The last token is padding."""
    new = _row(1.5, 1.5, 0.5, 0.5, 4.0).log()
    loss, clipped = policy_loss(
        new, torch.zeros_like(new), _row(2, -2, 1, -1, 50), _held(1, 1, 1, 1, 0), clip=0.2
    )
    assert float(loss) == pytest.approx(-(2.4 - 3 + 0.5 - 0.8))
    assert int(clipped) == 2


def test_the_clipped_value_loss_gives_no_credit_for_a_leap() -> None:
    """The critic said 0, says 1, and should say 1. Kept within 0.2 of what it said, it is off by
    0.8; and by 2 where it moved away from −1."""
    new, old, returns, mask = _row(1, 1, 9), _row(0, 0, 0), _row(1, -1, 0), _held(1, 1, 0)
    clipped = value_loss(new, old, returns, mask, clip=0.2)
    assert float(clipped) == pytest.approx((0.8**2 + 2**2) / 2)
    free = value_loss(new, old, returns, mask, clip=None)
    assert float(free) == pytest.approx((0 + 2**2) / 2)


def test_a_token_is_drawn_where_the_cumulative_probability_passes_the_number() -> None:
    logits = tensor([0.2, 0.0, 0.5, 0.3]).log()  # reached: 0.2, 0.2, 0.7, 1.0
    numbers = tensor([0.0, 0.19, 0.2, 0.69, 0.71, 1 - 1e-12], dtype=torch.float64)
    drawn = draw(logits.expand(len(numbers), -1), numbers)
    assert drawn.tolist() == [0, 0, 2, 2, 3, 3]


def test_positions_count_from_the_first_real_token() -> None:
    """Rotary positions forgive an offset, which hides a mistake here; learnt ones do not."""
    episodes = Episodes(
        prompts=tensor([[9, 9, 5, 6], [1, 2, 3, 4]]),
        prompt_mask=tensor([[0, 0, 1, 1], [1, 1, 1, 1]], dtype=torch.bool),
        responses=tensor([[7, 8, 9], [7, 7, 8]]),
        mask=tensor([[1, 1, 0], [1, 1, 1]], dtype=torch.bool),
    )
    found = episodes.inputs()
    assert found["position_ids"].tolist() == [[0, 0, 0, 1, 2, 3, 3], [0, 1, 2, 3, 4, 5, 6]]
    assert found["attention_mask"].tolist() == [[0, 0, 1, 1, 1, 1, 0], [1] * 7]
    assert found["input_ids"].tolist()[0] == [9, 9, 5, 6, 7, 8, 9]


def test_an_episode_draws_the_same_numbers_whichever_process_plays_it() -> None:
    whole = noise(7, range(4, 8), 5)
    assert torch.equal(whole[2:], noise(7, range(6, 8), 5))
    assert not torch.equal(whole, noise(8, range(4, 8), 5))


def test_every_epoch_shows_every_prompt_once_in_an_order_of_its_own() -> None:
    shown = [i for step in range(6) for i in order(10, step * 5, 5, seed=3)]
    assert [sorted(shown[i : i + 10]) for i in (0, 10, 20)] == [list(range(10))] * 3
    assert shown[:10] != shown[10:20]


@pytest.mark.parametrize(
    ("epochs", "max_steps", "steps"),
    [(1.0, None, 3), (2.0, None, 5), (0.1, None, 1), (1.0, 2, 2), (1.0, 99, 3)],
)
def test_an_epoch_is_as_many_steps_as_hold_its_prompts(
    epochs: float, max_steps: int | None, steps: int
) -> None:
    assert steps_of(PpoRecipe(epochs=epochs, max_steps=max_steps, batch=4), prompts=10) == steps


def test_no_step_has_the_learning_rate_zero() -> None:
    factors = [rates(PpoRecipe(warmup=0.2), 10)(step) for step in range(10)]
    assert factors[:2] == [0.5, 1.0]
    assert factors[2:] == sorted(factors[2:], reverse=True)
    assert factors[-1] > 0
