"""Stored decisions as an instrument: who was selected, by group, and is it more than chance?"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import orjson
import polars as pl

from evenhand.errors import UserError
from evenhand.findings.found import Section, how_sure
from evenhand.findings.ratios import SHOWN, tests_section
from evenhand.findings.report import Report
from evenhand.findings.scored import UNREADABLE, Scoring, outcome_batches
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    Instrument,
    Mean,
    Measure,
    option,
    why_lost,
)
from evenhand.instruments.decisions import tables
from evenhand.instruments.decisions.counted import Counts, ahead, by_grouping, counted, rates
from evenhand.instruments.decisions.data import NO, YES, read_people
from evenhand.instruments.decisions.presets import Preset, preset
from evenhand.instruments.decisions.source import LARGEST, PeopleSource, as_score, median_of
from evenhand.store import RunReader

_OUTCOMES = dict.fromkeys(YES, 1) | dict.fromkeys(NO, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionsOptions:
    table: Path | None = option(None, "The people, one a row: a .csv or .jsonl file.")
    groups: str | None = option(None, "The columns that say who somebody is, such as sex,race.")
    outcome: str | None = option(
        None,
        "The column that says who was selected: 1 or 0, yes or no, true or false, selected or "
        "rejected. Anything else is missing, and counted.",
    )
    score: str | None = option(
        None, "Or the column of a score: who is above the median of all counts as selected."
    )
    cluster: str | None = option(
        None, "A column whose rows belong together, such as a requisition or a month."
    )
    preset: str | None = option(
        None, "A rule whose table and statements are added, such as nyc-ll144."
    )
    leave_out_small: bool = option(
        False, "With --preset: leave out of the ratios the categories that the rule lets be."
    )


class Decisions(Instrument):
    """Audits stored decisions: who was selected or scored above the median, by group, beside what
    chance alone would print. Nobody is asked."""

    name = "decisions"
    title = "Decisions"
    clusters = "people"
    columns = ("text",)
    facts: ClassVar = {
        "group": pl.String(),
        "stratum": pl.String(),
        "median_low": pl.String(),
        "median_high": pl.String(),
    }
    options = DecisionsOptions
    measures = (
        Measure(name="favoured", label="favoured groups", statistic=Mean(pl.col("favoured")),
                better="zero", within=(-1, 1), role="primary", margin=0.01),
    )  # fmt: skip
    whom = "ratios_"
    harm = "favoured"
    matters = 0.01  # our choice: as much as two equal groups make whose rates are 4 points apart
    selects = "each"

    def source(self, data: DataFolder, options: DecisionsOptions) -> PeopleSource:
        del data
        groups = _columns(options)
        rule = preset(options.preset) if options.preset else None
        if options.leave_out_small and (rule is None or rule.small is None):
            raise UserError(
                "--leave-out-small goes with a preset whose rule lets small categories be left "
                "out, such as --preset nyc-ll144"
            )
        assert options.table is not None
        column = options.outcome or options.score or ""
        people = read_people(options.table, groups, column, options.cluster)
        median = median_of(people, column) if options.score else None
        return PeopleSource(
            people,
            {
                "benchmark": self.name,
                "version": self.card()["version"],
                "sampling": {"groups": groups, "cluster": options.cluster or ""},
                "median": median,
                "preset": options.preset or "",
                "leave_out_small": options.leave_out_small,
            },
        )

    def stores_answers(self, options: DecisionsOptions) -> bool:
        del options
        return True

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Who was selected; null where the cell does not say so. A score between the least and the
        largest median that there could be is neither above nor below it."""
        cell = pl.col("text").str.strip_chars().str.to_lowercase()
        decided = cell.replace_strict(_OUTCOMES, default=None, return_dtype=pl.Int64)
        low, high = (
            pl.col(f"median_{end}").cast(pl.Float64, strict=False) for end in ("low", "high")
        )
        is_above, is_below = pl.col("answer") > high, pl.col("answer") <= low
        above = pl.when(is_above).then(1).when(is_below).then(0)
        kinds = {text: None not in orjson.loads(text) for text in rows["group"].unique()}
        found = rows.with_columns(answer="text").with_columns(answer=as_score())
        found = found.with_columns(
            selected=pl.when(low.is_null()).then(decided).otherwise(above).cast(pl.Int64),
            is_known=pl.col("group").replace_strict(kinds, return_dtype=pl.Boolean),
        )
        read = pl.when(pl.col("selected").is_not_null()).then(pl.lit(SCORED))
        state = pl.when(pl.col("text").is_null()).then(why_lost()).otherwise(
            read.otherwise(pl.lit(UNREADABLE))
        )  # fmt: skip
        alone = pl.col("stratum") == ""
        cluster = pl.when(alone).then("item_id").otherwise("stratum")
        return found.select(
            "item_id", "stratum", "group", "is_known", "selected", cluster=cluster, state=state
        )

    def scoring(self, run: RunReader) -> Scoring:
        everybody = self._everybody(run)
        return self._scored(ahead(everybody), rates(everybody))

    def scorings(self, before: RunReader, after: RunReader) -> tuple[Scoring, Scoring]:
        """Who is ahead is told by the run before, for both."""
        first, second = (self._everybody(run) for run in (before, after))
        known = ahead(first)
        return self._scored(known, rates(first)), self._scored(known, rates(second))

    def _scored(self, known: pl.DataFrame, rate: pl.DataFrame) -> Scoring:
        def score(rows: pl.DataFrame) -> pl.DataFrame:
            outcomes = self.outcomes(rows)
            joined = outcomes.join(known, on="item_id", how="left", maintain_order="left")
            joined = joined.join(rate, on="stratum", how="left", maintain_order="left")
            favoured = pl.col("beyond") * (pl.col("selected") - pl.col("rate"))
            return joined.with_columns(favoured=favoured)

        return score

    def _everybody(self, run: RunReader) -> pl.DataFrame:
        columns = ("item_id", "stratum", "group", "is_known", "selected")
        return pl.concat(one.select(columns) for one in outcome_batches(self, run, self.outcomes))

    def notes(self, report: Report, run: RunReader) -> tuple[str, ...]:
        lines = ["A difference may have causes that are not in this table: it is no proof of why."]
        median = run.record.source["median"]
        if median is not None:
            lines.append(_median_said(*median))
        table = report.section("ratios_0")
        unknown = [row for row in table.rows if row[-1] == tables.NO_RATIO] if table else []
        if unknown:
            lines.append(
                f"{unknown[0][1]:,} people whose category is not known are in no ratio and not in "
                "the score."
            )
        if report.coverage.scored < report.coverage.n:
            if run.record.source["sampling"]["cluster"]:
                lines.append("Outcomes are missing within clusters, so it is not tested whether "
                             "the groups matter at all.")  # fmt: skip
            lines.append(
                "Who is ahead is named by the outcomes that are known; the states of the table and "
                "the tests hold however the missing ones came out."
            )
        return tuple(lines)

    def says(self, report: Report) -> tuple[str, ...]:
        one, table = report["favoured"], report.section("ratios_0")
        if one.value is None or table is None:
            return ()
        beside = how_sure(one, lambda share: f"{100 * share:.1f}")
        more = "more" if one.value >= 0 else "fewer"
        lines = [
            f"Of 100 decisions, {100 * abs(one.value):.1f} {more} than by chance select somebody "
            f"of the groups that were ahead until then{beside}.",
        ]
        ratio, rate = table.columns.index("ratio"), table.columns.index("ratio") - 1
        judged = [row for row in table.rows if row[ratio]]
        if judged:
            most, least = judged[0], judged[-1]
            lines.append(
                f"Most often {table.columns[rate - 1]}: {most[0]} ({most[rate]}); least: "
                f"{least[0]} ({least[rate]}). {table.note.splitlines()[0]}"
            )
        behind = [str(row[0]) for row in table.rows if row[-1] == SHOWN]
        if behind:
            lines.append(
                f"Shown to be behind, by what chance alone prints: {', '.join(behind)}. (The score "
                "weighs a group by its size, and may not see a small one that is ahead.)"
            )
        return tuple(lines)

    def sections(self, report: Report, run: RunReader) -> tuple[Section, ...]:
        del report
        source = run.record.source
        rule = preset(source["preset"]) if source["preset"] else None
        small = rule.small if rule and source["leave_out_small"] else None
        words = tables.SELECTING if source["median"] is None else tables.SCORING
        clustered = bool(source["sampling"]["cluster"])
        table = counted(outcome_batches(self, run, self.outcomes))
        if not table["selected"].sum():
            return ()
        by = _by_said(source["sampling"]["groups"], table)
        made = [
            section
            for place, (said, counts) in enumerate(by.items())
            for section in tables.ratios(
                f"ratios_{place}", said, counts, words, clustered=clustered, small=small
            )
        ]
        tested = {said: p for said, one in by.items() if (p := tables.uneven(one)) is not None}
        within = f" within each {source['sampling']['cluster']}" if clustered else ""
        note = f"Chi-square of the selections, against outcomes that are dealt out anew{within}"
        if not clustered:
            note += "; missing ones are filled in so that the groups are as alike as can be"
        made += [tests_section(tested, f"{note}.")] if tested else []
        return (*made, *(_of_rule(rule, by, small) if rule else ()))


