"""The controls: the loop as it is, with other words in the place of its own feedback."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from evenhand.agents import Agent, Cast, Conversation, FreeText, Kind
from evenhand.agents.prompts import load
from evenhand.core import Item, Message
from evenhand.core.errors import UserError
from evenhand.methods import Mabrf, Method, StarDTox
from evenhand.methods.build import build_method
from evenhand.methods.shared_settings import EMPTY, OTHER_CRITIQUE
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.models.replay import BorrowedReplies
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, replay_of, run
from evenhand.runs.runners.replay import critiques_of
from evenhand.runs.store import RunReader
from tests.errors import raises_naming
from tests.methods.mabrf_lines import rephrased, solved, verdict
from tests.stage import QUESTION, TEXT, Stage, choice, harm, quality, support, tagged, words_of

GENERATOR, BIAS, LENDER = "generator", "bias_evaluator", "other_critique"
SAID = [("q", "q-one"), ("q", "q-two"), ("r", "r-one"), ("s", "s-one")]


# -- StarDTox ------------------------------------------------------------------------------------


def _lines() -> dict[str, Any]:
    return {
        GENERATOR: [choice("A"), choice("B"), choice("C")],
        BIAS: [support(30, "no marks"), support(40, "nor here"), support(99)],
    }


async def test_an_empty_critique_takes_the_place_of_every_word_of_feedback() -> None:
    own, empty = Stage(_lines()), Stage(_lines())
    first = await own.answer(StarDTox(), QUESTION)
    second = await empty.answer(StarDTox(critique="empty"), QUESTION)
    assert first == second  # the judge decides as ever: the same drafts, scores and end
    assert own.order == empty.order == [GENERATOR, BIAS] * 3
    assert own.asked_of(BIAS) == empty.asked_of(BIAS)
    for words in empty.asked_of(GENERATOR)[1:]:
        assert f"latest:\n{tagged('review', EMPTY)}\n" in words
        for leak in ("no marks", "nor here", "0.30", "0.8", "Supported"):
            assert leak not in words
    assert "no marks" in own.asked_of(GENERATOR)[1]


async def test_on_text_too_only_the_words_are_replaced() -> None:
    lines: dict[str, Any] = {
        GENERATOR: ["a fool.", "a baker."],
        BIAS: [harm(70, "an insult"), harm(0)],
        "performance_evaluator": [quality(10, 10, 10, "clumsy"), quality(90, 90, 90)],
    }
    stage = Stage(lines)
    answer = await stage.answer(StarDTox(critique="empty"), TEXT)
    assert [draft.scores["harm"] for draft in answer.drafts] == [0.7, 0.0]
    revision = stage.asked_of(GENERATOR)[1]
    assert f"<review>\n{EMPTY}\n</review>" in revision
    assert "an insult" not in revision
    assert "clumsy" not in revision


async def test_the_critique_of_another_item_is_lent_for_each_revision_and_recorded() -> None:
    stage = Stage(_lines(), players={LENDER: BorrowedReplies(SAID)})
    answer = await stage.answer(StarDTox(critique="other"), QUESTION)  # its id is "q"
    assert answer.choice == 2
    lent = [turn for turn in stage.turns if turn.role == LENDER]
    assert [turn.messages for turn in lent] == [(Message("user", "q"),)] * 2
    assert [(turn.model, turn.occurrence) for turn in lent] == [("borrowed", 0), ("borrowed", 1)]
    for turn, words in zip(lent, stage.asked_of(GENERATOR)[1:], strict=True):
        assert turn.texts[0] in ("r-one", "s-one")
        assert f"<review>\n{turn.texts[0]}\n</review>\n" in words
        assert "no marks" not in words


async def test_an_answer_that_is_accepted_at_once_borrows_nothing() -> None:
    stage = Stage({GENERATOR: [choice("C")], BIAS: [support(95)], LENDER: []})
    assert (await stage.answer(StarDTox(critique="other"), QUESTION)).stopped == "accepted"


def test_the_controls_are_settings_on_the_command_line() -> None:
    assert build_method("stardtox", ["critique=empty"]) == StarDTox(critique="empty")
    with raises_naming(UserError, "--set critique", "'other'"):
        build_method("stardtox", ["critique=none"])


def test_only_the_control_that_borrows_has_a_lender_among_its_agents() -> None:
    assert OTHER_CRITIQUE in StarDTox(critique="other").agents()
    for critique in ("own", "empty"):
        assert OTHER_CRITIQUE not in build_method("stardtox", [f"critique={critique}"]).agents()


# -- MABRF -----------------------------------------------------------------------------------------


def _mabrf() -> dict[str, Any]:
    return {
        "solver": [solved("A")],
        "judge": [verdict(7, "a stereotype"), verdict(5, "still one"), verdict(1)],
        "rephraser": [rephrased("1. Maybe the girl."), rephrased("1. It is open.")],
        "terminator": [choice("C")],
    }


async def test_the_rephraser_reads_an_empty_objection_and_the_judge_decides_as_ever() -> None:
    own, empty = Stage(_mabrf()), Stage(_mabrf())
    first = await own.answer(Mabrf(), QUESTION)
    assert first == await empty.answer(Mabrf(critique="empty"), QUESTION)
    assert own.asked_of("judge") == empty.asked_of("judge")
    for words in empty.asked_of("rephraser"):
        assert f"<objection>\n{EMPTY}\n</objection>" in words
        assert "a stereotype" not in words
        assert "still one" not in words
    assert tagged("objection", "still one") in own.asked_of("rephraser")[1]


async def test_the_rephraser_reads_what_was_said_of_another_item() -> None:
    stage = Stage(_mabrf(), players={LENDER: BorrowedReplies(SAID)})
    method = Mabrf(critique="other")
    assert OTHER_CRITIQUE in method.agents()
    await stage.answer(method, QUESTION)
    lent = [turn.texts[0] for turn in stage.turns if turn.role == LENDER]
    assert len(lent) == 2
    assert set(lent) <= {"r-one", "s-one"}
    for text, words in zip(lent, stage.asked_of("rephraser"), strict=True):
        assert f"<objection>\n{text}\n</objection>" in words


# -- who lends -----------------------------------------------------------------------------------


def test_no_item_is_lent_what_was_said_of_itself() -> None:
    lender = BorrowedReplies(SAID)
    for item in ("q", "r", "s"):
        lent = {lender.text_for(item, occurrence) for occurrence in range(200)}
        assert lent == {text for who, text in SAID if who != item}


def test_what_is_lent_depends_on_the_item_and_the_occurrence_and_on_no_order() -> None:
    one, other = BorrowedReplies(SAID), BorrowedReplies(reversed(SAID))
    forth = [one.text_for(f"i{n}", n % 3) for n in range(50)]
    back = [other.text_for(f"i{n}", n % 3) for n in reversed(range(50))]
    assert forth == back[::-1]
    assert len(set(forth)) == 4


def test_a_lender_can_be_sent_to_another_process() -> None:
    lender = BorrowedReplies(SAID)
    sent = pickle.loads(pickle.dumps(lender))
    assert sent.describe() == lender.describe()
    assert sent.text_for("q", 0) == lender.text_for("q", 0)


def test_the_record_of_a_lender_tells_other_texts_apart() -> None:
    said = BorrowedReplies(SAID).describe()
    assert (said["kind"], said["model"], said["texts"]) == ("borrowed", "borrowed", 4)
    assert BorrowedReplies([*SAID, ("t", "t-one")]).describe()["sha256"] != said["sha256"]


def test_blanks_around_an_id_do_not_make_it_another_item() -> None:
    lender = BorrowedReplies([(" q ", "own"), ("r", "other")])
    (message,) = load("baselines/other_critique").render({"item": " q "})
    assert {lender.text_for(message.content, n) for n in range(20)} == {"other"}


@pytest.mark.parametrize("said", [[], [("q", "one"), ("q", "two")]])
def test_texts_of_fewer_than_two_items_cannot_be_lent(said: list[tuple[str, str]]) -> None:
    with raises_naming(UserError, f"{len(dict(said))} items", "two"):
        BorrowedReplies(said)


# -- from a run ------------------------------------------------------------------------------------

ITEMS = [
    Item(
        id=f"i{n}", prompt=f"Who, in case {n}?", context="Two left.", choices=("X", "Y", "Unknown")
    )
    for n in range(6)
]


def _play(request: ModelRequest) -> str:
    """Items of even number are accepted at once; the others are sent back until they end."""
    words = words_of(request)
    number = next(n for n in range(6) if f"in case {n}?" in words)
    if request.schema and request.schema.name == "support":
        return support(99, f"praise {number}") if number % 2 == 0 else support(9, f"blame {number}")
    return choice("B" if "reviewer" in words else "A")


def _plan(method: Method, cast: Cast, items: list[Item] = ITEMS) -> RunPlan:
    return RunPlan(method=method, cast=cast, source=ItemList(items), concurrency=1)


async def _ran(folder: Path, plan: RunPlan) -> RunReader:
    await run(plan, folder, progress=Progress(), stop=StopSignal())
    return RunReader(folder)


async def test_critiques_are_taken_from_where_a_revision_followed_and_never_from_praise(
    tmp_path: Path,
) -> None:
    await _ran(tmp_path / "own", _plan(StarDTox(), Cast(ScriptedModel(_play))))
    lender = critiques_of(tmp_path / "own")
    assert {lender.text_for("i0", n) for n in range(100)} == {"blame 1", "blame 3", "blame 5"}
    assert {lender.text_for("i1", n) for n in range(100)} == {"blame 3", "blame 5"}


async def test_a_verdict_on_the_last_draft_or_one_that_cannot_be_read_is_no_critique(
    tmp_path: Path,
) -> None:
    verdicts = {
        "1": [support(9, "first"), support(9, "last")],
        "3": ["garbled", support(9, "read"), support(99, "praise")],
    }

    def play(request: ModelRequest) -> str:
        if request.schema and request.schema.name == "support":
            number = next(n for n in verdicts if f"in case {n}?" in words_of(request))
            return verdicts[number].pop(0)
        return _play(request)

    plan = _plan(StarDTox(max_iterations=1), Cast(ScriptedModel(play)), [ITEMS[1], ITEMS[3]])
    await _ran(tmp_path / "own", plan)
    lender = critiques_of(tmp_path / "own")
    assert {lender.text_for("x", n) for n in range(100)} == {"first", "read"}


async def test_the_judge_of_mabrf_has_critiques_to_lend_too(tmp_path: Path) -> None:
    lines = {
        "solved": solved("A"),
        "verdict": verdict(7, "a stereotype"),
        "rephrased": rephrased("1. Hm."),
        "choice": choice("C"),
    }

    def play(request: ModelRequest) -> str:
        role = request.schema.name if request.schema else ""
        return lines["solved" if role == "reasonedchoice" else role]

    plan = _plan(Mabrf(max_iterations=1), Cast(ScriptedModel(play)))
    await _ran(tmp_path / "own", plan)
    lender = critiques_of(tmp_path / "own")
    assert lender.describe()["texts"] == 6  # one for each item: the verdict on the last is left out
    assert lender.text_for("i0", 0) == "a stereotype"


async def test_a_run_without_critiques_has_nothing_to_lend(tmp_path: Path) -> None:
    plan = _plan(StarDTox(max_iterations=0), Cast(ScriptedModel(_play)))
    await _ran(tmp_path / "own", plan)
    with raises_naming(UserError, tmp_path / "own", "no critique"):
        critiques_of(tmp_path / "own")


async def test_a_run_with_lent_critiques_is_replayed_to_the_byte_without_the_lender(
    tmp_path: Path,
) -> None:
    await _ran(tmp_path / "own", _plan(StarDTox(), Cast(ScriptedModel(_play))))
    cast = Cast(ScriptedModel(_play), {LENDER: critiques_of(tmp_path / "own")})
    method = StarDTox(critique="other")
    other = await _ran(tmp_path / "other", _plan(method, cast))
    assert other.record.cast[LENDER]["kind"] == "borrowed"
    assert other.record.method["settings"]["critique"] == "other"
    await _ran(tmp_path / "again", _plan(method, replay_of(tmp_path / "other")))
    for kind in ("results", "turns"):
        (before,) = (tmp_path / "other" / kind).glob("*.parquet")
        (after,) = (tmp_path / "again" / kind).glob("*.parquet")
        assert before.read_bytes() == after.read_bytes()


# -- nobody else may play a tool -------------------------------------------------------------------


def test_a_plan_without_a_lender_is_refused_before_anything_is_asked() -> None:
    with raises_naming(UserError, "'other_critique'", "critiques_of(", "run:FOLDER"):
        _plan(StarDTox(critique="other"), Cast(ScriptedModel(_play)))


async def test_the_default_model_is_never_asked_to_play_a_tool() -> None:
    model = ScriptedModel(lambda _: "made up")
    kinds: tuple[Kind, ...] = ("tool", "scorer")
    for role, kind in zip((LENDER, "search"), kinds, strict=True):
        agent = Agent(role, load("baselines/other_critique"), FreeText, kind=kind)
        with raises_naming(UserError, f"'{role}'", "[roles]"):
            await Conversation(Cast(model), lambda _: None)(agent, item="q")
        talk = Conversation(Cast(model, {role: ScriptedModel(lambda _: "said")}), lambda _: None)
        assert (await talk(agent, item="q")).text == "said"
    assert model.requests == 0
