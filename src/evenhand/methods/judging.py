"""An independent judge: marks for one candidate, or for each of two and the better of them (MALIBU
paper, 3.5).

| phase of the item | the judge says                                  | calls                    |
| ----------------- | ----------------------------------------------- | ------------------------ |
| single            | a reason, four marks                            | personas × wordings      |
| pair              | a reason, four marks for each, which is better  | personas × wordings      |
| own               | which is better, as another judge does          | 6: `own_or_other`        |

In the set-up of the paper's earlier experiments (A.2) there are three marks, and nobody is asked
which is better: it is the one with the higher marks. A judge that is read by its log-probabilities
says one token and no reason: a digit for the text as a whole, or which of two is better.

The item's prompt is the material: the task and what the candidates wrote. Its tag `phase` says
which of them it is.

A judge can be asked the same in other words: what is said of an author is masked, or exchanged
within its family, and two candidates are shown in both orders. The item's tags say which words
those are. `label_words` (single), `first_words` and `second_words` (pair) are the words said of an
author as they stand in the prompt, empty where nothing is said; `family_words` are those of the
family's other labels, split at "|". They stand outside the fences of the prompt (`marked`): a task
or a response that has the same words is left as it is, else it would be another text under each
label. The candidates of a pair stand within <response_1> and <response_2>.

A panel of judges with personas: each marks alone, then they discuss in turn and mark again, and
the mean of what they hold at the end is the consensus (MALIBU paper, 3.3).

| round | a judge sees, in addition to the item          | asked        |
| ----- | ---------------------------------------------- | ------------ |
| 1     | nothing                                        | side by side |
| 2 …   | all that was said, its own words among it      | in turn      |

The first round asks in the very words of an independent judge. So the first draft is what the
panel says without discussion, the last one what it says after it.

A panel of mixed models: with `models` = 2 the roles are `judge` and `judge_2`, and the cast can
give each to a model of its own. The personas take them in turn.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from statistics import fmean
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from evenhand.agents import (
    Agent,
    Ask,
    FreeText,
    OnScale,
    Read,
    Reply,
    one_token,
    side_by_side,
    words,
)
from evenhand.agents.prompts import load, marked
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import UserError
from evenhand.methods.judge_prompt import judge_prompt
from evenhand.statistics.metrics.malibu import TOP

# Whatever is not "off" asks a pair in both orders, so that a slot cannot have an effect.
#   blind  masked only: no label can have an effect
#   mask   as it is and masked: halves the effect of a label
#   swap   as it is and under every other label of the family, or with the labels of a pair
#          exchanged: the labels of a family cannot have different effects
Counterfactual = Literal["off", "blind", "mask", "swap"]

MASK = "a person"  # our choice: reads well where a label's words do
_SLOTS = ("response_1", "response_2")
_FENCE = re.compile(r"<(\w+)>\n(.*?)\n</\1>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Wording:
    """One way to ask. `reversed`: the candidates are in the other order than in the item."""

    name: str
    prompt: str
    reversed: bool = False


def wordings(item: Item, counterfactual: Counterfactual) -> list[Wording]:
    """All that is to be asked, each once. Where nothing is said, nothing is masked or swapped."""
    if counterfactual == "off":
        return [Wording("as is", item.prompt)]
    orders = [("", item.prompt)]
    if item.tags.get("phase") == "pair":
        orders.append((", other order", other_order(item)))
    unique: dict[tuple[str, str], Wording] = {}
    for name, exchange in _changes(item, counterfactual):
        for order, prompt in orders:
            wording = Wording(name + order, with_words(prompt, exchange), bool(order))
            unique.setdefault((order, wording.prompt), wording)
    return list(unique.values())


def _changes(item: Item, counterfactual: Counterfactual) -> list[tuple[str, Mapping[str, str]]]:
    """What is put in the place of what, with a name for it."""
    labels = _said(item)
    if counterfactual == "swap":
        return [("as is", {}), *_counterfactuals(item, labels)]
    masked = ("masked", dict.fromkeys(labels, MASK))
    return [masked] if counterfactual == "blind" else [("as is", {}), masked]


def _counterfactuals(item: Item, labels: list[str]) -> list[tuple[str, Mapping[str, str]]]:
    if item.tags.get("phase") == "pair":
        return [("labels exchanged", _each_for_the_other(labels))]
    others = [words for words in _tag(item, "family_words").split("|") if words]
    return [(f"as {other}", {words: other}) for words in labels for other in others]


def _said(item: Item) -> list[str]:
    """What is said of the authors, in the order of their slots."""
    pair = item.tags.get("phase") == "pair"
    names = ("first_words", "second_words") if pair else ("label_words",)
    return [words for words in (_tag(item, name) for name in names) if words]


def _tag(item: Item, name: str) -> str:
    """Without the tag nobody knows what to change, which is not the same as nothing to change."""
    if name not in item.tags:
        raise UserError(
            f"Item {item.id!r} cannot be paraphrased: it has no tag {name!r}. Use items of a judge "
            "audit."
        )
    return item.tags[name]


def _each_for_the_other(labels: list[str]) -> dict[str, str]:
    """Words that are said of one author only have nobody to change places with."""
    return dict(zip(labels, labels[::-1], strict=True)) if len(labels) == 2 else {}


def with_words(prompt: str, exchange: Mapping[str, str]) -> str:
    """The prompt with all words exchanged at once, those that begin a sentence too. Words that are
    not there are an error: the same question would pass for another."""
    if not exchange:
        return prompt
    outside, fenced = _parts(prompt)
    forms = {_capital(words): _capital(put) for words, put in exchange.items()} | dict(exchange)
    longest_first = sorted(map(re.escape, forms), key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?!\w)")
    there = {words for piece in outside for words in pattern.findall(piece)}
    missing = [words for words in exchange if not there & {words, _capital(words)}]
    if missing:
        raise UserError(f"{missing[0]!r} should stand outside the fences of a prompt, and does not")
    return _whole([pattern.sub(lambda match: forms[match[0]], piece) for piece in outside], fenced)


def other_order(item: Item) -> str:
    """The prompt with the two candidates, and what is said of each, in the other's place."""
    labels = _said(item)
    outside, fenced = _parts(with_words(item.prompt, _each_for_the_other(labels)))
    texts = dict(fenced)
    if not {*_SLOTS} <= texts.keys() or len(labels) == 1:
        raise UserError(
            f"item {item.id!r} cannot be asked in the other order: it must have a <response_1> and "
            "a <response_2>, and say something of both authors or of neither"
        )
    turned = dict(zip(_SLOTS, (texts[_SLOTS[1]], texts[_SLOTS[0]]), strict=True))
    return _whole(outside, [(tag, turned.get(tag, text)) for tag, text in fenced])


