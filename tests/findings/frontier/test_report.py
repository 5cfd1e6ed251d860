"""The report on runs whose every answer is written down; the numbers are worked out by hand."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from rich.console import Console

from evenhand.core.errors import UserError
from evenhand.core.prices import Price, Prices
from evenhand.findings.cost_effectiveness import CostVerdict, Worth
from evenhand.findings.display import Remark, RemarkOrText
from evenhand.findings.frontier import (
    AgainstDefault,
    Frontier,
    FrontierArm,
    FrontierEntry,
    equal_calls,
    frontier,
)
from evenhand.findings.item_cost import ItemCost
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.runs.store import RunReader
from evenhand.views import page_of, terminal_of
from evenhand.views.blocks import Line
from evenhand.views.charts import of_frontier
from evenhand.views.files import write_frontier
from tests.coded import coded, every
from tests.errors import assert_names, raises_naming

from .small_bbq import Rule, played

TEMPLATES = 12


def _stereotyped(_: int, condition: str) -> str:
    return "biased" if condition == "ambig" else "gold"


def _right(_: int, condition: str) -> str:
    return "unknown" if condition == "ambig" else "gold"


def _half_right(template: int, condition: str) -> str:
    return _right(template, condition) if template % 2 else _stereotyped(template, condition)


def _never_says(_: int, __: str) -> str:
    return "unknown"


def _silent_twice(template: int, condition: str) -> str:
    return "" if template < 2 else _right(template, condition)


async def _arms(
    folder: Path,
    methods: Mapping[str, tuple[Rule, int]],
    *,
    references: Rule = _stereotyped,
    templates: int = TEMPLATES,
) -> list[FrontierArm]:
    """The methods beside a default, a fairness prompt and votes that all answer alike."""
    votes = {name: calls for name, calls in (("self_consistency", 4), ("vote", 3))}
    plain = {name: (references, 1) for name in ("default", "fairness")}
    plain |= {name: (references, calls) for name, calls in votes.items()}
    arms = []
    for name, (rule, calls) in {**plain, **methods}.items():
        run = await played(folder / name, rule, calls=calls, templates=templates)
        arms.append(
            FrontierArm(name=name, run=run, equal_calls="vote" if name in methods else None)
        )
    return arms


async def _report(folder: Path, methods: Mapping[str, tuple[Rule, int]], **more: Any) -> Frontier:
    return frontier(Bbq(), await _arms(folder, methods, **more), calls=4)


def _compared(entry: FrontierEntry) -> AgainstDefault:
    assert entry.against_default is not None
    return entry.against_default


def _worth(entry: FrontierEntry) -> Worth:
    assert entry.worth is not None
    return entry.worth


async def test_a_method_that_always_helps_prevents_each_harm_for_two_calls(tmp_path: Path) -> None:
    entry = (await _report(tmp_path, {"good": (_right, 3)}))["good"]
    assert entry.report["unsupported_attribution"].value == 0.0
    assert entry.report["s_amb"].value == 0.0
    assert entry.report["accuracy_disambiguated"].value == 1.0
    # No item took more or fewer calls: that is no spread, and so no interval.
    assert entry.cost["calls"] == ItemCost(mean=3.0, low=None, high=None, p95=3.0, total=72.0, n=24)
    flips = _compared(entry).comparison.flips
    assert flips["accuracy_ambiguous"].fixed == 12
    assert flips["accuracy_ambiguous"].p == pytest.approx(2 / 2**12)
    assert flips["accuracy_disambiguated"].p == 1.0
    # From 1 call to 3, and every answer prevented.
    prevented = _compared(entry).per_prevented
    assert prevented["calls"].estimate == pytest.approx(2.0)
    assert prevented["money"].undefined == "no prices"
    # Every template changed by -1: sign flips give 2/2¹², doubled by Holm over two comparators.
    for change in entry.harm_against.values():
        assert change.difference == -1.0
        assert change.p_holm == pytest.approx(2 * 2 / 2**12)
    references = coded(_worth(entry).why, "worth.beats")["references"]
    assert references == (Remark("reference.fairness"), Remark("reference.vote", calls=3))
    # No template lost accuracy, but 12 of 12 still allow that every fifth would have.
    assert _worth(entry).kind is CostVerdict.CANNOT_TELL
    assert coded(_worth(entry).why, "guardrail.inconclusive")["margin"] == 0.02


async def test_a_method_that_always_helps_is_worth_it_if_accuracy_is_shown_to_have_kept(
    tmp_path: Path,
) -> None:
    """0 of 183 templates is the first count that leaves less than 2 points: 1 - 0.025^(1/183).
    That 182 are too few stands in `test_rules`."""
    report = await _report(tmp_path, {"good": (_right, 2)}, templates=183)
    assert _worth(report["good"]).kind is CostVerdict.WORTH_IT


async def test_half_the_harm_less_has_the_standard_error_and_the_sign_flips_of_its_templates(
    tmp_path: Path,
) -> None:
    entry = (await _report(tmp_path, {"half": (_half_right, 3)}))["half"]
    change = _compared(entry).harm
    # u_g = ±1/2, twelve times: se² = 12/11 · 12/4 / 12². Six templates changed, all one way.
    assert change.difference == -0.5
    assert change.se == pytest.approx((12 / 11 * 3 / 144) ** 0.5)
    assert change.p == pytest.approx(2 / 2**6)
    assert change.low is not None
    assert change.high is not None
    assert -1 < change.low < -0.5 < change.high < 0
    assert _compared(entry).per_prevented["calls"].estimate == pytest.approx(4.0)


async def test_holm_runs_over_all_named_methods_but_not_over_votes(tmp_path: Path) -> None:
    report = await _report(tmp_path, {"half": (_half_right, 3), "same": (_stereotyped, 3)})
    change = _compared(report["half"]).harm
    assert change.p is not None
    assert change.p_holm == pytest.approx(4 * change.p)  # fairness, self_consistency, half, same
    vote = _compared(report["vote"]).harm
    assert vote.p_holm is None


@pytest.mark.parametrize(
    ("templates", "kind", "why"),
    [  # what 0 of n templates still allows: 1 - 0.025^(1/12), and 1 - 0.0125^(1/86) < 0.05
        (
            12,
            CostVerdict.CANNOT_TELL,
            Remark("worth.sensitivity", size=pytest.approx(1 - 0.025 ** (1 / 12)), family=2),
        ),
        (86, CostVerdict.NOT_WORTH_IT, Remark("reference.vote", calls=3)),
    ],
)
async def test_a_method_that_changes_nothing_is_not_worth_it_if_enough_was_looked_at(
    tmp_path: Path, templates: int, kind: CostVerdict, why: Remark
) -> None:
    report = await _report(tmp_path, {"same": (_stereotyped, 3)}, templates=templates)
    entry = report["same"]
    assert _worth(entry).kind is kind
    assert why in every(_worth(entry).why)
    assert _compared(entry).per_prevented["calls"].undefined == "none prevented"


async def test_fairness_by_never_answering_is_not_worth_it(tmp_path: Path) -> None:
    entry = (await _report(tmp_path, {"mute": (_never_says, 3)}))["mute"]
    assert entry.report["unsupported_attribution"].value == 0.0
    assert _worth(entry).kind is CostVerdict.NOT_WORTH_IT
    right = Bbq().measure("accuracy_disambiguated").label
    assert _moved(_worth(entry).why) == (right, True, -1.0)
    fell, rose, broke = _compared(entry).regressions
    assert _moved(fell) == (right, True, -1.0)
    assert _moved(rose) == (Bbq().measure("over_abstention").label, False, 1.0)
    assert broke == Remark("worth.flips", measure=right, broken=12, fixed=0)


async def test_a_method_shown_to_be_worse_is_not_called_open(tmp_path: Path) -> None:
    worse = {"worse": (_half_right, 3)}  # in 8 templates of 16: p 0.0078, three times with Holm
    report = await _report(tmp_path, worse, references=_right, templates=16)
    entry = report["worse"]
    assert _worth(entry).kind is CostVerdict.NOT_WORTH_IT
    assert (_worth(entry).smallest_shown or 0.0) > 0.05
    assert _compared(entry).per_prevented["calls"].undefined == "none prevented"
    rose = _compared(entry).regressions[0]
    assert _moved(rose) == (Bbq().measure("unsupported_attribution").label, False, 0.5)


def _moved(said: Remark) -> tuple[str, bool, float]:
    """The measure that got worse, whether it fell, and its change."""
    line = coded(said, "guardrail.worse")
    return line["measure"], line["fell"], coded(said, "change")["effect"]


async def test_a_method_that_answers_less_often_is_never_worth_it(tmp_path: Path) -> None:
    """It lowers harm wherever it answers; but 4 of 320 answers are missing, and none was before."""
    report = await _report(tmp_path, {"silent": (_silent_twice, 3)}, templates=160)
    verdict = _worth(report["silent"])
    assert verdict.kind is CostVerdict.CANNOT_TELL
    assert coded(verdict.why, "change.if_known")["missing"] == 2
    file = io.StringIO()
    Console(file=file, width=300).print(terminal_of(report))
    assert_names(file.getvalue(), "without a score")
    assert "98.7%" in file.getvalue()  # of its answers were scored: 316 of 320


async def test_comparisons_are_over_the_items_that_both_answered(tmp_path: Path) -> None:
    entry = (await _report(tmp_path, {"silent": (_silent_twice, 3)}))["silent"]
    assert entry.report.coverage.coverage == pytest.approx(20 / 24)
    assert _compared(entry).harm.n == 10
    assert _compared(entry).per_prevented["calls"].n == 10
    assert entry.cost["calls"].n == 24  # what came to nothing was paid, too


async def test_the_front_is_of_cost_harm_and_utility(tmp_path: Path) -> None:
    methods = {"good": (_right, 3), "mute": (_never_says, 3), "dear": (_right, 4)}
    report = await _report(tmp_path, methods)
    # default and fairness are cheapest; good is fair and right; dear is that for more calls, and
    # mute is as dear and as fair as good, but of no use.
    assert report.pareto == ("default", "fairness", "good")
    assert report.cost_axis == "tokens"


async def test_the_front_counts_missing_answers_as_the_worst(tmp_path: Path) -> None:
    """By what it answered, `silent` does no harm and is always right, as `good` is, for less. Of
    its 12 answers to either kind of question 2 are missing: harm up to 1/6, right from 5/6 on."""

    def half_wrong(template: int, condition: str) -> str:
        return "unknown" if condition == "ambig" or template < 1 else "gold"

    methods = {"good": (_right, 3), "silent": (_silent_twice, 2), "mistaken": (half_wrong, 2)}
    report = await _report(tmp_path, methods)
    assert report["silent"].report["accuracy_disambiguated"].value == 1.0
    # `mistaken` is wrong once in 12 and as cheap: at 1/12 and 0 harm it beats 1/6 and 1/6.
    assert report.pareto == ("default", "fairness", "good", "mistaken")


async def test_a_reference_is_taken_only_if_no_guardrail_is_open(tmp_path: Path) -> None:
    """The fairness prompt does no harm and is always right in 12 templates, where 2 points are not
    shown to have kept: open. With 2 answers of 12 missing it is open too."""

    async def says(name: str, fair: Rule) -> tuple[str | None, tuple[RemarkOrText, ...]]:
        arms = await _arms(tmp_path / name, {"same": (_stereotyped, 3)})
        run = await played(tmp_path / name / "fair", fair, calls=1, templates=TEMPLATES)
        arms = [
            FrontierArm(name="fairness", run=run) if arm.name == "fairness" else arm for arm in arms
        ]
        verdict = frontier(Bbq(), arms, calls=4).verdict
        return verdict.state, verdict.says

    nobody = Remark("frontier.keep_plain")
    state, (_, keep, open_, *_) = await says("inconclusive", _right)
    assert (state, keep) == ("inconclusive", nobody)
    assert coded(open_, "frontier.reference_open")["method"] == "fairness"
    assert coded(open_, "guardrail.inconclusive")["margin"] == 0.02
    state, missing = await says("missing", _silent_twice)
    assert (state, missing[1]) == ("inconclusive", nobody)


async def test_nothing_is_called_unharmed_while_a_guardrail_is_open(tmp_path: Path) -> None:
    report = await _report(tmp_path, {"same": (_stereotyped, 3)})
    lines = [block.text for block in page_of(report) if isinstance(block, Line)]
    assert any(line.endswith("inconclusive") for line in lines)
    assert not any("no significant regression" in line for line in lines)
    label = Bbq().measure("accuracy_disambiguated").label
    assert f"? inconclusive, margin 0.02 ({label}): fairness, self_consistency, same" in lines


async def test_money_is_counted_item_by_item(tmp_path: Path) -> None:
    arms = await _arms(tmp_path, {"good": (_right, 3)})
    price = Price(per_million_prompt_tokens=1e6, per_million_completion_tokens=2e6)
    report = frontier(Bbq(), arms, calls=4, prices=Prices({"scripted": price}, "EUR"))
    totals = arms[0].run.totals()
    whole = totals.prompt_tokens + 2 * totals.completion_tokens
    default, good = report["default"], report["good"]
    assert default.cost["money"].total == pytest.approx(whole)
    assert good.cost["money"].total == pytest.approx(3 * whole)
    prevented = _compared(good).per_prevented["money"].estimate
    ambiguous = 2 * whole / 24  # both kinds of question are equally long
    assert prevented == pytest.approx(ambiguous)
    assert (report.cost_axis, report.currency) == ("money", "EUR")


@pytest.mark.parametrize(("calls", "equal"), [((2, 2), 3), ((2, 3), 3), ((1, 1), 1), ((6, 6), 5)])
async def test_equal_calls_are_the_mean_rounded_up_to_an_odd_number_within_the_budget(
    tmp_path: Path, calls: tuple[int, int], equal: int
) -> None:
    runs = [
        await played(tmp_path / f"{n}", _right, calls=count, templates=2)
        for n, count in enumerate(calls)
    ]
    both = pl.concat([run.results().select("calls").collect() for run in runs])["calls"]

    class Half(RunReader):
        """Half of its items took as many calls as in one run, half as in the other."""

        def results(self) -> pl.LazyFrame:
            rows = super().results().collect()
            return rows.with_columns(calls=both.gather_every(2)).lazy()

    assert equal_calls(Half(tmp_path / "0"), most=4) == equal


async def test_the_screen_has_what_is_worse_and_the_verdicts_first_within_100_columns(
    tmp_path: Path,
) -> None:
    methods = {"good": (_right, 3), "mute": (_never_says, 3), "same": (_stereotyped, 3)}
    report = await _report(tmp_path, methods)
    file = io.StringIO()
    Console(file=file, width=100).print(terminal_of(report, full=True))
    shown = file.getvalue()
    parts = (
        "No method has",
        "✗ mute",
        "verdict, worst first",
        "per answer (",
        "an answer costs",
        "one prevented costs",
    )
    order = [shown.index(part) for part in parts]
    assert order == sorted(order)
    verdicts = shown[shown.index("verdict, worst") : shown.index("per answer (")]
    assert verdicts.index("mute") < verdicts.index("same") < verdicts.index("good")
    assert_names(shown, "2.0 (2.0", "2.0)")
    assert "none prevented" in shown
    assert "…" not in shown


async def test_the_files_hold_the_report_and_a_drawing_with_every_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(of_frontier, "forest")  # what draws the costs, which no file holds
    report = await _report(tmp_path, {"good & <kind>": (_right, 3), "half": (_half_right, 3)})
    write_frontier(report, str(tmp_path))
    stored = orjson.loads((tmp_path / "frontier.json").read_bytes())
    assert tuple(stored["pareto"]) == report.pareto
    rows = pl.read_parquet(tmp_path / "frontier.parquet")
    wanted = (pl.col("method") == "half") & (pl.col("name") == "unsupported_attribution")
    (found,) = rows.filter(wanted & (pl.col("group") == "change from fairness")).rows(named=True)
    assert (found["value"], found["n"], found["clusters"]) == (-0.5, 12, 12)
    drawing = (tmp_path / "frontier.svg").read_text()
    for name in ("default", "fairness", "self_consistency", "half", "good &amp; &lt;kind&gt;"):
        assert drawing.count(f">{name} (") == 1


async def test_a_frontier_without_its_comparators_is_refused(tmp_path: Path) -> None:
    arms = await _arms(tmp_path, {"good": (_right, 3)})
    with raises_naming(UserError, "run of fairness"):
        frontier(Bbq(), [arm for arm in arms if arm.name != "fairness"], calls=4)
