"""Runs a check over many drawn inputs, and counts those that really ran."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

PLANNED: dict[str, int] = {}
RAN: Counter[str] = Counter()
READ: Counter[str] = Counter()
ONE_SIDED: set[str] = set()

DECISIONS = st.binary(min_size=48, max_size=48)  # of one size: a third cheaper to draw


def fuzz(
    examples: int, drawn_from: st.SearchStrategy[Any], *, one_sided: bool = False
) -> Callable[[Callable[[Any], bool]], Callable[[], None]]:
    """Make a test of a check that says whether its input was read (True) or refused (False).

    It must see both, so that it cannot become empty unnoticed, unless it is one-sided by nature.
    """

    def decorate(check: Callable[[Any], bool]) -> Callable[[], None]:
        name = check.__name__
        assert name not in PLANNED, f"two tests are called {name}"
        PLANNED[name] = examples
        if one_sided:
            ONE_SIDED.add(name)

        def run(drawn: Any) -> None:
            RAN[name] += 1
            READ[name] += check(drawn)

        run.__name__ = run.__qualname__ = name
        run.__module__, run.__doc__ = check.__module__, check.__doc__
        careless = [HealthCheck.too_slow, HealthCheck.data_too_large]
        kept = settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=careless,
        )
        return kept(given(drawn_from)(run))

    return decorate
