"""Stored decisions as an instrument: who was selected, by group, and is it more than chance?"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import orjson
import polars as pl

from evenhand.core.errors import UserError
from evenhand.findings.display import Remark, RemarkOrText
from evenhand.findings.estimates import Section
from evenhand.findings.ratios import (
    GroupingResult,
    measure_name,
    tests_section,
)
from evenhand.findings.report import Report
from evenhand.findings.scoring import UNREADABLE, Scoring, outcome_batches
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    InstrumentWords,
    Mean,
    Measure,
    OfGroups,
    option,
    tests_of,
    why_lost,
)
from evenhand.instruments.decisions import tables
from evenhand.instruments.decisions.data import (
    LARGEST,
    Outcomes,
    PeopleSource,
    above,
    median_of,
    outcomes_in,
    read_people,
)
from evenhand.instruments.decisions.judged import NO_RATIO, Cells, counted, judged, ways
from evenhand.instruments.decisions.tables import DecisionsPreset, preset
from evenhand.instruments.files import names_in
from evenhand.instruments.text_columns import form_of
from evenhand.runs.store import RunReader

_WORDS = InstrumentWords(__package__)
MARGIN = 0.05  # our choice: 5 points of a rate are what a comparison may lose


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionsOptions:
    table: Path | None = option(None, "Table with a row per person: a .csv or .jsonl file.")
    groups: str | None = option(
        None, "Columns with protected attributes, comma-separated, such as sex,race."
    )
    outcome: str | None = option(
        None,
        "Column with the outcome: 1 or 0, yes or no, true or false, selected or rejected. "
        "Other values count as missing.",
    )
    selected: list[str] | None = option(
        None, "Value of --outcome that means selected, such as Hired. May be repeated."
    )
    rejected: list[str] | None = option(
        None,
        "Value of --outcome that means rejected. Other values count as missing. May be repeated.",
    )
    score: str | None = option(
        None,
        "Column with a score, instead of --outcome: people above the overall median count as "
        "selected.",
    )
    cluster: str | None = option(
        None, "Column that identifies clusters of related rows, such as a requisition or a month."
    )
    preset: str | None = option(
        None, "Regulation whose table and statements are added to the report, such as nyc-ll144."
    )
    leave_out_small: bool = option(
        False,
        "With --preset: exclude small categories from the impact ratios, where the rule allows it.",
    )


class Decisions(OfGroups):
    """Audits stored decisions: who was selected or scored above the median, by group, compared with
    chance alone. Makes no model calls."""

    name = "decisions"
    title = "Decisions"
    clusters = "people"
    columns = ("text",)
    facts: ClassVar = {"group": pl.String(), "stratum": pl.String(), "decided": pl.String()}
    options = DecisionsOptions
    answer_id = None

    selects = "each"
    of_people = True

    def source(self, data: DataFolder, options: DecisionsOptions) -> PeopleSource:
        groups = _columns(options)
        rule = preset(options.preset) if options.preset else None
        if options.leave_out_small and (rule is None or rule.small is None):
            raise UserError(
                "--leave-out-small requires a preset whose rule exempts small categories, such "
                "as --preset nyc-ll144"
            )
        assert options.table is not None
        column = options.outcome or options.score or ""
        people = read_people(options.table, groups, column, options.cluster)
        median, words = None, Outcomes()
        if options.score:
            median = median_of(people, column)
            people = people.with_columns(decided=above(median))
        else:
            words = outcomes_in(options.table, column, people["answer"], options.selected or (),
                                options.rejected or ())  # fmt: skip
            people = people.with_columns(decided=words.read())
        columns = [*groups, column, *([options.cluster] if options.cluster else [])]
        return PeopleSource(
            people,
            {
                "benchmark": self.name,
                "version": self.card()["version"],
                "sampling": {"groups": groups, "cluster": options.cluster or ""},
                "outcomes": {"selected": words.selected, "rejected": words.rejected},
                "median": median,
                "read_as": form_of(options.table, columns).says,
                "preset": options.preset or "",
                "leave_out_small": options.leave_out_small,
            },
        )

    def stores_answers(self, options: DecisionsOptions) -> bool:
        return True

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Who was selected; null where the cell does not say so."""
        kinds = {text: None not in orjson.loads(text) for text in rows["group"].unique()}
        scored = rows.with_columns(
            selected=pl.col("decided").cast(pl.Int64, strict=False),
            is_known=pl.col("group").replace_strict(kinds, return_dtype=pl.Boolean),
        )
        read = pl.when(pl.col("selected").is_not_null()).then(pl.lit(SCORED))
        state = pl.when(pl.col("text").is_null()).then(why_lost()).otherwise(
            read.otherwise(pl.lit(UNREADABLE))
        )  # fmt: skip
        alone = pl.col("stratum") == ""
        cluster = pl.when(alone).then("item_id").otherwise("stratum")
        return scored.select(
            "item_id", "stratum", "group", "is_known", "selected", cluster=cluster, state=state
        )

    def for_run(self, run: RunReader) -> "Decisions":
        """Judge the run, with one measure for each group."""
        instrument = self.for_pair(run, run)
        instrument.results = judged(self._counted(run), _attributes(run), small=_small(run))
        return instrument

    def for_pair(self, before: RunReader, after: RunReader) -> "Decisions":
        """Measure each group of the people, who are the same in both runs, against all others."""
        instrument = copy.copy(self)
        cells, names = Cells.of(self._counted(before)), _attributes(before)
        measures = []
        for way in ways(names):
            counts = cells.by(way)
            attributes = [names[index] for index in way]
            groups = counts.groups[:1] if len(counts.groups) == 2 else counts.groups
            sizes = counts.people.sum(axis=0)
            for group, size in zip(groups, sizes.tolist(), strict=False):
                measures.append(_contrast(attributes, way, group, size, int(sizes.sum()),
                                          counts.groups))  # fmt: skip
        vars(instrument)["measures"] = tuple(measures)
        return instrument

    def _counted(self, run: RunReader) -> pl.DataFrame:
        return counted(outcome_batches(self, run, self.outcomes))

    def scoring(self, run: RunReader) -> Scoring:
        """Each person's outcome less the rate of the stratum, among people whose category is
        known; and their categories, one column for each grouping."""
        cells, names = Cells.of(self._counted(run)), _attributes(run)
        rates, labels = {"stratum": list(cells.strata)}, {}
        for way in ways(names):
            counts = cells.by(way)
            read = counts.read.sum(axis=1)
            rates[f"rate_{_column(way)}"] = (counts.selected.sum(axis=1) / read.clip(1)).tolist()
            labels[_column(way)] = {
                orjson.dumps(list(cell)).decode(): None if group is None else " ".join(group)
                for cell, group in zip(cells.cells, cells.groups_of(way), strict=True)
            }
        rate_table = pl.DataFrame(rates)

        def score(rows: pl.DataFrame) -> pl.DataFrame:
            joined = self.outcomes(rows).join(rate_table, on="stratum", how="left",
                                              maintain_order="left")  # fmt: skip
            return joined.with_columns(
                **{column: pl.col("group").replace_strict(names, return_dtype=pl.String)
                   for column, names in labels.items()},
                **{f"beyond_{column}": pl.col("selected") - pl.col(f"rate_{column}")
                   for column in labels},
            )  # fmt: skip

        return score

    def notes(self, report: Report, run: RunReader) -> tuple[str, ...]:
        lines = [_WORDS("no_cause")]
        if run.record.source["read_as"]:
            lines.append(run.record.source["read_as"])
        median = run.record.source["median"]
        if median is not None:
            lines.append(_median_said(*median))
        table = report.section("ratios_0")
        unknown = [row for row in table.rows if row[-1] == NO_RATIO] if table else []
        if unknown:
            lines.append(_WORDS("unknown_category", people=unknown[0][1]))
        if report.coverage.scored < report.coverage.n:
            if run.record.source["sampling"]["cluster"]:
                lines.append(_WORDS("missing_in_clusters"))
            lines.append(_WORDS("with_missing"))
        return tuple(lines)

    def says(self, report: Report) -> tuple[RemarkOrText, ...]:
        words = _words(report.source)
        return self.said(report, words.selected)

    def sections(self, report: Report, run: RunReader) -> tuple[Section, ...]:
        source, results = run.record.source, self.results
        if results is None or not any(grouping.tested for grouping in results.groupings):
            return ()
        rule = preset(source["preset"]) if source["preset"] else None
        clustered, words = bool(source["sampling"]["cluster"]), _words(source)
        sections = [
            section
            for index, grouping in enumerate(results.groupings)
            for section in tables.ratios(index, grouping, words, _small(run))
        ]
        within = f" within each {source['sampling']['cluster']}" if clustered else ""
        note = _WORDS("chi_square", within=within)
        if not clustered:
            note += _WORDS("filled_in")
        if tested := tests_of(results):
            remark = Remark("ratios.tests_note", tests=note)
            sections.append(tests_section(tested, remark, _WORDS("tests")))
        if rule is not None:
            sections += _of_rule(rule, results.groupings, clustered=clustered)
        return tuple(sections)


