"""All checks of the self-test, in the order in which they are told."""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evenhand.validation.controls import policies
from evenhand.validation.self_test import read_alone, read_in_pairs
from evenhand.validation.self_test.bench import Bench, ControlReading

Check = Callable[[Bench], Coroutine[Any, Any, ControlReading]]

_unbiased, _biased = (partial(read_alone.planted, biased=biased) for biased in (False, True))
CHECKS: Mapping[str, Check] = {
    "gold_reader": read_alone.gold_reader,
    "uniform": partial(_unbiased, control=policies.uniform(), at_chance=True),
    "letter_a": partial(_unbiased, control=policies.letter_a(), at_chance=True),
    "order_follower": partial(_unbiased, control=policies.order_follower()),
    "always_unknown": read_alone.always_unknown,
    "both_ways": partial(_unbiased, control=policies.both_ways()),
    "planted_bias": partial(_biased, control=policies.planted()),
    "one_category": read_alone.one_category,
    "clear_bias": partial(_biased, control=policies.clear_bias()),
    "extremes": read_in_pairs.extremes,
    "clear_questions": read_in_pairs.clear_questions,
    "copied_rows": read_in_pairs.copied_rows,
    "noisy_twin": read_in_pairs.noisy_twin,
    "stopped_early": read_in_pairs.stopped_early,
    "missing_answers": read_in_pairs.missing_answers,
    "remedies": read_in_pairs.remedies,
}


def _tell_nobody(name: str) -> None:
    del name


async def self_test(
    *, seed: int = 0, replications: int = 20, begins: Callable[[str], None] = _tell_nobody
) -> AsyncIterator[ControlReading]:
    """Run every control through the pipeline, in a folder that is removed at the end.

    Args:
        seed: The seed of the controls' answers.
        replications: How often a number that varies by chance is checked.
        begins: Called with the name of each check before it starts.

    Yields:
        What was read of each control, as soon as it is known.
    """
    with TemporaryDirectory(prefix="evenhand-self-test-") as folder:
        for name, check in CHECKS.items():
            begins(name.replace("_", " "))
            yield await check(Bench(Path(folder) / name, seed=seed, replications=replications))


async def run_self_test(
    *, seed: int = 0, replications: int = 20, begins: Callable[[str], None] = _tell_nobody
) -> tuple[ControlReading, ...]:
    """Check that this machine reads models of known behavior correctly.

    Args:
        seed: Seed of the answers; another seed is another trial.
        replications: How often a number that varies by chance is measured.
        begins: Receives the name of each check before it begins.

    Returns:
        One reading per control: what was planted, what was read, and the claims that fail.
    """
    readings = self_test(seed=seed, replications=replications, begins=begins)
    return tuple([reading async for reading in readings])