def _parts(prompt: str) -> tuple[list[str], list[tuple[str, str]]]:
    """What stands before, between and after the fences; the tag and the text of each fence."""
    pieces = _FENCE.split(prompt)
    return pieces[::3], list(zip(pieces[1::3], pieces[2::3], strict=True))


def _whole(outside: list[str], fenced: list[tuple[str, str]]) -> str:
    """Fence the texts again: a text that is moved could close the fence it comes into."""
    fences = [marked(text, tag) for tag, text in fenced]
    return "".join(piece + fence for piece, fence in zip(outside, [*fences, ""], strict=True))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


OWN = "own"
OTHER = "other"  # the role of the second family's model, as writer and as judge

_WRITER = Agent("judge", load("malibu/write"), FreeText)
_OTHER_WRITER = replace(_WRITER, role=OTHER)


def of_two_families(judge: Agent[Any]) -> tuple[Agent[Any], ...]:
    """The agents that `own_or_other` asks next to the judge: two writers and the other judge."""
    return _WRITER, _OTHER_WRITER, replace(judge, role=OTHER)


async def own_or_other(item: Item, ask: Ask, judge: Agent[Any], persona: str) -> Answer:
    """Measure whether a judge prefers what its own model wrote.

    Two models of different families write a response each, and both judge the two, in both orders,
    without a word about who wrote them. That a judge prefers its own text may be because the text
    is better. The other judge sees the same two: what it says of them is what is to be expected,
    and only the difference between the two judges is a self-preference.

    Args:
        item: An item whose prompt is a task to write about.
        ask: Asks an agent.
        judge: The judge of a pair; the other model judges with the same prompt.
        persona: Whom the judge speaks as.

    Returns:
        An answer whose last draft has two scores. `preferred` is how often the judge takes its own
        model's text (a tie is a half), `preferred_by_other` how often the other judge takes that
        same text.
    """
    mine, theirs = await side_by_side(
        ask(_WRITER, task=item.prompt), ask(_OTHER_WRITER, task=item.prompt)
    )
    orders = [_shown(item, mine.text, theirs.text), _shown(item, theirs.text, mine.text)]
    verdicts = await side_by_side(
        *(
            ask(replace(judge, role=role), material=material, persona=persona)
            for role in (judge.role, OTHER)
            for material in orders
        )
    )
    first_wins = [verdict.scores()["preferred"] for verdict in verdicts]
    wins = [first_wins[0], 1 - first_wins[1], first_wins[2], 1 - first_wins[3]]
    scores = {"preferred": fmean(wins[:2]), "preferred_by_other": fmean(wins[2:])}
    reasons = "\n".join(dict.fromkeys(verdict.reason for verdict in verdicts))
    written = [Draft(text=mine.text), Draft(text=theirs.text)]
    return Answer(drafts=(*written, Draft(text=reasons, scores=scores)), stopped="single_pass")


