"""BBQ in five further languages: what is read, what is known of it, and what dummies score."""

import gzip
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.core.errors import UserError
from evenhand.findings.totals import RunTotals
from evenhand.instruments._contract import DataFolder
from evenhand.instruments.bbq import words
from evenhand.instruments.bbq.editions import Edition, Language, _refuse_other_counts
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.bbq.sample import BbqSampling, BbqSource, sample
from evenhand.methods import DefaultPrompt, settings
from evenhand.models.base import ModelRequest
from tests.errors import assert_names, raises_naming

Records = Callable[[Language], pl.DataFrame]
OTHERS: tuple[Language, ...] = ("es", "ca", "de", "ko", "zh")
# Items, templates, those without a target, those whose gold is masked, and those of the default
# sample: 321 · 8; 22 templates with both kinds of blocks and 19 with one; 269 · 8; 430 · 4.
COUNTS = {
    "es": (27_320, 323, 12, 0, 2_568),
    "ca": (27_344, 323, 36, 0, 2_568),
    "de": (11_868, 42, 144, 168, 240),
    "ko": (2_280, 269, 0, 0, 2_152),
    "zh": (35_436, 470, 1_354, 0, 1_720),
}
# The table of the authors' README.
TEMPLATES_OF_ESBBQ = {
    "Age": 23, "DisabilityStatus": 27, "Gender": 66, "LGBTQIA": 31, "Nationality": 15,
    "PhysicalAppearance": 32, "RaceEthnicity": 51, "Religion": 16, "SES": 27, "SpanishRegion": 35,
}  # fmt: skip


@pytest.fixture(scope="session")
def read(
    data_folder: Path, tmp_path_factory: pytest.TempPathFactory, records: pl.DataFrame
) -> Records:
    for folder in ("esbbq", "cabbq", "gg_bbq", "kobbq", "cbbq"):
        if not (data_folder / folder).is_dir():
            pytest.skip(f"no {folder} at {data_folder}; name its folder in EVENHAND_DATA")
    data = DataFolder(local=data_folder, cache=tmp_path_factory.mktemp("cache"))
    return cache(lambda one: records if one == "en" else Edition(one).records(data))


@pytest.mark.parametrize("language", OTHERS)
def test_a_set_has_its_records_templates_and_defects(read: Records, language: Language) -> None:
    records = read(language)
    found = (
        len(records),
        records.select("category", "question_index").n_unique(),
        records["biased"].null_count(),
        int(records["masked"].sum()),
        len(sample(records, BbqSampling())),
    )
    assert found == COUNTS[language]
    assert not records.select("category", "example_id").is_duplicated().any()
    right = records["label"] == records["unknown"]
    assert (right == (records["condition"] == "ambig")).all()
    targets = records.filter(pl.col("biased").is_not_null())
    assert (targets["biased"] != targets["unknown"]).all()


@pytest.mark.parametrize("language", OTHERS)
def test_a_drawn_block_has_four_corners_one_pair_of_people_and_its_texts_belong_together(
    read: Records, language: Language
) -> None:
    drawn = sample(read(language), BbqSampling())
    blocks = drawn.group_by(pl.col("row") // 4).agg(
        template=pl.format("{}/{}", "category", "question_index").first(),
        corners=pl.struct("condition", "polarity").n_unique(),
        people=pl.col("options").list.sort().n_unique(),
        begins=pl.col("context").filter(pl.col("condition") == "ambig").first(),
        goes_on=pl.col("context").filter(pl.col("condition") == "disambig").first(),
    )
    assert set(blocks["corners"]) == {4}
    # One template of CaBBQ says "the man" or "to the man" in its options.
    assert set(blocks.filter(pl.col("people") > 1)["template"]) <= {"RaceEthnicity/11"}
    fits = blocks.select(pl.col("goes_on").str.starts_with(pl.col("begins")).mean()).item()
    # CBBQ words a few of its clear texts anew.
    assert fits == 1 if language != "zh" else fits > 0.9


def test_the_templates_of_esbbq_are_those_of_its_table(read: Records) -> None:
    for language in ("es", "ca"):
        counted = read(language).group_by("category").agg(pl.col("question_index").n_unique())
        assert dict(counted.iter_rows()) == TEMPLATES_OF_ESBBQ


