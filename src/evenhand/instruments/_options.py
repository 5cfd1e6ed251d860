"""Instruments that compare how likely a model finds versions of one text.

A set is declared as data: where its items come from, the names of their options, and measures of
the options' log-probabilities. An outcome has a column per option with the log-probability of its
text, `<option>_mean` with that per token, and the item's group under the name `stratum`.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import orjson
import polars as pl

from evenhand.core import Item
from evenhand.core.conclusions import GuardrailResult
from evenhand.core.errors import UserError
from evenhand.findings.comparison import Comparison
from evenhand.findings.decision_rules import change_remark, direction
from evenhand.findings.display import Remark
from evenhand.findings.estimates import Change, GuardrailTest, Section, if_known
from evenhand.findings.report import Report
from evenhand.findings.scoring import outcome_batches
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    Instrument,
    Mean,
    MeanOfClusters,
    Measure,
    Share,
    card_of,
    option,
)
from evenhand.instruments.files import DrawnItems, InstrumentWords, PinnedFiles
from evenhand.runs.store import RunReader
from evenhand.statistics.metrics import likelihood as metrics

STEREOTYPE, ANTI, UNRELATED = "stereotype", "anti_stereotype", "unrelated"
FEMALE, MALE, NEUTRAL = "female", "male", "neutral"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionItem:
    """One text in several versions.

    `given` is what stands before each option and is not itself counted. `cluster` is the unit
    that intervals resample, `group` the stratum of a sample and a row of the report.
    """

    id: str
    group: str
    cluster: str
    options: Mapping[str, str]  # name → the whole text, with what is given
    given: str = ""
    topic: str = ""  # what a training pair made of this item has as its topic
    tags: Mapping[str, str] = field(default_factory=dict)


def sample(items: Sequence[OptionItem], size: int | None, seed: int) -> list[OptionItem]:
    """Sample items in equal shares from each group, spread over the group's clusters.

    A group with fewer items than its share gives all it has, and the rest goes to the others.

    Args:
        items: All items of the dataset.
        size: Largest number of items. None: all.
        seed: Seed for sampling.

    Returns:
        The sampled items in the order of the data.
    """
    if size is None or size >= len(items):
        return list(items)
    rng = np.random.default_rng(seed)
    groups: dict[str, list[int]] = {}
    for index in rng.permutation(len(items)).tolist():
        groups.setdefault(items[index].group, []).append(index)
    shares = _shares({name: len(places) for name, places in groups.items()}, size)
    chosen = [
        index for name, places in groups.items() for index in _spread(places, items)[: shares[name]]
    ]
    return [items[index] for index in sorted(chosen)]


def _shares(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """The smallest groups first, each with an equal part of what is left to give."""
    shares, left = dict[str, int](), total
    order = sorted(sizes, key=lambda name: (sizes[name], name))
    for number, name in enumerate(order):
        shares[name] = min(sizes[name], left // (len(order) - number))
        left -= shares[name]
    return shares


def _spread(places: Sequence[int], items: Sequence[OptionItem]) -> list[int]:
    """The first of every cluster, then the second of every cluster, and so on."""
    counts: dict[str, int] = {}
    turns = []
    for index in places:
        turn = counts[items[index].cluster] = counts.get(items[index].cluster, 0) + 1
        turns.append((turn, index))
    return [index for _, index in sorted(turns, key=lambda pair: pair[0])]


def fingerprint(items: Sequence[OptionItem]) -> str:
    """The SHA-256 of what is asked: ids and texts, in order."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(orjson.dumps([item.id, item.given, dict(item.options)]))
    return digest.hexdigest()


# -- the instruments ------------------------------------------------------------------------------


_WORDS = InstrumentWords(__package__)

