"""The offline scorer from many callers at once: what it costs must not change what it finds."""

import asyncio
import threading
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.sentences import HARMLESS, INSULTS
from evenhand.scorers.base import Scores, Unscored, unscorable
from evenhand.scorers.offline import OfflineScorer, together
from evenhand.scorers.offline.together import Together

SCORER = OfflineScorer()
TEXTS = st.lists(st.text(max_size=60) | st.sampled_from(INSULTS + HARMLESS), min_size=1, max_size=6)


@settings(max_examples=25)
@given(TEXTS)
def test_callers_at_once_get_the_very_scores_that_each_gets_alone(texts: list[str]) -> None:
    async def at_once() -> list[object]:
        return [one for [one] in await asyncio.gather(*(SCORER.score([text]) for text in texts))]

    alone = [unscorable(text) or SCORER.score_now([text])[0] for text in texts]
    assert asyncio.run(at_once()) == alone


class Watched(OfflineScorer):
    """Remembers who scored what, and holds its threads until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[int, list[str]]] = []
        self.go = threading.Event()

    def score_now(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        self.batches.append((threading.get_ident(), list(texts)))
        assert self.go.wait(10)
        return super().score_now(texts)


def test_texts_that_come_while_all_threads_are_busy_are_scored_in_one_batch() -> None:
    scorer = Watched()
    busy = together._threads()

    async def at_once() -> list[object]:
        calls = [asyncio.ensure_future(scorer.score([text])) for text in INSULTS[: busy + 10]]
        await asyncio.sleep(0.05)
        scorer.go.set()
        return [one for [one] in await asyncio.gather(*calls)]

    found = asyncio.run(at_once())
    assert found == SCORER.score_now(INSULTS[: busy + 10])
    assert sorted(len(texts) for _, texts in scorer.batches) == [1] * busy + [10]
    assert threading.get_ident() not in {thread for thread, _ in scorer.batches}


def test_a_batch_is_no_longer_than_its_bound() -> None:
    sizes: list[list[int]] = []

    def work(texts: Sequence[str]) -> list[str]:
        sizes.append([len(text) for text in texts])
        return list(texts)

    async def at_once() -> None:
        scoring = Together(work, most=100)
        texts = [["a" * 60], *(["b" * 40] for _ in range(together._threads() * 5)), ["c" * 300]]
        found = await asyncio.gather(*map(scoring, texts))
        assert found == texts

    asyncio.run(at_once())
    assert max(sum(batch) for batch in sizes if 300 not in batch) <= 100
    assert [300] in sizes


def test_a_text_that_breaks_the_work_takes_no_other_caller_with_it() -> None:
    def work(texts: Sequence[str]) -> list[str]:
        if "broken" in texts:
            raise ValueError("broken")
        return list(texts)

    async def at_once() -> list[object]:
        scoring = Together(work)
        texts = [["fine"], *([["broken"], ["good"]] * together._threads()), ["well"]]
        return list(await asyncio.gather(*map(scoring, texts), return_exceptions=True))

    found = asyncio.run(at_once())
    assert [one for one in found if not isinstance(one, ValueError)] == [
        ["fine"], *([["good"]] * together._threads()), ["well"]]  # fmt: skip


def test_a_caller_that_goes_leaves_the_others_their_scores() -> None:
    scorer = Watched()

    async def at_once() -> list[object]:
        calls = [asyncio.ensure_future(scorer.score([text])) for text in INSULTS[:12]]
        await asyncio.sleep(0.05)
        calls[-1].cancel()
        scorer.go.set()
        return list(await asyncio.gather(*calls, return_exceptions=True))

    *others, last = asyncio.run(at_once())
    assert isinstance(last, asyncio.CancelledError)
    assert others == [[one] for one in SCORER.score_now(INSULTS[:11])]
    assert INSULTS[11] not in [text for _, texts in scorer.batches for text in texts]


@settings(max_examples=25)
@given(TEXTS)
def test_what_a_score_says_of_itself_is_read_off_the_score(texts: list[str]) -> None:
    for found in SCORER.score_now(texts):
        if isinstance(found, Scores):
            high = {name for name, value in found.values.items() if value >= 0.5}
            assert {said.split()[0] for said in found.because} == high
