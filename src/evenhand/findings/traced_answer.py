"""An answer together with the conversation that led to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenhand.core import Answer, Turn
from evenhand.findings.display import Displayable

_COLUMNS = {
    "index": pl.Int64,
    "role": pl.String,
    "model": pl.String,
    "prompt": pl.String,
    "text": pl.String,
    "error": pl.String,
    "seconds": pl.Float64,
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedAnswer(Answer, Displayable):
    """A method's final word, with every turn of its agents. A notebook shows it as a timeline."""

    turns: tuple[Turn, ...]
    tags_taken_off: int = 0  # tags of our prompts that a model had copied into what it said

    @classmethod
    def of(cls, final: Answer, turns: Sequence[Turn], tags_taken_off: int) -> "TracedAnswer":
        """A method's final word with what led to it."""
        return cls(
            drafts=final.drafts,
            stopped=final.stopped,
            side_by_side=final.side_by_side,
            kept=final.kept,
            outcome=final.outcome,
            turns=tuple(turns),
            tags_taken_off=tags_taken_off,
        )

    def frame(self) -> pl.DataFrame:
        """One row per turn: who was asked, what came back, what it took."""
        rows = [
            {name: getattr(turn, name, None) for name in _COLUMNS}
            | {"text": turn.texts[0] if turn.texts else None}
            for turn in self.turns
        ]
        return pl.DataFrame(rows, schema=_COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "choice": self.choice,
            "changed": self.changed,
            "stopped": self.stopped,
            "outcome": self.outcome,
            "drafts": self.drafts,
            "turns": self.turns,
            "tags_taken_off": self.tags_taken_off,
        }
