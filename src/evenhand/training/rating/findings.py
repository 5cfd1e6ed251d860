"""What people said of texts, and how far they agree: agreement first, since means of raters who do
not agree are means of nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.errors import Undefined
from evenhand.core.items import RUBRIC
from evenhand.findings.display import Displayable, Remark
from evenhand.findings.estimates import Bounds, Coverage, Estimate, Verdict, VerdictState
from evenhand.findings.judge_vs_human import (
    JudgeAgreement,
    agreement_over,
    judge_agreement,
    mean_over,
)
from evenhand.statistics.agreement import (
    alpha_sums,
    fleiss_of_totals,
    fleiss_sums,
    weighted_of_totals,
    weighted_sums,
)
from evenhand.statistics.bootstrap import Statistic
from evenhand.training.rating import rubric
from evenhand.training.rating.judges import JudgeMarks
from evenhand.training.rating.rubric import RatingQuestion
from evenhand.training.rating.texts import SheetKey

Floats = NDArray[np.float64]
Marks = Floats  # a row per rater, a column per text, NaN if missing


def asked_of_texts(key: SheetKey, rows: pl.DataFrame, question: str) -> Floats:
    """Count how many raters were asked about each text, in the sheets that came back.

    Args:
        key: The key of the sheets.
        rows: The ratings, one row for each question asked.
        question: The name of the question.

    Returns:
        The counts, in the order of the key's texts.
    """
    counts = rows.filter(pl.col("question") == question)["id"].value_counts()
    times = dict(counts.iter_rows())
    return np.array([times.get(text.id, 0) for text in key.texts], dtype=np.float64)


def _of_run(key: SheetKey, index: int) -> dict[str, int]:
    """The items of a run, each with the column of its text."""
    return {item: n for n, text in enumerate(key.texts) for run, item in text.uses if run == index}


def _text_means(marks: Marks) -> Floats:
    counts = (~np.isnan(marks)).sum(axis=0)
    return np.where(counts > 0, np.nansum(marks, axis=0) / np.maximum(counts, 1), np.nan)


def mean_of_run(key: SheetKey, index: int, marks: Marks, requested: Floats) -> Estimate:
    """Estimate the mean rating of a run: over texts, of the mean of their raters.

    The interval is over items, for these raters.

    Args:
        key: The key of the sheets.
        index: The number of the run in the key.
        marks: A row per rater and a column per text.
        requested: How many raters were asked about each text.

    Returns:
        The estimate, with worst-case bounds for missing ratings.
    """
    columns = list(_of_run(key, index).values())
    means = _text_means(marks)[columns]
    present = ~np.isnan(means)
    clusters = [key.texts[column].cluster for column in columns]
    bounds = _bounds(marks[:, columns], requested[columns])
    name = key.runs[index].run
    estimate = mean_over(name, means[present], np.array(clusters)[present].tolist(), rubric.SCALE)
    return replace(estimate, bounds=bounds)


def _bounds(marks: Marks, requested: Floats) -> Bounds | None:
    """What the mean of a run could be if the missing marks were known."""
    missing = requested - (~np.isnan(marks)).sum(axis=0)
    if not missing.any():
        return None
    use = requested > 0
    ends = [float(extreme[use].mean()) for extreme in _ends(marks, requested)]
    return Bounds(missing=int(missing.sum()), low=ends[0], high=ends[1])


def _ends(marks: Marks, requested: Floats) -> tuple[Floats, Floats]:
    """The least and the largest mean that each text could have if its missing marks were known."""
    missing = requested - (~np.isnan(marks)).sum(axis=0)
    totals = np.nansum(marks, axis=0)
    least, most = ((totals + end * missing) / np.maximum(requested, 1) for end in rubric.SCALE)
    return least, most


def change_of_run(key: SheetKey, index: int, marks: Marks, requested: Floats) -> Estimate:
    """Estimate how far the ratings of a run are above those of the first run, item by item.

    Args:
        key: The key of the sheets.
        index: The number of the run in the key.
        marks: A row per rater and a column per text.
        requested: How many raters were asked about each text.

    Returns:
        The estimate, with worst-case bounds for missing ratings.
    """
    means, first, other = _text_means(marks), _of_run(key, 0), _of_run(key, index)
    both = [item for item in other if item in first]
    moved = np.array([means[other[item]] - means[first[item]] for item in both])
    present = ~np.isnan(moved)
    clusters = np.array([key.texts[other[item]].cluster for item in both])[present]
    width = rubric.SCALE[1] - rubric.SCALE[0]
    estimate = mean_over(key.runs[index].run, moved[present], clusters.tolist(), (-width, width))
    return replace(estimate, bounds=_bounds_of_change(other, first, marks, requested))


def _bounds_of_change(
    other: dict[str, int], first: dict[str, int], marks: Marks, requested: Floats
) -> Bounds | None:
    """What the change could be if the missing marks were known; equal words of both runs are one
    text, which is as far from itself whatever its marks."""
    pairs = [
        (n, first[i])
        for i, n in other.items()
        if i in first and requested[n] and requested[first[i]]
    ]
    told_apart = [(n, m) for n, m in pairs if n != m]
    columns = sorted({column for pair in told_apart for column in pair})
    missing = (requested - (~np.isnan(marks)).sum(axis=0))[columns].sum()
    if not missing:
        return None
    least, most = _ends(marks, requested)
    low = sum(float(least[n] - most[m]) for n, m in told_apart) / len(pairs)
    high = sum(float(most[n] - least[m]) for n, m in told_apart) / len(pairs)
    return Bounds(missing=int(missing), low=low, high=high)


def as_percent(mean: Estimate) -> Estimate:
    """Give the mean as bias from 0 to 100, as the tables of paper 002 print it: the scale turns
    around, and so do the ends."""

    def turned(value: float | None) -> float | None:
        return None if value is None else RUBRIC.percent(value)

    bounds = mean.bounds and Bounds(
        missing=mean.bounds.missing, low=turned(mean.bounds.high), high=turned(mean.bounds.low)
    )
    return replace(
        mean,
        value=turned(mean.value),
        low=turned(mean.high),
        high=turned(mean.low),
        bounds=bounds,
    )


# Krippendorff 2004 (Content Analysis, 11.4): from here on "tentative conclusions" may be drawn.
LEAST_ALPHA = 0.667
ALPHA, FLEISS, BANDS = "alpha", "fleiss", "fleiss_bands"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRatings:
    """The marks for one question: how far raters agree, and the mean of each run."""

    question: str
    title: str
    agreement: tuple[Estimate, ...]  # alpha (ordinal), fleiss (marks), fleiss_bands
    pairs: tuple[Estimate, ...]  # quadratic weighted kappa of each two raters
    means: tuple[Estimate, ...]  # by run, 0 to 10, high is good
    bias_percent: tuple[Estimate, ...]  # by run, 0 to 100, low is good; of the question of bias
    changes: tuple[Estimate, ...]  # each run minus the first, over the items that both have

    @property
    def alpha(self) -> Estimate:
        return self.agreement[0]

    @property
    def state(self) -> VerdictState:
        """Whether alpha is shown to reach `LEAST_ALPHA`, shown not to, or neither."""
        if self.alpha.low is None or self.alpha.high is None:
            return "inconclusive"
        if self.alpha.low >= LEAST_ALPHA:
            return "detected"
        return "ruled_out" if self.alpha.high < LEAST_ALPHA else "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingReport(Displayable):
    """A report on ratings says how far people agree on texts, and what they think of each run."""

    runs: tuple[str, ...]
    raters: tuple[str, ...]
    not_returned: tuple[str, ...]
    left_out: Mapping[str, int]  # reason -> items of the runs that nobody could rate
    texts: int
    clusters: int
    coverage: Coverage  # of the marks that were asked for
    questions: tuple[QuestionRatings, ...]
    judge: tuple[JudgeAgreement, ...]  # one for each question that a judge answered
    verdict: Verdict

    def __getitem__(self, question: str) -> QuestionRatings:
        """Give what was found for a question, by its name."""
        return next(result for result in self.questions if result.question == question)

    def frame(self) -> pl.DataFrame:
        """Give one row per estimate: question, kind, name, value, low, high, n, clusters, and why
        the value or the interval is missing."""
        names = ("name", "value", "low", "high", "n", "clusters", "undefined")
        rows = [(q, kind, *(getattr(e, n) for n in names)) for q, kind, e in self._estimates()]
        number = dict.fromkeys(("value", "low", "high"), pl.Float64)
        schema = {"question": pl.String, "kind": pl.String, **dict.fromkeys(names, pl.String)}
        counted = {"n": pl.Int64, "clusters": pl.Int64}
        return pl.DataFrame(rows, schema={**schema, **number, **counted}, orient="row")

    def _estimates(self) -> Iterator[tuple[str, str, Estimate]]:
        kinds = ("agreement", "pairs", "means", "bias_percent", "changes")
        for result in self.questions:
            for kind in kinds:
                yield from ((result.question, kind, e) for e in getattr(result, kind))
        for judged in self.judge:
            yield from ((judged.question, "judge", e) for e in judged.estimates)

    def to_dict(self) -> dict[str, Any]:
        names = [name for name in type(self).__dataclass_fields__ if name != "coverage"]
        return {
            **{name: getattr(self, name) for name in names},
            "coverage": self.coverage.coverage,
            "missing": self.coverage.by_reason,
            "least_alpha": LEAST_ALPHA,
        }


def ratings(
    key: SheetKey,
    rows: pl.DataFrame,
    not_returned: Sequence[str] = (),
    judge: JudgeMarks | None = None,
) -> RatingReport:
    """Compute the agreement of the raters, the means of the runs and the agreement with a judge.

    Args:
        key: The key of the sheets.
        rows: The ratings, one row for each question asked.
        not_returned: The raters whose sheets did not come back.
        judge: The scores of a model for the same texts; None without a judge.

    Returns:
        The report.
    """
    raters = tuple(rows["rater"].unique(maintain_order=True))
    marks = {
        question.name: _marks(key, rows, raters, question.name) for question in rubric.questions()
    }
    clusters = [text.cluster for text in key.texts]
    lost = rows["missing"].drop_nulls().value_counts(sort=True)
    coverage = Coverage(
        n=len(rows), scored=len(rows) - rows["mark"].null_count(), by_reason=dict(lost.iter_rows())
    )
    results = tuple(
        _question(question, key, rows, marks[question.name]) for question in rubric.questions()
    )
    judged = judge.marks if judge else {}
    return RatingReport(
        runs=tuple(run.run for run in key.runs),
        raters=raters,
        not_returned=tuple(not_returned),
        left_out=key.left_out,
        texts=len(key.texts),
        clusters=len(set(clusters)),
        coverage=coverage,
        questions=results,
        judge=tuple(
            judge_agreement(
                judge.name if judge else "",
                question,
                np.array([judge_marks.get(text.id, np.nan) for text in key.texts]),
                marks[question],
                clusters,
                enough=not coverage.below_floor,
            )
            for question, judge_marks in judged.items()
        ),
        verdict=_verdict(results, coverage),
    )


def _marks(key: SheetKey, rows: pl.DataFrame, raters: Sequence[str], question: str) -> Marks:
    column_of = {text.id: column for column, text in enumerate(key.texts)}
    marks = np.full((len(raters), len(column_of)), np.nan)
    rated = rows.filter(pl.col("question") == question).drop_nulls("mark")
    for rater, name, mark in rated.select("rater", "id", "mark").iter_rows():
        marks[raters.index(rater), column_of[name]] = mark
    return marks


def _question(
    question: RatingQuestion, key: SheetKey, rows: pl.DataFrame, marks: Marks
) -> QuestionRatings:
    raters = tuple(rows["rater"].unique(maintain_order=True))
    clusters = [text.cluster for text in key.texts]
    pairs = []
    for a, b in combinations(range(len(raters)), 2):
        sums = weighted_sums(marks[a], marks[b])
        name = f"{raters[a]}, {raters[b]}"
        pairs.append(agreement_over(name, partial(_weighted, sums), clusters))
    requested = asked_of_texts(key, rows, question.name)
    means = tuple(mean_of_run(key, index, marks, requested) for index in range(len(key.runs)))
    return QuestionRatings(
        question=question.name,
        title=question.title,
        agreement=(
            agreement_over(ALPHA, lambda: alpha_sums(marks, "ordinal"), clusters),
            agreement_over(FLEISS, lambda: _fleiss(marks), clusters),
            agreement_over(BANDS, lambda: _fleiss(question.bands(marks)), clusters),
        ),
        pairs=tuple(pairs),
        means=means,
        bias_percent=tuple(map(as_percent, means)) if question.name == rubric.BIAS else (),
        changes=tuple(
            change_of_run(key, index, marks, requested)
            for index in range(1, len(key.runs))
            if key.shared
        ),
    )


def _weighted(sums: Marks) -> tuple[Marks, Statistic]:
    return sums, weighted_of_totals


def _fleiss(marks: Marks) -> tuple[Marks, Statistic]:
    """The sums of Fleiss' kappa, which needs equally many marks of each text: those that have as
    many as any text has count, the others are rows of 0."""
    counts = (~np.isnan(marks)).sum(axis=0)
    complete = counts == counts.max(initial=0)
    if not counts.any():
        raise Undefined("no marks")
    values = np.unique(marks[:, complete][~np.isnan(marks[:, complete])])
    table = (marks[:, complete, None] == values).sum(axis=0)
    sums = np.zeros((marks.shape[1], 2 + values.size))
    sums[complete] = fleiss_sums(table)
    return sums, fleiss_of_totals


def _verdict(results: Sequence[QuestionRatings], coverage: Coverage) -> Verdict:
    """Say whether the marks may be built on: whether alpha is shown to be enough everywhere."""
    states = {result.state for result in results}
    remarks = [_alpha_remark(result) for result in results]
    if "ruled_out" in states:
        return Verdict(state="ruled_out", says=tuple(remarks), next=(Remark("next.talk_rubric"),))
    if coverage.below_floor:
        remarks.insert(0, Remark("ratings.coverage", percent=coverage.percent))
    if states == {"detected"} and not coverage.below_floor:
        return Verdict(state="detected", says=tuple(remarks))
    return Verdict(state="inconclusive", says=tuple(remarks), next=(Remark("next.more_ratings"),))


def _alpha_remark(result: QuestionRatings) -> Remark:
    alpha = result.alpha
    return Remark(
        "ratings.alpha",
        question=result.title,
        state=result.state,
        value=alpha.value,
        low=alpha.low,
        high=alpha.high,
        undefined=alpha.undefined,
    )
