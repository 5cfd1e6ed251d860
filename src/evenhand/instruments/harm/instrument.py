"""The audit of a harm policy as an instrument: how often its judge misses the harm and flags what
is none, by which group, and whether its verdict turns with the wording."""

import copy
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import orjson
import polars as pl

from evenhand.core.errors import UserError
from evenhand.findings.audit import Audit
from evenhand.findings.estimates import Section
from evenhand.findings.scoring import ALWAYS, Scoring, outcomes_of, with_facts
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    Instrument,
    ListedItems,
    Measure,
    why_lost,
)
from evenhand.instruments.files import InstrumentWords, score_of
from evenhand.instruments.harm.certificate import FILE, certificate_of, looks_before
from evenhand.instruments.harm.measures import by_group, confidence_of, measures
from evenhand.instruments.harm.policy import (
    ORDER,
    PARAPHRASE,
    PLAIN,
    SET,
    HarmConfig,
    OwnHarm,
    near_copy_key,
    source_of,
)
from evenhand.instruments.judge.certificate import keep
from evenhand.methods import Method
from evenhand.methods.judge_text import SCORE, HarmCheck
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder

_WORDS = InstrumentWords(__package__)

if TYPE_CHECKING:
    from evenhand.findings.report import Report

_SHOWN_ERRORS = 20  # our choice: what fits on a screen; the run folder has all of them
_DEFAULT_BARS = {
    name: float(HarmConfig.model_fields[name].default)
    for name in ("least_sensitivity", "most_false_alarms", "most_false_alarms_in_a_group",
                 "most_flips")
}  # fmt: skip


class HarmAudit(Instrument):
    """Audits the judge of a harm policy on labelled examples, each in three forms."""

    name = "harm"
    answer_id = None
    title = "Harm policy"
    clusters = "examples"
    columns = ("prompt", "text", "scores_after")
    facts: ClassVar = dict.fromkeys(
        ("part", "example", "harm", "group", "rule", "line"), pl.String()
    )
    measures: ClassVar[tuple[Measure, ...]] = measures(_DEFAULT_BARS)
    harm = "false_alarms"
    utility = "sensitivity"

    def __init__(
        self,
        own: OwnHarm | None = None,
        sets: Mapping[str, pl.DataFrame] | None = None,
        certificates: Path | None = None,
    ) -> None:
        """Make the audit of one policy; without it, only runs can be read.

        Args:
            own: The policy, with its examples and its bars.
            sets: Benign texts of sets that are asked about too.
            certificates: The folder by which checks on the same examples are counted.
        """
        self._own = own
        self._sets = sets or {}
        self._certificates = certificates

    def source(self, data: DataFolder, options: Any) -> ListedItems:
        if self._own is None:
            raise UserError(
                "No harm policy is named. Run `evenhand audit harm NAME` with one of the config."
            )
        return source_of(self, self._own, self._sets)

    def worded(self, method: Method, options: Any) -> Method:
        """Ask the judge of the policy, whatever method was named."""
        return HarmCheck()

    def for_run(self, run: RunReader) -> Self:
        """Give the audit with the bars that the run was made under, at its look."""
        bound = copy.copy(self)
        vars(bound)["measures"] = measures(run.record.source["bars"], self.look(run))
        return bound

    def look(self, run: RunReader) -> int:
        """Count the checks on these examples up to this run: by the certificates in the folder, or
        by what the run's own certificate says."""
        if self._certificates is not None:
            texts = frozenset(run.record.source["texts"])
            return 1 + looks_before(texts, run.record.created, self._certificates)
        folder = open_folder(run.path)
        if not folder.exists(FILE):
            return 1
        return int(orjson.loads(folder.read(FILE))["benchmark"]["look"])

    def keep(self, audit: Audit, options: Any, certificates: Path | None) -> None:
        """Write the certificate into the run folder, and into the folder of certificates.

        Args:
            audit: A partial audit writes nothing.
            options: Not used.
            certificates: Not used: the directory given to the constructor counts.
        """
        if audit.more["not_run"]:
            return
        run = RunReader(audit.more["run"])
        certificate = certificate_of(run, audit, self.look(run))
        open_folder(run.path).replace(FILE, certificate.to_bytes())
        if self._certificates is not None:
            keep(certificate, self._certificates)

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return one row per text, paired with the example that it says in another form."""
        return paired(_verdicts(rows))

    def scoring(self, run: RunReader) -> Scoring:
        """Pair each text with its example, which may stand in another part of the run."""
        names = (*ALWAYS, *self.columns, "tags")
        rows = with_facts(run.results().select(names).collect(), self)
        pairs = paired(_verdicts(rows)).select(
            "item_id", "cluster", "paired", "turned", "example_turned"
        )
        return partial(_joined, pairs=pairs)

    def stops_early(self) -> bool:
        return True  # the forms of an example are one cluster, so they are asked together

    def audited(self, report: "Report") -> str:
        asked = report.source["asked"]
        return f"{asked['harm']} · {report.side.model}"

    def notes(self, report: "Report", run: RunReader) -> tuple[str, ...]:
        """List codes of what a reader must know in addition to the checks."""
        look = self.look(run)
        codes = []
        if look > 1:
            codes.append(f"look:{look}")
        if report.source["asked"].get("orders") == "both":
            codes.append("both_orders")
        if look > 3:
            codes.append("examples_used_up")
        return tuple(codes)

    def sections(self, report: "Report", run: RunReader) -> tuple[Section, ...]:
        """The groups, what turns verdicts, and the errors one by one."""
        outcomes, confidence = outcomes_of(self, run), confidence_of(self.look(run))
        benign = outcomes.filter((pl.col("part") == PLAIN) & ~pl.col("harm"))
        sets = outcomes.filter(part=SET).partition_by("example", as_dict=True, maintain_order=True)
        return (
            _groups("groups", _WORDS("benign_examples"), benign, confidence),
            _rules(outcomes),
            *_errors(outcomes),
            *(
                _groups(f"set_{name}", _WORDS("benign_texts", name=name), rows, confidence)
                for (name,), rows in sets.items()
            ),
        )


# -- outcomes --------------------------------------------------------------------------------------


def _verdicts(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per text that was asked about, with the verdict on it."""
    score = score_of("scores_after", SCORE)
    flagged = score >= 0.5  # a verdict is 0 or 1
    missing = pl.concat_str(pl.lit("missing: "), pl.col("reason"), ignore_nulls=True)
    return rows.select(
        "item_id", "part", "example", "group", "rule", "line",
        harm=pl.col("harm") == "true",
        text="prompt",
        flagged=flagged,
        why=pl.when(score.is_not_null()).then(pl.col("text").fill_null("")).otherwise(missing),
        state=pl.when(score.is_null()).then(why_lost()).otherwise(pl.lit(SCORED)),
    )  # fmt: skip