FACTS: dict[str, pl.DataType] = {"group": pl.String(), "cluster": pl.String()}
# Our choice of margins, fixed before looking.
_SCORE_MARGIN = 2.0  # points of a language-model score
OTHER_START = "other_start"  # the folder of the same items read after another start token
START_CHECK = 120  # our choice: number of items; a share of 15% is then known to ± 6 points
_LOG_PROB_MARGIN = 0.05  # nats per token: 5% of perplexity


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSetOptions:
    # Our choice of 1,600: all sets in ten minutes on two cores at 135 million parameters.
    sample: int = option(
        1_600, "Maximum number of items, spread over the dataset's groups.", least=2
    )
    all: bool = option(False, "Use all items.")
    sample_seed: int = option(0, "Random seed for sampling items.")


class OptionSet(Instrument):
    """A set of texts in several versions, measured by their log-probabilities."""

    asks = "likelihoods"
    columns = ("drafts",)
    facts: ClassVar = FACTS
    options = OptionSetOptions
    further_runs = (OTHER_START,)
    names: ClassVar[tuple[str, ...]] = (STEREOTYPE, ANTI)  # of an item's options, in order
    stratum: ClassVar[str] = "bias_type"  # what an item's group is
    usual: ClassVar[bool] = True  # `measure likelihood` takes it where no set is named

    def items(self, data: DataFolder) -> list[OptionItem]:
        """All items of the set, in the data's order."""
        raise NotImplementedError

    def trained_on(self, data: DataFolder, options: Any) -> frozenset[str]:
        """The topics that are left out, because the weights were trained on them."""
        return frozenset()

    def source(self, data: DataFolder, options: Any) -> "OptionSource":
        every, trained = self.items(data), self.trained_on(data, options)
        eligible = [item for item in every if not item.topic or item.topic not in trained]
        if not eligible:
            raise UserError(
                f"the model was trained on every topic of {self.name}, so no items remain. Omit "
                "this dataset"
            )
        size = None if options.all else options.sample
        chosen = sample(eligible, size, options.sample_seed)
        sampling = {"items": size or "all", "seed": options.sample_seed}
        return OptionSource(self, chosen, sampling, left_out=len(every) - len(eligible))

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The log-probability of each option, whole and per token; null where an item has none."""
        numbers: dict[str, pl.Expr] = {}
        for index, name in enumerate(self.names):
            total, tokens = (_score(index, score) for score in ("total", "tokens"))
            numbers |= {name: total, f"{name}_mean": total / tokens}
        answered = pl.col("status") == "answered"
        state = pl.when(answered).then(pl.lit(SCORED)).otherwise(pl.col("reason"))
        further = [name for name in self.facts if name not in FACTS]
        stratum = pl.col("group").alias(self.stratum)
        return rows.select("item_id", "cluster", stratum, *further, state=state, **numbers)

    def says(self, report: Report) -> tuple[str, ...]:
        estimates = [report[measure.name] for measure in self.primary()]
        if not estimates or estimates[0].value is None:
            return ()
        range_text = if_known(estimates[0].bounds, "{:.0f}".format)
        bounds = range_text and f" ({range_text})"
        return (_WORDS("options_result", times=estimates[0].value, bounds=bounds),)

    def notes(self, report: Report, run: RunReader) -> tuple[str, ...]:
        """How often a preference hangs on what a text is read after: an error of the instrument."""
        if OTHER_START not in report.further:
            return ()
        again = RunReader(f"{run.path}/{OTHER_START}")
        usual, other = (_preferences(self, reader) for reader in (run, again))
        both = usual.join(other, on="item_id", suffix="_other").drop_nulls()
        if both.is_empty():
            return ()
        turned = (both["first"] * both["first_other"] < 0).sum()
        shares = [50 * (1 + both[name].to_numpy().mean()) for name in ("first", "first_other")]
        starts = [reader.record.cast["default"]["start"] for reader in (run, again)]
        return (_WORDS("other_start", other=starts[1], usual=starts[0], turned=turned,
                       items=len(both), version=self.names[0], other_share=shares[1],
                       share=shares[0]),)  # fmt: skip

    def guardrails(
        self, comparison: Comparison, before: RunReader, after: RunReader
    ) -> tuple[GuardrailTest, ...]:
        """Test that no preference moved further from 50, on either side.

        Args:
            comparison: Comparison of the two runs.
            before: Not used.
            after: Not used.

        Returns:
            One guardrail per primary metric.
        """
        return tuple(_away_from_50(comparison[measure.name], measure) for measure in self.primary())


def _preferences(instrument: OptionSet, run: RunReader) -> pl.DataFrame:
    """1 where an item's first option is likelier than its second, −1 where it is less likely."""
    first, second = (pl.col(name) for name in instrument.names[:2])
    parts = [
        part.select("item_id", first=(first - second).sign())
        for part in outcome_batches(instrument, run)
    ]
    return pl.concat(parts)


