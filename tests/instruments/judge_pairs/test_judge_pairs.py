"""LLMBar and EvalBiasBench: the sets recounted, and judges whose scores are worked by hand."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.core.errors import ModelError
from evenhand.findings.estimates import Bounds
from evenhand.instruments import DataFolder, instrument_named
from evenhand.instruments._judge_pairs import BETTER, WORSE, JudgePairs, pair_of
from evenhand.instruments._options import OptionItem
from evenhand.models import ModelRequest
from tests.coded import codes
from tests.errors import raises_naming
from tests.stage import words_of

SETS = ("llmbar", "evalbiasbench")


@pytest.fixture(scope="module")
def data(data_folder: Path) -> DataFolder:
    for name in SETS:
        if not (data_folder / name).is_dir():
            pytest.skip(f"no {name} at {data_folder}; name its folder in EVENHAND_DATA")
    return DataFolder(local=data_folder, cache=Path("none"))


def _pairs(data: DataFolder, name: str) -> list[OptionItem]:
    found = instrument_named(name)
    assert isinstance(found, JudgePairs)
    return found.pairs(data)


# -- the sets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("llmbar", {"Natural": 100, "Neighbor": 134, "GPTInst": 92, "GPTOut": 47, "Manual": 46}),
        (
            "evalbiasbench",
            {
                "length": 17, "concreteness": 14, "empty reference": 13,
                "content continuation": 12, "nested instruction": 12, "familiar knowledge": 12,
            },
        ),
    ],
)  # fmt: skip
def test_a_set_has_the_pairs_of_each_kind_that_its_authors_count(
    data: DataFolder, name: str, kinds: dict[str, int]
) -> None:
    """419 pairs in five sets; 80 in six kinds of bias."""
    found = _pairs(data, name)
    assert Counter(one.group for one in found) == kinds
    assert len({one.id for one in found}) == len(found) == sum(kinds.values())
    assert all(one.given and one.options[BETTER] != one.options[WORSE] for one in found)


def test_the_better_answer_is_the_one_that_the_label_names(data: DataFolder) -> None:
    """The second pair of answers in LLMBar's own README, and the first of EvalBiasBench's."""
    by_task = {one.given: one for one in _pairs(data, "llmbar")}
    fish = by_task['What does the phrase "smaller fish to fry" mean?'].options
    smaller = 'The phrase "smaller fish to fry" refers to'
    assert fish[BETTER].startswith(smaller)
    bigger = 'The phrase "bigger fish to fry"'
    assert fish[WORSE].startswith(bigger)
    star = next(o for o in _pairs(data, "evalbiasbench") if "farthest star" in o.given)
    assert "Earendel" in star.options[BETTER]


def test_a_pair_without_a_label_is_refused() -> None:
    with raises_naming(eh.UserError, "x", 0):
        pair_of("x", "kind", "Say yes.", ("yes", "no"), 0)


def test_every_pair_is_asked_in_both_orders(data: DataFolder) -> None:
    one = instrument_named("llmbar")
    source = one.source(data, one.options_from({"sample": 10}))
    assert len(source) == 20
    items = list(source.read(0, 20))
    assert set(Counter(item.tags["pair"] for item in items).values()) == {2}
    for first, second in zip(items[::2], items[1::2], strict=True):
        shown = [_shown(item.prompt) for item in (first, second)]
        assert shown[0] == shown[1][::-1]


# -- judges ----------------------------------------------------------------------------------------


def _shown(words: str) -> tuple[str, ...]:
    found = [
        re.search(rf"<response_{n}>\n(.*?)\n</response_{n}>", words, re.DOTALL) for n in (1, 2)
    ]
    return tuple(one[1] for one in found if one)


def _verdict(preferred: str) -> str:
    marks = dict.fromkeys(("creativity", "accuracy", "efficiency", "reliability"), 5)
    said = {"reason": "so it is", "first": marks, "second": marks, "preferred": preferred}
    return json.dumps(said)


Judge = Callable[[bool, str], str]  # whether the better answer is first, and the pair's id


@pytest.fixture
def measured(data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("EVENHAND_DATA", str(data.local))
    known: dict[tuple[str, ...], str] = {
        (one.options[BETTER].strip(), one.options[WORSE].strip()): one.id
        for one in _pairs(data, "evalbiasbench")
    }

    def run(judge: Judge, out: str = "run", **more: Any) -> eh.Report:
        def say(request: ModelRequest) -> str | ModelError:
            shown = tuple(text.strip() for text in _shown(words_of(request)))
            better_first = shown in known
            said = judge(better_first, known[shown if better_first else shown[::-1]])
            return ModelError("it is silent") if said == "silent" else _verdict(said)

        return eh.measure("evalbiasbench", model=eh.ScriptedModel(say), out=tmp_path / out,
                          **{"method": "rate", "options": {"all": True}, **more})  # fmt: skip

    return run


def _gold(better_first: bool, _: str) -> str:
    return "first" if better_first else "second"


def _fooled(better_first: bool, _: str) -> str:
    return "second" if better_first else "first"


def _by_length(better_first: bool, pair: str) -> str:
    """Right but for the kind "length", where it is fooled in both orders."""
    return (_fooled if pair.startswith("length") else _gold)(better_first, pair)


@pytest.mark.parametrize(
    ("judge", "accuracy", "both", "consistency", "first", "ties"),
    [
        (_gold, 1.0, 1.0, 1.0, 50.0, 0.0),
        (_fooled, 0.0, 0.0, 1.0, 50.0, 0.0),
        (lambda *_: "first", 0.5, 0.0, 0.0, 100.0, 0.0),
        (lambda *_: "tie", 0.5, 0.0, 1.0, 50.0, 1.0),
        (lambda better, pair: "first" if better else "tie", 0.75, 0.0, 0.0, 75.0, 0.5),
    ],
    ids=["gold", "always fooled", "always the first", "always a tie", "half a tie"],
)
def test_judges_have_the_scores_that_follow_from_what_they_say(
    measured: Any,
    judge: Judge,
    accuracy: float,
    both: float,
    consistency: float,
    first: float,
    ties: float,
) -> None:
    found = measured(judge)
    names = ("accuracy", "right_both", "consistency", "first_slot", "ties")
    assert [found[name].value for name in names] == [accuracy, both, consistency, first, ties]
    assert (found["accuracy"].n, found["accuracy"].clusters) == (160, 80)
    assert found.coverage.coverage == 1.0


def test_a_judge_that_length_takes_in_is_right_everywhere_else(measured: Any) -> None:
    """63 of 80 pairs."""
    found = measured(_by_length)
    assert found["accuracy"].value == found["right_both"].value == pytest.approx(63 / 80)
    by_kind = {kind: one[0].value for kind, one in found.groups["kind"].items()}
    assert by_kind.pop("length") == 0.0
    assert set(by_kind.values()) == {1.0}
    assert found["accuracy"].low < 63 / 80 < found["accuracy"].high


def test_a_silent_verdict_is_neither_right_nor_wrong_nor_consistent(measured: Any) -> None:
    """The judge is right, and silent on the 12 of a kind where the better answer is second: 148
    verdicts and 68 pairs are known. With the 12 it is from 148 to 160 of 160, and from 68 to 80 of
    80 pairs, whatever else was said of these pairs."""

    def judge(better_first: bool, pair: str) -> str:
        silent = pair.startswith("nested") and not better_first
        return "silent" if silent else _gold(better_first, pair)

    found = measured(judge)
    assert found["accuracy"].bounds == Bounds(missing=12, low=148 / 160, high=1.0)
    for name in ("right_both", "consistency"):
        assert found[name].value == 1.0
        assert found[name].bounds is not None
        assert (found[name].bounds.low, found[name].bounds.high) == (68 / 80, 1.0)


def test_a_pair_with_one_verdict_agrees_with_nobody(measured: Any) -> None:
    """The judge always takes the first, and is silent on the 12 of a kind where that is wrong: none
    of the 68 pairs that are known is right in both orders or has one verdict."""

    def judge(better_first: bool, pair: str) -> str:
        return "silent" if pair.startswith("nested") and not better_first else "first"

    found = measured(judge)
    for name in ("right_both", "consistency"):
        assert found[name].value == 0.0
        assert found[name].bounds is not None
        assert (found[name].bounds.low, found[name].bounds.high) == (0.0, 12 / 80)


def test_silence_in_place_of_mistakes_is_no_better_judge(measured: Any, tmp_path: Path) -> None:
    measured(_by_length, "before")
    measured(_gold, "mended")
    measured(
        lambda better, pair: "silent" if pair.startswith("length") else _gold(better, pair),
        "silent",
    )
    mended, silent = (eh.compare(tmp_path / "before", tmp_path / o) for o in ("mended", "silent"))
    assert "comparison.better" in codes(mended.verdict.says)
    assert "comparison.better" not in codes(silent.verdict.says)


def test_a_method_that_judges_nothing_is_refused_with_the_command_that_does(measured: Any) -> None:
    with raises_naming(eh.UserError, "evenhand measure evalbiasbench", "--method rate"):
        measured(_gold, method="default")


def test_a_remedy_that_asks_in_both_orders_leaves_no_place_to_like(measured: Any) -> None:
    """Who always takes the first is asked in both orders for each item: every verdict is a tie."""
    found = measured(lambda *_: "first", method=_swapping())
    assert (found["ties"].value, found["consistency"].value) == (1.0, 1.0)
    assert found["first_slot"].value == 50.0


def _swapping() -> eh.Method:
    from evenhand.methods.judging import Rate  # noqa: PLC0415

    return Rate(counterfactual="swap")


# -- stored verdicts -------------------------------------------------------------------------------


def _stored(file: Path, rows: list[tuple[str, int, Any]]) -> Path:
    lines = [json.dumps({"pair": p, "first": first, "answer": v}) for p, first, v in rows]
    file.write_text("\n".join(lines))
    return file


def test_stored_verdicts_are_scored_as_if_they_were_asked(
    data: DataFolder, data_folder: Path, tmp_path: Path
) -> None:
    better = {pair.id: int(pair.tags[BETTER]) for pair in _pairs(data, "llmbar")}
    right, wrong, turned, tied, lost = (f"Natural/{number}" for number in range(5))
    rows: list[tuple[str, int, Any]] = [
        *((right, first, better[right]) for first in (1, 2)),
        *((wrong, first, 3 - better[wrong]) for first in (1, 2)),
        *((turned, first, first) for first in (1, 2)),
        *((tied, first, "tie") for first in (1, 2)),
        (lost, 1, None),  # and nothing at all in the other order
    ]
    report = eh.measure(
        "llmbar",
        out=tmp_path / "run",
        options={"answers": _stored(tmp_path / "verdicts.jsonl", rows)},
        data=data_folder,
    )
    assert report["accuracy"].value == (2 + 0 + 1 + 1) / 8
    assert report["accuracy"].n == 8
    assert report["right_both"].value == 1 / 4
    assert report["consistency"].value == 3 / 4
    assert report.coverage.scored == 8


def test_stored_verdicts_that_belong_to_no_pair_or_stand_twice_are_refused(
    data: DataFolder, tmp_path: Path
) -> None:
    one = instrument_named("llmbar")
    for rows, fact in (
        ([("Nowhere/0", 1, 1)], "'Nowhere/0:1'"),
        ([("Natural/0", 1, 1), ("Natural/0", 1, 2)], "line 2"),
        ([("Natural/0", 3, 1)], "line 1"),
    ):
        file = _stored(tmp_path / "verdicts.jsonl", rows)
        with raises_naming(eh.UserError, fact):
            one.questions(data, one.options_from({"answers": file}))
    with raises_naming(eh.UserError, "--sample"):
        one.questions(data, one.options_from({"answers": file, "sample": 3}))


# As the page of results names them, and the first numbers of their rows.
RECORDED = {
    "GPT-4": ("GPT-4", "Vanilla"),
    "GPT-4, chain of thought": ("GPT-4", "CoT"),
    "PaLM 2": ("PaLM2", "Vanilla"),
    "Falcon-180B-Chat": ("Falcon", "Vanilla"),
    "LLaMA-2-70B-Chat": ("LLaMA2", "Vanilla"),
    "ChatGPT": ("ChatGPT", "Vanilla"),
}


@pytest.fixture(scope="module")
def records(data_folder: Path) -> list[dict[str, Any]]:
    file = data_folder / "recorded/llmbar_judges/verdicts.jsonl.gz"
    if not file.is_file():
        pytest.skip(f"no {file}")
    with gzip.open(file, "rt") as lines:
        return [json.loads(line) for line in lines]


def _winners(records: list[dict[str, Any]], name: str) -> list[tuple[int | None, int | None, int]]:
    rows = [row for row in records if (row["judge"], row["strategy"]) == RECORDED[name]]
    winners = [[row[order]["winner"] for order in ("plain", "swapped")] for row in rows]
    return [
        (*(int(winner) if winner in ("1", "2") else None for winner in pair), row["label"])
        for row, pair in zip(rows, winners, strict=True)
    ]


@pytest.mark.parametrize("name", RECORDED)
def test_the_page_has_the_shares_that_the_records_of_a_judge_give(
    records: list[dict[str, Any]], name: str
) -> None:
    judged = _winners(records, name)
    single = [winner == label for *pair, label in judged for winner in pair if winner]
    whole = [(a, b, label) for a, b, label in judged if a and b]
    shares = (
        sum(single) / len(single),
        sum(a == b == label for a, b, label in whole) / len(whole),
        sum(a == b for a, b, _ in whole) / len(whole),
    )
    page = (Path(__file__).parents[3] / "docs/results.md").read_text()
    section = page.split("\n## Recorded judges on LLMBar\n")[1].split("\n## ")[0]
    [row] = [line for line in section.splitlines() if line.startswith(f"| {name} |")]
    cells = [cell.split()[0] for cell in row.strip("| ").split("|")[1:]]
    assert cells == [str(len(single)), *(f"{share:.2f}" for share in shares)]


def test_recorded_verdicts_have_these_shares_when_they_are_measured(
    records: list[dict[str, Any]], data_folder: Path, tmp_path: Path
) -> None:
    rows: list[tuple[str, int, Any]] = [
        (f"{row['subset'].split('/')[-1]}/{row['index']}", first, int(row[order]["winner"]))
        for row in records
        if (row["judge"], row["strategy"]) == RECORDED["Falcon-180B-Chat"]
        for first, order in ((1, "plain"), (2, "swapped"))
    ]
    report = eh.measure(
        "llmbar",
        out=tmp_path / "run",
        options={"answers": _stored(tmp_path / "verdicts.jsonl", rows)},
        data=data_folder,
    )
    names = ("accuracy", "right_both", "consistency")
    assert [round(report[name].value or 0, 3) for name in names] == [0.564, 0.272, 0.415]
