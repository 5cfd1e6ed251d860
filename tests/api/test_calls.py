"""The front door as a script or a notebook calls it."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import evenhand as eh
from evenhand.methods import DefaultPrompt, StarDTox
from evenhand.models.base import ModelRequest
from tests.api.titles import Titles
from tests.errors import Fact, assert_names, raises_naming
from tests.loopback.faulty import well
from tests.loopback.process import in_own_process


def knows_not(request: ModelRequest) -> str:
    """Guesses "She" for nurses alone; in plain words, says one sentence."""
    if request.schema is None:
        return "People differ."
    nurse = any("nurse" in message.content for message in request.messages)
    return json.dumps({"answer": "A" if nurse else "C"})


def model(name: str = "scripted") -> eh.ScriptedModel:
    return eh.ScriptedModel(knows_not, name=name)


# -- loops ---------------------------------------------------------------------------------------


def test_an_answer_needs_no_loop() -> None:
    final = eh.answer("Describe a nurse.", model=model(), method="default")
    assert final.text == "People differ."
    assert [turn.role for turn in final.turns] == ["generator"]


async def test_an_answer_comes_in_a_running_loop_as_every_notebook_has_one() -> None:
    assert eh.answer("Describe a nurse.", model=model(), method="default").text == "People differ."
    awaited = await eh.aio.answer("Describe a nurse.", model=model(), method="default")
    assert awaited.text == "People differ."


async def test_one_endpoint_is_used_by_calls_with_and_without_await() -> None:
    """A connection belongs to one loop; here there are two."""
    with in_own_process(well) as server:
        async with eh.Endpoint(server.url, model="faulty") as endpoint:
            for _ in range(2):
                assert eh.answer("Hello.", model=endpoint, method="default").text
                assert (await eh.aio.answer("Hello.", model=endpoint, method="default")).text
                await endpoint.close()


@dataclass(frozen=True)
class Nested:
    """A method that calls the door which waits, from within the loop that it would wait for."""

    name: ClassVar[str] = "nested"

    def agents(self) -> tuple[eh.Agent[Any], ...]:
        return ()

    async def answer(self, item: eh.Item, ask: eh.Ask) -> eh.Answer:
        return eh.answer(item, model=model(), method="default")


def test_a_method_that_would_wait_for_its_own_loop_is_refused_and_told_of_aio() -> None:
    with raises_naming(eh.UserError, "evenhand.aio"):
        eh.answer("Hello.", model=model(), method=Nested())


def _answer_in_child(found: Any) -> None:
    found.put(eh.answer("Hello.", model=model(), method="default").text)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_a_loop_of_its_own() -> None:
    eh.answer("Hello.", model=model(), method="default")
    context = multiprocessing.get_context("fork")
    found = context.Queue()
    child = context.Process(target=_answer_in_child, args=(found,))
    child.start()
    assert found.get(timeout=300) == "People differ."
    child.join(30)


def test_ctrl_c_ends_a_call_and_what_was_answered_is_kept(tmp_path: Path) -> None:
    code = """
        import sys, evenhand as eh
        slow = eh.ScriptedModel(lambda request: "fine", seconds=0.2)
        print("begun", flush=True)
        try:
            eh.mitigate(["hello"] * 500, model=slow, method="default", out=sys.argv[1],
                        concurrency=2)
        except KeyboardInterrupt:
            run = eh.open_run(sys.argv[1])
            print(0 < run.totals.items < 500, flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        assert script.stdout.readline() == "begun\n"
        journal = tmp_path / "run" / "journal"
        for _ in range(600):
            if journal.is_dir() and any(file.stat().st_size for file in journal.iterdir()):
                break
            assert script.poll() is None
            time.sleep(0.05)
        time.sleep(1.0)
        os.kill(script.pid, signal.SIGINT)
        assert script.stdout.readline() == "True\n"
        assert script.wait(60) == 0


# -- what may be given ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        ({"model": "gpt-4o"}, ("a str", "evenhand.Endpoint")),
        ({"model": eh.ScriptedModel}, ("class ScriptedModel",)),
        ({"model": None}, ("model=evenhand.Endpoint",)),
        ({"method": "stardotx"}, ("'stardotx'", "default, fairness")),
        ({"method": StarDTox}, ("class StarDTox", "StarDTox()")),
        ({"method": 3}, ("an int", "evenhand.methods.StarDTox()")),
    ],
)
def test_what_is_no_model_or_method_is_refused_with_what_to_write(
    tmp_path: Path, given: dict[str, Any], facts: tuple[str, ...]
) -> None:
    settings: dict[str, Any] = {"model": model(), "method": "default", **given}
    with raises_naming(eh.UserError, *facts):
        eh.answer("Hello.", **settings)
    with raises_naming(eh.UserError, *facts):
        eh.measure(Titles(), out=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("instrument", "options", "facts"),
    [
        ("titels", {}, ("'titels'", "bbq, rtp")),
        (Titles, {}, ("class Titles", "add parentheses")),
        (Titles(), {"occupation": 3}, ("titles", "'occupation'", "occupations")),
        (Titles(), {"occupations": "many"}, ("titles: occupations", "valid integer")),
        (Titles(), {"occupations": 1}, ("titles: occupations", 1, 2)),
    ],
)
def test_what_is_no_instrument_or_option_is_refused_with_what_there_is(
    tmp_path: Path, instrument: Any, options: dict[str, Any], facts: tuple[Fact, ...]
) -> None:
    with raises_naming(eh.UserError, *facts):
        eh.measure(instrument, model=model(), out=tmp_path / "run", options=options)


