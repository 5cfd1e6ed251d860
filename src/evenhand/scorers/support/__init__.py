"""Whether a context supports an answer, judged without a language model."""

from evenhand.scorers.support.features import SupportClaim
from evenhand.scorers.support.judge import ROLE, SupportJudge, SupportModel

__all__ = ["ROLE", "SupportClaim", "SupportJudge", "SupportModel"]
