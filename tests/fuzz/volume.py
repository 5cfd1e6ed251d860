"""Runs a check over many drawn inputs, and counts those that really ran.

Where an input is made of decisions, many are drawn at once: drawing takes ten times as long as
most checks do, and hardly longer for more bytes.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

PLANNED: dict[str, int] = {}
RAN: Counter[str] = Counter()
READ: Counter[str] = Counter()
ONE_SIDED: set[str] = set()

_EACH, _AT_ONCE = 48, 10  # bytes of an input, inputs of a draw
# Of one size: a third cheaper to draw.
DECISIONS = st.binary(min_size=_EACH * _AT_ONCE, max_size=_EACH * _AT_ONCE)


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

        many = drawn_from is DECISIONS

        def run(drawn: Any) -> None:
            for one in _inputs(drawn) if many else (drawn,):
                RAN[name] += 1
                READ[name] += check(one)

        run.__name__ = run.__qualname__ = name
        run.__module__, run.__doc__ = check.__module__, check.__doc__
        careless = [HealthCheck.too_slow, HealthCheck.data_too_large]
        kept = settings(
            max_examples=-(-examples // _AT_ONCE) if many else examples,
            deadline=None,
            derandomize=True,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=careless,
        )
        return kept(given(drawn_from)(run))

    return decorate


def _inputs(drawn: bytes) -> Iterator[bytes]:
    return (drawn[at : at + _EACH] for at in range(0, len(drawn), _EACH))