@pytest.mark.parametrize(
    ("items", "facts"),
    [
        ("Describe a nurse.", ("a str", "a list")),
        (eh.Item(id="1", prompt="x"), ("an Item", "a list")),
        ([3], ("item 0", "an int", "evenhand.Item")),
    ],
)
def test_a_prompt_where_a_list_is_meant_is_refused(
    tmp_path: Path, items: Any, facts: tuple[str, ...]
) -> None:
    """A str is a sequence of letters, each of which would be a prompt."""
    with raises_naming(eh.UserError, *facts):
        eh.mitigate(items, model=model(), out=tmp_path / "run")


def test_a_method_is_given_by_its_name_or_as_an_object(tmp_path: Path) -> None:
    methods: list[Any] = ["default", DefaultPrompt()]
    for number, method in enumerate(methods):
        made = eh.mitigate(["Hello."], model=model(), method=method, out=tmp_path / str(number))
        assert made.record.method == {"name": "default", "settings": {"wording": 1}}


# -- runs ----------------------------------------------------------------------------------------


def test_a_folder_that_is_named_by_a_url_stays_a_url(tmp_path: Path) -> None:
    """In a `Path`, s3://bucket/run would become s3:/bucket/run."""
    made = eh.mitigate(["Hello."], model=model(), method="default", out=f"file://{tmp_path}/run")
    assert made.results()["text"].to_list() == ["People differ."]
    assert (tmp_path / "run" / "run.json").is_file()


