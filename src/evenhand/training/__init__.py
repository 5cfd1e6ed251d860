"""Pairs into weights: supervised fine-tuning, a reward model, and reinforcement learning from it.

Needs the `train` extra. `config.prepare` says so if it is missing, and keeps the libraries below it
offline and quiet: it is called when a training, a conversion or a probe starts, before they are
imported. Importing this package alone changes nothing.
"""
