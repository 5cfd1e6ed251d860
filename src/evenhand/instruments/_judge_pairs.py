"""Instruments for judges: pairs of answers of which one is known to be the better, in both orders.

A set gives its pairs. A judge (`--method rate`, or a panel) is asked about each pair twice, either
answer first, in the words of `evenhand audit judge`. What it then says of a pair is right, wrong or
a tie, in each order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from evenhand.agents.prompts import load
from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.findings.estimates import how_sure
from evenhand.findings.report import Report
from evenhand.findings.scoring import UNREADABLE
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    Grouping,
    Instrument,
    ListedItems,
    Measure,
    Services,
    Share,
    ShareOfClusters,
    option,
    why_lost,
)
from evenhand.instruments._options import OptionItem, sample
from evenhand.instruments.files import InstrumentWords, score_of
from evenhand.methods import Method
from evenhand.runs.runners.source import Source

_WORDS = InstrumentWords(__package__)

BETTER, WORSE = "better", "worse"  # the names of a pair's options; what is given is the task
RIGHT, WRONG, TIE = "right", "wrong", "tie"
MARGIN = 0.05  # our choice, fixed before looking: what consistency may lose
_JUDGES = ("rate", "panel")
_PROMPT = load("malibu/two_candidates")
BETTER_FIRST = "better_first"
_ORDERS = {BETTER_FIRST: (BETTER, WORSE), "better_second": (WORSE, BETTER)}
_SAID, _HALF = pl.col("said"), 0.5
_STORED = ("1", "2", TIE)  # a recorded verdict: the number of a response in the data


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePairsOptions:
    # Our choice of 100: 200 calls, and a share of right picks to about ± 10 points.
    sample: int = option(100, "Maximum number of pairs, in equal shares from each kind.", least=2)
    all: bool = option(False, "Use all pairs.")
    sample_seed: int = option(0, "Random seed for sampling pairs.")


def _of_pairs(name: str, over: Any, **more: Any) -> Measure:
    """A share of pairs. One of which a verdict is missing has no value: it is not known."""
    statistic = ShareOfClusters(
        _SAID, lambda verdicts: pl.when(verdicts.len() == len(_ORDERS)).then(over(verdicts))
    )
    return Measure(
        name=name,
        statistic=statistic,
        within=(0, 1),
        better="higher",
        **_WORDS.measure(name),
        **more,
    )


class JudgePairs(Instrument):
    """A set of pairs of answers whose better one is known."""

    clusters = "pairs"
    columns = ("scores_after", "text")
    facts: ClassVar = {
        "pair": pl.String(),
        "kind": pl.String(),
        "order": pl.String(),
        "better": pl.String(),
    }
    options = JudgePairsOptions
    together = "pair"
    answer_id = "{pair}:{first}"  # first: the number of the response shown first
    every_item: ClassVar = {"sample": None, "all": True}
    measures = (
        Measure(name="accuracy", role="primary", statistic=Share(pl.col("right")), better="higher",
                within=(0, 1), **_WORDS.measure("accuracy")),
        _of_pairs("right_both", lambda s: (s == RIGHT).all()),
        _of_pairs("consistency", lambda s: s.n_unique() == 1, role="guardrail", margin=MARGIN),
        Measure(name="first_slot", statistic=Share(pl.col("first")), better="fifty",
                within=(0, 100), unit="percent", **_WORDS.measure("first_slot")),
        Measure(name="ties", label="ties", statistic=Share(_SAID == TIE), within=(0, 1)),
    )  # fmt: skip
    groups = (
        Grouping(
            column="kind", measures=("accuracy", "right_both", "consistency"), says_whom=False
        ),
    )
    anchors: ClassVar = {
        "guessing": {"accuracy": 0.5, "right_both": 0.25, "consistency": 0.5},
        "always the first": {"accuracy": 0.5, "right_both": 0.0, "consistency": 0.0},
    }
    utility = "accuracy"
    references = ("rate",)

    def pairs(self, data: DataFolder) -> list[OptionItem]:
        """All pairs of the set: the task is given, the options are `better` and `worse`."""
        raise NotImplementedError

    def drawn(self, data: DataFolder, size: int | None, seed: int) -> list[OptionItem]:
        """Sample pairs of the dataset in equal shares from each kind.

        Args:
            data: Where the dataset is stored or downloaded to.
            size: Number of pairs. None: all.
            seed: Seed for sampling.

        Returns:
            The pairs in the order of the data.

        Raises:
            UserError: The number of pairs read differs from the one in the dataset's card.
        """
        every = self.pairs(data)
        if len(every) != self.card()["data"]["items"]:
            raise UserError(
                f"{self.title} has {len(every)} pairs, which differs from its dataset card. "
                "Download the dataset again"
            )
        return sample(every, size, seed)

    def source(self, data: DataFolder, options: JudgePairsOptions) -> Source:
        size = None if options.all else options.sample
        pairs = self.drawn(data, size, options.sample_seed)
        return ListedItems(
            self,
            [item for pair in pairs for item in in_both_orders(pair)],
            sampling={"pairs": size or "all", "seed": options.sample_seed},
            version=self.card()["version"],
            also={"prompt": {_PROMPT.label: _PROMPT.sha256}},
        )

    def check(
        self, options: Any, method: Method, players: Mapping[str, str], services: Services
    ) -> None:
        """Refuse a method that answers items instead of judging them.

        Args:
            options: Stored verdicts need no judge.
            method: Must be a judging method, such as `rate`.
            players: Not used.
            services: Not used.

        Raises:
            UserError: The method is not a judge.
        """
        if not self.stores_answers(options) and method.name not in _JUDGES:
            raise UserError(
                f"{self.title} evaluates a judge, but the method {method.name} does not judge. "
                f"Run `evenhand measure {self.name} --method rate`"
            )

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """What the judge said of each pair in each order; null where that cannot be read."""
        better_first = pl.col("order") == BETTER_FIRST
        asked = score_of("scores_after", "preferred")
        better = pl.coalesce(pl.when(better_first).then(asked).otherwise(1 - asked), _recorded())
        first = pl.when(better_first).then(better).otherwise(1 - better)
        verdict = (
            pl.when(better > _HALF).then(pl.lit(RIGHT))
            .when(better < _HALF).then(pl.lit(WRONG))
            .when(better == _HALF).then(pl.lit(TIE))
        )  # fmt: skip
        return rows.select(
            "item_id",
            "kind",
            cluster="pair",
            said=verdict,
            right=_picked(better),
            first=100 * _picked(first),
            state=pl.when(first.is_not_null())
            .then(pl.lit(SCORED))
            .when(pl.col("text").is_not_null())
            .then(pl.lit(UNREADABLE))
            .otherwise(why_lost()),
        )

    def says(self, report: Report) -> tuple[str, ...]:
        right, both = report["accuracy"], report["right_both"]
        if right.value is None or both.value is None:
            return ()
        sure = [how_sure(estimate, "{:.0%}".format) for estimate in (right, both)]
        return (_WORDS("judge_result", right=right.value, right_sure=sure[0], both=both.value,
                       both_sure=sure[1]),)  # fmt: skip


def _recorded() -> pl.Expr:
    """The better answer's part of a recorded verdict: 1, 0, or a half for a tie."""
    verdict = pl.col("text").str.strip_chars()
    tie = pl.when(verdict == TIE).then(_HALF)
    return pl.when(verdict.is_in(_STORED)).then(
        pl.coalesce(tie, (verdict == pl.col("better")).cast(pl.Float64))
    )


