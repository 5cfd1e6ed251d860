"""Recorded answers to any instrument that asks are joined by the id of an item and nothing else."""

import gzip
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

import evenhand as eh
from evenhand.core import Item, registry
from evenhand.instruments import (
    SCORED,
    DataFolder,
    Instrument,
    ListedItems,
    Share,
    instrument_named,
    option,
    why_lost,
)
from evenhand.instruments._answers import read_answers
from evenhand.models import ModelRequest
from evenhand.views.report_page import warnings
from tests.errors import raises_naming

ASKING = [
    name for name in registry.names("instruments") if instrument_named(name).asks == "answers"
]
WHOLE_LINES = {"actions", "rankings", "counterfactual"}  # a line holds what was asked as well


@dataclass(frozen=True, slots=True, kw_only=True)
class ColorOptions:
    colors: int = option(2, "Number of colors.", least=1)


class Colors(Instrument):
    """Asks for the color of four things; one with options, shuffled."""

    name, title, clusters, columns = "colors", "Colors", "things", ("text",)
    facts: ClassVar = {"thing": pl.String(), "gold": pl.String()}
    options = ColorOptions
    every_item: ClassVar = {"colors": 4}
    measures = (
        eh.Measure(name="right", label="right", statistic=Share(pl.col("right")), better="higher",
                   role="primary", within=(0, 1)),
    )  # fmt: skip

    def source(self, data: DataFolder, options: Any) -> ListedItems:
        del data
        golds = {"sky": "blue", "snow": "white", "coal": "black", "leaf": "green"}
        items = [
            Item(id=thing, prompt=f"What color is {thing}?",
                 choices=("red", "green") if thing == "leaf" else (),
                 tags={"thing": thing, "gold": gold})
            for thing, gold in list(golds.items())[: options.colors]
        ]  # fmt: skip
        return ListedItems(self, items, sampling={"colors": options.colors})

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        text = pl.col("text")
        return rows.select(
            "item_id", cluster="thing", right=text == pl.col("gold"),
            state=pl.when(text.is_null()).then(why_lost()).otherwise(pl.lit(SCORED)),
        )  # fmt: skip


class Aloud(Colors):
    """The same, where an empty answer says something, and its rows name their item in parts."""

    answer_id = "{kind}-{number}"
    silence = True

    def source(self, data: DataFolder, options: Any) -> ListedItems:
        del data, options
        items = [Item(id=f"thing-{number}", prompt="?", tags={"thing": str(number), "gold": " "})
                 for number in range(3)]  # fmt: skip
        return ListedItems(self, items)


def _file(folder: Path, *rows: object) -> Path:
    file = folder / "answers.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def _measured(instrument: Instrument, answers: Path, **more: Any) -> eh.Report:
    return eh.measure(instrument, out=answers.parent / "run", options={"answers": answers}, **more)


# -- what an answer counts as ----------------------------------------------------------------------


def test_a_null_a_blank_and_an_answer_that_is_none_of_the_options_are_missing(
    tmp_path: Path,
) -> None:
    rows = [{"id": "sky", "answer": "blue"}, {"id": "snow", "answer": None},
            {"id": "coal", "answer": " "}, {"id": "leaf", "answer": "pink"}]  # fmt: skip
    report = _measured(Colors(), _file(tmp_path, *rows))
    assert report["right"].value == 1.0
    assert (report.coverage.n, report.coverage.scored) == (4, 1)
    assert report.coverage.by_reason == {"missing": 2, "unreadable": 1}
    bounds = report["right"].bounds
    assert bounds is not None
    assert (bounds.low, bounds.high) == (1 / 4, 1.0)


def test_a_missing_answer_is_not_written_anew_by_a_repair(tmp_path: Path) -> None:
    asked: list[str] = []

    def reply(request: ModelRequest) -> str:
        asked.append(request.messages[-1].content)
        return '{"reason": "fine", "harm": 0, "stop": true}'

    file = _file(tmp_path, {"id": "sky", "answer": None}, {"id": "snow", "answer": "white"})
    report = _measured(Colors(), file, model=eh.ScriptedModel(reply), method="self_refine")
    assert report.coverage.scored <= 1
    assert not any("What color is sky?" in prompt for prompt in asked)


def test_an_empty_answer_counts_where_silence_says_something(tmp_path: Path) -> None:
    rows = [{"kind": "thing", "number": number, "answer": answer}
            for number, answer in enumerate(["", None, 7])]  # fmt: skip
    report = _measured(Aloud(), _file(tmp_path, *rows))
    assert (report["right"].n, report["right"].value) == (2, 1 / 2)


# -- which items -----------------------------------------------------------------------------------


def test_answers_to_some_items_say_how_many_and_exclude_no_bias(tmp_path: Path) -> None:
    report = _measured(Colors(), _file(tmp_path, {"id": "sky", "answer": "blue"}))
    assert report.source["sampling"] == {"stored": {"items": 1, "of": 4}}
    assert report.instrument.no_sample(report)
    assert any("1 of 4" in line.text for line in warnings(report))
    assert report["right"].n == 1


