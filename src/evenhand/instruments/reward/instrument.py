"""The audit of a reward model as an instrument: held-out pairs, what it gives for their texts, and
the measures of that.

    evenhand.audit("reward", weights="runs/reward/model", pairs="data/pairs", out="runs/probes")

A reward model of any kind is audited from Python by its function:

    evenhand.audit(Reward(score), pairs="data/pairs", out="runs/probes")
"""

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from evenhand.agents import Agent, Ask
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import UserError
from evenhand.findings.audit import Audit
from evenhand.findings.certificate import Certificate, CertifiedJudge
from evenhand.findings.estimates import Cell, Estimate, Section
from evenhand.findings.scoring import outcomes_of
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    Grouping,
    Instrument,
    ListedItems,
    Measure,
    option,
    why_lost,
)
from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.reward.measures import MEASURES, beaten
from evenhand.methods import Method
from evenhand.runs.store import RunReader
from evenhand.statistics.metrics.reward_probes import FEWEST_TOPICS
from evenhand.training.folders import write
from evenhand.training.probes import (
    CERTIFICATE_FILE,
    KEY,
    KIND,
    ProbePair,
    Probes,
    ProbeTexts,
    Score,
    checksums_of,
    drawn,
    held_out,
    identity_of,
    method,
    sha256_of,
)

_WORDS = InstrumentWords(__package__)

if TYPE_CHECKING:
    from evenhand.findings.report import Report

_MOST_TOPICS = 8  # the worst, on a page; the JSON has all
_VARIANTS = ("chosen", "rejected", "chosen_filled", "rejected_filled", "chosen_twice",
             "chosen_opened", "chosen_unopened", "rejected_opened", "rejected_unopened",
             "chosen_elsewhere", "rejected_elsewhere", "alone", "beside_longer")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardOptions:
    weights: Path | None = option(
        None, "Reward model to audit: the `model` folder from `evenhand train reward`."
    )
    pairs: Path | None = option(
        None, "Folder of pairs that the model was trained on. The audit uses its test split."
    )
    most: int = option(
        400,
        "Maximum number of pairs, taken from the topics in turn. Each pair needs about 30 texts.",
        least=1,
    )


@dataclass(frozen=True, kw_only=True)
class RewardTexts:
    """Asks a reward model for its rewards of all texts of a pair. No language model is asked."""

    name: ClassVar[str] = "reward"
    calls_an_item: ClassVar[str] = "0"

    model: Mapping[str, str]  # the checksum of each file that shapes a reward
    texts: int  # the version of the texts that are tried

    @classmethod
    def of(cls, probes: Probes, score: Score, model: Mapping[str, str], texts: int) -> Method:
        method = cls(model=model, texts=texts)
        vars(method).update(_probes=probes, _score=score)  # not of the record
        return method

    def agents(self) -> tuple[Agent[Any], ...]:
        return ()

    async def answer(self, item: Item, ask: Ask) -> Answer:
        """Score without a pause: a pair that waited for others would run out of its time."""
        own = vars(self)
        scores = own["_probes"].scores(int(item.id), own["_score"])
        return Answer(drafts=(Draft(text=item.answer or "", scores=scores),), stopped="single_pass")


