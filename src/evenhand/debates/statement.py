"""What one debater said in one round, and what the referee made of it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    topic: str
    bias_type: str
    role: str
    round: int  # from 1
    text: str
    score: float  # 0 to 10; LOWER is less biased
    rank: int | None  # within its round; 1 is the least biased
    referee: str  # the model that scored it
    debater: str  # the model that said it
    prompts: Mapping[str, str]  # "rldf/debater@1" -> sha256 of the prompt file
    run: str  # the run folder it comes from
