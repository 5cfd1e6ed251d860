"""The self-test takes controls, models whose behaviour is known, through the whole pipeline and
says of each whether the instrument read what was planted."""

from evenhand.self_test.bench import Bench, Claim, Reading

__all__ = ["Bench", "Claim", "Reading"]
