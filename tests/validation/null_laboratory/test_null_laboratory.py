"""Audits without bias are rarely called biased, and a bias of twice the stated size is found.

Here all cases of a command go in turn, until Wald's sequential test tells 5 % false from 10 %, and
90 % found from 75 %; it is wrong in 2 %. `make bench-null` has 400 audits without bias and 200 with
one for each case.
"""

import json

import numpy as np
import pytest

from bench.null_laboratory import (
    BEGINS,
    ENDS,
    LIKE,
    NULL,
    PAGE,
    PLANTED,
    RECORD,
    QuickLook,
    Row,
    cases_by,
    likelier,
    most_false,
    table,
)
from evenhand.core import registry
from evenhand.instruments import instrument_named

COMMANDS = cases_by("command")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_few_audits_without_bias_are_called_biased_and_a_planted_bias_is_found(
    command: str,
) -> None:
    look = QuickLook.of(COMMANDS[command], command)
    assert look.few_false
    assert look.most_found


@pytest.mark.parametrize(
    ("chance", "first", "second", "tells"), [(0.05, 0.05, 0.1, True), (0.1, 0.05, 0.1, False),
                                            (0.9, 0.9, 0.75, True), (0.75, 0.9, 0.75, False)]
)  # fmt: skip
def test_a_quick_look_is_wrong_in_few_cases(
    chance: float, first: float, second: float, tells: bool
) -> None:
    """As many draws as the laboratory has: 2 % are wrong, and some more where draws run out."""
    rng, most = np.random.default_rng(3), NULL if first < second else PLANTED
    told = [likelier(rng.random(most) < chance, first, second) for _ in range(1_000)]
    assert told.count(not tells) <= 45


def test_a_quick_look_takes_as_many_draws_as_it_was_told() -> None:
    draws = iter([True] * 100)
    assert likelier(draws, 0.9, 0.75, least=40)
    assert len(list(draws)) == 60


def test_every_instrument_that_draws_a_conclusion_is_in_the_laboratory() -> None:
    """A verdict of one run rests on a score with an unbiased value; what has a primary measure is
    compared."""
    measured = {case.instrument for case in COMMANDS["measure"]}
    compared = {case.instrument for case in COMMANDS["compare"]}
    for name in registry.OWN["instruments"]:
        instrument = instrument_named(LIKE.get(name, name))
        judged = instrument.selects is not None or instrument.name == "counterfactual"
        primary = instrument.primary()
        scored = judged or any(one.null is not None for one in primary)
        assert (instrument.name in measured) == scored, name
        assert (instrument.name in compared) == (judged or bool(primary)), name


def test_a_share_may_lie_two_standard_errors_above_5_percent() -> None:
    """0.05 + 2·√(0.05·0.95/400) = 0.05 + 2·0.010897."""
    assert most_false(400) == pytest.approx(0.0717945, abs=1e-6)


def test_the_page_has_the_rows_that_were_recorded() -> None:
    """A record has every path or every case, and none beyond its bar."""
    text = PAGE.read_text()
    written = text.split(BEGINS)[1].split(ENDS)[0]
    if not RECORD.exists():
        assert not written.strip()
        return
    kept = json.loads(RECORD.read_text())
    recorded = [Row(**one) for one in kept["rows"]]
    names = {one.name for one in recorded}
    assert names >= set(cases_by("path")) or names >= set(cases_by("name"))
    assert all((one.null, one.planted) == (NULL, PLANTED) and one.holds for one in recorded)
    assert f"{BEGINS}{written}{ENDS}" == table(recorded, kept["versions"])
