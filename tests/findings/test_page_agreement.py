"""Outcome, test and printed interval agree: on random pages, and on pages of all recorded runs."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from bench.simulated.page_agreement import counted, disagreements, random_page
from evenhand.core import registry
from evenhand.core.errors import EvenhandError
from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.gate import GateCheck, gate
from evenhand.findings.report import Report, report
from evenhand.findings.scoring import ScoringSpec
from evenhand.instruments import instrument_named
from evenhand.runs.store import RunReader

_Kind = TypeVar("_Kind")
ROOT = Path(__file__).parents[2]
PAGES = 200
_GATED = 0.02  # the margin of a check where a measure declares none


def _recorded() -> dict[tuple[str, str], list[Path]]:
    """Give the folders of recorded runs over the same items, by instrument and sample."""
    found: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for place in (ROOT / "recorded", ROOT / "tests/same_numbers/kept"):
        for file in sorted(place.rglob("run.json")):
            source = RunReader(file.parent).record.source
            if source.get("benchmark") in registry.OWN["instruments"]:
                found[source["benchmark"], str(source.get("sha256"))].append(file.parent)
    return found


RECORDED = _recorded()
_RUNS = [(name, folder) for (name, _), folders in RECORDED.items() for folder in folders]
_PAIRS = [(name, folders[0], other) for (name, _), folders in RECORDED.items()
          for other in folders[1:]]  # fmt: skip


def test_random_pages_agree() -> None:
    told: list[str] = []
    assert counted(PAGES, 1, told.append) == 0, told


@pytest.mark.parametrize(("name", "folder"), _RUNS, ids=lambda one: str(one)[-40:])
def test_the_report_of_a_recorded_run_agrees(name: str, folder: Path) -> None:
    try:
        page = report(instrument_named(name), RunReader(folder))
    except EvenhandError as refused:
        pytest.skip(str(refused))
    assert list(disagreements(page)) == []


@pytest.mark.parametrize(("name", "before", "after"), _PAIRS, ids=lambda one: str(one)[-40:])
def test_the_comparison_and_the_gate_of_two_recorded_runs_agree(
    name: str, before: Path, after: Path
) -> None:
    runs = RunReader(before), RunReader(after)
    try:
        page = compare(instrument_named(name), *runs)
    except EvenhandError as refused:
        pytest.skip(str(refused))
    assert list(disagreements(page)) == []
    checks = list(_checks(instrument_named(name)))
    found = gate(checks, dict.fromkeys((one.name for one in checks), runs))
    assert list(disagreements(found)) == []


def _checks(instrument: ScoringSpec) -> Iterator[GateCheck]:
    for measure in instrument.primary():
        margin = _GATED if measure.margin is None else measure.margin
        yield GateCheck(name=measure.name, instrument=instrument,
                        measure=replace(measure, margin=margin))  # fmt: skip


def test_an_interval_that_holds_no_bias_beside_a_claim_is_named() -> None:
    page = next(
        p for p in _pages(Report) if p.verdict.state == "detected" and p.estimates[0].p_holm
    )
    first = page.estimates[0]
    null = page.instrument.measure(first.name).null
    assert null is not None
    wide = replace(first, low=null - 0.1, high=null + 0.1, p_holm=0.01)
    assert list(disagreements(replace(page, estimates=(wide, *page.estimates[1:]))))
    bare = replace(first, p_holm=0.01, low=None, high=None)
    assert list(disagreements(replace(page, estimates=(bare, *page.estimates[1:]))))
    other = replace(page.verdict, state="inconclusive")
    assert list(disagreements(replace(page, verdict=other)))


def test_a_change_that_is_called_worse_beside_an_interval_that_holds_0_is_named() -> None:
    page = next(p for p in _pages(Comparison) if p.primary[0].interval)
    wide = replace(page.primary[0], p_holm=0.01, low_adjusted=-0.1, high_adjusted=0.1)
    assert list(disagreements(replace(page, primary=(wide, *page.primary[1:]))))


def _pages(kind: type[_Kind]) -> Iterator[_Kind]:
    for number in range(60):
        page = random_page(np.random.default_rng([2, number]), number)
        if isinstance(page, kind):
            yield page