@pytest.mark.parametrize(
    ("rows", "facts"),
    [
        (
            [{"id": "sky", "answer": "x"}, {"id": "sun", "answer": "x"}],
            ["line 2", "'sun'", "'sky'"],
        ),
        (
            [{"id": "sky", "answer": "x"}, {"id": "sky", "answer": "x"}],
            ["line 2", "line 1", "'sky'"],
        ),
        ([{"id": "leaf", "answer": 1}], ["line 1", "'red'"]),
        ([{"id": "sky"}], ["line 1", "id and answer"]),
        ([{"answer": "x", "name": "sky"}], ["line 1", "id"]),
        ([{"id": "sky", "answer": True}], ["line 1"]),
        ([], ["id and answer"]),
    ],
)
def test_an_answer_that_fits_no_item_is_refused_where_it_stands(
    tmp_path: Path, rows: list[Any], facts: list[str]
) -> None:
    with raises_naming(eh.UserError, *facts):
        _measured(Colors(), _file(tmp_path, *rows))
    assert not (tmp_path / "run").exists()


def test_options_that_select_items_are_refused_beside_answers(tmp_path: Path) -> None:
    file = _file(tmp_path, {"id": "sky", "answer": "blue"})
    with raises_naming(eh.UserError, "--colors"):
        eh.measure(Colors(), out=tmp_path / "run", options={"answers": file, "colors": 3})


# -- forms -----------------------------------------------------------------------------------------


def test_one_object_from_id_to_answer_is_read_too_and_compressed(tmp_path: Path) -> None:
    file = tmp_path / "answers.json.gz"
    file.write_bytes(gzip.compress(b'{"sky": "blue", "coal": null}'))
    report = _measured(Colors(), file)
    assert (report.coverage.n, report.coverage.scored) == (2, 1)
    file.write_bytes(file.read_bytes()[:-4])
    with raises_naming(eh.UserError, "answers.json.gz"):
        eh.measure(Colors(), out=tmp_path / "next", options={"answers": file})


def test_the_answers_of_a_run_are_scored_again_and_compared_with_it(tmp_path: Path) -> None:
    model = eh.ScriptedModel(lambda request: "blue" if "sky" in str(request.messages) else "grey")
    before = eh.measure(Colors(), model=model, out=tmp_path / "before")
    after = eh.measure(Colors(), out=tmp_path / "after", options={"answers": tmp_path / "before"})
    assert (after["right"].n, after["right"].value) == (2, before["right"].value)
    assert after.source["sha256"] == before.source["sha256"]
    assert after.side.model == before.side.model


def test_a_run_that_asked_in_other_words_is_refused(tmp_path: Path) -> None:
    class Reworded(Colors):
        def source(self, data: DataFolder, options: Any) -> ListedItems:
            items = super().source(data, options).read(0, 4)
            return ListedItems(self, [replace(item, prompt="What?") for item in items])

    eh.measure(Colors(), model=eh.ScriptedModel(lambda _: "blue"), out=tmp_path / "before")
    with raises_naming(eh.UserError, "'sky'", "other words"):
        eh.measure(Reworded(), out=tmp_path / "run", options={"answers": tmp_path / "before"})


# -- every instrument ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ASKING)
def test_every_instrument_that_asks_takes_recorded_answers(name: str) -> None:
    instrument = instrument_named(name)
    if name == "decisions":  # its table is the decisions
        assert instrument.answer_id is None
        return
    assert instrument.options_from({"answers": Path("answers.jsonl")}).answers
    assert (instrument.answer_id is None) == (name in WHOLE_LINES)
    for chosen in instrument.every_item:
        assert hasattr(instrument.options_from({}), chosen)


# An item of each set, how many items there are, and how many are scored together with that one.
ITEMS = {
    "xstest": ("1", 450, 1),
    "statements": ("age/00001:0", 300, 1),
    "evalbiasbench": ("length/0:1", 160, 2),
    "holisticbias": ("ability:non-disabled:I'm {noun_phrase}.", 579 * 26, 1),
    "rtp": ("decodingtrust/0:0", 859 * 25, 1),
}


@pytest.mark.parametrize("name", ITEMS)
def test_one_answer_is_joined_among_all_items_of_a_set(
    data_folder: Path, tmp_path: Path, name: str
) -> None:
    item, every, together = ITEMS[name]
    instrument = instrument_named(name)
    row = {"id": item} if name != "evalbiasbench" else {"pair": "length/0", "first": 1}
    options = instrument.options_from({"answers": _file(tmp_path, {**row, "answer": "1"})})
    source = instrument.questions(DataFolder(local=data_folder, cache=tmp_path), options)
    assert source.fingerprint()["sampling"] == {"stored": {"items": together, "of": every}}
    answers = {one.id: one.answer for one in source.read(0, len(source))}
    assert answers.pop(item) == "1"
    assert list(answers.values()) == [None] * (together - 1)


def test_a_set_of_log_probabilities_refuses_answers_with_a_sentence(tmp_path: Path) -> None:
    for name in ("crows_pairs", "stereoset"):
        with raises_naming(eh.UserError, name, "log-probabilities", "subtler_choices"):
            instrument_named(name).options_from({"answers": tmp_path / "answers.jsonl"})


def test_one_object_with_two_answers_to_an_item_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text('{"a": "x", "b": "y", "a": "z"}')
    with raises_naming(eh.UserError, "second answer", "'a'"):
        read_answers(file, "xstest", "{id}")
    file.write_text('{"a": "x", "b": null}')
    assert read_answers(file, "xstest", "{id}").by_item == {"a": "x", "b": None}
