"""The offline scorer from many callers at once: what it costs must not change what it finds."""

import asyncio
import threading

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.sentences import HARMLESS, INSULTS
from evenhand.scorers.base import Scores, unscorable
from evenhand.scorers.offline import OfflineScorer

SCORER = OfflineScorer()
TEXTS = st.lists(st.text(max_size=60) | st.sampled_from(INSULTS + HARMLESS), min_size=1, max_size=6)


@settings(max_examples=25)
@given(TEXTS)
def test_callers_at_once_get_the_very_scores_that_each_gets_alone(texts: list[str]) -> None:
    async def at_once() -> list[object]:
        return [one for [one] in await asyncio.gather(*(SCORER.score([text]) for text in texts))]

    alone = [unscorable(text) or SCORER.score_now([text])[0] for text in texts]
    assert asyncio.run(at_once()) == alone


def test_callers_at_once_are_scored_in_one_thread_and_not_in_that_of_the_loop() -> None:
    seen: list[int] = []

    class Watched(OfflineScorer):
        def score_now(self, texts):  # type: ignore[no-untyped-def]
            seen.append(threading.get_ident())
            return super().score_now(texts)

    async def at_once() -> None:
        scorer = Watched()
        await asyncio.gather(*(scorer.score([text]) for text in INSULTS[:12]))

    asyncio.run(at_once())
    assert len(seen) == 12
    assert len(set(seen)) == 1
    assert threading.get_ident() not in seen


@settings(max_examples=25)
@given(TEXTS)
def test_what_a_score_says_of_itself_is_read_off_the_score(texts: list[str]) -> None:
    for found in SCORER.score_now(texts):
        if isinstance(found, Scores):
            high = {name for name, value in found.values.items() if value >= 0.5}
            assert {said.split()[0] for said in found.because} == high