def test_tags_and_scores_are_columns_and_what_an_item_lacks_is_null(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> str:
        if request.schema is None:
            return "People differ."
        if request.schema.name == "harm":
            return '{"reason": "nothing", "harm": 2}'
        return '{"reason": "none", "fluency": 95, "coherence": 93, "relevance": 97}'

    items = [
        eh.Item(id="a", prompt="Hello.", tags={"group": "x"}),
        eh.Item(id="b", prompt="Hello.", tags={"place": "y"}),
        eh.Item(id="c", prompt=""),
    ]
    made = eh.mitigate(items, model=eh.ScriptedModel(script), out=tmp_path / "run")
    results = made.results()
    assert results["tag.group"].to_list() == ["x", None, None]
    assert results["tag.place"].to_list() == [None, "y", None]
    assert results["score.harm"].to_list() == [0.02, 0.02, None]
    assert results["score_before.fluency"].to_list() == [0.95, 0.95, None]
    assert made.totals.failed == {"empty_prompt": 1}
    assert len(made.turns()) == 6
    summary = repr(made)
    assert_names(summary, f"{tmp_path / 'run'}", "stardtox", "3 of 3")


def test_a_recorded_run_is_played_back_without_a_model(tmp_path: Path) -> None:
    first = eh.mitigate(["Hello."], model=model(), method="default", out=tmp_path / "first")
    again = eh.mitigate(
        ["Hello."], method="default", out=tmp_path / "again", replay=tmp_path / "first"
    )
    assert again.results().equals(first.results())


# -- measurements --------------------------------------------------------------------------------


def test_an_instrument_of_ones_own_is_measured_compared_and_opened_again(tmp_path: Path) -> None:
    """Of 4 occupations with 2 questions each, all of the nurse's are guessed: 2 of 8. The plain
    model guesses none where it always says "inconclusive"."""
    before = eh.measure(Titles(), model=model(), out=tmp_path / "before")
    assert before["guessed"].value == 0.25
    assert (before["guessed"].n, before["guessed"].clusters) == (8, 4)
    fair = eh.ScriptedModel(lambda _: '{"answer": "C"}', name="fair")
    after = eh.measure(Titles(), model=fair, out=tmp_path / "after")
    diff = eh.compare(before, after)
    assert diff["guessed"].difference == -0.25
    same = eh.compare(tmp_path / "before", eh.open_run(tmp_path / "after"), instrument=Titles())
    assert same["guessed"] == diff["guessed"]
    again = eh.open_run(tmp_path / "before").report(Titles())
    assert again.estimates == before.estimates
    with raises_naming(eh.UserError, "run of titles", tmp_path / "before", "evenhand runs show"):
        eh.open_run(tmp_path / "before").report()


def test_what_a_cap_stopped_is_a_report_of_a_part_and_a_higher_cap_goes_on(tmp_path: Path) -> None:
    first = eh.measure(Titles(), model=model(), out=tmp_path / "run", max_calls=5, concurrency=1)
    assert (first.not_run, first.coverage.n) == (3, 5)
    rest = model()
    whole = eh.measure(Titles(), model=rest, out=tmp_path / "run", max_calls=8)
    assert (whole.not_run, rest.requests) == (0, 3)


def test_a_cap_before_the_first_answer_is_an_error_that_names_it(tmp_path: Path) -> None:
    with raises_naming(eh.UserError, "max_calls", tmp_path / "run"):
        eh.measure(Titles(), model=model(), out=tmp_path / "run", max_calls=0)


def test_a_cap_on_money_takes_a_file_of_prices(tmp_path: Path) -> None:
    """A word costs 1 USD, in and out: the run costs as many as it has words."""
    prices = tmp_path / "prices.toml"
    prices.write_text(
        "[models.scripted]\nper_million_prompt_tokens = 1_000_000\n"
        "per_million_completion_tokens = 1_000_000\n"
    )
    settings: dict[str, Any] = {"model": model(), "prices": prices, "concurrency": 1}
    found = eh.measure(Titles(), out=tmp_path / "run", max_cost=10_000, **settings)
    assert found.money.currency == "USD"
    words = found.cost.tokens.total
    assert found.money.cost == words


def test_a_finished_run_is_given_back_without_a_call_and_without_a_model(tmp_path: Path) -> None:
    first = eh.measure(Titles(), model=model(), out=tmp_path / "run")
    again = eh.measure(Titles(), out=tmp_path / "run")
    assert again.estimates == first.estimates


def test_a_finished_run_of_another_model_is_not_given_back_as_if_it_were_this_ones(
    tmp_path: Path,
) -> None:
    eh.measure(Titles(), model=model("one"), out=tmp_path / "run")
    with raises_naming(eh.UserError, "model one", "model other", "--out"):
        eh.measure(Titles(), model=model("other"), out=tmp_path / "run")


def test_a_forecast_answers_a_part_that_the_measurement_then_finds_done(tmp_path: Path) -> None:
    """All 12 items are fewer than the 50 of a pilot, so 12 calls are expected and made."""
    asked = model()
    settings: dict[str, Any] = {
        "model": asked,
        "out": tmp_path / "run",
        "options": {"occupations": 6},
    }
    expected = eh.forecast(Titles(), **settings)
    assert expected.totals["calls"].expected == 12
    assert eh.measure(Titles(), **settings).not_run == 0
    assert asked.requests == 12


class Closable(eh.ScriptedModel):
    """Counts how often it is closed."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1


async def test_an_awaited_measurement_leaves_the_model_open_for_others_that_share_it(
    tmp_path: Path,
) -> None:
    shared = Closable(knows_not)
    await eh.aio.measure(Titles(), model=shared, out=tmp_path / "run", dedupe=True)
    await eh.aio.mitigate(["Hello."], model=shared, method="default", out=tmp_path / "more")
    assert shared.closed == 0


def test_a_call_that_waits_closes_the_model_at_its_end(tmp_path: Path) -> None:
    own = Closable(knows_not)
    eh.measure(Titles(), model=own, out=tmp_path / "run")
    assert own.closed == 1


# -- how findings show themselves ----------------------------------------------------------------


def test_every_finding_is_a_page_a_table_and_a_file(tmp_path: Path) -> None:
    report = eh.measure(Titles(), model=model(), out=tmp_path / "run")
    found: list[Any] = [
        report,
        eh.compare(report, report),
        eh.open_run(tmp_path / "run"),
        eh.answer("Describe <b>a nurse</b>.", model=model(), method="default"),
    ]
    for number, one in enumerate(found):
        assert one._repr_html_().startswith("<style>")
        assert len(one.frame()) >= 1
        for ending in ("html", "md", "json", "parquet", "csv"):
            one.save(str(tmp_path / f"{number}.{ending}"))
            assert (tmp_path / f"{number}.{ending}").stat().st_size
    assert "<b>a nurse</b>" not in (tmp_path / "3.html").read_text()
