"""Our intervals hold the truth as often as they say, on templates that were really answered."""

from pathlib import Path

import pytest

from bench.simulated import coverage


def test_every_printed_endpoint_covers_the_truth_with_few_templates(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few draws, so the bars are wide: t around shares misses one side in more than a fifth of
    them, and resampled ICAT in 43 %."""
    monkeypatch.setenv("EVENHAND_DATA", str(data_folder))
    found = coverage.figures(short=True)
    assert found["worst_tail"] <= 0.10
    assert found["coverage_min"] >= 0.88
    icat = found["icat at 79 terms"]
    assert icat >= 0.93
