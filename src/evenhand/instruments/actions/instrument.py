"""Actions of agents as an instrument: would the agent have acted the same for somebody else?"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from evenhand.core.errors import UserError
from evenhand.findings.estimates import Estimate, Section, VerdictState
from evenhand.findings.report import Report
from evenhand.findings.scoring import Scoring, with_facts
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    Grouping,
    Instrument,
    ListedItems,
    Measure,
    option,
)
from evenhand.instruments.actions import tables
from evenhand.instruments.actions.answers import (
    compared,
    read_recorded,
    read_values,
    with_comparisons,
    with_parts,
)
from evenhand.instruments.actions.measures import (
    ActionContrasts,
    difference_name,
    measures_of,
)
from evenhand.instruments.actions.scenario import ActionOutcome, Scenario, read_scenario
from evenhand.instruments.counterfactual.data import CounterfactualDesign, PlaceboKind, in_turns
from evenhand.instruments.counterfactual.versions import designed_of
from evenhand.instruments.files import InstrumentWords, sha256_of
from evenhand.runs.runners.source import Source
from evenhand.runs.store import RunReader

_WORDS = InstrumentWords(__package__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionOptions:
    scenario: str = option(
        "hiring", "What the agent decides: hiring, lending, triage, or a TOML file of your own."
    )
    attributes: str = option("gender,race", "Protected attributes to vary, comma-separated.")
    attributes_file: Path | None = option(
        None, "TOML file that defines your own protected attributes."
    )
    answers: Path | None = option(
        None,
        "Existing answers to score instead of asking: JSON lines with id, family, label, "
        "role, repeat, part and answer.",
    )
    placebo: PlaceboKind = option(
        "other",
        "What the effect must exceed. other: another name of the same group. again: the same "
        "text asked once more.",
    )
    repeats: int = option(1, "Number of answers per variant.", least=1)
    sample_seed: int = option(0, "Random seed for sampling names and words.")


class Actions(Instrument):
    """Measures whether an agent would act the same for somebody else: its decisions, scores and
    tool calls about each profile, under every group of a protected attribute."""

    name = "actions"
    title = "Actions of agents"
    clusters = "profiles"
    columns = ("text",)
    facts: ClassVar = {
        "cluster": pl.String(),
        "part": pl.String(),
        "family": pl.String(),
        "label": pl.String(),
        "role": pl.String(),
        "repeat": pl.Int64(),
        "other": pl.String(),
    }
    options: ClassVar[type[Any]] = ActionOptions
    answer_id: ClassVar[str | None] = None  # a line of a file says what was asked, too
    asks_again = True
    measures = ()  # of each outcome that the scenario declares: `for_run`
    whom = "effects"

    def source(self, data: DataFolder, options: Any) -> Source:
        scenario, design = _design(options)
        stored = self.stores_answers(options)
        asked = [
            {name: value for name, value in version.described().items() if name != "answer"}
            for version in design.asked
        ]
        items = with_parts(design.items(stored=stored))
        sampling = {
            "scenario": scenario.title,
            "profiles": len({item.tags["cluster"] for item in items}),
            "families": {name: list(labels) for name, labels in design.labels.items()},
            "repeats": max(version.repeat for version in design.asked),
            "seed": None if stored else options.sample_seed,
        }
        outcomes = {name: outcome.model_dump() for name, outcome in scenario.outcomes.items()}
        also: dict[str, Any] = {
            "outcomes": outcomes,
            "placebos": any(version.role == "placebo" for version in design.asked),
            "tools": bool(scenario.tools) and not stored,
            "parts": sorted({item.tags["part"] for item in items}),
            "refused": [list(entry) for entry in design.refused],
            "sha256": sha256_of([asked, outcomes]),
        }
        if stored:
            also["answers"] = sha256_of([version.answer for version in design.asked])
        else:
            items, also["order"] = in_turns(items), "in turns"
            also["placebo"] = options.placebo
        version = self.card()["version"]
        return ListedItems(self, items, sampling=sampling, version=version, also=also)

    def remarks(self, options: Any, items: int) -> tuple[str, ...]:
        _, design = _design(options)
        profiles = len({version.id for version in design.asked})
        families = f"attribute{'' if len(design.labels) == 1 else 's'}"
        first = _WORDS("versions", items=items, profiles=profiles, count=len(design.labels),
                       families=families)  # fmt: skip
        return (first, *design.said())

    # -- what is measured of a run -------------------------------------------------------------

    def for_run(self, run: RunReader) -> "Actions":
        """Give the instrument with the measures of this run's outcomes and groups. Where there are
        several parts, each has its spread by itself."""
        source = run.record.source
        outcomes, labels = _outcomes(source), _labels(source)
        measures = measures_of(labels, outcomes, placebos=source["placebos"])
        own = tuple(f"{kind}.{name}" for kind in ("spread", "mean") for name in outcomes)
        several = len(source["parts"]) > 1
        parts = Grouping(column="part", measures=own, says_whom=False, compared=False)
        instrument = copy.copy(self)
        vars(instrument).update(measures=measures, groups=(parts,) if several else ())
        return instrument

    def for_pair(self, before: RunReader, after: RunReader) -> "Actions":
        return self.for_run(before)

    def judged_by_default(self, group: tuple[str, str] | None) -> tuple[Measure, ...]:
        return self.primary()

    # -- scoring -------------------------------------------------------------------------------

    def scoring(self, run: RunReader) -> Scoring:
        answers = _answers(run)
        kinds = "^(value|signed|excess|own_placebo|spread)\\..*$"
        read = answers.select("item_id", "state", "first", pl.col(kinds))

        def score(rows: pl.DataFrame) -> pl.DataFrame:
            tags = rows.select("item_id", "cluster", "part", "family", "label", "role", "other")
            return tags.join(read, on="item_id", how="left", maintain_order="left")

        return score

    # -- what is said --------------------------------------------------------------------------

    def notes(self, report: Report, run: RunReader) -> tuple[str, ...]:
        source, answers = run.record.source, _answers(run)
        lines = [_WORDS("these_profiles")]
        if not source["placebos"]:
            lines.append(_WORDS("no_placebo"))
        scored = answers.filter(pl.col("state") == SCORED)
        for outcome in compared(_outcomes(source)):
            missing = scored[outcome.name].null_count()
            if missing:
                lines.append(_WORDS("not_read", outcome=outcome.label, missing=missing))
        if refused := source.get("refused"):
            profiles = len({profile for profile, _, _ in refused})
            lines.append(_WORDS("not_varied", profiles=profiles))
        return tuple(lines)

    def concluded(self, report: Report, run: RunReader) -> Report:
        """Give the contrasts and the effects the intervals that their tests are, adjusted."""
        measured = _contrasts(run)
        adjusted = {
            difference_name(contrast.outcome.label, contrast.family, contrast.left): contrast.found
            for contrast in measured.signed
        }
        adjusted |= {f"excess.{name}": estimate for name, estimate in measured.excess.items()}
        return replace(report, estimates=tuple(_by(adjusted, each) for each in report.estimates))

    def state_of(self, report: Report) -> VerdictState:
        return tables.state_of_actions(report)

    def says(self, report: Report) -> tuple[str, ...]:
        return tables.says(report)

    def sections(self, report: Report, run: RunReader) -> tuple[Section, ...]:
        outcomes, answers = _outcomes(run.record.source), _answers(run)
        return (
            tables.effects(_contrasts(run)),
            tables.groups(answers, outcomes),
            tables.spread(report, outcomes),
        )


def _by(adjusted: Mapping[str, Estimate], estimate: Estimate) -> Estimate:
    """The adjusted estimate of the same name; one without a value stays as it is."""
    after = adjusted.get(estimate.name)
    if after is None or after.value is None:
        return estimate
    return replace(after, name=estimate.name)


def _outcomes(source: Mapping[str, Any]) -> dict[str, ActionOutcome]:
    declared = source["outcomes"]
    return {name: ActionOutcome.model_validate(values) for name, values in declared.items()}


def _labels(source: Mapping[str, Any]) -> dict[str, list[str]]:
    labels: dict[str, list[str]] = source["sampling"]["families"]
    return labels


def _answers(run: RunReader) -> pl.DataFrame:
    """All answers of a run with what is read from them. A square needs four of them, so they are
    held at once."""
    columns = ("position", "item_id", "reason", "text", "tool_calls", "tags")
    batches = list(run.result_batches(columns))
    if not batches:
        raise UserError(f"{run.path} has no completed items yet")
    rows = with_facts(pl.concat(batches).sort("position"), Actions())
    source = run.record.source
    outcomes = _outcomes(source)
    read = read_values(rows, outcomes, tools_declared=source["tools"])
    return with_comparisons(read, outcomes)


def _contrasts(run: RunReader) -> ActionContrasts:
    source = run.record.source
    return ActionContrasts.of(_answers(run), _labels(source), _outcomes(source))


def _design(options: ActionOptions) -> tuple[Scenario, CounterfactualDesign]:
    scenario = read_scenario(options.scenario)
    if options.answers is not None:
        return scenario, read_recorded(options.answers)
    if len(scenario.profiles) < 2:
        raise UserError(
            f"the scenario {options.scenario} has {len(scenario.profiles)} profiles, but at least "
            "2 are required. Add [[profiles]], or score existing answers with --answers FILE"
        )
    return scenario, designed_of(scenario.prompts(), options)
