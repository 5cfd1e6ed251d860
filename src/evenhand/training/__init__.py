"""Pairs into weights: supervised fine-tuning, a reward model, and reinforcement learning from it.

Needs the `train` extra. Importing this package says so if it is missing, and keeps the libraries
below it offline and quiet; that is why no command imports it before it trains.
"""

from evenhand.training.config import prepare

prepare()
