"""Whether a context supports an answer, judged without a language model."""

from evenhand.scorers.support.features import Claim
from evenhand.scorers.support.judge import SupportJudge
from evenhand.scorers.support.model import ROLE, SupportModel

__all__ = ["ROLE", "Claim", "SupportJudge", "SupportModel"]
