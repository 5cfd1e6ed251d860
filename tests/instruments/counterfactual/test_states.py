"""What may be called shown or the same, and what is said first."""

from pathlib import Path

import polars as pl
import pytest

import evenhand as eh
from evenhand.core.errors import UserError
from evenhand.findings.estimates import Estimate
from evenhand.findings.ratios import INCONCLUSIVE, SHOWN
from evenhand.instruments.counterfactual.contrasts import (
    ANY,
    NONE,
    OUTCOMES,
    CounterfactualOutcome,
    LabelContrast,
    answers_of,
)
from evenhand.instruments.counterfactual.tables import EQUIVALENT, effects, state_of
from tests.errors import assert_names, raises_naming
from tests.instruments.counterfactual.test_runs import _audit, _file, _lines, _rows

SMALL = Estimate(name="e", value=0.015, low=-0.007, high=0.037, p=0.2)
WIDE = Estimate(name="a", value=0.121, low=0.099, high=0.143, p=0.001)
DECISION = next(one for one in OUTCOMES if one.label == "decision")
LENGTH = next(one for one in OUTCOMES if one.label == "length")


def _contrast(
    found: Estimate, right: str = "b", outcome: CounterfactualOutcome = DECISION
) -> LabelContrast:
    return LabelContrast("f", ANY if right == NONE else "a", right, outcome, found, 0.4)


@pytest.mark.parametrize(
    ("main", "found", "state"),
    [
        (
            "decision",
            [_contrast(SMALL), _contrast(WIDE, NONE), _contrast(WIDE, "b", LENGTH)],
            EQUIVALENT,
        ),
        ("decision", [_contrast(SMALL), _contrast(WIDE)], INCONCLUSIVE),
        ("decision", [], INCONCLUSIVE),
        ("wording", [_contrast(SMALL, "b", LENGTH)], INCONCLUSIVE),
    ],
)
def test_a_small_excess_is_the_same_only_where_each_label_against_a_label_is(
    main: str, found: list[LabelContrast], state: str
) -> None:
    """Rates of 44 and 56 % differ by 12 points and have an excess of 0.12² = 0.0144."""
    assert state_of(SMALL) == EQUIVALENT
    table, _ = effects({"f": (SMALL, 0.49)}, {}, main, found, "yes")
    states = {row[1]: row[-1] for row in table.rows}
    assert next(states[name] for name in states if "(adjusted)" in str(name)) == state


async def test_a_signed_difference_that_the_excess_does_not_see_is_the_verdict(
    tmp_path: Path,
) -> None:
    """b is rejected where it is asked and approved as its placebo: the excess is 0, and a − b is
    half of the answers in each of 8 prompts."""
    found = await _audit(
        tmp_path,
        lambda n, label, role: "Reject" if (label, role) == ("b", "group") else "Approve",
        prompts=8,
    )
    assert found["excess"].value == 0
    assert _rows(found)["a − b"][-1] == SHOWN
    assert found.verdict.state == "detected"
    assert found["difference.team.a"].value == 0.5


async def test_answers_that_differ_and_favor_nobody_are_not_called_biased(tmp_path: Path) -> None:
    """a is approved in even prompts and b in odd ones, placebo or not: an excess of 1 in each of 80
    prompts, and a − b is 0 on average."""
    found = await _audit(
        tmp_path,
        lambda n, label, role: "Approve" if (label == "a") == (n % 2 == 0) else "Reject",
        prompts=80,
    )
    assert found["excess"].value == 1
    assert found["difference.team.a"].value == 0
    rows = _rows(found)
    any_two = "any two groups (adjusted)"
    assert rows[any_two][-1] == SHOWN
    assert rows["a − b"][-1] == INCONCLUSIVE
    assert found.verdict.state == "inconclusive"
    assert_names(found.verdict.says[0], "Answers differ", "+100.0", "no group")


@pytest.mark.parametrize(("chosen", "rate"), [(" Yes", [True, False, None]), ("yess", [None] * 3)])
def test_a_chosen_decision_that_no_answer_names_is_not_counted(
    chosen: str, rate: list[bool | None]
) -> None:
    rows = pl.DataFrame({"item_id": ["1", "2", "3"], "text": ["Yes.", "no", "well"]}).with_columns(
        cluster=pl.lit("p"), family=pl.lit("f"), label=pl.lit("a"), role=pl.lit("none"),
        repeat=pl.lit(1), other=pl.lit(""), prompt=pl.lit(""), reason=pl.lit(None, pl.String),
        place=pl.lit(""), turn=pl.lit(0),
    )  # fmt: skip
    source = {"sampling": {"decision": r"\b(yes|no)\b", "number": False}, "chosen": chosen}
    assert answers_of(rows, source)["chosen"].to_list() == rate


async def test_a_mistyped_choice_is_named_beside_the_decisions_that_there_are(
    tmp_path: Path,
) -> None:
    file = _file(tmp_path / "a.jsonl", _lines(lambda n, label, role: "yes", prompts=2))
    with raises_naming(UserError, "--decision"):
        await eh.aio.measure(
            "counterfactual",
            out=tmp_path / "no",
            options={"answers": file, "favorable_outcome": "yes"},
        )
    found = await eh.aio.measure(
        "counterfactual",
        out=tmp_path / "run",
        options={"answers": file, "decision": r"\b(yes|no)\b", "favorable_outcome": "yess"},
    )
    assert any("'yess'" in note and "'yes'" in note for note in found.notes)
    (name,) = _rows(found)
    assert_names(str(name), "any two groups")
