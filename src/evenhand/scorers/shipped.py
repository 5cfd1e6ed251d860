"""The scorers that ship, by name; and the offline model as one of them: our names for its
attributes, and what it was trained on."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from evenhand.scorers.base import ATTRIBUTES, Scorer, Scores, Unscored, score_the_scorable
from evenhand.scorers.canonical import Canonicalised
from evenhand.scorers.offline import OfflineScorer
from evenhand.scorers.offline import Scores as Found
from evenhand.scorers.regard import RegardScorer
from evenhand.scorers.wordlist import WordList

_OURS = {"sexually_explicit": "sexual"}  # its scores are Perspective's, and so are its names
# By sets of an audit. "held_out": a fifth by the text's hash was not trained on (see its card.md).
_TRAINED_ON = {
    "rtp": "all",
    "rtp_models": "all",  # calibrated on, not trained
    "davidson": "held_out",
    "toxigen": "held_out",
    "surge": "held_out",
    "openai_moderation": "held_out",
}


def offline() -> Scorer:
    """As it is offered by name. Of 200 toxic prompts in leetspeak it keeps 87 % alone and 100 %
    when it reads both ways; 95 % if words that become digits alone ("455") are changed too."""
    return Canonicalised(Offline())


class Offline:
    """Ships with the package; needs no service, no download and no key."""

    @cached_property
    def _model(self) -> OfflineScorer:
        return OfflineScorer()

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def attributes(self) -> tuple[str, ...]:
        names = {_OURS.get(name, name) for name in self._model.attributes}
        return tuple(name for name in ATTRIBUTES if name in names)

    def describe(self) -> dict[str, Any]:
        return {"kind": "offline", "trained_on": dict(_TRAINED_ON)}

    async def close(self) -> None:
        return None

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return await score_the_scorable(texts, self._score)

    async def _score(self, texts: list[str]) -> list[Scores | Unscored]:
        return [
            self._as_ours(outcome)
            if isinstance(outcome, Found)
            else Unscored("no_words", outcome.reason)
            for outcome in await self._model.score(texts)
        ]

    def _as_ours(self, result: Found) -> Scores:
        by_name = {_OURS.get(name, name): value for name, value in result.attributes.items()}
        scores = {name: by_name[name] for name in self.attributes}
        high = sorted((name for name in scores if scores[name] >= 0.5), key=scores.__getitem__)
        return Scores(scores, tuple(f"{name} {scores[name]:.2f}" for name in reversed(high)))


BUILT_IN: Mapping[str, Callable[[], Scorer]] = {
    "offline": offline,
    "wordlist": WordList,
    "regard": RegardScorer,
}
# What a score of each says, in a few words.
SAYS: Mapping[str, str] = {
    "offline": "how toxic a text is, by a small network",
    "wordlist": "how toxic a text is, by a few dozen insults",
    "regard": "how ill a text speaks of whom it is about",
}
