"""A probe finds out by 48 short calls what a model is good for: does it read, does it follow a
schema, does it judge?"""

from evenhand.experiments.probe.asked import questions
from evenhand.experiments.probe.asking import Probing
from evenhand.experiments.probe.kept import ProbeResult, find, keep

__all__ = ["ProbeResult", "Probing", "find", "keep", "questions"]
