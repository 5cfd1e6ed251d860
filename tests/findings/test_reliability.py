"""What a study of reliability says of models whose reliability is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.findings.dependability import ITEM, CrossedDesign, of_measure
from evenhand.findings.display import Remark
from evenhand.findings.reliability import ranking, reliability, told_apart
from evenhand.instruments import SCORED
from evenhand.models import ModelRequest
from evenhand.views import page_of
from tests.coded import coded, codes
from tests.errors import raises_naming

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
    assert found.verdict.state == "detected"
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
    assert found.verdict.state == "inconclusive"
    assert "phi.no_ranking" in codes(found.verdict.says)
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
    (pair,) = found.pairs
    assert (pair.better or "").endswith("seldom")
    said = coded(found.verdict.says, "systems.better")
    assert [name.endswith("seldom") for name in said["better"]] == [True]
    assert said["measure"] == "names somebody"
    assert page_of(found)
    alike = [run(tmp_path / f"g{n}{s}", guessing, seed=s, name=n) for n in "xy" for s in (1, 2)]
    refused = reliability(MARKS, alike)
    assert refused.pairs == ()
    assert refused.verdict.state == "inconclusive"
    decoy = reliability(MARKS, [*alike, *runs[2:]])  # far better, and no reason to order the others
    better = {(one.first[-1], one.second[-1]): one.better for one in decoy.pairs}
    assert decoy.verdict.state == "detected"
    assert better["x", "y"] is None
    assert all((better[name, "seldom"[-1]] or "").endswith("seldom") for name in "xy")
    alike_ = coded(decoy.verdict.says, "systems.alike")
    assert (alike_["first"][-1], alike_["second"][-1]) == ("x", "y")


def _alone(values: dict[str, float], measure: eh.Measure) -> dict[tuple[str, str], str | None]:
    """Systems of one run each over 40 clusters, whose items scatter around these means."""
    rng = np.random.default_rng(7)
    table = np.column_stack([rng.normal(mean, 0.1, 40) for mean in values.values()])
    pairs = told_apart(measure, table, list(range(40)), list(values))
    for one in pairs:
        assert None not in (one.low, one.high)
        assert ((one.low or 0) <= 0 <= (one.high or 0)) is (one.better is None) or measure.null == 0
    return {(one.first, one.second): one.better for one in pairs}


def test_only_systems_that_are_told_apart_are_ordered() -> None:
    """A decoy far from two equal ones does not rank these."""
    found = _alone({"a": 0.30, "b": 0.30, "c": 0.90}, MARKS.measures[0])
    assert found == {("a", "b"): None, ("a", "c"): "a", ("b", "c"): "b"}
    higher = replace(MARKS.measures[0], better="higher")
    assert _alone({"a": 0.30, "b": 0.30, "c": 0.90}, higher)["a", "c"] == "c"


def test_of_a_signed_score_the_one_nearer_to_no_bias_is_better_and_both_have_to_be_shown() -> None:
    """+0.3 and −0.3 are told apart well, which says not which of them is nearer to 0."""
    signed = replace(MARKS.measures[0], better="zero", within=(-1, 1))
    assert signed.null == 0
    assert _alone({"a": 0.3, "b": 0.1}, signed) == {("a", "b"): "b"}
    assert _alone({"a": -0.3, "b": -0.1}, signed) == {("a", "b"): "b"}
    assert _alone({"a": 0.3, "b": -0.3}, signed) == {("a", "b"): None}
    assert _alone({"a": 0.6, "b": -0.3}, signed) == {("a", "b"): "b"}


def test_systems_in_words_name_who_is_better_and_who_cannot_be_told_apart() -> None:
    pairs = told_apart(
        MARKS.measures[0],
        np.column_stack([np.tile([0.0, 1.0], 20), np.tile([1.0, 0.0], 20), np.full(40, 2.0)]),
        list(range(40)),
        ["A", "B", "C"],
    )
    assert ranking(pairs, "harm") == [
        Remark("systems.better", better=("A", "B"), worse=("C",), measure="harm"),
        Remark("systems.alike", first="A", second="B"),
    ]


@pytest.mark.parametrize("apart", [0.0, 0.5])
def test_equal_systems_are_told_apart_in_at_most_one_study_of_twenty(apart: float) -> None:
    """100 studies of two systems over 20 clusters; those that lie half a point apart are found."""
    rng, found = np.random.default_rng(20261118), 0
    for _ in range(100):
        table = rng.binomial(1, [0.3, 0.3 + apart], (40, 2)).astype(float)
        (pair,) = told_apart(MARKS.measures[0], table, [n // 2 for n in range(40)], ["a", "b"])
        found += pair.better is not None
    assert found / 100 <= 0.05 + 2 * (0.05 * 0.95 / 100) ** 0.5 if not apart else found / 100 >= 0.8


def test_runs_that_are_not_crossed_are_one_facet_and_said_to_be(tmp_path: Path) -> None:
    runs = [
        run(tmp_path / "a", guessing), run(tmp_path / "b", guessing, seed=2),
        run(tmp_path / "c", guessing, wording=2),
    ]  # fmt: skip
    found = reliability(MARKS, runs)
    assert found.sizes == {"run": 3}
    assert not found.crossed
    assert "phi.not_crossed" in codes(found.verdict.says)


def test_one_run_the_same_run_and_the_same_draw_are_refused(tmp_path: Path) -> None:
    first, again = run(tmp_path / "a", steady), run(tmp_path / "b", steady)
    with raises_naming(eh.UserError, "--order-seed 1", "--out runs/order1"):
        reliability(MARKS, [first])
    for repeated in (first, again):
        with raises_naming(eh.UserError, first.path, repeated.path, "--seed"):
            reliability(MARKS, [first, repeated])


def test_the_front_door_and_a_file_have_the_study(tmp_path: Path) -> None:
    for seed in (1, 2):
        run(tmp_path / f"{seed}", guessing, seed=seed)
    found = eh.stability([tmp_path / "1", str(tmp_path / "2")], instrument=MARKS)
    found.save(str(tmp_path / "study.json"))
    assert '"fully_crossed": true' in (tmp_path / "study.json").read_text()
    effects = set(found.frame()["effect"])
    assert {"item", "seed"} < effects
    assert len(effects) == 3


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
    facets = CrossedDesign.of({"seed": [1, 2, 3]})
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