def _median_said(low: float, high: float) -> str:
    if low == high:
        return (
            f"Selected is who has a score above {low:g}, the median of all; who is exactly at it "
            "is not above."
        )
    ends = [f"{end:g}" if abs(end) < LARGEST else "anywhere" for end in (low, high)]
    return (
        f"Scores are missing, so the median of all may be from {ends[0]} to {ends[1]}: selected is "
        "who is above the larger, not selected who is not above the smaller, and of those between "
        "the outcome is not known."
    )


def _columns(options: DecisionsOptions) -> list[str]:
    """The columns of groups, after a check that all is named that is needed."""
    if options.table is None:
        raise UserError("name the table of people: --table people.csv")
    groups = [one.strip() for one in (options.groups or "").split(",") if one.strip()]
    if not groups or len(set(groups)) < len(groups):
        raise UserError("name the columns that say who somebody is, each once: --groups sex,race")
    if bool(options.outcome) == bool(options.score):
        raise UserError("name what was decided: --outcome COLUMN or --score COLUMN, one of them")
    return groups


def _by_said(names: list[str], table: pl.DataFrame) -> dict[str, Counts]:
    """The counts by all attributes crossed first, then by each."""
    places = range(len(names))
    ways = [tuple(places), *((one,) for one in places)] if len(names) > 1 else [(0,)]
    return {" × ".join(names[one] for one in way): by_grouping(table, way) for way in ways}


def _of_rule(rule: Preset, by: dict[str, Counts], small: float | None) -> list[Section]:
    made = [rule.section()]
    if rule.threshold is None:
        return made
    single = {said: one for said, one in by.items() if " × " not in said} or by
    found = (tables.by_threshold(f"threshold_{place}", said, one, rule.threshold, small)
             for place, (said, one) in enumerate(single.items()))  # fmt: skip
    return made + [one for one in found if one is not None]