class Reward(Instrument):
    """Audits a reward model on held-out pairs: accuracy, shortcuts, and worthless answers that it
    may prefer. The text of a pair, changed in some 30 ways, is all that it is asked about."""

    name = "reward"
    title = "Reward model"
    clusters = "topics"
    asks = "nobody"
    must_pass = True  # nothing is trained against it otherwise
    columns = ("scores_after",)
    facts: ClassVar = {
        "cluster": pl.String(),
        "bias_type": pl.String(),
        "length_chosen": pl.Int64(),
        "length_rejected": pl.Int64(),
    }
    options = RewardOptions
    measures: ClassVar[tuple[Measure, ...]] = MEASURES
    groups: ClassVar = (
        Grouping(column="bias_type", measures=("accuracy",), says_whom=False),
        Grouping(column="topic", measures=("accuracy",), says_whom=False, compared=False),
    )

    def __init__(
        self, score: Score | None = None, pairs: Sequence[ProbePair] | None = None
    ) -> None:
        self._score = score
        self._pairs = pairs
        self._texts = ProbeTexts.shipped()

    def source(self, data: DataFolder, options: RewardOptions) -> ListedItems:
        pairs = self._drawn(options)
        return ListedItems(
            self,
            [_item(position, pair) for position, pair in enumerate(pairs)],
            sampling={
                "pairs": sha256_of(options.pairs) if options.pairs else None,
                "most": options.most,
            },
        )

    def _drawn(self, options: RewardOptions) -> list[ProbePair]:
        if self._pairs is not None:
            return drawn(list(self._pairs), options.most)
        if options.pairs is None:
            raise UserError(
                "No pairs are named, and the audit compares their answers. Add --pairs FOLDER, "
                "such as one of `evenhand train pairs from-debates`."
            )
        return drawn(held_out(options.pairs), options.most)

    def worded(self, method: Method, options: RewardOptions) -> Method:
        """Ask the reward model, whatever method was named."""
        probes, score, model = Probes(self._drawn(options), self._texts), self._score, {}
        if score is None:
            if options.weights is None:
                raise UserError(
                    "No reward model is named. Add --weights FOLDER, such as one of "
                    "`evenhand train reward`."
                )
            model = checksums_of(options.weights)
            score = _loaded(options.weights)
        return RewardTexts.of(probes, score, model, self._texts.version)

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return one row per pair: what each of its texts got, and which worthless answers won."""
        rewards = _rewards(rows)
        wordings = [name for name in rewards.columns if name.startswith(KEY)]
        return rewards.select(
            "item_id", "cluster", "bias_type", "length_chosen", "length_rejected", *_VARIANTS,
            *wordings,
            topic="cluster",
            state=pl.when(pl.col("chosen").is_null()).then(why_lost()).otherwise(pl.lit(SCORED)),
            **{beaten(kind): _any_beats(wordings, kind) for kind in self._texts.said()},
        )  # fmt: skip

    def audited(self, report: "Report") -> str:
        model = report.side.method["settings"]["model"]
        return str(model.get("model.safetensors", ""))[:12] or "a reward function"

    def notes(self, report: "Report", run: RunReader) -> tuple[str, ...]:
        """Codes of what stops no model but should be known."""
        accuracy, low = report["accuracy"], report["accuracy"].low
        apart = report["accuracy_behind_other_prompts"].value
        by_length = report["longer_wins_accuracy"].value
        codes = []
        if low is not None and apart is not None and apart >= low:
            codes.append("prompt_not_read")
        if low is not None and by_length is not None and max(by_length, 1 - by_length) >= low:
            codes.append("longer_is_as_good" if by_length >= 0.5 else "shorter_is_as_good")
        if accuracy.clusters < FEWEST_TOPICS:
            codes.append("few_topics")
        return tuple(codes)

    def keep(self, audit: Audit, options: RewardOptions, certificates: Path | None) -> None:
        """Write the certificate into the folder of the reward model, where RL training reads it.

        Args:
            audit: A partial audit writes nothing.
            options: `weights` is the folder of the model; without it nothing is written.
            certificates: Not used.
        """
        if options.weights is None or audit.more["not_run"]:
            return
        run = RunReader(audit.more["run"])
        certificate = certificate_of(run, audit, options.weights)
        write(options.weights / CERTIFICATE_FILE, certificate.to_bytes().decode())

    def sections(self, report: "Report", run: RunReader) -> tuple[Section, ...]:
        outcomes = outcomes_of(self, run)
        groups = report.groups
        return (
            _means(outcomes, self._texts.said()),
            _best_wordings(outcomes, self._texts.said()),
            _WORDS.table("by_bias_type", _accuracies(groups.get("bias_type", {})), in_short=True),
            _WORDS.table("by_topic", _accuracies(groups.get("topic", {}))[:_MOST_TOPICS],
                         in_short=True),
        )  # fmt: skip


def _accuracies(groups: Mapping[str, Sequence[Estimate]]) -> list[tuple[Cell, ...]]:
    """Give a row for each group, the worst first."""
    rows = [(value, e.value, e.low, e.high, e.n, e.clusters) for value, (e,) in groups.items()]
    return [*sorted(rows, key=lambda row: (row[1] is None, row[1], row[0]))]


def certificate_of(run: RunReader, audit: Audit, weights: Path) -> Certificate:
    """Return the certificate of a reward model.

    Args:
        run: The run of the audit.
        audit: What it showed.
        weights: The folder of the model.
    """
    source = run.record.source
    bounds = {m.name: m.allowed for m in MEASURES if m.allowed is not None}
    return Certificate.of_run(
        run,
        kind=KIND,
        judge=CertifiedJudge(
            model=identity_of(weights), served_by=[], described=checksums_of(weights)
        ),
        checks=audit.checks,
        method=method(),
        prompts={},
        benchmark={
            **{name: source[name] for name in ("version", "sampling", "items", "sha256")},
            "topics": audit["accuracy"].clusters,
        },
        margins={
            f"{name} {side}": value
            for name, bound in bounds.items()
            for side in ("above", "at_least", "at_most")
            if math.isfinite(value := getattr(bound, side))
        },
    )


def _loaded(folder: Path) -> Score:
    # Loaded by name: without the train extra everything else works.
    importlib.import_module("evenhand.training.config").prepare()
    model = importlib.import_module("evenhand.training.reward_model").RewardModel.load(folder)
    score: Score = model.score
    return score


def _item(position: int, pair: ProbePair) -> Item:
    tags = {
        "cluster": pair.topic,
        "bias_type": pair.bias_type,
        "length_chosen": str(len(pair.chosen)),
        "length_rejected": str(len(pair.rejected)),
    }
    prompt = "\n\n".join(str(message["content"]) for message in pair.prompt)
    answer = f"{pair.chosen}\n\n{pair.rejected}"
    return Item(id=str(position), prompt=prompt or pair.topic, answer=answer, tags=tags)


def _rewards(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with one column per reward; null where a pair has none."""
    scores = rows.select("item_id", "scores_after").explode("scores_after").unnest("scores_after")
    wide = scores.drop_nulls("name").pivot("name", index="item_id", values="value")
    joined = rows.join(wide, on="item_id", how="left", maintain_order="left")
    lacking = [name for name in _VARIANTS if name not in joined.columns]
    return joined.with_columns(pl.lit(None, pl.Float64).alias(name) for name in lacking)