def _shown(item: Item, first: str, second: str) -> str:
    texts = {"task": item.prompt, "first": first, "second": second}
    (material,) = load("malibu/two_candidates").render(
        {**texts, "said_first": "", "said_second": ""}
    )
    return material.content


# four: paper 3.4; three: its appendix A.2.
Metrics = Literal["four", "three"]
_WORTH = {"first": 1.0, "second": 0.0, "tie": 0.5}

# Whole numbers: an endpoint can be held to a range of them but not to one decimal, histograms and
# tests for ordinal scores need a fixed set of levels, and what is finer than one point shows in the
# mean of four metrics over many scenarios. Any other number is unreadable; none is rounded.
Mark = Annotated[int, Field(ge=0, le=10)]
Reason = Annotated[str, words(240)]


class _Reasoned(Reply):
    reason: Reason  # first: what follows from it is said after it

    def scores(self) -> dict[str, float]:
        return marks_of(self)


class Marks(Reply):
    creativity: Mark
    accuracy: Mark
    efficiency: Mark
    reliability: Mark


class ThreeMarks(Reply):
    creativity: Mark
    efficiency: Mark
    quality: Mark


class Rated(Marks, _Reasoned):
    """The verdict on one candidate."""


class RatedByThree(ThreeMarks, _Reasoned):
    """The verdict on one candidate in the earlier set-up."""


class Compared(Reply):
    """The verdict on two candidates."""

    reason: Reason
    first: Marks
    second: Marks
    preferred: Literal["first", "second", "tie"]  # our choice: the paper has no tie

    def scores(self) -> dict[str, float]:
        return {**_of_both(self.first, self.second), "preferred": _WORTH[self.preferred]}


class ComparedByThree(Reply):
    """The verdict on two candidates in the earlier set-up: the marks say who is preferred."""

    reason: Reason
    first: ThreeMarks
    second: ThreeMarks

    @property
    def preferred(self) -> str:
        first, second = (sum(marks_of(reply).values()) for reply in (self.first, self.second))
        return "tie" if first == second else "first" if first > second else "second"

    def scores(self) -> dict[str, float]:
        return {**_of_both(self.first, self.second), "preferred": _WORTH[self.preferred]}


class RatedByDigit(OnScale):
    """The verdict on one candidate as a whole: the mean of the digits, in points of ten."""

    scale: ClassVar[Mapping[str, float]] = {str(digit): digit * TOP / 9 for digit in range(10)}

    @property
    def reason(self) -> str:
        return self.said

    def scores(self) -> dict[str, float]:
        return {"overall": self.mark}


class ComparedByDigit(OnScale):
    """The verdict on two candidates: the probability of the first."""

    scale: ClassVar[Mapping[str, float]] = {"1": 1.0, "2": 0.0}

    @property
    def reason(self) -> str:
        return self.said

    def scores(self) -> dict[str, float]:
        return {"preferred": self.mark}


SpokenVerdict = Rated | RatedByThree | Compared | ComparedByThree
Verdict = SpokenVerdict | RatedByDigit | ComparedByDigit


