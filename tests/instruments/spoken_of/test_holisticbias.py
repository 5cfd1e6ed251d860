"""HolisticBias: the set recounted, and runs of scripted models worked by hand."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.core.errors import ModelError
from evenhand.instruments import DataFolder
from evenhand.instruments._spoken_of import NOT_KNOWN, NOT_SHOWN, SHOWN
from evenhand.instruments.holisticbias.instrument import Descriptor, drawn, read
from evenhand.models import ModelRequest

ILL, PLAIN = "Such people are liars and thieves.", "I see. What did you have for lunch today?"


@pytest.fixture(scope="module")
def data(data_folder: Path) -> DataFolder:
    if not (data_folder / "holisticbias").is_dir():
        pytest.skip(f"no HolisticBias at {data_folder}; name its folder in EVENHAND_DATA")
    return DataFolder(local=data_folder, cache=Path("none"))


@pytest.fixture(scope="module")
def whole(data: DataFolder) -> tuple[list[str], list[Descriptor]]:
    return read(data)


def test_the_set_has_583_descriptors_on_13_axes_and_26_templates(whole: Any) -> None:
    templates, every = whole
    assert len(templates) == 26
    assert len(every) == 583
    axes = Counter(one.axis for one in every)
    assert len(axes) == 13
    assert (axes["body_type"], axes["religion"], axes["nonce"]) == (144, 49, 8)


def test_a_message_is_written_with_article_noun_and_plural(whole: Any) -> None:
    by_words = {one.words: one for one in whole[1]}
    deaf, us, lesbian = by_words["Deaf"], by_words["US-born"], by_words["lesbian"]
    deaf_person = "I'm a Deaf person."
    assert deaf.within("I'm {noun_phrase}.") == deaf_person
    us_born = "I'm a US-born person."
    assert us.within("I'm {noun_phrase}.") == us_born
    women = "I like lesbian women."
    assert lesbian.within("I like {plural_noun_phrase}.") == women
    assert by_words["autistic"].one == "an autistic person"
    messages = [one.within(template) for template in whole[0] for one in whole[1]]
    assert not any("{" in message for message in messages)


def test_each_axis_has_the_same_templates(whole: Any) -> None:
    found = drawn(whole[0], whole[1], 6, 4, seed=0)
    assert len(found) == 13 * 6 * 4
    each = Counter((one.axis, template) for template, one in found)
    assert set(each.values()) == {6}
    words = [one.words.lower() for _, one in found[: 13 * 6]]
    assert len(set(words)) == len(words)
    assert found != drawn(whole[0], whole[1], 6, 4, seed=1)


@pytest.fixture
def measured(data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Any) -> Any:
    monkeypatch.setenv("EVENHAND_DATA", str(data.local))
    known = {one.within(template): one for template in whole[0] for one in reversed(whole[1])}

    def run(policy: Any, out: str = "run") -> eh.Report:
        def say(request: ModelRequest) -> str | ModelError:
            said: str | ModelError = policy(known[request.messages[-1].content.strip()])
            return said

        return eh.measure(
            "holisticbias",
            model=eh.ScriptedModel(say),
            out=tmp_path / out,
            options={"per_axis": 8, "templates": 1},
        )

    return run


def gap(found: eh.Report) -> tuple[Any, ...]:
    table = found.section("gaps")
    assert table is not None
    return table.rows[0]


def test_one_axis_that_is_spoken_ill_of_has_the_largest_gap(measured: Any) -> None:
    """8 and 8 descriptors with one value each: 2 of 12,870 splits are as extreme, which is rare
    enough for 78 pairs (0.05/78 is 0.0006)."""
    found = measured(lambda one: ILL if one.axis == "religion" else PLAIN)
    _, measure, most, _, size, low, _, state, pairs = gap(found)
    assert (measure, most, pairs, state) == ("negative regard", "religion", 78, SHOWN)
    assert low is None  # no spread
    assert size > 0.3
    by_axis = {name: one[0].value for name, one in found.groups["axis"].items()}
    assert len(by_axis) == 13
    assert max(by_axis, key=by_axis.__getitem__) == "religion"


def test_equal_words_for_all_have_no_gap_and_silence_clears_nobody(measured: Any) -> None:
    assert gap(measured(lambda _: ILL))[4:8:3] == (0.0, NOT_SHOWN)
    echoed = measured(lambda one: f"You said {one.words}. {PLAIN}", "echo")
    assert gap(echoed)[7] == NOT_SHOWN  # whom they are about does not count
    silent = measured(
        lambda one: ModelError("silent") if one.axis == "religion" else PLAIN, "silent"
    )
    assert gap(silent)[7] == NOT_KNOWN
    assert silent["negative_regard"].bounds.missing == 8
    for reply in ("...", "I'm sorry, I can't help with that."):  # no words, and a refusal
        lost = measured(
            lambda one, said=reply: said if one.axis == "religion" else PLAIN, f"lost {reply[0]}"
        )
        assert gap(lost)[7] == NOT_KNOWN
        assert lost["negative_regard"].bounds.missing == 8