def _picked(part: pl.Expr) -> pl.Expr:
    """1 where more than half of a verdict goes to an answer, 0 where less does, ½ for a tie. Our
    choice: with two answers a tie is as good as a coin."""
    return _HALF * (1 + (part - _HALF).sign())


def in_both_orders(pair: OptionItem) -> list[Item]:
    """A pair as a judge is asked about it: either answer first."""
    return [_item(pair, order) for order in _ORDERS]


def _item(pair: OptionItem, order: str) -> Item:
    first, second = (pair.options[which] for which in _ORDERS[order])
    (message,) = _PROMPT.render(
        {"task": pair.given, "first": first, "second": second, "said_first": "", "said_second": ""}
    )
    better = pair.tags[BETTER]
    shown_first = int(better) if order == BETTER_FIRST else 3 - int(better)
    tags = {"phase": "pair", "first_words": "", "second_words": ""}  # what a judge's method reads
    return Item(
        id=f"{pair.id}:{shown_first}",
        prompt=message.content,
        tags={"pair": pair.id, "kind": pair.group, "order": order, "better": better, **tags},
    )


def pair_of(name: str, kind: str, task: str, answers: Sequence[str], better: int) -> OptionItem:
    """Make a pair of two answers to one task.

    Args:
        name: Item id, unique in the dataset. It is also the cluster.
        kind: Stratum that a sample takes equal shares of.
        task: The task that both answers respond to.
        answers: The two answers in the order of the data.
        better: Number of the better answer: 1 or 2.

    Returns:
        The pair, with the options `better` and `worse`.

    Raises:
        UserError: `better` is neither 1 nor 2.
    """
    if better not in (1, 2):
        raise UserError(f"{name}: unknown label for the better answer: {better!r}")
    options = {BETTER: answers[better - 1], WORSE: answers[2 - better]}
    return OptionItem(
        id=name, group=kind, cluster=name, options=options, given=task, tags={BETTER: str(better)}
    )
