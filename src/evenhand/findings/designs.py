"""A plan sets designs side by side before anything is spent: what each asks, costs and promises.

Designs of one question may be exchanged for each other. Those of another question may not: a screen
decides about texts, labels estimate a share, and two runs show a change.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from evenhand.findings.decision_rules import ALPHA
from evenhand.findings.display import Displayable, Remark
from evenhand.findings.measures import PairedSpread
from evenhand.findings.plan import ItemPrice, Plan, screen_plan
from evenhand.findings.screen_file import ScreenFile
from evenhand.findings.sequential import block_of, why_not
from evenhand.statistics.planning import Rule, StoppingTime, design_effect, stopping_time
from evenhand.statistics.prediction_powered import labels_for

Question = Literal["a change", "each text", "a share"]
MARGINS = (0, 1, 2)  # the true changes at which a sequential run is drawn
# Our choice: clusters that have 95% of the largest one's rows on average count as even. Bets
# with weights of a half and 1 and that mean decided 64% of drawn runs, equal ones 62 to 67%.
_EVEN = 0.95
# Our choice, found by drawing: predictions are planned for a reach so much smaller. Over shares of
# 0.01 to 0.5 and correlations of 0.6 to 0.95 the reach asked for was then kept in at least 80% of
# the draws; planned without it, in as few as 4%.
_KEPT = 1.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Work says what a design asks for: calls of a model, or labels of people. None: not known."""

    calls: float | None = None
    labels: int | None = None
    tokens: float | None = None
    money: float | None = None
    hours: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenDesign:
    """A design is one way to an answer: its question, what it takes as expected and at worst, and
    what it promises."""

    question: Question
    name: str
    expected: Work
    at_worst: Work
    promises: Remark
    margins: int | None = None  # the true change of a sequential row, in margins


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates say what a call of a judge and a label cost, and how fast calls are answered."""

    judge: ItemPrice
    label_price: float | None = None  # of people; without it the judge labels
    calls_per_second: float | None = None

    def of_calls(self, calls: float, price: ItemPrice) -> Work:
        """Give the work of so many calls."""
        tokens = calls * price.tokens
        money = None if price.per_million is None else tokens / 1e6 * price.per_million
        hours = None if self.calls_per_second is None else calls / self.calls_per_second / 3600
        return Work(calls=calls, tokens=tokens, money=money, hours=hours)

    def of_labels(self, labels: int) -> Work:
        """Give the work of so many labels: by people where they have a price, else by the judge."""
        if self.label_price is not None:
            return Work(calls=0.0, labels=labels, tokens=0.0, money=labels * self.label_price)
        work = self.of_calls(labels * self.judge.calls, self.judge)
        return Work(**{**asdict(work), "labels": labels})


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignTexts:
    """The user's texts, and what is known of them beforehand."""

    count: int
    harmful: float | None = None  # the share that is expected to be
    screen: ScreenFile | None = None
    correlation: float | None = None  # of a scorer's numbers with the labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Designs(Displayable):
    """Designs hold the rows of one table, what each question is, and what is not in the table."""

    plan: Plan
    texts: DesignTexts | None
    rows: tuple[ScreenDesign, ...]
    drawn: tuple[StoppingTime, ...]  # of the sequential rows
    left_out: tuple[Remark, ...]

    def asks(self, question: Question) -> Remark:
        """Return what a question is."""
        plan, count = self.plan, 0 if self.texts is None else self.texts.count
        if question == "a change":
            return Remark("design.asks_change", measure=plan.measure, detect=plan.detect)
        if question == "each text":
            return Remark("design.asks_each_text", count=count)
        return Remark("design.asks_share", count=count, detect=plan.detect)

    def to_dict(self) -> dict[str, Any]:
        return {
            "benchmark": self.plan.instrument.name,
            "measure": self.plan.measure,
            "margin": self.plan.detect,
            "designs": [
                {**_plain(design), "asks": self.asks(design.question)} for design in self.rows
            ],
            "stopping_times": [asdict(stop) for stop in self.drawn],
            "left_out": self.left_out,
        }


def _plain(design: ScreenDesign) -> dict[str, Any]:
    return {field.name: getattr(design, field.name) for field in fields(design)}


def designs(plan: Plan, rates: Rates, texts: DesignTexts | None = None) -> Designs:
    """Compare study designs: fixed and sequential ones for a change, and designs for judging texts.

    Args:
        plan: The plan of two runs; designs for a change need it to name its calls.
        rates: Prices and speeds of models and people.
        texts: The texts to be judged; None if their number is not known.

    Returns:
        The designs, and why others were left out.
    """
    rows, stops, left = list[ScreenDesign](), list[StoppingTime](), list[Remark]()
    if plan.calls is None:
        left.append(Remark("left_out.change", why=plan.too_small))
    else:
        rows.append(_fixed(plan, rates, plan.calls))
        reason = _not_drawn(plan)
        if reason is not None:
            left.append(Remark("left_out.sequential", why=reason))
        else:
            stops = _stopping_times(plan)
            rows += [_sequential(plan, rates, plan.calls, stop) for stop in stops]
    for row in _of_texts(plan.detect, rates, texts):
        if isinstance(row, Remark):
            left.append(row)
        else:
            rows.append(row)
    return Designs(plan=plan, texts=texts, rows=tuple(rows), drawn=tuple(stops),
                   left_out=tuple(left))  # fmt: skip


# -- a change, by two runs -------------------------------------------------------------------------


def _fixed(plan: Plan, rates: Rates, calls: float) -> ScreenDesign:
    work = rates.of_calls(calls, plan.price)
    return ScreenDesign(
        question="a change",
        name="fixed",
        expected=work,
        at_worst=work,
        promises=Remark("design.fixed", detect=plan.detect, power=plan.power, family=plan.family),
    )