def _contrast(
    attributes: list[str],
    way: tuple[int, ...],
    group: tuple[str, ...],
    size: int,
    everybody: int,
    groups: tuple[tuple[str, ...], ...],
) -> Measure:
    """The rate of a group less that of all others, as a mean over people: each person's outcome
    less the rate of all, weighted by the size of the person's side."""
    name, others = " ".join(group), max(everybody - size, 1)
    against = " ".join(groups[1]) if len(groups) == 2 else "others"
    label = pl.col(_column(way))
    weight = pl.when(label == name).then(everybody / max(size, 1)).otherwise(-everybody / others)
    furthest = everybody / max(min(size, others), 1)
    return Measure(
        name=measure_name(attributes, name),
        label=_WORDS("contrast", group=name, against=against),
        statistic=Mean(pl.col(f"beyond_{_column(way)}") * weight),
        where=label.is_not_null(),
        better="zero",
        within=(-furthest, furthest),
        role="primary",
        margin=MARGIN,
    )


def _column(way: tuple[int, ...]) -> str:
    return f"by_{'_'.join(map(str, way))}"


def _attributes(run: RunReader) -> list[str]:
    return list(run.record.source["sampling"]["groups"])


def _small(run: RunReader) -> float | None:
    source = run.record.source
    if not source["preset"] or not source["leave_out_small"]:
        return None
    return preset(source["preset"]).small


