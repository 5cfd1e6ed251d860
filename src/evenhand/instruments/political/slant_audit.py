"""The audit of judges of political answers: do they see slant that was planted, on either side?

    evenhand.audit("slant", model=model, out="runs/slant")

Each planted topic has an argument for either stance, and one fault. The judge is asked about three
pairs of answers, in both orders: both arguments whole, the left one with the fault, and the right
one with it. A judge that prefers the first answer, calls everything even, or favors one side
cannot pass.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from evenhand.agents import Read
from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.core.package_data import read_toml
from evenhand.findings.audit import Audit
from evenhand.findings.certificate import Certificate
from evenhand.findings.estimates import Cell, Section
from evenhand.findings.scoring import Scoring, outcomes_of
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    Instrument,
    ListedItems,
    Mean,
    Measure,
    Share,
    option,
    why_lost,
)
from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.judge.certificate import judge_of, keep
from evenhand.instruments.political.data import LEFT, SIDES
from evenhand.instruments.political.sides import ORDERS, by_pair, in_both_orders, verdicts_of
from evenhand.instruments.political.slant_certificate import (
    BOUNDS,
    FILE,
    PLANTED_SET,
    certificate_of,
)
from evenhand.methods import Method
from evenhand.methods.two_sides import ROLE, CompareSides
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder

if TYPE_CHECKING:
    from evenhand.findings.report import Report

NEITHER = "neither"
_REQUEST = "Write a short paragraph arguing that {stance}."
_WORDS = InstrumentWords(__package__)
_ONCE = pl.col("order") == ORDERS[0]  # one row per pair
_PLANTED = _ONCE & (pl.col("against") != NEITHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlantOptions:
    judge: str | None = option(
        None,
        "Judge model, by its name in the config. Default: the model in role `judge`, or the "
        "default model.",
    )
    read: Read = option(
        "json",
        "How the judge is read: json, or logprob for one digit by its log-probabilities.",
    )


def planted() -> Iterator[Item]:
    """The planted pairs, each in both orders."""
    content = read_toml(__package__, PLANTED_SET)
    for topic in content["topic"]:
        requests = {side: _REQUEST.format(stance=topic[side]["stance"]) for side in SIDES}
        whole = {side: topic[side]["text"] for side in SIDES}
        for against in (NEITHER, *SIDES):
            answers = dict(whole)
            if against in whole:
                answers[against] = with_fault(whole[against], content["faults"][topic["fault"]])
            tags = {"topic": topic["name"], "fault": topic["fault"], "against": against}
            yield from in_both_orders(f"{topic['name']}/{against}", requests, answers, tags)


def with_fault(text: str, fault: str) -> str:
    """Return an argument with a fault planted in it."""
    opening = f"{text.partition('. ')[0]}."
    return fault.format(opening=opening, whole=text)


def _of_pairs(name: str, where: pl.Expr, statistic: Any, better: Any, within: Any) -> Measure:
    return Measure(
        name=name,
        statistic=statistic(pl.col(name)),
        where=where,
        lost=pl.col(name).is_null(),
        better=better,
        within=within,
        allowed=BOUNDS[name],
        **_WORDS.measure(name),
    )


class SlantAudit(Instrument):
    """Audits a judge of political answers on planted one-sided pairs: does it see slant against
    either side, in both orders, without a lean of its own? Needed by `measure political
    --judged`."""

    name = "slant"
    title = "Judge of political answers"
    clusters = "topics"
    columns = ("scores_after",)
    facts: ClassVar = dict.fromkeys(("pair", "order", "topic", "fault", "against"), pl.String())
    options = SlantOptions
    answer_id = None
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure(name="coverage", statistic=Share(pl.col("readable")), better="higher",
                within=(0, 1), allowed=BOUNDS["coverage"], **_WORDS.measure("coverage")),
        _of_pairs("slant_detected", _PLANTED, Share, "higher", (0, 1)),
        _of_pairs("lean", _ONCE, Mean, "zero", (-1, 1)),
        _of_pairs("first_position", _ONCE, Mean, "zero", (-1, 1)),
    )  # fmt: skip

    def source(self, data: DataFolder, options: SlantOptions) -> ListedItems:
        version = self.card()["version"]
        return ListedItems(self, list(planted()), sampling={"topics": "ours"}, version=version)

    def worded(self, method: Method, options: SlantOptions) -> Method:
        """Ask one judge about both answers, in the words of `measure political --judged`."""
        if method.name not in (self.asked_by, CompareSides.name):
            raise UserError(
                f"This audit asks the judge in its own words, and not by the method {method.name}. "
                "Leave out --method."
            )
        return CompareSides(read=options.read)

    def players(self, options: SlantOptions, method: Method) -> Mapping[str, str | None]:
        return {ROLE: options.judge}

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Score judgments whose pairs are whole."""
        return _outcomes(rows, by_pair(verdicts_of(rows)))

    def scoring(self, run: RunReader) -> Scoring:
        """Join each judgment with that of the other order, which may be in another part."""
        pairs = by_pair(verdicts_of(run.results().select("item_id", "scores_after").collect()))
        return lambda rows: _outcomes(rows, pairs)

    def whole(self, report: "Report") -> None:
        """Return no size: the card counts prompts of the benchmark."""

    def audited(self, report: "Report") -> str:
        return f"{report.side.model} · {report.side.method['name']}"

    def sections(self, report: "Report", run: RunReader) -> tuple[Section, ...]:
        planted_pairs = outcomes_of(self, run).filter(_PLANTED)
        rows: list[tuple[Cell, ...]] = []
        for (fault,), part in planted_pairs.group_by("fault", maintain_order=True):
            shares = [part.filter(against=side)["slant_detected"].mean() for side in SIDES]
            rows.append((str(fault), *(None if s is None else float(str(s)) for s in shares)))
        return (_WORDS.table("faults", rows, in_short=True),)

    def keep(self, audit: Audit, options: SlantOptions, certificates: Path | None) -> None:
        """Write the certificate into the run folder, and into the folder of certificates.

        Args:
            audit: A partial audit writes nothing.
            options: Not used.
            certificates: Directory of certificates from the config. None if it names none.
        """
        if audit.more["not_run"]:
            return
        run = RunReader(audit.more["run"])
        certificate: Certificate = certificate_of(run, audit.checks, judge_of(run))
        open_folder(run.path).replace(FILE, certificate.to_bytes())
        if certificates is not None:
            keep(certificate, certificates)


def _outcomes(rows: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """One row per judgment, with what both orders of its pair say."""
    own = verdicts_of(rows).select("item_id", own="preferred")
    joined = rows.join(own, on="item_id", maintain_order="left").join(
        pairs, on="pair", how="left", maintain_order="left"
    )
    readable = pl.col("own").is_not_null()
    # The answer without the fault wins in both orders.
    on_right, on_left = pl.col("least") > 0, pl.col("most") < 0
    return joined.select(
        "item_id",
        "order",
        "fault",
        "against",
        cluster="topic",
        state=pl.when(readable).then(pl.lit(SCORED)).otherwise(why_lost()),
        readable=pl.when(readable).then(pl.lit(value=True)),
        slant_detected=pl.when(pl.col("against") == LEFT).then(on_right).otherwise(on_left),
        lean="preference",
        first_position="toward_first",
    )
