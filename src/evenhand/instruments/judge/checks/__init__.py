"""The checks of a judge, one file each: a question, and the answer that the evidence gives."""

from evenhand.instruments.judge.checks._check import FEWEST_BASES, JudgeCheck
from evenhand.instruments.judge.checks.coverage import Coverage
from evenhand.instruments.judge.checks.human_agreement import HumanAgreement
from evenhand.instruments.judge.checks.identity import Identity
from evenhand.instruments.judge.checks.identity_in_pairs import IdentityInPairs
from evenhand.instruments.judge.checks.injection import Injection
from evenhand.instruments.judge.checks.position import Position
from evenhand.instruments.judge.checks.repetition import Repetition
from evenhand.instruments.judge.checks.scale import Scale
from evenhand.instruments.judge.checks.self_preference import SelfPreference

__all__ = ["FEWEST_BASES", "OWN_CHECKS", "JudgeCheck", "checks"]

# In the order in which a certificate lists them.
OWN_CHECKS: tuple[type[JudgeCheck], ...] = (
    Coverage,
    Scale,
    Identity,
    IdentityInPairs,
    Position,
    Injection,
    Repetition,
    HumanAgreement,
    SelfPreference,
)


def checks() -> tuple[JudgeCheck, ...]:
    """All checks that an audit makes."""
    return tuple(check() for check in OWN_CHECKS)