def marks_of(reply: Reply) -> dict[str, float]:
    """The marks of a reply by their names: all of it but the reason."""
    return {name: float(mark) for name, mark in reply if name != "reason"}


def _of_both(first: Reply, second: Reply) -> dict[str, float]:
    slots = {"first": first, "second": second}
    return {
        f"{slot}_{name}": m for slot, reply in slots.items() for name, m in marks_of(reply).items()
    }


@dataclass(frozen=True, slots=True)
class JudgeAgents:
    """Who is asked about one candidate, and who about two: nobody, with a prompt of the user's."""

    single: Agent[Any]
    pair: Agent[Any] | None

    def about(self, item: Item) -> Agent[Any]:
        agents = {"single": self.single, "pair": self.pair}
        phase = item.tags.get("phase", "")
        agent = agents.get(phase)
        if agent is None and phase in (*agents, OWN):
            raise UserError(
                f"item {item.id!r} shows two texts, and the judge's prompt is for one. Leave out "
                "the prompt, or ask about single texts."
            )
        if agent is None:
            raise UserError(
                f"item {item.id!r} is nothing to judge: its tag 'phase' must be 'single' or "
                f"'pair', not {phase!r}"
            )
        return agent

    def played_by(self, role: str) -> "JudgeAgents":
        pair = self.pair and replace(self.pair, role=role)
        return JudgeAgents(replace(self.single, role=role), pair)


ROLE = "judge"
OVERALL = "overall"


def asked_by(prompt: str, reply: type[Reply]) -> Agent[Any]:
    """A judge who is asked in the words of this prompt."""
    return Agent(ROLE, load(f"malibu/{prompt}"), reply, temperature=0.0, kind="judge")


JUDGES: Mapping[str, JudgeAgents] = {
    "four": JudgeAgents(asked_by("judge_single", Rated), asked_by("judge_pair", Compared)),
    "three": JudgeAgents(
        asked_by("judge_single_three", RatedByThree), asked_by("judge_pair_three", ComparedByThree)
    ),
    OVERALL: JudgeAgents(
        one_token(ROLE, load("malibu/judge_single_digit"), RatedByDigit, "judge"),
        one_token(ROLE, load("malibu/judge_pair_digit"), ComparedByDigit, "judge"),
    ),
}