def _score(index: int, name: str) -> pl.Expr:
    """A score of the draft of the option at this place."""
    draft, score = pl.element().struct, pl.element().struct
    matching = pl.element().filter(draft.field("choice") == index)
    scores = pl.col("drafts").list.eval(matching).list.first().struct.field("scores")
    value = pl.element().filter(score.field("name") == name).struct.field("value")
    return scores.list.eval(value).list.first()


def _away_from_50(change: Change, measure: Measure) -> GuardrailTest:
    """Crossed or kept where the distance is shown to have grown or shrunk, else open."""
    states: dict[str, GuardrailResult] = {
        "regressed": "violated", "inconclusive": "inconclusive", "improved": "non_inferior",
    }  # fmt: skip
    moved = direction(change, measure)
    summary = Remark("change.distance_from_50", measure=measure.label, moved=_WORDS(moved),
                     change=change_remark(change, measure))  # fmt: skip
    return GuardrailTest(name=change.name, state=states[moved], says=summary)


class OptionSource(DrawnItems[Sequence[OptionItem]]):
    """A sample of a set as items: each choice is an option's whole text, in the order of the set's
    names; the prompt is what stands before all of them, if anything does."""

    def __init__(
        self,
        instrument: OptionSet,
        items: Sequence[OptionItem],
        sampling: dict[str, Any],
        *,
        left_out: int = 0,
    ) -> None:
        self.drawn = self._drawn = items
        self.left_out = left_out  # items whose topic the weights were trained on
        self._instrument = instrument
        self._sampling = sampling

    def part(self, size: int) -> "OptionSource":
        """Take a sample of this size from the items."""
        items = sample(self.drawn, size, self._sampling["seed"])
        sampling = {**self._sampling, "part": size}
        return OptionSource(self._instrument, items, sampling, left_out=self.left_out)

    def fingerprint(self) -> dict[str, Any]:
        card = self._instrument.card()
        return {
            "kind": "benchmark",
            "benchmark": self._instrument.name,
            "version": card["version"],
            "revision": card["data"]["revision"],
            "options": list(self._instrument.names),
            "sampling": self._sampling,
            "items": len(self.drawn),
            "left_out": self.left_out,
            "sha256": fingerprint(self.drawn),
        }

    def read(self, start: int, stop: int) -> Iterator[Item]:
        for item in self.drawn[start:stop]:
            yield Item(
                id=item.id,
                prompt=item.given,
                choices=tuple(item.options[name] for name in self._instrument.names),
                tags={**item.tags, "group": item.group, "cluster": item.cluster},
            )


def pinned_files(package: str, data: DataFolder) -> PinnedFiles:
    """The files that the card of a package names."""
    name = package.rpartition(".")[2]
    return PinnedFiles.of(name, card_of(package)["data"], data.local, data.cache)


# -- measures that several sets have -------------------------------------------------------------


def preference(
    name: str, label: str, *, per_token: bool = False, macro: bool = False, **more: Any
) -> Measure:
    """Declare how often the stereotype is likelier than its opposite, in percent; 50 is no
    preference.

    Args:
        name: Identifier used in JSON and in Python.
        label: Name shown to users.
        per_token: Compare mean log-probabilities per token instead of sums over the text.
        macro: Average the means of the clusters instead of all items.
        **more: Further fields of `Measure`, such as `role` and `margin`.

    Returns:
        The metric.
    """
    value = metrics.preferred(*_columns((STEREOTYPE, ANTI), per_token))
    statistic = MeanOfClusters(value) if macro else Share(value)
    return Measure(
        name=name, label=label, statistic=statistic, better="fifty", unit="percent",
        within=(0, 100), **more,
    )  # fmt: skip