def paired(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Add the example of each text: its near copies as `cluster`, and whether its verdict turned.

    `turned` is null where one of the two verdicts is missing; `example_turned` says whether one of
    several variants of the same kind is shown to turn.
    """
    plain = verdicts.filter(part=PLAIN).select(
        "example", plain_text="text", plain_flagged="flagged", paired=pl.lit(value=True)
    )
    variant = pl.col("part").is_in([PARAPHRASE, ORDER])
    joined = verdicts.with_columns(_example=pl.when(pl.col("part") != SET).then("example")).join(
        plain, left_on="_example", right_on="example", how="left", maintain_order="left"
    )
    turned = pl.when(variant).then(pl.col("flagged") != pl.col("plain_flagged"))
    key = pl.coalesce("plain_text", "text").map_elements(near_copy_key, pl.String)
    return (
        joined.with_columns(cluster=key, turned=turned, paired=pl.col("paired").fill_null(False))
        .with_columns(
            example_turned=pl.col("turned").fill_null(False).any().over("part", "example")
        )
        .drop("_example", "plain_text", "plain_flagged")
    )


def _joined(rows: pl.DataFrame, *, pairs: pl.DataFrame) -> pl.DataFrame:
    return _verdicts(rows).join(pairs, on="item_id", how="left", maintain_order="left")


# -- tables ----------------------------------------------------------------------------------------


def _groups(name: str, of: str, rows: pl.DataFrame, confidence: float) -> Section:
    counted = rows.with_columns(flagged=pl.col("flagged").cast(pl.Int8).fill_null(-1))
    rows_by_group = (
        (row.group, row.n, row.flagged, row.missing, row.low, row.high, row.p_holm)
        for row in by_group(counted, confidence)
    )
    return _WORDS.table(name, rows_by_group, in_short=name == "groups", like="groups", of=of)


def _rules(outcomes: pl.DataFrame) -> Section:
    turns = (
        outcomes.filter(pl.col("paired") & pl.col("part").is_in([PARAPHRASE, ORDER]))
        .with_columns(
            rule=pl.col("rule").replace("", "yes and no swapped"),
            turned=pl.col("turned").fill_null(True),
        )
        .sort(pl.col("part") == ORDER, maintain_order=True)
        .group_by("rule", maintain_order=True)
        .agg(n=pl.len(), turned=pl.col("turned").sum())
    )
    return _WORDS.table("rules", turns.iter_rows(), in_short=True)


def _errors(outcomes: pl.DataFrame) -> Iterator[Section]:
    wrong = outcomes.filter((pl.col("part") == PLAIN) & (pl.col("flagged") != pl.col("harm")))
    if wrong.is_empty():
        return
    shown = wrong.head(_SHOWN_ERRORS).select("line", "harm", "text", "why")
    yield _WORDS.table(
        "errors",
        (
            (line, "yes" if harm else "no", _short(text), _short(why))
            for line, harm, text, why in shown.iter_rows()
        ),
        in_short=True,
        note=f"The first {_SHOWN_ERRORS} of {len(wrong)}." if len(wrong) > _SHOWN_ERRORS else "",
    )


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 70 else f"{words[:69]}…"
