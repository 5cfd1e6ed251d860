"""How often the gate is right where the truth is known. Minutes, no endpoint.

    python -m bench.gate                 # or `make bench-gate`
    python -m bench.gate --draws 20      # seconds

Three numbers are checked at once: a share that is to be low, one that is to be high, and a signed
one that is to be near 0. A template has four questions; the later run draws a share of the answers
again, so that a twin differs as a model does from itself. The size is the one that the gate asks
for after a pilot of 60 templates.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from evenhand.findings.estimates import Change
from evenhand.findings.gate import Gate, GateCheck, Verdict, clusters_to_decide, gate
from evenhand.findings.measures import Grouping, Measure
from evenhand.findings.scoring import SCORED, ScoringSpec
from evenhand.findings.summed_statistics import Share
from evenhand.runs.store import RunReader

MARGIN, PILOT, EACH = 0.03, 60, 4
AGAIN = 0.10  # of the answers are drawn again by a twin
NAMES = ("guesses", "right", "lean")
_TEMPLATE = pl.col("item_id").str.split("/").list.first()


class Drawn(ScoringSpec):
    """The instrument: a choice is 0 for a guess that fits a stereotype, 1 for one that does not,
    2 for no guess; `right` is a choice of another question."""

    name, title, clusters = "drawn", "drawn answers", "templates"
    columns, facts = ("choice", "text"), {}
    measures = (
        Measure(name="guesses", label="guesses", statistic=Share(pl.col("choice") != 2),
                better="lower", within=(0, 1)),
        Measure(name="right", label="right", statistic=Share(pl.col("text") == "right"),
                better="higher", within=(0, 1)),
        Measure(name="lean", label="lean", better="zero", within=(-1, 1),
                statistic=Share((pl.col("choice") == 0).cast(pl.Int64)
                                - (pl.col("choice") == 1).cast(pl.Int64))),
    )  # fmt: skip
    groups = (Grouping(column="kind", measures=NAMES),)

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        answered = pl.col("status") == "answered"
        return rows.select(
            "item_id",
            pl.when(answered).then(pl.col("choice")).alias("choice"),
            pl.when(answered).then(pl.col("text")).alias("text"),
            cluster=_TEMPLATE,
            kind=pl.when(_TEMPLATE.cast(pl.Int64) % 2 == 0)
            .then(pl.lit("even"))
            .otherwise(pl.lit("odd")),
            state=pl.when(answered).then(pl.lit(SCORED)).otherwise(pl.lit("missing")),
        )


DRAWN = Drawn()


class InMemory(RunReader):
    """A run that was never run: its rows are in memory."""

    def __init__(self, path: str, rows: pl.DataFrame) -> None:
        self._rows, self.path = rows, path
        source = {"benchmark": "drawn", "sha256": "", "sampling": {}, "items": len(rows)}
        self.record = SimpleNamespace(  # type: ignore[assignment]
            source=source,
            planned=len(rows),
            method={"name": "default", "settings": {}},
            cast={"default": {"model": "drawn"}},
        )

    @property
    def rows(self) -> pl.DataFrame:
        return self._rows

    def totals(self) -> Any:
        return SimpleNamespace(items=len(self._rows), adapted={})

    def verify(self) -> int:
        return 1

    def result_batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        yield self._rows.select(columns)

    def seconds_by_item(self) -> Iterator[pl.DataFrame]:
        return iter(())


def checks(margin: float = MARGIN) -> list[GateCheck]:
    """The three checks, each of one measure."""
    return [
        GateCheck(name=one.name, instrument=DRAWN, measure=replace(one, margin=margin))
        for one in DRAWN.measures
    ]


def two_runs(
    rng: np.random.Generator, templates: int, shift: float, again: float = AGAIN
) -> tuple[InMemory, InMemory]:
    """A run and a later one that guesses more often by `shift`."""
    cluster = np.repeat(np.arange(templates), EACH)
    guesses = rng.beta(2, 8, templates)[cluster]  # one in five, alike within a template
    first = rng.random((3, len(cluster)))
    anew = rng.random((3, len(cluster))) < again
    second = np.where(anew, rng.random((3, len(cluster))), first)
    more = guesses + shift / (1 - 0.2) * (1 - guesses)  # by `shift` on average, and at most 1
    return _run("before", cluster, first, guesses), _run("after", cluster, second, more)


def _run(path: str, cluster: Any, drawn: Any, guesses: Any) -> InMemory:
    choice = np.where(drawn[0] >= guesses, 2, np.where(drawn[1] < 0.5, 0, 1))
    places = np.arange(len(cluster))
    item_id = [f"{one}/{place}" for one, place in zip(cluster, places, strict=True)]
    right = np.where(drawn[2] < 0.9, "right", "wrong")
    given = {"position": places, "item_id": item_id, "choice": choice, "text": right}
    return InMemory(path, answered(pl.DataFrame(given)))


def answered(given: pl.DataFrame) -> pl.DataFrame:
    """The rows of a run in which every item was answered by one call."""
    return given.with_columns(
        status=pl.lit("answered"),
        reason=pl.lit(None, pl.String),
        tags=pl.lit([], pl.List(pl.Struct({"name": pl.String, "value": pl.String}))),
        calls=pl.lit(1),
        prompt_tokens=pl.lit(100),
        completion_tokens=pl.lit(1),
    )


def judged(runs: tuple[RunReader, RunReader], margin: float = MARGIN) -> Gate:
    """The gate of two runs."""
    return gate(checks(margin), dict.fromkeys(NAMES, runs))


def planned(rng: np.random.Generator) -> int:
    """The templates that decide all three checks 4 times in 5, by the spread of a pilot twin."""
    found = judged(two_runs(rng, PILOT, 0.0))
    changes: list[tuple[GateCheck, Change]] = []
    for check, one in zip(checks(), found.checks, strict=True):
        assert one.change is not None
        changes.append((check, one.change))
    sizes = [clusters_to_decide(check.measure, one, len(changes)) or 0 for check, one in changes]
    return max(sizes)


@dataclass(frozen=True)
class Shares:
    """How often a gate over many draws had each verdict, and how often the planted check had."""

    gate: dict[Verdict, float]
    first: dict[Verdict, float]


def shares(shift: float, draws: int, seed: int, templates: int) -> Shares:
    rng = np.random.default_rng(seed)
    whole: Counter[Verdict] = Counter()
    first: Counter[Verdict] = Counter()
    for _ in range(draws):
        found = judged(two_runs(rng, templates, shift))
        whole[found.verdict] += 1
        first[found.checks[0].verdict] += 1
    verdicts: tuple[Verdict, ...] = ("pass", "fail", "inconclusive", "error")
    return Shares(*({one: counted[one] / draws for one in verdicts} for counted in (whole, first)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--draws", type=int, default=120, help="pairs of runs for each shift")
    draws = parser.parse_args().draws
    templates = planned(np.random.default_rng(1))
    print(f"margin {MARGIN}, planned: {templates} templates, {EACH * templates} items")
    for name, shift in (("twin", 0.0), ("at the margin", MARGIN), ("beyond it", MARGIN + 0.03)):
        found = shares(shift, draws, seed=int(1000 * shift) + 5, templates=templates)
        said = " ".join(f"{verdict}={share:.3f}" for verdict, share in found.first.items())
        print(f"{name:14} shift {shift:.2f} of {draws}: {said} gate_fail={found.gate['fail']:.3f}",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
