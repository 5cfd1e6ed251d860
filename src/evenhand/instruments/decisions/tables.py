"""The tables of stored decisions: rates and ratios, and what missing outcomes could do."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.core.errors import UserError, choices_for
from evenhand.core.package_data import read_toml
from evenhand.findings.display import Remark, RemarkOrText
from evenhand.findings.estimates import Cell, Section
from evenhand.findings.ratios import (
    RARE,
    GroupingResult,
    GroupResult,
    p_said,
    ratio_said,
    ratios_section,
)
from evenhand.instruments.decisions.judged import LEFT_OUT
from evenhand.instruments.files import InstrumentWords
from evenhand.statistics.multiplicity import holm
from evenhand.statistics.tables import fisher_p

Ends = tuple[float, float]
_WORDS = InstrumentWords(__package__)


@dataclass(frozen=True, slots=True)
class SelectionWords:
    """What selecting is called in a table: people are selected, or score above the median."""

    title: str
    selected: str
    rate: str


SELECTING = SelectionWords(**_WORDS.section("selecting"))
SCORING = SelectionWords(**_WORDS.section("scoring"))


def ratios(
    index: int, grouping: GroupingResult, words: SelectionWords, small: float | None
) -> list[Section]:
    """Make the table of each group's selection rate and impact ratio.

    Args:
        index: Position of the grouping in the report. Only the first explains the rates.
        grouping: Results of one grouping.
        words: What being selected is called.
        small: Share of people below which a group was left out. None if no rule leaves groups out.

    Returns:
        The table, and if outcomes are missing a second one with their worst-case bounds.
    """
    rate = _WORDS("rate", rate=words.rate)
    lines: list[RemarkOrText] = [Remark("ratios.note", rate=rate)] * (index == 0)
    if any(group.contrast is not None and group.impact is None for group in grouping.groups):
        lines.append(_WORDS("no_impact_ratio", rare=RARE, selected=words.selected))
    if any(group.state == LEFT_OUT for group in grouping.groups):
        lines.append(_WORDS("left_out", small=small))
    table = ratios_section(
        f"ratios_{index}", grouping, title=words.title, people="people", selected=words.selected,
        note=Remark("lines", lines=tuple(lines)) if lines else "",
    )  # fmt: skip
    return [table, *_if_known(index, grouping)]


def _if_known(index: int, grouping: GroupingResult) -> list[Section]:
    if not any(group.missing for group in grouping.tested):
        return []
    rows: list[tuple[Cell, ...]] = []
    for group in grouping.tested:
        least, most = if_known(group)
        ends = f"{ratio_said(least)} to {ratio_said(most)}"
        rows.append((group.name, group.people, group.missing, ends))
    name = f"if_known_{index}"
    return [_WORDS.table(name, rows, like="if_known", grouping=grouping.title)]


def if_known(group: GroupResult) -> Ends:
    """The least and the largest ratio to the others, over all ways in which the missing outcomes
    could have come out."""
    assert group.selections is not None
    least, most = group.selections.for_more, group.selections.for_less
    return least.ratio(least.selected), most.ratio(most.selected)


def by_threshold(
    name: str, grouping: GroupingResult, threshold: float, *, clustered: bool
) -> Section | None:
    """Make the table for a rule with a threshold and a significance test.

    Args:
        name: Key of the table in `words.toml`.
        grouping: Results of one grouping.
        threshold: Impact ratio below which a group is flagged, such as 0.8.
        clustered: Whether people are clustered, so that the test's p-values would not hold.

    Returns:
        The table. None if no group has an impact ratio.
    """
    with_ratio = [group for group in grouping.groups if group.impact is not None]
    if not with_ratio:
        return None
    best = max(with_ratio, key=lambda group: group.impact or 0.0)
    others = [group for group in with_ratio if group is not best]
    tested = [_fisher(group, best) for group in others]
    rows = tuple(
        (group.name, f"{group.impact:.2f}", _is_below(group, with_ratio, threshold),
         *(("open", "open") if clustered else (p_said(p), p_said(adjusted))))
        for group, p, adjusted in zip(others, tested, holm(tested), strict=True)
    )  # fmt: skip
    return _WORDS.table(name, rows, in_short=True, like="threshold", threshold=threshold,
                        grouping=grouping.title, best=best.name)  # fmt: skip


def _fisher(group: GroupResult, best: GroupResult) -> float:
    """Fisher's p of a group against the best, its own missing outcomes selected and those of the
    best not; 1 where that turns them round."""
    filled = group.selected + group.missing
    if filled * best.people >= best.selected * group.people:
        return 1.0
    return fisher_p([[filled, group.people - filled], [best.selected, best.people - best.selected]])


def _is_below(group: GroupResult, groups: Sequence[GroupResult], threshold: float) -> str:
    """Whether the impact ratio is below the threshold however the missing outcomes came out."""
    others = [other for other in groups if other is not group]
    most = (group.selected + group.missing) / group.people
    least = group.selected / group.people
    best_least = max(other.selected / other.people for other in others)
    best_most = max((other.selected + other.missing) / other.people for other in others)
    if most < threshold * best_least:
        return "yes"
    return "no" if least >= threshold * best_most else "open"


# -- presets of rules -----------------------------------------------------------------------------


NOT_ADVICE = _WORDS("not_advice")
_Text = Annotated[str, Field(min_length=1)]


class DecisionsPreset(BaseModel):
    """A preset defines which tables a rule requires, its threshold or test, how it treats small
    categories, and what must be stated next to the numbers."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    title: _Text
    source: _Text
    read: _Text  # the day, and whether the text itself or what others write of it
    in_force: _Text
    categories: _Text
    threshold: float | None = Field(default=None, gt=0, lt=1)
    threshold_says: _Text
    test: bool
    test_says: _Text
    small: float | None = Field(default=None, gt=0, lt=1)
    small_says: _Text
    stated: list[_Text] = []

    def section(self) -> Section:
        """Make the table of what the rule says."""
        rows = [
            ("source", self.source),
            ("read", self.read),
            ("in force", self.in_force),
            ("categories", self.categories),
            ("threshold", self.threshold_says),
            ("significance test", self.test_says),
            ("small categories", self.small_says),
            *(("to be stated", statement) for statement in self.stated),
        ]
        texts = _WORDS.section("preset", not_advice=NOT_ADVICE)
        return Section(
            name="preset", title=self.title, columns=("", texts["column"]), rows=tuple(rows),
            note=texts["note"], in_short=True,
        )  # fmt: skip


def names() -> list[str]:
    """Name the presets that there are."""
    files = resources.files(__package__).joinpath("presets").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def preset(name: str) -> DecisionsPreset:
    """Give the preset of this name."""
    if name not in names():
        raise UserError(f"unknown preset {name!r}. {choices_for(name, names())}")
    try:
        return DecisionsPreset.model_validate(read_toml(__package__, "presets", f"{name}.toml"))
    except ValidationError as error:
        raise UserError(f"the preset {name!r} is invalid: {error}") from None
