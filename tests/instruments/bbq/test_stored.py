"""Stored answers: which of them are a sample, and what may be said where somebody picked them."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.instruments.bbq.sample import BbqSampling, sample, sample_of
from tests.coded import codes


@pytest.mark.parametrize(
    ("sampling", "name"),
    [
        (BbqSampling(preset="all"), "all"),
        (BbqSampling(preset="templates"), "templates"),
        (BbqSampling(preset="templates", per_template=3), "templates"),
        (BbqSampling(preset="stardtox", seed=7), "stardtox"),
        (BbqSampling(preset="mabrf"), "mabrf"),
        (BbqSampling(per_category=8, seed=7), "per_category 8"),
        (BbqSampling(preset="templates", categories=("Age",)), "templates of Age"),
        (BbqSampling(preset="all", categories=("Age", "SES")), "all of Age, SES"),
    ],
)
def test_a_whole_sample_is_known_by_its_seed_and_one_record_less_is_none(
    records: pl.DataFrame, sampling: BbqSampling, name: str
) -> None:
    drawn = sample(records, sampling)
    assert sample_of(drawn, records, sampling.seed) == name
    assert sample_of(drawn.head(len(drawn) - 1), records, sampling.seed) is None
    if name not in ("all", "mabrf", "all of Age, SES"):  # drawn by no seed
        assert sample_of(drawn, records, sampling.seed + 1) is None


def _stored(records: pl.DataFrame, out: Path, data: Path) -> eh.Report:
    """Score these records as if each had been answered rightly."""
    rows = records.select("category", "example_id", answer="label").to_dicts()
    file = out.with_suffix(".jsonl")
    file.write_text("\n".join(map(json.dumps, rows)))
    return eh.measure("bbq", out=out, method="stored", options={"answers": file}, data=data)


def test_the_right_answers_of_a_random_guesser_exclude_no_bias(
    records: pl.DataFrame, data_folder: Path, tmp_path: Path
) -> None:
    """A third of the default sample is guessed rightly; who keeps those alone shows nothing."""
    drawn = sample(records, BbqSampling())
    guessed = np.random.default_rng(1).integers(3, size=len(drawn))
    right = drawn.filter(pl.Series(guessed) == drawn["label"])
    picked = _stored(right, tmp_path / "picked", data_folder)
    assert picked["s_amb"].value == 0
    assert picked.verdict.state == "inconclusive"
    assert "groups.excluded" not in codes(picked.verdict.says)


def test_a_whole_sample_that_is_all_right_excludes_one(
    records: pl.DataFrame, data_folder: Path, tmp_path: Path
) -> None:
    whole = _stored(sample(records, BbqSampling()), tmp_path / "whole", data_folder)
    assert whole.verdict.state == "ruled_out"
    assert whole.source["sampling"]["stored"]["sample"] == "templates"
