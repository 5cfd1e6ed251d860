"""The self-test takes controls, models whose behaviour is known, through the whole pipeline and
says of each whether the instrument read what was planted."""

from evenhand.self_test.bench import Bench, Claim, Reading
from evenhand.self_test.checks import CHECKS, self_test

__all__ = ["CHECKS", "Bench", "Claim", "Reading", "self_test"]
