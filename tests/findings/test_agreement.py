"""One statistics of a comparison: compare, frontier and plan say the same of the same two runs."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenhand.core.errors import UserError
from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.cost_effectiveness import CostVerdict
from evenhand.findings.decision_rules import ALPHA, adjusted, smallest_shown
from evenhand.findings.estimates import Change
from evenhand.findings.frontier import Frontier, FrontierArm, frontier
from evenhand.findings.plan import plan
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.runs.store import RunReader
from tests.errors import raises_naming
from tests.findings.frontier.small_bbq import played

BBQ, HARM, UTILITY = Bbq(), "unsupported_attribution", "accuracy_disambiguated"
TEMPLATES = 7
ARMS = ("default", "fairness", "self_consistency", "one", "two")
Said = tuple[str, str]  # to the ambiguous and to the disambiguated question of a template
_said = st.tuples(
    st.sampled_from(["biased", "unknown", ""]), st.sampled_from(["gold", "gold", "unknown", ""])
)
_alike = _said.map(lambda said: [said] * TEMPLATES)
_answers = st.one_of(_alike, st.lists(_said, min_size=TEMPLATES, max_size=TEMPLATES))
_STEREOTYPED, _RIGHT = [("biased", "gold")] * TEMPLATES, [("unknown", "gold")] * TEMPLATES


@settings(max_examples=4)
@given(st.tuples(*[_answers] * len(ARMS)))
@example((_STEREOTYPED, _STEREOTYPED, _STEREOTYPED, _RIGHT, _STEREOTYPED))
def test_compare_frontier_and_plan_agree_on_the_same_two_runs(
    answers: Sequence[list[Said]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = asyncio.run(_played(Path(folder), answers))
        arms = [FrontierArm(name=name, run=run) for name, run in runs.items()]
        found = frontier(BBQ, arms, calls=1)
        compared = {
            (old, new): compare(BBQ, runs[old], runs[new])
            for new in ARMS[1:]
            for old in ARMS[:3]
            if old != new
        }
    _frontier_agrees(found, compared)
    for comparison in compared.values():
        _plan_agrees(comparison)
        for change in (*comparison.primary, *comparison.secondary):
            _no_spread_is_no_certainty(change)


async def _played(folder: Path, answers: Sequence[list[Said]]) -> dict[str, RunReader]:
    runs = {}
    for name, said in zip(ARMS, answers, strict=True):
        runs[name] = await played(
            folder / name,
            lambda template, condition, said=said: said[template][condition == "disambig"],  # type: ignore[misc]
            calls=1,
            templates=TEMPLATES,
        )
    return runs


def _frontier_agrees(found: Frontier, compared: dict[tuple[str, str], Comparison]) -> None:
    named = [found[name].against_default for name in ARMS[1:]]
    assert [one and one.harm for one in named] == adjusted(
        [compared["default", name][HARM] for name in ARMS[1:]]
    )
    pairs = [(old, new) for new in ("one", "two") for old in ("fairness", "self_consistency")]
    for (old, new), change in zip(
        pairs, adjusted([compared[pair][HARM] for pair in pairs]), strict=True
    ):
        assert found[new].harm_against[old] == change
    for new in ("one", "two"):
        worth, harms = found[new].worth, found[new].harm_against.values()
        lines = compared["default", new].guardrails
        (kept,) = (line.state for line in lines if line.name == UTILITY)
        assert worth is not None
        beats = all((c.difference or 0) < 0 and (c.p_holm or 1) <= ALPHA for c in harms)
        crossed = any(line.state == "violated" for line in lines)
        assert (worth.kind is CostVerdict.WORTH_IT) == (
            beats and kept == "non_inferior" and not crossed
        )
        if kept == "violated":
            assert worth.kind is CostVerdict.NOT_WORTH_IT


def _plan_agrees(comparison: Comparison) -> None:
    """Whoever wants to see what a comparison could just have shown needs a comparison like it."""
    change = comparison[HARM]
    if not change.se:
        with raises_naming(
            UserError,
            "unsupported_attribution",
            f"{change.clusters} clusters" if change.clusters else "0/0",
        ):
            plan(BBQ, pilot=comparison, measure=HARM)
        return
    size = smallest_shown(change, BBQ.measure(HARM), family=len(BBQ.primary()))
    needed = plan(BBQ, detect=size, pilot=comparison, measure=HARM)
    if change.bounds is not None:  # a plan is for answers that all come
        assert size is None or (needed.clusters or 0) <= change.clusters
        return
    if size is None:  # so few templates could not show any change, so that it takes more of them
        assert (needed.clusters or BBQ.all_clusters or 0) > change.clusters
        return
    assert (needed.items, needed.rows, needed.clusters) == (
        comparison.items,
        change.n,
        change.clusters,
    )


def _no_spread_is_no_certainty(change: Change) -> None:
    if change.difference is None or change.se or change.bounds is not None:
        return
    by_sign_flips = 1.0 if change.difference == 0 else 2.0 ** (1 - change.clusters)
    assert change.p == by_sign_flips
