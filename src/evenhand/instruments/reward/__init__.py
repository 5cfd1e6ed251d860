"""The audit of a reward model: what it prefers, and whether it may drive reinforcement learning."""

from evenhand.instruments.reward.instrument import Reward

__all__ = ["Reward"]
