"""Self-debiasing at decoding: what the sentence that asks for harm makes likelier is said less."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.agents import Cast, Limits
from evenhand.core import Answer, Failed, Usage
from evenhand.core.errors import ModelRefused, UnreadableReply, UserError
from evenhand.methods.baselines.self_debiasing import TEXT as CONTINUE
from evenhand.methods.baselines.self_debiasing import SelfDebiasGen, rescaled
from evenhand.methods.build import build_method
from evenhand.methods.stardtox import WRITER
from evenhand.models import Endpoint, ModelReply, ModelRequest, Sample, ScriptedModel, TokenLogprob
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, replay_of, run
from evenhand.runs.store import RunReader
from tests.errors import assert_names, raises_naming
from tests.loopback.faulty import Fixed, LoopbackServer
from tests.loopback.http import Call, Line
from tests.stage import QUESTION, TEXT, Stage, told, words_of

Listed = Mapping[str, float]
METHOD = SelfDebiasGen(attributes="spite")


async def chosen(plain: Listed, biased: Listed, method: SelfDebiasGen = METHOD) -> Answer:
    return await Stage({"generator": [told(plain), told(biased)]}).answer(method, QUESTION)


# -- the formula, by hand ------------------------------------------------------------------------


def test_what_the_biased_input_makes_likelier_decays_and_the_rest_stays() -> None:
    # A: delta = 0.6 - 0.7 = -0.1, factor e^(-50 * 0.1) = e^-5 = 0.0067379; B and C: delta >= 0.
    # Weights 0.0040428, 0.3, 0.1: sum 0.4040428.
    found = rescaled({"A": 0.6, "B": 0.3, "C": 0.1}, [{"A": 0.7, "B": 0.2, "C": 0.1}], [0.0], 50)
    assert found == pytest.approx({"A": 0.0100058, "B": 0.7424957, "C": 0.2474985}, rel=1e-5)


@pytest.mark.parametrize(
    ("decay", "left_of_a"),
    [
        pytest.param(0, 0.6, id="no decay: the plain model"),
        pytest.param(10, 0.2207276 / 0.6207276, id="e^-1 = 0.3678794"),
        pytest.param(100, 0.00002724 / 0.40002724, id="e^-10 = 0.0000454"),
    ],
)
def test_the_decay_sets_how_much_is_taken_away(decay: float, left_of_a: float) -> None:
    found = rescaled({"A": 0.6, "B": 0.4}, [{"A": 0.7, "B": 0.3}], [0.0], decay)
    assert found["A"] == pytest.approx(left_of_a, rel=1e-3)


def test_of_several_sentences_the_one_that_raises_a_token_most_counts() -> None:
    plain = {"A": 0.5, "B": 0.5}
    one, two = {"A": 0.6, "B": 0.4}, {"A": 0.3, "B": 0.7}
    # A: 0.5 - max(0.6, 0.3) = -0.1, weight 0.5 e^-5; B: 0.5 - max(0.4, 0.7) = -0.2, 0.5 e^-10.
    found = rescaled(plain, [one, two], [0.0, 0.0], 50)
    assert found["A"] / found["B"] == pytest.approx(math.exp(5))


async def test_a_letter_that_the_biased_list_lacks_has_at_most_its_smallest_probability() -> None:
    # The list leaves 0.24 over, but nothing that is not on it can be likelier than 0.26: bound
    # min(0.26, 0.24) = 0.24. B: delta = 0.2 - 0.24 = -0.04, factor e^-2 = 0.1353353.
    # A: delta = 0.25 - 0.5 = -0.25, factor e^-12.5 = 0.0000037. Weights 0.0000009, 0.0270671.
    answer = await chosen({"A": 0.25, "B": 0.2}, {"A": 0.5, "the": 0.26})
    assert answer.choice == 1
    assert answer.drafts[-1].scores["share"] == pytest.approx(0.0270671 / 0.0270680, rel=1e-5)


async def test_nothing_that_a_list_lacks_is_likelier_than_what_it_has() -> None:
    # 0.3 is left over, but the smallest listed is 0.2. B: delta = 0.15 - 0.2 = -0.05, e^-2.5.
    # C: delta = 0.2 - 0.2 = 0: kept whole.
    answer = await chosen({"C": 0.2, "B": 0.15}, {"A": 0.5, "the": 0.2})
    expected = 0.2 / (0.2 + 0.15 * 0.0820850)
    assert answer.drafts[-1].scores["share"] == pytest.approx(expected)


async def test_a_biased_list_that_leaves_nothing_over_gives_the_others_nothing() -> None:
    answer = await chosen({"A": 0.3, "B": 0.2}, {"A": 0.6, "the": 0.4})
    # B: delta = 0.2 - 0: kept whole. A: 0.3 e^(-15) = 0.00000009.
    assert answer.drafts[-1].scores["share"] == pytest.approx(1.0, abs=1e-6)


# -- choices -------------------------------------------------------------------------------------


async def test_a_choice_is_one_plain_call_and_one_for_each_attribute_side_by_side() -> None:
    lines = [told({"A": 0.6, "C": 0.4}), told({"A": 0.9, "C": 0.1}), told({"A": 0.5, "C": 0.5})]
    stage = Stage({"generator": lines})
    answer = await stage.answer(SelfDebiasGen(attributes="spite; envy"), QUESTION)
    plain, spite, envy = stage.asked_of("generator")
    assert "spirit" not in plain
    assert "spirit of spite." in spite
    assert "spirit of envy." in envy
    before, after = answer.drafts
    assert (before.choice, before.text, before.scores) == (0, "The girl", {"share": 0.6})
    # A: 0.6 - 0.9 = -0.3, e^-15; C: 0.4 - 0.5 = -0.1, e^-5.
    a, c = 0.6 * math.exp(-15), 0.4 * math.exp(-5)
    assert (after.choice, after.text) == (2, "Cannot be known")
    assert after.scores["share"] == pytest.approx(c / (a + c))
    assert (answer.stopped, answer.changed) == ("single_pass", True)


async def test_what_the_inputs_share_comes_first() -> None:
    stage = Stage({"generator": [told({"A": 1.0}), told({"A": 1.0})]})
    await stage.answer(METHOD, QUESTION)
    plain, biased = stage.asked_of("generator")
    question = plain[: plain.index("C. Cannot be known") + 18]
    assert biased.startswith(question)


async def test_letters_with_and_without_a_blank_are_one_letter() -> None:
    plain = {"B": 0.4, "A": 0.3, " A": 0.25, "\nA": 0.05}  # A 0.6, B 0.4
    answer = await chosen(plain, {"B": 0.4, " A": 0.35, "A": 0.25})  # A 0.6 too: nothing decays
    assert [draft.choice for draft in answer.drafts] == [0, 0]
    assert answer.drafts[-1].scores["share"] == pytest.approx(0.6)
    assert not answer.changed


@pytest.mark.parametrize("first", ["The", "D", "a", "AB", ""])
async def test_without_a_letter_among_the_tokens_the_reply_is_unreadable(first: str) -> None:
    with pytest.raises(UnreadableReply) as refused:
        await chosen({first: 0.9}, {"A": 0.9})
    assert refused.value.kind == "no_letter"
    assert_names(refused.value.detail, "A, B, C")


async def test_each_call_asks_for_one_token_with_the_twenty_likeliest() -> None:
    stage = Stage({"generator": [told({"A": 1.0}), told({"A": 1.0})]})
    await stage.answer(METHOD, QUESTION)
    for _, request in stage.asked:
        assert (request.max_tokens, request.logprobs, request.temperature) == (1, 20, 0.0)
        assert (request.schema, request.prompt) == (None, None)


# -- text ----------------------------------------------------------------------------------------


def next_word(request: ModelRequest) -> ModelReply:
    """Plain: rude, then an end. Told to be rude: the same, more so."""
    words = request.prompt or ""
    biased = "full of spite" in words
    if words.endswith("neighbour is"):
        return told({" rude": 0.9, " kind": 0.1} if biased else {" rude": 0.7, " kind": 0.3})
    if words.endswith(" kind"):
        return told({"\n": 0.6, "": 0.4} if biased else {"\n": 0.8, "": 0.2})
    assert words.endswith(" kind\n"), "the blank at the end of what was said is lost"
    return told({"": 0.9, " too": 0.1}, text="", finish="stop")


def player() -> ScriptedModel:
    return ScriptedModel(next_word, name="m")


async def test_a_text_is_continued_token_by_token_until_the_model_ends_it() -> None:
    stage = Stage({}, players={"generator": player()})
    answer = await stage.answer(METHOD, TEXT)
    # rude: 0.7 - 0.9 = -0.2, 0.7 e^-10 = 0.00003; kind: 0.3 - 0.1 > 0, 0.3: kind is said.
    assert (answer.text, answer.stopped) == ("kind", "end_of_text")
    assert len(stage.turns) == 6
    plain, biased = (turn.messages[0].content for turn in stage.turns[4:])
    assert plain == f"{TEXT.prompt} kind\n"
    before, _, after = biased.partition("\n\n")
    assert_names(before, "spite")
    assert after == plain


async def test_without_decay_the_text_is_the_plain_models() -> None:
    rude = SelfDebiasGen(attributes="spite", decay=0, max_new_tokens=1)
    answer = await Stage({}, players={"generator": player()}).answer(rude, TEXT)
    assert (answer.text, answer.stopped) == ("rude", "max_new_tokens")


async def test_a_drawn_token_is_the_same_for_the_same_seed_and_item_and_follows_the_odds() -> None:
    method = SelfDebiasGen(attributes="spite", decay=0, max_new_tokens=1, sample_seed=4)
    said = []
    for number in (*range(200), *range(200)):
        stage = Stage({}, players={"generator": player()})
        said.append((await stage.answer(method, replace(TEXT, id=str(number)))).text)
    assert said[:200] == said[200:]
    assert said[:200].count("rude") == pytest.approx(140, abs=20)  # 0.7 of 200, three deviations


async def test_a_text_that_ends_before_its_first_word_is_unreadable() -> None:
    end = told({"": 0.9, " so": 0.1}, text="", finish="stop")
    stage = Stage({"generator": [end, end]})
    with raises_naming(UnreadableReply, "empty"):
        await stage.answer(METHOD, TEXT)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(told({"</s>": 0.9, " so": 0.1}, text="</s>"), id="written out"),
        pytest.param(told({"<stop>": 0.9, " so": 0.1}, text="", finish="stop"), id="by its own"),
        pytest.param(
            ModelReply(samples=(Sample("", "stop", ()),), usage=None), id="nothing is listed"
        ),
    ],
)
async def test_the_end_of_a_text_is_known_however_a_server_writes_it(end: ModelReply) -> None:
    stage = Stage({"generator": [told({" so": 1.0}), told({" so": 1.0}), end, end]})
    answer = await stage.answer(METHOD, TEXT)
    assert (answer.text, answer.stopped) == ("so", "end_of_text")


async def test_half_a_character_is_never_said() -> None:
    half = told({"\ufffd": 0.8, " so": 0.2})
    method = SelfDebiasGen(attributes="spite", max_new_tokens=1)
    assert (await Stage({"generator": [half, half]}).answer(method, TEXT)).text == "so"


# -- endpoints without log-probabilities -----------------------------------------------------------


@pytest.mark.parametrize(
    ("logprobs", "why"),
    [
        (None, "must honour top_logprobs"),
        ((), "must honour top_logprobs"),
        ((TokenLogprob("A", -0.1),), "must honour top_logprobs"),
        ((TokenLogprob("A", -0.1, (("A", "high"),)),), "'high' as a log-probability"),  # type: ignore[arg-type]
        ((TokenLogprob("A", -0.1, (("A", float("nan")),)),), "'nan' as a log-probability"),
        ((TokenLogprob("A", -0.1, (("A", 900.0),)),), "'900.0' as a log-probability"),
        ((TokenLogprob("A", -0.1, (("A", -9999.0),)),), "must honour top_logprobs"),
        ((TokenLogprob("A", -0.1, ((["A"], -0.1),)),), "as a token"),  # type: ignore[arg-type]
        ((TokenLogprob("A", -0.1, (("A" * 9_999, -0.1),)),), "as a token"),
        ((TokenLogprob("A", -0.1, (("A", -1e308),)),), "must honour top_logprobs"),
    ],
    ids=["none", "empty", "bare", "words", "nan", "above 0", "never", "list", "long", "huge"],
)
async def test_a_model_without_log_probabilities_fails_the_item_in_words(
    logprobs: tuple[TokenLogprob, ...] | None, why: str
) -> None:
    reply = ModelReply(samples=(Sample("A", "length", logprobs),), usage=Usage(10, 1))
    stage = Stage({"generator": [reply, reply]})
    event = await stage.end_of(METHOD, QUESTION)
    assert isinstance(event, Failed)
    assert event.reason == "model_refused"
    assert why in event.message
    assert [turn.error for turn in stage.turns] == [None, None]  # it answered; it was no use


# -- settings ------------------------------------------------------------------------------------


def test_within_keeps_the_attributes_and_the_tokens_that_fit() -> None:
    two = SelfDebiasGen(attributes="spite; envy")
    assert two.within(64) == replace(two, attributes="spite;envy", max_new_tokens=20)
    assert two.within(7) == replace(two, attributes="spite;envy", max_new_tokens=2)
    assert two.within(2) == replace(two, attributes="spite", max_new_tokens=1)
    with raises_naming(UserError, "self_debias_gen", "2 calls", 1):
        two.within(1)


def test_the_default_text_fits_the_calls_that_an_item_has() -> None:
    method = SelfDebiasGen()
    assert method.within(Limits().calls) == method


def test_it_is_found_by_its_name_with_its_settings() -> None:
    built = build_method("self_debias_gen", ["decay=10", "attributes=spite", "sample_seed=1"])
    assert built == SelfDebiasGen(decay=10, attributes="spite", sample_seed=1)


@pytest.mark.parametrize("attributes", ["", " ; "])
def test_a_method_without_an_attribute_is_refused(attributes: str) -> None:
    with raises_naming(UserError, "self_debias_gen", "attributes"):
        build_method("self_debias_gen", [f"attributes={attributes}"])


# -- the record ----------------------------------------------------------------------------------


async def test_a_run_of_it_is_recorded_with_its_probabilities_and_replays_to_the_byte(
    tmp_path: Path,
) -> None:
    def script(request: ModelRequest) -> ModelReply:
        if request.prompt is not None:
            return next_word(request)
        spite = "spite" in words_of(request)
        return told({"A": 0.9, "C": 0.1} if spite else {"A": 0.6, "C": 0.4})

    plan = RunPlan(
        method=METHOD,
        cast=Cast(ScriptedModel(script)),
        source=ItemList([TEXT, QUESTION]),
        concurrency=1,
    )
    await run(plan, tmp_path / "run", progress=Progress(), stop=StopSignal())
    again = replace(plan, cast=replay_of(tmp_path / "run"))
    await run(again, tmp_path / "again", progress=Progress(), stop=StopSignal())
    first, second = RunReader(tmp_path / "run"), RunReader(tmp_path / "again")
    assert first.results().collect()["text"].to_list() == ["kind", "Cannot be known"]
    for kind in ("results", "turns"):
        (one,), (two,) = ((tmp_path / n / kind).glob("*.parquet") for n in ("run", "again"))
        assert one.read_bytes() == two.read_bytes()
    turn = second.turns().collect().row(0, named=True)
    settings = {"temperature": 0.0, "max_tokens": 1, "logprobs": 20, "raw": True}
    assert json.loads(turn["settings"]) == settings
    (sample,) = json.loads(turn["logprobs"])
    assert [token for token, _ in sample[0]["top"]] == [" rude", " kind"]


async def test_the_same_words_as_a_chat_and_as_a_text_are_two_requests() -> None:
    stage = Stage({"generator": [told({"A": 1.0}), told({"A": 1.0})]})
    ask = stage.conversation()
    for agent in (CONTINUE, replace(CONTINUE, raw=False)):
        await ask(agent, prompt="hello", attribute="")
    raw, chat = stage.turns
    assert raw.messages == chat.messages
    assert raw.request != chat.request


async def test_a_chat_has_the_key_it_had_before_texts_could_be_continued() -> None:
    """Else no tape of an earlier version would replay."""
    stage = Stage({}, players={"generator": ScriptedModel(lambda _: "fine", name="m")})
    await stage.conversation()(WRITER, prompt="hello")
    words, settings = '[{"role":"user","content":"hello"}]', '{"max_tokens":1024}'
    assert stage.turns[0].request == hashlib.sha256(f"m{words}{settings}".encode()).hexdigest()


# -- the wire ------------------------------------------------------------------------------------


async def completions(call: Call, line: Line) -> str:
    """Chat's shape for a chat, the older parallel lists for a completion."""
    logprobs: dict[str, object]
    if call.path.endswith("/chat/completions"):
        spite = "spite" in json.dumps(call.body["messages"])
        odds = {"A": 0.9, "C": 0.1} if spite else {"A": 0.6, "C": 0.4}
        top = [{"token": token, "logprob": math.log(p)} for token, p in odds.items()]
        logprobs = {"content": [{"token": "A", "logprob": top[0]["logprob"], "top_logprobs": top}]}
        choice = {"message": {"content": "A"}, "finish_reason": "length", "logprobs": logprobs}
    else:
        sample = next_word(ModelRequest(prompt=call.body["prompt"])).samples[0]
        assert sample.logprobs is not None
        first = sample.logprobs[0]
        lists = ([first.token], [first.logprob], [dict(first.top)])
        logprobs = dict(zip(("tokens", "token_logprobs", "top_logprobs"), lists, strict=True))
        choice = {"text": sample.text, "finish_reason": sample.finish, "logprobs": logprobs}
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    await line.send_json({"model": "pretended", "choices": [choice], "usage": usage})
    return "good"


async def test_over_the_wire_a_choice_is_a_chat_and_a_text_a_completion() -> None:
    async with LoopbackServer(completions) as server:
        server.keep = True
        model = Endpoint(server.url, model="pretended")
        try:
            stage = Stage({}, players={"generator": model})
            assert (await stage.answer(METHOD, QUESTION)).text == "Cannot be known"
            assert (await stage.answer(METHOD, TEXT)).text == "kind"
        finally:
            await model.close()
    chat, text = server.calls[0], server.calls[2]
    assert (chat.body["logprobs"], chat.body["top_logprobs"]) == (True, 20)
    assert (text.path, text.body["logprobs"]) == ("/v1/completions", 20)
    assert text.body["prompt"].endswith(TEXT.prompt)
    assert "messages" not in text.body


async def test_a_server_without_completions_fails_a_text_with_its_own_words() -> None:
    refusal = Fixed(b'{"error": {"message": "this is a chat model"}}', status=404)
    async with LoopbackServer(refusal) as server:
        model = Endpoint(server.url, model="pretended")
        try:
            with raises_naming(ModelRefused, "HTTP 404", "a chat model"):
                await Stage({}, players={"generator": model}).answer(METHOD, TEXT)
        finally:
            await model.close()
