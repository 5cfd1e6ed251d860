"""BBQ-Hard: the items that a named run first answered with bias."""

from pathlib import Path

import polars as pl
import pytest

from evenhand.core.errors import UserError
from evenhand.instruments._contract import DataFolder
from evenhand.instruments.bbq import words
from evenhand.instruments.bbq.instrument import Bbq, BbqOptions
from evenhand.methods import Mabrf
from evenhand.runs.store import RunReader
from tests.errors import assert_names, raises_naming
from tests.same_numbers.adapter import KEPT

from .test_drafts_runs import _mabrf, _reported


@pytest.fixture
def bbq(records: pl.DataFrame) -> Bbq:
    class Loaded(Bbq):
        def records(self, data: DataFolder) -> pl.DataFrame:
            del data
            return records

    return Loaded()


NOWHERE = DataFolder(local=None, cache=Path("nowhere"))


def _ids(bbq: Bbq, **options: object) -> list[str]:
    source = bbq.source(NOWHERE, bbq.options_from(options))
    return sorted(item.id for item in source.read(0, len(source)))


def test_the_items_that_a_run_answered_with_bias_are_asked_and_no_others(bbq: Bbq) -> None:
    run = RunReader(KEPT / "bbq/default")
    rows = run.results().filter(pl.col("status") == "answered").collect()
    tags = [{tag["name"]: tag["value"] for tag in row} for row in rows["tags"]]
    told = list(zip(rows["item_id"], rows["choice"], tags, strict=True))
    wrong = sorted(i for i, choice, tag in told if str(choice) != tag["gold"])
    biased = [i for i, choice, tag in told if i in wrong and str(choice) == tag["biased"]]
    assert 0 < len(biased) < len(wrong)
    assert _ids(bbq, items_from=str(run.path)) == sorted(biased)
    assert _ids(bbq, items_from=str(run.path), answered="wrong") == wrong


def test_who_picked_the_items_is_on_the_record_and_in_the_first_note(bbq: Bbq) -> None:
    source = bbq.source(NOWHERE, BbqOptions(items_from=str(KEPT / "bbq/default")))
    picked = source.fingerprint()["sampling"]["picked"]
    run = RunReader(KEPT / "bbq/default").record
    assert (picked["answered"], picked["of"]) == ("biased", run.source["items"])
    assert (picked["method"], picked["sha256"]) == ("default", run.source["sha256"])
    (note,) = words.not_drawn(source.fingerprint()["sampling"])
    assert_names(note, 232, "(default)", "biased")
    assert_names(note, "regression")


async def test_of_a_run_that_repairs_the_first_draft_counts(
    bbq: Bbq, records: pl.DataFrame, tmp_path: Path
) -> None:
    # Cases 1, 3, 6 and 8 and those ten later are stereotyped at first; repaired ones no longer.
    await _reported(tmp_path / "run", Mabrf(max_iterations=2), _mabrf)
    known = set(records.filter(pl.col("category") == "Age")["example_id"].to_list())
    expected = sorted(f"Age/{n}" for n in range(20) if n % 5 in (1, 3) and n in known)
    assert _ids(bbq, items_from=str(tmp_path / "run")) == expected
    assert expected


def test_a_run_that_is_not_finished_or_another_sample_beside_it_is_refused(bbq: Bbq) -> None:
    with raises_naming(UserError, "bbq/unfinished", "82 items"):
        _ids(bbq, items_from=str(KEPT / "bbq/unfinished"))
    with raises_naming(UserError, "--items-from", "--per-category"):
        _ids(bbq, items_from=str(KEPT / "bbq/default"), per_category=4)
    with raises_naming(UserError, "squad/default", "measure squad", "measure bbq"):
        _ids(bbq, items_from=str(KEPT / "squad/default"))
    with raises_naming(UserError, "bbq/always_unknown", "biased"):
        _ids(bbq, items_from=str(KEPT / "bbq/always_unknown"))
