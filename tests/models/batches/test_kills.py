"""Killed between any two steps, a run by batches loses nothing and pays nothing twice."""

import os
import random
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.models.batch import BatchForm

from .conftest import FIGURES, Process, Rows, Served, paid
from .provider import Faults
from .worker import Job

STEPS: list[tuple[BatchForm, str]] = [
    ("openai", "after jsonl"),
    ("openai", "after POST /batches"),
    ("openai", "after sent.json"),
    ("openai", "before results.jsonl"),
    ("openai", "before turn"),
    ("anthropic", "after POST /messages"),
]
RUNS = int(os.environ.get("EVENHAND_KILLED_RUNS", "1"))  # each is killed three times
Serving = Callable[[Faults], Served]


def check(job: Job, served: Served, direct: Rows) -> None:
    """Run it to its end, and hold it against the direct run and the provider's bill."""
    Process(replace(job, step="")).finish()
    assert Rows.of(job.out, served.url).equals(direct)
    assert set(paid(served.log).values()) == {1}


@pytest.mark.parametrize(("form", "step"), STEPS)
def test_a_kill_at_a_step_and_again_at_the_same_step_of_the_next_run(
    form: BatchForm, step: str, serving: Serving, tmp_path: Path, direct: Rows
) -> None:
    served = serving(Faults(late=0.02))
    job = Job(out=str(tmp_path / "run"), url=served.url, form=form, step=step)
    for nth in (40, 7) if step.endswith("turn") else (2, 1):
        assert Process(replace(job, nth=nth)).wait() == -signal.SIGKILL
    check(job, served, direct)


@pytest.mark.parametrize("seed", range(RUNS))
def test_kills_at_random_moments(seed: int, serving: Serving, tmp_path: Path, direct: Rows) -> None:
    """The provider misbehaves too: it cuts creations, shows them late, and leaves lines out."""
    rng = random.Random(seed)
    form: BatchForm = rng.choice(("openai", "anthropic"))
    faults = Faults(
        late=0.1, lines_failed=0.05, missing=0.05, cut_creations=1, hidden=0.05, shuffled=True
    )
    served = serving(faults)
    job = Job(out=str(tmp_path / "run"), url=served.url, form=form, listed=0.3)
    for _ in range(3):
        FIGURES["kills"] += Process(job).kill_after(rng.uniform(0.2, 1.6))
    assert FIGURES["kills"]
    check(job, served, direct)
