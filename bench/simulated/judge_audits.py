"""How often audits of even-handed judges, harms and their judges are shown to fail, and how often a
planted bias is found: by the checks of every audit, on scripted marks and without a server.

    python -m bench.simulated.judge_audits            # 400 audits without a bias, 200 with one

A judge marks a text by its quality, with noise of its own at each call, rounds to whole points,
prefers the better of two texts or says "tie", and loses replies by chance. It looks at no label
unless a bias is planted. Marks are drawn anew for each audit; the items are those of the design.
"""

import argparse
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.findings.audit import AuditCheck, check_of, checks_of
from evenhand.findings.report import estimates_over_all
from evenhand.findings.scoring import SCORED
from evenhand.findings.totals import RunTotals
from evenhand.instruments.harm.instrument import HarmAudit, paired
from evenhand.instruments.harm.policy import ORDER, PARAPHRASE, PLAIN
from evenhand.instruments.judge.checks import checks
from evenhand.instruments.judge.data import MalibuData
from evenhand.instruments.judge.design import JudgeDesign, MalibuSource, scores_of
from evenhand.instruments.judge.evidence import JudgeEvidence
from evenhand.instruments.judge.instrument import JudgeAudit
from evenhand.instruments.judge.probes import AuditSource, injected
from evenhand.statistics.metrics.malibu import METRICS, TIE, TOP

TWO = ("female", "male")
SMALL = JudgeDesign(bases=24, pairs=24, identities=TWO)
HARMS = HarmAudit()  # with the default bars
_JUDGE = JudgeAudit()  # with the default margins
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Judge:
    """Standard deviations in points of ten; all shares are of replies."""

    spread: float = 1.0  # of the quality of texts
    noise: float = 0.4  # of one call
    ties: float = 0.3  # points below which two texts are a tie
    lost: float = 0.02  # replies that cannot be read
    lost_women: float = 0.0  # and of those on texts by women
    bias: float = 0.0  # points that a text by a woman gets more
    favors_first: float = 0.0  # points that the first of two texts gets more


@cache
def _items() -> pl.DataFrame:
    data = MalibuData()
    scenarios = data.scenarios()
    source = MalibuSource(scenarios, data.labels(), SMALL)
    whole = AuditSource(source, injected(source, scenarios, SMALL.bases), {})
    rows = [{"item_id": item.id, **item.tags} for item in whole.read(0, len(whole))]
    return pl.DataFrame(
        [{k: v or None for k, v in row.items()} for row in rows], infer_schema_length=None
    )


@cache
def _texts() -> tuple[NDArray[np.intp], ...]:
    """The text of each item: as it is marked, as the first of two, as the second; −1 for none."""
    rows = _items()
    names: dict[tuple[str, str], int] = {}
    found = []
    for column in ("text", "first_text", "second_text"):
        found.append([
            -1 if text is None else names.setdefault((scenario, text), len(names))
            for scenario, text in rows.select("scenario", column).iter_rows()
        ])  # fmt: skip
    return tuple(np.array(one) for one in found)


def marks(judge: Judge, rng: np.random.Generator) -> pl.DataFrame:
    """One audit: a row per judgement, as the instrument makes them of a run."""
    rows = _items()
    single, first, second = _texts()
    n = len(rows)
    quality = rng.normal(6.0, judge.spread, 1 + max(one.max() for one in (single, first, second)))
    woman = {name: (rows[name] == "female").fill_null(False).to_numpy() for name in
             ("label", "first", "second")}  # fmt: skip
    by_metric = [
        np.clip(np.rint(quality[single] + rng.normal(0, judge.noise, n)
                        + judge.bias * woman["label"]), 0, TOP) for _ in METRICS
    ]  # fmt: skip
    ahead = (
        quality[first] - quality[second] + rng.normal(0, judge.noise, n) + judge.favors_first
        + judge.bias * (woman["first"].astype(float) - woman["second"])
    )  # fmt: skip
    verdict = np.where(np.abs(ahead) < judge.ties, TIE, (ahead > 0).astype(float))
    is_pair = (rows["phase"] == "pair").to_numpy()
    lost = rng.random(n) < np.where(woman["label"], judge.lost + judge.lost_women, judge.lost)
    said = {
        name: pl.Series(np.where(is_pair | lost, np.nan, values)).fill_nan(None)
        for name, values in zip(METRICS, by_metric, strict=True)
    }
    said["preferred"] = pl.Series(np.where(~is_pair | lost, np.nan, verdict)).fill_nan(None)
    others = [name for name in scores_of(METRICS) if name not in said]
    return rows.with_columns(**said, **{name: pl.lit(None, pl.Float64) for name in others})


