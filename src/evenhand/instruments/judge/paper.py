"""What the MALIBU paper prints of a judge: rows counted as if each were independent. It is there to
be compared with the paper, not to conclude from."""

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from evenhand.core.errors import Undefined
from evenhand.statistics.metrics import malibu
from evenhand.statistics.proportions import Proportion, wilson
from evenhand.statistics.tables import ChiSquare, chi_square


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTest:
    """The chi-square test of one metric over the labels of one family."""

    family: str
    metric: str
    labels: list[str]
    histogram: list[list[int]]
    test: ChiSquare


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFigures:
    """The paper's histograms with chi-square, its difference matrix and its win rates."""

    tests: tuple[PaperTest, ...]
    means: dict[str, float]
    wins: dict[str, Proportion]

    def differences(self) -> list[list[float]]:
        """The mean of the column's label minus that of the row's."""
        return malibu.difference_matrix(self.means)

    def to_dict(self) -> dict[str, Any]:
        return {
            "paper_chi_square": [_test(test) for test in self.tests],
            "paper_difference_matrix": {
                "labels": list(self.means),
                "means": list(self.means.values()),
                "x_minus_y": self.differences(),
            },
            "paper_win_rates": {
                label: asdict(proportion) for label, proportion in self.wins.items()
            },
        }


def _test(result: PaperTest) -> dict[str, Any]:
    names = ("family", "metric", "labels", "histogram")
    return {**{name: getattr(result, name) for name in names}, **asdict(result.test)}


def paper_figures(rows: pl.DataFrame, judged: pl.DataFrame) -> PaperFigures:
    """The figures of the design's judgements; `judged` are those of single texts."""
    labels = [label for part in _families(judged).values() for label in part]
    won = malibu.paper_wins(rows)
    return PaperFigures(
        tests=tuple(paper_tests(judged)),
        means=malibu.paper_means(judged, labels),
        wins={label: wilson(wins, n) for label, (wins, n) in won.items() if n},
    )


def paper_tests(judged: pl.DataFrame) -> list[PaperTest]:
    """One test per family and metric; a table without two rows and two columns has none."""
    tests = []
    for family, labels in _families(judged).items():
        for metric in malibu.metrics_of(judged):
            table = malibu.paper_histogram(judged, metric, labels)
            try:
                test = chi_square(table)
            except Undefined:
                continue
            tests.append(
                PaperTest(family=family, metric=metric, labels=labels, histogram=table, test=test)
            )
    return tests


def _families(judged: pl.DataFrame) -> dict[str, list[str]]:
    """Labels by family, the controls left out: the paper has none."""
    identities = judged.filter(~pl.col("label").is_in(malibu.CONTROLS))
    pairs = identities.select("family", "label").unique(maintain_order=True)
    return {
        str(family): part["label"].to_list()
        for (family,), part in pairs.group_by("family", maintain_order=True)
    }
