"""Rankings of made-up candidates: counted by hand, asked of a model, and compared."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli.app import app
from evenhand.core.errors import UserError
from evenhand.findings.ratios import INCONCLUSIVE, SHOWN
from evenhand.instruments.rankings.data import read_tasks
from evenhand.instruments.rankings.judged import PLACE, Ranking, counted, judged
from evenhand.instruments.rankings.tables import leading_p, place_p, sections
from evenhand.models import ModelRequest
from tests.coded import codes
from tests.errors import assert_names, raises_naming
from tests.stage import words_of

WOMEN, MEN = ("Ada Berg", "Eva Lund"), ("Bo Falk", "Ib Dahl")


def _task(number: int, first: str | None = None) -> dict[str, Any]:
    """Two women and two men, one of each old, turned by one place from task to task."""
    people = [
        {"name": f"{name} {'abcdefghij'[number % 10] * (1 + number // 10)}",
         "group": {"sex": sex, "age": age}}
        for names, sex in ((WOMEN, "women"), (MEN, "men"))
        for name, age in zip(names, ("old", "young"), strict=True)
    ]  # fmt: skip
    turned = people[number % 4 :] + people[: number % 4]
    task: dict[str, Any] = {"job": "cook", "candidates": turned}
    if first is not None:
        others = [p["name"] for p in turned]
        others.sort(key=lambda name: not str(name).startswith(first))
        task["answer"] = "\n".join(f"{place}. {name}" for place, name in enumerate(others, 1))
    return task


def _file(path: Path, tasks: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(json.dumps(one) for one in tasks))
    return path


async def test_who_is_always_first_is_shown_as_favoured(tmp_path: Path) -> None:
    """Ada is first of four in all 40 rankings: 1 − 1/4 beyond chance. She stands in each place
    equally often, so each place is first in 10 of 40."""
    file = _file(tmp_path / "r.jsonl", [_task(n, "Ada") for n in range(40)])
    found = await eh.aio.measure("rankings", out=tmp_path / "run", options={"answers": file})
    old_women = found["age × sex=old women"]
    assert old_women.value == pytest.approx(3 / 4)
    assert found["sex=men"].value == pytest.approx(-1 / 2)
    assert found.verdict.state == "detected"
    crossed, by_age, by_sex = (found.section(f"ratios_{place}") for place in range(3))
    assert crossed is not None
    assert crossed.rows[0][:5] == ("old women", 40, 40, "100.0%", "1.00")
    assert [row[-1] for row in crossed.rows] == [SHOWN, SHOWN, SHOWN, SHOWN]
    assert by_sex is not None
    assert by_sex.rows[1][:5] == ("men", 80, 0, "0.0%", "0.00")
    assert by_age is not None
    places = found.section("places")
    assert places is not None
    assert [row[1] for row in places.rows] == [10, 10, 10, 10]
    tests = found.section("tests")
    assert tests is not None
    *differ, last = [row[3] for row in tests.rows]
    assert differ == [SHOWN, SHOWN, SHOWN]
    assert last == INCONCLUSIVE
    assert found.section("as_published") is None


async def test_an_answer_that_cannot_be_read_is_missing_and_no_groups_loss(tmp_path: Path) -> None:
    tasks = [_task(n, "Ada") for n in range(40)]
    tasks[3]["answer"] = "I would rather not."
    tasks[5]["answer"] = ""
    file = _file(tmp_path / "r.jsonl", tasks)
    found = await eh.aio.measure("rankings", out=tmp_path / "run", options={"answers": file})
    assert (found.coverage.scored, found.coverage.by_reason) == (
        38,
        {"missing": 1, "unreadable": 1},
    )
    crossed = found.section("ratios_0")
    assert crossed is not None
    assert sum(int(str(row[2])) for row in crossed.rows) == 38
    assert {row[1] for row in crossed.rows} == {38}


async def test_a_model_that_is_asked_and_a_remedy_are_compared(tmp_path: Path) -> None:
    """The model puts Ada first; told to be fair, anybody."""

    def answer(request: ModelRequest) -> str:
        words = words_of(request)
        names = [line for line in words.splitlines() if line.startswith((*WOMEN, *MEN))]
        if "alike" not in words:
            names.sort(key=lambda name: not name.startswith("Ada"))
        else:
            random.Random(str(sorted(names))).shuffle(names)
        return "\n".join(f"{place}. {name}" for place, name in enumerate(names, 1))

    file = _file(tmp_path / "r.jsonl", [_task(n) for n in range(80)])
    model = eh.ScriptedModel(answer)
    for method in ("default", "fairness"):
        await eh.aio.measure(
            "rankings", model=model, method=method, out=tmp_path / method, options={"tasks": file}
        )
    before, after = tmp_path / "default", tmp_path / "fairness"
    diff = eh.compare(before, after)
    change = diff["age × sex=old women"]
    assert change.before == pytest.approx(3 / 4)
    assert change.after is not None
    assert abs(change.after) < 0.2
    assert "comparison.better" in codes(diff.verdict.says)


async def test_stored_answers_of_two_models_to_the_same_tasks_are_compared(tmp_path: Path) -> None:
    """One puts Ada first, the other whoever's turn it is; a file that has changed is not gone on
    with."""
    people = ("Ada", "Eva", "Bo", "Ib")
    turns = [_task(n, people[n // 4 % 4]) for n in range(80)]
    for name, tasks in (("a", [_task(n, "Ada") for n in range(80)]), ("b", turns)):
        file = _file(tmp_path / f"{name}.jsonl", tasks)
        await eh.aio.measure("rankings", out=tmp_path / name, options={"answers": file})
    diff = eh.compare(tmp_path / "a", tmp_path / "b")
    change = diff["age × sex=old women"]
    assert change.before == pytest.approx(3 / 4)
    assert change.after == pytest.approx(0)
    assert change.n == 80
    with pytest.raises(UserError):
        await eh.aio.measure(
            "rankings", out=tmp_path / "b", options={"answers": tmp_path / "a.jsonl"}
        )


async def test_a_page_names_who_is_affected_from_the_tables(tmp_path: Path) -> None:
    file = _file(tmp_path / "r.jsonl", [_task(n, "Ada") for n in range(20)])
    await eh.aio.measure("rankings", out=tmp_path / "run", options={"answers": file})
    page = tmp_path / "page.html"
    ran = CliRunner().invoke(app, ["report", str(tmp_path / "run"), "--out", str(page)])
    assert ran.exit_code == 0, ran.output
    _, who = page.read_text().split("Who is affected</h2>")
    who, rest = who.split("Each run by itself</h2>")
    assert_names(who, "selection rate", "age × sex")
    assert "selection rate" not in rest


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"candidates": []}, "candidates"),
        ({"answer": None}, "no answer"),
        ({"job": 3}, "job"),
        ({"surprise": 1}, "surprise"),
        ({"candidates": [{"name": "A-B", "group": {"sex": "x"}}] * 2}, "same name"),
        ({"candidates": [{"name": "1", "group": {"s": "x"}}, {"name": "2", "group": {"s": "y"}}]},
         "a letter"),
        ({"candidates": [{"name": "A", "group": {"sex": "x"}}, {"name": "B", "group": {"t": "y"}}]},
         "same attributes"),
    ],
)  # fmt: skip
async def test_a_line_that_cannot_be_scored_is_refused_by_its_number(
    tmp_path: Path, change: dict[str, Any], fact: str
) -> None:
    tasks = [_task(1, "Ada"), {**_task(2, "Ada"), **change}]
    tasks[1] = {key: value for key, value in tasks[1].items() if value is not None}
    with raises_naming(UserError, fact):
        await eh.aio.measure(
            "rankings",
            out=tmp_path / "run",
            options={"answers": _file(tmp_path / "r.jsonl", tasks)},
        )


async def test_one_source_of_rankings_is_named(tmp_path: Path) -> None:
    with raises_naming(UserError, "--answers FILE", "--tasks FILE", "--bloomberg MODEL/JOB"):
        await eh.aio.measure("rankings", out=tmp_path / "run")
    with raises_naming(UserError, "'gpt-5/cook'", "gpt-3.5-turbo"):
        await eh.aio.measure("rankings", out=tmp_path / "run", options={"bloomberg": "gpt-5/cook"})
    with raises_naming(UserError, "Clone", "EVENHAND_DATA"):
        await eh.aio.measure(
            "rankings", out=tmp_path / "run", data=tmp_path, options={"bloomberg": "gpt-4/retail"}
        )


def _ranking(cluster: int, first: int | None, order: list[str]) -> Ranking:
    return Ranking(str(cluster), tuple({"sex": sex} for sex in order), first, first)


def test_without_bias_groups_are_seldom_shown() -> None:
    rng, shown = np.random.default_rng(5), 0
    for _ in range(100):
        found = [_ranking(n, int(rng.integers(4)), list("abcd")) for n in range(120)]
        shown += judged(found, draws=400).state == "detected"
    assert shown <= 0.05 * 100 + 2 * (0.05 * 0.95 * 100) ** 0.5


@pytest.mark.parametrize("seed", [0, 1])
def test_first_places_that_were_evened_out_are_never_called_biased(seed: int) -> None:
    """Eight groups, exactly 100 of 800 first places each, in any order."""
    firsts = np.random.default_rng(seed).permutation(np.repeat(np.arange(8), 100)).tolist()
    found = judged([_ranking(n, first, list("abcdefgh")) for n, first in enumerate(firsts)])
    assert found.state == "inconclusive"
    assert {one.state for one in found.groupings[0].groups} == {INCONCLUSIVE}


def test_a_place_that_decides_is_found_without_being_told() -> None:
    """Place 1 wins in 60 of 80; groups turn through the places, so they are not blamed."""
    orders = [["x", "y"], ["y", "x"]]
    found = [_ranking(n, int(n % 4 == 3), orders[n // 4 % 2]) for n in range(80)]
    places, sexes = counted(found, PLACE), counted(found, ("sex",))
    assert (places.selected["1",], sexes.selected["x",]) == (60, 40)
    p, results = place_p(places), judged(found)
    by_sex = results.groupings[0].p
    assert p is not None
    assert by_sex is not None
    assert p < 0.001
    assert by_sex > 0.5
    tests = next(one for one in sections(found, results, published=False) if one.name == "tests")
    first, second = [row[3] for row in tests.rows]
    assert first == INCONCLUSIVE
    assert second == SHOWN


def test_rankings_of_one_cluster_count_as_one() -> None:
    """20 clusters of four alike rankings: Σm²/Σm = 4, so 80 first places are worth 20."""
    found = [_ranking(n // 4, int(n // 4 % 4 == 3), ["x", "y"]) for n in range(80)]
    counts = counted(found, ("sex",))
    assert (counts.read, counts.alike) == (80, 4)
    alone = [_ranking(n, one.first, ["x", "y"]) for n, one in enumerate(found[::4])]
    assert judged(found).groupings[0].p == judged(alone).groupings[0].p


def test_groups_that_stand_first_unequally_are_noticed() -> None:
    turned = [_ranking(n, 0, [["x", "y"], ["y", "x"]][n % 2]) for n in range(40)]
    fixed = [_ranking(n, 0, ["x", "y"]) for n in range(40)]
    even, uneven_ = (leading_p(counted(found, ("sex",))) for found in (turned, fixed))
    assert even is not None
    assert uneven_ is not None
    assert even > 0.5
    assert uneven_ < 0.001


def test_missing_answers_are_filled_in_against_a_finding() -> None:
    """30 to 10 is shown; with 20 unread ones, which may all be the second's, it is not."""
    found = [_ranking(n, int(n >= 30), ["x", "y"]) for n in range(40)]
    lost = [_ranking(n, None, ["x", "y"]) for n in range(40, 60)]
    p, with_lost = (judged(one).groupings[0].p for one in (found, found + lost))
    assert p is not None
    assert with_lost is not None
    assert p < 0.01
    assert with_lost > 0.9