@pytest.mark.parametrize(("language", "folder"), [("es", "esbbq/data_es"), ("ca", "cabbq/data_ca")])
def test_the_tags_of_esbbq_agree_with_its_own_marks_wherever_a_target_is_taken(
    read: Records, data_folder: Path, language: Language, folder: str
) -> None:
    files = sorted((data_folder / folder).glob("*.csv.gz"))
    raw = pl.concat([pl.read_csv(file, infer_schema=False) for file in files])
    marked = raw.filter(pl.col("context_condition") == "disambig")
    said = marked.select("category", "context", "question", "ans0", "ans1", mark="question_type")
    clear = (
        read(language)
        .filter(pl.col("condition") == "disambig")
        .with_columns(ans0=pl.col("options").list.get(0), ans1=pl.col("options").list.get(1))
    )
    key = ["category", "context", "question", "ans0", "ans1"]
    joined = clear.join(said.unique(), on=key)
    known = joined.filter(pl.col("biased").is_not_null())
    assert len(joined) >= len(clear)
    assert ((known["label"] == known["biased"]) == (known["mark"] == "pro-stereo")).all()
    assert set(read(language)["options"].list.get(2)) == {Edition(language).card["unknown"]}


def test_esbbq_and_cabbq_are_asked_the_same_items_by_the_same_seed(read: Records) -> None:
    sampling = BbqSampling(seed=3, of="EsBBQ and CaBBQ")
    es, ca = (sample(read(language), sampling) for language in ("es", "ca"))
    same = ["category", "question_index", "example_id", "condition", "polarity", "label", "biased"]
    assert es.select(same).equals(ca.select(same))
    ours, theirs = (
        BbqSource(drawn, sampling, edition=Edition(language)).fingerprint()
        for drawn, language in zip((es, ca), OTHERS[:2], strict=True)
    )
    assert (ours.pop("language"), theirs.pop("language")) == ("es", "ca")
    assert ours == theirs
    assert len(sample(read("es"), BbqSampling(preset="all"))) == 27_320


def test_half_of_kobbqs_blocks_fit_the_stereotype_and_half_do_not(read: Records) -> None:
    records = read("ko")
    blocks = records.filter(pl.col("row") % 4 == 0)
    assert (len(blocks), int(blocks["aligned"].sum())) == (570, 285)
    assert records["category"].n_unique() == 12


def test_cbbqs_clear_texts_contradict_the_stereotype_as_its_group_names_show(
    read: Records,
) -> None:
    """A second route: where the group's name stands in one option alone, that is the target."""
    clear = read("zh").filter(pl.col("condition") == "disambig")
    assert (clear["label"] != clear["biased"]).all()
    groups = clear.with_row_index("n").with_columns(pl.col("against").str.split("/"))
    one = groups.explode("against").filter(pl.col("against").str.strip_chars() != "")
    stands = [
        pl.col("options").list.get(n).str.contains(pl.col("against"), literal=True).any()
        for n in range(2)
    ]
    found = one.group_by("n").agg(
        pl.col("biased", "polarity").first(), first=stands[0], second=stands[1]
    )
    sure = found.filter(pl.col("first") != pl.col("second"))
    target = pl.when("first").then(0).otherwise(1)
    biased = pl.when(pl.col("polarity") == "neg").then(target).otherwise(1 - target)
    assert len(sure) > 6_000
    assert sure.select((pl.col("biased") == biased).all()).item()


def test_gg_bbqs_two_words_for_one_group_are_of_the_same_people(
    read: Records, data_folder: Path
) -> None:
    """Its templates say "trans" of a name that its records tag "non_binary"."""
    templates = pl.read_csv(data_folder / "gg_bbq/templates/subset-2.csv.gz", infer_schema=False)
    said = templates.filter(pl.col("question_index") == "35")["name_info"].str.contains("trans")
    assert said.all()
    asked = read("de").filter(pl.col("question_index") == "35")
    assert set(asked["against"]) == {"trans people"}
    assert asked["biased"].null_count() == 0


