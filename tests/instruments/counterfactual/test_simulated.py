"""The simulations, small; design/simulations.md has the large ones (`bench/simulated/swaps.py`)."""

import numpy as np
import polars as pl
import pytest

from bench.simulated.swaps import (
    Audit,
    contrasts_of,
    excess_of,
    flagged,
    long_tails,
    rare,
    seen,
)
from evenhand.instruments.counterfactual.contrasts import OUTCOMES, contrasts, excesses
from evenhand.instruments.counterfactual.measures import power_of, prompts_needed


def test_an_audit_of_placebos_alone_is_seldom_flagged() -> None:
    """Refusals of 2 % and four labels: none, or a few of 60 audits, are flagged."""
    excess, signed, _ = flagged(rare, False, (2, 4), prompts=24, audits=60)
    assert excess <= 0.1
    assert signed <= 0.1


def test_a_planned_size_reaches_its_power() -> None:
    prompts, power = seen(0.2, families=1, audits=300)
    assert prompts == prompts_needed(0.2) < 50
    assert power == pytest.approx(0.8, abs=0.07)


def test_the_power_of_so_many_prompts_is_the_sum_of_binomials_by_hand() -> None:
    """No placebo effect and an excess of 1: each prompt flips, and six of six are 2/2⁶ = 0.03."""
    assert power_of(6, 1.0, placebo=0.0) == pytest.approx(1.0)
    assert power_of(5, 1.0, placebo=0.0) == pytest.approx(0.0)
    assert power_of(6, 1.0, placebo=0.0, families=2) == pytest.approx(0.0)
    assert prompts_needed(1.0, placebo=0.0) == 6


def test_the_simulation_and_the_instrument_give_the_same_numbers() -> None:
    """One audit of four labels and 12 prompts of numbers, with the pairs of the instrument."""
    rng = np.random.default_rng(3)
    audit = long_tails(rng, (1, 12, 4))
    pairs = np.array([rng.permutation(4) for _ in range(12)])
    excess = excess_of(audit, pairs, relative=True)[0]
    signed = [values[0].mean() for values in contrasts_of(audit, pairs, relative=True)]
    rows = pl.DataFrame(_rows(audit, pairs))
    ours = rows.join(excesses(rows), on="item_id").group_by("cluster", maintain_order=True)
    assert ours.agg(pl.col("excess.number").mean())["excess.number"].to_numpy() == pytest.approx(
        excess
    )
    number = next(one for one in OUTCOMES if one.name == "number")
    found = contrasts(rows, {"f": [str(label) for label in range(4)]}, [number])
    assert [one.found.value for one in found] == pytest.approx(signed)


@pytest.mark.parametrize("relative", [True, False])
def test_an_answer_that_goes_missing_helps_no_claim(relative: bool) -> None:
    """The p-value of every contrast only rises, and its interval only grows."""
    rng = np.random.default_rng(5)
    group = rng.random((1, 14, 2)) < np.array([0.9, 0.2])
    audit = Audit(group.astype(float), group.astype(float))
    rows = pl.DataFrame(_rows(audit, np.tile([0, 1], (14, 1))))
    name = "number" if relative else "chosen"
    outcome = next(one for one in OUTCOMES if one.name == name)
    rows = rows.with_columns(pl.col("number").alias(name))
    (before,) = contrasts(rows, {"f": ["0", "1"]}, [outcome])
    for place in range(0, len(rows), 5):
        gone = pl.when(pl.int_range(pl.len()) != place).then(pl.col(name)).alias(name)
        (after,) = contrasts(rows.with_columns(gone), {"f": ["0", "1"]}, [outcome])
        assert (after.found.p or 0.0) >= (before.found.p or 0.0)
        assert (after.found.low or 0.0) <= (before.found.low or 0.0)
        assert (after.found.high or 0.0) >= (before.found.high or 0.0)


def _rows(audit: Audit, pairs: np.ndarray) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for prompt, order in enumerate(pairs.tolist()):
        for place, label in enumerate(order):
            for role, values in (("group", audit.group), ("placebo", audit.placebo)):
                rows.append({
                    "item_id": f"{prompt}/{label}/{role}", "cluster": str(prompt), "family": "f",
                    "label": str(label), "role": role, "repeat": 1, "place": "", "turn": 0,
                    "other": str(order[place ^ 1]), "number": float(values[0, prompt, label]),
                })  # fmt: skip
    return rows
