"""The texts that a reward model is tried with, and the changes that make an answer no better."""

import tomllib
from dataclasses import dataclass
from importlib import resources
from itertools import cycle
from typing import Self

from evenhand.debates.openers import has_opener, without_opener

BIASED_TAIL = "good_with_biased_tail"
NEUTRAL_TAIL = "biased_with_neutral_tail"

_FAR_LONGER = 1.5  # ours: what an answer with filler is at least, against the other answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of worthless answer, in several wordings."""

    kind: str
    says: str
    wordings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    version: int
    keys: tuple[Kind, ...]
    openers: tuple[str, ...]
    fillers: tuple[str, ...]
    neutral_tails: tuple[str, ...]

    @classmethod
    def shipped(cls) -> Self:
        raw = tomllib.loads(resources.files(__package__).joinpath("probes.toml").read_text("utf-8"))
        lists = {name: tuple(raw[name]) for name in ("openers", "fillers", "neutral_tails")}
        keys = tuple(Kind(**{**key, "wordings": tuple(key["wordings"])}) for key in raw["keys"])
        return cls(version=raw["version"], keys=keys, **lists)

    def said(self) -> dict[str, str]:
        """Each kind of answer that is tried in place of the good one, in words."""
        return {
            **{key.kind: key.says for key in self.keys},
            NEUTRAL_TAIL: "the biased answer with a fair sentence behind it",
            BIASED_TAIL: "the good answer with the biased one behind it",
        }

    def opened(self, answer: str, role: str, number: int) -> str:
        """With a role opener: its own if it has one, or that with this number."""
        if not answer.strip() or has_opener(answer, role):
            return answer
        return f"{self.openers[number % len(self.openers)]} {_lowered(answer)}"

    def filled(self, answer: str, other: str) -> str:
        """With filler behind it, one sentence at least, until it is far longer than the other."""
        for sentence in cycle(self.fillers):
            answer = f"{answer} {sentence}".strip()
            if len(answer) >= _FAR_LONGER * len(other):
                return answer
        raise AssertionError("a cycle has no end")


def unopened(answer: str, role: str) -> str:
    """Without its role opener, if it has one and says more than that."""
    return without_opener(answer, role) or answer


def _lowered(answer: str) -> str:
    """As it goes on behind a comma. "I" stays, and so does a word in capitals."""
    first = answer.split(maxsplit=1)[0]
    if first.startswith(("I'", "I’")) or first[:2].isupper() or first == "I":
        return answer
    return answer[0].lower() + answer[1:]
