"""What BBQ's numbers mean in words, and what other tools would have printed of them."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from evenhand.findings.decision_rules import ALPHA
from evenhand.findings.estimates import Estimate, Section, if_known
from evenhand.findings.report import Report
from evenhand.findings.scoring import REFUSED
from evenhand.instruments.bbq.data import card
from evenhand.instruments.bbq.editions import ENGLISH, Edition, edition_of
from evenhand.instruments.files import InstrumentWords
from evenhand.interop import Origin
from evenhand.runs.store.run_record import RunRecord
from evenhand.statistics.metrics import bbq

_ENGLISH = Edition(ENGLISH)
_WORDS = InstrumentWords(__package__)
AT_CHANCE = _WORDS("at_chance")
_CHANCE = 1 / 3
_NEVER_NAMES = 0.5  # our choice: abstaining on half of the clear questions is abstaining on all


def notes(report: Report) -> tuple[str, ...]:
    """What a reader must know before using the numbers."""
    accuracies = [report[f"accuracy_{kind}"] for kind in ("ambiguous", "disambiguated")]
    lines = []
    if all(
        e.low is not None and e.high is not None and e.low <= _CHANCE <= e.high for e in accuracies
    ):
        lines.append(AT_CHANCE)
    abstains = report["over_abstention"]
    least = abstains.value if abstains.low is None else abstains.low
    if abstains.value is not None and (least or 0.0) > _NEVER_NAMES:
        lines.append(_WORDS("names_nobody", share=abstains.value))
    if any(e.clusters and e.clusters < 30 for e in accuracies):
        lines.append(_WORDS("few_templates"))
    return tuple(lines)


def says(report: Report) -> tuple[str, ...]:
    """State how often an answer names a person in ambiguous contexts, and whom; and the errors in
    disambiguated contexts."""
    attribution, unclear, clear = (report[n] for n in ("unsupported_attribution", "s_amb", "s_dis"))
    if attribution.value is None or unclear.value is None:
        return ()
    span = if_known(attribution.bounds, lambda share: f"{100 * share:.0f}")
    text = _WORDS("attribution", share=100 * attribution.value, bounds=span and f" ({span})")
    if not _significant(unclear):
        text = _WORDS("preference_open", attribution=text)
    else:
        more = "more" if unclear.value > 0 else "less"
        text = _WORDS("preference", attribution=text, more=more)
    if clear.value is None:
        return (text, _WORDS("no_s_dis"))
    if not _significant(clear):
        errors = _WORDS("errors_open")
    else:
        errors = _WORDS("errors", way="with" if clear.value > 0 else "against")
    return (text, _WORDS("where_the_text_says", errors=errors))


def _significant(estimate: Estimate) -> bool:
    p = estimate.p if estimate.p_holm is None else estimate.p_holm
    return p is not None and p <= ALPHA


def edition(record: RunRecord) -> tuple[str, ...]:
    """Say which set the items are from, where it is not BBQ itself, what it does not tell, and
    whether it was asked in its own language."""
    source = record.source
    dataset = edition_of(source)
    if dataset.language == ENGLISH:
        return ()
    language, paper = dataset.card["language"], dataset.card["paper"]
    lines = [_WORDS("edition", name=dataset.name, language=language, paper=paper)]
    if source["untargeted"]:
        counts = {name: source[name] for name in ("untargeted", "items")}
        lines.append(_WORDS("untargeted", **counts))
    if record.prompts and record.method["settings"].get("language") != dataset.language:
        lines.append(_WORDS("english_prompts", method=record.method["name"], language=language))
    return tuple(lines)


def two_editions(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Say that a comparison is one of two languages, where it is."""
    ours, theirs = edition_of(before), edition_of(after)
    if ours == theirs:
        return ()
    return (_WORDS("two_editions", before=ours.name, after=theirs.name),)


def origin(source: Mapping[str, Any]) -> tuple[str, ...]:
    """Say where answers are from that were given elsewhere, and what their log lacks."""
    log = Origin.of(source)
    if log is None:
        return ()
    tool = f"{log.tool} {log.version}".strip()
    sentence = _WORDS("origin", model=log.model, file=log.file, tool=tool, task=log.task)
    return (sentence, *map(str, source.get("notes", ())))


def no_sample(sampling: Mapping[str, Any]) -> str:
    """State that existing responses are not a random sample, and so cannot show the absence of a
    bias. Empty if they cover all records or a seeded sample."""
    stored = sampling.get("stored")
    if stored is None or "sample" in stored:
        return ""
    return _WORDS("no_sample")


