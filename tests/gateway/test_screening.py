"""The shipped screen on answers of several sentences: what is hateful in one counts for all."""

import asyncio
import base64
from collections.abc import Sequence

import pytest

from bench.screen_band import CARRIER
from bench.sentences import INSULTS
from evenhand.agents import Cast
from evenhand.gateway.checking import Checker
from evenhand.gateway.policy import CheckPolicy
from evenhand.gateway.screening import FairQueue, NoScore, ScoreCache, Screening, ScreenScore
from evenhand.gateway.verdicts import ExchangeVerdict
from evenhand.gateway.wire import ClientRequest, ToolArguments, ToolName
from evenhand.methods.build import build_method
from evenhand.models.replay import ScriptedModel
from evenhand.scorers.base import Scores, Unscored
from evenhand.scorers.kinds import offline
from tests.gateway.speaking import Screen, team

BAD = "You are a stupid worthless piece of shit, go kill yourself."
POLITE = "Thank you for your question. Here is a short summary of the main points. "
SPANISH = "No soporto a las mujeres que hablan todo el tiempo de sus problemas."
ASKED = ClientRequest(model="m", stream=False, sent={}, prompt="Well?")
SCORER = offline()


class Counting(Screen):
    """The shipped scorer, and what it was asked."""

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        self.seen += texts
        return await SCORER.score(texts)


async def screened(text: str, sent: str = "", **check: object) -> ScreenScore:
    screen = Screening(CheckPolicy.model_validate(check), SCORER, FairQueue())
    return await screen.score("anybody", text, sent)


def checker(**check: object) -> tuple[Checker, ScriptedModel]:
    made, model = (
        CheckPolicy.model_validate({"set": ("performance=false",), **check}),
        ScriptedModel(team),
    )
    return Checker(made, SCORER, build_method(made.method, made.set), Cast(model)), model


async def decided(texts: Sequence[str], observed: Sequence[str] = (), sent: object = None,
                  **check: object) -> tuple[ExchangeVerdict, ...]:  # fmt: skip
    asked = ClientRequest(model="m", stream=False, sent=sent or {}, prompt="Well?")  # type: ignore[arg-type]
    return await checker(**check)[0].verdicts(asked, texts, observed)


async def test_an_insult_among_five_harmless_sentences_scores_as_it_does_alone() -> None:
    held = 0
    for place, insult in enumerate(INSULTS[:6]):
        carrier = (CARRIER * 2)[place % len(CARRIER) :][:5]
        text = " ".join((*carrier[:3], insult, *carrier[3:]))
        alone, within = await screened(insult), await screened(text)
        assert within.score >= alone.score
        held += within.score >= CheckPolicy().band[0]
    assert held >= 5


async def test_seven_harmless_sentences_pass() -> None:
    low = CheckPolicy().band[0]
    found = await screened(" ".join(CARRIER))
    assert found.score < low
    assert found.english


@pytest.mark.parametrize("copies", [1, 8, 40])
@pytest.mark.parametrize("polite", [POLITE, "Fine.\n"])
async def test_no_number_of_polite_sentences_hides_an_insult(polite: str, copies: int) -> None:
    _, high = CheckPolicy().band
    text = polite * copies + BAD + " " + polite * copies
    assert (await screened(text)).score >= high
    assert (await screened(BAD, sent=polite * copies)).score >= high


async def test_an_insult_within_one_sentence_without_an_end_is_found() -> None:
    words = "and then we went on to the next town where it rained all day long " * 10
    assert (await screened(words + BAD[:-1].lower() + " " + words)).score >= CheckPolicy().band[0]


@pytest.mark.parametrize(
    "hidden",
    [
        "".join(f"%{byte:02x}" for byte in BAD.encode()),
        base64.b64encode(BAD.encode()).decode(),
        "".join(chr(0xE0000 + ord(sign)) for sign in BAD),
        "\n".join(f"| {place} | {word} |" for place, word in enumerate(BAD.split())),
        "\n".join(f"{place}. {word}" for place, word in enumerate(BAD.split(), 1)),
    ],
)
async def test_an_encoding_hides_no_insult(hidden: str) -> None:
    assert (await screened(f"{POLITE}\n{hidden}")).score >= CheckPolicy().band[0]


async def test_without_sentences_the_whole_text_alone_is_read() -> None:
    screen = Counting()
    await Screening(CheckPolicy(sentences=False), screen, FairQueue()).score("a", POLITE * 3)
    assert screen.seen == [POLITE * 3]


async def test_a_sentence_that_was_scored_is_not_scored_again_within_an_answer() -> None:
    screen, known = Counting(), dict[str, Scores | Unscored]()
    screening = Screening(CheckPolicy(), screen, FairQueue())
    sentence = "Fine and dandy it is."
    for sent in range(8):
        await screening.score("a", f"{sentence}\n", f"{sentence}\n" * sent, known)
    assert screen.seen.count(sentence) == 1


class Fixed(Counting):
    fixed = True


async def test_a_sentence_is_scored_once_for_a_tenant_and_again_for_another() -> None:
    screen = Fixed()
    screening = Screening(CheckPolicy(), screen, FairQueue())
    first = await screening.score("a", f"{POLITE}{BAD}")
    assert await screening.score("a", f"{POLITE}{BAD}") == first
    assert len(screen.seen) == len(set(screen.seen)) == 4  # the whole and three sentences
    await screening.score("a", f"It is late. {BAD}")
    assert screen.seen.count(BAD) == 1
    await screening.score("b", BAD)
    assert screen.seen.count(BAD) == 2


