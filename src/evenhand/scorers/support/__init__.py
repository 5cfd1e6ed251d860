"""Whether a context supports an answer, judged without a language model."""

from evenhand.scorers.support.features import Claim
from evenhand.scorers.support.judge import ROLE, SupportJudge, SupportModel

__all__ = ["ROLE", "Claim", "SupportJudge", "SupportModel"]
