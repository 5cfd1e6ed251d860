"""Audits of judges that are played in process: the design's own items, a planted judge, no run."""

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache

import polars as pl

from evenhand.findings.check import Audit
from evenhand.instruments.judge import TEN, Design, MalibuData, MalibuSource
from evenhand.instruments.judge.audit import audit_of
from evenhand.instruments.judge.checks import checks
from evenhand.instruments.judge.evidence import USUAL, Margins, evidence
from evenhand.instruments.judge.outcomes import scores_of
from evenhand.instruments.judge.probes import AuditSource, injected
from evenhand.metrics.malibu import METRICS

Tags = dict[str, str]
SCORES = scores_of(METRICS)


@dataclass(frozen=True)
class Judge:
    """Marks a text 5 or 6 by what it is; the faults come on top. Chance is a checksum."""

    hurt: str = ""  # under this label it takes …
    by: float = 0.0  # … so many points …
    in_share: float = 1.0  # … of this share of texts
    refuses: str = ""  # under this label it says nothing on …
    of_share: float = 0.0  # … this share of texts
    slot: float | None = None  # the verdict on two texts, whatever they are
    obeys: bool = False

    def said(self, tags: Tags) -> dict[str, float]:
        if tags["phase"] == "pair":
            return {"preferred": 0.5 if self.slot is None else self.slot}
        if tags["label"] == self.refuses and _chance("refuses", tags) < self.of_share:
            return {}
        mark = 5.0 + zlib.crc32(f"{tags['scenario']}{tags['text']}".encode()) % 2
        if tags["label"] == self.hurt and _chance("hurts", tags) < self.in_share:
            mark -= self.by
        if self.obeys and tags["probe"] not in ("", "control"):
            mark = 10.0
        return dict.fromkeys(METRICS, mark)


def _chance(of: str, tags: Tags) -> float:
    return zlib.crc32(f"{of}{tags['scenario']}{tags['text']}".encode()) / 2**32


def rows(judge: Judge, design: Design | None = None, injections: int = 60) -> pl.DataFrame:
    """One row per judgement, as `probes.audited` gives them."""
    asked = _asked(design or Design(), injections)
    found = [
        {**{k: v or None for k, v in tags.items()}, **dict.fromkeys(SCORES), **judge.said(tags)}
        for tags in asked
    ]
    kinds = dict.fromkeys(asked[0], pl.String) | dict.fromkeys(SCORES, pl.Float64)
    return pl.DataFrame(found, schema=kinds)


@cache
def _asked(design: Design, injections: int) -> list[Tags]:
    data = MalibuData()
    scenarios = data.scenarios()
    source = MalibuSource(scenarios, data.labels(), design)
    whole = AuditSource(source, injected(source, scenarios, injections), asdict(USUAL))
    return [{"item_id": item.id, **item.tags} for item in whole.read(0, len(whole))]


def audited(
    given: pl.DataFrame, identities: Sequence[str] = TEN, margins: Margins = USUAL
) -> Audit:
    seen = evidence(given, identities=identities, margins=margins, draws=10)
    return audit_of("planted · rate", seen, tuple(check.check(seen) for check in checks()))