def audit(judge: Judge, rng: np.random.Generator) -> tuple[tuple[AuditCheck, ...], float]:
    """The checks of one audit, and the smallest effect of a label that it says it would show."""
    seen = JudgeEvidence(marks(judge, rng), identities=TWO)
    detectable = max(effect.detectable or 0.0 for effect in seen.identity_effects)
    return tuple(check_of(_JUDGE.measure(c.name), c.check(seen)) for c in checks()), detectable


def share_failed(judge: Judge, audits: int, seed: int) -> float:
    """The share of audits that say "shown to fail" of anything."""
    rng = np.random.default_rng(seed)
    return sum(is_failed(audit(judge, rng)[0]) for _ in range(audits)) / audits


def is_failed(found: tuple[AuditCheck, ...]) -> bool:
    return any(check.state == "fail" for check in found)


# -- harms -----------------------------------------------------------------------------------------


def harm_check(
    rng: np.random.Generator, *, errors: float = 0.1, in_a_group: float = 0.0, lost: float = 0.02
) -> tuple[AuditCheck, ...]:
    """The checks of a harm on 60 harmful and 60 benign texts about three groups, some of them near
    copies; errors are the same for all groups but the first, which has so many more alarms."""
    rows = []
    for harm in (True, False):
        for n in range(60):
            group = ("age", "origin", "religion")[n % 3]
            share = errors + in_a_group * (group == "age" and not harm)
            right = rng.random() >= share
            text = str(harm) + "".join(
                "abcdefghij"[int(d)] for d in f"{n - n % 2 if n > 50 else n:03}"
            )
            for part in (PLAIN, ORDER, PARAPHRASE):
                turned = part != PLAIN and rng.random() < 0.05
                flagged: bool | None = harm is (right is not turned)
                flagged = None if rng.random() < lost else flagged
                rows.append((part, f"{harm}{n}", harm, group, text, flagged))
    return _held(rows)


def _held(rows: list[tuple[str, str, bool, str, str, bool | None]]) -> tuple[AuditCheck, ...]:
    """Hold verdicts to the bounds, as the report of a run does."""
    names = ["part", "example", "harm", "group", "text", "flagged"]
    table = pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)
    state = pl.when(pl.col("flagged").is_null()).then(pl.lit("missing")).otherwise(pl.lit(SCORED))
    table = table.with_row_index("item_id").with_columns(state=state)
    totals = RunTotals.of(HARMS, [paired(table)])
    return checks_of(HARMS.measures, estimates_over_all(HARMS, totals))


def share_of_harms_failed(audits: int, seed: int, **settings: float) -> float:
    rng = np.random.default_rng(seed)
    return sum(is_failed(harm_check(rng, **settings)) for _ in range(audits)) / audits


def figures(*, short: bool) -> dict[str, float]:
    """Shares of audits that are shown to fail, by what is planted."""
    null, planted = (100, 50) if short else (400, 200)
    usual = Judge()
    rng = np.random.default_rng(1)
    bias = 2 * float(np.mean([audit(usual, rng)[1] for _ in range(5)]))
    return {
        "null": share_failed(usual, null, 2),
        "null_noisy": share_failed(replace(usual, noise=1.0, ties=0.0, lost=0.0), null, 3),
        "null_many_missing": share_failed(replace(usual, lost=0.3), null, 4),
        "planted_points": bias,
        "found": share_failed(replace(usual, bias=bias), planted, 5),
        "harm_null": share_of_harms_failed(null, 6),
        "harm_null_missing": share_of_harms_failed(null, 7, lost=0.5),
        "harm_found": share_of_harms_failed(planted, 8, in_a_group=0.6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--short", action="store_true", help="fewer audits")
    for name, value in figures(short=parser.parse_args().short).items():
        print(f"{name:20} {value:.3f}")


if __name__ == "__main__":
    main()
