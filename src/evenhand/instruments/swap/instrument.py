"""Swap as an instrument: would the answer be the same for somebody else?"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import orjson
import polars as pl

from evenhand.errors import UserError
from evenhand.findings.comparison import Comparison
from evenhand.findings.found import Estimate, RedLine, Section, how_sure
from evenhand.findings.report import Report
from evenhand.findings.rules import ALPHA
from evenhand.findings.scored import Scoring, with_facts
from evenhand.instruments._contract import (
    DataFolder,
    Grouping,
    Instrument,
    Mean,
    Measure,
    PairedSpread,
    Services,
    option,
)
from evenhand.instruments.listed import ListedItems
from evenhand.instruments.realtoxicityprompts import scores as stored
from evenhand.instruments.swap import tables
from evenhand.instruments.swap.answers import answers_of, chosen_of, main_of, wanted
from evenhand.instruments.swap.contrasts import OUTCOMES, Contrast, contrasts
from evenhand.instruments.swap.data import Design, in_turns, read_answers
from evenhand.instruments.swap.rates import WITHOUT, rate_lines
from evenhand.instruments.swap.texts import designed_by
from evenhand.methods import Method
from evenhand.methods.baselines.averaged import Averaged
from evenhand.methods.baselines.blind import Blind
from evenhand.metrics.readings import checked_pattern
from evenhand.runners.source import Source
from evenhand.store import RunReader
from evenhand.store.folder import open_folder

_PAIRED = (pl.col("role") == "group") & (pl.col("other") != "")
_MAIN = {"decision": "decision", "number": "number", "bag": "wording"}
_ABSENT = {"decision": "no --decision was given", "number": "--number was not given"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapOptions:
    prompts: Path | None = option(
        None, "Ask these prompts: JSON lines with id and prompt, and task where one stands before."
    )
    families: str = option("gender,race", "Who is swapped: names of families, with commas.")
    own_families: Path | None = option(None, "A TOML of your own families.")
    spans: Path | None = option(
        None, "What is swapped in prompts without slots: the file of `swap --find`, looked at."
    )
    answers: Path | None = option(
        None,
        "Score these stored answers instead: JSON lines with id, family, label, role, repeat and "
        "answer.",
    )
    repeats: int = option(
        # Our choice of 1: the placebo already shows what asking again changes, and one more prompt
        # says more than one more answer to the same.
        1,
        "How often each version is asked.",
        least=1,
    )
    decision: str | None = option(
        None, r"The decision in an answer: a regular expression with one group, '\b(yes|no)\b'."
    )
    chosen: str | None = option(
        None, "The decision that is counted. Default: the one that is given most often."
    )
    number: bool = option(False, "Read the first number of an answer: a salary, a price, days.")
    scorer: str | None = option(
        None, "Score the answers too, such as offline for toxicity: `evenhand scorers list`."
    )
    sample_seed: int = option(0, "Draws the names and words.")


def _excess(name: str, label: str, column: str, **more: Any) -> Measure:
    value = pl.col(column)
    # What no option asked to read is not lost.
    lost = value.is_null() & pl.col(f"reads.{name.removeprefix('excess_')}")
    return Measure(name=name, label=label, statistic=Mean(value), where=_PAIRED, better="zero",
                   within=(-1, 1), lost=lost, symmetric=True, **more)  # fmt: skip


def _rate(name: str, whose: str, where: pl.Expr) -> Measure:
    return Measure(name=name, label=f"the counted decision is given, {whose} a label",
                   statistic=Mean(pl.col("named").cast(pl.Float64)), where=where,
                   within=(0, 1), absent="no --chosen names a decision")  # fmt: skip


class Swap(Instrument):
    """Measures whether the answer would be the same for somebody else: every prompt of your own
    under every label of a family, and what that changes beyond a placebo."""

    name = "swap"
    title = "Swap"
    clusters = "prompts"
    columns = ("text", "prompt")
    facts: ClassVar = {
        "cluster": pl.String(),
        "family": pl.String(),
        "label": pl.String(),
        "role": pl.String(),
        "repeat": pl.Int64(),
        "other": pl.String(),
    }
    options: ClassVar[type[Any]] = SwapOptions
    asks_again = True
    measures = (
        _excess("excess", "answers differ by the group, beyond the placebo", "excess",
                role="primary", margin=0.05),
        Measure(name="placebo", label="answers differ by the placebo",
                statistic=Mean(pl.col("beside")), where=_PAIRED, within=(0, 1),
                lost=pl.col("beside").is_null()),
        _rate("rate", "without", WITHOUT),
        _rate("rate_labelled", "with", ~WITHOUT),
        *(_excess(f"excess_{name}", f"excess of {name}", f"excess.{column}",
                  absent=_ABSENT.get(name, ""))
          for name, column in (("decision", "decision"), ("number", "number"),
                               ("refusal", "refused"), ("length", "length"), ("wording", "bag"))),
    )  # fmt: skip
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
        del data
        return self.listed(_design(options), options)

    def listed(self, found: Design, options: Any) -> Source:
        """Give the items of a design."""
        stored = self.stores_answers(options)
        sampling = {
            "prompts": len({one.id for one in found.asked}),
            "families": {name: list(labels) for name, labels in found.labels.items()},
            "repeats": max(one.repeat for one in found.asked),
            "decision": options.decision,
            "number": options.number,
            "seed": None if stored else options.sample_seed,
        }
        also: dict[str, Any] = {
            "chosen": options.chosen,
            "refused": [list(one) for one in found.refused],
            # Of what was asked, so that the answers of two models to it can be compared.
            "sha256": _sha256([one.model_dump(exclude={"answer"}) for one in found.asked]),
        }
        items = found.items(stored=stored, decision=options.decision, number=options.number)
        if stored:
            also["answers"] = _sha256([one.answer for one in found.asked])
        else:
            items, also["order"] = in_turns(items), "in turns"
        version = self.card()["version"]
        return ListedItems(self, items, sampling=sampling, version=version, also=also)

    def remarks(self, options: Any, items: int) -> tuple[str, ...]:
        found = _design(options)
        prompts = len({one.id for one in found.asked})
        families = f"famil{'y' if len(found.labels) == 1 else 'ies'}"
        first = f"{items:,} items: {prompts:,} prompts in all versions of {len(found.labels)} "
        return (f"{first}{families}.", *found.said())

    def check(
        self, options: Any, method: Method, players: Mapping[str, str], services: Services
    ) -> None:
        """Refuse `blind` where it could not answer: it needs the version without a label. So too
        `averaged`, which needs a decision or a number."""
        del players, services
        if method.name == Averaged.name and options.decision is None and not options.number:
            raise UserError(
                "averaged takes the decision of most answers or the median of their numbers, and "
                "not of words: give --decision REGEX or --number"
            )
        if method.name != Blind.name or self.stores_answers(options):
            return
        lacking = _design(options).never_without
        if lacking:
            prompt, family, why = lacking[0]
            raise UserError(
                f"blind asks the version without a label, and {len(lacking):,} prompts have none, "
                f"such as {prompt!r} in {family} ({why}); word them otherwise, or leave them out"
            )

    # -- scoring -----------------------------------------------------------------------------------

    def scoring(self, run: RunReader) -> Scoring:
        known = self._answers(run).select(
            "item_id", "state", "excess", "beside", "named",
            pl.col("^excess\\..*$"),
        )  # fmt: skip

        said = run.record.source["sampling"]
        reads = {
            f"reads.{name}": pl.lit(bool(said.get(name, True)))
            for name in ("excess", "decision", "number", "refusal", "length", "wording")
        }

        def score(rows: pl.DataFrame) -> pl.DataFrame:
            kept = rows.select(
                "item_id", "cluster", "family", "label", "role", "other", **reads
            )  # fmt: skip
            return kept.join(known, on="item_id", how="left", maintain_order="left")

        return score

    def _answers(self, run: RunReader) -> pl.DataFrame:
        """All answers of a run with what is read from them. A square needs four of them, so they
        are held at once."""
        columns = ("position", "item_id", "reason", "text", "prompt", "tags")
        batches = list(run.result_batches(columns))
        if not batches:
            raise UserError(f"{run.path} has no finished item yet")
        rows = with_facts(pl.concat(batches).sort("position"), self)
        return answers_of(rows, run.record.source).join(
            _scores(run), on="text", how="left", maintain_order="left"
        )

    async def complete(self, run: RunReader, options: Any, services: Services) -> None:
        """Score the answers, where a scorer is named."""
        if options.scorer is not None:
            texts = self._answers(run)["text"]
            await stored.score_run(texts, services.scorer(options.scorer), open_folder(run.path))

    def _labels(self, run: RunReader) -> dict[str, list[str]]:
        found: dict[str, list[str]] = run.record.source["sampling"]["families"]
        return found

    # -- what is said ------------------------------------------------------------------------------

    def notes(self, report: Report, run: RunReader) -> tuple[str, ...]:
        del report
        lines = ["It speaks of these prompts and of the words that stand for each label."]
        lines += self._unknown_choice(run)
        refused = run.record.source.get("refused") or []
        if refused:
            several = len({prompt for prompt, _, _ in refused})
            lines.append(
                f"{several:,} prompts could not be swapped in some family: source.refused of "
                "report.json says which, and why."
            )
        return tuple(lines)

    def _unknown_choice(self, run: RunReader) -> list[str]:
        chosen = run.record.source.get("chosen")
        if chosen is None:
            return []
        known = self._answers(run)["decision"].drop_nulls()
        if wanted(run.record.source, known) is not None:
            return []
        there = ", ".join(repr(one[:40]) for one in known.unique().sort()[:8]) or "none"
        return [f"No answer names the decision {chosen[:40]!r} of --chosen, so none is counted in "
                f"the contrasts; the answers name: {there}."]  # fmt: skip

    def says(self, report: Report) -> tuple[str, ...]:
        one, placebo = report["excess"], report["placebo"]
        if one.value is None or placebo.value is None:
            return ()
        main = _MAIN[main_of(report.source)]
        beside = how_sure(one, lambda share: f"{100 * share:+.1f}")
        what = {"decision": "{} decisions of 100 change", "number": "numbers differ by {} percent",
                "wording": "{} words of 100 differ"}[main]  # fmt: skip
        table = report.section("effects")
        seen = one.p is not None and one.p <= ALPHA
        first = (
            f"{'' if seen else tables.despite_the_verdict(table)}"
            f"With the group {what.format(f'{100 * one.value:+.1f}')} beyond the "
            f"{100 * placebo.value:.1f} that a placebo already changes{beside}."
        )
        return first, *tables.shown_in(table)

    def sections(self, report: Report, run: RunReader) -> tuple[Section, ...]:
        answers, labels = self._answers(run), self._labels(run)
        by_family = report.groups.get("family", {})
        excess = {family: _of_family(by_family[family]) for family in labels if family in by_family}
        main = main_of(report.source)
        found = _contrasts(answers, labels)
        return (
            *tables.effects(excess, _MAIN[main], found, chosen_of(answers)),
            tables.examples(answers, main),
            tables.words(answers, labels),
        )

    def red_lines(
        self, comparison: Comparison, before: RunReader, after: RunReader
    ) -> tuple[RedLine, ...]:
        """Say whether the decision itself was kept, where --chosen names one."""
        sources = before.record.source, after.record.source
        if all(one.get("chosen") is None for one in sources):
            return ()
        return rate_lines(comparison, sources, (self._answers(before), self._answers(after)))

    def effects(self, run: RunReader) -> list[Contrast]:
        """Give the signed contrasts of a run as numbers, after Holm."""
        return _contrasts(self._answers(run), self._labels(run))


def _contrasts(answers: pl.DataFrame, labels: Mapping[str, list[str]]) -> list[Contrast]:
    wanted = [one for one in OUTCOMES if answers[one.name].count()]
    return tables.adjusted(contrasts(answers, labels, wanted))


def _scores(run: RunReader) -> pl.DataFrame:
    """The toxicity of the run's texts by the scorer that scored them last; none without one."""
    scores = stored.read(open_folder(run.path))
    if not scores.is_empty():
        scores = scores.filter(pl.col("scorer") == stored.scorer_of(run))
    return scores.select("text", score="toxicity").drop_nulls()


def _of_family(found: tuple[Estimate, ...]) -> tuple[Estimate, float | None]:
    by_name = {one.name: one for one in found}
    return by_name["excess"], by_name["placebo"].value


def _design(options: SwapOptions) -> Design:
    if (options.answers is None) == (options.prompts is None):
        raise UserError("name what is asked: --prompts FILE, or --answers FILE that exist already")
    if options.chosen is not None and options.decision is None:
        raise UserError("--chosen names one of the decisions: give --decision REGEX with it")
    if options.decision is not None:
        checked_pattern(options.decision)
    if options.answers is not None:
        return read_answers(options.answers)
    return designed_by(options)


def _sha256(said: list[Any]) -> str:
    return hashlib.sha256(orjson.dumps(said)).hexdigest()
