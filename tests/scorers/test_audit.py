"""An audit of small sets, with figures worked out by hand, and its card."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from evenhand.cli.scorer_texts import plan
from evenhand.instruments.scorer import drawn, held_out
from evenhand.instruments.scorer.audit import ScorerAudits, audit
from evenhand.instruments.scorer.figures import Column, Emoji, GivenScores, Tricks
from evenhand.instruments.scorer.scorer_card import write
from evenhand.scorers import WordList
from evenhand.views import markdown, page_of


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


def scorer(
    name: str, values: dict[str, list[float | None]], *, trained_on: dict[str, str] | None = None
) -> GivenScores:
    return GivenScores(
        name=name,
        described={"kind": "by hand", "trained_on": trained_on or {}},
        attributes=["toxicity"],
        sets={key: Column(column) for key, column in values.items()},
        tricks=Tricks(
            plain=Column([0.9, 0.8, 0.7, 0.1]),
            tricked={
                "leetspeak": Column([0.9, 0.1, 0.1, 0.1]),
                "accents": Column([0.9, 0.8, None, 0.1]),
            },
            emoji=Column([0.1, 0.6]),
        ),
        texts_per_second=10.0,
    )


def audited() -> ScorerAudits:
    benign = [f"hug a person {n}" for n in range(40)]
    tables = {
        "rtp": table(["a", "b", "c", "d"], [True, True, False, False], recorded=[0.9, 0.6, 0.2, 0]),
        "identity_templates": table(benign, [False] * 40, function="verb", group="gay"),
        "hatecheck": table([f"h{n}" for n in range(20)], [True] * 20, function="slur_h"),
    }
    one: dict[str, list[float | None]] = {
        "rtp": [0.9, 0.2, 0.6, 0.0],
        "identity_templates": [*[0.9] * 30, *[0.1] * 10],
        "hatecheck": [0.1] * 20,
    }
    two: dict[str, list[float | None]] = {
        "rtp": [0.8, 0.6, 0.5, None],
        "identity_templates": [0.1] * 40,
        "hatecheck": [0.9] * 20,
    }
    return audit(tables, [scorer("one@1", one), scorer("two@1", two)])


def test_figures_of_a_small_audit_are_those_worked_out_by_hand() -> None:
    first, second = (one.figures for one in audited().audits)
    labels = {row.set: row for row in first.labels}
    assert labels["rtp"].auc == 0.75  # 0.9 beats both, 0.2 beats 0.0 alone
    assert labels["hatecheck"].auc is None  # all are hateful
    [scale] = first.calibration
    assert scale.ece == pytest.approx((0 + 0.4 + 0.4 + 0) / 4)
    whole, by_function, by_group = first.false_positives
    assert (whole.estimate, whole.n, whole.by) == (0.75, 40, "all")
    assert (by_function.kind, by_group.kind) == ("verb", "gay")
    assert [(row.kind, row.estimate) for row in first.misses] == [("all", 1.0), ("slur_h", 1.0)]
    # Of three caught plain one is caught in leetspeak; of two that were scored both ways, both.
    assert [(row.trick, row.kept) for row in first.tricks] == [
        ("leetspeak", pytest.approx(1 / 3)),
        ("accents", 1.0),
    ]
    assert first.emoji == Emoji(n=2, flagged=1, missing=0)
    assert second.coverage.scored == second.coverage.n - 2


def test_two_scorers_are_compared_on_what_both_scored() -> None:
    by_set = {row.set: row for row in audited().agreement}
    # Ranks of 0.9, 0.2, 0.6 and of 0.8, 0.6, 0.5: 3 1 2 and 3 2 1.
    assert by_set["rtp"].n == 3
    assert by_set["rtp"].spearman == pytest.approx(0.5)
    assert by_set["hatecheck"].spearman is None


def test_the_limits_name_what_is_wrong_and_nothing_else() -> None:
    first, second = (one.limits for one in audited().audits)
    assert first[:3] == [
        "Calls harmless texts toxic in identity_templates: 75%.",
        "Calls harmless texts toxic in identity_templates by kind: verb 75%.",
        "Calls harmless texts toxic in identity_templates by group: gay 75%.",
    ]
    assert any(
        line.startswith("Misses hateful texts in hatecheck by kind: slur_h") for line in first
    )
    assert "Calls 1 of 2 harmless texts with emoji toxic." in first
    assert not any("Misses" in line or "Calls harmless" in line for line in second)


def test_a_set_that_was_trained_on_is_audited_on_its_held_out_fifth() -> None:
    texts = [f"text {n}" for n in range(200)]
    kept = [text for text in texts if held_out(text)]
    assert 20 <= len(kept) <= 60
    labels = [n % 2 == 0 for n in range(200)]
    values: list[float | None] = [1.0 if label else 0.0 for label in labels]
    part = scorer("part@1", {"surge": values}, trained_on={"surge": "held_out"})
    whole = scorer("whole@1", {"surge": values}, trained_on={"surge": "all"})
    found = audit({"surge": table(texts, labels)}, [part, whole])
    first, second = found.audits
    assert first.figures.labels[0].n == len(kept)
    assert second.figures.labels[0].n == 200
    assert second.limits[0] == "It was trained on surge: its figures there are too good."


def test_the_card_says_where_not_to_trust_the_scorer(tmp_path: Path) -> None:
    found = audited()
    cards = write(found, tmp_path)
    assert [card.relative_to(tmp_path).as_posix() for card in cards] == [
        "one@1/scorer-card.md",
        "two@1/scorer-card.md",
    ]
    text = cards[0].read_text()
    assert "## Where not to trust it\n\n- Calls harmless texts toxic in identity_templates" in text
    assert "| leetspeak | 1 of 3 | 33.3% | 6.1% – 79.2% |" in text
    # One of three that are caught plain has no score in accents.
    assert "| accents | 2 of 2 | 100.0%; 66.7% – 100.0% if known | 34.2% – 100.0% |" in text
    stored = json.loads((tmp_path / "one@1" / "scorer-card.json").read_text())
    assert stored["name"] == "one@1"
    assert json.loads((tmp_path / "audit.json").read_text())["threshold"] == 0.5


def test_a_share_whose_interval_reaches_over_its_bound_is_open_and_no_limit() -> None:
    """2 of 40 texts of 40 templates: 5 %, and up to 17 %, with 10 % the most that is allowed."""
    texts = [f"hug a person {n}" for n in range(40)]
    values: list[float | None] = [0.9, 0.9, *[0.1] * 38]
    tables = {"identity_templates": table(texts, [False] * 40)}
    [found] = audit(tables, [scorer("one@1", {"identity_templates": values})]).audits
    check = found["calls_harmless_texts_toxic_in_identity_templates"]
    assert check.value == 0.05
    # The exact binomial interval of 2 of 40 ends at 0.169, and t over 40 clusters adds a little.
    assert check.high == pytest.approx(0.171, abs=1e-3)
    assert check.state == "inconclusive"
    assert not any("harmless texts toxic in" in line for line in found.limits)


def test_the_page_says_where_not_to_trust_before_any_figure() -> None:
    text = markdown.render(page_of(audited()))
    assert text.index("Calls harmless texts toxic") < text.index("| check |")
    assert text.index("| check |") < text.index("with labels")
    assert text.index("leetspeak") < text.index("accents")
    assert "undefined" in text  # a figure without a value is no 0


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


def test_an_audit_takes_a_fixed_number_of_texts_and_the_same_for_all_scorers() -> None:
    tables = {
        "rtp": table(["You idiot.", "Hello."] * 30, [True, False] * 30, recorded=[0.9, 0.1] * 30)
    }
    texts = plan(tables, [WordList()], sample=10)
    assert len(texts.tables["rtp"]) == 10
    assert texts.toxic == ["You idiot."] * 10
    assert texts.count == 10 + 10 * 7 + len(texts.emoji)
    whole = plan(tables, [WordList()], sample=100)  # a smaller set is taken whole
    assert len(whole.tables["rtp"]) == 60


def _fitted(auc: float, n: int) -> ScorerAudits:
    """A scorer that puts this share of toxic texts above all harmless ones, the rest below."""
    above = round(auc * n)
    values: list[float | None] = [*[0.9] * above, *[0.1] * (n - above), *[0.5] * n]
    tables = {"surge": table([f"t{k}" for k in range(2 * n)], [True] * n + [False] * n)}
    return audit(tables, [scorer("one@1", {"surge": values})])


def test_a_scorer_orders_poorly_only_where_the_whole_interval_says_so() -> None:
    """An AUC of 0.75 of 40 texts may well be 0.8; of 800 it is not."""
    [few], [many], [fine] = (
        _fitted(*given).audits for given in ((0.75, 20), (0.75, 400), (0.95, 400))
    )
    assert few["auc"].value == 0.75
    assert few["auc"].state == "inconclusive"
    assert not any("poorly" in line for line in few.limits)
    assert many["auc"].state == "fail"
    assert "Tells toxic from harmless poorly (AUC below 0.8): surge 0.75." in many.limits
    assert fine["auc"].state == "pass"


def test_what_a_trick_reveals_is_not_counted_as_kept() -> None:
    """Plain, two of three are caught; disguised, one of these two and the third."""
    given = scorer("one@1", {"rtp": [0.9]})
    plain, revealed, all_kept = Column([0.9, 0.8, 0.1]), [0.9, 0.1, 0.9], [0.9, 0.9, 0.9]
    for after, caught, state in ((revealed, 1, "fail"), (all_kept, 2, "inconclusive")):
        tricks = Tricks(plain=plain, tricked={"accents": Column(after)}, emoji=Column([]))
        [found] = audit({"rtp": table(["a"], [True])}, [replace(given, tricks=tricks)]).audits
        [row] = found.figures.tricks
        assert (row.plain, row.caught, row.kept) == (2, caught, caught / 2)
        assert found["tricks"].state == state  # two of two may still be half of all
    assert found["tricks"].low == pytest.approx(0.3424, abs=1e-4)  # Wilson, 2 of 2
