"""What people said of texts, and how far they agree: agreement first, since means of raters who do
not agree are means of nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from evenhand.core.errors import Undefined
from evenhand.findings.display import Displayable, Remark
from evenhand.findings.estimates import Coverage, Estimate, Verdict, VerdictState
from evenhand.findings.judge_vs_human import JudgeAgreement, agreement_over, judge_agreement
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
from evenhand.training.rating.rated_runs import (
    Marks,
    as_percent,
    asked_of_texts,
    change_of_run,
    mean_of_run,
)
from evenhand.training.rating.rubric import RatingQuestion
from evenhand.training.rating.texts import SheetKey

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
            return "not known"
        if self.alpha.low >= LEAST_ALPHA:
            return "shown"
        return "not shown" if self.alpha.high < LEAST_ALPHA else "not known"


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
        there is no value or no interval."""
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
    """Compute the agreement of the raters, the means of the runs and, if there is one, how far a
    judge agrees with the raters."""
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
    if "not shown" in states:
        return Verdict(state="not shown", says=tuple(remarks), next=(Remark("next.talk_rubric"),))
    if coverage.below_floor:
        remarks.insert(0, Remark("ratings.coverage", percent=coverage.percent))
    if states == {"shown"} and not coverage.below_floor:
        return Verdict(state="shown", says=tuple(remarks))
    return Verdict(state="not known", says=tuple(remarks), next=(Remark("next.more_ratings"),))


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
