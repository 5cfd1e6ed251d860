"""The checks of a judge, one file each: a question, and the answer that the evidence gives."""

from evenhand.core import registry
from evenhand.instruments.judge.checks._check import FEWEST_BASES, JudgeCheck

__all__ = ["FEWEST_BASES", "JudgeCheck", "checks"]


def checks() -> tuple[JudgeCheck, ...]:
    """All checks that an audit makes: ours in the order in which a certificate lists them, then
    those of other packages."""
    names = registry.names("judge_checks")
    return tuple(registry.load("judge_checks", name)() for name in names)
