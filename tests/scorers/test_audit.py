"""An audit of small sets, with figures worked out by hand, and as an instrument."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.core.errors import UserError
from evenhand.experiments import gate_file
from evenhand.experiments.measuring import concluded
from evenhand.findings.audit import Audit, audit_of
from evenhand.findings.comparison import compare
from evenhand.findings.gate import GateCheck, gate
from evenhand.findings.plan import plan
from evenhand.findings.report import report
from evenhand.findings.sequential import why_not
from evenhand.instruments import instrument_of
from evenhand.instruments.scorer.instrument import ScorerAudit
from evenhand.instruments.scorer.sets import TRICKS, AuditTexts, drawn, held_out
from evenhand.runs.store import RunReader
from evenhand.scorers import Scores, Unscored
from evenhand.views import markdown, page_of
from evenhand.views.charts import charts_of
from tests.coded import codes

from .judged_texts import Judged, scored_texts

Values = list[float | None]


def table(
    texts: list[str],
    labels: list[bool],
    *,
    recorded: list[float] | None = None,
    function: str = "",
    group: str = "",
) -> pl.DataFrame:
    n = len(texts)
    return pl.DataFrame(
        {
            "text": texts,
            "label": labels,
            "recorded": pl.Series(recorded or [None] * n, dtype=pl.Float64),
            "function": [function] * n,
            "group": [group] * n,
            "cluster": texts,
        }
    )


BENIGN = [f"hug a person {n}" for n in range(40)]
TABLES = {
    "rtp": table(["a", "b", "c", "d"], [True, True, False, False], recorded=[0.9, 0.6, 0.2, 0]),
    "identity_templates": table(BENIGN, [False] * 40, function="verb", group="gay"),
    "hatecheck": table([f"h{n}" for n in range(20)], [True] * 20, function="slur_h"),
}
PLAIN: Values = [0.9, 0.8, 0.7, 0.1]
TRICKED: dict[str, Values] = {
    "leetspeak": [0.9, 0.1, 0.1, 0.1],
    "accents": [0.9, 0.8, None, 0.1],
}


def judged(
    values: dict[str, Values],
    *,
    tables: dict[str, pl.DataFrame] | None = None,
    plain: Values | None = None,
    tricked: dict[str, Values] | None = None,
    emoji: Values | None = None,
    trained_on: dict[str, str] | None = None,
) -> Judged:
    sets = tables or TABLES
    shown = PLAIN if plain is None else plain
    disguises = TRICKED if tricked is None else tricked
    harmless = [0.1, 0.6] if emoji is None else emoji
    scores = [value for name in sets for value in values[name]] + shown
    for trick in TRICKS:
        scores += disguises.get(trick, shown)
    texts = AuditTexts(sets, ["toxic"] * len(shown), ["kind"] * len(harmless))
    return Judged.of(scored_texts(texts, [*scores, *harmless], 0.5, trained_on))


ONE: dict[str, Values] = {
    "rtp": [0.9, 0.2, 0.6, 0.0],
    "identity_templates": [*[0.9] * 30, *[0.1] * 10],
    "hatecheck": [0.1] * 20,
}
TWO: dict[str, Values] = {
    "rtp": [0.8, 0.6, 0.5, None],
    "identity_templates": [0.1] * 40,
    "hatecheck": [0.9] * 20,
}


def test_figures_of_a_small_audit_are_those_worked_out_by_hand() -> None:
    first = judged(ONE)
    assert first.group("set", "rtp", "auc").value == 0.75  # 0.9 beats both, 0.2 beats 0.0 alone
    assert first.group("set", "hatecheck", "auc").value is None  # all are hateful
    scale = first.group("set", "rtp", "calibration_error")
    assert scale.value == pytest.approx((0 + 0.4 + 0.4 + 0) / 4)
    whole = first.group("set", "identity_templates", "false_positives")
    assert (whole.value, whole.n) == (0.75, 40)
    assert [*first.groups["harmless_kind"]] == ["identity_templates: verb"]
    assert [*first.groups["harmless_group"]] == ["identity_templates: gay"]
    assert first.group("set", "hatecheck", "misses").value == 1.0
    assert first.group("hateful_kind", "hatecheck: slur_h", "misses").value == 1.0
    # Of three caught plain one is caught in leetspeak; of two that were scored both ways, both.
    leetspeak = first.group("trick", "leetspeak", "caught_in_disguise")
    accents = first.group("trick", "accents", "caught_in_disguise")
    assert leetspeak.value == pytest.approx(1 / 3)
    assert leetspeak.n == 3
    assert (accents.value, accents.n) == (1.0, 2)
    assert accents.bounds is not None
    # One of three that are caught plain has no score in accents.
    assert accents.bounds.low == pytest.approx(2 / 3)
    assert accents.bounds.high == 1.0
    assert first.checks["emoji"].value == 0.5
    missing = judged(TWO).checks["coverage"]
    assert missing.value == pytest.approx(1 - 2 / missing.n)


def test_the_checks_name_what_is_wrong_and_nothing_else() -> None:
    first, second = judged(ONE).checks, judged(TWO).checks
    wrong = {
        name: check.details.get("failed") for name, check in first.items() if check.state == "fail"
    }
    assert wrong["false_positives:set"] == "identity_templates"
    assert wrong["false_positives:harmless_kind"] == "identity_templates: verb"
    assert wrong["false_positives:harmless_group"] == "identity_templates: gay"
    assert wrong["misses:hateful_kind"] == "hatecheck: slur_h"
    assert first["emoji"].state == "fail"
    assert not any(
        check.state == "fail" for name, check in second.items() if name[:5] in ("false", "misse")
    )


def test_a_set_that_was_trained_on_is_audited_on_its_held_out_fifth() -> None:
    texts = [f"text {n}" for n in range(200)]
    kept = [text for text in texts if held_out(text)]
    assert 20 <= len(kept) <= 60
    tables = {"surge": table(texts, [n % 2 == 0 for n in range(200)])}
    part = AuditTexts.sampled(tables, 200, ["surge"])
    assert part.tables["surge"]["text"].to_list() == kept
    values: Values = [float(n % 2 == 0) for n in range(200)]
    whole = judged({"surge": values}, tables=tables, trained_on={"surge": "all"})
    assert (whole.checks["trained_on"].state, whole.checks["trained_on"].value) == ("fail", 1)
    unseen = judged({"surge": values}, tables=tables, trained_on={"surge": "held_out"})
    assert unseen.checks["trained_on"].state == "pass"


def test_a_share_whose_interval_reaches_over_its_bound_is_inconclusive() -> None:
    """2 of 40 texts of 40 templates: 5 %, and up to 17 %, with 10 % the most that is allowed."""
    tables = {"identity_templates": table(BENIGN, [False] * 40)}
    values: Values = [0.9, 0.9, *[0.1] * 38]
    check = judged({"identity_templates": values}, tables=tables).checks["false_positives:set"]
    assert check.value == 0.05
    # The exact binomial interval of 2 of 40 ends at 0.169, and t over 40 clusters adds a little.
    assert check.high == pytest.approx(0.171, abs=1e-3)
    assert check.state == "inconclusive"


def test_a_sample_takes_kinds_in_turn_and_a_larger_one_contains_it() -> None:
    many = pl.concat(
        [
            table([f"common {n}" for n in range(500)], [True] * 500, function="common"),
            table([f"rare {n}" for n in range(5)], [False] * 5, function="rare"),
        ]
    )
    small, large = drawn(many, 10), drawn(many, 100)
    assert small["function"].value_counts().sort("function")["count"].to_list() == [5, 5]
    assert len(large) == 100
    assert set(small["text"]) <= set(large["text"])
    assert drawn(many, None).equals(many)


def test_an_audit_takes_a_fixed_number_of_texts() -> None:
    tables = {
        "rtp": table(["You idiot.", "Hello."] * 30, [True, False] * 30, recorded=[0.9, 0.1] * 30)
    }
    texts = AuditTexts.sampled(tables, 10)
    assert len(texts.tables["rtp"]) == 10
    assert texts.toxic == ["You idiot."] * 10
    assert len(list(texts.items())) == 10 + 10 * 7 + len(texts.emoji)
    whole = AuditTexts.sampled(tables, 100)  # a smaller set is taken whole
    assert len(whole.tables["rtp"]) == 60


def _fitted(auc: float, n: int) -> Judged:
    """A scorer that puts this share of toxic texts above all harmless ones, the rest below."""
    above = round(auc * n)
    values: Values = [*[0.9] * above, *[0.1] * (n - above), *[0.5] * n]
    tables = {"surge": table([f"t{k}" for k in range(2 * n)], [True] * n + [False] * n)}
    return judged({"surge": values}, tables=tables)


def test_a_scorer_orders_poorly_only_where_the_whole_interval_says_so() -> None:
    """An AUC of 0.75 of 40 texts may well be 0.8; of 800 it is not."""
    few, many, fine = (
        _fitted(*given).checks["auc:set"] for given in ((0.75, 20), (0.75, 400), (0.95, 400))
    )
    assert (few.value, few.state) == (0.75, "inconclusive")
    assert (many.value, many.state, many.details["failed"]) == (0.75, "fail", "surge")
    assert fine.state == "pass"


def test_what_a_trick_reveals_is_not_counted_as_kept() -> None:
    """Plain, two of three are caught; disguised, one of these two and the third."""
    plain: Values = [0.9, 0.8, 0.1]
    revealed: Values = [0.9, 0.1, 0.9]
    all_kept: Values = [0.9, 0.9, 0.9]
    for after, caught, state in ((revealed, 1, "fail"), (all_kept, 2, "inconclusive")):
        found = judged(ONE, plain=plain, tricked={"accents": after}, emoji=[])
        kept = found.group("trick", "accents", "caught_in_disguise")
        assert (kept.n, kept.value) == (2, caught / 2)
        # Two of two may still be half of all.
        assert found.checks["caught_in_disguise:trick"].state == state
        if caught == 2:
            assert kept.low == pytest.approx(0.3424, abs=1e-4)  # Wilson, 2 of 2


# -- as an instrument ------------------------------------------------------------------------------


class Grading:
    """Scores the texts by what is written in them, in batches."""

    attributes = ("toxicity",)

    def __init__(self, name: str, harmless: float) -> None:
        self.name = name
        self.batches: list[int] = []
        self._harmless = harmless

    def describe(self) -> dict[str, Any]:
        return {"kind": "grading", "trained_on": {"surge": "held_out"}}

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        self.batches.append(len(texts))
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Scores | Unscored:
        if text.endswith("lost"):
            return Unscored("http_500", "away")
        number = int(text.rpartition(" ")[2]) / 100
        return Scores({"toxicity": 0.9 if number < (0.9 if "rude" in text else self._harmless)
                       else 0.1})  # fmt: skip

    async def close(self) -> None:
        return None


N = 60
AUDITED = AuditTexts(
    {
        "hatecheck": table(
            [f"rude {100 * n // N}" for n in range(N)] + [f"nice {100 * n // N}" for n in range(N)],
            [True] * N + [False] * N,
        )
    }
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunReader, RunReader]:
    """Of a scorer that calls no harmless text toxic, and of one that calls half of them so."""
    folder = tmp_path_factory.mktemp("runs")
    for name, harmless in (("good", 0.0), ("poor", 0.5)):
        scorer = Grading(f"{name}@1", harmless)
        found = _audit(folder / name, scorer)
        assert found.title == f"{name}@1"
        assert max(scorer.batches) > 1  # the texts in flight are scored at once
    return RunReader(folder / "good"), RunReader(folder / "poor")


def _audit(out: Path, scorer: Grading, texts: AuditTexts = AUDITED, **more: Any) -> Audit:
    return eh.audit(ScorerAudit(texts), out=out, scorers={"it": scorer}, options={"scorer": "it"},
                    **more)  # fmt: skip


def test_an_audit_is_read_from_its_run_alone(runs: tuple[RunReader, RunReader]) -> None:
    good, poor = (audit_of(report(instrument_of(run), run)) for run in runs)
    assert good["false_positives:set"].state == "pass"
    assert (good["misses:set"].state, good["auc:set"].state) == ("pass", "pass")
    assert poor["false_positives:set"].state == "fail"
    assert (poor["false_positives:set"].value, poor.state) == (0.5, "fail")
    assert good["calibration_error:set"].state == "not_measured"  # and not required
    assert good.state == "pass"
    assert {chart.name for chart in charts_of(poor)} == {"false_positives", "misses"}
    text = markdown.render(page_of(poor, full=True))
    assert text.index("FAILS") < text.index("with labels")


def test_a_comparison_a_plan_and_a_gate_take_two_audits(runs: tuple[RunReader, RunReader]) -> None:
    instrument = ScorerAudit()
    changes = compare(instrument_of(runs[0]), *runs)
    worse = changes["false_positives"]
    assert worse.difference == pytest.approx(0.5)
    assert worse.p_holm is not None
    assert worse.p_holm < 0.01
    assert changes.regressions["hatecheck"] == ("false_positives",)
    agreement = next(section for section in changes.sections if section.name == "agreement")
    assert agreement.rows[0][:2] == ("hatecheck", 120)
    assert changes["auc"].interval is None  # it has no test
    assert plan(instrument, pilot=changes, measure="false_positives", detect=0.1).rows
    check = GateCheck(
        name="c", instrument=instrument, measure=instrument.measure("false_positives")
    )
    (decided,) = gate([check], {"c": runs}).checks
    assert decided.verdict == "fail"


def test_a_gate_on_a_figure_without_a_test_is_refused_with_those_that_have_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "g.toml").write_text(
        '[[check]]\ninstrument = "scorer"\nmeasure = "auc"\nmargin = 0.1'
    )
    with pytest.raises(UserError, match="it has: false_positives, misses"):
        gate_file.read(tmp_path / "g.toml")


def test_early_stopping_takes_the_shares_and_says_why_it_refuses_the_rest() -> None:
    reasons = {measure.name: why_not(ScorerAudit(), measure) for measure in ScorerAudit().measures}
    assert {name for name, why in reasons.items() if not why} == {"false_positives", "misses"}
    assert codes(reasons["auc"]) == ["until.no_mean"]


def test_an_audit_stops_as_soon_as_its_question_is_decided(tmp_path: Path) -> None:
    many = {"hatecheck": pl.concat([AUDITED.tables["hatecheck"]] * 8).with_columns(
        cluster=pl.int_range(pl.len()).cast(pl.String)
    )}  # fmt: skip
    instrument = ScorerAudit(AuditTexts(many))
    found = eh.measure(
        instrument, out=tmp_path / "run", scorers={"it": Grading("poor@1", 0.5)},
        options={"scorer": "it"}, stop_when="false_positives=0.2",
    )  # fmt: skip
    assert found.stopped is not None
    assert found.stopped.verdict == "detected"
    assert found.stopped.items < found.stopped.of_items
    # The bounds are of sets and groups, which have no interval that holds at every look.
    audit = concluded(instrument, None, found)
    assert audit["false_positives:set"].state == "not_measured"


def test_a_text_without_a_score_fails_for_the_reason_of_the_scorer(tmp_path: Path) -> None:
    texts = AuditTexts({"surge": table([*(f"rude {n}" for n in range(19)), "lost"], [True] * 20)})
    found = _audit(tmp_path / "run", Grading("it@1", 0.5), texts)
    assert found.more["coverage"].scored == 19
    assert RunReader(tmp_path / "run").totals().failed == {"http_500": 1}
    assert found["coverage"].state == "pass"  # 95 %


def test_an_audit_without_a_scorer_or_by_a_score_that_it_does_not_give_is_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(UserError, match="--scorer NAME"):
        eh.audit("scorer", out=tmp_path / "run")
    with pytest.raises(UserError, match=r"--attribute .*: toxicity"):
        eh.audit("scorer", out=tmp_path / "run",
                 options={"scorer": "wordlist", "attribute": "threat"})  # fmt: skip
