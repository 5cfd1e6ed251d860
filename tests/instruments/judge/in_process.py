"""Audits of judges that are played in process: the design's own items, a planted judge, no run."""

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
import polars as pl

from evenhand.findings.audit import Audit, checks_of, overall
from evenhand.findings.report import estimates_over_all
from evenhand.findings.totals import RunTotals
from evenhand.instruments.judge.data import MalibuData
from evenhand.instruments.judge.design import TAGS, TEN, JudgeDesign, MalibuSource, scores_of
from evenhand.instruments.judge.evidence import USUAL, JudgeEvidence, Margins
from evenhand.instruments.judge.instrument import JudgeAudit
from evenhand.instruments.judge.measures import judged, measures
from evenhand.instruments.judge.probes import AuditSource, injected
from evenhand.instruments.judge.tables import notes, sections
from evenhand.statistics.metrics import malibu
from evenhand.statistics.metrics.malibu import METRICS

Tags = dict[str, str]
SCORES = scores_of(METRICS)


@dataclass(frozen=True)
class Judge:
    """Marks a text 5 or 6 by what it is, and prefers that of two with more marks; the faults come
    on top. Chance is a checksum."""

    hurt: str = ""  # under this label it takes …
    by: float = 0.0  # … so many points …
    in_share: float = 1.0  # … of this share of texts
    refuses: str = ""  # under this label it says nothing on …
    of_share: float = 0.0  # … this share of texts
    slot: float | None = None  # the verdict on two texts, whatever they are
    apart: float = 1.0  # how many points the better texts have more …
    better: float = 0.5  # … and their share
    obeys: bool = False

    def said(self, tags: Tags) -> dict[str, float]:
        if tags["phase"] == "pair":
            first, second = (self._mark(tags, tags[f"{slot}_text"]) for slot in ("first", "second"))
            return {
                "preferred": (1 + np.sign(first - second)) / 2 if self.slot is None else self.slot
            }
        if tags["label"] == self.refuses and _chance("refuses", tags) < self.of_share:
            return {}
        mark = self._mark(tags, tags["text"])
        if tags["label"] == self.hurt and _chance("hurts", tags) < self.in_share:
            mark -= self.by
        if self.obeys and tags["probe"] not in ("", "control"):
            mark = 10.0
        return dict.fromkeys(METRICS, mark)

    def _mark(self, tags: Tags, text: str) -> float:
        share = zlib.crc32(f"{tags['scenario']}{text}".encode()) % 1_000 / 1_000
        return 5.0 + self.apart * (share < self.better)


def _chance(of: str, tags: Tags) -> float:
    return zlib.crc32(f"{of}{tags['scenario']}{tags['text']}".encode()) / 2**32


def rows(judge: Judge, design: JudgeDesign | None = None, injections: int = 60) -> pl.DataFrame:
    """One row per judgement, as the instrument makes them of a run."""
    asked = _asked(design or JudgeDesign(), injections)
    found = [
        {**{k: v or None for k, v in tags.items()}, **dict.fromkeys(SCORES), **judge.said(tags)}
        for tags in asked
    ]
    kinds = dict.fromkeys(asked[0], pl.String) | dict.fromkeys(SCORES, pl.Float64)
    return pl.DataFrame(found, schema=kinds)


@cache
def _asked(design: JudgeDesign, injections: int) -> list[Tags]:
    data = MalibuData()
    scenarios = data.scenarios()
    source = MalibuSource(scenarios, data.labels(), design)
    whole = AuditSource(source, injected(source, scenarios, injections), asdict(USUAL))
    return [{"item_id": item.id, **item.tags} for item in whole.read(0, len(whole))]


def audited(
    given: pl.DataFrame,
    identities: Sequence[str] = TEN,
    margins: Margins = USUAL,
    draws: int = 10,
) -> Audit:
    """The audit of judgements, by the measures of a run."""
    seen = JudgeEvidence(given, identities=identities, margins=margins, draws=draws)
    instrument = JudgeAudit()
    metrics = malibu.metrics_of(given)
    vars(instrument)["measures"] = measures(margins, identities, metrics)
    defaults = {name: pl.lit(None, pl.String) for name in TAGS if name not in given.columns}
    given = given.with_columns(
        **defaults, position=pl.int_range(pl.len()), cluster="base",
        item_id=pl.int_range(pl.len()).cast(pl.String),
        state=pl.lit("scored"),
    )  # fmt: skip
    lacking = [name for name in scores_of(metrics) if name not in given.columns]
    given = given.with_columns(pl.lit(None, pl.Float64).alias(name) for name in lacking)
    totals = RunTotals.of(instrument, [judged(given, metrics)])
    estimates = estimates_over_all(instrument, totals)
    found = checks_of(instrument.measures, estimates)
    failed = {check.name for check in found if check.state == "fail"}
    return Audit(
        kind="judge", title="planted · rate", facts=(), checks=found, state=overall(found),
        coverage=seen.coverage.all, notes=tuple(notes(seen, failed)), sections=sections(seen),
        more=seen.to_dict(),
    )  # fmt: skip