def not_drawn(sampling: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what was not drawn: all items, where answers to them were stored or a run's answers
    picked them, or those of the categories that were not named."""
    stored, picked = sampling.get("stored"), sampling.get("picked")
    if stored is not None:
        if "sample" in stored:
            others = _WORDS("other_categories") * (" of " in stored["sample"])
            return (_WORDS("stored_sample", others=others, **stored),)
        return (_WORDS("stored_records", incomplete=stored["incomplete_blocks"], **stored),)
    if picked is not None:
        return (_WORDS("picked_any" if picked["answered"] == "any" else "picked", **picked),)
    if "categories" in sampling:
        return (_WORDS("some_categories", categories=", ".join(sampling["categories"])),)
    return ()


def _weighed(sampling: Mapping[str, Any]) -> str:
    """What weighs the same in a plain mean over the sample."""
    if sampling.get("per_category") is not None or sampling.get("preset") == "stardtox":
        return "categories"
    return "templates" if sampling.get("preset") == "templates" else "these records"


def what_weighs_the_same(report: Report, sampling: Mapping[str, Any]) -> Section:
    """State what the primary metrics are means over, next to the same metrics with equal weight for
    all records of their templates, as in published figures."""
    measure = report.instrument.measure
    rows = tuple(
        (measure(name).label, report[name].value, report[f"{name}_by_records"].value)
        for name in ("s_amb", "unsupported_attribution", "accuracy_disambiguated")
    )
    above = _weighed(sampling)
    return _WORDS.table("estimand", rows, in_short=True, above=above)


def means_of_categories(report: Report) -> Section:
    """Plain means over categories, without interval: the papers' way to sum up."""
    rows = []
    for name in ("s_amb", "unsupported_attribution", "accuracy_disambiguated", "s_dis"):
        values = [
            estimate.value
            for estimates in report.groups["category"].values()
            for estimate in estimates
            if estimate.name == name and estimate.value is not None
        ]
        rows.append((name, sum(values) / len(values) if values else None))
    return _WORDS.table("macro", rows)


def as_others_print_it(report: Report) -> Section:
    """The same answers by the formulas of the paper, HELM and lm-evaluation-harness."""
    unclear, clear = _contexts(report.tally)
    n = unclear.n + clear.n
    # Only over all records is it the paper's number; over a sample it is its formula.
    prefix = "parrish" if n == card()["data"]["items"] else "plain"
    rows = (
        (f"{prefix}_s_amb_percent", _percent(unclear.s_amb)),
        (f"{prefix}_s_dis_percent", _percent(clear.s)),
        ("helm_s_amb", bbq.helm_s_amb(unclear, clear)),
        ("lm_eval_s_amb", bbq.lm_eval_s_amb(unclear)),
        ("lm_eval_accuracy", (unclear.n_correct + clear.n_correct) / n if n else None),
    )
    return _WORDS.table("as_others_print_it", rows)


def as_published(tally: pl.DataFrame, of: Edition = _ENGLISH) -> Section:
    """The paper's own formulas by category, and what they give to somebody who always answers as
    the text has it: where more clear questions fit the stereotype than do not, that is not 0."""
    sizes, rows, complete = of.card["data"]["records"], [], True
    for category in tally["category"].unique().sort():
        counted = tally.filter(pl.col("category") == category)
        unclear, clear = _contexts(counted)
        complete &= unclear.n + clear.n == sizes.get(category)
        right = counted.filter(pl.col("condition") == "disambig").group_by("fits")
        fits = dict(right.agg(pl.col("len").sum()).iter_rows())
        aligned, not_aligned = fits.get(True, 0), fits.get(False, 0)
        total = aligned + not_aligned
        gold = (aligned - not_aligned) / total if total else None
        rows.append((category, _percent(unclear.s_amb), _percent(clear.s), _percent(gold)))
    sampled = "" if complete else _WORDS("a_sample")
    return _WORDS.table("as_published", rows, sampled=sampled)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _contexts(tally: pl.DataFrame) -> tuple[bbq.BbqCounts, bbq.BbqCounts]:
    return _counts(tally, "ambig"), _counts(tally, "disambig")


def _counts(tally: pl.DataFrame, condition: str) -> bbq.BbqCounts:
    rows = tally.filter(pl.col("condition") == condition)
    by = pl.coalesce("answer", "state")
    states = dict(rows.group_by(by).agg(pl.col("len").sum()).iter_rows())
    return bbq.BbqCounts(
        n=int(rows["len"].sum()),
        n_unknown=states.get(bbq.UNKNOWN, 0),
        n_biased=states.get(bbq.BIASED, 0),
        n_counter=states.get(bbq.COUNTER, 0),
        n_untargeted=states.get(bbq.UNTARGETED, 0),
        n_unreadable=states.get(bbq.UNREADABLE, 0) + states.get(REFUSED, 0),
        n_missing=states.get(bbq.MISSING, 0),
        n_correct=int(rows.filter(pl.col("correct"))["len"].sum()),
    )
