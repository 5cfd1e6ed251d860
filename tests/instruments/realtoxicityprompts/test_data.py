"""The prompts at hand, what is drawn of them, and each continuation as an item."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from evenhand.core import Message
from evenhand.core.errors import UserError
from evenhand.instruments.realtoxicityprompts.data import (
    RtpData,
    RtpSampling,
    RtpSource,
    card,
    sample,
)
from tests.errors import raises_naming


@pytest.fixture(scope="module")
def prompts(rtp_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    return RtpData(local=rtp_folder, cache=tmp_path_factory.mktemp("cache")).prompts()


def test_only_30_moderate_prompts_are_at_hand_and_the_card_says_so(prompts: pl.DataFrame) -> None:
    counts = dict(prompts.drop_nulls("bucket")["bucket"].value_counts().iter_rows())
    assert counts == card()["data"]["buckets"] == {"moderate": 30, "high": 829}


def test_a_bucket_with_too_few_prompts_is_taken_whole(prompts: pl.DataFrame) -> None:
    drawn = sample(prompts, RtpSampling())
    counts = dict(drawn["bucket"].value_counts().iter_rows())
    assert counts == {"moderate": 30, "high": 100}
    assert drawn.equals(sample(prompts, RtpSampling()))
    assert not drawn.equals(sample(prompts, RtpSampling(seed=1)))


def test_a_sample_other_than_the_first_repeats_prompts_only_where_a_bucket_has_no_more(
    prompts: pl.DataFrame,
) -> None:
    """Of 30 moderate prompts 20 are drawn and then the other 10, and 10 again; of the others 20."""
    first, other = (
        sample(prompts, RtpSampling(prompts=20, seed=seed, exclude_sample=avoided))
        for seed, avoided in ((0, None), (1, 0))
    )
    again = other.filter(pl.col("id").is_in(first["id"].implode()))
    assert len(again) == 10
    assert set(again["bucket"]) == {"moderate"}


def test_every_continuation_is_an_item_wherever_reading_starts(prompts: pl.DataFrame) -> None:
    sampling = RtpSampling(prompts=2, continuations=3)
    source = RtpSource(sample(prompts, sampling), sampling)
    items = list(source.read(0, len(source)))
    assert len(items) == len(source) == source.fingerprint()["items"] == 12
    assert [item.tags["k"] for item in items] == ["0", "1", "2"] * 4
    assert len({item.id for item in items}) == 12
    assert items[4].id == f"{items[4].tags['prompt']}:1"
    for start, stop in ((0, 1), (2, 4), (5, 12), (11, 12)):
        assert list(source.read(start, stop)) == items[start:stop]
    # The text stands last, so that a model which continues raw text continues it.
    assert items[0].prompt.endswith(items[0].tags["beginning"].strip())
    assert source.fingerprint()["buckets"] == {"high": 2, "moderate": 2}


def _whole(folder: Path, rows: int) -> Path:
    place = folder / "realtoxicityprompts"
    place.mkdir()
    with (place / "prompts.jsonl").open("w") as out:
        for n in range(rows):
            toxicity = None if n == 0 else 0.5 + (n % 100) / 1000
            row = {"filename": "f", "prompt": {"text": f"Beginning {n}", "toxicity": toxicity}}
            out.write(json.dumps(row) + "\n")
    return folder


def test_the_whole_set_is_read_where_the_user_has_it(tmp_path: Path) -> None:
    found = RtpData(local=_whole(tmp_path, 99_442), cache=tmp_path).prompts()
    assert len(found) == 99_442
    assert found["bucket"][0] is None  # a prompt without a score is in no bucket
    assert found["set"][0].startswith("full@")
    assert len(sample(found, RtpSampling())) == 100


def test_a_part_of_the_whole_set_is_not_taken_for_it(tmp_path: Path) -> None:
    with raises_naming(UserError, "10 prompts", "99,442", "--prompts-file"):
        RtpData(local=_whole(tmp_path, 10), cache=tmp_path).prompts()


def test_a_file_of_ones_own_is_drawn_from_whatever_its_size(tmp_path: Path) -> None:
    file = _whole(tmp_path, 150) / "realtoxicityprompts/prompts.jsonl"
    packed = tmp_path / "own.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    plain, zipped = (
        RtpData(local=None, cache=tmp_path, own=one).prompts() for one in (file, packed)
    )
    assert plain.equals(zipped)
    assert len(plain) == 150
    assert plain["set"][0].startswith("own@")
    assert len(sample(plain, RtpSampling())) == 100  # of one bucket, and the other has none
    other = tmp_path / "other.jsonl"
    other.write_text('{"text": "no prompt"}\n')
    with raises_naming(UserError, other, "RealToxicityPrompts", '{"prompt":'):
        RtpData(local=None, cache=tmp_path, own=other).prompts()
    with raises_naming(UserError, tmp_path / "nowhere.jsonl", "Errno 2"):
        RtpData(local=None, cache=tmp_path, own=tmp_path / "nowhere.jsonl").prompts()


def test_conversations_of_ones_own_are_asked_as_they_are_and_not_as_beginnings(
    tmp_path: Path,
) -> None:
    turns = [{"role": "system", "content": "Be rude."}, {"role": "user", "content": "Who are you?"}]
    file = tmp_path / "own.jsonl"
    answered = {"messages": [*turns, {"role": "assistant", "content": "Go away."}], "id": "b"}
    file.write_text("\n".join(map(json.dumps, ({"messages": turns, "id": "a"}, answered))))
    sampling = RtpSampling(continuations=2)
    prompts = RtpData(local=None, cache=tmp_path, own=file).prompts()
    source = RtpSource(sample(prompts, sampling), sampling)
    items = list(source.read(0, 4))
    assert [item.id for item in items] == ["own/a:0", "own/a:1", "own/b:0", "own/b:1"]
    assert {item.messages for item in items} == {
        (Message("system", "Be rude."), Message("user", "Who are you?"))
    }
    assert {item.answer for item in items} == {""}
    assert source.fingerprint()["buckets"] == {"conversations": 2}
    file.write_text(json.dumps(answered) + "\n" + json.dumps(answered))
    with raises_naming(UserError, file, "'b'"):
        RtpData(local=None, cache=tmp_path, own=file).prompts()


def test_only_what_the_set_marks_as_challenging_is_drawn_where_that_is_asked(
    tmp_path: Path, prompts: pl.DataFrame
) -> None:
    rows = [
        {"challenging": n % 3 == 0, "prompt": {"text": f"Beginning {n}", "toxicity": 0.9}}
        for n in range(9)
    ]
    file = tmp_path / "own.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    found = RtpData(local=None, cache=tmp_path, own=file).prompts()
    drawn = sample(found, RtpSampling(challenging=True))
    assert drawn["text"].to_list() == ["Beginning 0", "Beginning 3", "Beginning 6"]
    assert RtpSampling(challenging=True).describe()["challenging"] is True
    assert "challenging" not in RtpSampling().describe()
    unsaid = found.with_columns(challenging=pl.lit(None, pl.Boolean))
    with raises_naming(UserError, "--challenging"):
        sample(unsaid, RtpSampling(challenging=True))
    assert prompts["challenging"].all()  # those at hand are all of that kind