def _any_beats(wordings: Sequence[str], kind: str) -> pl.Expr:
    """One wording that gets no less than the good answer is enough: one is all a policy has to
    find."""
    own = [name for name in wordings if name.startswith(f"{KEY}{kind}:")]
    if not own:
        return pl.lit(None, pl.Boolean)
    return pl.any_horizontal(pl.col(name) >= pl.col("chosen") for name in own)


def _means(outcomes: pl.DataFrame, kinds: Mapping[str, str]) -> Section:
    """What each kind of answer gets on average, the most rewarded first. Of a kind with several
    wordings it is the best one for each prompt, as a policy would find it."""
    answers = {"the good answer": ["chosen"], "the biased answer": ["rejected"]}
    answers |= {label: _wordings(outcomes, kind) for kind, label in kinds.items()}
    means: list[tuple[str, float | None]] = [
        (label, outcomes.select(pl.max_horizontal(names).mean()).item())
        for label, names in answers.items()
        if names
    ]
    return _WORDS.table(
        "means", sorted(means, key=lambda row: row[1] or 0.0, reverse=True), in_short=True
    )


def _best_wordings(outcomes: pl.DataFrame, kinds: Mapping[str, str]) -> Section:
    rows = []
    for kind, label in kinds.items():
        wins = {
            name: outcomes.select((pl.col(name) >= pl.col("chosen")).mean()).item() or 0.0
            for name in _wordings(outcomes, kind)
        }
        if wins:
            best = max(wins, key=wins.__getitem__)
            rows.append((label, best.removeprefix(f"{KEY}{kind}:"), wins[best]))
    return _WORDS.table("best_wordings", rows)


def _wordings(outcomes: pl.DataFrame, kind: str) -> list[str]:
    return [name for name in outcomes.columns if name.startswith(f"{KEY}{kind}:")]
