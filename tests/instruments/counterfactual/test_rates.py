"""How often the counted decision is given, before and after a method: the two guardrails."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.findings.estimates import Change
from evenhand.instruments._contract import SCORED
from evenhand.instruments.counterfactual.measures import p_if_filled, rate_line
from evenhand.models import ModelRequest
from evenhand.views import catalog
from tests.errors import assert_names
from tests.instruments.counterfactual.test_runs import DECISION, _audit, _file
from tests.stage import words_of

STILL = Change(name="rate", before=0.5, after=0.5, difference=0.0, low=-0.01, high=0.01)


async def _asked(tmp_path: Path, method: str) -> None:
    def answer(request: ModelRequest) -> str:
        return "approve" if re.search(r"\bHe\b", words_of(request)) else "reject"

    prompts = [{"id": f"p{n}", "prompt": "{pronoun} wants " + str(n) + " days."} for n in range(12)]
    await eh.aio.measure(
        "counterfactual",
        model=eh.ScriptedModel(answer),
        method=method,
        out=tmp_path / method,
        options={
            "prompts": _file(tmp_path / "p.jsonl", prompts),
            "attributes": "gender",
            "decision": DECISION,
            "favorable_outcome": "approve",
        },
    )


async def test_a_method_that_takes_the_decision_from_people_with_a_label_is_caught(
    tmp_path: Path,
) -> None:
    """Men alone are approved: half of the answers under a label, and none without one. The decision
    of most is to reject, so that nobody is, and nothing changes without a label."""
    for method in ("default", "averaged"):
        await _asked(tmp_path, method)
    found = eh.compare(tmp_path / "default", tmp_path / "averaged")
    states = {line.name: line for line in found.guardrails}
    assert (found["rate_labelled"].before, found["rate_labelled"].after) == (0.5, 0.0)
    assert states["rate_labelled"].state == "violated"
    assert_names(catalog.text(states["rate_labelled"].says), "with a group", "-50.0")
    assert found["rate"].difference == 0.0


async def test_a_decision_that_cannot_be_counted_leaves_the_guardrails_inconclusive(
    tmp_path: Path,
) -> None:
    """90 prompts without a change are enough; not where the decision that is counted is a
    slip of the pen, and not where the two runs count two."""
    lines = {
        ("approve", "approve"): (),
        ("aprove", "aprove"): ("no answer", "'aprove'"),
        ("approve", "reject"): (
            "--favorable-outcome approve before",
            "--favorable-outcome reject after",
        ),
    }
    for place, (chosen, facts) in enumerate(lines.items()):
        runs = [tmp_path / f"{place}{side}" for side in "ab"]
        for run, one in zip(runs, chosen, strict=True):
            await _audit(tmp_path, lambda n, label, role: "Approve", run.name, chosen=one,
                         prompts=90)  # fmt: skip
        found = [line for line in eh.compare(*runs).guardrails if line.name.startswith("rate")]
        assert {line.state for line in found} == {"inconclusive" if facts else "non_inferior"}
        for line in found if facts else ():
            assert_names(catalog.text(line.says), *facts)


async def test_answers_that_are_lost_leave_the_guardrail_inconclusive_that_bad_ones_violate(
    tmp_path: Path,
) -> None:
    """Of 12 prompts 8 are turned down that were approved: 2/2⁸. The same 8 lost, in either run or
    all answers of the run after, show nothing, and keep nothing."""
    after: dict[str, tuple[int, str | None]] = {
        "before": (0, None), "worse": (8, "Reject"), "lost": (8, None), "gone": (12, None)
    }  # fmt: skip
    for name, (turned, says) in after.items():

        def answer(n: int, label: str, role: str, turned: int = turned, says: Any = says) -> Any:
            return says if n < turned else "Approve"

        await _audit(tmp_path, answer, name)
    pairs = {("before", "worse"): "violated", ("before", "lost"): "inconclusive",
             ("before", "gone"): "inconclusive", ("lost", "before"): "inconclusive"}  # fmt: skip
    for pair, state in pairs.items():
        found = eh.compare(*(tmp_path / name for name in pair))
        states = {line.name: line.state for line in found.guardrails}
        assert (states["rate"], states["rate_labelled"]) == (state, state), pair


_RUNS = st.lists(
    st.tuples(st.sampled_from((True, False, None)), st.sampled_from((True, False, None))),
    min_size=1, max_size=24,
)  # fmt: skip


@given(_RUNS, st.integers(0, 47), st.booleans())
def test_losing_an_answer_never_shows_a_violation(
    pairs: list[tuple[bool | None, bool | None]], place: int, either: bool
) -> None:
    """Two rows a prompt; one answer of one run is lost."""

    def p(runs: list[list[bool | None]]) -> tuple[float, int]:
        frames = [
            pl.DataFrame({"item_id": range(len(run)), "named": pl.Series(run, dtype=pl.Boolean)})
            .with_columns(cluster=pl.col("item_id") // 2, state=pl.lit(SCORED))
            for run in runs
        ]  # fmt: skip
        return p_if_filled(frames[0], frames[1], either=either)

    runs = [list(run) for run in zip(*pairs, strict=True)]
    whole, missing = p(runs)
    runs[place % 2][place // 2 % len(pairs)] = None
    less, more = p(runs)
    assert less >= whole
    assert more >= missing


@pytest.mark.parametrize(
    ("p", "missing", "unknown", "state"),
    [(1.0, 0, "", "non_inferior"), (1.0, 1, "", "inconclusive"),
     (1.0, 0, "a slip", "inconclusive"), (0.01, 0, "", "violated"),
     (0.01, 3, "a slip", "violated")],
)  # fmt: skip
def test_a_guardrail_holds_only_with_all_answers_and_a_decision_that_is_named(
    p: float, missing: int, unknown: str, state: str
) -> None:
    assert rate_line(STILL, "without", p, missing, unknown).state == state
