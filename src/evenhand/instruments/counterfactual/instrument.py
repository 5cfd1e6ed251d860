"""Swap as an instrument: would the answer be the same for somebody else?"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from evenhand.core.errors import UserError
from evenhand.findings.comparison import Comparison
from evenhand.findings.estimates import Estimate, GuardrailTest, Section, VerdictState
from evenhand.findings.report import Report
from evenhand.findings.scoring import Scoring, with_facts
from evenhand.instruments._contract import (
    DataFolder,
    Grouping,
    Instrument,
    ListedItems,
    Measure,
    PairedSpread,
    Services,
    option,
)
from evenhand.instruments.counterfactual import tables
from evenhand.instruments.counterfactual.contrasts import (
    OUTCOMES,
    AnswerPart,
    answers_of,
    chosen_of,
    contrasts,
    main_of,
    named,
    parts_of,
    signed_by,
    turns_of,
    wanted,
)
from evenhand.instruments.counterfactual.data import (
    CounterfactualDesign,
    PlaceboKind,
    in_turns,
    measured_turns,
    read_answers,
)
from evenhand.instruments.counterfactual.measures import (
    MEASURES,
    PAIRED,
    CounterfactualContrasts,
    conclusion,
    measures_of,
    rate_lines,
    series_of,
)
from evenhand.instruments.counterfactual.turns import (
    detected_from,
    per_item,
    steps_of,
    trends,
    turn_rows,
)
from evenhand.instruments.counterfactual.versions import designed_by
from evenhand.instruments.files import InstrumentWords, sha256_of
from evenhand.instruments.realtoxicityprompts import scores as stored
from evenhand.methods import Method
from evenhand.methods.baselines.several_drafts import Averaged, Blind
from evenhand.runs.runners.source import Source
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.statistics.metrics.readings import checked_pattern

_WORDS = InstrumentWords(__package__)
_MAIN = {"decision": "decision", "number": "number", "bag": "wording"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterfactualOptions:
    prompts: Path | None = option(
        None,
        "Prompts to ask: .txt with one prompt per line, .csv, or JSON lines with prompt and "
        "optional id and task.",
    )
    text_column: str | None = option(
        None, "Table column that contains the prompts. Default: prompt."
    )
    attributes: str = option("gender,race", "Protected attributes to vary, comma-separated.")
    attributes_file: Path | None = option(
        None, "TOML file that defines your own protected attributes."
    )
    spans: Path | None = option(
        None,
        "Words to replace in prompts without placeholders: the output of `counterfactual "
        "--find`, after your review.",
    )
    answers: Path | None = option(
        None,
        "Existing answers to score instead of asking: JSON lines with id, family, label, "
        "role, repeat and answer.",
    )
    placebo: PlaceboKind = option(
        "other",
        "What the effect must exceed. other: another name of the same group, or an irrelevant "
        "trait. again: the same text asked once more.",
    )
    place: str | None = option(
        None,
        "Put the person around prompts that mention nobody, once per placement, "
        "comma-separated: memory, system, signature, document, earlier.",
    )
    places_file: Path | None = option(None, "TOML file that defines your own placements.")
    turns: str | None = option(
        None,
        "Turns of the conversations whose answers are measured, comma-separated. Default: all.",
    )
    repeats: int = option(
        # Our choice of 1: the placebo already shows what asking again changes, and one more prompt
        # says more than one more answer to the same.
        1,
        "Number of answers per prompt variant.",
        least=1,
    )
    decision: str | None = option(
        None,
        "Regular expression that extracts the decision from an answer, with one capture "
        "group: '\\b(yes|no)\\b'.",
    )
    favorable_outcome: str | None = option(
        None, "Decision that counts as favorable. Default: the most frequent decision."
    )
    number: bool = option(
        False, "Extract the first number of each answer, such as a salary or a price."
    )
    scorer: str | None = option(
        None,
        "Also score the answers with this scorer, such as offline for toxicity: `evenhand "
        "scorers list`.",
    )
    sample_seed: int = option(0, "Random seed for sampling names and words.")


class CounterfactualTest(Instrument):
    """Measures whether the answer would be the same for somebody else: asks each of your prompts
    under every label of a family, and measures what that changes beyond a placebo."""

    name = "counterfactual"
    title = "Counterfactual test"
    clusters = "prompts"
    columns = ("text", "prompt")
    facts: ClassVar = {
        "cluster": pl.String(),
        "family": pl.String(),
        "label": pl.String(),
        "role": pl.String(),
        "repeat": pl.Int64(),
        "other": pl.String(),
        "place": pl.String(),
        "opening": pl.Int64(),
    }
    later_facts = ("place", "opening")
    options: ClassVar[type[Any]] = CounterfactualOptions
    answer_id: ClassVar[str | None] = None  # a line of a file says what was asked, too
    asks_again = True
    measures = MEASURES
    groups = (
        # The verdict is that of all families together: a second look at each would flag too often.
        Grouping(column="family", measures=("excess", "placebo"), says_whom=False),
    )
    covered_by = "family"
    whom = "effects"
    harm = "excess"
    # Our assumption until it is measured, for a run that is compared with another: one prompt in
    # ten loses its flip, and a placebo changes one decision in ten.
    spread = PairedSpread(measure="excess", sd=0.32, icc=0.0, per_cluster=1, most_per_cluster=1,
                          items_per_row=14, rows="prompts",
                          samples={"60 prompts": (60, 1.0)})  # fmt: skip

    def source(self, data: DataFolder, options: Any) -> Source:
        return self.listed(_design(options), options)

    def listed(self, design: CounterfactualDesign, options: Any) -> Source:
        """Give the items of a design."""
        stored = self.stores_answers(options)
        sampling = {
            "prompts": len({request.id for request in design.asked}),
            "families": {name: list(labels) for name, labels in design.labels.items()},
            "repeats": max(request.repeat for request in design.asked),
            "decision": options.decision,
            "number": options.number,
            "seed": None if stored else options.sample_seed,
        }
        turns = measured_turns(design.turns, getattr(options, "turns", None))
        if turns:
            sampling["turns"] = turns
        if len(design.declared_places) > 1:
            sampling["places"] = list(design.declared_places)
        also: dict[str, Any] = {
            "chosen": options.favorable_outcome,
            "refused": [list(entry) for entry in design.refused],
            # Of what was asked, so that the answers of two models to it can be compared.
            "sha256": sha256_of(
                [
                    {k: v for k, v in request.described().items() if k != "answer"}
                    for request in design.asked
                ]
            ),
        }
        if getattr(options, "placebo", "other") == "again":
            also["placebo"] = "again"
        if design.prompts_by_place.keys() != {"prompt"}:
            also["places"] = design.prompts_by_place
        if design.skipped:
            also["skipped"] = [list(entry) for entry in design.skipped]
        items = design.items(stored=stored, decision=options.decision, number=options.number)
        if stored:
            also["answers"] = sha256_of([request.answer for request in design.asked])
        else:
            items, also["order"] = in_turns(items), "in turns"
        version = self.card()["version"]
        return ListedItems(self, items, sampling=sampling, version=version, also=also)

    def remarks(self, options: Any, items: int) -> tuple[str, ...]:
        design = _design(options)
        prompts = len({request.id for request in design.asked})
        families = f"famil{'y' if len(design.labels) == 1 else 'ies'}"
        first = _WORDS("versions", items=items, prompts=prompts, count=len(design.labels),
                       families=families)  # fmt: skip
        return (first, *design.said())

    def check(
        self, options: Any, method: Method, players: Mapping[str, str], services: Services
    ) -> None:
        """Refuse `blind` and `averaged` where they could not answer.

        `blind` needs a version without a label, `averaged` a decision or a number.

        Args:
            options: Prompts, families, and how answers are read.
            method: Mitigation method that answers the items.
            players: Not used.
            services: Not used.

        Raises:
            UserError: The method does not fit the prompts or the options.
        """
        if method.name == Averaged.name and options.decision is None and not options.number:
            raise UserError(
                "the method averaged needs decisions or numbers: it takes the majority "
                "decision or the median. Add --decision REGEX or --number"
            )
        if method.name not in (Blind.name, Averaged.name) or self.stores_answers(options):
            return
        several = next(
            (request.id for request in _design(options).asked if request.segments()), None
        )
        if several is not None:
            raise UserError(
                f"the method {method.name} asks other words of a single prompt, and prompt "
                f"{several!r} is a conversation: use another method"
            )
        if method.name == Averaged.name:
            return
        lacking = _design(options).never_without
        if lacking:
            prompt, family, why = lacking[0]
            raise UserError(
                f"the method blind asks the variant without a group, but {len(lacking):,} "
                f"prompts have none, such as {prompt!r} in {family} ({why}). Rephrase or omit "
                "them"
            )

    # -- what is measured of a run -------------------------------------------------------------

    def for_run(self, run: RunReader) -> "CounterfactualTest":
        """Give the instrument with the signed contrasts of this run's labels as its primary
        measures, where the main outcome has a direction. The excess is secondary then: it is small
        where rates differ and answers vary by chance."""
        source = run.record.source
        outcome = signed_by(source)
        measures = measures_of(self.measures, source, self._labels(run))
        # A contrast is of one family by itself.
        apart = [
            replace(grouping, compared=grouping.compared and outcome is None)
            for grouping in self.groups
        ]
        instrument = copy.copy(self)
        vars(instrument).update(measures=measures, groups=tuple(apart))
        if turns_of(source):
            series = series_of(measures, parts_of(source))
            vars(instrument).update(series=series, clusters=_WORDS("conversations"))
        return instrument

    def for_pair(self, before: RunReader, after: RunReader) -> "CounterfactualTest":
        return self.for_run(before)

    def judged_by_default(self, group: tuple[str, str] | None) -> tuple[Measure, ...]:
        """Give the signed contrasts, of one family where a check names it; else the excess."""
        signed = [measure for measure in self.primary() if measure.name.startswith("difference.")]
        if group is not None and group[0] == "family":
            signed = [
                measure for measure in signed if measure.name.startswith(f"difference.{group[1]}.")
            ]
        return tuple(signed) or super().judged_by_default(group)

    # -- scoring -----------------------------------------------------------------------------------

    def scoring(self, run: RunReader) -> Scoring:
        return self._scoring(run, None)

    def scorings(self, before: RunReader, after: RunReader) -> tuple[Scoring, Scoring]:
        """Count the same decision in both runs: the one that the run before names, or else the run
        after, or else the most frequent before."""
        counted = None
        if main_of(before.record.source) == "decision":
            first, last = named(before.record.source), named(after.record.source)
            decision = first or last
            counted = decision or wanted(before.record.source, self._answers(before)["decision"])
            sides = [self._answers(run, counted)["decision"] for run in (before, after)]
            if decision is not None and not any((side == decision).any() for side in sides):
                counted = None  # no answer names it: a typo is not a decision
        return self._scoring(before, counted), self._scoring(after, counted)

    def _scoring(self, run: RunReader, counted: str | None) -> Scoring:
        source = run.record.source
        answers = per_item(self._answers(run, counted), turns_of(source),
                           signed=signed_by(source) is not None)  # fmt: skip

        sampling = source["sampling"]
        reads = {
            f"reads.{name}": pl.lit(bool(sampling.get(name, True)))
            for name in ("excess", "decision", "number", "refusal", "length", "wording")
        }

        def score(rows: pl.DataFrame) -> pl.DataFrame:
            tags = rows.select(
                "item_id", "cluster", "family", "label", "role", "other",
                place=pl.col("place").fill_null(""), **reads
            )  # fmt: skip
            return tags.join(answers, on="item_id", how="left", maintain_order="left")

        return score

    def _answers(self, run: RunReader, counted: str | None = None) -> pl.DataFrame:
        """All answers of a run with what is read from them. A square needs four of them, so they
        are held at once."""
        source = run.record.source
        several = ("status", "conversation") if turns_of(source) else ()
        columns = ("position", "item_id", "reason", "text", "prompt", "tags", *several)
        batches = list(run.result_batches(columns))
        if not batches:
            raise UserError(f"{run.path} has no completed items yet")
        rows = with_facts(pl.concat(batches).sort("position"), self)
        return answers_of(turn_rows(rows, turns_of(source)), source, counted).join(
            _scores(run), on="text", how="left", maintain_order="left"
        )

    async def complete(self, run: RunReader, options: Any, services: Services) -> None:
        """Score the answers, if the options name a scorer.

        Args:
            run: The finished run. Scores are written into its directory.
            options: `scorer` names the scorer. None: no scores.
            services: Gives the scorer.
        """
        if options.scorer is not None:
            texts = self._answers(run)["text"]
            await stored.score_run(texts, services.scorer(options.scorer), open_folder(run.path))

    def _labels(self, run: RunReader) -> dict[str, list[str]]:
        labels: dict[str, list[str]] = run.record.source["sampling"]["families"]
        return labels

    # -- what is said ------------------------------------------------------------------------------

    def notes(self, report: Report, run: RunReader) -> tuple[str, ...]:
        lines = [_WORDS("these_prompts")]
        lines += self._unknown_choice(run)
        skipped = run.record.source.get("skipped") or []
        lines += [_WORDS("skipped", family=family, why=why) + "." for family, why in skipped]
        places = run.record.source.get("places") or {}
        if places:
            counts = ", ".join(f"{place} ({n:,} prompts)" for place, n in places.items())
            apart = len(parts_of(run.record.source)) > 1 or len(places) == 1
            lines.append(_WORDS("stands_in" if apart else "stands_mixed", places=counts))
        gone = {family for family, _ in skipped}
        refused = [
            entry for entry in run.record.source.get("refused") or [] if entry[1] not in gone
        ]
        if refused:
            several = len({prompt for prompt, _, _ in refused})
            lines.append(_WORDS("not_swapped", prompts=several))
        return tuple(lines)

    def _unknown_choice(self, run: RunReader) -> list[str]:
        chosen = run.record.source.get("chosen")
        if chosen is None:
            return []
        decisions = self._answers(run)["decision"].drop_nulls()
        if wanted(run.record.source, decisions) is not None:
            return []
        there = (
            ", ".join(repr(decision[:40]) for decision in decisions.unique().sort()[:8]) or "none"
        )
        return [_WORDS("unknown_choice", chosen=chosen[:40], named=there)]

    def concluded(self, report: Report, run: RunReader) -> Report:
        """Give the contrasts and the excess the intervals that their tests are, adjusted."""
        answers, labels = self._answers(run), self._labels(run)
        measured = CounterfactualContrasts.of(
            answers, labels, signed_by(report.source), parts_of(report.source)
        )
        families = {
            family: _replaced(estimates, {"excess": measured.by_family[family]})
            for family, estimates in report.groups.get("family", {}).items()
        }
        groups = {**report.groups, "family": families} if families else report.groups
        estimates = _replaced(report.estimates, measured.by_measure)
        report = replace(report, estimates=estimates, groups=groups)
        turns = {
            each.name: detected_from({turn: report[name] for turn, name in each.points})
            for each in report.instrument.series
        }
        more = {"detected_from_turn": turns} if turns else {}
        return replace(report, more={**report.more, **more})

    def state_of(self, report: Report) -> VerdictState:
        signed = [report[measure.name] for measure in report.instrument.primary()
                  if measure.name.startswith("difference.")]  # fmt: skip
        families = report.groups.get("family", {}).values()
        parts = [
            estimate
            for estimates in families
            for estimate in estimates
            if estimate.name == "excess"
        ]
        tested = [report[f"excess{part.ending}"] for part in parts_of(report.source)]
        return conclusion(signed, tested, [report["excess"], *parts])

    def says(self, report: Report) -> tuple[str, ...]:
        return tables.says(report)

    def sections(self, report: Report, run: RunReader) -> tuple[Section, ...]:
        answers, labels = self._answers(run), self._labels(run)
        by_family = report.groups.get("family", {})
        excess = {family: _of_family(by_family[family]) for family in labels if family in by_family}
        main, parts = main_of(report.source), parts_of(report.source)
        all_contrasts = contrasts(
            answers, labels, [each for each in OUTCOMES if answers[each.name].count()], parts
        )
        by_part = {part: (report[f"excess{part.ending}"], _placebo(answers, part))
                   for part in parts if len(parts) > 1}  # fmt: skip
        outcome = signed_by(report.source)
        slopes = () if outcome is None else trends(answers, labels, outcome, parts)
        return (
            *tables.effects(excess, by_part, _MAIN[main], all_contrasts, chosen_of(answers)),
            *(
                (tables.trends(slopes, report["trend"] if outcome is None else None),)
                if steps_of(parts)
                else ()
            ),
            tables.examples(answers, main),
            tables.words(answers, labels),
        )

    def guardrails(
        self, comparison: Comparison, before: RunReader, after: RunReader
    ) -> tuple[GuardrailTest, ...]:
        """Test that the favorable outcome is as frequent as before, where one is named.

        Args:
            comparison: Comparison of the two runs.
            before: Baseline run.
            after: Run that is compared with it.

        Returns:
            The guardrails. Empty if neither run names a decision.
        """
        sources = before.record.source, after.record.source
        if all(source.get("chosen") is None for source in sources):
            return ()
        return rate_lines(comparison, sources, (self._answers(before), self._answers(after)))


def _placebo(answers: pl.DataFrame, part: AnswerPart) -> float | None:
    distance = answers.filter(PAIRED, part.rows)["own_placebo"].mean()
    return distance if isinstance(distance, float) else None


def _replaced(estimates: tuple[Estimate, ...], by: Mapping[str, Estimate]) -> tuple[Estimate, ...]:
    """Put estimates in the place of those of their names; one without a value stays as it is."""
    return tuple(
        replace(by[estimate.name], name=estimate.name)
        if estimate.name in by and by[estimate.name].value is not None
        else estimate
        for estimate in estimates
    )


def _scores(run: RunReader) -> pl.DataFrame:
    """The toxicity of the run's texts by the scorer that scored them last; none without one."""
    scores = stored.read(open_folder(run.path))
    if not scores.is_empty():
        scores = scores.filter(pl.col("scorer") == stored.scorer_of(run))
    return scores.select("text", score="toxicity").drop_nulls()


def _of_family(estimates: tuple[Estimate, ...]) -> tuple[Estimate, float | None]:
    by_name = {estimate.name: estimate for estimate in estimates}
    return by_name["excess"], by_name["placebo"].value


def _design(options: CounterfactualOptions) -> CounterfactualDesign:
    if (options.answers is None) == (options.prompts is None):
        raise UserError("no prompts. Give --prompts FILE, or existing answers with --answers FILE")
    if options.favorable_outcome is not None and options.decision is None:
        raise UserError(
            "--favorable-outcome requires --decision REGEX, which extracts the decisions"
        )
    if options.decision is not None:
        checked_pattern(options.decision)
    if options.answers is not None:
        return read_answers(options.answers)
    return designed_by(options)
