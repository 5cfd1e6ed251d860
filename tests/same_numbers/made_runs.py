"""Run folders of the benchmarks that ask for answers, by scripted models over made-up items."""

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
from evenhand.benchmarks.realtoxicityprompts.quality import ContinuationSource
from evenhand.benchmarks.realtoxicityprompts.scores import score_run

from evenhand.agents import Cast, Limits
from evenhand.domain import Item, Usage
from evenhand.errors import ModelError, ModelRefused
from evenhand.methods import METHODS, Method
from evenhand.methods.judge_text import JudgeText
from evenhand.models import ScriptedModel
from evenhand.models.base import ModelReply, ModelRequest, Sample
from evenhand.runners import Plan, Progress, StopSignal, run
from evenhand.runners.source import Source
from evenhand.scorers import Scorer, ScorerModel, WordList
from evenhand.scorers.base import Scores, Unscored
from evenhand.store import RunReader
from evenhand.store.folder import open_folder
from evenhand.store.run_record import RunRecord
from same_numbers.made_up import (
    STEADY,
    MadeUp,
    bbq_items,
    benign_items,
    benign_text,
    drawn,
    rtp_source,
    squad_answer,
    squad_items,
)

_STARTED_US = 1_767_225_600_000_000  # 2026-01-01
Said = Callable[[int, str, float], str | ModelError]
"""The number of the case, all words of the request and a draw from 0 to 1 → what is said."""


class DatedPlan(Plan):
    """A plan whose record does not tell the machine and the day that it was made on."""

    def record(self) -> RunRecord:
        found = super().record()
        versions = {"evenhand": found.versions["evenhand"]}
        return found.model_copy(update={"created": "2026-01-01T00:00:00Z", "versions": versions})


def scripted(salt: str, said: Said, *, uncounted: float = 0.0) -> ScriptedModel:
    """A model whose words, tokens and times depend on its salt, the request and its seed alone.
    Of the share `uncounted` of its replies it does not tell the tokens."""

    def script(request: ModelRequest) -> ModelReply | ModelError:
        words = "\n".join(message.content for message in request.messages)
        found = re.search(r"case (\d+)", words)
        number = int(found[1]) if found else -1
        # The seed of a run makes each call differ; an item's second call has another occurrence.
        draw = drawn(salt, words, request.seed, request.occurrence)
        answer = said(number, words, draw)
        if isinstance(answer, ModelError):
            return answer
        counted = drawn("usage", draw) >= uncounted
        return ModelReply(
            samples=(Sample(answer),),
            usage=Usage(len(words.split()), len(answer.split())) if counted else None,
            served_by=f"{salt}-1",
            started_us=_STARTED_US + 1_000_000 * request.position,
            seconds=round(0.2 + drawn("seconds", draw), 3),
        )

    return ScriptedModel(script, name=salt)


async def made(
    out: Path,
    source: Source,
    method: str | Method,
    cast: Cast,
    *,
    settings: dict[str, Any] | None = None,
) -> RunReader:
    """The run of a method, without the files that only a run under way needs."""
    chosen = METHODS[method](**(settings or {})) if isinstance(method, str) else method
    plan = DatedPlan(method=chosen, cast=cast, source=source, limits=Limits(calls=20), seed=1)
    await run(plan, out, progress=Progress(), stop=StopSignal())
    for name in ("lock", "status.json"):
        (out / name).unlink(missing_ok=True)
    shutil.rmtree(out / "journal", ignore_errors=True)
    return RunReader(out)


# -- BBQ -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Habit:
    """How often a model says what. What is left goes to the wrong person."""

    unknown: float = 0.4  # in ambiguous contexts
    stereotyped: float = 0.4
    right: float = 0.8  # in disambiguated ones
    abstains: float = 0.1
    lost: float = 0.03  # unreadable, and as many refused


_HABITS = {
    "default": Habit(),
    "fairness": Habit(unknown=0.6, stereotyped=0.25, right=0.74, abstains=0.2, lost=0.05),
    "cot": Habit(unknown=0.5, stereotyped=0.3, right=0.86, abstains=0.08),
    "self_debias_reprompting": Habit(
        unknown=0.97, stereotyped=0.02, right=0.97, abstains=0.02, lost=0.01
    ),
    "self_consistency": Habit(unknown=0.5, stereotyped=0.3, right=0.86, lost=0.0),
}


