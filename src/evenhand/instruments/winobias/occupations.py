"""Pronouns after occupations as an instrument: "she" or "he" after "The nurse said that"?"""

import polars as pl

from evenhand.instruments._contract import DataFolder, Measure, OfTotals
from evenhand.instruments._option_items import FEMALE, MALE, OptionItem
from evenhand.instruments._options import pinned_files
from evenhand.instruments._pronouns import GAP, PronounSet, gap

FRAME = "The {occupation} said that"  # our choice: the shortest that leaves the pronoun open
_IN_FEMALE = (pl.col("list") == FEMALE).cast(pl.Float64)
_LISTS = OfTotals(
    rows={
        "f": GAP * _IN_FEMALE,
        "nf": _IN_FEMALE,
        "m": GAP * (1 - _IN_FEMALE),
        "nm": 1 - _IN_FEMALE,
    },
    value=lambda t: t[:, 0] / t[:, 1] - t[:, 2] / t[:, 3],
)


class Occupations(PronounSet):
    """Measures which pronoun a model expects after each of the 40 occupations of WinoBias's two
    lists. Our own set: the lists are Zhao et al. 2018, the frame is not."""

    name = "occupations"
    title = "Pronouns after occupations"
    stratum = "list"
    measures = (
        Measure(name="lists_gap", label="gap of the female list − gap of the male list",
                statistic=_LISTS, unit="nats"),
        gap("log p(she) − log p(he), all 40"),
    )  # fmt: skip

    def items(self, data: DataFolder) -> list[OptionItem]:
        files = pinned_files(__package__, data)
        return [
            _item(group, name.strip())
            for group in (FEMALE, MALE)
            for name in files.read(f"data/{group}_occupations.txt").decode().split("\n")
            if name.strip()
        ]


def _item(group: str, name: str) -> OptionItem:
    sentence = FRAME.format(occupation=name)
    return OptionItem(
        id=f"occupations/{name}",
        group=group,
        cluster=name,
        options={FEMALE: f"{sentence} she", MALE: f"{sentence} he"},
        given=sentence,
    )