def _sequential(plan: Plan, rates: Rates, calls: float, stop: StoppingTime) -> ScreenDesign:
    """The baseline is whole, and the run after it is asked in blocks."""
    margins = round(stop.effect / plan.detect)
    return ScreenDesign(
        question="a change",
        name="sequential",
        margins=margins,
        expected=rates.of_calls(calls / 2 * (1 + stop.share), plan.price),
        at_worst=rates.of_calls(calls, plan.price),
        promises=Remark(
            "design.sequential", decided=stop.decided, fixed=stop.fixed, share=stop.share
        ),
    )


def _not_drawn(plan: Plan) -> Remark | None:
    """Return why no sequential row can be defended; None where one can."""
    instrument, measure = plan.instrument, plan.instrument.measure(plan.measure)
    why = why_not(instrument, measure)
    if why is not None:
        return Remark("left_out.cannot_stop", measure=measure.name, why=why)
    if measure.null is not None:
        return Remark("left_out.side_of_null", measure=measure.name)
    if not _even(plan):
        return Remark("left_out.uneven", measure=measure.name, clusters=instrument.clusters)
    return None


def _even(plan: Plan) -> bool:
    """Say whether the clusters have about as many rows each: as the instrument's own sample has,
    which takes as many of each, or a multiple of them that nearly every cluster has."""
    spread = plan.instrument.spread
    if spread is None or not plan.rows:
        return False
    each = plan.rows / _clusters(plan)[0]
    full = spread.per_cluster * math.ceil(each / spread.per_cluster)
    return full <= spread.most_per_cluster and each >= _EVEN * full


def _stopping_times(plan: Plan) -> list[StoppingTime]:
    """Draw runs of as many clusters as the fixed plan has, with the spread that it assumes."""
    measure = plan.instrument.measure(plan.measure)
    least, most = measure.range
    clusters, sd = _clusters(plan)
    rule = Rule(
        margin=plan.detect,
        ends=(least - most, most - least),
        block=block_of(clusters),
        pass_error=ALPHA / 2,
        fail_error=ALPHA / 2 / plan.family,
    )
    return [stopping_time(multiple * plan.detect, sd, clusters, rule) for multiple in MARGINS]


def _clusters(plan: Plan) -> tuple[int, float]:
    """Give how many clusters the plan has, and how much the change of one varies."""
    spread, rows = plan.assumed, plan.rows or 0
    if not isinstance(spread, PairedSpread):
        return plan.clusters or 0, spread.se * math.sqrt(spread.clusters)
    clusters = math.ceil(rows / spread.per_cluster)
    if plan.instrument.all_clusters is not None:
        clusters = min(clusters, plan.instrument.all_clusters)
    each = rows / clusters
    return clusters, spread.sd * math.sqrt(design_effect(max(each, 1.0), spread.icc) / each)


# -- the user's texts ------------------------------------------------------------------------------


def _of_texts(
    reach: float, rates: Rates, texts: DesignTexts | None
) -> Iterator[ScreenDesign | Remark]:
    if texts is None:
        yield Remark("left_out.no_texts")
        return
    yield from _screened(rates, texts)
    yield from _labelled(reach, rates, texts)


def _screened(rates: Rates, texts: DesignTexts) -> Iterator[ScreenDesign | Remark]:
    every = rates.of_calls(texts.count * rates.judge.calls, rates.judge)
    yield ScreenDesign(question="each text", name="judging all", expected=every, at_worst=every,
                       promises=Remark("design.judging_all"))  # fmt: skip
    if texts.screen is None:
        yield Remark("left_out.no_screen")
        return
    screening = screen_plan(texts.screen, texts.count, rates.judge, texts.harmful)
    sent = screening.sent
    promised = tuple(
        (promise.kind, promise.group, promise.at_most, promise.confidence)
        for promise in texts.screen.promises
        if promise.asked_for and not promise.lacks
    )
    yield ScreenDesign(
        question="each text",
        name="screened",
        expected=rates.of_calls(screening.calls(sent.share), rates.judge),
        at_worst=every,
        promises=Remark(
            "design.screened",
            promises=promised,
            share=sent.share,
            low=sent.low,
            high=sent.high,
        ),
    )


def _labelled(reach: float, rates: Rates, texts: DesignTexts) -> Iterator[ScreenDesign | Remark]:
    share = 0.5 if texts.harmful is None else texts.harmful
    alone = labels_for(reach, texts=texts.count, share=share)
    if alone is None:
        yield Remark("left_out.too_few_texts", texts=texts.count, reach=reach)
        return
    work = rates.of_labels(alone)
    by_judge = rates.label_price is None
    promise = Remark("design.labels_alone", reach=reach, harmful=texts.harmful, by_judge=by_judge)
    yield ScreenDesign(question="a share", name="labels alone", expected=work, at_worst=work,
                       promises=promise)  # fmt: skip
    if texts.correlation is None:
        yield Remark("left_out.no_correlation")
        return
    planned = labels_for(reach / _KEPT, texts=texts.count, share=share,
                         correlation=texts.correlation)  # fmt: skip
    fewer = alone if planned is None else min(alone, planned)
    promise = Remark(
        "design.with_predictions",
        reach=reach,
        correlation=texts.correlation,
        alone=alone,
        fewer=fewer,
        by_judge=by_judge,
    )
    yield ScreenDesign(
        question="a share",
        name="labels with predictions",
        expected=rates.of_labels(fewer),
        at_worst=work,
        promises=promise,
    )
