"""The self-test takes controls, models whose behaviour is known, through the whole pipeline and
says of each whether the instrument read what was planted."""

from evenhand.validation.self_test.bench import Bench, ControlClaim, ControlReading
from evenhand.validation.self_test.checks import CHECKS, run_self_test, self_test

__all__ = ["CHECKS", "Bench", "ControlClaim", "ControlReading", "run_self_test", "self_test"]
