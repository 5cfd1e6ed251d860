"""The bench of calls, on thirty items: same answers, fewer calls, shorter chains."""

import asyncio
from pathlib import Path

import pytest

from bench.calls import ALL, CRITICAL, PAIRS, Ticking, items_of_bbq, measure, shared_prefix
from bench.calls_script import MIX


@pytest.fixture
def bbq(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_DATA", str(data_folder))


@pytest.mark.usefixtures("bbq")
def test_the_same_answers_come_from_fewer_calls_and_shorter_chains() -> None:
    items = items_of_bbq(30)
    assert len({item.tags["category"] for item in items}) == 11
    outcome = measure(items)
    assert outcome.equal() == [True] * 30
    assert outcome.critical <= CRITICAL
    assert outcome.all <= ALL
    for name in PAIRS:
        assert {one.path for one in outcome.ours[name]} == set(MIX)
        for one, other in zip(outcome.ours[name], outcome.literal[name], strict=True):
            assert one.critical <= len(one.turns) <= len(other.turns)
            assert other.critical == len(other.turns)  # one after the other


def test_the_clock_counts_calls_that_wait_for_each_other_and_nobody_waits_for_it() -> None:
    async def chain() -> float:
        clock = asyncio.get_running_loop().time
        started = clock()
        await asyncio.sleep(1)
        await asyncio.gather(*(asyncio.sleep(1) for _ in range(3)))
        return clock() - started

    with asyncio.Runner(loop_factory=Ticking) as runner:
        assert round(runner.run(chain())) == 2


def test_the_share_of_a_prefix_cache_is_that_of_the_longest_beginning_sent_before() -> None:
    # Of 4 + 4 + 4 + 2 characters: nothing, "ab", "abc" (not the "ab" of the second), "ab".
    assert shared_prefix(["abcd", "abxy", "abcz", "ab"]) == pytest.approx(7 / 14)