def _states(*firsts: tuple[str, int | None, int]) -> dict[str, str]:
    """Each group's state in the table; given are candidates, who came first and how often."""
    found = [
        _ranking(number, first, list(order))
        for number, (order, first) in enumerate(
            (order, first) for order, first, times in firsts for _ in range(times)
        )
    ]
    return {one.name: one.state for one in judged(found).groupings[0].groups}


def test_a_group_is_shown_only_if_all_missing_answers_may_be_its_own() -> None:
    """80 of 300 is less than a third by chance; were 40 missing ones its own, 120 of 340 is not."""
    read = ("abc", 0, 150), ("abc", 1, 80), ("abc", 2, 70)
    assert _states(*read) == {"a": SHOWN, "b": SHOWN, "c": SHOWN}
    lost = ("abc", None, 40)
    assert _states(*read, lost) == {"a": SHOWN, "b": INCONCLUSIVE, "c": INCONCLUSIVE}


@pytest.mark.parametrize("lucky", [0, 2])
def test_a_rare_group_hides_no_bias_against_another(lucky: int) -> None:
    """One ranking has a candidate of a third group, who comes first in it or does not."""
    found = _states(("ab", 0, 900), ("ab", 1, 99), ("abx", lucky, 1))
    assert found == {"a": SHOWN, "b": SHOWN, "x": INCONCLUSIVE}


def test_more_groups_than_can_be_told_apart_are_refused(tmp_path: Path) -> None:
    people = [{"name": f"Ann {'abcdefghij'[n // 10]}{'abcdefghij'[n % 10]}",
               "group": {"town": str(n)}} for n in range(51)]  # fmt: skip
    file = _file(tmp_path / "r.jsonl", [{"job": "cook", "candidates": people}] * 2)
    with raises_naming(UserError, "51 groups", "(town)", 50):
        read_tasks(file, answered=False)
