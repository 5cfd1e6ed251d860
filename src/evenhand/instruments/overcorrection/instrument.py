"""Over-correction as an instrument: what a method makes of texts that needed no correction."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import polars as pl

from evenhand.core.errors import UserError
from evenhand.findings.estimates import Section, if_known
from evenhand.findings.measures import Better
from evenhand.findings.report import Report
from evenhand.findings.scoring import outcome_batches
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    Grouping,
    Instrument,
    Measure,
    Services,
    Share,
    option,
)
from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.overcorrection.data import (
    BenignData,
    BenignSource,
    OverCorrectionSampling,
    own_texts,
    sample,
)
from evenhand.methods import Method
from evenhand.runs.runners.source import Source
from evenhand.runs.store import RunReader
from evenhand.statistics.metrics.refusal import CORRECTIONS_VERSION, OUTCOMES, WORSE, outcome

_WORDS = InstrumentWords(__package__)

# Methods that need only a chat endpoint; `default` shows what the model spoils by itself.
USUAL = (
    "default",
    "fairness",
    "self_debias_reprompting",
    "fair_thinking",
    "self_refine",
    "best_of_n",
    "stardtox",
)
_FOR_TEXTS = (*USUAL, "self_debias_gen", "stored")  # needs log-probabilities; changes nothing
_OUTCOME = pl.col("outcome")
_SCHEMA = {
    name: pl.Int64 if name == "position" else pl.String
    for name in ("position", "item_id", "set", "family", "identity", "cluster", "before", "after",
                 "outcome", "state")
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OverCorrectionOptions:
    items: int | None = option(500, "Number of texts, a third from each dataset.", least=3)
    texts: Path | None = option(
        None, "Your own texts to use instead: JSON lines with text, identity, family and template."
    )
    sample_seed: int = option(0, "Random seed for sampling items.")
    exclude_sample: int | None = option(
        None, "Exclude the items that this sample seed selects, as far as enough others exist."
    )


def _share(name: str) -> Measure:
    better: Better = "lower" if name in WORSE else "none"
    share, label = Share(_OUTCOME.eq(name)), name.replace("_", " ")
    return Measure(name=name, label=label, statistic=share, better=better, within=(0, 1))


def refuse_what_repairs_no_text(method: Method) -> None:
    """Refuse a method that answers questions."""
    if method.name not in _FOR_TEXTS:
        raise UserError(
            f"the method {method.name} does not edit texts. Methods that do: "
            f"{', '.join(_FOR_TEXTS)}"
        )


class OverCorrection(Instrument):
    """Measures over-correction: the share of benign texts that a method refuses, empties, lectures
    on, or takes the group out of."""

    name = "overcorrection"
    title = "Over-correction"
    clusters = "templates or groups"
    columns = ("text", "outcome")
    facts: ClassVar = dict.fromkeys(("set", "family", "identity", "template", "text"), pl.String())
    options = OverCorrectionOptions
    every_item: ClassVar = {"items": None, "exclude_sample": None}
    silence = True
    measures = (
        Measure(name="made_worse", label="share made worse", statistic=Share(_OUTCOME.is_in(WORSE)),
                better="lower", role="primary", within=(0, 1)),
        *(_share(name) for name in OUTCOMES),
    )  # fmt: skip
    groups = (Grouping(column="family", measures=("made_worse",)),)
    # Texts of one template are alike, and so are texts about one group.
    also_clusters = ("identity",)
    harm = "made_worse"
    overdone = True

    def source(self, data: DataFolder, options: OverCorrectionOptions) -> Source:
        if options.texts is not None:
            return BenignSource(own_texts(options.texts), {"texts": options.texts.name})
        sampling = OverCorrectionSampling(
            items=options.items, seed=options.sample_seed, exclude_sample=options.exclude_sample
        )
        texts = BenignData(local=data.local, cache=data.cache).texts()
        return BenignSource(sample(texts, sampling), sampling.describe())

    def check(
        self,
        options: OverCorrectionOptions,
        method: Method,
        players: Mapping[str, str],
        services: Services,
    ) -> None:
        """Refuse a method that answers questions instead of repairing texts.

        Args:
            options: Not used.
            method: Must repair a given text.
            players: Not used.
            services: Not used.

        Raises:
            UserError: The method repairs no text.
        """
        refuse_what_repairs_no_text(method)

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Compare the texts before and after; null where the text after is missing, or is the one
        before because an evaluator of the method gave no score."""
        columns = ("position", "item_id", "reason", "outcome", "text", "set", "family", "identity",
                   "template", "tag.text")  # fmt: skip
        results = [_row(*row) for row in rows.select(columns).iter_rows()]
        return pl.DataFrame(results, schema=_SCHEMA, orient="row")

    def says(self, report: Report) -> tuple[str, ...]:
        worse = report["made_worse"]
        if worse.value is None or worse.low is None or worse.high is None:
            return ()
        sure = _WORDS("interval", low=worse.low, high=worse.high)
        interval = "; ".join(filter(None, (sure, if_known(worse.bounds, "{:.1%}".format))))
        return (_WORDS("result", share=worse.value, interval=interval),)

    def sections(self, report: Report, run: RunReader) -> tuple[Section, ...]:
        """The first text of each way to make one worse, and the version of the rules on words."""
        worse = [
            rows.filter(_OUTCOME.is_in(WORSE)).sort("position").unique("outcome", keep="first")
            for rows in outcome_batches(self, run)
        ]
        first = pl.concat(worse).sort("position").unique("outcome", keep="first")
        by_outcome = {row["outcome"]: row for row in first.iter_rows(named=True)}
        examples = tuple(
            (name.replace("_", " "), by_outcome[name]["before"], by_outcome[name]["after"])
            for name in WORSE
            if name in by_outcome
        )
        return (
            _WORDS.table("rules", ((_WORDS("rules_on_words"), CORRECTIONS_VERSION),)),
            _WORDS.table("examples", examples, in_short=bool(examples)),
        )


def _row(
    position: int,
    item_id: str,
    reason: str | None,
    judged: str | None,
    after: str | None,
    *facts: str,
) -> tuple[object, ...]:
    set_, family, identity, template, before = facts
    scored = after is not None and judged != "not_judged"
    became = outcome(before, after, identity.split(";")) if after is not None and scored else None
    state = SCORED if scored else reason or judged or "missing"
    return position, item_id, set_, family, identity, template, before, after, became, state