def _words(source: Mapping[str, Any]) -> tables.SelectionWords:
    return tables.SELECTING if source["median"] is None else tables.SCORING


def _median_said(low: float, high: float) -> str:
    if low == high:
        return _WORDS("median", median=low)
    ends = [f"{end:g}" if abs(end) < LARGEST else "anywhere" for end in (low, high)]
    return _WORDS("median_of_missing", low=ends[0], high=ends[1])


def _columns(options: DecisionsOptions) -> list[str]:
    """The columns of groups, after a check that all is named that is needed."""
    if options.table is None:
        raise UserError("--table is missing: the table of people, such as --table people.csv")
    groups = names_in(options.groups)
    if not groups or len(set(groups)) < len(groups):
        raise UserError(
            "--groups needs the columns of protected attributes, without duplicates: "
            "--groups sex,race"
        )
    if bool(options.outcome) == bool(options.score):
        raise UserError("use exactly one of --outcome COLUMN and --score COLUMN")
    if options.score and (options.selected or options.rejected):
        raise UserError("--selected and --rejected require --outcome. They do not apply to --score")
    return groups


def _of_rule(
    rule: DecisionsPreset, groupings: tuple[GroupingResult, ...], *, clustered: bool
) -> list[Section]:
    sections = [rule.section()]
    if rule.threshold is None:
        return sections
    single = [grouping for grouping in groupings if len(grouping.attributes) == 1]
    candidates = (tables.by_threshold(f"threshold_{index}", grouping, rule.threshold,
                                      clustered=clustered)
                  for index, grouping in enumerate(single))  # fmt: skip
    return sections + [section for section in candidates if section is not None]
