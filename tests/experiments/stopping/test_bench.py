"""The bench of a gate that may stop early plants what it says, and judges as the gate does."""

import numpy as np
import pytest

from bench.cheaper import Templates
from bench.gate_until import (
    MARGIN,
    TEMPLATES,
    Early,
    Planted,
    check_of,
    peeked,
    run_of,
    sequential,
    verdict,
)

# Two templates, of four answers and of two; 9 is no answer.
KNOWN = Templates(np.array([[1.0, 1.0, -1.0, 0.0], [0.0, 1.0, 9.0, 9.0]]), np.array([4, 2]))


@pytest.mark.parametrize(("name", "mean"), [("guesses", 5 / 8), ("lean", 3 / 8)])
def test_the_later_run_is_worse_by_what_was_planted(name: str, mean: float) -> None:
    planted = Planted(name, KNOWN)
    assert planted.mean == mean  # (3/4 + 1/2)/2 and (1/4 + 1/2)/2
    rng, changes = np.random.default_rng(1), list[float]()
    for _ in range(60):
        first, second = planted.pair(rng, 0.1)
        changes.append(float((planted.value(second) - planted.value(first)).mean()))
    assert np.mean(changes) == pytest.approx(0.1, abs=0.01)


def test_the_verdict_is_the_first_that_the_gate_gives_at_any_look() -> None:
    """By the long way: the gate itself at every tenth template."""
    planted, check = Planted("guesses", KNOWN), check_of("guesses")
    first, second = planted.pair(np.random.default_rng(3), 4 * MARGIN)
    runs = (run_of(first), run_of(second))
    change = (planted.value(second) - planted.value(first)).mean(axis=1)
    told, end = sequential(check, runs, change)
    assert (told, verdict(check, runs)) == ("fail", "fail")
    for look in range(10, end + 1, 10):
        early = (runs[0], Early(runs[1].rows.head(4 * look), TEMPLATES))
        assert verdict(check, early) == ("inconclusive" if look < end else "fail")
    assert peeked(change)[1]
