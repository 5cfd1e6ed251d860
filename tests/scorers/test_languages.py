"""HateCheck in ten languages: what its authors say of it, recounted, and audits language by
language."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from evenhand.core.errors import UserError
from evenhand.instruments.scorer.sets import MULTILINGUAL, AuditTexts, ToxicitySets, drawn, gathered

from .judged_texts import Judged, scored_texts


@pytest.fixture(scope="module")
def sets(data_folder: Path) -> ToxicitySets:
    if not (data_folder / "multilingual_hatecheck").is_dir():
        pytest.skip(f"no Multilingual HateCheck at {data_folder}; name its folder in EVENHAND_DATA")
    return ToxicitySets(local=data_folder, cache=Path("none"))


@pytest.fixture(scope="module")
def tables(sets: ToxicitySets) -> Mapping[str, pl.DataFrame]:
    return {name: sets.table(name) for name in MULTILINGUAL}


def test_the_ten_languages_have_the_texts_and_tests_that_the_paper_counts(
    tables: Mapping[str, pl.DataFrame],
) -> None:
    """36,582 texts and 34 functional tests; 27 in each language, 25 in Mandarin."""
    assert sum(map(len, tables.values())) == 36_582
    tests = {name: set(table["function"]) for name, table in tables.items()}
    assert len(set().union(*tests.values())) == 34
    assert {name: len(one) for name, one in tests.items() if len(one) != 27} == {"hatecheck_zh": 25}


def test_all_languages_but_two_have_the_same_tests_each_with_one_label(
    tables: Mapping[str, pl.DataFrame],
) -> None:
    """The tests of spelling are others in Arabic and Mandarin, for their script."""
    german = set(tables["hatecheck_de"]["function"])
    for name, table in tables.items():
        other = german ^ set(table["function"])
        assert bool(other) == (name in ("hatecheck_ar", "hatecheck_zh"))
        assert all(test.startswith("spell_") for test in other)
        labels = table.group_by("function").agg(pl.col("label").n_unique())
        assert labels["label"].to_list() == [1] * len(labels)
        hateful = table.select((pl.col("function").str.ends_with("_h") == pl.col("label")).all())
        assert hateful.item()


def test_every_language_has_seven_groups(tables: Mapping[str, pl.DataFrame]) -> None:
    """Polish writes one of its seven in two ways, "immigrant" and "immigrants"."""
    groups = {name: set(table["group"]) - {""} for name, table in tables.items()}
    assert groups["hatecheck_pl"] >= {"immigrant", "immigrants"}
    groups["hatecheck_pl"].discard("immigrant")
    assert {len(one) for one in groups.values()} == {7}


def test_without_a_name_an_audit_is_in_english(sets: ToxicitySets) -> None:
    assert not set(sets.usual) & set(MULTILINGUAL)
    assert set(sets.names) == {*sets.usual, *MULTILINGUAL}
    found, _ = gathered(sets, ["hatecheck_pl", "hatecheck_hi"])
    assert list(found) == ["hatecheck_pl", "hatecheck_hi"]


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "multilingual_hatecheck/MHC Final Cases"
    folder.mkdir(parents=True)
    (folder / "hatecheck_cases_final_german.csv").write_text("functionality,test_case\n")
    with pytest.raises(UserError, match="differs from the file in revision a03f2caf"):
        ToxicitySets(local=tmp_path, cache=tmp_path).table("hatecheck_de")


def _audited(tables: Mapping[str, pl.DataFrame]) -> Judged:
    """A scorer that is right in Spanish and calls everything harmless in all other languages; it
    has no score for the first Spanish text."""
    scores: list[float | None] = []
    for name, table in tables.items():
        given = [float(label) if name.endswith("_es") else 0.0 for label in table["label"]]
        scores += [None, *given[1:]] if name.endswith("_es") else given
    return Judged.of(scored_texts(AuditTexts(tables), scores))


def test_a_language_is_audited_by_itself_whatever_stands_beside_it(
    tables: Mapping[str, pl.DataFrame],
) -> None:
    few = {name: drawn(tables[name], 120) for name in ("hatecheck_es", "hatecheck_de")}
    both = _audited(few)
    for name, missed, auc in (("hatecheck_es", 0.0, 1.0), ("hatecheck_de", 1.0, 0.5)):
        assert both.group("set", name, "misses").value == missed
        assert both.group("set", name, "false_positives").value == 0.0
        assert both.group("set", name, "auc").value == auc
        assert _audited({name: few[name]}).groups["set"][name] == both.groups["set"][name]
    details = both.checks["misses:set"].details
    assert (details["failed"], details["inconclusive"]) == ("hatecheck_de", "")
