"""T9: what an item may cost is a bound, also when the model wants it to cost more."""

from pathlib import Path

import pytest

from evenhand.agents import Limits
from evenhand.core import Item
from tests.loopback.faulty import Greedy
from tests.loopback.kernel import TimedStarDTox, run_items

from .conftest import Connect, Serve

ENDLESS = TimedStarDTox(max_iterations=10**6)  # only the budget can end an item
LENGTHS = (20, 200, 600, 1_000, 2_000, 4_000)  # characters of a task
LETTERS = {"english": "a ", "greek": "ω", "chinese": "偏", "emoji": "🙂"}


def _tasks(letter: str) -> list[Item]:
    words = [letter * (length // len(letter)) for length in LENGTHS]
    return [Item(id=str(n), prompt=f"task-{n} {text}") for n, text in enumerate(words)]


@pytest.mark.parametrize("tokens", [300, 1_000, 3_000, 10_000, 100_000])
@pytest.mark.parametrize("letter", LETTERS.values(), ids=LETTERS.keys())
@pytest.mark.parametrize("words_only", [False, True], ids=["by-schema", "schema-in-words"])
async def test_a_judge_never_satisfied_spends_at_most_five_percent_over_the_budget(
    letter: str, words_only: bool, tokens: int, serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    greedy = Greedy(letter, words_only=words_only)
    server = await serve(greedy)
    limits = Limits(calls=64, tokens=tokens)
    ran = await run_items(
        connect(server.url), _tasks(letter), tmp_path / "run", limits=limits, method=ENDLESS
    )
    ratios = {task: spent / tokens for task, spent in sorted(greedy.spent.items())}
    print(f"{letter} {tokens}: {ratios}, calls {dict(sorted(greedy.asked.items()))}")
    assert ran.reasons == ["budget_spent"] * len(LENGTHS)
    assert max(ratios.values(), default=0.0) <= 1.05
    assert max(greedy.asked.values(), default=0) <= 64
    if tokens >= 10_000:  # a bound that lets nothing through would be easy to keep
        assert min(ratios.values()) >= 0.4


@pytest.mark.parametrize("calls", [1, 2, 5, 17])
async def test_a_judge_never_satisfied_is_asked_no_more_often_than_allowed(
    calls: int, serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    greedy = Greedy("a ")
    server = await serve(greedy)
    limits = Limits(calls=calls, tokens=10**9)
    ran = await run_items(
        connect(server.url), _tasks("a "), tmp_path / "run", limits=limits, method=ENDLESS
    )
    assert ran.reasons == ["budget_spent"] * len(LENGTHS)
    assert set(greedy.asked.values()) == {calls}
    assert ran.results["calls"].to_list() == [calls] * len(LENGTHS)