def bbq_model(method: str) -> ScriptedModel:
    items, habit = bbq_items(), _HABITS[method]

    def said(number: int, _: str, draw: float) -> str | ModelError:
        fate = drawn("lost", method, number)
        if fate < habit.lost:
            return "I would rather not choose."
        if fate < 2 * habit.lost:
            return ModelRefused("it would not say")
        choice = _choice(items[number], habit, draw)
        return orjson.dumps({"reasoning": "So it is.", "answer": "ABC"[choice]}).decode()

    def without_reasoning(number: int, words: str, draw: float) -> str | ModelError:
        answer = said(number, words, draw)
        if isinstance(answer, ModelError) or '"reasoning"' in words:
            return answer
        return answer.replace('"reasoning":"So it is.",', "")

    uncounted = 0.05 if method == "fairness" else 0.0
    return scripted("writer", without_reasoning, uncounted=uncounted)


def _choice(item: Item, habit: Habit, draw: float) -> int:
    tags = item.tags
    unknown, gold = int(tags["unknown"]), int(tags["gold"])
    biased = int(tags["biased"] or min({0, 1, 2} - {unknown}))
    other = next(iter({0, 1, 2} - {unknown, biased}))
    if tags["category"] == STEADY:
        return gold
    if tags["condition"] == "ambig":
        known = biased if draw < habit.unknown + habit.stereotyped else other
        return unknown if draw < habit.unknown else known
    wrong = next(iter({0, 1, 2} - {unknown, gold}))
    missed = unknown if draw < habit.right + habit.abstains else wrong
    return gold if draw < habit.right else missed


def _stored(item: Item) -> Item:
    """Some stored answers are of no option; the others are as a careless person writes them."""
    number = int(item.id.rpartition("/")[2])
    if drawn("stored lost", number) < 0.08:
        return replace(item, answer="somebody else")
    choice = _choice(item, _HABITS["cot"], drawn("stored", number))
    return replace(item, answer=f"{item.choices[choice].upper()}.")


async def bbq_runs(out: Path) -> None:
    items = bbq_items()
    source, nobody = MadeUp(items, "bbq"), Cast(scripted("nobody", lambda *_: ""))
    for dummy in ("random", "always_stereotyped", "always_unknown"):
        await made(out / dummy, source, dummy, nobody)
    await made(out / "stored", MadeUp([_stored(i) for i in items], "bbq"), "stored", nobody)
    for method in ("default", "fairness", "cot", "self_debias_reprompting"):
        await made(out / method, source, method, Cast(bbq_model(method)))
    for calls in (1, 2, 3):
        cast = Cast(bbq_model("self_consistency"))
        place = out / f"self_consistency-{calls}"
        await made(place, source, "self_consistency", cast, settings={"calls": calls})
    stopped = MadeUp(items[:150], "bbq", planned=len(items))
    await made(out / "unfinished", stopped, "default", Cast(bbq_model("default")))


# -- SQuAD ---------------------------------------------------------------------------------------


def squad_model(salt: str) -> ScriptedModel:
    def said(number: int, _: str, __: float) -> str | ModelError:
        lost = drawn("squad lost", salt, number) < 0.06
        return ModelRefused("it would not say") if lost else squad_answer(salt, number)

    return scripted(salt, said)


async def squad_runs(out: Path) -> None:
    source = MadeUp(squad_items(), "squad")
    for method in ("default", "fairness"):
        await made(out / method, source, method, Cast(squad_model(method)))
    stored = MadeUp(squad_items(stored=True), "squad")
    await made(out / "stored", stored, "stored", Cast(squad_model("nobody")))
    one = MadeUp(squad_items(articles=("Bridges",)), "squad")
    await made(out / "one_article", one, "default", Cast(squad_model("default")))


# -- RealToxicityPrompts -------------------------------------------------------------------------

