"""GEST as an instrument: is "he" said to speak as stereotypes about men would have it?"""

import csv
import io
from typing import Any, ClassVar

import polars as pl

from evenhand.findings.comparison import Comparison
from evenhand.findings.estimates import GuardrailTest, how_sure
from evenhand.findings.report import Report
from evenhand.instruments._contract import (
    DataFolder,
    Grouping,
    Measure,
    Share,
    SumOfRatios,
    card_of,
)
from evenhand.instruments._options import (
    FACTS,
    FEMALE,
    MALE,
    OptionItem,
    OptionSet,
    fluency,
    gap,
    pinned_files,
)
from evenhand.instruments.files import InstrumentWords
from evenhand.runs.store import RunReader
from evenhand.statistics.metrics import likelihood as metrics

_WORDS = InstrumentWords(__package__)

MEN, WOMEN = "men", "women"  # whom a stereotype is about
_HE = metrics.preferred(pl.col(MALE), pl.col(FEMALE))  # 100, or 50 for a tie
_ABOUT = {whom: (pl.col("about") == whom).cast(pl.Float64) for whom in (MEN, WOMEN)}


class Gest(OptionSet):
    """Measures gender stereotypes on GEST: 3,565 sentences that go with one of 16 stereotypes about
    women or men, each said by "she" and by "he" (Pikuliak et al. 2024)."""

    name = "gest"
    title = "GEST"
    clusters = "stereotypes"
    all_clusters = 16
    usual = False
    names = (FEMALE, MALE)
    stratum: ClassVar = "stereotype"
    facts: ClassVar = {**FACTS, "about": pl.String()}
    measures = (
        Measure(
            name="stereotype_gap", label="“he” for stereotypes of men − of women", role="primary",
            statistic=SumOfRatios(((1.0, _HE / 100 * _ABOUT[MEN], _ABOUT[MEN]),
                                   (-1.0, _HE / 100 * _ABOUT[WOMEN], _ABOUT[WOMEN]))),
            better="zero", within=(-1, 1), source="Pikuliak et al. 2024",
        ),
        Measure(name="he_likelier", label="“he” is the likelier speaker", statistic=Share(_HE),
                unit="percent", within=(0, 100)),
        gap("log p(she) − log p(he)"),
        fluency(FEMALE, MALE),
    )  # fmt: skip
    groups = (Grouping(column="stereotype", measures=("he_likelier", "female_gap")),)

    def items(self, data: DataFolder) -> list[OptionItem]:
        text = pinned_files(__package__, data).read("data/gest_1.1.csv").decode()
        rows = csv.DictReader(io.StringIO(text, newline=""))
        kinds = stereotypes()
        return [_item(n, row["sentence"], *kinds[int(row["stereotype"])])
                for n, row in enumerate(rows)]  # fmt: skip

    def says(self, report: Report) -> tuple[str, ...]:
        difference, he = report["stereotype_gap"], report["he_likelier"]
        if difference.value is None or he.value is None:
            return ()
        more = f"{100 * difference.value:+.0f} points{how_sure(difference, _points)}"
        return (_WORDS("result", more=more, overall=he.value),)

    def guardrails(
        self, comparison: Comparison, before: RunReader, after: RunReader
    ) -> tuple[GuardrailTest, ...]:
        """Add no guardrail beyond the metrics' own: the primary metric is unbiased at 0, not at 50.

        Args:
            comparison: Not used.
            before: Not used.
            after: Not used.

        Returns:
            An empty tuple.
        """
        return ()


def _points(value: float) -> str:
    return f"{100 * value:+.0f}"


def stereotypes() -> dict[int, tuple[str, str]]:
    """Give whom each stereotype is about, and its name, by its number in the data."""
    card: dict[str, Any] = card_of(__package__)
    return {
        n: (whom, f"{whom} are {what}") for whom in (WOMEN, MEN) for n, what in card[whom].items()
    }


def _item(number: int, sentence: str, about: str, name: str) -> OptionItem:
    return OptionItem(
        id=f"gest/{number}",
        group=name,
        cluster=name,
        options={FEMALE: _said(sentence, "she"), MALE: _said(sentence, "he")},
        tags={"about": about},
    )


def _said(sentence: str, who: str) -> str:
    """Quote a sentence as English does: a comma stands for its full stop."""
    plain = sentence.strip()
    words = plain if plain.endswith(("?", "!")) else f"{plain.removesuffix('.')},"
    return f'"{words}" {who} said.'
