"""SQuAD v2 as an instrument: whether answers stay right, and silent where there is none."""

from dataclasses import dataclass
from typing import Any, ClassVar

import orjson
import polars as pl

from evenhand.core.errors import UserError
from evenhand.findings.estimates import Section, if_known
from evenhand.findings.report import Report
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    Instrument,
    InstrumentWords,
    Mean,
    Measure,
    Share,
    option,
    why_lost,
)
from evenhand.instruments.squad.source import (
    BY_WORDS,
    VERBATIM,
    SquadData,
    SquadSampling,
    SquadSource,
    prompt,
    sample,
)
from evenhand.runs.runners.source import Source
from evenhand.runs.store import RunReader
from evenhand.statistics.metrics.readings import normalised, score

WORDY = 20  # our choice: the shortest gold answer is longer for 3 of the 11,873 questions
_MARGIN = 0.02  # our choice, fixed before looking, as on BBQ
_NO_ANSWER = normalised("NO ANSWER")  # the words that our prompt asks for
_ANSWERABLE = pl.col("answerable")
_WORDS = InstrumentWords(__package__)
_SCHEMA = {
    "item_id": pl.String,
    "cluster": pl.String,
    "answerable": pl.Boolean,
    "state": pl.String,
    "exact": pl.Float64,
    "f1": pl.Float64,
    "abstained": pl.Boolean,
    "words": pl.Int64,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SquadOptions:
    questions: int = option(300, "Number of questions, spread over all 35 articles.", least=2)
    all: bool = option(False, "Use all 11,873 questions.")
    first: int | None = option(
        None,
        "Use the first N questions. The MABRF paper uses 100, all from a single article.",
        least=1,
    )
    closed_book: bool = option(
        False, "Omit the passage, to measure what the model knows without it."
    )
    sample_seed: int = option(0, "Random seed for sampling questions.")


def _share(name: str, value: pl.Expr, **more: Any) -> Measure:
    return Measure(name=name, statistic=Share(value), within=(0, 1),
                   **_WORDS.measure(name, wordy=WORDY), **more)  # fmt: skip


def _f1(name: str, **more: Any) -> Measure:
    return Measure(name=name, statistic=Mean(pl.col("f1")), better="higher", role="primary",
                   margin=_MARGIN, within=(0, 1), **_WORDS.measure(name), **more)  # fmt: skip


class Squad(Instrument):
    """Measures whether answers stay right on SQuAD v2: exact match, F1 and silence.

    Half of the questions have no answer in their passage (Rajpurkar et al. 2018).
    """

    name = "squad"
    title = "SQuAD"
    clusters = "articles"
    all_clusters = 35
    columns = ("text",)
    facts: ClassVar = {"article": pl.String(), "golds": pl.String(), "reading": pl.String()}
    options = SquadOptions
    every_item: ClassVar = {"questions": SquadOptions().questions, "all": True, "first": None,
                            "closed_book": False}  # fmt: skip
    silence = True
    measures = (
        _share("exact", pl.col("exact"), better="higher"),
        _f1("f1"),
        _share("exact_has_answer", pl.col("exact"), where=_ANSWERABLE, better="higher"),
        _f1("f1_has_answer", where=_ANSWERABLE),
        _share("no_answer", pl.col("exact"), where=~_ANSWERABLE, better="higher", role="primary",
               margin=_MARGIN),
        _share("over_abstention", pl.col("abstained"), where=_ANSWERABLE, better="lower",
               role="guardrail", margin=_MARGIN),
        _share("wordy", pl.col("words") > WORDY),
    )  # fmt: skip
    utility = "f1"

    def source(self, data: DataFolder, options: SquadOptions) -> Source:
        count = None if options.all else options.questions
        sampling = SquadSampling(questions=count, first=options.first, seed=options.sample_seed)
        specified = options.all or options.questions != SquadOptions().questions
        if options.first and specified:
            raise UserError("--first selects the questions. Omit --questions and --all")
        records = SquadData(local=data.local, cache=data.cache).records()
        reading = VERBATIM if self.stores_answers(options) else BY_WORDS
        sampled = sample(records, sampling)
        return SquadSource(sampled, sampling, closed_book=options.closed_book, reading=reading)

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Exact match, F1, silence and length of each answer; null where there is none."""
        columns = ("item_id", "lost", "text", "article", "golds", "reading")
        read = rows.with_columns(lost=why_lost()).select(columns)
        scored = [_scored(*row) for row in read.iter_rows()]
        return pl.DataFrame(scored, schema=_SCHEMA, orient="row")

    def notes(self, report: Report, run: RunReader) -> tuple[str, ...]:
        lines = []
        if report.clusters < 30:
            lines.append(_WORDS("few_articles", articles=report.clusters))
        if prompt(closed_book=True).label in run.record.source.get("prompt", {}):
            lines.append(_WORDS("closed_book"))
        return tuple(lines)

    def says(self, report: Report) -> tuple[str, ...]:
        f1 = report["f1"]
        if f1.value is None:
            return ()
        sure = "" if f1.low is None else _WORDS("interval", low=f1.low, high=f1.high)
        bounds = if_known(f1.bounds, "{:.2f}".format)
        interval = "; ".join(filter(None, (sure, bounds)))
        overlap = f"{f1.value:.2f}{interval and f' ({interval})'}"
        return (_WORDS("result", overlap=overlap),)

    def sections(self, report: Report, run: RunReader) -> tuple[Section, ...]:
        """The keys and the percent of evaluate-v2.0.py; and, stricter, missing answers as wrong."""
        parts = {"": ("exact", "f1"), "HasAns_": ("exact_has_answer", "f1_has_answer"),
                 "NoAns_": ("no_answer", "no_answer")}  # fmt: skip
        rows: list[tuple[str, float | int | None]] = []
        for prefix, names in parts.items():
            for key, name in zip(("exact", "f1"), names, strict=True):
                n, total = report.sums[name]
                rows.append((f"{prefix}{key}", _percent(total, n)))
            rows.append((f"{prefix}total", report.sums[names[0]][0]))
        for name in ("exact", "f1"):
            total = report.sums[name][1]
            rows.append((f"{name}_missing_wrong", _percent(total, report.coverage.n)))
        return (_WORDS.table("as_others_print_it", rows),)


def _percent(part: float, total: int) -> float | None:
    return 100 * part / total if total else None


def said(text: str, reading: str) -> str:
    """What an answer claims. Stored answers are taken word for word, as the official scorer does;
    a model was asked to say NO ANSWER where there is none."""
    return "" if reading == BY_WORDS and normalised(text) == _NO_ANSWER else text


def _scored(
    item_id: str, lost: str, text: str | None, article: str, golds: str, reading: str
) -> tuple[object, ...]:
    references = orjson.loads(golds)
    if text is None:
        return item_id, article, bool(references), lost, None, None, None, None
    claim = said(text, reading)
    scores = score(claim, references)
    abstained, words = not normalised(claim), len(claim.split())
    return item_id, article, bool(references), SCORED, scores.exact, scores.f1, abstained, words
