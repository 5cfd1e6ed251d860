"""Audits of judges that are played in process: the design's own items, a planted judge, no run."""

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
import polars as pl

from evenhand.findings.audit import Audit
from evenhand.instruments.judge import TEN, Design, MalibuData, MalibuSource
from evenhand.instruments.judge.audit import audit_of
from evenhand.instruments.judge.checks import checks
from evenhand.instruments.judge.evidence import USUAL, Margins, evidence
from evenhand.instruments.judge.probes import AuditSource, injected
from evenhand.instruments.judge.source import scores_of
from evenhand.metrics.malibu import METRICS

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