def test_a_changed_or_cut_file_and_other_counts_are_refused_in_words(
    read: Records, data_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(data_folder / "kobbq", tmp_path / "kobbq", copy_function=shutil.copy)
    file = tmp_path / "kobbq/data/KoBBQ_test_samples.tsv.gz"
    file.chmod(0o600)
    whole = gzip.decompress(file.read_bytes())
    file.write_bytes(gzip.compress(whole[: len(whole) // 2]))
    with raises_naming(UserError, "kobbq/data/KoBBQ_test_samples.tsv", "revision 0dd165ae"):
        Edition("ko").records(DataFolder(local=tmp_path, cache=tmp_path / "cache"))
    said, records = Edition("ko").card["data"], read("ko")
    with raises_naming(UserError, "KoBBQ", "2,279 records", "269 templates"):
        _refuse_other_counts(records.head(-1), "KoBBQ", said)
    no_target = records.with_columns(biased=pl.lit(None, pl.Int64))
    with raises_naming(UserError, "2,280 records", "target", 0):
        _refuse_other_counts(no_target, "KoBBQ", said)
    unknown_everywhere = records.with_columns(label=pl.col("unknown"))
    with raises_naming(UserError, "KoBBQ", "correct option"):
        _refuse_other_counts(unknown_everywhere, "KoBBQ", said)


# -- scores --------------------------------------------------------------------------------------


def _scores(drawn: pl.DataFrame, tag: str) -> dict[str, float | None]:
    """The scores of a dummy that picks the option which an item's tag names."""
    bbq = Bbq()
    items = BbqSource(drawn, BbqSampling()).read(0, len(drawn))
    rows = [{"item_id": one.id, "choice": one.tags[tag], **one.tags} for one in items]
    kinds: dict[str, Any] = {"choice": pl.Int64(), **bbq.facts}
    facts = [pl.col(name).replace("", None).cast(kind) for name, kind in kinds.items()]
    frame = pl.DataFrame(rows).with_columns(*facts, status=pl.lit("answered"), reason=pl.lit(""))
    totals = RunTotals.of(bbq, [bbq.outcomes(frame)])
    names = ("s_amb", "s_dis", "accuracy_ambiguous", "accuracy_disambiguated", "over_abstention",
             "unsupported_attribution", "accuracy_aligned", "accuracy_nonaligned")  # fmt: skip
    return {name: totals.estimate(bbq.measure(name)).value for name in names}


@pytest.mark.parametrize("language", ["en", *OTHERS])
def test_the_gold_reader_and_the_dummies_score_as_they_must_in_every_language(
    read: Records, language: Language
) -> None:
    """CBBQ has no clear question whose answer fits the stereotype: what needs one is not known."""
    drawn = sample(read(language), BbqSampling(per_category=40))
    one_sided = language == "zh"
    gold, stereotyped = _scores(drawn, "gold"), _scores(drawn, "biased")
    unknown = _scores(drawn, "unknown")
    assert gold == {
        "s_amb": 0, "s_dis": None if one_sided else 0, "accuracy_ambiguous": 1,
        "accuracy_disambiguated": 1, "over_abstention": 0, "unsupported_attribution": 0,
        "accuracy_aligned": None if one_sided else 1, "accuracy_nonaligned": 1,
    }  # fmt: skip
    assert stereotyped["s_amb"] == stereotyped["unsupported_attribution"] == 1
    assert stereotyped["s_dis"] == stereotyped["accuracy_aligned"] == (None if one_sided else 1)
    assert stereotyped["accuracy_nonaligned"] == stereotyped["accuracy_ambiguous"] == 0
    assert (unknown["s_amb"], unknown["s_dis"], unknown["over_abstention"]) == (0, None, 1)


@pytest.mark.parametrize("language", ["es", "ca", "de", "zh"])
def test_a_record_without_a_target_has_no_bias_score_whatever_is_picked(
    read: Records, language: Language
) -> None:
    nobody = read(language).filter(pl.col("biased").is_null())
    source = BbqSource(nobody, BbqSampling(preset="all"), edition=Edition(language))
    assert source.fingerprint()["untargeted"] == len(nobody) == COUNTS[language][2]
    assert _scores(nobody, "gold")["s_amb"] is None


# -- runs ----------------------------------------------------------------------------------------


def _first(request: ModelRequest) -> str:
    assert "맥락: " in request.messages[-1].content
    assert request.messages[0].content.startswith("객관식")
    return '{"answer": "A"}'


def _measured(language: str, out: Path, data: Path, **more: Any) -> eh.Report:
    report = eh.measure(
        "bbq", options={"language": language, "per_category": 4}, out=out, data=data, **more
    )
    assert report is not None
    return report


def test_korean_is_asked_in_korean_and_its_report_says_what_it_is_of(
    read: Records, data_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "ko"
    report = _measured("ko", out, data_folder, model=eh.ScriptedModel(_first, name="first"))
    record = eh.open_run(out).record
    assert record.method == {"name": "default", "settings": {"wording": 1, "language": "ko"}}
    assert "baselines/default_choice_ko@1" in record.prompts
    assert "baselines/default_choice@1" not in record.prompts
    assert (report.coverage.n, report.coverage.coverage) == (48, 1.0)
    assert (report.instrument.title, report.instrument.all_clusters) == ("KoBBQ", 269)
    assert_names(report.notes[0], "KoBBQ", "Korean", "2024")
    assert not any("English" in note for note in report.notes)
    other = record.model_copy(update={"method": {"name": "fairness", "settings": {}}})
    assert_names(words.edition(other)[-1], "fairness", "Korean")


def test_two_parallel_languages_are_compared_and_no_others(
    read: Records, data_folder: Path, tmp_path: Path
) -> None:
    for language, method in (
        ("es", "always_unknown"),
        ("ca", "always_stereotyped"),
        ("ko", "random"),
    ):
        _measured(language, tmp_path / language, data_folder, method=method)
    found = eh.compare(tmp_path / "es", tmp_path / "ca")
    assert (found.items, found["s_amb"].difference) == (40, 1.0)
    assert any("EsBBQ" in str(note) and "CaBBQ" in str(note) for note in found.notes)
    with raises_naming(UserError, "samples", "EsBBQ and CaBBQ", "KoBBQ"):
        eh.compare(tmp_path / "es", tmp_path / "ko")


def test_stored_answers_to_two_languages_are_not_the_same_items(
    read: Records, data_folder: Path, tmp_path: Path
) -> None:
    """SES has records of the same numbers in both sets."""
    names = ["category", "example_id"]
    shared = read("en").join(read("es"), on=names, how="semi").head(40)
    rows = shared.select(*names, answer=pl.lit(2)).to_dicts()
    answers = tmp_path / "answers.jsonl"
    answers.write_text("\n".join(map(json.dumps, rows)))
    for language in ("en", "es"):
        eh.measure(
            "bbq",
            options={"language": language, "answers": answers},
            out=tmp_path / language,
            data=data_folder,
        )
    with raises_naming(UserError, "samples", "EsBBQ and CaBBQ"):
        eh.compare(tmp_path / "en", tmp_path / "es")


def test_a_papers_sample_is_of_english_alone(read: Records, data_folder: Path) -> None:
    options = Bbq().options_from({"language": "de", "preset": "mabrf"})
    with raises_naming(UserError, "--preset mabrf", "GG-BBQ", "--per-category"):
        Bbq().source(DataFolder(local=data_folder, cache=data_folder), options)


def test_english_is_recorded_as_ever(records: pl.DataFrame) -> None:
    sampling = BbqSampling(per_category=4)
    said = BbqSource(sample(records, sampling), sampling).fingerprint()
    assert set(said) == {
        "kind", "benchmark", "version", "revision", "sampling", "items", "order", "sha256",
    }  # fmt: skip
    assert said["sampling"] == {"per_category": 4, "balanced": True, "seed": 0}
    assert settings(DefaultPrompt()) == {"wording": 1}
    assert settings(DefaultPrompt(language="de")) == {"wording": 1, "language": "de"}
    with raises_naming(UserError, "Wording 2", "English"):
        DefaultPrompt(wording=2, language="de")