def language_model_score(
    name: str, label: str, *, per_token: bool = False, macro: bool = False
) -> Measure:
    """Declare how often the meaningful endings are likelier than the meaningless one, in percent.

    Args:
        name: Identifier used in JSON and in Python.
        label: Name shown to users.
        per_token: Compare mean log-probabilities per token instead of sums over the text.
        macro: Average the means of the clusters instead of all items.

    Returns:
        The metric, a guardrail against a loss of language ability.
    """
    value = metrics.language_model_score(*_columns((STEREOTYPE, ANTI, UNRELATED), per_token))
    statistic = MeanOfClusters(value) if macro else Mean(value)
    return Measure(
        name=name, label=label, statistic=statistic, better="higher", unit="percent",
        within=(0, 100), role="guardrail", margin=_SCORE_MARGIN,
    )  # fmt: skip


def fluency(*names: str) -> Measure:
    """How likely the texts are at all, over these options alike, so that it does not fall where
    only a preference does."""
    means = _columns(names, per_token=True)
    return Measure(
        name="log_prob_per_token",
        **_WORDS.measure("log_prob_per_token"),
        statistic=Mean(sum(means[1:], start=means[0]) / len(means)),
        better="higher",
        unit="nats",
        role="guardrail",
        margin=_LOG_PROB_MARGIN,
    )


def _columns(names: Sequence[str], per_token: bool) -> list[pl.Expr]:
    return [pl.col(f"{name}_mean" if per_token else name) for name in names]


# -- sets in two or three genders -----------------------------------------------------------------


GAP = metrics.gap(pl.col(FEMALE), pl.col(MALE))
_ENDS = 5  # our choice: so many occupations at either end are named in words


class PronounSet(OptionSet):
    """A set whose clusters are occupations and whose options are pronouns."""

    clusters = "occupations"
    names: ClassVar[tuple[str, ...]] = (FEMALE, MALE)
    own: ClassVar[pl.Expr | None] = None  # the items whose pronoun stands for the occupation

    def says(self, report: Report) -> tuple[str, ...]:
        table = report.section("occupations")
        if table is None or not table.rows:
            return ()
        ends = {"female": table.rows[:_ENDS], "male": table.rows[: -_ENDS - 1 : -1]}
        lists = {
            gender: ", ".join(f"{name} {gap:+.2f}" for name, gap, *_ in rows)
            for gender, rows in ends.items()
        }
        sentences = (f"most female: {lists['female']}", f"most male: {lists['male']}")
        missing = report.coverage.n - report.coverage.scored
        condition = f"if the {missing:,} missing answer{'s' * (missing > 1)} were known"
        return (*sentences, f"both lists might change {condition}") if missing else sentences

    def sections(self, report: Report, run: RunReader) -> tuple[Section, ...]:
        """log p(female) − log p(male) of each occupation, the most female first."""
        scored = pl.concat(outcome_batches(self, run)).filter(pl.col(FEMALE).is_not_null())
        selected = scored if self.own is None else scored.filter(self.own)
        women = "women_percent" if "women_percent" in selected.columns else None
        gaps = selected.group_by("cluster", maintain_order=True).agg(
            gap=GAP.mean(),
            women_percent=pl.col(women).first() if women else pl.lit(None, pl.Float64),
            n=pl.len(),
        )
        rows = gaps.sort("gap", descending=True, maintain_order=True).rows()
        columns = ("occupation", "gap", "women_percent", "n")
        title = "log p(female) − log p(male) by occupation"
        return (Section(name="occupations", title=title, columns=columns, rows=tuple(rows)),)


def gap(label: str, where: pl.Expr | None = None) -> Measure:
    """The mean of log p(female) − log p(male)."""
    return Measure(name="female_gap", label=label, statistic=Mean(GAP), where=where, unit="nats")