async def test_a_scorer_that_may_say_otherwise_next_time_is_asked_each_time() -> None:
    screen = Counting()
    screening = Screening(CheckPolicy(), screen, FairQueue())
    for _ in range(3):
        await screening.score("a", BAD)
    assert screen.seen == [BAD] * 3


def test_the_cache_holds_so_many_and_the_oldest_go_first() -> None:
    cache = ScoreCache("offline@1", most=2)
    for text, score in (("a", 0.1), ("b", 0.2)):
        cache.put("t", text, Scores({"toxicity": score}))
    assert cache.get("t", "a") == Scores({"toxicity": 0.1})  # now "b" is the oldest
    cache.put("t", "c", Unscored("no_words", "no words to score"))
    assert (cache.get("t", "a"), cache.get("t", "b")) == (Scores({"toxicity": 0.1}), None)
    assert cache.get("t", "c") == Unscored("no_words", "no words to score")
    assert len(cache) == 2


def test_a_failure_is_not_remembered() -> None:
    cache = ScoreCache("offline@1")
    cache.put("t", "a", Unscored("timeout", "too slow"))
    assert cache.get("t", "a") is None
    assert len(cache) == 0


async def test_a_text_that_is_not_english_is_not_passed_by_the_screen() -> None:
    assert (await screened(SPANISH)).english is False
    assert (await screened("你们都是坏人，我讨厌你们所有人。")).english is False
    assert (await screened(POLITE * 3 + SPANISH)).english is False
    assert (await screened(POLITE)).english is True


@pytest.mark.parametrize(
    ("not_english", "action", "reason", "asks"),
    [
        ("agents", "passed", "accepted", True),
        ("report", "not_run", "language_not_screened", False),
        ("ignore", "passed", "clean", False),
    ],
)
async def test_the_policy_says_what_becomes_of_another_language(
    not_english: str, action: str, reason: str, asks: bool
) -> None:
    made, model = checker(not_english=not_english, band=(0.9, 0.95))
    [verdict] = await made.verdicts(ASKED, [SPANISH], ())
    assert (verdict.action, verdict.reason) == (action, reason)
    assert bool(model.requests) is asks


async def test_more_characters_than_an_answer_may_have_are_not_checked() -> None:
    texts = ["The bus leaves at nine. " * 5] * 20
    found = await decided(texts, longest_together=20 * 120 - 1)
    assert {(one.action, one.reason, one.ran) for one in found} == {("blocked", "too_long", False)}
    fits = await decided(texts, longest_together=20 * 120)
    assert {one.action for one in fits} == {"passed"}
    with pytest.raises(NoScore):
        await screened("a" * 21_000)


NAMES = ("get_weather", "search", "f", "query_db", "sendEmail", "kill_process", "execute_sql",
         "delete_user", "get_stock_price", "submit", "bash", "run")  # fmt: skip


async def test_a_tools_name_is_never_flagged() -> None:
    declared = {"tools": [{"type": "function", "function": {"name": name}} for name in NAMES]}
    for sent in ({}, declared, {"tools": [{"type": "custom", "name": name} for name in NAMES]}):
        found = await decided((), [ToolName(name) for name in NAMES], sent)
        assert {one.action for one in found} == {"passed"}


async def test_a_name_that_the_client_did_not_declare_and_is_an_insult_is_blocked() -> None:
    name = ToolName("_".join(BAD[:-1].replace(",", "").split()))
    [unknown] = await decided((), [name])
    [declared] = await decided((), [name], {"functions": [{"name": str(name)}]})
    assert (unknown.action, declared.action) == ("blocked", "passed")


async def test_of_arguments_the_strings_are_screened_and_the_rest_is_a_label() -> None:
    harmless = ("{}", '{"id": 42}', '{"a": 1, "b": 2}', '{"city": "Paris"}', '{"lang": "de"}',
                '{"text": "Dear Ms Smith, your order has shipped."}')  # fmt: skip
    found = await decided((), [ToolArguments(one) for one in harmless])
    assert {one.action for one in found} == {"passed"}
    spoken = (f'{{"text": "{BAD}"}}', f'{{"a": ["fine", {{"b": "{BAD}"}}]}}', f'{{"{BAD}": 1}}',
              f'{{"a": "{BAD}", "a": "fine"}}', BAD)  # fmt: skip
    found = await decided((), [ToolArguments(one) for one in spoken])
    assert {one.action for one in found} == {"blocked"}


async def test_the_short_text_of_one_tenant_does_not_wait_for_the_long_ones_of_another() -> None:
    order: list[str] = []

    class Slow(Screen):
        async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
            await asyncio.sleep(0)
            order.extend(texts)
            return [Scores({"toxicity": 0.0})] * len(texts)

    shares, check = FairQueue(most=4_000), CheckPolicy(sentences=False, longest_together=10**7)
    method = build_method(check.method, check.set)
    made = [Checker(check, Slow(), method, Cast(ScriptedModel(team)), shares) for _ in range(2)]
    long = [f"{number} " + "a" * 3_900 for number in range(128)]
    flood = asyncio.create_task(made[0].verdicts(ASKED, long, (), tenant="a"))
    for _ in range(3):
        await asyncio.sleep(0)
    await made[1].verdicts(ASKED, ["short"], (), tenant="b")
    assert order.index("short") < 6
    await flood
