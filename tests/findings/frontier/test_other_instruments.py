"""A frontier of instruments that are not BBQ: without a vote, without a utility, without a harm."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from evenhand.core.errors import UserError
from evenhand.experiments.frontiers import chosen
from evenhand.findings.cost_effectiveness import CostVerdict
from evenhand.findings.frontier import FrontierArm, frontier
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.squad.instrument import Squad
from evenhand.views import page_of
from evenhand.views.blocks import Line
from evenhand.views.charts import charts_of
from tests.coded import coded
from tests.errors import assert_names, raises_naming

from .small_bbq import Rule, played


class HarmAlone(Bbq):
    """BBQ as if nobody had said what a method must not cost."""

    utility = None  # type: ignore[assignment]


class AsText(Bbq):
    """BBQ as if its answers were no options, so that there is nothing to vote among."""

    references: ClassVar = ("default", "fairness")


def _stereotyped(_: int, condition: str) -> str:
    return "biased" if condition == "ambig" else "gold"


def _right(_: int, condition: str) -> str:
    return "unknown" if condition == "ambig" else "gold"


async def _arms(folder: Path, rules: Mapping[str, Rule], templates: int) -> list[FrontierArm]:
    return [
        FrontierArm(name=name, run=await played(folder / name, rule, calls=1, templates=templates))
        for name, rule in rules.items()
    ]


async def test_without_a_utility_nothing_is_called_worth_it(tmp_path: Path) -> None:
    rules = dict.fromkeys(("default", "fairness", "self_consistency"), _stereotyped)
    arms = await _arms(tmp_path, {**rules, "good": _right, "same": _stereotyped}, 183)
    found = frontier(HarmAlone(), arms, calls=1)
    kinds = {entry.name: worth.kind for entry, worth in found.judged()}
    assert kinds == {"good": CostVerdict.UTILITY_NOT_MEASURED, "same": CostVerdict.NOT_WORTH_IT}
    assert found.verdict.state != "detected"
    assert found.pareto == ("good",)  # least harm, and no call more
    drawing = charts_of(found)[0]
    assert_names(drawing.title, "utility")
    assert f">{found.cost_axis} an answer</text>" in drawing.svg
    said = [block.text for block in page_of(found) if isinstance(block, Line)]
    assert any("utility" in line for line in said)
    with_utility = frontier(Bbq(), arms, calls=1)
    assert with_utility["good"].worth is not None
    assert with_utility["good"].worth.kind is CostVerdict.WORTH_IT
    assert coded(with_utility.verdict.says, "frontier.take")["method"] == "good"


async def test_texts_are_held_against_the_fairness_prompt_alone(tmp_path: Path) -> None:
    rules = {"default": _stereotyped, "fairness": _stereotyped, "good": _right}
    found = frontier(AsText(), await _arms(tmp_path, rules, 12), calls=1)
    assert list(found["good"].harm_against) == ["fairness"]
    # One comparison: the p of sign flips, 2^(1-12), is not multiplied.
    assert found["good"].harm_against["fairness"].p_holm == pytest.approx(2**-11)


def test_the_references_follow_from_what_is_asked() -> None:
    assert Bbq().compared_with() == ("default", "fairness", "self_consistency")
    assert Squad().compared_with() == ("default", "fairness")
    usual = [one.name for one in chosen((), 8, Squad())]
    assert usual[:2] == ["default", "fairness"]
    assert "stardtox" in usual
    assert not {"cot", "self_consistency", "mabrf"} & set(usual)


def test_an_instrument_without_a_harm_has_no_frontier() -> None:
    with raises_naming(UserError, "squad", "harm", "RUN_A RUN_B"):
        frontier(Squad(), [], calls=1)
