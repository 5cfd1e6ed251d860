"""What a study of reliability says of models whose reliability is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.findings.dependability import of_measure
from evenhand.findings.found import Estimate
from evenhand.findings.reliability import OneRun, _ranking, reliability
from evenhand.instruments import SCORED, Mean
from evenhand.models import ModelRequest
from evenhand.statistics.generalizability import ITEM, Crossed
from evenhand.views import page_of

from .marks import HE, SHE, UNKNOWN, Marks, guessing, run, steady

MARKS = Marks()


def test_a_model_that_always_answers_alike_is_dependable(tmp_path: Path) -> None:
    runs = [run(tmp_path / f"{w}", steady, wording=w) for w in (1, 2, 3)]
    found = reliability(MARKS, runs)
    assert found.sizes == {"wording": 3}
    assert found["named"].one_run.value == pytest.approx(1)
    # No run differed, but 30 works still allow that 1 − 0.05^(1/30) of the answers do; each of them
    # adds 1/2 to the error of one run, and there are three.
    error = (1 - 0.05 ** (1 / 30)) / 2
    assert found["named"].least.low == pytest.approx((0.25 - error) / (0.25 - error + error / 3))
    assert found.verdict.state == "shown"
    (again,) = found.agreement
    assert (again.name, again.value) == ("wording", 1.0)
    assert page_of(found, full=True)


def test_a_model_that_guesses_is_not_ranked_by(tmp_path: Path) -> None:
    runs = [
        run(tmp_path / f"{w}{s}", guessing, wording=w, seed=s) for w in (1, 2, 3) for s in (1, 2)
    ]
    found = reliability(MARKS, runs)
    assert found.sizes == {"wording": 3, "seed": 2}
    assert found.crossed
    phi = found["named"].one_run
    assert phi.value is not None
    assert phi.value < 0.2
    assert found.verdict.state == "not known"
    assert any("No ranking" in line for line in found.verdict.says)
    shares = {one.name: one.value for one in found.agreement}
    assert shares == {
        "seed": pytest.approx(1 / 3, abs=0.1),
        "wording": pytest.approx(1 / 3, abs=0.1),
    }
    assert sum(part.share or 0 for part in found["named"].parts) == pytest.approx(1)


def test_systems_are_ranked_where_they_differ_more_than_their_runs(tmp_path: Path) -> None:
    def often(n: int, k: int, request: ModelRequest) -> str:
        return UNKNOWN if (n + (request.seed or 0)) % 10 == 0 else HE if k else SHE

    def seldom(n: int, k: int, request: ModelRequest) -> str:
        return SHE if (n + (request.seed or 0)) % 10 == 0 and k else UNKNOWN

    runs = [
        run(tmp_path / f"{name}{seed}", script, seed=seed, name=name)
        for name, script in (("often", often), ("seldom", seldom))
        for seed in (1, 2)
    ]
    found = reliability(MARKS, runs)
    assert found.of == "system"
    assert found.ranking is not None
    assert [name.split(", ")[1] for name in found.ranking] == ["seldom", "often"]
    alike = [run(tmp_path / f"g{n}{s}", guessing, seed=s, name=n) for n in "xy" for s in (1, 2)]
    refused = reliability(MARKS, alike)
    assert refused.ranking is None
    assert refused.verdict.state == "not known"


def test_systems_on_both_sides_of_no_bias_are_not_ranked_by_a_signed_score() -> None:
    """+0.3 and −0.2 are told apart well, which says not which of them is nearer to 0."""
    signed = replace(MARKS.measures[0], better="zero", within=(-1, 1))

    def ranked(**means: float) -> tuple[str, ...] | None:
        return _ranking([_one_run(name, value) for name, value in means.items()], signed)

    assert ranked(a=0.3, b=0.1) == ("b", "a")
    assert ranked(a=-0.3, b=-0.1, c=0.0) == ("c", "b", "a")
    assert ranked(a=0.3, b=-0.2) is None


def _one_run(name: str, value: float) -> OneRun:
    estimate = Estimate(name=MARKS.measures[0].name, value=value)
    return OneRun(run=name, system=name, conditions={}, estimates=(estimate,))


class Leaning(Marks):
    """Measures who is named: +1 for her, −1 for him."""

    measures = (
        eh.Measure(name="lean", label="leans to her",
                   statistic=Mean(pl.col("she") - pl.col("named") + pl.col("she")),
                   better="zero", role="primary", within=(-1, 1)),
    )  # fmt: skip


def test_a_study_of_systems_that_lean_both_ways_says_that_they_are_not_ranked(
    tmp_path: Path,
) -> None:
    def hers(n: int, k: int, request: ModelRequest) -> str:
        return UNKNOWN if (n + (request.seed or 0)) % 10 == 0 else SHE

    def his(n: int, k: int, request: ModelRequest) -> str:
        return UNKNOWN if (n + (request.seed or 0)) % 5 == 0 else HE

    runs = [
        run(tmp_path / f"{name}{seed}", script, seed=seed, name=name)
        for name, script in (("hers", hers), ("his", his))
        for seed in (1, 2)
    ]
    found = reliability(Leaning(), runs)
    assert found["lean"].shown
    assert found.ranking is None
    assert any('both sides of "no bias" in leans to her' in line for line in found.verdict.says)


def test_runs_that_are_not_crossed_are_one_facet_and_said_to_be(tmp_path: Path) -> None:
    runs = [
        run(tmp_path / "a", guessing), run(tmp_path / "b", guessing, seed=2),
        run(tmp_path / "c", guessing, wording=2),
    ]  # fmt: skip
    found = reliability(MARKS, runs)
    assert found.sizes == {"run": 3}
    assert not found.crossed
    assert any("not fully crossed" in line for line in found.verdict.says)


def test_one_run_the_same_run_and_the_same_draw_are_refused(tmp_path: Path) -> None:
    first, again = run(tmp_path / "a", steady), run(tmp_path / "b", steady)
    with pytest.raises(eh.UserError, match="give two or more"):
        reliability(MARKS, [first])
    for repeated in (first, again):
        with pytest.raises(eh.UserError, match="are the same draw"):
            reliability(MARKS, [first, repeated])


def test_the_front_door_and_a_file_have_the_study(tmp_path: Path) -> None:
    for seed in (1, 2):
        run(tmp_path / f"{seed}", guessing, seed=seed)
    found = eh.reliability([tmp_path / "1", str(tmp_path / "2")], instrument=MARKS)
    found.save(str(tmp_path / "study.json"))
    assert '"fully_crossed": true' in (tmp_path / "study.json").read_text()
    assert set(found.frame()["effect"]) == {"item", "seed", "item × seed and what is left"}


def _outcomes(values: np.ndarray) -> list[pl.DataFrame]:
    rows = len(values)
    return [
        pl.DataFrame(
            {
                "item_id": [str(n) for n in range(rows)],
                "cluster": [str(n // 2) for n in range(rows)],
                "state": [SCORED if np.isfinite(v) else "missing" for v in column],
                "named": pl.Series(column).fill_nan(None),
                "she": pl.Series(column).fill_nan(None),
                "picked": [str(v) for v in column],
            }
        )
        for column in values.T
    ]


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.floats(0, 0.5), st.floats(0, 0.4))
def test_failing_where_runs_disagree_never_makes_a_ranking(
    drawn: int, noise: float, fails: float
) -> None:
    """Items that answer alike but for some noise; then any answers fail, first of all those that
    disagree with the rest."""
    rng = np.random.default_rng(drawn)
    traits = rng.integers(2, size=(60, 1))
    flipped = rng.random((60, 3)) < noise
    values = np.where(flipped, 1 - traits, traits).astype(float)
    facets = Crossed.of({"seed": [1, 2, 3]})
    whole = of_measure(MARKS, MARKS.measures[0], _outcomes(values), facets, ITEM)
    failed = values.copy()
    failed[flipped & (rng.random((60, 3)) < 2 * fails)] = np.nan
    failed[rng.random((60, 3)) < fails / 4] = np.nan
    found = of_measure(MARKS, MARKS.measures[0], _outcomes(failed), facets, ITEM)
    assert found.incomplete == int(np.isnan(failed).any(axis=1).sum())
    for end in ("value", "low"):
        before, after = (getattr(one.least, end) for one in (whole, found))
        assert after is None or after <= before + 1e-12
    assert whole.shown or not found.shown
