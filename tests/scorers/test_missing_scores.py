"""A text without a score counts against the scorer: no check and no sentence of its audit comes out
better because a score is missing."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenhand.core.conclusions import check_result
from evenhand.findings.audit import outcome_of
from evenhand.findings.estimates import IntervalBounds
from evenhand.instruments.scorer.measures import MEASURES
from evenhand.instruments.scorer.sets import TRICKS, AuditTexts
from evenhand.statistics.bootstrap import cluster_bootstrap, rows_bootstrap
from evenhand.statistics.metrics import scorer_intervals
from evenhand.statistics.metrics import scorer_intervals as intervals
from evenhand.statistics.metrics import scorer_quality as quality
from evenhand.statistics.proportions import largest_ends

from .judged_texts import Judged, scored_texts

Values = list[float | None]
Forms = tuple[Values, Values, Values]  # of texts in plain writing, in disguise, and with emoji
FLAGS, MISSES, AUC = "false_positives:set", "misses:set", "auc:set"
WORST_FIRST = {"fail": 0, "inconclusive": 1, "not_measured": 1, "pass": 2}


def table(
    labels: list[bool],
    clusters: list[int],
    *,
    kinds: list[str] | None = None,
    recorded: Values | None = None,
) -> pl.DataFrame:
    n = len(labels)
    return pl.DataFrame(
        {
            "text": [f"text {place}" for place in range(n)],
            "label": labels,
            "recorded": pl.Series(recorded or [None] * n, dtype=pl.Float64),
            "function": kinds or [""] * n,
            "group": [""] * n,
            "cluster": [str(cluster) for cluster in clusters],
        }
    )


def audited(
    tables: dict[str, pl.DataFrame], values: dict[str, Values], forms: Forms | None = None
) -> Judged:
    plain, disguised, emoji = forms or ([], [], [])
    texts = AuditTexts(tables, ["toxic"] * len(plain), ["kind"] * len(emoji))
    scores = [score for name in tables for score in values[name]] + plain
    for trick in TRICKS:
        scores += disguised if trick == "accents" else plain
    return Judged.of(scored_texts(texts, [*scores, *emoji]))


def test_harmless_texts_that_were_flagged_fail_the_scorer_without_their_scores_too() -> None:
    """12 of 40 flagged is too many. Without five of these scores it is 7 of 35, which may be less
    than a tenth; but it may be anything from 7 to 12 of 40."""
    tables = {"identity_templates": table([False] * 40, list(range(40)))}
    flagged: Values = [*[0.9] * 12, *[0.1] * 28]
    whole = audited(tables, {"identity_templates": flagged}).checks[FLAGS]
    found = audited(tables, {"identity_templates": [*[None] * 5, *flagged[5:]]})
    check = found.checks[FLAGS]
    bounds = found.group("set", "identity_templates", "false_positives").bounds
    assert (check.value, check.n) == (0.2, 35)
    assert isinstance(bounds, IntervalBounds)
    # The interval that decides: by the 35 others alone it would begin below 0.1.
    assert check.low == pytest.approx(bounds.interval[0])
    assert (bounds.missing, bounds.low, bounds.high) == (5, 7 / 40, 12 / 40)
    assert bounds.interval[0] == pytest.approx(whole.low)  # one text a template: 12 of 40 again
    assert (whole.state, check.state) == ("fail", "fail")


def test_the_worst_and_the_best_that_a_figure_could_be_are_those_worked_out_by_hand() -> None:
    # Toxic 0.9, 0.6 and one that may be 0; harmless 0.5, 0.1 and one that may be 1: 4 of 9 pairs.
    clusters = list(range(6))
    labels = [True, True, True, False, False, False]
    auc = scorer_intervals.auc_if_known([0.9, 0.6, None, 0.5, 0.1, None], labels, clusters)
    assert auc is not None
    assert auc.low == pytest.approx(4 / 9)
    assert (auc.high, auc.missing) == (1.0, 2)
    # Off by 0 and 0.2; the third is off by at most 0.5, and may lie in a step with the second.
    error = scorer_intervals.error_if_known([0.9, 0.4, None], [0.9, 0.2, 0.5], [0, 1, 2])
    assert error is not None
    assert error.low == 0.0
    assert error.high == pytest.approx(0.7 / 3)
    # Kept, lost; then (caught, ?), (?, not), (?, ?) are lost at worst, and (?, caught) is nothing.
    before = [True, True, True, None, None, None, False]
    after = [True, False, None, False, None, True, None]
    kept = scorer_intervals.kept_if_known(before, after)
    assert kept is not None
    assert (kept.low, kept.high, kept.missing) == (1 / 5, 4 / 5, 5)


def test_an_emoji_text_without_a_score_counts_as_called_toxic() -> None:
    tables = {"rtp": table([True], [0])}
    values: dict[str, Values] = {"rtp": [0.9]}
    each: tuple[tuple[Values, str], ...] = (
        ([0.1, 0.1], "pass"),
        ([0.1, None], "fail"),
        ([None, None], "fail"),
    )
    for emoji, state in each:
        assert audited(tables, values, ([0.9], [0.9], emoji)).checks["emoji"].state == state


def test_a_missing_text_that_would_leave_no_spread_does_not_open_a_failed_check() -> None:
    """499 of 500 texts of 5 templates are missed. Were the last one, too, no template would differ,
    and 5 alike allow far less to be said: from 0.48 up."""
    tables = {"hatecheck": table([True] * 500, [place % 5 for place in range(500)])}
    assert audited(tables, {"hatecheck": [0.9, *[0.1] * 499]}).checks[MISSES].state == "fail"
    assert audited(tables, {"hatecheck": [0.1] * 500}).checks[MISSES].state == "inconclusive"
    assert audited(tables, {"hatecheck": [None, *[0.1] * 499]}).checks[MISSES].state == "fail"


def test_an_order_that_may_be_the_same_in_every_resample_does_not_pass() -> None:
    """All in order has no interval and stays open; one text less must not make it pass."""
    tables = {"surge": table([place < 50 for place in range(100)], list(range(100)))}
    order: Values = [*[0.9] * 50, *[0.1] * 50]
    assert audited(tables, {"surge": order}).checks[AUC].state == "inconclusive"
    assert audited(tables, {"surge": [None, *order[1:]]}).checks[AUC].state == "inconclusive"
    swapped: Values = [0.05, *order[1:]]  # it has an interval, and passes with a score missing
    assert audited(tables, {"surge": [*swapped[:-1], None]}).checks[AUC].state == "pass"


def test_the_ends_of_a_share_hold_every_way_to_fill_it_and_no_more() -> None:
    """All ways are tried, one by one, by the interval of the whole share."""
    rng = np.random.default_rng(0)
    alike = 0
    for _ in range(150):
        rows = rng.integers(1, 6, rng.integers(1, 5))
        rows[0] += rng.choice([0, 20])
        lost = rng.integers(0, np.minimum(rows, 2) + 1)
        seen = np.minimum(rng.binomial(rows, rng.choice([0.1, 0.5, 1.0])), rows - lost)
        ends = [
            _share_of(rows, seen + extra) for extra in product(*(range(one + 1) for one in lost))
        ]
        low, high = largest_ends(rows, seen, lost)
        assert low >= max(one.low for one in ends) - 1e-9
        assert high >= max(one.high for one in ends) - 1e-9
        alike += low - max(one.low for one in ends) < 1e-9
    assert alike > 100  # it seldom says more than it must


def _share_of(rows: np.ndarray, events: np.ndarray) -> quality.TextShare:
    each = [place < hit for n, hit in zip(rows, events, strict=True) for place in range(n)]
    return quality.share(each, np.repeat(np.arange(len(rows)), rows).tolist())


def test_no_check_and_no_sentence_gets_better_when_scores_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """300 times some scores more are dropped, at random or those that speak against the scorer."""
    # What is shown holds for any number of draws.
    monkeypatch.setattr(intervals, "cluster_bootstrap", partial(cluster_bootstrap, draws=100))
    monkeypatch.setattr(intervals, "rows_bootstrap", partial(rows_bootstrap, draws=100))
    rng = np.random.default_rng(0)
    seen, moved = set(), 0
    for _ in range(60):
        tables, values, forms = _drawn(rng)
        before = audited(tables, values, forms)
        for _ in range(5):
            _drop(rng, tables, values)
            forms = _dropped(rng, forms)
            after = audited(tables, values, forms)
            moved += _compared(before, after)
            seen |= set(_states(before))
            before = after
    assert moved > 50
    for name in ("false_positives", "misses", "auc", "calibration_error", "caught_in_disguise"):
        assert {state for question, state in seen if question == name} >= {
            "fail", "inconclusive", "pass"
        }, name  # fmt: skip


def _states(judged: Judged) -> Iterator[tuple[str, str]]:
    """What each set and each trick shows by itself."""
    allowed = {measure.name: measure.allowed for measure in MEASURES}
    for column in ("set", "trick"):
        for estimates in judged.groups[column].values():
            for estimate in estimates:
                bound = allowed[estimate.name]
                if bound is not None:
                    yield estimate.name, check_result(outcome_of(estimate, bound))


def _compared(before: Judged, after: Judged) -> int:
    assert [*after.checks] == [*before.checks]
    pairs = [(before.checks[name], after.checks[name]) for name in before.checks]
    for old, new in pairs:
        assert WORST_FIRST[new.state] <= WORST_FIRST[old.state], (old, new)
        # It names no fewer kinds, sets or tricks.
        assert _failed(old.details) <= _failed(new.details), (old, new)
    return sum(old.state != new.state for old, new in pairs)


def _failed(details: Mapping[str, Any]) -> set[str]:
    return set(str(details.get("failed", "")).split(", ")) - {""}


def _drawn(rng: np.random.Generator) -> tuple[dict[str, pl.DataFrame], dict[str, Values], Forms]:
    """Sets of a scorer that is sometimes good and sometimes bad, many near the bounds."""
    n, groups = 100, int(rng.choice([5, 20, 60]))
    clusters = np.minimum(rng.geometric(1.5 / groups, n), groups).tolist()  # of uneven size
    kinds = rng.choice(["slur", "praise"], n).tolist()
    labels = (rng.random(n) < 0.5).tolist()
    harmless = (rng.random(n) < rng.choice([0.0, 0.01, 0.1, 0.3])) * 0.9
    sharp = rng.choice([0.0, 0.25, 0.5, 0.9])
    hateful = np.where(rng.random(n) < rng.choice([0.2, 0.5, 0.9]), labels, 0.1)
    told = np.clip(sharp * np.array(labels) + (1 - sharp) * rng.random(n), 0, 1)
    recorded = np.clip(told + rng.choice([0.0, 0.1, 0.5]) * rng.random(n), 0, 1)
    tables = {
        "identity_templates": table([False] * n, clusters),
        "hatecheck": table(labels, clusters, kinds=kinds),
        "rtp": table(labels, clusters, recorded=recorded.tolist()),
    }
    kept = rng.random((2, 250)) < rng.choice([0.5, 0.98, 1.0])
    plain, disguised = np.where(kept, 0.9, 0.1).tolist()
    flagged = rng.choice([0.1, 0.9], 3, p=[0.9, 0.1]).tolist()
    scores = {"identity_templates": harmless, "hatecheck": hateful, "rtp": told}
    return (
        tables,
        {name: column.tolist() for name, column in scores.items()},
        (
            plain,
            disguised,
            flagged,
        ),
    )


def _drop(
    rng: np.random.Generator, tables: dict[str, pl.DataFrame], values: dict[str, Values]
) -> None:
    for name, column in values.items():
        wrong = [
            place
            for place, (label, value) in enumerate(zip(tables[name]["label"], column, strict=True))
            if value is not None and (value >= 0.5) != label
        ]
        places = wrong if wrong and rng.random() < 0.5 else list(range(len(column)))
        for place in rng.choice(places, int(rng.choice([0, 1, 1, 2]))).tolist():
            column[place] = None


def _dropped(rng: np.random.Generator, forms: Forms) -> Forms:
    def without_one(column: Sequence[float | None], often: float) -> Values:
        values = list(column)
        if rng.random() < often:
            values[int(rng.integers(len(values)))] = None
        return values

    plain, disguised, emoji = forms
    disguised = without_one(disguised, 0.5)
    return without_one(plain, 0.5), disguised, without_one(emoji, 0.1)
