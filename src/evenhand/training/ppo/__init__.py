"""A small PPO of our own, for the paper's method on one machine.

TRL has none since 1.13, and the libraries that keep one for clusters pin other versions of
transformers. What holds of it is in tests/training/weights/test_ppo_*.py.
"""

from evenhand.training.ppo.loop import train

__all__ = ["train"]