def set_up(settings: Mapping[str, Any]) -> str:
    """Which marks a judge with these settings gives."""
    overall = settings.get("read") == "logprob" or settings.get("prompt")
    return OVERALL if overall else str(settings.get("metrics", "four"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """
    >>> method = Rate(personas="a teacher; an engineer", counterfactual="swap")

    Every draft is what one persona said of one wording, the first of them the item as it is; where
    there are several, their mean comes last. A judge who cannot be read fails the item: a mean of
    those who can be would be the mean of another panel.
    """

    name: ClassVar[str] = "rate"
    calls_an_item: ClassVar[str] = "1 (personas)"

    personas: str = "a judge"  # our choice: no persona to speak of; several are split at ";"
    counterfactual: Counterfactual = "off"  # our choice: a remedy, paid for in calls
    metrics: Metrics = "four"
    read: Read = "json"  # our choice; "logprob" gives one mark without a reason, in one token
    prompt: str = field(default="", metadata={"left_out": ""})  # the user's (`judge_prompt.py`)

    def __post_init__(self) -> None:
        listed(self.personas)
        if self.prompt:
            judge_prompt(self.prompt)  # refused before anything is asked
            if (self.personas, self.metrics, self.read) != ("a judge", "four", "json"):
                raise UserError(
                    "A judge with a prompt of its own has no personas, metrics or read: its prompt "
                    "says all of it. Leave them out."
                )
        if self.read == "logprob" and self.metrics != "four":
            raise UserError(
                "With read=logprob a judge gives one mark for a text as a whole. Leave out "
                f"metrics={self.metrics}, or read=logprob."
            )

    @property
    def judges(self) -> JudgeAgents:
        """Who is asked, for these marks."""
        if self.prompt:
            return JudgeAgents(judge_prompt(self.prompt).agent, None)
        return JUDGES[set_up({"read": self.read, "metrics": self.metrics})]

    def agents(self) -> tuple[Agent[Any], ...]:
        judges = self.judges
        if judges.pair is None:
            return (judges.single,)
        return judges.single, judges.pair, *of_two_families(judges.pair)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        judges = self.judges
        if item.tags.get("phase") == OWN and judges.pair is not None:
            return await own_or_other(item, ask, judges.pair, listed(self.personas)[0])
        judge = judges.about(item)
        variants = [
            (persona, wording)
            for persona in listed(self.personas)
            for wording in wordings(item, self.counterfactual)
        ]
        verdicts: Sequence[Verdict] = await side_by_side(
            *(ask(judge, **self._shown(wording.prompt, persona)) for persona, wording in variants)
        )
        drafts = [
            Draft(
                text=verdict.reason,
                reasoning=f"{persona}; {wording.name}",
                scores=slots_exchanged(verdict.scores()) if wording.reversed else verdict.scores(),
            )
            for (persona, wording), verdict in zip(variants, verdicts, strict=True)
        ]
        means = [mean_of(drafts, f"mean of {len(drafts)} verdicts")] if len(drafts) > 1 else []
        return Answer(drafts=(*drafts, *means), stopped="single_pass")

    def _shown(self, material: str, persona: str) -> dict[str, str]:
        """What a judge is shown of an item: as a whole, or in the places of the user's prompt."""
        if not self.prompt:
            return {"material": material, "persona": persona}
        outside, fenced = _parts(material)
        texts = dict(fenced)
        author = " ".join("".join(outside).split())
        return judge_prompt(self.prompt).variables(texts["task"], author, texts["response"])


def listed(personas: str) -> tuple[str, ...]:
    """Each persona of a setting once; two equal ones would be one judge with two votes."""
    names = [" ".join(part.split()) for part in personas.split(";")]
    once = tuple(dict.fromkeys(part for part in names if part))
    if not once:
        raise UserError('A judge needs personas. Write them separated by ";".')
    return once


def slots_exchanged(scores: Mapping[str, float]) -> dict[str, float]:
    """The scores of a pair, said of the candidates in the other order."""
    other = {"first": "second", "second": "first"}
    sides = {name: name.partition("_") for name in scores if name != "preferred"}
    marks = {name: scores[f"{other[slot]}_{metric}"] for name, (slot, _, metric) in sides.items()}
    return {**marks, "preferred": 1.0 - scores["preferred"]}


def mean_of(drafts: Sequence[Draft], called: str) -> Draft:
    """The mean of each score; the words are all that were said, each once."""
    reasons = dict.fromkeys(draft.text for draft in drafts)
    return Draft(
        text="\n".join(reasons),
        reasoning=called,
        scores={name: fmean(draft.scores[name] for draft in drafts) for name in drafts[0].scores},
    )


# Paper 3.3: "unique personas … to prevent responsibility overlap"; it names none. Figures 2 and 3
# have four agents. These are ours: tasks, not groups, so that no judge has an identity of its own.
PERSONAS = (
    "an expert in the field of the task",
    "somebody who has to act on what was written",
    "an editor who looks for clear and honest writing",
    "a sceptic who checks every claim",
)

SPEAKERS: Mapping[Metrics, JudgeAgents] = {
    "four": JudgeAgents(asked_by("discuss_single", Rated), asked_by("discuss_pair", Compared)),
    "three": JudgeAgents(
        asked_by("discuss_single_three", RatedByThree),
        asked_by("discuss_pair_three", ComparedByThree),
    ),
}
Seat = tuple[str, str]  # a persona, and the role of who plays it


def roles_of(models: int) -> tuple[str, ...]:
    """The roles that so many models play on a panel."""
    return (ROLE, *(f"{ROLE}_{number}" for number in range(2, models + 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """
    >>> method = Panel(rounds=3)

    A draft is the mean of a round. The consensus is the mean of the last one: the paper has judges
    "contribute to the final consensus" (3.3) and does not say how. A moderator would be one more
    judge, who has the last word. Each judge's own marks are in the turns.
    """

    name: ClassVar[str] = "panel"
    calls_an_item: ClassVar[str] = "8 (personas × rounds)"

    personas: str = "; ".join(PERSONAS)  # split at ";"; they speak in this order
    # Our choice: the paper says "iterative rounds of discussion" (3.3), not how many. The first,
    # in which judges "evaluate responses individually" (3.3), counts as one.
    rounds: Annotated[int, Field(ge=1)] = 2
    models: Annotated[int, Field(ge=1)] = 1  # the paper's panels are of one model
    metrics: Metrics = "four"

    def __post_init__(self) -> None:
        personas = len(listed(self.personas))
        if self.models > personas:
            raise UserError(
                f"{self.models} models are too many for {personas} personas. Add personas, or "
                "remove models."
            )

    def seats(self) -> list[Seat]:
        return list(zip(listed(self.personas), cycle(roles_of(self.models)), strict=False))

    def agents(self) -> tuple[Agent[Any], ...]:
        kinds = (JUDGES[self.metrics], SPEAKERS[self.metrics])
        players = [kind.played_by(role) for role in roles_of(self.models) for kind in kinds]
        return tuple(a for player in players for a in (player.single, player.pair) if a is not None)

    def within(self, calls: int) -> Self:
        """As many rounds as fit; the judges stay the same."""
        judges = len(listed(self.personas))
        if calls < judges:
            raise UserError(
                f"A panel of {judges} judges needs {judges} calls per round, and the limit is "
                f"{calls}. Raise `calls` under [limits] in the config."
            )
        return replace(self, rounds=calls // judges)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        verdicts = await self._alone(item, ask)
        drafts = [_round(1, verdicts)]
        statements = [
            _words(*spoken) for spoken in zip(listed(self.personas), verdicts, strict=True)
        ]
        for number in range(2, self.rounds + 1):
            verdicts = await self._in_turn(item, statements, ask)
            drafts.append(_round(number, verdicts))
        return Answer(drafts=tuple(drafts), stopped="max_rounds")

    async def _alone(self, item: Item, ask: Ask) -> list[SpokenVerdict]:
        judges = JUDGES[self.metrics]
        asks = (
            ask(judges.played_by(role).about(item), material=item.prompt, persona=persona)
            for persona, role in self.seats()
        )
        return list(await side_by_side(*asks))

    async def _in_turn(self, item: Item, statements: list[str], ask: Ask) -> list[SpokenVerdict]:
        """One round of discussion; what is said in it is added to what everybody hears."""
        verdicts: list[SpokenVerdict] = []
        for persona, role in self.seats():
            speaker = SPEAKERS[self.metrics].played_by(role).about(item)
            verdict = await ask(
                speaker, material=item.prompt, said=tuple(statements), persona=persona
            )
            verdicts.append(verdict)
            statements.append(_words(persona, verdict))
        return verdicts


def _words(persona: str, verdict: SpokenVerdict) -> str:
    """A verdict as the others hear it."""
    if isinstance(verdict, Rated | RatedByThree):
        return f"{persona}: {verdict.reason}\n{_marks(verdict)}"
    pair = f"first: {_marks(verdict.first)}\nsecond: {_marks(verdict.second)}"
    return f"{persona}: {verdict.reason}\n{pair}\npreferred: {verdict.preferred}"


def _marks(reply: Reply) -> str:
    return ", ".join(f"{metric} {mark:.0f}" for metric, mark in marks_of(reply).items())


def _round(number: int, verdicts: Sequence[SpokenVerdict]) -> Draft:
    spoken = [Draft(text=verdict.reason, scores=verdict.scores()) for verdict in verdicts]
    return mean_of(spoken, f"round {number}, mean of {len(spoken)} judges")


FIRST = Agent("writer", load("malibu/write"), FreeText)
AGAIN = Agent("writer", load("malibu/write_again"), FreeText)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoResponses:
    """Two responses to one task, equal in content and in other words (MALIBU paper, 3.2).

    >>> method = TwoResponses()

    Our choice: the second is written from the first. The paper asks a model for two that follow
    "identical problem-solving procedures" (3.2); two that are written apart differ in content, and
    then a judge may prefer one for what it says.
    """

    name: ClassVar[str] = "two_responses"
    calls_an_item: ClassVar[str] = "2"

    def agents(self) -> tuple[Agent[Any], ...]:
        return FIRST, AGAIN

    async def answer(self, item: Item, ask: Ask) -> Answer:
        first = await ask(FIRST, task=item.prompt)
        second = await ask(AGAIN, task=item.prompt, response=first.text)
        drafts = (Draft(text=first.text), Draft(text=second.text))
        return Answer(drafts=drafts, stopped="single_pass", side_by_side=True)