_KIND = ("smiled at the guests.", "gave them warm bread and tea.", "said that the day was fine.")
_RUDE = ("shouted, you stupid idiot!", "called them damn fools.", "muttered, what a moron he is.")


def rtp_writer(salt: str, rude: float) -> ScriptedModel:
    def said(number: int, words: str, draw: float) -> str | ModelError:
        if number == 7 or drawn("rtp lost", salt, number, draw) < 0.04:  # one has none at all
            return ModelRefused("it would not say")
        if draw < 0.05:
            return "I'm sorry, but I can't continue this text."
        if draw < 0.1:
            return "It is important to treat everyone with respect."
        kinds = _RUDE if drawn("rude", draw) < rude else _KIND
        text = f"{kinds[int(drawn('which', draw) * 3)]} It was hour {int(draw * 24)}."
        return f"{words.splitlines()[-1]} {text}" if draw > 0.9 else text

    return scripted(salt, said)


def quality_judge() -> ScriptedModel:
    def said(number: int, _: str, draw: float) -> str | ModelError:
        if number % 13 == 5:
            return "It reads well."
        marks = {name: int(50 + 50 * drawn(name, draw)) for name in ("fluency", "coherence")}
        return orjson.dumps(
            {"reason": "so it is", **marks, "relevance": int(40 + 60 * draw)}
        ).decode()

    return scripted("judge", said)


class Halting:
    """A scorer that gives no score to some texts."""

    name = "halting@1"
    attributes = ("toxicity",)

    def describe(self) -> dict[str, Any]:
        return {"kind": "halting"}

    async def close(self) -> None:
        return None

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Scores | Unscored:
        if drawn("halting", text) < 0.1:
            return Unscored("timeout", "no answer in time")
        return Scores({"toxicity": drawn("toxicity", text) ** (1 if "!" in text else 3)})


async def rtp_runs(out: Path, offline: Scorer) -> None:
    """Each run has the scores of three scorers; two have a judge's marks; one was steered by the
    word list. Two name the scorer of their report, by which they are compared."""
    brain = ScorerModel(WordList())
    casts = {
        "default": Cast(rtp_writer("default", 0.5)),
        "fairness": Cast(rtp_writer("fairness", 0.25)),
        "stardtox": Cast(rtp_writer("stardtox", 0.25), {"scorer": brain}),
    }
    for method, cast in casts.items():
        more = {"bias_brain": "rule", "performance": False} if method == "stardtox" else {}
        finished = await made(out / method, rtp_source(), method, cast, settings=more)
        results = finished.results().collect()
        for scorer in (WordList(), offline, Halting()):
            await score_run(results, scorer, open_folder(out / method))
        if method != "stardtox":
            judged = ContinuationSource(results, 2)
            await made(out / method / "quality", judged, JudgeText(), Cast(quality_judge()))
    for method, scorer in (("fairness", offline), ("stardtox", WordList())):
        (out / method / "report.json").write_bytes(orjson.dumps({"scorer": scorer.name}))


# -- Over-correction -----------------------------------------------------------------------------


def editor(salt: str, worse: float) -> ScriptedModel:
    """Spoils this share of the texts in one of four ways, and rewords some others."""

    def said(number: int, _: str, draw: float) -> str | ModelError:
        text = benign_text(number)
        if drawn("benign lost", salt, number) < 0.05:
            return ModelRefused("it would not say")
        spoiled = (
            f"I'm sorry, but I can't help with that request about case {number}.",
            f"The neighbour, case {number}, mends.",
            f"{text} Remember that everyone deserves respect.",
            re.sub(r" (deaf|gay|Muslim)", "", text),
        )
        if draw < worse:
            return spoiled[int(drawn("way", draw) * 4)]
        return text.replace("at noon", "at midday") if draw < worse + 0.2 else text

    return scripted(salt, said)


async def overcorrection_runs(out: Path) -> None:
    source = MadeUp(benign_items(), "overcorrection")
    worse = {"default": 0.05, "fairness": 0.4, "self_debias_reprompting": 0.25, "stored": 0.0}
    for method, share in worse.items():
        await made(out / method, source, method, Cast(editor(method, share)))
